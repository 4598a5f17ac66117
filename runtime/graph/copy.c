/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/copy.h"

#include "runtime/graph/graph_internal.h"
#include "runtime/graph/node.h"

/* Copies of ports and names from a parent graph, for passes. */

static weir_value_id mapped(const weir_value_id *values, weir_value_id id) {
  return id == WEIR_NO_VALUE ? id : values[id];
}

static weir_status copy_list(weir_graph_builder *b, const weir_graph_port *list,
                             uint32_t count, bool inputs,
                             const weir_value_id *values, weir_error *err) {
  for (uint32_t i = 0; i < count; i++) {
    weir_graph_port port = list[i];
    port.value = mapped(values, port.value);
    if (port.value == WEIR_NO_VALUE) continue;
    WEIR_TRY(inputs ? weir_graph_builder_add_input(b, &port, err)
                    : weir_graph_builder_add_output(b, &port, err));
  }
  return WEIR_OK;
}

/* Names of values are copied in table order, each once: order plays no part. */
static weir_status copy_names(weir_graph_builder *b, const weir_graph *from,
                              const weir_value_id *values, weir_error *err) {
  const weir_map *names = &weir_graph_full_of(from)->value_names;
  for (size_t i = 0; i < names->capacity; i++) {
    const weir_map_slot *slot = &names->slots[i];
    if (slot->key.data == NULL) continue;
    weir_value_id value = mapped(values, slot->value);
    if (value == WEIR_NO_VALUE) continue;
    WEIR_TRY(weir_graph_builder_name_value(b, slot->key, value, err));
  }
  return WEIR_OK;
}

weir_status weir_graph_builder_copy_ports(weir_graph_builder *b,
                                          const weir_graph *from,
                                          const weir_value_id *values,
                                          weir_error *err) {
  WEIR_TRY(copy_list(b, from->inputs, from->input_count, true, values, err));
  WEIR_TRY(copy_list(b, from->outputs, from->output_count, false, values, err));
  return copy_names(b, from, values, err);
}
