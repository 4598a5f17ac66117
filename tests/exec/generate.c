/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/exec/generate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* splitmix64 */
static uint64_t next(gen *g) {
  uint64_t z = (g->state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint32_t gen_pick(gen *g, uint32_t n) {
  if (n == 0) return 0;
  if (g->bytes == NULL) return (uint32_t)(next(g) % n);
  return g->at < g->size ? g->bytes[g->at++] % n : 0;
}

int64_t gen_elements(const gen_value *v) {
  int64_t n = 1;
  for (int i = 0; i < v->rank; i++) n *= v->dims[i];
  return n;
}

void gen_put(gen *g, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(g->text + g->used, GEN_TEXT - g->used, fmt, args);
  va_end(args);
  g->used += (size_t)n;
  if (g->used >= GEN_TEXT) g->used = GEN_TEXT - 1;
}

void gen_put_dims(gen *g, int rank, const int64_t *dims) {
  for (int i = 0; i < rank; i++)
    gen_put(g, "%s%" PRId64, i > 0 ? ", " : "", dims[i]);
}

uint32_t gen_new(gen *g, const gen_value *shape) {
  g->values[g->count] = *shape;
  return g->count++;
}

uint32_t gen_weight(gen *g, int rank, const int64_t *dims, const char *low,
                    const char *high) {
  gen_put(g, "  w%u: var([", g->weights);
  gen_put_dims(g, rank, dims);
  gen_put(g, "], init=uniform(%s, %s))\n", low, high);
  return g->weights++;
}

static int64_t pick_dim(gen *g) {
  static const int64_t small[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33};
  static const int64_t large[] = {16, 33, 64, 100, 128, 257};
  if (gen_pick(g, 40) == 39) return 0;
  if (g->large) return large[gen_pick(g, 6)];
  return small[gen_pick(g, 12)];
}

static void put_input(gen *g) {
  gen_value v = {.rank = (int)gen_pick(g, 5)};
  int64_t room = g->large ? GEN_LARGE : GEN_ELEMENTS;
  for (int i = 0; i < v.rank; i++) {
    v.dims[i] = pick_dim(g);
    if (v.dims[i] > room) v.dims[i] = 1;
    if (v.dims[i] > 0) room /= v.dims[i];
  }
  gen_put(g, "  v%u: 'f32[", gen_new(g, &v));
  gen_put_dims(g, v.rank, v.dims);
  gen_put(g, "]'\n");
}

static void put_outputs(gen *g) {
  uint32_t others = g->count > 2 ? 2 : 0;
  gen_put(g, "outputs: {o0: v%u", g->count - 1);
  for (uint32_t i = 0; i < others; i++)
    gen_put(g, ", o%u: v%u", i + 1, gen_pick(g, g->count));
  gen_put(g, "}\n");
}

static void generate(gen *g, uint32_t nodes) {
  g->large = gen_pick(g, 8) == 7;
  gen_put(g, "weir: 1\ninputs:\n");
  g->inputs = 1 + gen_pick(g, GEN_INPUTS);
  for (uint32_t i = 0; i < g->inputs; i++) put_input(g);
  gen_put(g, "nodes:\n  first: neg(v0)\n");
  for (uint32_t i = 0; i < nodes; i++) {
    if (g->count + 4 > GEN_VALUES || g->used + 1024 > GEN_TEXT) break;
    gen_node(g);
  }
  put_outputs(g);
}

void gen_from_seed(gen *g, uint64_t seed, uint32_t nodes) {
  memset(g, 0, sizeof *g);
  g->state = seed;
  generate(g, nodes);
}

void gen_from_bytes(gen *g, const uint8_t *bytes, size_t size, uint32_t nodes) {
  static const uint8_t none = 0;
  memset(g, 0, sizeof *g);
  g->bytes = size > 0 ? bytes : &none;
  g->size = size;
  generate(g, nodes);
}
