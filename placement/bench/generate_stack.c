/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of an encoder with 8 heads: 3 * 8 projections, 8 attentions, a join,
 * two products of the feed-forward part and a norm. The costs are those of the
 * arithmetic, in units of a head's projection; the sizes those of 512 rows of
 * 512 numbers, and of the layer's weights. */
#include "placement/bench/generate_stack.h"

enum {
  HEADS = 8,
  UNIT_NS = 1000,
  HIDDEN_BYTES = 1 << 20,
  WEIGHT_BYTES = 12 << 20
};

uint64_t weir_stack_batches(uint64_t nodes, uint64_t most) {
  while (most > 1 && nodes / (2 * WEIR_STACK_LAYER_TASKS) < most) most /= 2;
  return most;
}

/* Where one batch stands in the stack. */
typedef struct batch {
  int64_t number;
  uint32_t x;       /* the task whose result is the layer's input */
  uint32_t weights; /* of the layer; UINT32_MAX: none */
} batch;

static bool emit(weir_generator *g, const batch *b, int64_t layer, int64_t at,
                 weir_generator_task t) {
  t.index[0] = b->number;
  t.index[1] = layer;
  t.index[2] = at;
  return weir_generator_emit(g, &t);
}

static bool embed(weir_generator *g, batch *b) {
  b->x = (uint32_t)g->count;
  return emit(
      g, b, 0, 0,
      (weir_generator_task){
          .name = "embed", .cost_ns = UNIT_NS, .out_bytes = HIDDEN_BYTES});
}

static bool head(weir_generator *g, const batch *b, int64_t layer, int64_t h,
                 uint32_t *out) {
  uint32_t in[3];
  for (int64_t part = 0; part < 3; part++) {
    in[part] = (uint32_t)g->count;
    if (!emit(g, b, layer, h * 4 + part,
              (weir_generator_task){.name = "project",
                                    .cost_ns = 4 * UNIT_NS,
                                    .out_bytes = HIDDEN_BYTES / HEADS,
                                    .inputs = &b->x,
                                    .count = 1}))
      return false;
  }
  *out = (uint32_t)g->count;
  return emit(g, b, layer, h * 4 + 3,
              (weir_generator_task){.name = "attend",
                                    .cost_ns = 3 * UNIT_NS,
                                    .out_bytes = HIDDEN_BYTES / HEADS,
                                    .inputs = in,
                                    .count = 3});
}

static bool tail(weir_generator *g, batch *b, int64_t layer,
                 const uint32_t *heads) {
  static const struct {
    const char *name;
    int64_t cost, bytes;
    bool weighted;
  } parts[] = {{"join", 12 * UNIT_NS, HIDDEN_BYTES, true},
               {"ff1", 48 * UNIT_NS, 4 * HIDDEN_BYTES, true},
               {"ff2", 48 * UNIT_NS, HIDDEN_BYTES, true},
               {"norm", UNIT_NS, HIDDEN_BYTES, false}};
  for (int i = 0; i < 4; i++) {
    uint32_t in[HEADS + 1], count = 0, id = (uint32_t)g->count;
    for (int h = 0; i == 0 && h < HEADS; h++) in[count++] = heads[h];
    if (i != 0) in[count++] = b->x;
    if (parts[i].weighted && b->weights != UINT32_MAX) in[count++] = b->weights;
    if (!emit(g, b, layer, HEADS * 4 + i,
              (weir_generator_task){.name = parts[i].name,
                                    .cost_ns = parts[i].cost,
                                    .out_bytes = parts[i].bytes,
                                    .inputs = in,
                                    .count = count}))
      return false;
    b->x = id;
  }
  return true;
}

static bool layer_of(weir_generator *g, batch *b, int64_t layer) {
  uint32_t heads[HEADS];
  for (int64_t h = 0; h < HEADS; h++)
    if (!head(g, b, layer, h, &heads[h])) return false;
  return tail(g, b, layer, heads);
}

bool weir_generate_transformer(weir_generator *g) {
  batch b = {.weights = UINT32_MAX};
  if (!embed(g, &b)) return false;
  for (int64_t layer = 0; layer < g->side; layer++)
    if (!layer_of(g, &b, layer)) return false;
  return true;
}

bool weir_generate_pipeline(weir_generator *g) {
  batch batches[WEIR_STACK_BATCHES];
  int64_t count =
      (int64_t)weir_stack_batches(g->options->nodes, WEIR_STACK_BATCHES);
  for (int64_t i = 0; i < count; i++) {
    batches[i] = (batch){.number = i};
    if (!embed(g, &batches[i])) return false;
  }
  for (int64_t layer = 0; layer < g->side; layer++) {
    uint32_t weights = (uint32_t)g->count;
    if (!emit(g, &batches[0], layer, WEIR_STACK_LAYER_TASKS,
              (weir_generator_task){.name = "weights",
                                    .cost_ns = UNIT_NS,
                                    .out_bytes = WEIGHT_BYTES}))
      return false;
    for (int64_t i = 0; i < count; i++) {
      batches[i].weights = weights;
      if (!layer_of(g, &batches[i], layer)) return false;
    }
  }
  return true;
}

bool weir_generate_replicas(weir_generator *g) {
  uint32_t last[WEIR_STACK_REPLICAS];
  uint32_t count =
      (uint32_t)weir_stack_batches(g->options->nodes, WEIR_STACK_REPLICAS);
  for (int64_t i = 0; i < count; i++) {
    batch b = {.number = i, .weights = UINT32_MAX};
    if (!embed(g, &b)) return false;
    for (int64_t layer = 0; layer < g->side; layer++)
      if (!layer_of(g, &b, layer)) return false;
    last[i] = b.x;
  }
  for (uint32_t step = 1; step < count; step *= 2)
    for (uint32_t i = 0; i < count; i += 2 * step) {
      uint32_t in[] = {last[i], last[i + step]};
      batch b = {.number = i};
      last[i] = (uint32_t)g->count;
      if (!emit(g, &b, g->side, step,
                (weir_generator_task){.name = "add",
                                      .cost_ns = UNIT_NS,
                                      .out_bytes = HIDDEN_BYTES,
                                      .inputs = in,
                                      .count = 2}))
        return false;
    }
  return true;
}
