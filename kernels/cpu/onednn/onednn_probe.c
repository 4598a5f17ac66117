/* SPDX-License-Identifier: Apache-2.0 */
/* A small primitive of each kind is described to oneDNN, and its answer is the
 * name of the implementation that it would run. The shapes are such that no
 * kind is refused for them: a multiple of 16 channels, an image of 8 x 8. */
#include "kernels/cpu/onednn/onednn_probe.h"

#include <stdio.h>

#include "kernels/cpu/onednn/onednn_api.h"

enum { kRank = 4 };

typedef struct question {
  const char *name;
  dnnl_primitive_kind_t kind;
  dnnl_data_type_t type;
} question;

static const question kQuestions[] = {
    {"matmul f32", dnnl_matmul, dnnl_f32},
    {"convolution f32", dnnl_convolution, dnnl_f32},
    {"inner product f32", dnnl_inner_product, dnnl_f32},
    {"pooling f32", dnnl_pooling, dnnl_f32},
    {"matmul bf16", dnnl_matmul, dnnl_bf16},
    {"convolution bf16", dnnl_convolution, dnnl_bf16},
    {"inner product bf16", dnnl_inner_product, dnnl_bf16},
    {"pooling bf16", dnnl_pooling, dnnl_bf16}};

static const dnnl_dims_t kImages = {2, 16, 8, 8}, kFilter = {16, 16, 3, 3},
                         kWide = {16, 16, 8, 8}, kSmaller = {2, 16, 4, 4},
                         kOnes = {1, 1, 1, 1}, kTwos = {2, 2, 2, 2},
                         kZeros = {0, 0, 0, 0};

/* A pooling takes the layout that it finds. */
static dnnl_format_tag_t layout_of(const question *q) {
  return q->kind == dnnl_pooling ? dnnl_aBcd8b : dnnl_format_tag_any;
}

#if DNNL_VERSION_MAJOR < 3
/* A description of 2.x, and of 3.x what it makes at once. */
static dnnl_status_t describe(const question *q, dnnl_engine_t engine,
                              dnnl_primitive_desc_t *out) {
  const dnnl_dims_t *const dims[] = {&kImages, &kFilter, &kWide, &kSmaller};
  dnnl_memory_desc_t images, filter, wide, smaller, none = {0}, matrix[3];
  dnnl_memory_desc_t *const mds[] = {&images, &filter, &wide, &smaller};
  for (int i = 0; i < 4; i++)
    (void)dnnl_memory_desc_init_by_tag(mds[i], kRank, *dims[i], q->type,
                                       layout_of(q));
  for (int i = 0; i < 3; i++)
    (void)dnnl_memory_desc_init_by_tag(&matrix[i], 2, kWide, q->type,
                                       dnnl_format_tag_any);
  dnnl_memory_desc_t rows = matrix[0];
  (void)dnnl_memory_desc_init_by_tag(&rows, 2, kImages, q->type,
                                     dnnl_format_tag_any);
  union {
    dnnl_matmul_desc_t matmul;
    dnnl_convolution_desc_t convolution;
    dnnl_inner_product_desc_t inner;
    dnnl_pooling_desc_t pooling;
  } d;
  dnnl_status_t s;
  if (q->kind == dnnl_matmul)
    s = dnnl_matmul_desc_init(&d.matmul, &matrix[0], &matrix[1], &none,
                              &matrix[2]);
  else if (q->kind == dnnl_convolution)
    s = dnnl_convolution_forward_desc_init(
        &d.convolution, dnnl_forward_inference, dnnl_convolution_direct,
        &images, &filter, &none, &images, kOnes, kOnes, kOnes);
  else if (q->kind == dnnl_inner_product)
    s = dnnl_inner_product_forward_desc_init(&d.inner, dnnl_forward_inference,
                                             &images, &wide, &none, &rows);
  else
    s = dnnl_pooling_forward_desc_init(&d.pooling, dnnl_forward_inference,
                                       dnnl_pooling_max, &images, &smaller,
                                       kTwos, kTwos, kZeros, kZeros);
  return s != dnnl_success
             ? s
             : dnnl_primitive_desc_create(out, &d, NULL, engine, NULL);
}

