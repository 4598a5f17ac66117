/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_layout.h"

#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "ops/cost.h"
#include "runtime/base/size.h"
#include "runtime/exec/compile/compile_emit.h"
#include "runtime/exec/compile/compile_gpu.h"
#include "runtime/exec/compile/compile_internal.h"
#include "runtime/exec/compile/compile_kernel.h"
#include "runtime/exec/compile/compile_share.h"

/* Layouts: which values between kernels are kept 16 images at a time, or in
 * blocks of channels.
 *
 * A value may be N16 if a kernel makes it, kernels alone read it, it does not
 * leave the program and there are 16 images or more. At first all such values
 * are N16. Then a node or group for which no kernel takes its operands so loses
 * the layout of one of them, or of all, until every unit has a kernel. So whole
 * regions of convolutions, poolings, element-wise groups and their gradients
 * stay N16, and the kernels at a region's borders convert. Where a reader turns
 * out not to take a value after all, a COPY brings it back to rows.
 *
 * What is left in rows then is tried in blocks of 8 or 16 channels, as the
 * instruction set has them, in the same way: convolutions of many channels take
 * those, and so regions of them, of poolings and element-wise groups do.
 *
 * Values of GPUs' parts are in rows.
 *
 * A greatest fixed point: layouts are only ever taken away. Cost: a choice of
 * kernel for each unit with such operands in each sweep over the nodes; sweeps
 * go forward and backward in turn, so that a loss crosses a whole region in one
 * sweep in either direction. */

enum { kImages = 16 };

size_t weir_compile_bytes(const weir_compiler *c, weir_value_id id) {
  const weir_value *v = &c->graph->values[id];
  size_t bytes = weir_shape_bytes(v->shape, v->dtype);
  weir_layout layout = (weir_layout)c->layouts[id];
  if (layout == WEIR_LAYOUT_PLAIN || bytes == 0) return bytes;
  int channels = weir_layout_channels(layout);
  int64_t side = v->shape->dims[channels > 0 ? 1 : 0].value;
  int64_t padded = weir_layout_padded(side, channels > 0 ? channels : kImages);
  size_t total = 0;
  /* Checked when the layout was given. */
  return weir_size_mul(bytes / (size_t)side, (size_t)padded, &total) ? total
                                                                     : bytes;
}

void weir_compile_find_readers(weir_compiler *c) {
  const weir_graph *g = c->graph;
  memset(c->reader, 0xff, g->value_count * sizeof *c->reader);
  for (weir_node_id n = 0; n < g->node_count; n++)
    for (uint32_t i = 0; c->needed[n] && i < g->nodes[n].input_count; i++) {
      weir_value_id id = g->nodes[n].inputs[i];
      if (id == WEIR_NO_VALUE) continue;
      c->reader[id] = c->reader[id] == WEIR_NO_INDEX ? n : WEIR_SEVERAL;
    }
  for (uint32_t k = 0; k < c->request->fetch_count; k++)
    c->reader[c->fetches[k]] = WEIR_SEVERAL;
}

/* ---- Candidates */

static bool is_kernel(const weir_node *node) {
  return node->op->instr == WEIR_INSTR_KERNEL &&
         (node->op->flags & (WEIR_OP_VIEW | WEIR_OP_RANDOM)) == 0;
}

/* The node that stands for |id|'s group, or itself. */
static weir_node_id unit_of(const weir_compiler *c, weir_node_id id) {
  uint32_t group = c->graph->nodes[id].group;
  return group == WEIR_NO_GROUP ? id : c->group_head[group];
}

static bool is_hosts(const weir_compiler *c, weir_node_id id) {
  uint32_t part = c->partition != NULL ? c->partition->part_of[id] : 0;
  return weir_device_kinds[weir_compile_part_kind(c, part)]->host;
}

/* Whether a value of shape |v| may have |layout|. The last test makes room for
 * rounding images or channels up to whole blocks, which less than doubles the
 * bytes. */
static bool shape_fits(const weir_value *v, weir_layout layout) {
  size_t total;
  int channels = weir_layout_channels(layout);
  bool fits = channels > 0 ? weir_layout_pays(v->shape->dims[1].value, channels)
                           : v->shape->dims[0].value >= kImages;
  return fits && weir_size_mul(weir_shape_bytes(v->shape, v->dtype), 2, &total);
}

