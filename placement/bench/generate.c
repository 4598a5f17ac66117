/* SPDX-License-Identifier: Apache-2.0 */
/* Families of task graphs. Each generator emits its tasks in the order of a
 * sequential run of the algorithm, which is topological by nature, and keeps no
 * more than the last writer of each tile (factorisations) or of each head.
 * Invariant: tasks and costs follow from kind, size and seed alone.
 * Cost: O(tasks), each emitted as soon as it is known. */
#include "placement/bench/generate.h"

#include <stdio.h>
#include <string.h>

#include "placement/bench/generate_internal.h"
#include "placement/bench/generate_planted.h"
#include "placement/bench/generate_stack.h"
#include "runtime/base/mix.h"
#include "runtime/base/table.h"

bool weir_generator_emit(weir_generator *g, const weir_generator_task *t) {
  char name[96];
  snprintf(name, sizeof name, "%s_%lld_%lld_%lld", t->name,
           (long long)t->index[0], (long long)t->index[1],
           (long long)t->index[2]);
  weir_task task = {name, t->cost_ns, t->out_bytes, t->inputs, t->count};
  g->count++;
  return g->sink->node(g->sink->self, &task);
}

uint64_t weir_generator_below(weir_generator *g, uint64_t limit) {
  return limit == 0 ? 0 : weir_mix_next(&g->random) % limit;
}

/* ---- Tiled factorisations: the last task that wrote tile (i, j). */

enum { TILE_NS = 1000, TILE_BYTES = 32768 };

static uint32_t *tile(weir_generator *g, int64_t i, int64_t j) {
  return &g->last[i * g->side + j];
}

/* |t| without its size and the inputs that no task wrote. It writes tile
 * (index[0], index[1]). */
static bool emit_tile(weir_generator *g, weir_generator_task t) {
  uint32_t inputs[4], used = 0, id = (uint32_t)g->count;
  for (uint32_t x = 0; x < t.count; x++)
    if (t.inputs[x] != UINT32_MAX) inputs[used++] = t.inputs[x];
  t.inputs = inputs;
  t.count = used;
  t.out_bytes = TILE_BYTES;
  if (!weir_generator_emit(g, &t)) return false;
  *tile(g, t.index[0], t.index[1]) = id;
  return true;
}

/* Tasks of side n: n (n+1) (n+2) / 6. */
static bool cholesky(weir_generator *g) {
  for (int64_t k = 0; k < g->side; k++) {
    if (!emit_tile(g, (weir_generator_task){.name = "potrf",
                                            .index = {k, k, k},
                                            .cost_ns = TILE_NS / 3,
                                            .inputs = tile(g, k, k),
                                            .count = 1}))
      return false;
    for (int64_t i = k + 1; i < g->side; i++) {
      uint32_t in[] = {*tile(g, k, k), *tile(g, i, k)};
      if (!emit_tile(g, (weir_generator_task){.name = "trsm",
                                              .index = {i, k, k},
                                              .cost_ns = TILE_NS,
                                              .inputs = in,
                                              .count = 2}))
        return false;
    }
    for (int64_t i = k + 1; i < g->side; i++)
      for (int64_t j = k + 1; j <= i; j++) {
        uint32_t in[] = {*tile(g, i, k), *tile(g, j, k), *tile(g, i, j)};
        if (!emit_tile(g, (weir_generator_task){
                              .name = i == j ? "syrk" : "gemm",
                              .index = {i, j, k},
                              .cost_ns = i == j ? TILE_NS : 2 * TILE_NS,
                              .inputs = in,
                              .count = 3}))
          return false;
      }
  }
  return true;
}

