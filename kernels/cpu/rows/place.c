/* SPDX-License-Identifier: Apache-2.0 */
/* slice_grad and pad by a constant: y is filled, then x put into it:
 * y[at + i s0 + j s1 ...] = x[i, j, ...]. Dims that y walks as one are joined.
 *
 * Two parallel loops, one after the other: filling by ranges of y, placing by
 * rows of x. y is filled only if x does not cover it. Rows never meet in y, as
 * the strides of a slice and of a pad address different elements.
 * Cost: one write of y, one read and write of x's elements. */
#include <assert.h>
#include <string.h>

#include "kernels/kernel.h"
#include "kernels/registry.h"
#include "ops/shape/slicing.h"

enum { BLOCK_BYTES = 128 * 1024 };

typedef struct plan {
  size_t size;   /* of an element */
  int64_t value; /* its bits */
  int64_t at;    /* where x's first element goes */
  int32_t rank;
  int64_t dims[WEIR_MAX_RANK + 1], strides[WEIR_MAX_RANK + 1]; /* in y */
  int64_t rows, row, block; /* rows of x, their length, rows of a block */
  int64_t fill, elements;   /* elements of a block, of y */
} plan;

typedef struct job {
  const plan *p;
  const weir_args *args;
} job;

/* Drops dims of 1 and joins neighbours that y walks as one. */
static void add_dim(plan *p, int64_t dim, int64_t stride) {
  int32_t last = p->rank - 1;
  if (dim == 1) return;
  if (last >= 0 && p->strides[last] == dim * stride) {
    p->dims[last] *= dim;
    p->strides[last] = stride;
    return;
  }
  p->dims[p->rank] = dim;
  p->strides[p->rank++] = stride;
}

static void finish(plan *p, const weir_operand *x, const weir_operand *y) {
  p->size = weir_dtype_size(y->dtype);
  p->elements = y->elements;
  p->fill = BLOCK_BYTES / (int64_t)p->size;
  if (p->elements <= 2 * p->fill) p->fill = p->elements;
  if (p->rank == 0) {
    p->dims[p->rank] = 1;
    p->strides[p->rank++] = 1;
  }
  p->row = x->elements > 0 ? p->dims[p->rank - 1] : 0;
  p->rows = 1;
  for (int32_t d = 0; d < p->rank - 1; d++) p->rows *= p->dims[d];
  p->block = BLOCK_BYTES / (p->row * (int64_t)p->size + 1) + 1;
  if (x->elements * (int64_t)p->size <= 2 * BLOCK_BYTES) p->block = p->rows;
  if (x->elements == 0) p->rows = 0;
  assert(p->rank > 0 && (p->rows == 0 || p->block > 0));
}

static void fill_block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const plan *p = j->p;
  int64_t end =
      (b + 1) * p->fill < p->elements ? (b + 1) * p->fill : p->elements;
  char *y = j->args->io[1];
  (void)worker;
  if (p->value == 0 || p->size == 1) {
    memset(y + (size_t)(b * p->fill) * p->size, (int)(p->value & 0xff),
           (size_t)(end - b * p->fill) * p->size);
    return;
  }
  for (int64_t i = b * p->fill; i < end; i++)
    memcpy(y + (size_t)i * p->size, &p->value, p->size);
}

static void put_row(char *y, const char *x, int64_t n, int64_t stride,
                    size_t size) {
  if (stride == 1) {
    memcpy(y, x, (size_t)n * size);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    memcpy(y + i * stride * (int64_t)size, x + i * (int64_t)size, size);
}

static void place_block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const plan *p = j->p;
  int64_t end = (b + 1) * p->block < p->rows ? (b + 1) * p->block : p->rows;
  int64_t size = (int64_t)p->size;
  (void)worker;
  for (int64_t r = b * p->block; r < end; r++) {
    int64_t at = p->at, rest = r;
    for (int32_t d = p->rank - 2; d >= 0; d--) {
      at += rest % p->dims[d] * p->strides[d];
      rest /= p->dims[d];
    }
    put_row((char *)j->args->io[1] + at * size,
            (const char *)j->args->io[0] + r * p->row * size, p->row,
            p->strides[p->rank - 1], p->size);
  }
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  job j = {p, args};
  if (p->elements == 0) return WEIR_OK;
  if (p->rows * p->row < p->elements)
    weir_parallel_for(args, (p->elements + p->fill - 1) / p->fill, fill_block,
                      &j);
  if (p->rows > 0)
    weir_parallel_for(args, (p->rows + p->block - 1) / p->block, place_block,
                      &j);
  return WEIR_OK;
}

static void strides_of(const weir_operand *y, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t d = y->rank - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= y->dims[d];
  }
}

static weir_status new_plan(weir_prepared *out, plan **p, weir_error *err) {
  *p = weir_arena_array(out->arena, 1, sizeof **p);
  if (*p == NULL) return weir_fail_memory(err, sizeof **p);
  out->state = *p;
  out->algorithm = "filled, rows put in";
  return WEIR_OK;
}

static weir_status prepare_slice_grad(const weir_call *call, weir_prepared *out,
                                      weir_error *err) {
  const weir_operand *dx = &call->out[0];
  weir_slice slices[WEIR_MAX_RANK];
  int64_t strides[WEIR_MAX_RANK];
  plan *p = NULL;
  WEIR_TRY(new_plan(out, &p, err));
  strides_of(dx, strides);
  weir_call_slice(call, dx->rank, dx->dims, slices);
  for (int32_t d = 0; d < dx->rank; d++) {
    p->at += slices[d].start * strides[d];
    add_dim(p, slices[d].length, slices[d].step * strides[d]);
  }
  finish(p, &call->in[0], dx);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_slice_grad = {
    .op = "slice_grad",
    .name = "cpu.slice_grad",
    .device = WEIR_CPU,
    .types = WEIR_FLOATS,
    .prepare = prepare_slice_grad,
    .run = run};

/* ---- pad */

static bool accepts_pad(const weir_call *call, weir_why *why) {
  const weir_attr *pads = weir_call_attr(call, "pads");
  if (!weir_sv_is(weir_call_attr(call, "mode")->s, "constant"))
    return weir_no(why, "not by a constant");
  for (uint32_t i = 0; i < pads->count; i++)
    if (pads->dims[i].value < 0) return weir_no(why, "a negative pad");
  return true;
}

static weir_status prepare_pad(const weir_call *call, weir_prepared *out,
                               weir_error *err) {
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  const weir_attr *pads = weir_call_attr(call, "pads");
  int64_t strides[WEIR_MAX_RANK];
  plan *p = NULL;
  WEIR_TRY(new_plan(out, &p, err));
  strides_of(y, strides);
  weir_put_attr(y->dtype, &p->value, 0, weir_call_attr(call, "value"));
  for (int32_t d = 0; d < x->rank; d++) {
    p->at += pads->dims[d].value * strides[d];
    add_dim(p, x->dims[d], strides[d]);
  }
  finish(p, x, y);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_pad = {.op = "pad",
                                             .name = "cpu.pad",
                                             .device = WEIR_CPU,
                                             .types = WEIR_FLOATS,
                                             .accepts = accepts_pad,
                                             .prepare = prepare_pad,
                                             .run = run};
