/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_parts.h"

#include <assert.h>
#include <string.h>

#include "runtime/exec/compile/compile_emit.h"
#include "runtime/exec/compile/compile_internal.h"
#include "runtime/exec/compile/compile_layout.h"
#include "runtime/exec/program/instr_comm.h"

/* Parts: one program for each device that has work, written in the same walk.
 *
 * Layouts, groups, kernels and folding are decided on the whole graph, so a
 * value has the same bits on every device. A value that another part has made
 * is brought here when it is first needed: a constant is pointed to, anything
 * else is sent over its edge, in the layout that it has there. Each value comes
 * to a part once: after that c->values has its number there. Tables take
 * O(parts * (values + nodes)). */

/* ---- Begin and end */

weir_status weir_compile_parts_begin(weir_compiler *c, weir_error *err) {
  const weir_graph *g = c->graph;
  uint32_t count = c->partition->part_count;
  c->parts = weir_arena_array(c->arena, count, sizeof *c->parts);
  if (c->parts == NULL) return weir_fail_memory(err, count);
  c->parts[0] =
      (weir_compile_part){c->builder, c->values, c->instrs, c->layouts};
  for (uint32_t p = 1; p < count; p++) {
    weir_compile_part *part = &c->parts[p];
    WEIR_TRY(weir_program_builder_create(c->env, &part->builder, err));
    part->values =
        weir_arena_array(c->arena, g->value_count, sizeof *part->values);
    part->instrs =
        weir_arena_array(c->arena, g->node_count, sizeof *part->instrs);
    part->layouts =
        weir_arena_array(c->arena, g->value_count, sizeof *part->layouts);
    if (part->values == NULL || part->instrs == NULL || part->layouts == NULL)
      return weir_fail_memory(err, g->value_count * sizeof *part->values);
    memset(part->values, 0xff, g->value_count * sizeof *part->values);
    memset(part->instrs, 0xff, g->node_count * sizeof *part->instrs);
    memcpy(part->layouts, c->layouts, g->value_count * sizeof *part->layouts);
  }
  return WEIR_OK;
}

void weir_compile_parts_find(weir_compiler *c) {
  if (c->partition->part_count > 1) return;
  if (c->partition->part_count == 1)
    c->one_device_threads = c->partition->parts[0].threads;
  c->partition = NULL;
}

void weir_compile_parts_options(weir_compiler *c,
                                weir_program_options *options) {
  if (c->one_device_threads > 0) {
    options->threads = (int)c->one_device_threads;
    options->one_task = true;
  }
  if (c->partition == NULL) return;
  weir_compile_enter(c, 0);
  options->stream = true;
  options->threads = (int)c->partition->parts[0].threads;
}

void weir_compile_enter(weir_compiler *c, uint32_t part) {
  assert(part < c->partition->part_count);
  c->part = part;
  c->builder = c->parts[part].builder;
  c->values = c->parts[part].values;
  c->instrs = c->parts[part].instrs;
  c->layouts = c->parts[part].layouts;
}

weir_status weir_compile_parts_end(weir_compiler *c, weir_program *head,
                                   const weir_program_options *options,
                                   weir_error *err) {
  weir_program *last = head;
  head->device = c->partition->parts[0].name;
  for (uint32_t p = 1; p < c->partition->part_count; p++) {
    weir_program *next = NULL;
    weir_program_options own = *options;
    own.threads = (int)c->partition->parts[p].threads;
    WEIR_TRY(weir_program_finish(c->parts[p].builder, &own, &next, err));
    next->device = c->partition->parts[p].name;
    next->part = p;
    last->next_part = next;
    last = next;
  }
  return WEIR_OK;
}

void weir_compile_parts_release(weir_compiler *c) {
  if (c->parts == NULL) {
    weir_program_builder_release(c->builder);
    return;
  }
  /* The table lies in the first builder's arena, so that goes last. */
  for (uint32_t p = c->partition->part_count; p-- > 1;)
    weir_program_builder_release(c->parts[p].builder);
  weir_program_builder_release(c->parts[0].builder);
}

/* ---- Edges between parts */

static weir_instr_spec comm_spec(const weir_compiler *c, weir_node_id maker) {
  const weir_node *node = &c->graph->nodes[maker];
  return (weir_instr_spec){.node_order = maker,
                           .node = node->name,
                           .mark = node->mark,
                           .op = node->op->name};
}

static weir_status find_edge(const weir_compiler *c, weir_node_id maker,
                             weir_value_id value, uint32_t *out,
                             weir_error *err) {
  *out = weir_partition_edge(c->partition, maker, value, c->part);
  if (*out != WEIR_PLACE_NONE) return WEIR_OK;
  const weir_node *node = &c->graph->nodes[maker];
  return weir_fail(err, WEIR_W9001, &node->mark,
                   "no edge brings %.*s to part %u", WEIR_SV(node->name),
                   c->part);
}

/* An arrival at this part from another one: a value, or the token that a node
 * has ended. */
