/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/attrs.h"

#include <string.h>

#include "ops/registry.h"
#include "runtime/base/table.h"

/* Attributes on their way into a node. A caller's lists and texts may be on its
 * stack, so a node gets copies in the graph's arena; tensors are counted and
 * only lent. */

static const char *const kKindNames[] = {
    [WEIR_ATTR_NONE] = "none",
    [WEIR_ATTR_INT] = "an integer",
    [WEIR_ATTR_FLOAT] = "a number",
    [WEIR_ATTR_BOOL] = "true or false",
    [WEIR_ATTR_STRING] = "a string",
    [WEIR_ATTR_DTYPE] = "a dtype",
    [WEIR_ATTR_INTS] = "a list of integers",
    [WEIR_ATTR_FLOATS] = "a list of numbers",
    [WEIR_ATTR_TENSOR] = "a literal",
    [WEIR_ATTR_NUMBER] = "a number"};
WEIR_TABLE_OF(kKindNames, WEIR_ATTR_KIND_COUNT);

const char *weir_attr_kind_text(weir_attr_kind kind) {
  return kKindNames[kind];
}

/* Whether |choice| is one of "a|b|c". */
static bool is_choice(const char *choices, weir_sv choice) {
  while (*choices != '\0') {
    size_t n = strcspn(choices, "|");
    if (weir_sv_equal((weir_sv){choices, n}, choice)) return true;
    choices += n + (choices[n] == '|');
  }
  return false;
}

static weir_status bad_kind(const weir_op_def *op, const weir_attr_def *def,
                            const weir_attr *attr, const weir_mark *mark,
                            weir_error *err) {
  return weir_fail(err, WEIR_W1111, mark, "%s: %s is %s, must be %s", op->name,
                   def->name, weir_attr_kind_text(attr->kind),
                   weir_attr_kind_text(def->kind));
}

static weir_status copy_dims(weir_arena *arena, const weir_dim *src,
                             uint32_t count, weir_attr *out, weir_error *err) {
  weir_dim *dims = weir_arena_array(arena, count, sizeof *dims);
  if (dims == NULL) return weir_fail_memory(err, count * sizeof *dims);
  if (count > 0) memcpy(dims, src, count * sizeof *dims);
  *out = (weir_attr){.kind = WEIR_ATTR_INTS, .count = count, .dims = dims};
  return WEIR_OK;
}

static weir_status copy_floats(weir_arena *arena, const weir_attr *in,
                               weir_attr *out, weir_error *err) {
  double *floats = weir_arena_array(arena, in->count, sizeof *floats);
  if (floats == NULL) return weir_fail_memory(err, in->count * sizeof *floats);
  if (in->count > 0) memcpy(floats, in->floats, in->count * sizeof *floats);
  *out = *in;
  out->floats = floats;
  return WEIR_OK;
}

/* A value of another kind that stands for the wanted one. */
static bool converted(const weir_attr *in, weir_attr_kind want, weir_dim *dim,
                      weir_attr *out) {
  *out = (weir_attr){.kind = want};
  if (in->kind != WEIR_ATTR_INT) return false;
  if (want == WEIR_ATTR_FLOAT) {
    out->f = (double)in->i;
    return true;
  }
  if (want != WEIR_ATTR_INTS) return false;
  *dim = weir_dim_of(in->i);
  out->dims = dim;
  out->count = 1;
  return true;
}

weir_status weir_attr_normalize(const weir_op_def *op, uint32_t index,
                                const weir_attr *in, const weir_mark *mark,
                                weir_arena *arena, weir_attr *out,
                                weir_error *err) {
  const weir_attr_def *def = &op->attrs[index];
  weir_attr other;
  weir_dim dim;
  bool number = def->kind == WEIR_ATTR_NUMBER &&
                (in->kind == WEIR_ATTR_INT || in->kind == WEIR_ATTR_FLOAT);
  if (in->kind != def->kind && !number) {
    if (!converted(in, def->kind, &dim, &other))
      return bad_kind(op, def, in, mark, err);
    in = &other;
  }
  *out = *in;
  switch (in->kind) {
    case WEIR_ATTR_INTS:
      return copy_dims(arena, in->dims, in->count, out, err);
    case WEIR_ATTR_FLOATS:
      return copy_floats(arena, in, out, err);
    case WEIR_ATTR_STRING:
      if (def->choices != NULL && !is_choice(def->choices, in->s))
        return weir_fail(err, WEIR_W1111, mark,
                         "%s: %s is \"%.*s\", must be one of %s", op->name,
                         def->name, WEIR_SV(in->s), def->choices);
      out->s.data = weir_arena_string(arena, in->s.data, in->s.size);
      return out->s.data != NULL ? WEIR_OK : weir_fail_memory(err, in->s.size);
    default:
      return WEIR_OK;
  }
}

bool weir_attrs_by_name(const weir_op_def *op, const weir_named_attr *given,
                        weir_attr attrs[WEIR_OP_ATTRS]) {
  for (int i = 0; i < WEIR_OP_ATTRS; i++)
    attrs[i] = (weir_attr){.kind = WEIR_ATTR_NONE};
  for (; given != NULL && given->name != NULL; given++) {
    int i = weir_op_attr_index(op, weir_sv_from(given->name));
    if (i < 0) return false;
    attrs[i] = given->value;
  }
  return true;
}
