/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_GENERATE_INTERNAL_H_
#define PLACEMENT_GENERATE_INTERNAL_H_

#include "placement/bench/generate.h"

/* One run of a generator. */
typedef struct weir_generator {
  const weir_allocator *alloc;
  const weir_generate_options *options;
  const weir_task_sink *sink;
  uint64_t random, count;
  int64_t side;   /* of the tiling, the grid, the layers */
  uint32_t *last; /* per tile: the task that wrote it last */
  int64_t optimum_ns;
} weir_generator;

/* A task NAME_I_J_K and the tasks whose results it takes. */
typedef struct weir_generator_task {
  const char *name;
  int64_t index[3];
  int64_t cost_ns, out_bytes;
  const uint32_t *inputs;
  uint32_t count;
} weir_generator_task;

/* Gives the sink |task|. false: it wants no more. */
bool weir_generator_emit(weir_generator *g, const weir_generator_task *task);
/* From 0 to |limit| - 1. */
uint64_t weir_generator_below(weir_generator *g, uint64_t limit);

#endif
