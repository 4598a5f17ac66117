/* SPDX-License-Identifier: Apache-2.0 */
/* The doors of oneDNN and of libyaml in a build without them: this oneDNN has
 * products by plain loops and no convolution; nothing is called of libyaml. */
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "kernels/cpu/onednn/onednn.h"
#include "kernels/cpu/onednn/onednn_conv.h"
#include "kernels/profile.h"

void weir_onednn_version(char *text, size_t capacity) {
  snprintf(text, capacity, "0.0.0");
}

uint32_t weir_onednn_number(void) {
  return 0;
}

static int limit; /* 0: none yet */

/* The first limit, or the first product, fixes the set. */
bool weir_onednn_limit(int level) {
  if (limit == 0) limit = level;
  return limit == level;
}

bool weir_onednn_has_conv(void) {
  return false;
}

weir_status weir_onednn_sgemm(const weir_sgemm *g, const float *a,
                              const float *b, float *c, weir_error *err) {
  (void)err;
  if (limit == 0) limit = weir_profile_level(weir_profile_best());
  for (int64_t i = 0; i < g->m; i++)
    for (int64_t j = 0; j < g->n; j++) {
      float sum = 0;
      for (int64_t p = 0; p < g->k; p++)
        sum += a[g->a_t ? p * g->lda + i : i * g->lda + p] *
               b[g->b_t ? j * g->ldb + p : p * g->ldb + j];
      c[i * g->ldc + j] = sum;
    }
  return WEIR_OK;
}

weir_status weir_onednn_conv_create(const weir_onednn_conv_spec *spec,
                                    const weir_allocator *alloc,
                                    weir_onednn_conv **out_conv,
                                    weir_error *err) {
  (void)spec, (void)alloc;
  *out_conv = NULL;
  return weir_fail(err, WEIR_W5001, NULL, "this build has no oneDNN");
}

void weir_onednn_conv_release(weir_onednn_conv *conv) {
  (void)conv;
}

/* ---- Of no use without a convolution, or without a file of YAML */

static _Noreturn void stop(const char *name) {
  fprintf(stderr, "%s was called; this build lacks its library\n", name);
  abort();
}

size_t weir_onednn_conv_packed_bytes(const weir_onednn_conv *conv) {
  (void)conv;
  stop(__func__);
}

size_t weir_onednn_conv_scratch_bytes(const weir_onednn_conv *conv) {
  (void)conv;
  stop(__func__);
}

weir_status weir_onednn_conv_pack(const weir_onednn_conv *conv, const float *w,
                                  void *packed, void *scratch,
                                  weir_error *err) {
  (void)conv, (void)w, (void)packed, (void)scratch, (void)err;
  stop(__func__);
}

weir_status weir_onednn_conv_run(const weir_onednn_conv *conv,
                                 const weir_onednn_conv_io *io,
                                 weir_error *err) {
  (void)conv, (void)io, (void)err;
  stop(__func__);
}

int yaml_parser_initialize(yaml_parser_t *parser) {
  (void)parser;
  stop(__func__);
}

void yaml_parser_delete(yaml_parser_t *parser) {
  (void)parser;
  stop(__func__);
}

void yaml_parser_set_encoding(yaml_parser_t *parser, yaml_encoding_t encoding) {
  (void)parser, (void)encoding;
  stop(__func__);
}

void yaml_parser_set_input(yaml_parser_t *parser, yaml_read_handler_t *handler,
                           void *data) {
  (void)parser, (void)handler, (void)data;
  stop(__func__);
}

int yaml_parser_parse(yaml_parser_t *parser, yaml_event_t *event) {
  (void)parser, (void)event;
  stop(__func__);
}

void yaml_event_delete(yaml_event_t *event) {
  (void)event;
  stop(__func__);
}
