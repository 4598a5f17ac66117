/* SPDX-License-Identifier: Apache-2.0 */
/* einsum as one product of matrices.
 *
 * Every index belongs to one of five sets: in both operands and the result
 * (batch), in a and the result (rows), in b and the result (columns), in both
 * operands alone (summed), in one operand alone (lone). Where the operands lie
 * as the product can read them, it does. Else up to five launches come around
 * it: each operand is summed over its lone indices and put into the order
 * batch, rows, summed or batch, summed, columns; and the result is put into its
 * own order. An operand that is in such an order, or has the last two sets the
 * other way around, stays. One operand alone is summed and turned. */
#include "kernels/cpu/gemm/einsum_shape.h"
#include "kernels/gpu/move/move.h"
#include "kernels/gpu/nn/strided.h"
#include "kernels/gpu/rows/reduce.h"
#include "kernels/registry.h"
#include "ops/nn/einsum_equation.h"

enum {
  kAlign = 256,
  kMostBatches = 65535 /* of matrices that may have one element */
};

/* The indices of a tensor's dimensions, outer ones first. */
typedef struct axes {
  int32_t rank;
  int index[WEIR_MAX_RANK];
  int64_t dims[WEIR_MAX_RANK];
} axes;

/* How an operand gets to where it is read: by a sum and a copy, or neither. */
typedef struct side {
  bool summed, moved;
  weir_gpu_reduce sum;
  weir_gpu_move move;
  size_t sum_at, parts_at, move_at; /* in scratch */
} side;

typedef struct plan {
  uint32_t y;   /* the result's place among the operands */
  size_t bytes; /* of the result; 0: it is all zeros, or has no element */
  bool swapped;
  weir_fill_args zeros; /* an operand has no element */
  side sides[2];
  bool multiplies, turned;
  weir_gpu_strided product;
  weir_gpu_move turn; /* of the product */
  size_t product_at, workspace_at;
} plan;

static axes axes_of(const weir_einsum *e, int part, const weir_operand *x) {
  axes a = {.rank = e->rank[part]};
  for (int32_t d = 0; d < a.rank; d++) {
    a.index[d] = e->index[part][d];
    a.dims[d] = x->dims[d];
  }
  return a;
}

/* Appends those of |x| that are in |mask|, in x's order. */
static void take(axes *to, const axes *x, uint32_t mask) {
  for (int32_t d = 0; d < x->rank; d++) {
    if ((mask >> x->index[d] & 1) == 0) continue;
    to->index[to->rank] = x->index[d];
    to->dims[to->rank++] = x->dims[d];
  }
}

static int64_t size_of(const axes *x, uint32_t mask) {
  int64_t n = 1;
  for (int32_t d = 0; d < x->rank; d++)
    if (mask >> x->index[d] & 1) n *= x->dims[d];
  return n;
}

/* Whether both lie the same way; dimensions of one element do not count. */
static bool same_order(const axes *a, const axes *b) {
  int32_t i = 0, j = 0;
  for (;;) {
    while (i < a->rank && a->dims[i] == 1) i++;
    while (j < b->rank && b->dims[j] == 1) j++;
    if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
    if (a->index[i++] != b->index[j++]) return false;
  }
}

/* The copy that puts what lies like |from| into the order of |to|. */
static void plan_turn(const axes *from, const axes *to, size_t size,
                      weir_gpu_move *out) {
  weir_gpu_view v = {.size = size};
  int64_t src[WEIR_EINSUM_INDICES] = {0}, dst[WEIR_MAX_RANK], step = 1;
  for (int32_t d = from->rank - 1; d >= 0; d--) {
    src[from->index[d]] = step;
    step *= from->dims[d];
  }
  step = 1;
  for (int32_t d = to->rank - 1; d >= 0; d--) {
    dst[d] = step;
    step *= to->dims[d];
  }
  for (int32_t d = 0; d < to->rank; d++)
    weir_gpu_view_add(&v, to->dims[d], src[to->index[d]], dst[d]);
  weir_gpu_move_plan(&v, out);
}

static size_t take_bytes(weir_prepared *out, size_t bytes) {
  size_t at = (out->scratch_bytes + kAlign - 1) / kAlign * kAlign;
  out->scratch_bytes = at + bytes;
  return at;
}

/* Sums |x| over |lone|, and turns it unless it is in one of the orders. False:
 * it lies in the second one. */