/* Whether a value may have |layout| as far as its maker, its type and its shape
 * go; readers are looked at later. Values inside a group may not: a group that
 * is split must run on any kernel. */
static bool is_candidate(const weir_compiler *c, weir_value_id id,
                         weir_layout layout) {
  const weir_value *v = &c->graph->values[id];
  const weir_node *node = &c->graph->nodes[v->node];
  return c->layouts[id] == WEIR_LAYOUT_PLAIN && c->needed[v->node] &&
         is_kernel(node) && is_hosts(c, v->node) && node->output_count == 1 &&
         unit_of(c, v->node) == v->node && v->known == NULL &&
         c->reader[id] != WEIR_NO_INDEX && v->dtype == WEIR_F32 &&
         v->shape->rank == 4 && weir_shape_known(v->shape) &&
         weir_shape_bytes(v->shape, v->dtype) > 0 && shape_fits(v, layout);
}

/* Marks all that may have |layout|; false when there are none. */
static bool mark_candidates(weir_compiler *c, weir_layout layout) {
  const weir_graph *g = c->graph;
  bool any = false;
  for (weir_value_id id = 0; id < g->value_count; id++)
    if (is_candidate(c, id, layout))
      c->layouts[id] = (uint8_t)layout, any = true;
  for (weir_node_id n = 0; any && n < g->node_count; n++) {
    if (!c->needed[n] || (is_kernel(&g->nodes[n]) && is_hosts(c, n))) continue;
    for (uint32_t i = 0; i < g->nodes[n].input_count; i++)
      if (g->nodes[n].inputs[i] != WEIR_NO_VALUE)
        c->layouts[g->nodes[n].inputs[i]] = WEIR_LAYOUT_PLAIN;
  }
  for (uint32_t k = 0; k < c->request->fetch_count; k++)
    c->layouts[c->fetches[k]] = WEIR_LAYOUT_PLAIN;
  return any;
}

/* ---- Until every unit has a kernel */

enum { kUnitValues = 64 };

/* The unit's operands that have |layout| now. */
static uint32_t special_values(const weir_compiler *c, weir_node_id unit,
                               weir_layout layout, weir_value_id *out) {
  uint32_t group = c->graph->nodes[unit].group, count = 0;
  for (weir_node_id n = unit; n != WEIR_NO_INDEX;
       n = group == WEIR_NO_GROUP ? WEIR_NO_INDEX : c->group_next[n]) {
    const weir_node *node = &c->graph->nodes[n];
    for (uint32_t i = 0; i <= node->input_count; i++) {
      weir_value_id id =
          i < node->input_count ? node->inputs[i] : node->first_output;
      if (id == WEIR_NO_VALUE || node->output_count == 0 ||
          c->layouts[id] != layout)
        continue;
      uint32_t k = 0;
      while (k < count && out[k] != id) k++;
      if (k == count && count < kUnitValues) out[count++] = id;
    }
  }
  return count;
}

/* Takes |layout| away from one of the unit's operands, the output first, or
 * from all where that does not help. One operand in rows is the common case of
 * a kernel at a region's border; other combinations are not searched. */
static weir_status settle_unit(weir_compiler *c, weir_node_id unit,
                               weir_layout layout, bool *changed,
                               weir_error *err) {
  weir_value_id values[kUnitValues];
  uint32_t count = special_values(c, unit, layout, values);
  bool takes = false;
  if (count == 0) return WEIR_OK;
  WEIR_TRY(weir_compile_takes_layouts(c, unit, &takes, err));
  if (takes) return WEIR_OK;
  *changed = true;
  for (uint32_t k = count; k-- > 0 && !takes && count > 1;) {
    c->layouts[values[k]] = WEIR_LAYOUT_PLAIN;
    WEIR_TRY(weir_compile_takes_layouts(c, unit, &takes, err));
    if (!takes) c->layouts[values[k]] = (uint8_t)layout;
  }
  for (uint32_t k = 0; k < count && !takes; k++)
    c->layouts[values[k]] = WEIR_LAYOUT_PLAIN;
  return WEIR_OK;
}

