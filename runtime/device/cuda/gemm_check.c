/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/gemm_check.h"

#include "runtime/base/size.h"
#include "runtime/base/table.h"
#include "runtime/device/cuda/fail.h"

static const size_t kSizes[] = {[WEIR_GEMM_F32] = 4,
                                [WEIR_GEMM_F32_TF32] = 4,
                                [WEIR_GEMM_F64] = 8,
                                [WEIR_GEMM_BF16] = 2,
                                [WEIR_GEMM_F16] = 2};
WEIR_TABLE_OF(kSizes, WEIR_GEMM_TYPE_COUNT);

static const bool kHasBias[] = {
    [WEIR_GEMM_NONE] = false,      [WEIR_GEMM_BIAS] = true,
    [WEIR_GEMM_RELU] = false,      [WEIR_GEMM_RELU_BIAS] = true,
    [WEIR_GEMM_GELU_TANH] = false, [WEIR_GEMM_GELU_TANH_BIAS] = true};
WEIR_TABLE_OF(kHasBias, WEIR_GEMM_EPILOGUE_COUNT);

size_t weir_cuda_gemm_size(weir_gemm_type type) {
  return kSizes[type];
}

bool weir_cuda_gemm_has_bias(weir_gemm_epilogue epilogue) {
  return kHasBias[epilogue];
}

/* The checks of a matrix, and where they report. */
typedef struct checker {
  const weir_module_host *host;
  const weir_gemm_desc *desc;
  weir_error *err;
} checker;

/* Elements from the first to the last of |count| steps of |step|, the last one
 * |size| long: (count - 1) step + size. */
static bool reach(int64_t count, int64_t step, int64_t size, int64_t *out) {
  return weir_dim_mul_checked(count - 1, step, out) &&
         weir_dim_add_checked(*out, size, out);
}

/* Bytes that the matrices of a batch lie in; |span| has the shape. */
static weir_status measure(const checker *c, const weir_gemm_matrix *m,
                           const char *name, weir_cuda_gemm_span *span) {
  int64_t one = 0, all = 0;
  if (m->ld < span->columns)
    return weir_cuda_fail(c->host, c->err, "W9001",
                          "product: the leading dimension of %s is %lld, its "
                          "rows have %lld elements",
                          name, (long long)m->ld, (long long)span->columns);
  bool batched = c->desc->batch > 1;
  if (batched && m->stride < 0)
    return weir_cuda_fail(c->host, c->err, "W9001",
                          "product: the stride of %s is %lld", name,
                          (long long)m->stride);
  if (span->rows == 0 || span->columns == 0 || c->desc->batch == 0)
    return WEIR_OK;
  if (!reach(span->rows, m->ld, span->columns, &one) ||
      !reach(c->desc->batch, batched ? m->stride : 0, one, &all) ||
      !weir_size_mul((size_t)all, kSizes[c->desc->type], &span->bytes))
    return weir_cuda_fail(c->host, c->err, "W9001",
                          "product: no memory is as large as %s", name);
  return WEIR_OK;
}

/* Matrices of D lie one after the other, or their rows do: heads side by side
 * have a stride of one row's length. */
static weir_status check_overlap(const checker *c) {
  const weir_gemm_desc *d = c->desc;
  int64_t one = 0, row = 0;
  if (d->batch <= 1 || d->m == 0 || d->n == 0) return WEIR_OK;
  bool after = reach(d->m, d->d.ld, d->n, &one) && d->d.stride >= one;
  bool beside = d->d.stride >= d->n &&
                reach(d->batch, d->d.stride, d->n, &row) && row <= d->d.ld;
  if (after || beside) return WEIR_OK;
  return weir_cuda_fail(c->host, c->err, "W9001",
                        "product: matrices of D overlap, their stride is %lld",
                        (long long)d->d.stride);
}

static weir_status check_numbers(const checker *c,
                                 weir_cuda_gemm_spans *spans) {
  const weir_gemm_desc *d = c->desc;
  if ((unsigned)d->type >= WEIR_GEMM_TYPE_COUNT ||
      (unsigned)d->epilogue >= WEIR_GEMM_EPILOGUE_COUNT)
    return weir_cuda_fail(c->host, c->err, "W9001",
                          "product: there is no type %d or epilogue %d",
                          (int)d->type, (int)d->epilogue);
  if (d->m < 0 || d->n < 0 || d->k < 0 || d->batch < 0 || d->batch > INT32_MAX)
    return weir_cuda_fail(c->host, c->err, "W9001",
                          "product: m, n, k and batch are %lld, %lld, %lld and "
                          "%lld",
                          (long long)d->m, (long long)d->n, (long long)d->k,
                          (long long)d->batch);
  size_t size = kSizes[d->type], align = d->align_bytes;
  if (align == 0) align = size;
  if (align < size || align > WEIR_GEMM_MOST_ALIGN_BYTES ||
      (align & (align - 1)) != 0)
    return weir_cuda_fail(c->host, c->err, "W9001",
                          "product: elements of %zu bytes are not aligned to "
                          "%zu",
                          size, align);
  spans->align_bytes = align;
  return WEIR_OK;
}

