/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_parts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/compile/compile_emit.h"
#include "runtime/exec/compile/compile_gpu.h"
#include "runtime/exec/compile/compile_internal.h"
#include "runtime/exec/compile/compile_layout.h"
#include "runtime/exec/compile/compile_share.h"
#include "runtime/exec/program/instr_comm.h"
#include "runtime/exec/program/program_held.h"

/* Parts: one program for each device that has work, written in the same walk.
 *
 * Layouts, groups, kernels and folding are decided on the whole graph, so a
 * value has the same bits on every device. A value that another part has made
 * is brought here when it is first needed: a constant is pointed to, anything
 * else is sent over its edge, in the layout that its maker gave it. Each value
 * comes to a part once: after that c->values has its number there. Tables take
 * O(parts * (values + nodes)).
 *
 * A process that owns some tasks writes their parts alone (compile_share.c): of
 * an edge to or from another process it writes its own end.
 *
 * A copy of the plan is written into both parts before the first node that
 * begins no earlier, so that its memory is taken as long as in the model; any
 * other way before its reader. Where the receiver runs a unit at that time, the
 * copy's memory is none that the unit uses: the copy would wait for its end.
 * Sends wait for receives, and both for memory, so the places of all parts must
 * agree: they do, for both ends are written at the same moment of one walk, and
 * no instruction waits for one behind it; the ranks of a collective stand side
 * by side in it (partition.c). */

/* ---- Begin and end */

/* A copy and when it starts. Its tensor breaks ties: those are numbered by the
 * units that make them, and so as the walk meets them. */
typedef struct copy_start {
  int64_t start_ns;
  uint32_t tensor, copy;
} copy_start;

static int by_start(const void *a, const void *b) {
  const copy_start *x = a, *y = b;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  if (x->tensor != y->tensor) return x->tensor < y->tensor ? -1 : 1;
  return (x->copy > y->copy) - (x->copy < y->copy);
}

static weir_status sort_copies(weir_compiler *c, weir_error *err) {
  const weir_place_plan *plan = c->request->plan->result.plan;
  size_t count = plan->copy_count;
  copy_start *starts =
      weir_alloc_array(c->env->alloc, count + 1, sizeof *starts);
  c->copies = weir_arena_array(c->arena, count + 1, sizeof *c->copies);
  bool ok = starts != NULL && c->copies != NULL;
  for (uint32_t i = 0; ok && i < count; i++)
    starts[i] =
        (copy_start){plan->copies[i].start_ns, plan->copies[i].tensor, i};
  if (ok) qsort(starts, count, sizeof *starts, by_start);
  for (uint32_t i = 0; ok && i < count; i++) c->copies[i] = starts[i].copy;
  weir_free(c->env->alloc, starts);
  return ok ? WEIR_OK : weir_fail_memory(err, count * sizeof *starts);
}

