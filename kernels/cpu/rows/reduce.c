/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of f32. The dims are seen as kept and reduced ones in turn, those
 * that lie together joined. A reduced last dim is joined row by row to a
 * number, a kept one column by column. Work is cut by outputs; a reduction to
 * one number is cut into slices, joined in order. All edges follow from the
 * shape.
 *
 * Precision: a row goes to f64 after each chunk (isa.h). Columns stay in f32;
 * ROWS of them are joined to a part first and the parts then to y, so the error
 * grows with ROWS + reduced / ROWS and not with the number of rows.
 * Cost: one pass over x. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/kernel.h"
#include "kernels/registry.h"

enum {
  COLUMNS = 512, /* of a tile: 2 KiB, in the first cache with its part */
  ROWS = 64,     /* of a part of a column's sum */
  SLICE = 65536, /* elements of a reduction to one number */
  BLOCK = 32768  /* elements, at least, that are handed to a thread */
};

typedef enum reduce_kind { SUM, MEAN, MAX, MIN, PROD } reduce_kind;

typedef struct plan {
  const weir_isa *isa;
  reduce_kind kind;
  /* Kept and reduced dims that are walked by index; the last dim, which is
   * walked by vectors, is in neither. */
  int32_t kept_rank, reduced_rank;
  int64_t kept_dims[WEIR_MAX_RANK], kept_strides[WEIR_MAX_RANK];
  int64_t reduced_dims[WEIR_MAX_RANK], reduced_strides[WEIR_MAX_RANK];
  int64_t kept, reduced; /* products of the above */
  bool by_rows;          /* the last dim is reduced */
  int64_t last;          /* its length */
  int64_t channels;      /* of an image in blocks of |last|; 0: in rows */
  int64_t total;         /* elements joined for one output */
  int64_t block;         /* outputs (rows), or column tiles, of a block */
  int64_t blocks, slices;
} plan;

typedef struct job {
  const plan *p;
  const weir_args *args;
} job;

static unsigned axes_of(const weir_call *call) {
  const weir_attr *axis = weir_call_attr(call, "axis");
  int32_t rank = call->in[0].rank;
  unsigned axes = 0;
  if (axis->kind == WEIR_ATTR_NONE) return (1u << rank) - 1;
  for (uint32_t i = 0; i < axis->count; i++) {
    int64_t d = axis->dims[i].value;
    axes |= 1u << (d < 0 ? d + rank : d);
  }
  return axes;
}

/* Dims joined where neighbours are of one kind; |reduced|: bit per dim. */
static int32_t join_dims(const weir_operand *x, unsigned axes, int64_t *dims,
                         bool *reduced) {
  int32_t n = 0;
  for (int32_t d = 0; d < x->rank; d++) {
    bool r = (axes >> d & 1) != 0;
    if (x->dims[d] == 1) continue;
    if (n > 0 && reduced[n - 1] == r) {
      dims[n - 1] *= x->dims[d];
    } else {
      dims[n] = x->dims[d];
      reduced[n++] = r;
    }
  }
  return n;
}

/* Blocks of channels are [n, c / lanes, pixels, lanes], joined over the pixels:
 * what is left is [n, c] in rows; |c| is rounded up. */
static int32_t blocked_dims(const weir_operand *x, int lanes, int64_t *dims,
                            bool *reduced) {
  dims[0] = x->dims[0] * weir_layout_padded(x->dims[1], lanes) / lanes;
  dims[1] = x->dims[2] * x->dims[3];
  dims[2] = lanes;
  reduced[0] = reduced[2] = false;
  reduced[1] = true;
  return 3;
}

static void cut(plan *p) {
  int64_t per_output = p->total * (p->by_rows ? 1 : COLUMNS);
  p->block = per_output >= BLOCK ? 1 : BLOCK / per_output;
  int64_t outputs =
      p->by_rows ? p->kept : p->kept * ((p->last + COLUMNS - 1) / COLUMNS);
  p->slices = 1;
  p->blocks = (outputs + p->block - 1) / p->block;
  if (p->by_rows && p->kept == 1 && p->reduced == 1 && p->last > 2 * SLICE) {
    p->slices = (p->last + SLICE - 1) / SLICE;
    p->blocks = p->slices;
  }
}

