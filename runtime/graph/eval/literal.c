/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/eval/literal.h"

#include <inttypes.h>
#include <math.h>

#include "runtime/base/size.h"
#include "runtime/graph/eval/eval_const.h"
#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/report.h"

/* Literal tensors: numbers and nested lists. The shape follows from the first
 * item of each depth alone; filling the tensor then finds rows that differ. The
 * bound on elements holds before memory is asked for. */

enum {
  WEIR_LITERAL_ELEMENTS = 65536, /* of one */
  WEIR_ALL_LITERALS = 1 << 24    /* of a graph */
};

/* Rank and dimensions from the first items; the fill checks the rest. */
static bool literal_shape(weir_loader *l, const weir_const *c,
                          const weir_mark *at, weir_shape *out,
                          const weir_const **out_leaf) {
  *out = (weir_shape){.rank = 0};
  int64_t elements = 1;
  *out_leaf = NULL;
  while (c->kind == WEIR_CONST_LIST) {
    if (out->rank == WEIR_MAX_RANK)
      return weir_report(l, WEIR_W2003, at, "the literal's rank is over %d",
                         WEIR_MAX_RANK);
    out->dims[out->rank++].value = c->count;
    if (!weir_dim_mul_checked(elements, c->count, &elements) ||
        elements > WEIR_LITERAL_ELEMENTS)
      return weir_report(l, WEIR_W1120, at, "literals hold at most %d elements",
                         WEIR_LITERAL_ELEMENTS);
    if (c->count == 0) return true;
    c = c->items;
  }
  *out_leaf = c;
  return true;
}

static bool fits_int(weir_dtype dtype, int64_t v) {
  switch (dtype) {
    case WEIR_I32:
      return v >= INT32_MIN && v <= INT32_MAX;
    case WEIR_U8:
      return v >= 0 && v <= 255;
    case WEIR_BOOL:
      return false;
    default:
      return true;
  }
}

/* A literal that is being filled. */
typedef struct literal {
  weir_loader *l;
  weir_tensor *tensor;
  bool typed; /* its dtype was given: a number must fit */
  const weir_mark *at;
} literal;

static bool store(const literal *f, const weir_const *c, int64_t i) {
  weir_loader *l = f->l;
  weir_tensor *t = f->tensor;
  const weir_mark *at = f->at;
  char text[80];
  bool is_float = weir_dtype_is_float(t->dtype);
  bool too_large = f->typed && c->kind == WEIR_CONST_FLOAT &&
                   t->dtype == WEIR_F32 && isinf(c->single) && !isinf(c->f);
  if (c->kind == WEIR_CONST_INT && weir_dim_known(c->dim) &&
      fits_int(t->dtype, c->dim.value)) {
    weir_tensor_set_i64(t, i, c->dim.value);
  } else if (c->kind == WEIR_CONST_FLOAT && is_float && !too_large) {
    weir_tensor_set_f64(t, i, t->dtype == WEIR_F32 ? (double)c->single : c->f);
  } else if (c->kind == WEIR_CONST_BOOL && t->dtype == WEIR_BOOL) {
    weir_tensor_set_i64(t, i, c->b);
  } else if (c->kind == WEIR_CONST_LIST) {
    return weir_report(l, WEIR_W1121, at, "the rows differ in depth");
  } else {
    return weir_report(l, WEIR_W2017, at, "%s is no %s",
                       weir_const_text(c, text, sizeof text),
                       weir_dtype_name(t->dtype));
  }
  return true;
}

/* Walks the nested lists in order, an index per level. */
static bool fill(const literal *f, const weir_const *c) {
  weir_loader *l = f->l;
  const weir_tensor *t = f->tensor;
  const weir_mark *at = f->at;
  const weir_const *lists[WEIR_MAX_RANK];
  uint32_t index[WEIR_MAX_RANK];
  int rank = t->shape.rank, depth = 0;
  int64_t n = 0;
  if (rank == 0) return store(f, c, 0);
  lists[0] = c;
  index[0] = 0;
  while (depth >= 0) {
    const weir_const *list = lists[depth];
    if (index[depth] == 0 &&
        (list->kind != WEIR_CONST_LIST ||
         list->count != (uint64_t)t->shape.dims[depth].value))
      return weir_report(l, WEIR_W1121, at, "the rows differ in length");
    if (index[depth] == list->count) {
      depth--;
      continue;
    }
    const weir_const *item = &list->items[index[depth]++];
    if (depth + 1 == rank) {
      if (!store(f, item, n++)) return false;
    } else {
      lists[++depth] = item;
      index[depth] = 0;
    }
  }
  return true;
}

bool weir_literal_tensor(weir_loader *l, const weir_const *c, weir_dtype dtype,
                         const weir_mark *at, weir_tensor **out) {
  weir_shape shape;
  const weir_const *leaf;
  bool typed = dtype != WEIR_DTYPE_NONE;
  *out = NULL;
  if (!literal_shape(l, c, at, &shape, &leaf)) return false;
  if (dtype == WEIR_DTYPE_NONE)
    dtype =
        leaf != NULL && leaf->kind == WEIR_CONST_BOOL ? WEIR_BOOL : WEIR_F32;
  l->literal_elements += (uint64_t)weir_shape_elements(&shape);
  if (l->literal_elements > WEIR_ALL_LITERALS)
    return weir_report(l, WEIR_W1120, at,
                       "the graph's literals hold more than %d elements",
                       WEIR_ALL_LITERALS);
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  if (weir_tensor_create_shaped(l->alloc, dtype, &shape, &t, &err) != WEIR_OK)
    return weir_report_error(l, &err);
  if (!fill(&(literal){l, t, typed, at}, c)) {
    weir_tensor_unref(t);
    return false;
  }
  *out = t;
  return true;
}
