/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/heads.h"

#include <inttypes.h>
#include <math.h>

#include "ops/rules.h"
#include "runtime/base/size.h"

static weir_shape four(weir_dim a, weir_dim b, weir_dim c, weir_dim d) {
  weir_dim dims[] = {a, b, c, d};
  weir_shape shape = weir_shape_scalar();
  for (int i = 0; i < 4; i++) weir_shape_push(&shape, dims[i]);
  return shape;
}

/* Input |i| as [batch, heads, tokens, width]; its rank is known. |heads|: of
 * the form [batch, tokens, heads * width], else 0. */
static weir_status read_form(weir_shape_ctx *ctx, uint32_t i, const char *name,
                             int64_t heads, weir_shape *out) {
  const weir_shape *x = weir_shape_in(ctx, i);
  *out = *x;
  if (x->rank == 4) return WEIR_OK;
  weir_dim wide = x->dims[2], width;
  if (!weir_dim_known(wide)) {
    width = weir_shape_new_dim(ctx);
  } else if (wide.value % heads != 0) {
    return weir_shape_fail(ctx, WEIR_W2010,
                           "%s is %s, its last dimension is not a multiple of "
                           "%" PRId64 " heads",
                           name, weir_shape_text(ctx, x), heads);
  } else {
    width = weir_dim_of(wide.value / heads);
  }
  *out = four(x->dims[0], weir_dim_of(heads), x->dims[1], width);
  return WEIR_OK;
}

/* The numbers of heads that a form of rank |rank| needs, or refuses. */
static weir_status read_heads(weir_shape_ctx *ctx, int rank, int64_t *q,
                              int64_t *kv) {
  *q = weir_rule_int(ctx, "q_num_heads");
  *kv = weir_rule_int(ctx, "kv_num_heads");
  if (*q < 0 || *kv < 0)
    return weir_shape_fail(ctx, WEIR_W2007, "%" PRId64 " heads, expected more",
                           *q < 0 ? *q : *kv);
  if (rank == 4 && (*q != 0 || *kv != 0))
    return weir_shape_fail(
        ctx, WEIR_W2007,
        "%s is given, but q is %s, which has a dimension of heads",
        *q != 0 ? "q_num_heads" : "kv_num_heads",
        weir_shape_text(ctx, weir_shape_in(ctx, 0)));
  if (rank == 3 && *q == 0)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "q is %s, so q_num_heads must say how many heads "
                           "lie in its last dimension",
                           weir_shape_text(ctx, weir_shape_in(ctx, 0)));
  if (*kv == 0) *kv = *q;
  return WEIR_OK;
}

/* Dimension |d| of |a| and of |b|, which |is| names, must be one. */
static weir_status same(weir_shape_ctx *ctx, weir_shape *a, weir_shape *b,
                        int d, const char *is) {
  weir_dim dim;
  if (!weir_dim_unify(a->dims[d], b->dims[d], &dim))
    return weir_shape_fail(ctx, WEIR_W2010, "%s differ, %s and %s", is,
                           weir_dim_text(ctx, a->dims[d]),
                           weir_dim_text(ctx, b->dims[d]));
  a->dims[d] = b->dims[d] = dim;
  return WEIR_OK;
}

static weir_status check_heads(weir_shape_ctx *ctx, weir_head_shapes *s) {
  weir_dim q = s->q.dims[1], kv = s->k.dims[1];
  WEIR_TRY(same(ctx, &s->q, &s->k, 0, "the batches of q and k"));
  WEIR_TRY(same(ctx, &s->k, &s->v, 0, "the batches of k and v"));
  WEIR_TRY(same(ctx, &s->k, &s->v, 1, "the heads of k and v"));
  WEIR_TRY(same(ctx, &s->k, &s->v, 2, "the tokens of k and v"));
  WEIR_TRY(same(ctx, &s->q, &s->k, 3, "the widths of q's and k's heads"));
  if (weir_dim_known(q) && weir_dim_known(kv) && q.value != kv.value &&
      (kv.value == 0 || q.value % kv.value != 0))
    return weir_shape_fail(ctx, WEIR_W2010,
                           "%" PRId64 " heads of q cannot share %" PRId64
                           " heads of k and v",
                           q.value, kv.value);
  return WEIR_OK;
}

/* A mask is added, of q's dtype, or says by bools which keys count. */
static weir_status check_mask(weir_shape_ctx *ctx, uint32_t i,
                              const weir_head_shapes *s) {
  weir_shape both;
  if (weir_rule_has(ctx, i)) {
    weir_dtype t = weir_shape_in_dtype(ctx, i);
    if (t != WEIR_BOOL && t != weir_shape_in_dtype(ctx, 0))
      return weir_shape_fail(ctx, WEIR_W2005, "mask is %s, must be bool or %s",
                             weir_dtype_name(t),
                             weir_dtype_name(weir_shape_in_dtype(ctx, 0)));
    WEIR_TRY(weir_rule_rank(ctx, i, "mask", 0, 4));
    WEIR_TRY(
        weir_rule_broadcast(ctx, &s->scores, weir_shape_in(ctx, i), &both));
    for (int d = 0; d < both.rank; d++)
      if (weir_dim_is(s->scores.dims[d], 1) && !weir_dim_is(both.dims[d], 1) &&
          weir_dim_known(both.dims[d]))
        return weir_shape_fail(ctx, WEIR_W2011,
                               "mask is %s, more than the scores, %s",
                               weir_shape_text(ctx, weir_shape_in(ctx, i)),
                               weir_shape_text(ctx, &s->scores));
  }
  if (weir_rule_has(ctx, i + 1)) {
    const weir_shape *lengths = weir_shape_in(ctx, i + 1);
    WEIR_TRY(weir_rule_rank(ctx, i + 1, "lengths", 0, 1));
    if (lengths->rank == 1 && !weir_dim_is(lengths->dims[0], 1) &&
        !weir_dim_unify(lengths->dims[0], s->q.dims[0], &both.dims[0]))
      return weir_shape_fail(ctx, WEIR_W2010, "lengths is %s, the batch is %s",
                             weir_shape_text(ctx, lengths),
                             weir_dim_text(ctx, s->q.dims[0]));
  }
  return WEIR_OK;
}

