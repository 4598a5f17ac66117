/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/eval/levels.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "runtime/graph/eval/add.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/node.h"
#include "runtime/graph/parse/forms.h"

/* Levels: the graphs of bodies in the making, and their captures.
 *
 * A value of an outer level is passed inwards one level at a time: each level
 * in between captures it too, since a body sees only its own inputs. |ids|
 * finds a capture by the outer id, so a level captures a value once. A known
 * value is made again inside instead, so that shapes can depend on it; its
 * capture has no outer value and becomes no input. */

void weir_loader_enter(weir_loader *l, weir_level *level) {
  l->level = level;
  l->builder = level != NULL ? level->builder : l->main_builder;
}

weir_level *weir_level_create(weir_loader *l, weir_scope *scope,
                              const weir_mark *at) {
  weir_error err = WEIR_ERROR_INIT;
  uint32_t depth = l->level != NULL ? l->level->depth + 1 : 1;
  if (depth > WEIR_BODY_DEPTH)
    return weir_report(l, WEIR_W1123, at, "bodies nest deeper than %d",
                       (int)WEIR_BODY_DEPTH),
           NULL;
  weir_level *level = weir_arena_array(&l->work, 1, sizeof *level);
  if (level == NULL || weir_graph_builder_body(
                           l->builder, NULL, &level->builder, &err) != WEIR_OK)
    return weir_report_memory(l), NULL;
  level->outer = l->level;
  level->scope = scope;
  level->depth = depth;
  weir_map_init(&level->ids, l->alloc);
  level->next = l->levels;
  l->levels = level;
  return level;
}

void weir_level_release(weir_loader *l, weir_level *level) {
  weir_graph_builder_release(level->builder);
  level->builder = NULL;
  weir_map_release(&level->ids);
  weir_vec_free(l->alloc, &level->captures);
}

/* |name| in the level, or with an end that makes it new. */
static weir_sv free_name(weir_loader *l, const weir_level *level,
                         weir_sv name) {
  char text[700];
  for (uint32_t n = 1; weir_graph_builder_has_name(level->builder, name); n++) {
    int size = snprintf(text, sizeof text, "%.*s_%u",
                        (int)(name.size < 640 ? name.size : 640), name.data, n);
    name = (weir_sv){weir_arena_string(l->arena, text, (size_t)size),
                     (size_t)size};
    if (name.data == NULL) break;
  }
  return name;
}

static bool add(weir_loader *l, weir_level *level, weir_node_spec *spec,
                weir_value_id *out) {
  weir_node_id id;
  spec->name = free_name(l, level, spec->name);
  if (spec->name.data == NULL) return weir_report_memory(l);
  if (weir_graph_builder_add(level->builder, spec, &id, &l->diag) != WEIR_OK)
    return weir_report_send(l);
  *out = weir_graph_builder_output(level->builder, id, 0);
  return true;
}

bool weir_level_input(weir_loader *l, weir_level *level, weir_sv name,
                      const weir_value *type, const weir_mark *at,
                      weir_value_id *out) {
  const weir_shape *shape = type->shape;
  const weir_op_def *op = weir_loader_op(l, "input");
  if (shape->rank < 0)
    return weir_report(l, WEIR_W2008, at,
                       "the rank of %.*s must be known where a body takes it",
                       WEIR_SV(name));
  weir_attr attrs[WEIR_OP_ATTRS] = {0};
  int dtype = op != NULL ? weir_op_attr_index(op, WEIR_SV_LIT("dtype")) : -1;
  int dims = op != NULL ? weir_op_attr_index(op, WEIR_SV_LIT("shape")) : -1;
  if (dtype < 0 || dims < 0)
    return weir_report(l, WEIR_W9001, at, "the op `input` does not exist");
  attrs[dtype] = (weir_attr){.kind = WEIR_ATTR_DTYPE, .dtype = type->dtype};
  attrs[dims] = (weir_attr){.kind = WEIR_ATTR_INTS,
                            .count = (uint32_t)shape->rank,
                            .dims = shape->dims};
  weir_node_spec spec = {.name = name, .op = op, .attrs = attrs, .mark = *at};
  return add(l, level, &spec, out);
}

