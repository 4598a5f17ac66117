/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_GENERATE_H_
#define PLACEMENT_GENERATE_H_

#include "runtime/base/alloc.h"
#include "runtime/base/status.h"
#include "runtime/base/sv.h"

/* Task graphs of known families, of about any size, for experiments.
 *
 * A generator calls |node| once per task, in topological order; the taker of
 * the tasks (a problem, a graph file) is behind the sink. The same kind, size
 * and seed give the same tasks. */

typedef struct weir_task {
  const char *name;
  int64_t cost_ns;
  int64_t out_bytes;
  const uint32_t *inputs; /* earlier tasks */
  uint32_t input_count;
} weir_task;

typedef struct weir_task_sink {
  void *self;
  bool (*node)(void *self, const weir_task *task); /* false: stop */
} weir_task_sink;

typedef struct weir_generate_options {
  uint64_t nodes; /* about so many; planted and layered exactly */
  uint64_t seed;
  uint32_t processors; /* planted: of the plan that is hidden in it */
  int64_t fs_per_byte; /* planted: no copy is slower than its slack */
} weir_generate_options;

/* A generator's figures besides its tasks. */
typedef struct weir_generated {
  uint64_t nodes;
  int64_t optimum_ns; /* planted: no plan is shorter, one is as short; else 0 */
} weir_generated;

/* |kind|: cholesky, lu, fft, stencil, layered, transformer,
 * pipeline, replicas, planted.
 * Errors: W0002 (no such kind, with the nearest name), W6001. */
weir_status weir_generate(const weir_allocator *alloc, weir_sv kind,
                          const weir_generate_options *options,
                          const weir_task_sink *sink,
                          weir_generated *out_generated, weir_error *err);
/* The name of the |i|-th family; NULL: there are no more. */
const char *weir_generate_kind(size_t i);

#endif
