/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/eval/attr_eval.h"

#include "runtime/graph/attrs.h"
#include "runtime/graph/eval/eval_const.h"
#include "runtime/graph/eval/literal.h"
#include "runtime/graph/eval/lookup.h"
#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/report.h"

/* Constants as attributes of ops. An integer stands for a number; a bare word
 * stands for a string where the op lists its choices. A word where a number is
 * wanted is reported as an unknown name, since that is the likely mistake. */

enum { WEIR_LIST_ITEMS = 65536 };

static const weir_attr_def *def_of(const weir_given_attr *given) {
  return &given->op->attrs[given->index];
}

/* |c| is the given value, or an item of it. */
static bool refuse(weir_loader *l, const weir_scope *scope,
                   const weir_given_attr *given, const weir_const *c) {
  char text[80];
  const weir_attr_def *def = def_of(given);
  if (c->kind == WEIR_CONST_WORD &&
      (def->kind == WEIR_ATTR_INT || def->kind == WEIR_ATTR_INTS ||
       def->kind == WEIR_ATTR_FLOAT || def->kind == WEIR_ATTR_NUMBER))
    return weir_report_unknown(l, scope, given->at, c->s);
  const char *verb = c != given->value ? "holds" : "is";
  weir_report_begin(l, WEIR_W1111, given->at, "%s: %s %s %s, must be %s",
                    given->op->name, def->name, verb,
                    weir_const_text(c, text, sizeof text),
                    weir_attr_kind_text(def->kind));
  weir_const_hint_fraction(l, c);
  return weir_report_send(l);
}

static bool to_dims(weir_loader *l, const weir_scope *scope,
                    const weir_given_attr *given, weir_attr *out) {
  const weir_const *c = given->value;
  uint32_t count = c->kind == WEIR_CONST_LIST ? c->count : 1;
  const weir_const *items = c->kind == WEIR_CONST_LIST ? c->items : c;
  if (count > WEIR_LIST_ITEMS)
    return weir_report(l, WEIR_W1120, given->at,
                       "lists hold at most %d numbers", WEIR_LIST_ITEMS);
  weir_dim *dims = weir_arena_array(&l->work, count, sizeof *dims);
  if (dims == NULL) return weir_report_memory(l);
  for (uint32_t i = 0; i < count; i++) {
    if (items[i].kind != WEIR_CONST_INT)
      return refuse(l, scope, given, &items[i]);
    dims[i] = items[i].dim;
  }
  out->count = count;
  out->dims = dims;
  return true;
}

static bool to_floats(weir_loader *l, const weir_scope *scope,
                      const weir_given_attr *given, weir_attr *out) {
  const weir_const *c = given->value;
  if (c->kind != WEIR_CONST_LIST) return refuse(l, scope, given, c);
  double *floats = weir_arena_array(&l->work, c->count, sizeof *floats);
  if (floats == NULL) return weir_report_memory(l);
  for (uint32_t i = 0; i < c->count; i++) {
    if (c->items[i].kind == WEIR_CONST_FLOAT)
      floats[i] = c->items[i].f;
    else if (c->items[i].kind == WEIR_CONST_INT &&
             weir_dim_known(c->items[i].dim))
      floats[i] = (double)c->items[i].dim.value;
    else
      return refuse(l, scope, given, &c->items[i]);
  }
  out->count = c->count;
  out->floats = floats;
  return true;
}

/* Whether the scalar |c| is one of |kind|. */
static bool to_scalar(const weir_const *c, const weir_attr_def *def,
                      weir_attr *out) {
  bool number = c->kind == WEIR_CONST_INT && weir_dim_known(c->dim);
  bool text = c->kind == WEIR_CONST_STRING || c->kind == WEIR_CONST_WORD;
  switch (def->kind) {
    case WEIR_ATTR_INT:
      out->i = number ? c->dim.value : 0;
      return number;
    case WEIR_ATTR_NUMBER:
      out->kind = number ? WEIR_ATTR_INT : WEIR_ATTR_FLOAT;
      if (number)
        out->i = c->dim.value;
      else
        out->f = c->f;
      return number || c->kind == WEIR_CONST_FLOAT;
    case WEIR_ATTR_FLOAT:
      out->f = number ? (double)c->dim.value : c->f;
      return number || c->kind == WEIR_CONST_FLOAT;
    case WEIR_ATTR_BOOL:
      if (c->kind != WEIR_CONST_BOOL) return false;
      out->b = c->b;
      return true;
    case WEIR_ATTR_STRING:
      if (c->kind == WEIR_CONST_NONE && def->choices != NULL) {
        out->s = WEIR_SV_LIT("none"); /* the word may be a choice */
        return true;
      }
      out->s = c->s;
      return c->kind == WEIR_CONST_STRING ||
             (c->kind == WEIR_CONST_WORD && def->choices != NULL);
    case WEIR_ATTR_DTYPE:
      if (!text) return false;
      out->dtype = weir_dtype_from_name(c->s.data, c->s.size);
      return out->dtype != WEIR_DTYPE_NONE;
    default:
      return false;
  }
}

bool weir_attr_from_const(weir_loader *l, const weir_scope *scope,
                          const weir_given_attr *given, weir_attr *out) {
  const weir_attr_def *def = def_of(given);
  const weir_const *c = given->value;
  *out = (weir_attr){.kind = def->kind};
  if (c->kind == WEIR_CONST_NONE && def->choices == NULL) {
    out->kind = WEIR_ATTR_NONE; /* same as not given */
    return true;
  }
  if (def->kind == WEIR_ATTR_INTS) {
    if (c->kind == WEIR_CONST_LIST || c->kind == WEIR_CONST_INT)
      return to_dims(l, scope, given, out);
  } else if (def->kind == WEIR_ATTR_FLOATS) {
    return to_floats(l, scope, given, out);
  } else if (def->kind == WEIR_ATTR_TENSOR) {
    return weir_literal_tensor(l, c, WEIR_DTYPE_NONE, given->at, &out->tensor);
  } else if (to_scalar(c, def, out)) {
    return true;
  }
  return refuse(l, scope, given, c);
}