weir_status weir_cuda_gemm_check_desc(const weir_module_host *host,
                                      const weir_gemm_desc *desc,
                                      weir_cuda_gemm_spans *out_spans,
                                      weir_error *err) {
  const checker c = {host, desc, err};
  const weir_gemm_desc *d = desc;
  weir_cuda_gemm_spans s = {0};
  *out_spans = s;
  WEIR_TRY(check_numbers(&c, &s));
  s.a.rows = d->a_transposed ? d->k : d->m;
  s.a.columns = d->a_transposed ? d->m : d->k;
  s.b.rows = d->b_transposed ? d->n : d->k;
  s.b.columns = d->b_transposed ? d->k : d->n;
  s.c.rows = s.d.rows = d->m;
  s.c.columns = s.d.columns = d->n;
  WEIR_TRY(measure(&c, &d->a, "A", &s.a));
  WEIR_TRY(measure(&c, &d->b, "B", &s.b));
  if (d->beta != 0) WEIR_TRY(measure(&c, &d->c, "C", &s.c));
  WEIR_TRY(measure(&c, &d->d, "D", &s.d));
  WEIR_TRY(check_overlap(&c));
  if (kHasBias[d->epilogue] &&
      !weir_size_mul((size_t)d->n, kSizes[d->type], &s.bias_bytes))
    return weir_cuda_fail(host, err, "W9001",
                          "product: no memory is as large as the bias");
  *out_spans = s;
  return WEIR_OK;
}

/* An operand of a run: its bytes, and where they must be. */
typedef struct operand {
  const char *name;
  weir_device_place place;
  size_t bytes, align_bytes;
} operand;

static uintptr_t address_of(weir_device_place place) {
  return (uintptr_t)place.buffer->handle + place.offset;
}

static weir_status check_operand(const checker *c, const operand *o) {
  size_t end;
  if (o->bytes == 0) return WEIR_OK;
  if (o->place.buffer == NULL)
    return weir_cuda_fail(c->host, c->err, "W9001", "product: %s is missing",
                          o->name);
  if (!weir_size_add(o->place.offset, o->bytes, &end) ||
      end > o->place.buffer->bytes)
    return weir_cuda_fail(c->host, c->err, "W9001",
                          "product: %s has %zu bytes at %zu in a buffer of %zu",
                          o->name, o->bytes, o->place.offset,
                          o->place.buffer->bytes);
  if (address_of(o->place) % o->align_bytes != 0)
    return weir_cuda_fail(c->host, c->err, "W9001",
                          "product: %s is not aligned to %zu bytes", o->name,
                          o->align_bytes);
  return WEIR_OK;
}

static bool overlap(const operand *x, const operand *y) {
  if (x->bytes == 0 || y->bytes == 0) return false;
  uintptr_t at = address_of(x->place), other = address_of(y->place);
  return at < other + y->bytes && other < at + x->bytes;
}

/* D may be written where C is read: an element after it was read. */
static bool in_place(const checker *c, const operand *x, const operand *d) {
  const weir_gemm_desc *desc = c->desc;
  return address_of(x->place) == address_of(d->place) &&
         desc->c.ld == desc->d.ld &&
         (desc->batch <= 1 || desc->c.stride == desc->d.stride);
}

weir_status weir_cuda_gemm_check_operands(const weir_module_host *host,
                                          const weir_gemm_desc *desc,
                                          const weir_cuda_gemm_spans *spans,
                                          size_t workspace_bytes,
                                          const weir_gemm_operands *operands,
                                          weir_error *err) {
  const checker c = {host, desc, err};
  enum { D, WORKSPACE, C, A, B, BIAS, COUNT }; /* first those written */
  size_t align = spans->align_bytes;
  if (spans->d.bytes == 0) return WEIR_OK; /* nothing is read or written */
  const operand all[COUNT] = {
      [D] = {"D", operands->d, spans->d.bytes, align},
      [WORKSPACE] = {"the workspace", operands->workspace, workspace_bytes,
                     WEIR_GEMM_MOST_ALIGN_BYTES},
      [C] = {"C", operands->c, spans->c.bytes, align},
      [A] = {"A", operands->a, spans->a.bytes, align},
      [B] = {"B", operands->b, spans->b.bytes, align},
      [BIAS] = {"the bias", operands->bias, spans->bias_bytes, align}};
  for (int i = 0; i < COUNT; i++) WEIR_TRY(check_operand(&c, &all[i]));
  for (int w = D; w <= WORKSPACE; w++) {
    for (int i = w + 1; i < COUNT; i++) {
      if (!overlap(&all[w], &all[i])) continue;
      if (w == D && i == C && in_place(&c, &all[C], &all[D])) continue;
      return weir_cuda_fail(host, err, "W9001", "product: %s overlaps %s",
                            all[w].name, all[i].name);
    }
  }
  return WEIR_OK;
}
