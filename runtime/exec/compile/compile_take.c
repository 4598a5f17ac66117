/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_take.h"

#include "runtime/exec/compile/compile_emit.h"
#include "runtime/exec/compile/compile_layout.h"
#include "runtime/exec/program/instr_comm.h"

/* A large value of another task that is only added to a variable is added piece
 * by piece as it comes. Otherwise it is written, read again when all of it is
 * there, and the sum is made while the network rests.
 *
 * The receive starts with the step, so the kernel's other operands must be
 * there by then: variables, feeds and constants. The output is a memory of its
 * own, since a receive that fails has written a part of it. Bits: the same
 * kernel computes each element from the same operands. */

enum { LEAST_BYTES = 64 * 1024 };

static bool there_before(const weir_compiler *c, weir_value_id id) {
  const weir_pvalue *items = c->builder->values.items;
  if (id == WEIR_NO_VALUE || c->values[id] == WEIR_NO_INDEX) return false;
  weir_storage storage = items[items[c->values[id]].root].storage;
  return storage == WEIR_STORAGE_EXTERNAL || storage == WEIR_STORAGE_CONST;
}

static bool reads(const weir_node *node, weir_value_id id) {
  for (uint32_t i = 0; i < node->input_count; i++)
    if (node->inputs[i] == id) return true;
  return false;
}

/* Whether a node of the part but |e|'s reads |id|. */
static bool has_other_reader(const weir_compiler *c, const weir_emit *e,
                             weir_value_id id) {
  const weir_graph *g = c->graph;
  if (c->reader[id] == e->node_id) return false;
  for (weir_node_id n = 0; n < g->node_count; n++)
    if (n != e->node_id && c->needed[n] &&
        c->partition->part_of[n] == c->part && reads(&g->nodes[n], id))
      return true;
  return false;
}

/* The instruction that receives |id| for the node alone; or NULL. */
static weir_instr_spec *receive_of(const weir_compiler *c, const weir_emit *e,
                                   weir_value_id id) {
  if (c->frozen[id] || c->home[id] == WEIR_NO_INDEX || c->own[c->home[id]])
    return NULL;
  uint32_t instr = c->instrs[c->graph->values[id].node];
  if (instr == WEIR_NO_INDEX) return NULL;
  weir_instr_spec *s = &c->builder->instrs.items[instr].spec;
  bool alone = s->kind == WEIR_INSTR_RECV && s->out_count == 1 &&
               s->out[0] == c->values[id] && !has_other_reader(c, e, id);
  return alone ? s : NULL;
}

/* How input |i| of |e| is computed with as it comes; fn NULL: it is not. */
static weir_take take_of(const weir_compiler *c, const weir_emit *e,
                         uint32_t i) {
  weir_take none = {NULL};
  weir_value_id id = e->in[i], out = e->out[0];
  for (uint32_t k = 0; k < e->in_count; k++)
    if (k != i && !there_before(c, e->in[k])) return none;
  if (id == WEIR_NO_VALUE) return none;
  size_t bytes = weir_compile_bytes(c, id);
  weir_dtype dtype = c->graph->values[id].dtype;
  if (bytes < LEAST_BYTES || bytes != weir_compile_bytes(c, out) ||
      dtype != c->graph->values[out].dtype || c->layouts[id] != c->layouts[out])
    return none;
  return (weir_take){.fn = e->slices(e->prepared.state, i),
                     .state = e->prepared.state,
                     .in = i,
                     .in_count = e->in_count,
                     .element_bytes = weir_dtype_size(dtype)};
}

/* The instruction that receives such an input; NULL: there is none. */
static weir_instr_spec *find(const weir_compiler *c, const weir_emit *e,
                             weir_take *take) {
  for (uint32_t i = 0; i < e->in_count; i++) {
    *take = take_of(c, e, i);
    weir_instr_spec *s = take->fn != NULL ? receive_of(c, e, e->in[i]) : NULL;
    if (s != NULL) return s;
  }
  return NULL;
}

weir_status weir_compile_take(weir_compiler *c, const weir_emit *e, bool *taken,
                              weir_error *err) {
  weir_take found;
  *taken = false;
  if (c->own == NULL || c->elsewhere || e->slices == NULL ||
      !weir_device_kinds[c->kind]->host || e->release != NULL ||
      e->in_count > WEIR_TAKE_INPUTS || e->out_count != 1 ||
      e->node->after_count > 0)
    return WEIR_OK;
  weir_instr_spec *s = find(c, e, &found);
  if (s == NULL) return WEIR_OK;
  weir_value_spec value = {.storage = WEIR_STORAGE_TEMP};
  WEIR_TRY(weir_compile_value(c, e->out[0], &value, err));
  weir_take *take = weir_arena_array(c->arena, 1, sizeof *take);
  uint32_t *row = weir_arena_array(c->arena, e->in_count + 1, sizeof *row);
  if (take == NULL || row == NULL) return weir_fail_memory(err, sizeof *take);
  *take = found;
  for (uint32_t i = 0; i < e->in_count; i++)
    row[i] = i == take->in ? WEIR_NO_INDEX : c->values[e->in[i]];
  row[e->in_count] = c->values[e->out[0]];
  s->in = row;
  s->in_count = e->in_count;
  s->out = row + e->in_count;
  s->algorithm = e->kernel;
  weir_instr_recv_pieces(s, take);
  c->instrs[e->node_id] = c->instrs[c->graph->values[e->in[take->in]].node];
  *taken = true;
  return WEIR_OK;
}
