/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/exec/compile_internal.h"

/* Layouts: which values between kernels are kept 16 images at a time.
 *
 * A value may be N16 if its only reader is a conv2d that takes it as its image,
 * nobody outside the program sees it, there are 16 images or more, and both the
 * kernel that makes it and the kernel that reads it accept it so. Kernels
 * convert at a region's borders themselves; where a reader turns out not to
 * take it after all, a COPY brings the value back to rows. */

enum { kImages = 16 };

size_t weir_compile_bytes(const weir_compiler *c, weir_value_id id) {
  const weir_value *v = &c->graph->values[id];
  size_t bytes = weir_shape_bytes(v->shape, v->dtype);
  if (c->layouts[id] == WEIR_LAYOUT_PLAIN || bytes == 0) return bytes;
  size_t n = (size_t)v->shape->dims[0].value;
  size_t image = bytes / n, total = 0;
  /* Checked when the layout was given. */
  return weir_size_mul(image, (n + kImages - 1) / kImages * kImages, &total)
             ? total
             : bytes;
}

/* A value that may be N16 as far as the graph goes. */
static bool is_candidate(const weir_compiler *c, weir_value_id id) {
  const weir_value *v = &c->graph->values[id];
  size_t total;
  if (v->dtype != WEIR_F32 || v->shape->rank != 4 ||
      !weir_shape_known(v->shape) || v->shape->dims[0].value < kImages ||
      weir_shape_bytes(v->shape, v->dtype) == 0 ||
      !weir_size_mul(weir_shape_bytes(v->shape, v->dtype), 2, &total))
    return false;
  weir_node_id reader = c->reader[id];
  if (reader == WEIR_NO_INDEX || reader == WEIR_SEVERAL) return false;
  const weir_node *node = &c->graph->nodes[reader];
  return strcmp(node->op->name, "conv2d") == 0 && node->inputs[0] == id &&
         node->inputs[1] != id;
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

weir_status weir_compile_layout(weir_compiler *c, weir_value_id id,
                                weir_node_id maker, weir_error *err) {
  bool makes = false, reads = false;
  if (c->request->options.no_layout || c->request->options.ref_kernels ||
      !is_candidate(c, id))
    return WEIR_OK;
  c->layouts[id] = WEIR_LAYOUT_N16;
  weir_status s = weir_compile_takes_layouts(c, maker, &makes, err);
  if (s == WEIR_OK && makes)
    s = weir_compile_takes_layouts(c, c->reader[id], &reads, err);
  if (s != WEIR_OK || !reads) c->layouts[id] = WEIR_LAYOUT_PLAIN;
  return s;
}

/* ---- Back to rows */

typedef struct reorder_state {
  size_t images, image; /* image: elements of one */
} reorder_state;

static weir_status reorder_run(const weir_args *args) {
  const reorder_state *state = args->state;
  const float *src = args->io[0];
  float *dst = args->io[1];
  for (size_t n = 0; n < state->images; n++) {
    const float *from =
        src + n / kImages * kImages * state->image + n % kImages;
    for (size_t i = 0; i < state->image; i++)
      dst[n * state->image + i] = from[i * kImages];
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
  c->layouts[id] = WEIR_LAYOUT_PLAIN;
  size_t bytes = weir_compile_bytes(c, id);
  state->images = (size_t)v->shape->dims[0].value;
  state->image = bytes / sizeof(float) / state->images;
  weir_value_spec to = {.storage = WEIR_STORAGE_TEMP};
  WEIR_TRY(weir_compile_value(c, id, &to, err));
  weir_instr_spec spec = {.kind = WEIR_INSTR_COPY,
                          .in = &from,
                          .out = &c->values[id],
                          .in_count = 1,
                          .out_count = 1,
                          .run = reorder_run,
                          .state = state,
                          .bytes = (int64_t)bytes * 2,
                          .cost_ns = 10 + (int64_t)(bytes / 4),
                          .node_order = v->node,
                          .node = node->name,
                          .mark = node->mark,
                          .op = node->op->name,
                          .kernel = "copy.n16_to_plain",
                          .reason = "its reader takes rows only"};
  if (weir_program_add_instr(c->builder, &spec) == WEIR_NO_INDEX)
    return weir_fail_memory(err, 0);
  return WEIR_OK;
}