static bool plan_side(axes *x, weir_dtype dtype, uint32_t lone,
                      const axes *first, const axes *second, side *s,
                      weir_prepared *out) {
  axes rest = {0};
  size_t size = weir_dtype_size(dtype);
  weir_gpu_reduced r = {0};
  take(&rest, x, ~lone);
  s->summed = size_of(x, lone) > 1;
  for (int32_t d = 0; d < x->rank && s->summed; d++)
    weir_gpu_reduced_add(&r, x->dims[d], (lone >> x->index[d] & 1) != 0);
  size_t bytes = (size_t)size_of(&rest, UINT32_MAX) * size;
  if (s->summed) {
    weir_gpu_reduce_plan(&r, dtype, WEIR_REDUCE_SUM, false, &s->sum);
    s->sum_at = take_bytes(out, bytes);
    s->parts_at = take_bytes(out, s->sum.scratch_bytes);
  }
  if (second != NULL && !same_order(&rest, first) && same_order(&rest, second))
    return false;
  s->moved = !same_order(&rest, first);
  if (s->moved) {
    plan_turn(&rest, first, size, &s->move);
    s->move_at = take_bytes(out, bytes);
  }
  return true;
}

/* The product of a and b in such orders, with one batch; by rows: the last set
 * of the first order is the last in memory. */
static weir_gemm_shape shape_of(weir_dtype dtype, int64_t batches, int64_t m,
                                int64_t n, int64_t k, bool a_by_rows,
                                bool b_by_rows) {
  return (weir_gemm_shape){.dtype = dtype,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a_row = a_by_rows ? k : 1,
                           .a_k = a_by_rows ? 1 : m,
                           .b_k = b_by_rows ? n : 1,
                           .b_column = b_by_rows ? 1 : k,
                           .batch_rank = 1,
                           .batches = batches,
                           .batch_dims = {batches},
                           .a_batch = {m * k},
                           .b_batch = {k * n}};
}

/* Whether the first index of the result that is one operand's is b's. */
static bool is_swapped(const weir_einsum *e, uint32_t a, uint32_t b) {
  for (int d = 0; d < e->rank[2]; d++)
    if ((a ^ b) >> e->index[2][d] & 1) return b >> e->index[2][d] & 1;
  return false;
}

/* The operands as a and b, and the sets of indices. */
typedef struct parts {
  weir_einsum e;
  weir_dtype dtype;
  bool swapped;
  axes a, b, y;
  uint32_t batch, rows, columns, summed, lone_a, lone_b;
} parts;

static void read(const weir_call *call, parts *s) {
  *s = (parts){.dtype = call->in[0].dtype};
  weir_einsum_parse(weir_call_attr(call, "equation")->s, &s->e); /* it passed */
  uint32_t a = weir_einsum_indices(&s->e, 0);
  uint32_t y = weir_einsum_indices(&s->e, 2), b = a;
  bool two = s->e.operand_count == 2;
  if (two) b = weir_einsum_indices(&s->e, 1);
  s->swapped = two && is_swapped(&s->e, a, b);
  if (s->swapped) {
    uint32_t first = a;
    a = b;
    b = first;
  }
  s->a = axes_of(&s->e, s->swapped, &call->in[s->swapped]);
  if (two) s->b = axes_of(&s->e, !s->swapped, &call->in[!s->swapped]);
  s->y = axes_of(&s->e, 2, &call->out[0]);
  s->batch = a & b & y;
  s->rows = a & ~b & y;
  s->columns = b & ~a & y;
  s->summed = a & b & ~y;
  s->lone_a = (two ? a & ~b : a) & ~y;
  s->lone_b = b & ~a & ~y;
}

/* One product reads the operands as they lie. */
static bool is_direct(const weir_call *call, weir_gemm_shape *shape) {
  weir_why why;
  bool swapped;
  return weir_einsum_shape(call, shape, &swapped, &why) &&
         weir_gpu_strided_accepts(shape, &why);
}

static bool is_empty(const weir_call *call) {
  bool empty = call->out[0].elements == 0;
  for (uint32_t i = 0; i < call->in_count; i++)
    empty = empty ||
            (call->in[i].dtype != WEIR_DTYPE_NONE && call->in[i].elements == 0);
  return empty;
}

static bool accepts(const weir_call *call, weir_why *why) {
  weir_gemm_shape shape;
  parts s;
  read(call, &s);
  if (s.e.operand_count == 1 || is_empty(call) || is_direct(call, &shape))
    return true;
  int64_t batches = size_of(&s.a, s.batch);
  return batches <= kMostBatches ||
         weir_no(why, "%lld products in a batch, at most %d",
                 (long long)batches, kMostBatches);
}