/* A value that is known already needs no input: the body has it too. */
static bool add_known(weir_loader *l, weir_level *level, weir_sv name,
                      weir_tensor *known, const weir_mark *at,
                      weir_value_id *out) {
  const weir_op_def *op = weir_loader_op(l, "const");
  weir_attr attrs[WEIR_OP_ATTRS] = {0};
  int value = op != NULL ? weir_op_attr_index(op, WEIR_SV_LIT("value")) : -1;
  int dtype = op != NULL ? weir_op_attr_index(op, WEIR_SV_LIT("dtype")) : -1;
  if (value < 0 || dtype < 0)
    return weir_report(l, WEIR_W9001, at, "the op `const` does not exist");
  attrs[value] = (weir_attr){.kind = WEIR_ATTR_TENSOR, .tensor = known};
  attrs[dtype] = (weir_attr){.kind = WEIR_ATTR_DTYPE, .dtype = known->dtype};
  weir_node_spec spec = {.name = name, .op = op, .attrs = attrs, .mark = *at};
  return add(l, level, &spec, out);
}

static bool capture(weir_loader *l, weir_level *level, weir_value_id id,
                    const weir_mark *at, weir_value_id *out) {
  weir_graph_builder *from =
      level->outer != NULL ? level->outer->builder : l->main_builder;
  const weir_graph *g = weir_graph_builder_graph(from);
  uint32_t index =
      weir_map_get(&level->ids, (weir_sv){(const char *)&id, sizeof id});
  if (index != WEIR_MAP_NONE) {
    *out = level->captures.items[index].inner;
    return true;
  }
  const weir_value value = g->values[id];
  char label[600];
  int size = snprintf(label, sizeof label, value.port > 0 ? "%.*s:%u" : "%.*s",
                      (int)(g->nodes[value.node].name.size < 560
                                ? g->nodes[value.node].name.size
                                : 560),
                      g->nodes[value.node].name.data, value.port);
  weir_sv name = {weir_arena_string(l->arena, label, (size_t)size),
                  (size_t)size};
  char *key = weir_arena_string(&l->work, (const char *)&id, sizeof id);
  if (name.data == NULL || key == NULL) return weir_report_memory(l);
  if (!(value.known != NULL
            ? add_known(l, level, name, value.known, at, out)
            : weir_level_input(l, level, name, &value, at, out)))
    return false;
  weir_capture c = {value.known != NULL ? WEIR_NO_VALUE : id, *out};
  index = (uint32_t)level->captures.count;
  return (weir_vec_push(l->alloc, &level->captures, c) &&
          weir_map_put(&level->ids, (weir_sv){key, sizeof id}, index, NULL)) ||
         weir_report_memory(l);
}

bool weir_level_import(weir_loader *l, weir_level *from, weir_value_id id,
                       const weir_mark *at, weir_value_id *out) {
  weir_level *path[WEIR_BODY_DEPTH];
  int count = 0;
  *out = id;
  weir_level *level = l->level;
  for (; level != from && level != NULL; level = level->outer) {
    assert(count < WEIR_BODY_DEPTH); /* weir_level_create refuses more */
    path[count++] = level;
  }
  if (level != from)
    return weir_report(l, WEIR_W1127, at,
                       "this value belongs to a body and cannot be read here");
  while (count > 0)
    if (!capture(l, path[--count], *out, at, out)) return false;
  return true;
}

weir_level *weir_level_of_call(weir_level *home, const weir_expr *expr,
                               uint32_t node, bool *out_init) {
  const weir_ast *n = &expr->nodes[node];
  bool var = n->op_info != NULL && n->op_info->op->instr == WEIR_INSTR_VAR_READ;
  *out_init = n->init;
  return n->init || var ? NULL : home;
}
