/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_EXEC_GENERATE_H_
#define TESTS_EXEC_GENERATE_H_

#include <stddef.h>
#include <stdint.h>

/* Random graphs, as text of the graph language.
 *
 * Every choice is taken from the bytes given, or, when there are none, from a
 * generator of random numbers: the same bytes or seed give the same graph. The
 * graphs are valid, and tame: values stay near 1 and no op is discontinuous,
 * so that two ways to compute one differ by rounding only. Sizes may be 0. */

enum {
  GEN_RANK = 5,
  GEN_VALUES = 96,
  GEN_INPUTS = 3,
  GEN_TEXT = 16384,
  GEN_ELEMENTS = 1 << 16, /* of a value, at most */
  GEN_LARGE = 1 << 19,    /* the same in a large graph */
  GEN_PRODUCTS = 1 << 23  /* multiplications of one node, at most */
};

typedef struct gen_value {
  int rank;
  int64_t dims[GEN_RANK];
} gen_value;

typedef struct gen {
  const uint8_t *bytes; /* NULL: random numbers */
  size_t size, at;
  uint64_t state;
  int large;                    /* dimensions for several threads */
  gen_value values[GEN_VALUES]; /* named v0, v1, ...; all of them f32 */
  uint32_t count, inputs;       /* the first ones are the graph's inputs */
  uint32_t weights;
  char text[GEN_TEXT];
  size_t used;
} gen;

/* A graph of about |nodes| nodes in g->text; its outputs are o0, o1, ... */
void gen_from_seed(gen *g, uint64_t seed, uint32_t nodes);
void gen_from_bytes(gen *g, const uint8_t *bytes, size_t size, uint32_t nodes);

/* A number below |n|; 0 when n is 0. */
uint32_t gen_pick(gen *g, uint32_t n);
int64_t gen_elements(const gen_value *v);

/* ---- Between generate.c and generate_ops.c */
/* Adds text; once the buffer is full, nothing more. */
void gen_put(gen *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void gen_put_dims(gen *g, int rank, const int64_t *dims);
/* A new value of that shape; its number. */
uint32_t gen_new(gen *g, const gen_value *shape);
/* A line with a variable of that shape, between |low| and |high|; its number:
 * w0, w1, ... */
uint32_t gen_weight(gen *g, int rank, const int64_t *dims, const char *low,
                    const char *high);
/* Adds one node, or several, of a random kind. */
void gen_node(gen *g);

#endif