/* Operands in order, then the product, in the result's order if it is one. */
static weir_status plan_product(const weir_call *call, parts *s, plan *p,
                                weir_prepared *out, weir_error *err) {
  axes first = {0}, second = {0}, got = {0};
  take(&first, &s->y, s->batch);
  second = first;
  take(&first, &s->y, s->rows);
  take(&first, &s->a, s->summed);
  take(&second, &s->a, s->summed);
  take(&second, &s->y, s->rows);
  bool a_by_rows =
      plan_side(&s->a, s->dtype, s->lone_a, &first, &second, &p->sides[0], out);
  first = second = (axes){0};
  take(&first, &s->y, s->batch);
  second = first;
  take(&first, &s->a, s->summed);
  take(&first, &s->y, s->columns);
  take(&second, &s->y, s->columns);
  take(&second, &s->a, s->summed);
  bool b_by_rows =
      plan_side(&s->b, s->dtype, s->lone_b, &first, &second, &p->sides[1], out);
  take(&got, &s->y, s->batch);
  take(&got, &s->y, s->rows);
  take(&got, &s->y, s->columns);
  p->turned = !same_order(&got, &s->y);
  if (p->turned) {
    size_t size = weir_dtype_size(s->dtype);
    plan_turn(&got, &s->y, size, &p->turn);
    p->product_at = take_bytes(out, (size_t)call->out[0].elements * size);
  }
  weir_gemm_shape shape =
      shape_of(s->dtype, size_of(&s->y, s->batch), size_of(&s->y, s->rows),
               size_of(&s->y, s->columns), size_of(&s->a, s->summed), a_by_rows,
               b_by_rows);
  return weir_gpu_strided_plan(out, &shape, WEIR_GEMM_NONE, &p->product, err);
}

static weir_status plan_all(const weir_call *call, plan *p, weir_prepared *out,
                            weir_error *err) {
  weir_gemm_shape shape;
  parts s;
  read(call, &s);
  p->swapped = s.swapped;
  if (is_empty(call)) {
    p->zeros = (weir_fill_args){.n = call->out[0].elements,
                                .size = (int32_t)weir_dtype_size(s.dtype)};
    return WEIR_OK;
  }
  p->bytes =
      (size_t)call->out[0].elements * weir_dtype_size(call->out[0].dtype);
  if (s.e.operand_count == 1) {
    plan_side(&s.a, s.dtype, s.lone_a, &s.y, NULL, &p->sides[0], out);
    return WEIR_OK;
  }
  p->multiplies = true;
  if (is_direct(call, &shape)) {
    WEIR_TRY(
        weir_gpu_strided_plan(out, &shape, WEIR_GEMM_NONE, &p->product, err));
    out->algorithm = WEIR_GPU_PRODUCT_WORDS(
        &p->product.product, "a product of the operands as they lie");
  } else {
    WEIR_TRY(plan_product(call, &s, p, out, err));
    out->algorithm = WEIR_GPU_PRODUCT_WORDS(
        &p->product.product, "a product of operands put in order");
  }
  p->workspace_at = take_bytes(out, p->product.product.workspace_bytes);
  return WEIR_OK;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (plan){.y = call->in_count};
  WEIR_TRY(plan_all(call, p, out, err));
  out->state = p;
  return WEIR_OK;
}

static void release(void *state) {
  plan *p = state;
  weir_gpu_strided_release(&p->product);
}

/* Puts |x| in order; |last| NULL: where the plan says, else there. */
static weir_status run_side(const weir_args *args, const side *s, void *last,
                            const void *x, const void **out) {
  char *scratch = args->scratch;
  *out = x;
  if (s->summed) {
    void *to = last != NULL && !s->moved ? last : scratch + s->sum_at;
    WEIR_TRY(weir_gpu_reduce_run(args, &s->sum, to, x, scratch + s->parts_at));
    *out = to;
  }
  if (!s->moved) return WEIR_OK;
  void *to = last != NULL ? last : scratch + s->move_at;
  WEIR_TRY(weir_gpu_move_run(args, &s->move, to, *out));
  *out = to;
  return WEIR_OK;
}

static weir_status run_one(const weir_args *args, const plan *p, void *y) {
  const side *s = &p->sides[0];
  const void *got;
  WEIR_TRY(run_side(args, s, y, args->io[0], &got));
  return got == y ? WEIR_OK : weir_gpu_copy(args, y, got, p->bytes);
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  char *scratch = args->scratch;
  weir_fill_args zeros = p->zeros;
  void *y = args->io[p->y];
  zeros.y = y;
  WEIR_TRY(weir_gpu_launch(args, WEIR_GPU_fill, weir_gpu_blocks(zeros.n),
                           &zeros, sizeof zeros));
  if (p->bytes == 0) return WEIR_OK;
  if (!p->multiplies) return run_one(args, p, y);
  weir_gpu_matrices m = {.d = p->turned ? scratch + p->product_at : y,
                         .workspace = scratch + p->workspace_at};
  WEIR_TRY(run_side(args, &p->sides[0], NULL, args->io[p->swapped], &m.a));
  WEIR_TRY(run_side(args, &p->sides[1], NULL, args->io[!p->swapped], &m.b));
  WEIR_TRY(weir_gpu_strided_run(args, &p->product, &m));
  return p->turned ? weir_gpu_move_run(args, &p->turn, y, m.d) : WEIR_OK;
}

const weir_kernel_def weir_kernel_gpu_einsum = {.op = "einsum",
                                                .name = "gpu.einsum",
                                                .device = WEIR_GPU,
                                                .types = WEIR_FLOATS,
                                                .accepts = accepts,
                                                .prepare = prepare,
                                                .release = release,
                                                .run = run};
