/* SPDX-License-Identifier: Apache-2.0 */
/* Uses of a host's op: shapes, costs and calls in the structs of weir.h.
 *
 * The views of inputs, outputs and attributes are made on the stack for a shape
 * and a cost. For runs they are made once, by prepare, and copied to the run's
 * scratch memory, where its pointers are set: several runs of one use may be
 * under way at once. */
#include "runtime/api/op/op_use.h"

#include <string.h>

#include "ops/cost.h"
#include "ops/rules.h"
#include "ops/shape_ctx.h"
#include "runtime/api/op/op_set.h"

_Static_assert(sizeof(weir_op_dim) == sizeof(weir_dim) &&
                   offsetof(weir_op_dim, symbol) ==
                       offsetof(weir_dim, symbol) &&
                   offsetof(weir_op_dim, name) == offsetof(weir_dim, name),
               "a weir_op_dim is a weir_dim");

enum { WHY_BYTES = 400, PORTS = WEIR_OP_MOST_INPUTS + WEIR_OP_MOST_OUTPUTS };

/* A use with room for all that it points to. */
typedef struct room {
  weir_op_use use;
  weir_op_value values[PORTS]; /* inputs, then outputs */
  weir_op_attr attrs[WEIR_OP_MOST_ATTRS];
  weir_op_value *value_at[PORTS];
  const weir_op_attr *attr_at[WEIR_OP_MOST_ATTRS];
} room;

/* The state of a kernel. */
typedef struct kept {
  const weir_host_op *op;
  room room; /* its pointers are the run's own */
} kept;

static weir_op_attr attr_of(const weir_attr *a) {
  weir_op_attr to = {.struct_size = sizeof to};
  switch (a->kind) {
    case WEIR_ATTR_INT:
      to.kind = WEIR_OP_ATTR_INT;
      to.i = a->i;
      break;
    case WEIR_ATTR_FLOAT:
      to.kind = WEIR_OP_ATTR_FLOAT;
      to.f = a->f;
      break;
    case WEIR_ATTR_BOOL:
      to.kind = WEIR_OP_ATTR_BOOL;
      to.b = a->b;
      break;
    case WEIR_ATTR_STRING:
      to.kind = WEIR_OP_ATTR_STRING;
      to.s = (weir_text){a->s.data, a->s.size};
      break;
    case WEIR_ATTR_INTS:
      to.kind = WEIR_OP_ATTR_INTS;
      to.count = a->count;
      to.ints = (const weir_op_dim *)a->dims;
      break;
    case WEIR_ATTR_FLOATS:
      to.kind = WEIR_OP_ATTR_FLOATS;
      to.count = a->count;
      to.floats = a->floats;
      break;
    case WEIR_ATTR_NONE:
    case WEIR_ATTR_DTYPE:
    case WEIR_ATTR_TENSOR:
    case WEIR_ATTR_NUMBER:
    case WEIR_ATTR_KIND_COUNT:
      break;
  }
  return to;
}

/* Points the use at its parts, wherever |r| lies. */
static void point(room *r) {
  for (uint32_t i = 0; i < r->use.in_count + r->use.out_count; i++)
    r->value_at[i] = &r->values[i];
  for (uint32_t i = 0; i < r->use.attr_count; i++) r->attr_at[i] = &r->attrs[i];
  r->use.in = (const weir_op_value *const *)r->value_at;
  r->use.out = r->value_at + r->use.in_count;
  r->use.attrs = r->attr_at;
}

/* All but the values. */
static void begin(room *r, const weir_op_def *op, const weir_attr *attrs,
                  uint32_t in_count, uint32_t out_count) {
  r->use = (weir_op_use){.struct_size = sizeof r->use,
                         .in_count = in_count,
                         .out_count = out_count,
                         .attr_count = weir_op_attr_count(op)};
  for (uint32_t i = 0; i < r->use.attr_count; i++)
    r->attrs[i] = attr_of(&attrs[i]);
  for (uint32_t i = 0; i < in_count + out_count; i++)
    r->values[i] = (weir_op_value){.struct_size = sizeof(weir_op_value),
                                   .rank = WEIR_RANK_UNKNOWN,
                                   .elements = -1};
  point(r);
}

/* ---- Shapes */

static void put_shape(weir_op_value *to, const weir_shape *shape) {
  to->rank = shape->rank;
  if (shape->rank == WEIR_RANK_UNKNOWN) return;
  memcpy(to->dims, shape->dims, sizeof to->dims);
  if (weir_shape_known(shape)) to->elements = weir_shape_elements(shape);
}

static bool is_same(const weir_op_dim *a, const weir_op_dim *b, bool whole) {
  return a->symbol == b->symbol &&
         (!whole || (a->size == b->size && a->name == b->name));
}

/* Whether an input or an attribute has |dim|, or at least its symbol. */
static bool is_given(const weir_op_use *use, const weir_op_dim *dim,
                     bool whole) {
  for (uint32_t i = 0; i < use->in_count; i++)
    for (int32_t d = 0; d < use->in[i]->rank; d++)
      if (is_same(&use->in[i]->dims[d], dim, whole)) return true;
  for (uint32_t i = 0; i < use->attr_count; i++)
    for (size_t k = 0; use->attrs[i]->ints != NULL && k < use->attrs[i]->count;
         k++)
      if (is_same(&use->attrs[i]->ints[k], dim, whole)) return true;
  return false;
}

/* The host's dimension as one of the graph. Symbols and names are numbers of
 * the graph, so a host may only give back those that it was given. */