typedef struct crossing {
  const weir_compile_part *from;
  weir_node_id maker;
  uint32_t edge;       /* of the cut */
  const uint32_t *in;  /* the value there; NULL: a token */
  const uint32_t *out; /* the value here; NULL: a token */
  size_t bytes;        /* of the value; 0: a token */
} crossing;

/* SEND at the end of the part it is from, RECV here. A token is sent after its
 * maker's instruction. */
static weir_status add_pair(weir_compiler *c, const crossing *x,
                            weir_error *err) {
  weir_program_builder *from = x->from->builder;
  uint32_t after = x->from->instrs[x->maker];
  weir_instr_spec send = comm_spec(c, x->maker), recv = send;
  send.kernel = "send";
  send.in = x->in;
  send.in_count = x->in != NULL;
  send.after = &after;
  send.after_count = x->in == NULL;
  recv.kernel = "recv";
  recv.out = x->out;
  recv.out_count = x->out != NULL;
  if (weir_instr_send(from, NULL, x->edge, x->bytes, &send) != WEIR_OK ||
      weir_instr_recv(c->builder, NULL, x->edge, x->bytes, &recv) != WEIR_OK ||
      weir_program_add_instr(from, &send) == WEIR_NO_INDEX)
    return weir_fail_memory(err, 0);
  uint32_t *made = &c->instrs[x->maker];
  *made = weir_program_add_instr(c->builder, &recv);
  return *made == WEIR_NO_INDEX ? weir_fail_memory(err, 0) : WEIR_OK;
}

static weir_status bring_value(weir_compiler *c, weir_value_id id,
                               weir_error *err) {
  if (id == WEIR_NO_VALUE || c->values[id] != WEIR_NO_INDEX) return WEIR_OK;
  if (c->home[id] == WEIR_NO_INDEX) return WEIR_OK; /* inside a group */
  const weir_compile_part *from = &c->parts[c->home[id]];
  uint32_t there = from->values[id], edge = 0;
  c->layouts[id] = from->layouts[id];
  if (c->frozen[id]) {
    const weir_pvalue *items = from->builder->values.items;
    weir_value_spec spec = {.storage = WEIR_STORAGE_CONST,
                            .data = items[items[there].root].data};
    return weir_compile_value(c, id, &spec, err);
  }
  weir_node_id maker = c->graph->values[id].node;
  WEIR_TRY(find_edge(c, maker, id, &edge, err));
  weir_value_spec spec = {.storage = WEIR_STORAGE_TEMP};
  WEIR_TRY(weir_compile_value(c, id, &spec, err));
  crossing value = {.from = from,
                    .maker = maker,
                    .edge = edge,
                    .in = &there,
                    .out = &c->values[id],
                    .bytes = weir_compile_bytes(c, id)};
  return add_pair(c, &value, err);
}

/* Lets this part wait for |maker|, if it is an instruction of another part.
 * Where the partition has no token edge for it, a value edge serves as well:
 * the value arrives after |maker| has ended. With neither, an input of the node
 * depends on |maker| and is awaited already. */
static weir_status bring_token(weir_compiler *c, weir_node_id maker,
                               weir_error *err) {
  uint32_t part = c->partition->part_of[maker];
  if (part == WEIR_PLACE_NONE || part == c->part) return WEIR_OK;
  const weir_compile_part *from = &c->parts[part];
  if (from->instrs[maker] == WEIR_NO_INDEX || c->instrs[maker] != WEIR_NO_INDEX)
    return WEIR_OK;
  uint32_t edge =
      weir_partition_edge(c->partition, maker, WEIR_NO_VALUE, c->part);
  crossing token = {.from = from, .maker = maker, .edge = edge};
  if (edge != WEIR_PLACE_NONE) return add_pair(c, &token, err);
  const weir_node *node = &c->graph->nodes[maker];
  for (uint32_t i = 0; i < node->output_count; i++) {
    weir_value_id id = node->first_output + i;
    if (!c->frozen[id] && weir_partition_edge(c->partition, maker, id,
                                              c->part) != WEIR_PLACE_NONE)
      return bring_value(c, id, err);
  }
  return WEIR_OK;
}

static weir_status bring_inputs(weir_compiler *c, weir_node_id id,
                                weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  if (node->op->instr != WEIR_INSTR_VAR_READ)
    for (uint32_t i = 0; i < node->input_count; i++)
      WEIR_TRY(bring_value(c, node->inputs[i], err));
  for (uint32_t i = 0; i < node->after_count; i++)
    WEIR_TRY(bring_token(c, node->after[i], err));
  return WEIR_OK;
}

weir_status weir_compile_arrive(weir_compiler *c, weir_node_id id,
                                weir_error *err) {
  uint32_t group = c->graph->nodes[id].group;
  uint32_t part = c->partition->part_of[id];
  weir_compile_enter(c, part == WEIR_PLACE_NONE ? 0 : part);
  if (group == WEIR_NO_GROUP) return bring_inputs(c, id, err);
  if (c->group_size[group] > 1) return WEIR_OK;
  for (weir_node_id m = c->group_head[group]; m != WEIR_NO_INDEX;
       m = c->group_next[m])
    WEIR_TRY(bring_inputs(c, m, err));
  return WEIR_OK;
}
