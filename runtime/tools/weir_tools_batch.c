/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tools/weir_tools_costs.h"

/* The batch size of the data that training reads; 0: it has none. */
static int64_t batch_of(const weir_graph *graph) {
  const weir_yaml *name =
      graph->train == NULL ? NULL : weir_yaml_get(graph->train, "data");
  int64_t batch = 0;
  if (graph->data == NULL) return 0;
  weir_sv wanted = name != NULL && name->kind == WEIR_YAML_SCALAR
                       ? name->text
                       : WEIR_SV_LIT("train");
  for (uint32_t i = 0; i < graph->data->count; i++) {
    const weir_yaml_entry *e = &graph->data->entries[i];
    if (!weir_sv_equal(e->key, wanted) || e->value->kind != WEIR_YAML_MAP)
      continue;
    const weir_yaml *size = weir_yaml_get(e->value, "batch");
    if (size == NULL || size->kind != WEIR_YAML_SCALAR ||
        !weir_text_int(size->text, &batch) || batch < 0)
      return 0;
  }
  return batch;
}

weir_status weir_tools_fix_batch(const weir_graph *graph,
                                 const weir_graph **out, weir_error *err) {
  int64_t batch = batch_of(graph);
  bool open = false;
  weir_graph *fixed = NULL;
  weir_shape *shapes =
      weir_alloc_array(graph->alloc, graph->input_count + 1u, sizeof *shapes);
  *out = NULL;
  if (shapes == NULL)
    return weir_fail_memory(err, graph->input_count * sizeof *shapes);
  for (uint32_t i = 0; i < graph->input_count; i++) {
    const weir_shape *s = graph->values[graph->inputs[i].value].shape;
    shapes[i] = (weir_shape){.rank = WEIR_RANK_UNKNOWN};
    if (batch == 0 || s->rank < 1 || weir_dim_known(s->dims[0])) continue;
    shapes[i] = *s;
    shapes[i].dims[0] = weir_dim_of(batch);
    if (weir_shape_known(&shapes[i]))
      open = true;
    else
      shapes[i] = (weir_shape){.rank = WEIR_RANK_UNKNOWN};
  }
  weir_status s = WEIR_OK;
  if (open) s = weir_graph_specialize(graph, shapes, &fixed, err);
  if (s == WEIR_OK) *out = open ? fixed : weir_graph_ref(graph);
  weir_free(graph->alloc, shapes);
  return s;
}