#else
static dnnl_status_t create(const question *q, dnnl_engine_t engine,
                            dnnl_memory_desc_t *mds,
                            dnnl_primitive_desc_t *out) {
  const dnnl_memory_desc_t images = mds[0], filter = mds[1], wide = mds[2];
  if (q->kind == dnnl_matmul)
    return dnnl_matmul_primitive_desc_create(out, engine, mds[4], mds[4], NULL,
                                             mds[4], NULL);
  if (q->kind == dnnl_convolution)
    return dnnl_convolution_forward_primitive_desc_create(
        out, engine, dnnl_forward_inference, dnnl_convolution_direct, images,
        filter, NULL, images, kOnes, kZeros, kOnes, kOnes, NULL);
  if (q->kind == dnnl_inner_product)
    return dnnl_inner_product_forward_primitive_desc_create(
        out, engine, dnnl_forward_inference, images, wide, NULL, mds[5], NULL);
  return dnnl_pooling_forward_primitive_desc_create(
      out, engine, dnnl_forward_inference, dnnl_pooling_max, images, mds[3],
      kTwos, kTwos, kZeros, kZeros, kZeros, NULL);
}

static dnnl_status_t describe(const question *q, dnnl_engine_t engine,
                              dnnl_primitive_desc_t *out) {
  const dnnl_dims_t *const dims[] = {&kImages,  &kFilter, &kWide,
                                     &kSmaller, &kWide,   &kImages};
  dnnl_memory_desc_t mds[6] = {NULL};
  dnnl_status_t s = dnnl_success;
  for (int i = 0; i < 6 && s == dnnl_success; i++)
    s = dnnl_memory_desc_create_with_tag(
        &mds[i], i < 4 ? kRank : 2, *dims[i], q->type,
        i < 4 ? layout_of(q) : dnnl_format_tag_any);
  if (s == dnnl_success) s = create(q, engine, mds, out);
  for (int i = 0; i < 6; i++)
    if (mds[i] != NULL) (void)dnnl_memory_desc_destroy(mds[i]);
  return s;
}
#endif

bool weir_onednn_probe(size_t i, weir_onednn_primitive *out) {
  if (i >= sizeof kQuestions / sizeof *kQuestions) return false;
  const question *q = &kQuestions[i];
  dnnl_engine_t engine = NULL;
  dnnl_primitive_desc_t made = NULL;
  const char *impl = NULL;
  *out = (weir_onednn_primitive){{0}, {0}};
  snprintf(out->name, sizeof out->name, "%s", q->name);
  if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) return true;
  if (describe(q, engine, &made) == dnnl_success) {
    if (dnnl_primitive_desc_query(made, dnnl_query_impl_info_str, 0, &impl) ==
            dnnl_success &&
        impl != NULL)
      snprintf(out->impl, sizeof out->impl, "%s", impl);
    (void)dnnl_primitive_desc_destroy(made);
  }
  (void)dnnl_engine_destroy(engine);
  return true;
}

const char *weir_onednn_set(void) {
  unsigned now = (unsigned)dnnl_get_effective_cpu_isa();
#define HAS(set) ((now & (unsigned)(set)) == (unsigned)(set))
  if (HAS(dnnl_cpu_isa_avx512_core_amx)) return "avx512 with amx";
  if (HAS(dnnl_cpu_isa_avx512_core_bf16)) return "avx512 with bf16";
  if (HAS(dnnl_cpu_isa_avx512_core_vnni)) return "avx512 with vnni";
  if (HAS(dnnl_cpu_isa_avx512_core)) return "avx512";
  if (HAS(dnnl_cpu_isa_avx2)) return "avx2";
  return HAS(dnnl_cpu_isa_sse41) ? "sse4.1" : "generic";
#undef HAS
}