static void plan_init(plan *p, const weir_call *call, reduce_kind kind) {
  int64_t dims[WEIR_MAX_RANK + 1];
  bool reduced[WEIR_MAX_RANK + 1];
  *p = (plan){.isa = weir_isa_of(call), .kind = kind, .kept = 1, .reduced = 1};
  int lanes = weir_layout_channels(call->in[0].layout);
  if (lanes > 0) p->channels = call->in[0].dims[1];
  int32_t n = lanes > 0 ? blocked_dims(&call->in[0], lanes, dims, reduced)
                        : join_dims(&call->in[0], axes_of(call), dims, reduced);
  if (n == 0) {
    dims[0] = 1;
    reduced[n++] = true;
  }
  p->last = dims[n - 1];
  p->by_rows = reduced[n - 1];
  int64_t strides[WEIR_MAX_RANK + 1], stride = 1;
  for (int32_t d = n - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= dims[d];
  }
  for (int32_t d = 0; d < n - 1; d++) {
    if (reduced[d]) {
      p->reduced_dims[p->reduced_rank] = dims[d];
      p->reduced_strides[p->reduced_rank++] = strides[d];
      p->reduced *= dims[d];
    } else {
      p->kept_dims[p->kept_rank] = dims[d];
      p->kept_strides[p->kept_rank++] = strides[d];
      p->kept *= dims[d];
    }
  }
  p->total = p->reduced * (p->by_rows ? p->last : 1);
  assert(p->kept > 0 && p->total > 0); /* |accepts| wants elements */
  cut(p);
}

/* Where the i-th combination of the dims stands, counted row-major. */
static int64_t offset(int64_t i, int32_t rank, const int64_t *dims,
                      const int64_t *strides) {
  int64_t at = 0;
  for (int32_t d = rank - 1; d >= 0; d--) {
    at += i % dims[d] * strides[d];
    i /= dims[d];
  }
  return at;
}

static double start_of(reduce_kind kind) {
  switch (kind) {
    case MAX:
      return -INFINITY;
    case MIN:
      return INFINITY;
    case PROD:
      return 1;
    default:
      return 0;
  }
}

static double row_of(const plan *p, const float *x, int64_t n) {
  switch (p->kind) {
    case MAX:
      return p->isa->rows->max(x, n);
    case MIN:
      return p->isa->rows->min(x, n);
    case PROD:
      return p->isa->rows->prod(x, n);
    default:
      return p->isa->rows->sum(x, n);
  }
}

/* NaN stays and wins: |a| is kept unless |b| is larger, and no number is larger
 * than a NaN. */
static double join(reduce_kind kind, double a, double b) {
  switch (kind) {
    case MAX:
      return b > a || isnan(b) ? b : a;
    case MIN:
      return b < a || isnan(b) ? b : a;
    case PROD:
      return a * b;
    default:
      return a + b;
  }
}

static void join_columns(const plan *p, float *acc, const float *x, int64_t n) {
  const weir_rows *rows = p->isa->rows;
  void (*fn)(float *, const float *, int64_t) = p->kind == MAX   ? rows->max_to
                                                : p->kind == MIN ? rows->min_to
                                                : p->kind == PROD
                                                    ? rows->prod_to
                                                    : rows->sum_to;
  fn(acc, x, n);
}

static float finish(const plan *p, double value) {
  return (float)(p->kind == MEAN ? value / (double)p->total : value);
}

static void rows_block(void *arg, int64_t block, int worker) {
  const job *j = arg;
  const plan *p = j->p;
  const float *x = j->args->io[0];
  float *y = j->args->io[1];
  int64_t end =
      (block + 1) * p->block < p->kept ? (block + 1) * p->block : p->kept;
  (void)worker;
  for (int64_t k = block * p->block; k < end; k++) {
    const float *from =
        x + offset(k, p->kept_rank, p->kept_dims, p->kept_strides);
    double value = start_of(p->kind);
    for (int64_t r = 0; r < p->reduced; r++)
      value = join(p->kind, value,
                   row_of(p,
                          from + offset(r, p->reduced_rank, p->reduced_dims,
                                        p->reduced_strides),
                          p->last));
    y[k] = finish(p, value);
  }
}

static void slice_block(void *arg, int64_t slice, int worker) {
  const job *j = arg;
  const plan *p = j->p;
  int64_t at = slice * SLICE, n = p->last - at < SLICE ? p->last - at : SLICE;
  double *partial = j->args->scratch;
  (void)worker;
  partial[slice] = row_of(p, (const float *)j->args->io[0] + at, n);
}