weir_status weir_compile_parts_begin(weir_compiler *c, weir_error *err) {
  const weir_graph *g = c->graph;
  uint32_t count = c->partition->part_count;
  WEIR_TRY(weir_compile_share_begin(c, err));
  weir_compile_part *parts = weir_arena_array(c->arena, count, sizeof *parts);
  c->made = weir_arena_array(c->arena, g->value_count, sizeof *c->made);
  c->made_layouts =
      weir_arena_array(c->arena, g->value_count, sizeof *c->made_layouts);
  if (parts == NULL || c->made == NULL || c->made_layouts == NULL)
    return weir_fail_memory(err, count);
  memcpy(c->made_layouts, c->layouts, g->value_count * sizeof *c->layouts);
  parts[c->head] =
      (weir_compile_part){c->builder, c->values, c->instrs, c->layouts, NULL};
  c->parts = parts;
  for (uint32_t p = 0; p < count; p++) {
    weir_compile_part *part = &c->parts[p];
    if (p == c->head) continue;
    WEIR_TRY(weir_program_builder_create(c->env, c->graph->alloc,
                                         &part->builder, err));
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
  WEIR_TRY(sort_copies(c, err));
  return weir_compile_gpus(c, err);
}

void weir_compile_parts_options(weir_compiler *c,
                                weir_program_options *options) {
  if (c->partition == NULL) return;
  weir_compile_enter(c, c->head);
  /* Nothing here is this process's: an empty program, without constants. */
  if (c->elsewhere) c->builder->program->constant_bytes = 0;
  options->stream = true;
  options->threads = (int)c->partition->parts[c->head].threads;
  options->gpu = c->parts[c->head].gpu;
}

void weir_compile_enter(weir_compiler *c, uint32_t part) {
  assert(part < c->partition->part_count);
  c->part = part;
  c->elsewhere = c->own != NULL && !c->own[part];
  c->builder = c->parts[part].builder;
  c->values = c->parts[part].values;
  c->instrs = c->parts[part].instrs;
  c->layouts = c->parts[part].layouts;
  c->kind = weir_compile_part_kind(c, part);
}

/* A part that takes more than its device may hold is refused before any run:
 * then the placer knew too little of its kernels. */
static weir_status check_caps(const weir_compiler *c,
                              const weir_program *program, weir_error *err) {
  const weir_place_device *devices = c->request->plan->problem->devices;
  for (const weir_program *p = program; p != NULL; p = p->next_part) {
    const weir_place_device *d = &devices[c->partition->parts[p->part].device];
    weir_program_memory held;
    if (d->memory_bytes == INT64_MAX) continue;
    WEIR_TRY(weir_program_held(p, &held, err));
    if (weir_program_memory_sum(&held) <= (size_t)d->memory_bytes) continue;
    weir_status s =
        weir_fail(err, WEIR_W6002, NULL,
                  "%.*s takes %zu bytes and may hold %" PRId64
                  ", of which %.*s takes %zu at once",
                  WEIR_SV(d->name), weir_program_memory_sum(&held),
                  d->memory_bytes, WEIR_SV(held.most), held.most_bytes);
    weir_error_set_node(err, held.most.data, held.most.size);
    weir_hint(err, "raise `memory:` of the device, or pin the node to another");
    return s;
  }
  return WEIR_OK;
}

weir_status weir_compile_parts_end(weir_compiler *c, weir_program *head,
                                   const weir_program_options *options,
                                   weir_error *err) {
  weir_program *last = head;
  head->device = c->partition->parts[c->head].name;
  head->part = c->head;
  for (uint32_t p = c->head + 1; p < c->partition->part_count; p++) {
    weir_program *next = NULL;
    if (c->own != NULL && !c->own[p]) continue;
    weir_program_options own = *options;
    own.threads = (int)c->partition->parts[p].threads;
    own.gpu = c->parts[p].gpu;
    WEIR_TRY(weir_program_finish(c->parts[p].builder, &own, &next, err));
    next->device = c->partition->parts[p].name;
    next->part = p;
    last->next_part = next;
    last = next;
  }
  return check_caps(c, head, err);
}

void weir_compile_parts_release(weir_compiler *c) {
  if (c->parts == NULL) {
    weir_program_builder_release(c->builder);
    return;
  }
  /* The table lies in the head's arena, so that goes last. */
  weir_program_builder *head = c->parts[c->head].builder;
  for (uint32_t p = c->partition->part_count; p-- > 0;)
    if (p != c->head) weir_program_builder_release(c->parts[p].builder);
  weir_program_builder_release(head);
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
  uint32_t from; /* part */
  weir_node_id maker;
  uint32_t edge;       /* of the cut */
  const uint32_t *in;  /* the value there; NULL: a token */
  const uint32_t *out; /* the value here; NULL: a token */
  size_t bytes;        /* of the value; 0: a token */
  bool direct;         /* from GPU to GPU (compile_gpu.h) */
  uint32_t room_from;  /* see weir_instr_spec */
} crossing;

/* SEND at the end of the part it is from. A token is sent after its maker's
 * instruction. */
static weir_status add_send(weir_compiler *c, const crossing *x,
                            const weir_compile_way *way, weir_error *err) {
  const weir_compile_part *from = &c->parts[x->from];
  uint32_t after = from->instrs[x->maker];
  weir_instr_spec send = comm_spec(c, x->maker);
  uint32_t value = x->in != NULL ? *x->in : WEIR_NO_INDEX;
  if (x->in != NULL && !x->direct)
    WEIR_TRY(weir_compile_to_host(c, x->from, &value, &send, err));
  send.in = &value;
  send.in_count = x->in != NULL;
  send.after = &after;
  send.after_count = x->in == NULL;
  if (weir_compile_send(c, from->builder, way, x->bytes, &send) != WEIR_OK)
    return weir_fail_memory(err, 0);
  if (x->direct) weir_instr_direct(&send);
  bool added = weir_program_add_instr(from->builder, &send) != WEIR_NO_INDEX;
  return added ? WEIR_OK : weir_fail_memory(err, 0);
}

/* SEND there and RECV here, of those the ends that are this process's. */
static weir_status add_pair(weir_compiler *c, const crossing *x,
                            weir_error *err) {
  weir_compile_way way = {x->from, c->part, x->edge};
  uint32_t *made = &c->instrs[x->maker];
  if (c->own == NULL || c->own[x->from]) WEIR_TRY(add_send(c, x, &way, err));
  weir_instr_spec recv = comm_spec(c, x->maker);
  uint32_t value = x->out != NULL ? *x->out : WEIR_NO_INDEX;
  if (x->out != NULL && !c->elsewhere && !x->direct)
    WEIR_TRY(weir_compile_stage(c, c->part, *x->out, &value, err));
  recv.out = &value;
  recv.out_count = x->out != NULL;
  recv.room_from = x->room_from;
  if (!c->elsewhere &&
      weir_compile_recv(c, c->builder, &way, x->bytes, &recv) != WEIR_OK)
    return weir_fail_memory(err, 0);
  if (x->direct) weir_instr_direct(&recv);
  *made = weir_compile_add_instr(c, &recv);
  if (*made == WEIR_NO_INDEX) return weir_fail_memory(err, 0);
  if (x->out == NULL || c->elsewhere) return WEIR_OK;
  return weir_compile_from_host(c, c->part, value, *x->out, &recv, err);
}

static weir_status bring_from(weir_compiler *c, weir_value_id id,
                              uint32_t room_from, weir_error *err) {
  if (id == WEIR_NO_VALUE || c->values[id] != WEIR_NO_INDEX) return WEIR_OK;
  if (c->home[id] == WEIR_NO_INDEX) return WEIR_OK; /* inside a group */
  uint32_t from = c->home[id], there = c->made[id], edge = 0;
  c->layouts[id] = c->made_layouts[id];
  if (c->frozen[id]) {
    const weir_pvalue *items = c->parts[from].builder->values.items;
    assert(c->elsewhere ||
           items[items[there].root].data != weir_compile_no_bytes);
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
                    .bytes = weir_compile_bytes(c, id),
                    .direct = weir_compile_is_direct(c, from, c->part, there),
                    .room_from = room_from};
  return add_pair(c, &value, err);
}

static weir_status bring_value(weir_compiler *c, weir_value_id id,
                               weir_error *err) {
  return bring_from(c, id, 0, err);
}

/* Lets this part wait for |maker|, if it is an instruction of another part.
 * Where the partition has no token edge for it, a value edge serves as well:
 * the value arrives after |maker| has ended. With neither, an input of the node
 * depends on |maker| and is awaited already. */
static weir_status bring_token(weir_compiler *c, weir_node_id maker,
                               weir_error *err) {
  uint32_t part = c->partition->part_of[maker];
  if (part == WEIR_PLACE_NONE || part == c->part) return WEIR_OK;
  if (c->parts[part].instrs[maker] == WEIR_NO_INDEX ||
      c->instrs[maker] != WEIR_NO_INDEX)
    return WEIR_OK;
  uint32_t edge =
      weir_partition_edge(c->partition, maker, WEIR_NO_VALUE, c->part);
  crossing token = {.from = part, .maker = maker, .edge = edge};
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

static uint32_t part_of_device(const weir_compiler *c, uint32_t device) {
  for (uint32_t p = 0; p < c->partition->part_count; p++)
    if (c->partition->parts[p].device == device) return p;
  return WEIR_PLACE_NONE;
}

/* Whether |unit|, or a later one that takes no time, makes what |copy| brings:
 * it begins when its maker does. */
static bool waits_for_maker(const weir_compiler *c, const weir_place_copy *copy,
                            uint32_t unit) {
  const weir_plan *p = c->request->plan;
  weir_value_id id = p->placement->tensor_value[copy->tensor];
  return copy->start_ns == p->result.plan->start_ns[unit] &&
         p->problem->tensor_node[copy->tensor] >= unit && id != WEIR_NO_VALUE &&
         c->home[id] == WEIR_NO_INDEX;
}

/* One whose value is not made yet, or has no edge, is left to the reader. */
static weir_status begin_copy(weir_compiler *c, const weir_place_copy *copy,
                              weir_error *err) {
  weir_value_id id = c->request->plan->placement->tensor_value[copy->tensor];
  uint32_t part = part_of_device(c, copy->to);
  if (id == WEIR_NO_VALUE || part == WEIR_PLACE_NONE ||
      c->home[id] == WEIR_NO_INDEX || c->home[id] == part || c->frozen[id] ||
      weir_partition_edge(c->partition, c->graph->values[id].node, id, part) ==
          WEIR_PLACE_NONE)
    return WEIR_OK;
  weir_compile_enter(c, part);
  const weir_compile_part *p = &c->parts[part];
  bool runs = p->unit != 0 && p->unit_end_ns > copy->start_ns;
  return bring_from(c, id, runs ? p->unit_first + 1 : 0, err);
}

/* |unit|, which takes time, is written into its part from now on. */
static void begin_unit(weir_compiler *c, weir_node_id id, uint32_t unit) {
  const weir_place_plan *plan = c->request->plan->result.plan;
  uint32_t number = c->partition->part_of[id];
  if (number == WEIR_PLACE_NONE || plan->end_ns[unit] == plan->start_ns[unit])
    return;
  weir_compile_part *part = &c->parts[number];
  if (part->unit == unit + 1) return;
  part->unit = unit + 1;
  part->unit_first = (uint32_t)part->builder->instrs.count;
  part->unit_end_ns = plan->end_ns[unit];
}

/* The copies that begin before |id| does, or with it. */
static weir_status begin_copies(weir_compiler *c, weir_node_id id,
                                weir_error *err) {
  const weir_plan *p = c->request->plan;
  const weir_place_plan *plan = p->result.plan;
  uint32_t unit = p->placement->unit_of[id];
  bool first = c->graph->nodes[id].op->instr == WEIR_INSTR_VAR_READ ||
               (unit != WEIR_PLACE_NONE && p->placement->units[unit].constant);
  if (first || unit == WEIR_PLACE_NONE) return WEIR_OK; /* before all others */
  while (c->copies_begun < plan->copy_count) {
    const weir_place_copy *copy = &plan->copies[c->copies[c->copies_begun]];
    if (copy->start_ns > plan->start_ns[unit]) break;
    if (waits_for_maker(c, copy, unit)) break;
    c->copies_begun++;
    WEIR_TRY(begin_copy(c, copy, err));
  }
  begin_unit(c, id, unit);
  return WEIR_OK;
}

weir_status weir_compile_arrive(weir_compiler *c, weir_node_id id,
                                weir_error *err) {
  uint32_t group = c->graph->nodes[id].group;
  uint32_t part = c->partition->part_of[id];
  WEIR_TRY(begin_copies(c, id, err));
  weir_compile_enter(c, part == WEIR_PLACE_NONE ? 0 : part);
  if (group == WEIR_NO_GROUP) return bring_inputs(c, id, err);
  if (c->group_size[group] > 1) return WEIR_OK;
  for (weir_node_id m = c->group_head[group]; m != WEIR_NO_INDEX;
       m = c->group_next[m])
    WEIR_TRY(bring_inputs(c, m, err));
  return WEIR_OK;
}