static weir_status check_attrs(weir_shape_ctx *ctx) {
  const weir_attr *scale = weir_shape_attr(ctx, "scale");
  int64_t window = weir_rule_int(ctx, "window");
  if (scale->kind != WEIR_ATTR_NONE)
    WEIR_TRY(weir_rule_finite(ctx, "scale", false));
  if (window < 0)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "window is %" PRId64 ", expected 0 or more", window);
  return WEIR_OK;
}

static weir_dim product(weir_shape_ctx *ctx, weir_dim a, weir_dim b) {
  int64_t wide;
  if (weir_dim_known(a) && weir_dim_known(b) &&
      weir_dim_mul_checked(a.value, b.value, &wide))
    return weir_dim_of(wide);
  return weir_shape_new_dim(ctx);
}

weir_status weir_rule_heads(weir_shape_ctx *ctx, uint32_t mask,
                            weir_head_shapes *out) {
  static const char *const kNames[] = {"q", "k", "v"};
  weir_shape *shapes[] = {&out->q, &out->k, &out->v};
  int64_t heads[3];
  out->y = out->lse = out->scores = weir_shape_unknown();
  out->q = out->k = out->v = weir_shape_unknown();
  WEIR_TRY(check_attrs(ctx));
  int rank = weir_shape_in(ctx, 0)->rank;
  for (uint32_t i = 0; i < 3; i++)
    WEIR_TRY(weir_rule_rank(ctx, i, kNames[i], 3, 4));
  for (uint32_t i = 0; i < 3; i++) {
    int other = weir_shape_in(ctx, i)->rank;
    if (other < 0 || rank < 0) return WEIR_OK;
    if (other != rank)
      return weir_shape_fail(ctx, WEIR_W2004, "%s has rank %d, q %d", kNames[i],
                             other, rank);
  }
  WEIR_TRY(read_heads(ctx, rank, &heads[0], &heads[1]));
  heads[2] = heads[1];
  for (uint32_t i = 0; i < 3; i++)
    WEIR_TRY(read_form(ctx, i, kNames[i], heads[i], shapes[i]));
  WEIR_TRY(check_heads(ctx, out));
  weir_dim *q = out->q.dims, deep = out->v.dims[3];
  out->y = four(q[0], q[1], q[2], deep);
  out->scores = four(q[0], q[1], q[2], out->k.dims[2]);
  out->lse = out->y;
  out->lse.rank = 3;
  if (rank == 3) {
    out->y.rank = 3;
    out->y.dims[1] = q[2];
    out->y.dims[2] = product(ctx, q[1], deep);
  }
  return check_mask(ctx, mask, out);
}

/* ---- Known calls */

static weir_head_strides strides_of(const weir_operand *x, int64_t heads,
                                    int64_t tokens, int64_t width) {
  weir_head_strides s = {.batch = heads * tokens * width};
  s.head = x->rank == 4 ? tokens * width : width;
  s.row = x->rank == 4 ? width : heads * width;
  return s;
}

void weir_heads_of(const weir_call *call, weir_heads *out) {
  const weir_operand *q = &call->in[0], *k = &call->in[1], *v = &call->in[2];
  const weir_attr *scale = weir_call_attr(call, "scale");
  int64_t kv = weir_call_attr(call, "kv_num_heads")->i;
  bool flat = q->rank == 3;
  out->batch = q->dims[0];
  out->q_heads = flat ? weir_call_attr(call, "q_num_heads")->i : q->dims[1];
  out->kv_heads = flat ? (kv > 0 ? kv : out->q_heads) : k->dims[1];
  out->queries = q->dims[flat ? 1 : 2];
  out->keys = k->dims[flat ? 1 : 2];
  out->width = flat ? q->dims[2] / out->q_heads : q->dims[3];
  out->depth = flat ? v->dims[2] / out->kv_heads : v->dims[3];
  out->group = out->kv_heads > 0 ? out->q_heads / out->kv_heads : 1;
  out->scale = scale->kind == WEIR_ATTR_NONE
                   ? (out->width > 0 ? 1 / sqrt((double)out->width) : 1)
                   : scale->f;
  out->causal = weir_call_attr(call, "is_causal")->b;
  out->window = weir_call_attr(call, "window")->i;
  out->q = strides_of(q, out->q_heads, out->queries, out->width);
  out->k = strides_of(k, out->kv_heads, out->keys, out->width);
  out->v = strides_of(v, out->kv_heads, out->keys, out->depth);
  out->y = strides_of(q, out->q_heads, out->queries, out->depth);
}

weir_mask_strides weir_mask_strides_of(const weir_operand *mask) {
  int64_t strides[4] = {0}, stride = 1;
  for (int d = mask->rank; d-- > 0;) {
    strides[4 - mask->rank + d] = mask->dims[d] > 1 ? stride : 0;
    stride *= mask->dims[d];
  }
  return (weir_mask_strides){strides[0], strides[1], strides[2], strides[3]};
}