/* One tile of columns: ROWS rows are joined to a part, the parts to y. */
static void column_tile(const plan *p, const float *x, float *y, int64_t n) {
  float part[COLUMNS];
  float start = (float)start_of(p->kind);
  for (int64_t i = 0; i < n; i++) y[i] = start;
  for (int64_t r0 = 0; r0 < p->reduced; r0 += ROWS) {
    int64_t r1 = r0 + ROWS < p->reduced ? r0 + ROWS : p->reduced;
    memcpy(part,
           x + offset(r0, p->reduced_rank, p->reduced_dims, p->reduced_strides),
           (size_t)n * sizeof(float));
    for (int64_t r = r0 + 1; r < r1; r++)
      join_columns(
          p, part,
          x + offset(r, p->reduced_rank, p->reduced_dims, p->reduced_strides),
          n);
    join_columns(p, y, part, n);
  }
  if (p->kind == MEAN)
    for (int64_t i = 0; i < n; i++) y[i] = finish(p, (double)y[i]);
}

/* Where the outputs of combination |k| of the kept dims begin, and how many
 * they are: of the last block of channels only those that are there. */
static int64_t columns_at(const plan *p, int64_t k, int64_t *count) {
  *count = p->last;
  if (p->channels == 0) return k * p->last;
  int64_t blocks = (p->channels + p->last - 1) / p->last;
  int64_t c = k % blocks * p->last;
  if (*count > p->channels - c) *count = p->channels - c;
  return k / blocks * p->channels + c;
}

static void columns_block(void *arg, int64_t block, int worker) {
  const job *j = arg;
  const plan *p = j->p;
  int64_t tiles = (p->last + COLUMNS - 1) / COLUMNS, count = p->kept * tiles;
  int64_t end = (block + 1) * p->block < count ? (block + 1) * p->block : count;
  (void)worker;
  for (int64_t t = block * p->block; t < end; t++) {
    int64_t k = t / tiles, c = t % tiles * COLUMNS, columns;
    float *y = (float *)j->args->io[1] + columns_at(p, k, &columns) + c;
    const float *x = (const float *)j->args->io[0] + c +
                     offset(k, p->kept_rank, p->kept_dims, p->kept_strides);
    column_tile(p, x, y, columns - c < COLUMNS ? columns - c : COLUMNS);
  }
}

static bool accepts(const weir_call *call, weir_why *why) {
  weir_layout x = call->in[0].layout;
  if (call->out[0].layout != WEIR_LAYOUT_PLAIN || x == WEIR_LAYOUT_N16)
    return weir_no(why, "wants rows, or blocks of channels in");
  if (x != WEIR_LAYOUT_PLAIN && axes_of(call) != (1u << 2 | 1u << 3))
    return weir_no(why, "blocks of channels, but not over pixels alone");
  if (call->in[0].elements > 0) return true;
  return weir_no(why, "no elements");
}

static weir_status prepare(const weir_call *call, reduce_kind kind,
                           weir_prepared *out, weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (!p) return weir_fail_memory(err, sizeof *p);
  plan_init(p, call, kind);
  out->state = p;
  out->scratch_bytes = p->slices > 1 ? (size_t)p->slices * sizeof(double) : 0;
  out->algorithm = p->slices > 1 ? "slices, joined in order"
                   : p->by_rows  ? "rows"
                                 : "columns";
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  job j = {p, args};
  if (p->slices == 1) {
    weir_parallel_for(args, p->blocks, p->by_rows ? rows_block : columns_block,
                      &j);
    return WEIR_OK;
  }
  weir_parallel_for(args, p->blocks, slice_block, &j);
  const double *partial = args->scratch;
  double value = partial[0];
  for (int64_t s = 1; s < p->slices; s++)
    value = join(p->kind, value, partial[s]);
  *(float *)args->io[1] = finish(p, value);
  return WEIR_OK;
}

#define REDUCE(op_name, kind)                                                 \
  static weir_status prepare_##op_name(const weir_call *call,                 \
                                       weir_prepared *out, weir_error *err) { \
    return prepare(call, kind, out, err);                                     \
  }                                                                           \
  const weir_kernel_def weir_kernel_cpu_##op_name = {                         \
      .op = #op_name,                                                         \
      .name = "cpu." #op_name,                                                \
      .device = WEIR_CPU,                                                     \
      .types = WEIR_F32,                                                      \
      .accepts = accepts,                                                     \
      .layouts = true,                                                        \
      .prepare = prepare_##op_name,                                           \
      .run = run};

REDUCE(reduce_sum, SUM)
REDUCE(reduce_mean, MEAN)
REDUCE(reduce_max, MAX)
REDUCE(reduce_min, MIN)
REDUCE(reduce_prod, PROD)
