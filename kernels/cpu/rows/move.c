/* SPDX-License-Identifier: Apache-2.0 */
/* transpose, slice and expand: y[i, j, ...] = x[at + i s0 + j s1 ...]. Dims
 * that x walks as one are joined. Rows that lie together in x are copied, a
 * dim that does against y's last one is transposed square by square, the rest
 * goes element by element.
 *
 * The op says only how x is walked (walk_*); the plan then decides by strides
 * alone. Squares matter because either side of a transposition would else touch
 * one element of each cache line at a time.
 * Cost: each element read and written once. */
#include <assert.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/kernel.h"
#include "ops/shape/slicing.h"

enum { BLOCK_BYTES = 128 * 1024 };

typedef struct plan {
  const weir_isa *isa;
  size_t size; /* of an element */
  int64_t at;  /* first element of x */
  int32_t rank;
  int64_t dims[WEIR_MAX_RANK + 1], x_strides[WEIR_MAX_RANK + 1];
  int64_t y_strides[WEIR_MAX_RANK + 1];
  /* Transposed: dim |along| lies together in x, the last one in y. */
  int32_t along;           /* -1: none */
  int64_t rows;            /* products of the dims that are walked by index */
  int64_t row;             /* length of the last dim */
  int64_t block, elements; /* rows of a block */
} plan;

typedef struct job {
  const plan *p;
  const weir_args *args;
} job;

/* Drops dims of 1 and joins neighbours that x walks as one. */
static void add_dim(plan *p, int64_t dim, int64_t stride) {
  if (dim == 1) return;
  int32_t last = p->rank - 1;
  if (last >= 0 && p->x_strides[last] == dim * stride) {
    p->dims[last] *= dim;
    p->x_strides[last] = stride;
    return;
  }
  p->dims[p->rank] = dim;
  p->x_strides[p->rank++] = stride;
}

static void strides_of(const weir_operand *x, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t d = x->rank - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= x->dims[d];
  }
}

static void walk_transpose(const weir_call *call, plan *p) {
  const weir_operand *x = &call->in[0];
  const weir_attr *perm = weir_call_attr(call, "perm");
  int64_t strides[WEIR_MAX_RANK];
  strides_of(x, strides);
  for (int32_t d = 0; d < x->rank; d++) {
    int64_t from =
        perm->kind == WEIR_ATTR_NONE ? x->rank - 1 - d : perm->dims[d].value;
    if (from < 0) from += x->rank;
    add_dim(p, x->dims[from], strides[from]);
  }
}

static void walk_slice(const weir_call *call, plan *p) {
  const weir_operand *x = &call->in[0];
  weir_slice slices[WEIR_MAX_RANK];
  int64_t strides[WEIR_MAX_RANK];
  strides_of(x, strides);
  weir_call_slice(call, x->rank, x->dims, slices);
  for (int32_t d = 0; d < x->rank; d++) {
    p->at += slices[d].start * strides[d];
    /* Of one element no step is taken, and a huge one would overflow. */
    int64_t step = slices[d].length == 1 ? 0 : slices[d].step * strides[d];
    add_dim(p, slices[d].length, step);
  }
}

static void walk_expand(const weir_call *call, plan *p) {
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  int64_t strides[WEIR_MAX_RANK];
  strides_of(x, strides);
  for (int32_t d = 0; d < y->rank; d++) {
    int32_t from = d - (y->rank - x->rank);
    bool repeated = from < 0 || x->dims[from] == 1;
    add_dim(p, y->dims[d], repeated ? 0 : strides[from]);
  }
}

