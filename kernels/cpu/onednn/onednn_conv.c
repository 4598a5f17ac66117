/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by oneDNN's primitives.
 *
 * The layouts of x and y are given, that of the weights is oneDNN's choice: a
 * second primitive packs them. Memory objects are made in each call, as several
 * calls of one primitive may be under way at once and an object holds one
 * address; oneDNN allocates its list of arguments there in any case.
 * Invariant: a primitive keeps nothing of a call: its scratch is the caller's.
 */
#include "kernels/cpu/onednn/onednn_conv.h"

#include <assert.h>
#include <string.h>

#include "kernels/cpu/onednn/onednn_api.h"

struct weir_onednn_conv {
  const weir_allocator *alloc;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_attr_t attr;
  dnnl_memory_desc_t x, y, bias, w, any;
  int mds; /* of the five above, that are made */
  bool has_bias;
  dnnl_primitive_desc_t conv_desc, pack_desc;
  dnnl_primitive_t conv, pack;
  size_t packed_bytes, scratch_bytes;
};

bool weir_onednn_has_conv(void) {
#if defined(BUILD_PRIMITIVE_ALL) && !BUILD_PRIMITIVE_ALL && !BUILD_CONVOLUTION
  return false;
#elif defined(__x86_64__)
  return true;
#else
  return false; /* blocked layouts are for the vectors of x86-64 */
#endif
}

static dnnl_status_t add_md(weir_onednn_conv *c, dnnl_memory_desc_t *md,
                            int rank, const dnnl_dims_t dims,
                            dnnl_format_tag_t tag) {
  dnnl_status_t s = weir_dnnl_md_create(md, rank, dims, tag);
  if (s == dnnl_success) c->mds++;
  return s;
}

static dnnl_status_t make_mds(weir_onednn_conv *c,
                              const weir_onednn_conv_spec *p) {
  dnnl_format_tag_t blocked = p->lanes == 16 ? dnnl_nChw16c : dnnl_nChw8c;
  dnnl_dims_t x = {1, p->c, p->h, p->w}, y = {1, p->oc, p->oh, p->ow};
  dnnl_dims_t dense = {p->oc, p->c, p->kernel[0], p->kernel[1]};
  dnnl_dims_t each = {p->oc, 1, 1, p->kernel[0], p->kernel[1]};
  dnnl_dims_t bias = {p->oc};
  int rank = p->depthwise ? 5 : 4;
  const int64_t *w = p->depthwise ? each : dense;
  dnnl_format_tag_t plain = p->depthwise ? dnnl_goihw : dnnl_oihw;
  dnnl_status_t s = add_md(c, &c->x, 4, x, p->plain_x ? dnnl_nchw : blocked);
  if (s == dnnl_success) s = add_md(c, &c->y, 4, y, blocked);
  if (s == dnnl_success) s = add_md(c, &c->bias, 1, bias, dnnl_x);
  if (s == dnnl_success) s = add_md(c, &c->w, rank, w, plain);
  if (s == dnnl_success) s = add_md(c, &c->any, rank, w, dnnl_format_tag_any);
  return s;
}

static dnnl_status_t describe(weir_onednn_conv *c,
                              const weir_onednn_conv_spec *p) {
  dnnl_dims_t stride = {p->stride[0], p->stride[1]};
  dnnl_dims_t gaps = {p->dilation[0] - 1, p->dilation[1] - 1};
  dnnl_dims_t before = {p->pad[0], p->pad[1]}, after = {p->pad[2], p->pad[3]};
  weir_dnnl_md x = weir_dnnl_md_of(&c->x), y = weir_dnnl_md_of(&c->y);
  weir_dnnl_md w = weir_dnnl_md_of(&c->any);
  weir_dnnl_md bias = c->has_bias ? weir_dnnl_md_of(&c->bias) : NULL;
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_convolution_forward_primitive_desc_create(
      &c->conv_desc, c->engine, dnnl_forward_inference, dnnl_convolution_direct,
      x, w, bias, y, stride, gaps, before, after, c->attr);
#else
  dnnl_convolution_desc_t d;
  dnnl_status_t s = dnnl_dilated_convolution_forward_desc_init(
      &d, dnnl_forward_inference, dnnl_convolution_direct, x, w, bias, y,
      stride, gaps, before, after);
  if (s == dnnl_success)
    s = dnnl_primitive_desc_create(&c->conv_desc, &d, c->attr, c->engine, NULL);
  return s;
#endif
}

static weir_dnnl_md asked(const dnnl_primitive_desc_t desc, dnnl_query_t what) {
  return dnnl_primitive_desc_query_md(desc, what, 0);
}

static size_t bytes_of(const dnnl_primitive_desc_t desc, dnnl_query_t what) {
  weir_dnnl_md md = asked(desc, what);
  return md == NULL ? 0 : dnnl_memory_desc_get_size(md);
}

static dnnl_status_t make(weir_onednn_conv *c, const weir_onednn_conv_spec *p) {
  dnnl_status_t s = dnnl_engine_create(&c->engine, dnnl_cpu, 0);
  if (s == dnnl_success)
    s = dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags);
  if (s == dnnl_success) s = dnnl_primitive_attr_create(&c->attr);
  if (s == dnnl_success)
    s = dnnl_primitive_attr_set_scratchpad_mode(c->attr,
                                                dnnl_scratchpad_mode_user);
  if (s == dnnl_success) s = make_mds(c, p);
  if (s == dnnl_success) s = describe(c, p);
  if (s == dnnl_success) s = dnnl_primitive_create(&c->conv, c->conv_desc);
  if (s == dnnl_success)
    s = dnnl_reorder_primitive_desc_create(
        &c->pack_desc, weir_dnnl_md_of(&c->w), c->engine,
        asked(c->conv_desc, dnnl_query_weights_md), c->engine, c->attr);
  if (s == dnnl_success) s = dnnl_primitive_create(&c->pack, c->pack_desc);
  return s;
}