static weir_status take_dim(weir_shape_ctx *ctx, const weir_op_use *use,
                            const weir_op_dim *from, weir_dim *out) {
  if (from->symbol == WEIR_OP_DIM_NEW) {
    *out = weir_shape_new_dim(ctx);
    return WEIR_OK;
  }
  *out = (weir_dim){from->size, from->symbol, 0};
  if (from->symbol != 0 && !is_given(use, from, false))
    return weir_shape_fail(ctx, WEIR_W2022,
                           "its rule set a symbol that no input has");
  if (from->name != 0 && is_given(use, from, true)) out->name = from->name;
  return WEIR_OK;
}

static weir_status take_shape(weir_shape_ctx *ctx, const weir_op_use *use,
                              uint32_t i) {
  const weir_op_value *from = use->out[i];
  weir_shape shape = weir_shape_unknown();
  if (from->rank > WEIR_MAX_RANK || from->rank < WEIR_RANK_UNKNOWN)
    return weir_shape_fail(ctx, WEIR_W2022, "its rule set rank %d",
                           (int)from->rank);
  if (from->rank >= 0) shape.rank = 0;
  for (int32_t d = 0; d < from->rank; d++) {
    weir_dim dim;
    WEIR_TRY(take_dim(ctx, use, &from->dims[d], &dim));
    (void)weir_shape_push(&shape, dim);
  }
  return weir_shape_set(ctx, i, &shape);
}

static weir_status like_first(weir_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->out_count; i++)
    WEIR_TRY(weir_shape_set(ctx, i, weir_shape_in(ctx, 0)));
  return WEIR_OK;
}

weir_status weir_host_op_shape(weir_shape_ctx *ctx) {
  const weir_host_op *op = weir_host_op_of(ctx->op);
  char why[WHY_BYTES] = "";
  room r;
  if (op->spec.shape == NULL) return like_first(ctx);
  begin(&r, ctx->op, ctx->attrs, ctx->in_count, ctx->out_count);
  for (uint32_t i = 0; i < ctx->in_count; i++) {
    const weir_tensor *known = weir_shape_in_value(ctx, i);
    put_shape(&r.values[i], weir_shape_in(ctx, i));
    r.values[i].dtype = weir_shape_in_dtype(ctx, i);
    r.values[i].data = known != NULL ? known->data : NULL;
  }
  if (!op->spec.shape(op->spec.self, &r.use, why, sizeof why)) {
    why[sizeof why - 1] = '\0';
    return weir_shape_fail(ctx, WEIR_W2022, "%s",
                           why[0] != '\0' ? why : "refused without a reason");
  }
  for (uint32_t i = 0; i < ctx->out_count; i++)
    WEIR_TRY(take_shape(ctx, &r.use, i));
  return WEIR_OK;
}

/* ---- Calls */

static void put_operand(weir_op_value *to, const weir_operand *from) {
  to->dtype = from->dtype;
  to->data = (void *)(uintptr_t)from->value;
  if (from->dtype == WEIR_DTYPE_NONE) return;
  to->rank = from->rank;
  to->elements = from->elements;
  for (int32_t d = 0; d < from->rank; d++)
    to->dims[d] = (weir_op_dim){.size = from->dims[d]};
}

static void begin_call(room *r, const weir_call *call) {
  begin(r, call->op, call->attrs, call->in_count, call->out_count);
  for (uint32_t i = 0; i < call->in_count; i++)
    put_operand(&r->values[i], &call->in[i]);
  for (uint32_t i = 0; i < call->out_count; i++)
    put_operand(&r->values[call->in_count + i], &call->out[i]);
}

void weir_host_op_cost(const weir_call *call, weir_cost *out) {
  const weir_host_op *op = weir_host_op_of(call->op);
  room r;
  weir_cost_unary(call, out);
  if (op->spec.cost == NULL) return;
  weir_op_cost cost = {
      .struct_size = sizeof cost, .flops = out->flops, .bytes = out->bytes};
  begin_call(&r, call);
  op->spec.cost(op->spec.self, &r.use, &cost);
  if (cost.flops >= 0) out->flops = cost.flops;
  if (cost.bytes >= 0) out->bytes = cost.bytes;
}

weir_status weir_host_op_prepare(const weir_call *call, weir_prepared *out,
                                 weir_error *err) {
  out->scratch_bytes = sizeof(room);
  if (out->sizes_only) return WEIR_OK;
  kept *k = weir_arena_array(out->arena, 1, sizeof *k);
  if (k == NULL) return weir_fail_memory(err, sizeof *k);
  k->op = weir_host_op_of(call->op);
  begin_call(&k->room, call);
  out->state = k;
  return WEIR_OK;
}

static void parallel_for(const weir_op_use *use, int64_t blocks,
                         weir_op_block_fn fn, void *arg) {
  weir_parallel_for(use->inner, blocks, fn, arg);
}

weir_status weir_host_op_run(const weir_args *args) {
  const kept *k = args->state;
  char why[WHY_BYTES] = "";
  room *r = args->scratch;
  *r = k->room;
  point(r);
  r->use.parallel_for = parallel_for;
  r->use.inner = args;
  for (uint32_t i = 0; i < r->use.in_count + r->use.out_count; i++)
    r->values[i].data = args->io[i];
  if (k->op->spec.run(k->op->spec.self, &r->use, why, sizeof why))
    return WEIR_OK;
  why[sizeof why - 1] = '\0';
  return weir_fail(args->err, WEIR_W5001, NULL, "%s: %s", k->op->def.name,
                   why[0] != '\0' ? why : "it failed without a reason");
}
