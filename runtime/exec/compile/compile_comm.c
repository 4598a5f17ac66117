/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_comm.h"

#include <string.h>

#include "runtime/exec/compile/compile_emit.h"
#include "runtime/exec/compile/compile_gpu.h"
#include "runtime/exec/compile/compile_internal.h"
#include "runtime/exec/compile/compile_layout.h"
#include "runtime/exec/compile/compile_parts.h"
#include "runtime/exec/compile/compile_share.h"
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

static weir_instr_spec rank_spec(const weir_compiler *c, weir_node_id id) {
  const weir_node *node = &c->graph->nodes[id];
  return (weir_instr_spec){.node_order = id,
                           .node = node->name,
                           .mark = node->mark,
                           .op = node->op->name,
                           .kernel = node->op->name};
}

/* Adds |spec|, one of its kind, to the part that is written. */
static weir_status add(weir_compiler *c, weir_status filled,
                       const weir_instr_spec *spec, weir_error *err) {
  if (filled == WEIR_OK) {
    uint32_t *made = &c->instrs[spec->node_order];
    *made = weir_program_add_instr(c->builder, spec);
    if (*made != WEIR_NO_INDEX) return WEIR_OK;
  }
  return weir_fail_memory(err, 0);
}

static weir_status add_collective(weir_compiler *c, const weir_collective *part,
                                  weir_instr_spec *spec, uint32_t in,
                                  uint32_t out, weir_error *err) {
  uint32_t dst = out;
  WEIR_TRY(weir_compile_to_host(c, c->part, &in, spec, err));
  WEIR_TRY(weir_compile_stage(c, c->part, out, &dst, err));
  spec->in = &in;
  spec->out = &dst;
  spec->in_count = spec->out_count = 1;
  weir_status s = weir_instr_collective(c->builder, NULL, false, part, spec);
  spec->bytes = (int64_t)c->builder->values.items[out].bytes;
  WEIR_TRY(add(c, s, spec, err));
  return weir_compile_from_host(c, c->part, dst, out, spec, err);
}

static weir_status add_send(weir_compiler *c, weir_instr_spec spec,
                            weir_compile_way way, uint32_t value,
                            weir_error *err) {
  size_t bytes = c->builder->values.items[value].bytes;
  WEIR_TRY(weir_compile_to_host(c, c->part, &value, &spec, err));
  spec.in = &value;
  spec.in_count = 1;
  weir_status s = weir_compile_send(c, c->builder, &way, bytes, &spec);
  return add(c, s, &spec, err);
}

static weir_status add_recv(weir_compiler *c, weir_instr_spec spec,
                            weir_compile_way way, uint32_t value,
                            weir_error *err) {
  size_t bytes = c->builder->values.items[value].bytes;
  uint32_t dst = value;
  WEIR_TRY(weir_compile_stage(c, c->part, value, &dst, err));
  spec.out = &dst;
  spec.out_count = 1;
  spec.after_count = 0;
  weir_status s = weir_compile_recv(c, c->builder, &way, bytes, &spec);
  WEIR_TRY(add(c, s, &spec, err));
  return weir_compile_from_host(c, c->part, dst, value, &spec, err);
}

/* The first rank's part stands in for a rank of another task: it receives that
 * rank's value, takes its place among the ranks, and sends the result back. */
static weir_status stand_in(weir_compiler *c, const weir_far_rank *far,
                            const weir_collective *part, uint32_t own,
                            weir_error *err) {
  const weir_node *node = &c->graph->nodes[far->node];
  weir_instr_spec spec = rank_spec(c, far->node);
  uint32_t values[2], kept = c->instrs[far->node];
  for (int i = 0; i < 2; i++) {
    weir_operand x;
    weir_value_spec value = {.storage = WEIR_STORAGE_TEMP};
    /* Its shape was known before the rank's own part was written. */
    (void)weir_graph_operand(c->graph,
                             i == 0 ? node->inputs[0] : node->first_output, &x);
    value.dtype = x.dtype;
    value.rank = x.rank;
    value.dims = x.dims;
    value.bytes = (size_t)x.elements * weir_dtype_size(x.dtype);
    values[i] = weir_program_add_value(c->builder, &value);
    if (values[i] == WEIR_NO_INDEX) return weir_fail_memory(err, 0);
  }
  WEIR_TRY(add_recv(c, spec, (weir_compile_way){own, far->hub, far->up},
                    values[0], err));
  WEIR_TRY(add_collective(c, part, &spec, values[0], values[1], err));
  WEIR_TRY(add_send(c, rank_spec(c, far->node),
                    (weir_compile_way){far->hub, own, far->down}, values[1],
                    err));
  /* Its number in this part is a token's, as every process counts them. */
  c->instrs[far->node] = kept;
  return WEIR_OK;
}

/* A rank of another task than the first: its value goes there, and its result
 * comes back. Both ends are written side by side (compile_parts.c). */
static weir_status far_rank(weir_compiler *c, const weir_far_rank *far,
                            const weir_collective *part,
                            const weir_instr_spec *spec, weir_error *err) {
  const weir_node *node = &c->graph->nodes[far->node];
  uint32_t own = c->part;
  if (!c->elsewhere) {
    uint32_t in = c->values[node->inputs[0]];
    uint32_t out = c->values[node->first_output];
    WEIR_TRY(add_send(c, *spec, (weir_compile_way){own, far->hub, far->up}, in,
                      err));
    WEIR_TRY(add_recv(c, *spec, (weir_compile_way){far->hub, own, far->down},
                      out, err));
  }
  weir_compile_enter(c, far->hub);
  if (!c->elsewhere) WEIR_TRY(stand_in(c, far, part, own, err));
  weir_compile_enter(c, own);
  if (c->elsewhere) c->instrs[far->node] = 0;
  return WEIR_OK;
}

weir_status weir_compile_collective(weir_compiler *c, weir_node_id id,
                                    weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  weir_collective part;
  weir_value_spec value = {.storage = WEIR_STORAGE_TEMP};
  weir_instr_spec spec = rank_spec(c, id);
  const weir_far_rank *far =
      c->tasks != NULL ? weir_task_far_rank(c->tasks, id) : NULL;
  uint32_t *after =
      weir_arena_array(c->arena, node->after_count, sizeof *after);
  if (after == NULL) return weir_fail_memory(err, sizeof *after);
  WEIR_TRY(fill_part(c, node, &part, err));
  WEIR_TRY(weir_compile_plain(c, node->inputs[0], err));
  WEIR_TRY(weir_compile_value(c, node->first_output, &value, err));
  spec.after = after;
  for (uint32_t i = 0; i < node->after_count; i++)
    if (c->instrs[node->after[i]] != WEIR_NO_INDEX)
      after[spec.after_count++] = c->instrs[node->after[i]];
  if (far != NULL) return far_rank(c, far, &part, &spec, err);
  if (c->elsewhere) {
    c->instrs[id] = 0;
    return WEIR_OK;
  }
  return add_collective(c, &part, &spec, c->values[node->inputs[0]],
                        c->values[node->first_output], err);
}