static weir_status settle(weir_compiler *c, weir_layout layout,
                          weir_error *err) {
  uint32_t n = c->graph->node_count;
  /* Every turn but the last takes a layout from a value: this ends. */
  for (bool changed = true, forward = true; changed; forward = !forward) {
    changed = false;
    for (uint32_t i = 0; i < n; i++) {
      weir_node_id id = forward ? i : n - 1 - i;
      if (c->needed[id] && unit_of(c, id) == id)
        WEIR_TRY(settle_unit(c, id, layout, &changed, err));
    }
  }
  return WEIR_OK;
}

/* Gives |layout| to all values in rows that may keep it. */
static weir_status spread(weir_compiler *c, weir_layout layout,
                          weir_error *err) {
  if (layout == WEIR_LAYOUT_PLAIN || !mark_candidates(c, layout))
    return WEIR_OK;
  weir_arena *kept = c->arena, scratch;
  weir_arena_init(&scratch, c->graph->alloc);
  c->arena = &scratch;
  weir_status s = settle(c, layout, err);
  c->arena = kept;
  weir_arena_release(&scratch);
  return s;
}

weir_status weir_compile_layouts(weir_compiler *c, weir_error *err) {
  if (c->request->options.no_layout || c->request->options.ref_kernels)
    return WEIR_OK;
  WEIR_TRY(spread(c, WEIR_LAYOUT_N16, err));
  return spread(c, weir_isa_blocks(c->env->profile), err);
}

/* ---- Back to rows */

/* A row is an image of N16, or a channel of an image: |lanes| rows lie side by
 * side, and the last block of a set of rows may not be full. */
typedef struct reorder_state {
  size_t sets, rows; /* images, channels of each; in N16 1, images */
  size_t row;        /* elements that lie together when they are plain */
  size_t lanes;
} reorder_state;

/* Element i of row r is number lanes i + r % lanes of block r / lanes. */
static weir_status reorder_run(const weir_args *args) {
  const reorder_state *state = args->state;
  size_t lanes = state->lanes, row = state->row;
  size_t padded = (state->rows + lanes - 1) / lanes * lanes;
  const float *src = args->io[0];
  float *dst = args->io[1];
  for (size_t s = 0; s < state->sets; s++, src += padded * row)
    for (size_t r = 0; r < state->rows; r++, dst += row) {
      const float *from = src + r / lanes * lanes * row + r % lanes;
      for (size_t i = 0; i < row; i++) dst[i] = from[i * lanes];
    }
  return WEIR_OK;
}

weir_status weir_compile_plain(weir_compiler *c, weir_value_id id,
                               weir_error *err) {
  if (id == WEIR_NO_VALUE || c->layouts[id] == WEIR_LAYOUT_PLAIN)
    return WEIR_OK;
  const weir_value *v = &c->graph->values[id];
  const weir_node *node = &c->graph->nodes[v->node];
  uint32_t from = c->values[id];
  reorder_state *state = weir_arena_array(c->arena, 1, sizeof *state);
  if (state == NULL) return weir_fail_memory(err, sizeof *state);
  size_t channels = (size_t)weir_layout_channels((weir_layout)c->layouts[id]);
  c->layouts[id] = WEIR_LAYOUT_PLAIN;
  size_t bytes = weir_compile_bytes(c, id);
  state->lanes = channels > 0 ? channels : kImages;
  size_t n = (size_t)v->shape->dims[0].value;
  state->sets = channels > 0 ? n : 1;
  state->rows = channels > 0 ? (size_t)v->shape->dims[1].value : n;
  state->row = bytes / sizeof(float) / (state->sets * state->rows);
  weir_value_spec to = {.storage = WEIR_STORAGE_TEMP};
  WEIR_TRY(weir_compile_value(c, id, &to, err));
  weir_instr_spec spec = {
      .kind = WEIR_INSTR_COPY,
      .in = &from,
      .out = &c->values[id],
      .in_count = 1,
      .out_count = 1,
      .run = reorder_run,
      .state = state,
      .bytes = weir_cost_mul((int64_t)bytes, 2),
      .cost_ns = 10 + (int64_t)(bytes / 4),
      .node_order = v->node,
      .node = node->name,
      .mark = node->mark,
      .op = node->op->name,
      .kernel = channels > 0 ? "copy.blocks_to_plain" : "copy.n16_to_plain",
      .reason = "its reader takes rows only"};
  if (weir_compile_add_instr(c, &spec) == WEIR_NO_INDEX)
    return weir_fail_memory(err, 0);
  return WEIR_OK;
}