weir_status weir_onednn_conv_create(const weir_onednn_conv_spec *spec,
                                    const weir_allocator *alloc,
                                    weir_onednn_conv **out_conv,
                                    weir_error *err) {
  weir_onednn_conv *c = weir_alloc(alloc, sizeof *c);
  *out_conv = NULL;
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  memset(c, 0, sizeof *c);
  assert(spec->lanes == 8 || spec->lanes == 16);
  assert(!spec->depthwise || spec->c == spec->oc);
  c->alloc = alloc;
  c->has_bias = spec->bias;
  int threads = weir_onednn_enter();
  dnnl_status_t s = make(c, spec);
  weir_onednn_leave(threads);
  if (s != dnnl_success) {
    weir_onednn_conv_release(c);
    return weir_onednn_check(s, "a convolution", err);
  }
  c->packed_bytes = bytes_of(c->conv_desc, dnnl_query_weights_md);
  c->scratch_bytes = bytes_of(c->conv_desc, dnnl_query_scratchpad_md);
  size_t other = bytes_of(c->pack_desc, dnnl_query_scratchpad_md);
  if (other > c->scratch_bytes) c->scratch_bytes = other;
  *out_conv = c;
  return WEIR_OK;
}

void weir_onednn_conv_release(weir_onednn_conv *c) {
  if (c == NULL) return;
  dnnl_memory_desc_t *mds[] = {&c->x, &c->y, &c->bias, &c->w, &c->any};
  for (int i = 0; i < c->mds; i++) weir_dnnl_md_destroy(mds[i]);
  if (c->pack != NULL) (void)dnnl_primitive_destroy(c->pack);
  if (c->conv != NULL) (void)dnnl_primitive_destroy(c->conv);
  if (c->pack_desc != NULL) (void)dnnl_primitive_desc_destroy(c->pack_desc);
  if (c->conv_desc != NULL) (void)dnnl_primitive_desc_destroy(c->conv_desc);
  if (c->attr != NULL) (void)dnnl_primitive_attr_destroy(c->attr);
  if (c->stream != NULL) (void)dnnl_stream_destroy(c->stream);
  if (c->engine != NULL) (void)dnnl_engine_destroy(c->engine);
  weir_free(c->alloc, c);
}

size_t weir_onednn_conv_packed_bytes(const weir_onednn_conv *conv) {
  return conv->packed_bytes;
}

size_t weir_onednn_conv_scratch_bytes(const weir_onednn_conv *conv) {
  return conv->scratch_bytes;
}

/* ---- Calls */

enum { ARGS = 5 };

typedef struct arguments {
  dnnl_exec_arg_t args[ARGS];
  int count;
} arguments;

/* One more argument; nothing after a failure. */
static void add(const weir_onednn_conv *c, arguments *a, dnnl_status_t *s,
                int what, weir_dnnl_md md, const void *data) {
  if (*s != dnnl_success || md == NULL || data == NULL) return;
  assert(a->count < ARGS);
  dnnl_exec_arg_t *arg = &a->args[a->count];
  *s = dnnl_memory_create(&arg->memory, md, c->engine, (void *)(uintptr_t)data);
  arg->arg = what;
  if (*s == dnnl_success) a->count++;
}

static weir_status execute(const weir_onednn_conv *c, dnnl_primitive_t what,
                           arguments *a, dnnl_status_t s, weir_error *err) {
  if (s == dnnl_success)
    s = dnnl_primitive_execute(what, c->stream, a->count, a->args);
  for (int i = 0; i < a->count; i++)
    (void)dnnl_memory_destroy(a->args[i].memory);
  return weir_onednn_check(s, "a convolution's call", err);
}

weir_status weir_onednn_conv_pack(const weir_onednn_conv *c, const float *w,
                                  void *packed, void *scratch,
                                  weir_error *err) {
  arguments a = {.count = 0};
  dnnl_status_t s = dnnl_success;
  int threads = weir_onednn_enter();
  add(c, &a, &s, DNNL_ARG_FROM, weir_dnnl_md_of(&c->w), w);
  add(c, &a, &s, DNNL_ARG_TO, asked(c->conv_desc, dnnl_query_weights_md),
      packed);
  add(c, &a, &s, DNNL_ARG_SCRATCHPAD,
      asked(c->pack_desc, dnnl_query_scratchpad_md), scratch);
  weir_status done = execute(c, c->pack, &a, s, err);
  weir_onednn_leave(threads);
  return done;
}

weir_status weir_onednn_conv_run(const weir_onednn_conv *c,
                                 const weir_onednn_conv_io *io,
                                 weir_error *err) {
  arguments a = {.count = 0};
  dnnl_status_t s = dnnl_success;
  int threads = weir_onednn_enter();
  add(c, &a, &s, DNNL_ARG_SRC, weir_dnnl_md_of(&c->x), io->x);
  add(c, &a, &s, DNNL_ARG_WEIGHTS, asked(c->conv_desc, dnnl_query_weights_md),
      io->packed);
  if (c->has_bias)
    add(c, &a, &s, DNNL_ARG_BIAS, weir_dnnl_md_of(&c->bias), io->bias);
  add(c, &a, &s, DNNL_ARG_DST, weir_dnnl_md_of(&c->y), io->y);
  add(c, &a, &s, DNNL_ARG_SCRATCHPAD,
      asked(c->conv_desc, dnnl_query_scratchpad_md), io->scratch);
  weir_status done = execute(c, c->conv, &a, s, err);
  weir_onednn_leave(threads);
  return done;
}
