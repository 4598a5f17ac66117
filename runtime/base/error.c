/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/error.h"

#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/table.h"

/* The table of errors as programs ask for it, by the text of an id. */

typedef struct error_row {
  const char *id;
  int exit_code;
  const char *title;
  const char *text;
} error_row;

static const error_row kErrors[] = {
    [WEIR_W_NONE] = {"", 0, "", ""},
#define WEIR_ERROR(id, status, exit_code, title, text) \
  [WEIR_##id] = {#id, exit_code, title, text},
#include "runtime/base/errors.def"
#undef WEIR_ERROR
};
WEIR_TABLE_OF(kErrors, WEIR_W_COUNT);

static const char *const kStatusNames[] = {
    [WEIR_OK] = "OK",
    [WEIR_CANCELLED] = "CANCELLED",
    [WEIR_UNKNOWN] = "UNKNOWN",
    [WEIR_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
    [WEIR_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
    [WEIR_NOT_FOUND] = "NOT_FOUND",
    [WEIR_ALREADY_EXISTS] = "ALREADY_EXISTS",
    [WEIR_PERMISSION_DENIED] = "PERMISSION_DENIED",
    [WEIR_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
    [WEIR_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
    [WEIR_ABORTED] = "ABORTED",
    [WEIR_OUT_OF_RANGE] = "OUT_OF_RANGE",
    [WEIR_UNIMPLEMENTED] = "UNIMPLEMENTED",
    [WEIR_INTERNAL] = "INTERNAL",
    [WEIR_UNAVAILABLE] = "UNAVAILABLE",
    [WEIR_DATA_LOSS] = "DATA_LOSS",
    [WEIR_UNAUTHENTICATED] = "UNAUTHENTICATED"};
WEIR_TABLE_OF(kStatusNames, WEIR_UNAUTHENTICATED + 1);

const char *weir_status_name(weir_status status) {
  size_t i = (size_t)status;
  if (i >= sizeof kStatusNames / sizeof kStatusNames[0]) return "UNKNOWN";
  return kStatusNames[i];
}

static const error_row *find_row(const char *id) {
  for (size_t i = 1; i < WEIR_W_COUNT; i++)
    if (id != NULL && strcmp(kErrors[i].id, id) == 0) return &kErrors[i];
  return NULL;
}

const char *weir_error_title(const char *id) {
  const error_row *row = find_row(id);
  return row ? row->title : NULL;
}

const char *weir_error_explain(const char *id) {
  const error_row *row = find_row(id);
  return row ? row->text : NULL;
}

int weir_error_exit_code(const char *id) {
  const error_row *row = find_row(id);
  return row ? row->exit_code : -1;
}

const char *weir_error_id_at(int index) {
  if (index < 0 || index >= WEIR_W_COUNT - 1) return NULL;
  return kErrors[index + 1].id;
}