static bool lu(weir_generator *g) {
  for (int64_t k = 0; k < g->side; k++) {
    if (!emit_tile(g, (weir_generator_task){.name = "getrf",
                                            .index = {k, k, k},
                                            .cost_ns = 2 * TILE_NS / 3,
                                            .inputs = tile(g, k, k),
                                            .count = 1}))
      return false;
    for (int64_t x = 1; x < 2 * (g->side - k) - 1; x++) {
      int64_t i = x < g->side - k ? k + x : k;
      int64_t j = x < g->side - k ? k : k + x - (g->side - k) + 1;
      uint32_t in[] = {*tile(g, k, k), *tile(g, i, j)};
      if (!emit_tile(g, (weir_generator_task){.name = "trsm",
                                              .index = {i, j, k},
                                              .cost_ns = TILE_NS,
                                              .inputs = in,
                                              .count = 2}))
        return false;
    }
    for (int64_t i = k + 1; i < g->side; i++)
      for (int64_t j = k + 1; j < g->side; j++) {
        uint32_t in[] = {*tile(g, i, k), *tile(g, k, j), *tile(g, i, j)};
        if (!emit_tile(g, (weir_generator_task){.name = "gemm",
                                                .index = {i, j, k},
                                                .cost_ns = 2 * TILE_NS,
                                                .inputs = in,
                                                .count = 3}))
          return false;
      }
  }
  return true;
}

/* Butterfly: side points (a power of two), log2 rounds; in round r point i
 * takes itself and the point that differs in bit r - 1. */
static bool fft(weir_generator *g) {
  for (int64_t i = 0; i < g->side; i++)
    if (!weir_generator_emit(g, &(weir_generator_task){.name = "input",
                                                       .index = {i},
                                                       .cost_ns = TILE_NS,
                                                       .out_bytes = 8192}))
      return false;
  for (int64_t round = 1, reach = 1; reach < g->side; round++, reach *= 2)
    for (int64_t i = 0; i < g->side; i++) {
      int64_t before = (round - 1) * g->side;
      uint32_t in[] = {(uint32_t)(before + i),
                       (uint32_t)(before + (i ^ reach))};
      if (!weir_generator_emit(g, &(weir_generator_task){.name = "fly",
                                                         .index = {round, i},
                                                         .cost_ns = 2 * TILE_NS,
                                                         .out_bytes = 8192,
                                                         .inputs = in,
                                                         .count = 2}))
        return false;
    }
  return true;
}

/* A line of side cells through side steps. */
static bool stencil(weir_generator *g) {
  for (int64_t t = 0; t < g->side; t++)
    for (int64_t i = 0; i < g->side; i++) {
      uint32_t in[3], count = 0;
      for (int64_t d = -1; t > 0 && d <= 1; d++)
        if (i + d >= 0 && i + d < g->side)
          in[count++] = (uint32_t)((t - 1) * g->side + i + d);
      if (!weir_generator_emit(g, &(weir_generator_task){.name = "cell",
                                                         .index = {t, i},
                                                         .cost_ns = TILE_NS,
                                                         .out_bytes = 4096,
                                                         .inputs = in,
                                                         .count = count}))
        return false;
    }
  return true;
}

/* Layers of sqrt(nodes) tasks, each with up to three inputs of the layer
 * before. */
static bool layered(weir_generator *g) {
  int64_t total = (int64_t)g->options->nodes;
  for (int64_t n = 0; n < total; n++) {
    uint32_t in[3], count = 0;
    int64_t layer = n / g->side;
    uint64_t wanted = layer == 0 ? 0 : 1 + weir_generator_below(g, 3);
    for (uint64_t x = 0; x < wanted; x++) {
      uint32_t from =
          (uint32_t)((layer - 1) * g->side +
                     (int64_t)weir_generator_below(g, (uint64_t)g->side));
      bool twice = false;
      for (uint32_t y = 0; y < count; y++) twice |= in[y] == from;
      if (!twice) in[count++] = from;
    }
    int64_t cost = 500 + (int64_t)weir_generator_below(g, 9501);
    int64_t bytes = 1024 + (int64_t)weir_generator_below(g, 65536);
    if (!weir_generator_emit(g, &(weir_generator_task){.name = "task",
                                                       .index = {layer, n},
                                                       .cost_ns = cost,
                                                       .out_bytes = bytes,
                                                       .inputs = in,
                                                       .count = count}))
      return false;
  }
  return true;
}

/* ---- Kinds */

