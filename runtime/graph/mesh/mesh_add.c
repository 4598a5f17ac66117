/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/mesh/mesh_add.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/graph/attrs.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/mesh/mesh_internal.h"
#include "runtime/graph/node.h"

/* Nodes of the lowered graph. */

uint32_t *weir_mesh_ids(weir_mesh_lower *l, size_t count) {
  uint32_t *ids = weir_arena_array(&l->work, count, sizeof *ids);
  if (ids == NULL) weir_fail_memory(l->err, count * sizeof *ids);
  return ids;
}

/* NODE@d or NODE/WHAT@d, numbered when taken: a node may be moved twice. */
static weir_status name_of(weir_mesh_lower *l, const weir_mesh_node *n,
                           weir_sv *out) {
  weir_arena *arena = weir_graph_builder_arena(l->pass.builder);
  size_t room = n->of->name.size + 64;
  char *text = weir_arena_alloc(arena, room);
  if (text == NULL) return weir_fail_memory(l->err, room);
  const char *slash = n->what[0] == '\0' ? "" : "/";
  int size = snprintf(text, room, "%.*s%s%s@%" PRIu32, WEIR_SV(n->of->name),
                      slash, n->what, n->device);
  *out = (weir_sv){text, (size_t)size};
  for (uint32_t k = 2; weir_graph_builder_has_name(l->pass.builder, *out);
       k++) {
    size = snprintf(text, room, "%.*s%s%s_%" PRIu32 "@%" PRIu32,
                    WEIR_SV(n->of->name), slash, n->what, k, n->device);
    out->size = (size_t)size;
  }
  return WEIR_OK;
}

weir_status weir_mesh_add(weir_mesh_lower *l, const weir_mesh_node *n,
                          weir_node_id *out_node) {
  weir_attr filled[WEIR_OP_ATTRS];
  const weir_op_def *op = n->of->op;
  const weir_attr *attrs = n->attrs;
  if (n->op != NULL)
    op = weir_registry_find_op(l->from->registry, weir_sv_from(n->op));
  if (op == NULL || (attrs == NULL && n->named != NULL &&
                     !weir_attrs_by_name(op, n->named, filled)))
    return weir_fail(l->err, WEIR_W9001, &n->of->mark, "a mesh uses %s wrongly",
                     n->op);
  if (attrs == NULL && n->named != NULL) attrs = filled;
  weir_node_spec spec = {.op = op,
                         .attrs = attrs,
                         .inputs = n->inputs,
                         .after = n->after,
                         .input_count = n->input_count,
                         .after_count = n->after_count,
                         .device = l->mesh->devices[l->feeding ? 0 : n->device],
                         .mark = n->of->mark,
                         .has_seed = true,
                         .seed = n->of->seed};
  if (n->what[0] == '\0') { /* a copy of the node itself, not a move */
    spec.bodies = n->of->bodies;
    spec.body_count = n->of->body_count;
    spec.update = n->of->update;
  }
  WEIR_TRY(name_of(l, n, &spec.name));
  weir_status s =
      weir_graph_builder_add(l->pass.builder, &spec, out_node, NULL);
  if (s != WEIR_OK) weir_error_copy(l->err, &l->pass.builder->diag.error);
  return s;
}

weir_status weir_mesh_add_value(weir_mesh_lower *l, const weir_mesh_node *n,
                                weir_value_id *out_value) {
  weir_node_id node;
  WEIR_TRY(weir_mesh_add(l, n, &node));
  *out_value = weir_graph_builder_output(l->pass.builder, node, 0);
  return WEIR_OK;
}
