/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/diag/diag.h"
#include "runtime/base/diag/diag_print.h"

#include "runtime/api/weir_internal.h"

/* The caller's two functions in the printer's form. */
typedef struct diag_call {
  size_t (*source)(void *self, const char *file, const char **out_text);
  void *source_self;
} diag_call;

static weir_sv source_text(void *self, const char *file) {
  const diag_call *call = self;
  const char *text = NULL;
  size_t size = call->source(call->source_self, file, &text);
  return (weir_sv){text, text != NULL ? size : 0};
}

const weir_error *weir_diag_error(const weir_diag *diag) {
  return diag != NULL ? &diag->error : NULL;
}

bool weir_diag_is_warning(const weir_diag *diag) {
  return diag != NULL && diag->severity == WEIR_SEVERITY_WARNING;
}

bool weir_diag_write(const weir_diag *diag, weir_diag_form form, bool color,
                     size_t (*source)(void *self, const char *file,
                                      const char **out_text),
                     void *source_self, weir_write_fn write, void *write_self) {
  if (diag == NULL || write == NULL) return false;
  diag_call call = {source, source_self};
  weir_diag_printer printer = {
      .format = form == WEIR_DIAG_FORM_JSON  ? WEIR_DIAG_JSON
                : form == WEIR_DIAG_FORM_GCC ? WEIR_DIAG_GCC
                                             : WEIR_DIAG_HUMAN,
      .color = color,
      .out = {write_self, write},
      .source = source != NULL ? source_text : NULL,
      .source_self = &call};
  return weir_diag_print(&printer, diag);
}

bool weir_error_write(const weir_error *error, weir_diag_form form, bool color,
                      weir_write_fn write, void *write_self) {
  if (error == NULL) return false;
  weir_diag diag;
  weir_diag_init(&diag, error);
  return weir_diag_write(&diag, form, color, NULL, NULL, write, write_self);
}