/* The largest side whose n^3 / divisor tasks are no more than |nodes|. */
static int64_t cube_side(uint64_t nodes, uint64_t divisor) {
  int64_t n = 1;
  while ((uint64_t)((n + 1) * (n + 1)) * (uint64_t)(n + 1) / divisor <= nodes)
    n++;
  return n;
}

static int64_t square_side(uint64_t nodes) {
  int64_t n = 1;
  while ((uint64_t)((n + 1) * (n + 1)) <= nodes) n++;
  return n;
}

static int64_t cholesky_side(uint64_t nodes) {
  return cube_side(nodes, 6);
}
static int64_t lu_side(uint64_t nodes) {
  return cube_side(nodes, 3);
}
static int64_t fft_side(uint64_t nodes) {
  uint64_t n = 2, rounds = 2;
  while (2 * n * (rounds + 1) <= nodes) n *= 2, rounds++;
  return (int64_t)n;
}
static int64_t layers_of(uint64_t nodes, uint64_t most_batches) {
  uint64_t each =
      WEIR_STACK_LAYER_TASKS * weir_stack_batches(nodes, most_batches);
  return nodes < 2 * each ? 1 : (int64_t)(nodes / each);
}
static int64_t transformer_side(uint64_t nodes) {
  return layers_of(nodes, 1);
}
static int64_t pipeline_side(uint64_t nodes) {
  return layers_of(nodes, WEIR_STACK_BATCHES);
}
static int64_t replicas_side(uint64_t nodes) {
  return layers_of(nodes, WEIR_STACK_REPLICAS);
}

typedef struct family {
  const char *name;
  int64_t (*side)(uint64_t nodes);
  bool (*run)(weir_generator *g);
  bool tiles; /* remembers the last task of each tile of side x side */
} family;

static const family families[] = {
    {"cholesky", cholesky_side, cholesky, true},
    {"lu", lu_side, lu, true},
    {"fft", fft_side, fft, false},
    {"stencil", square_side, stencil, false},
    {"layered", square_side, layered, false},
    {"transformer", transformer_side, weir_generate_transformer, false},
    {"pipeline", pipeline_side, weir_generate_pipeline, false},
    {"replicas", replicas_side, weir_generate_replicas, false},
    {"planted", NULL, weir_generate_planted, false}};

const char *weir_generate_kind(size_t i) {
  return i < WEIR_TABLE_COUNT(families) ? families[i].name : NULL;
}

static weir_status no_kind(weir_sv kind, weir_error *err) {
  char names[128] = "";
  size_t n = 0;
  for (size_t i = 0; weir_generate_kind(i) != NULL && n < sizeof names; i++)
    n += (size_t)snprintf(names + n, sizeof names - n, "%s%s",
                          i == 0 ? "" : ", ", weir_generate_kind(i));
  return weir_fail(err, WEIR_W0002, NULL,
                   "no generator is called %.*s; there are %s", (int)kind.size,
                   kind.data, names);
}

weir_status weir_generate(const weir_allocator *alloc, weir_sv kind,
                          const weir_generate_options *options,
                          const weir_task_sink *sink, weir_generated *out,
                          weir_error *err) {
  const family *f = families;
  const family *end = families + WEIR_TABLE_COUNT(families);
  while (f < end && !weir_sv_is(kind, f->name)) f++;
  if (f == end) return no_kind(kind, err);
  weir_generator g = {.alloc = alloc,
                      .options = options,
                      .sink = sink,
                      .random = options->seed};
  if (f->side != NULL) g.side = f->side(options->nodes);
  if (f->tiles) {
    size_t tiles = (size_t)g.side * (size_t)g.side;
    g.last = weir_alloc_array(alloc, tiles, sizeof *g.last);
    if (g.last == NULL) return weir_fail_memory(err, tiles * sizeof *g.last);
    memset(g.last, 0xff, tiles * sizeof *g.last);
  }
  bool done = f->run(&g);
  weir_free(alloc, g.last);
  *out = (weir_generated){g.count, g.optimum_ns};
  return done ? WEIR_OK : weir_fail_memory(err, sizeof(weir_task));
}
