/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass.h"

weir_status weir_pass_begin(weir_pass *pass, const weir_graph *from,
                            weir_error *err) {
  *pass = (weir_pass){.from = from, .alloc = from->alloc};
  WEIR_TRY(weir_graph_builder_derive(from, &pass->builder, err));
  pass->values =
      weir_alloc_array(pass->alloc, from->value_count, sizeof *pass->values);
  pass->nodes =
      weir_alloc_array(pass->alloc, from->node_count, sizeof *pass->nodes);
  if (pass->values == NULL || pass->nodes == NULL)
    return weir_fail_memory(err, from->value_count * sizeof *pass->values);
  for (uint32_t i = 0; i < from->value_count; i++)
    pass->values[i] = WEIR_NO_VALUE;
  for (uint32_t i = 0; i < from->node_count; i++) pass->nodes[i] = UINT32_MAX;
  return WEIR_OK;
}

/* The mapped inputs and then control predecessors of |node|, in |ids|. */
static uint32_t map_edges(const weir_pass *pass, const weir_node *node,
                          uint32_t input_count, uint32_t *ids) {
  uint32_t after_count = 0;
  for (uint32_t i = 0; i < input_count; i++)
    ids[i] = node->inputs[i] == WEIR_NO_VALUE ? WEIR_NO_VALUE
                                              : pass->values[node->inputs[i]];
  for (uint32_t i = 0; i < node->after_count; i++) {
    weir_node_id mapped = pass->nodes[node->after[i]];
    if (mapped != UINT32_MAX) ids[input_count + after_count++] = mapped;
  }
  return after_count;
}

weir_status weir_pass_copy(weir_pass *pass, weir_node_id id,
                           const weir_attr *attrs, uint32_t input_count,
                           weir_error *err) {
  const weir_node *node = &pass->from->nodes[id];
  if (input_count > node->input_count) input_count = node->input_count;
  uint32_t local[16], *ids = local, room = input_count + node->after_count;
  if (room > 16) ids = weir_alloc_array(pass->alloc, room, sizeof *ids);
  if (ids == NULL) return weir_fail_memory(err, room * sizeof *ids);
  uint32_t after_count = map_edges(pass, node, input_count, ids);
  weir_node_spec spec = {.name = node->name,
                         .op = node->op,
                         .attrs = attrs != NULL ? attrs : node->attrs,
                         .inputs = ids,
                         .after = ids + input_count,
                         .input_count = input_count,
                         .after_count = after_count,
                         .device = node->device,
                         .mark = node->mark,
                         .has_seed = true,
                         .seed = node->seed};
  weir_node_id added = UINT32_MAX;
  weir_status s = weir_graph_builder_add(pass->builder, &spec, &added, NULL);
  if (ids != local) weir_free(pass->alloc, ids);
  if (s != WEIR_OK) {
    if (err != NULL) *err = pass->builder->diag.error;
    return s;
  }
  pass->nodes[id] = added;
  for (uint32_t i = 0; i < node->output_count; i++)
    pass->values[node->first_output + i] =
        weir_graph_builder_output(pass->builder, added, i);
  return WEIR_OK;
}

weir_status weir_pass_end(weir_pass *pass, weir_status status,
                          weir_graph **out_graph, weir_error *err) {
  *out_graph = NULL;
  if (status == WEIR_OK)
    status = weir_graph_builder_copy_ports(pass->builder, pass->from,
                                           pass->values, err);
  if (status == WEIR_OK)
    status = weir_graph_builder_finish(pass->builder, out_graph, err);
  weir_graph_builder_release(pass->builder);
  weir_free(pass->alloc, pass->values);
  weir_free(pass->alloc, pass->nodes);
  return status;
}
