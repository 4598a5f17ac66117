/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_comm.h"

#include <string.h>

#include "runtime/exec/compile/compile_emit.h"
#include "runtime/exec/compile/compile_internal.h"
#include "runtime/exec/compile/compile_layout.h"
#include "runtime/exec/program/instr_comm.h"

/* Nodes that the mesh lowering made: one for each rank of a collective. */

static int64_t int_attr(const weir_node *node, const char *name) {
  int at = weir_op_attr_index(node->op, weir_sv_from(name));
  return at < 0 ? 0 : node->attrs[at].i;
}

static weir_status kind_of(const weir_node *node, weir_collective_kind *out,
                           weir_error *err) {
  static const struct {
    const char *op;
    weir_collective_kind kind;
  } kKinds[] = {{"all_reduce", WEIR_ALL_REDUCE},
                {"all_gather", WEIR_ALL_GATHER},
                {"reduce_scatter", WEIR_REDUCE_SCATTER},
                {"all_to_all", WEIR_ALL_TO_ALL}};
  for (size_t i = 0; i < sizeof kKinds / sizeof kKinds[0]; i++)
    if (strcmp(kKinds[i].op, node->op->name) == 0) {
      *out = kKinds[i].kind;
      return WEIR_OK;
    }
  return weir_fail(err, WEIR_W9001, &node->mark, "%s is no collective",
                   node->op->name);
}

/* The larger side, which the channel counts by. */
static weir_status fill_part(const weir_compiler *c, const weir_node *node,
                             weir_collective *part, weir_error *err) {
  weir_operand in, out;
  *part = (weir_collective){.group = (uint32_t)int_attr(node, "group"),
                            .rank = (uint32_t)int_attr(node, "rank"),
                            .ranks = (uint32_t)int_attr(node, "ranks")};
  WEIR_TRY(kind_of(node, &part->kind, err));
  if (!weir_graph_operand(c->graph, node->inputs[0], &in) ||
      !weir_graph_operand(c->graph, node->first_output, &out))
    return weir_fail(err, WEIR_W2008, &node->mark,
                     "%.*s: the shape is not known", WEIR_SV(node->name));
  part->dtype = in.dtype;
  part->count = in.elements > out.elements ? in.elements : out.elements;
  return WEIR_OK;
}

weir_status weir_compile_collective(weir_compiler *c, weir_node_id id,
                                    weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  weir_collective part;
  weir_value_spec value = {.storage = WEIR_STORAGE_TEMP};
  uint32_t *after =
      weir_arena_array(c->arena, node->after_count, sizeof *after);
  if (after == NULL) return weir_fail_memory(err, sizeof *after);
  WEIR_TRY(fill_part(c, node, &part, err));
  WEIR_TRY(weir_compile_plain(c, node->inputs[0], err));
  WEIR_TRY(weir_compile_value(c, node->first_output, &value, err));
  weir_instr_spec spec = {.in = &c->values[node->inputs[0]],
                          .out = &c->values[node->first_output],
                          .in_count = 1,
                          .out_count = 1,
                          .after = after,
                          .node_order = id,
                          .node = node->name,
                          .mark = node->mark,
                          .op = node->op->name,
                          .kernel = node->op->name};
  for (uint32_t i = 0; i < node->after_count; i++)
    if (c->instrs[node->after[i]] != WEIR_NO_INDEX)
      after[spec.after_count++] = c->instrs[node->after[i]];
  if (weir_instr_collective(c->builder, NULL, false, &part, &spec) != WEIR_OK)
    return weir_fail_memory(err, 0);
  spec.bytes = (int64_t)weir_compile_bytes(c, node->first_output);
  c->instrs[id] = weir_program_add_instr(c->builder, &spec);
  return c->instrs[id] == WEIR_NO_INDEX ? weir_fail_memory(err, 0) : WEIR_OK;
}