static void plan_finish(plan *p, const weir_call *call) {
  const weir_operand *y = &call->out[0];
  p->isa = weir_isa_of(call);
  p->size = weir_dtype_size(y->dtype);
  p->elements = y->elements;
  if (p->rank == 0) add_dim(p, 1, 1);
  if (p->rank == 0) {
    p->dims[0] = 1;
    p->x_strides[0] = 1;
    p->rank = 1;
  }
  int64_t stride = 1;
  for (int32_t d = p->rank - 1; d >= 0; d--) {
    p->y_strides[d] = stride;
    stride *= p->dims[d];
  }
  assert(p->rank > 0 && stride == p->elements);
  p->row = p->dims[p->rank - 1];
  p->along = -1;
  if (p->size == 4 && p->x_strides[p->rank - 1] != 1 && p->row > 1)
    for (int32_t d = 0; d < p->rank - 1; d++)
      if (p->x_strides[d] == 1) p->along = d;
  p->rows = 1;
  for (int32_t d = 0; d < p->rank - 1; d++)
    if (d != p->along) p->rows *= p->dims[d];
  int64_t width = p->row * (p->along >= 0 ? p->dims[p->along] : 1);
  p->block = BLOCK_BYTES / (width * (int64_t)p->size) + 1;
  if (p->elements * (int64_t)p->size <= 2 * BLOCK_BYTES) p->block = p->rows;
}

/* One row, |stride| elements apart in x. */
static void copy_row(char *y, const char *x, int64_t n, int64_t stride,
                     size_t size) {
  if (stride == 1) {
    memcpy(y, x, (size_t)n * size);
  } else if (size == 4) {
    const uint32_t *from = (const uint32_t *)(const void *)x;
    uint32_t *to = (uint32_t *)(void *)y;
    for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
  } else if (size == 8) {
    const uint64_t *from = (const uint64_t *)(const void *)x;
    uint64_t *to = (uint64_t *)(void *)y;
    for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
  } else {
    for (int64_t i = 0; i < n; i++) y[i] = x[i * stride];
  }
}

static void move_row(const plan *p, const weir_args *args, int64_t r) {
  int64_t x_at = p->at, y_at = 0;
  for (int32_t d = p->rank - 2; d >= 0; d--) {
    if (d == p->along) continue;
    int64_t i = r % p->dims[d];
    r /= p->dims[d];
    x_at += i * p->x_strides[d];
    y_at += i * p->y_strides[d];
  }
  const char *x = (const char *)args->io[0] + x_at * (int64_t)p->size;
  char *y = (char *)args->io[1] + y_at * (int64_t)p->size;
  if (p->along < 0)
    copy_row(y, x, p->row, p->x_strides[p->rank - 1], p->size);
  else
    p->isa->rows->transpose((float *)(void *)y, p->y_strides[p->along],
                            (const float *)(const void *)x,
                            p->x_strides[p->rank - 1], p->row,
                            p->dims[p->along]);
}

static void block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const plan *p = j->p;
  int64_t end = (b + 1) * p->block < p->rows ? (b + 1) * p->block : p->rows;
  (void)worker;
  for (int64_t r = b * p->block; r < end; r++) move_row(p, j->args, r);
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  job j = {p, args};
  if (p->elements > 0)
    weir_parallel_for(args, (p->rows + p->block - 1) / p->block, block, &j);
  return WEIR_OK;
}

static weir_status prepare(const weir_call *call,
                           void (*walk)(const weir_call *, plan *),
                           weir_prepared *out, weir_error *err) {
  plan *p = weir_arena_array(out->arena, 1, sizeof *p);
  if (!p) return weir_fail_memory(err, sizeof *p);
  out->state = p;
  if (call->out[0].elements == 0) return WEIR_OK;
  walk(call, p);
  plan_finish(p, call);
  out->algorithm = p->along >= 0                    ? "squares transposed"
                   : p->x_strides[p->rank - 1] == 1 ? "rows copied"
                                                    : "element by element";
  return WEIR_OK;
}

#define MOVE(op_name)                                                         \
  static weir_status prepare_##op_name(const weir_call *call,                 \
                                       weir_prepared *out, weir_error *err) { \
    return prepare(call, walk_##op_name, out, err);                           \
  }                                                                           \
  const weir_kernel_def weir_kernel_cpu_##op_name = {                         \
      .op = #op_name,                                                         \
      .name = "cpu." #op_name,                                                \
      .device = WEIR_CPU,                                                     \
      .types = WEIR_ALL_TYPES,                                                \
      .prepare = prepare_##op_name,                                           \
      .run = run};

MOVE(transpose)
MOVE(slice)
MOVE(expand)
