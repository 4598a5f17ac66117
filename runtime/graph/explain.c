/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/explain.h"

#include <stdio.h>
#include <string.h>

#include "runtime/graph/graph_internal.h"

/* The chain of reasons: where the inputs of a node that failed come from, and
 * why they have the types they have. */

enum { WEIR_REASON_DEPTH = 3 };

/* "takes a [..., m, k], b [..., k, n]", from the op's prose. */
static void label_signature(const weir_op_info *info, weir_diag *diag) {
  char text[128];
  size_t n = (size_t)snprintf(text, sizeof text, "takes");
  for (uint32_t i = 0; i < info->in_count && n < sizeof text; i++) {
    const weir_port *port = &info->op->inputs[i];
    if (port->shape == NULL) return;
    n += (size_t)snprintf(text + n, sizeof text - n, "%s %s %s",
                          i > 0 ? "," : "", port->name, port->shape);
  }
  if (info->in_count > 0) weir_diag_set_label(diag, "%s", text);
}

/* Whether note_reasons has something to say about a node. */
static bool has_reason(const weir_node *node) {
  return node->input_count > 0 && node->inputs[0] != WEIR_NO_VALUE &&
         node->op->instr != WEIR_INSTR_VAR_READ &&
         node->op->instr != WEIR_INSTR_FEED;
}

/* Follows the first input back, one note for each step. */
static void note_reasons(const weir_graph *graph, weir_value_id id,
                         weir_diag *diag) {
  char name[96], type[128], from[96], from_type[128];
  for (int depth = 0; depth < WEIR_REASON_DEPTH; depth++) {
    const weir_node *node = &graph->nodes[graph->values[id].node];
    if (!has_reason(node)) return;
    weir_value_id next = node->inputs[0];
    weir_diag_add_note(
        diag, "%s is %s: %s of %s, which is %s",
        weir_value_label(graph, id, name, sizeof name),
        weir_graph_type_text(graph, id, type, sizeof type), node->op->name,
        weir_value_label(graph, next, from, sizeof from),
        weir_graph_type_text(graph, next, from_type, sizeof from_type));
    id = next;
  }
}

static bool seen_before(const weir_node_spec *spec, uint32_t i) {
  for (uint32_t j = 0; j < i; j++)
    if (spec->inputs[j] == spec->inputs[i]) return true;
  return false;
}

void weir_explain_inputs(const weir_graph *graph, const weir_node_spec *spec,
                         const weir_op_info *info, weir_diag *diag) {
  char name[96], type[128];
  bool is_type_error = diag->error.id[0] == 'W' && diag->error.id[1] == '2';
  if (!is_type_error) return;
  label_signature(info, diag);
  for (uint32_t i = 0; i < spec->input_count && i < WEIR_DIAG_LABELS; i++) {
    weir_value_id id = spec->inputs[i];
    if (id >= graph->value_count || seen_before(spec, i)) continue;
    const weir_mark *at = &graph->nodes[graph->values[id].node].mark;
    weir_value_label(graph, id, name, sizeof name);
    weir_graph_type_text(graph, id, type, sizeof type);
    bool here = at->line > 0 && at->file != NULL &&
                strcmp(at->file, diag->error.file) == 0;
    if (here)
      weir_diag_add_label(diag, at, "%s is %s", name, type);
    else if (!has_reason(&graph->nodes[graph->values[id].node]))
      weir_diag_add_note(diag, "%s is %s", name, type);
  }
  for (uint32_t i = 0; i < spec->input_count && i < WEIR_DIAG_LABELS; i++)
    if (spec->inputs[i] < graph->value_count && !seen_before(spec, i))
      note_reasons(graph, spec->inputs[i], diag);
}
