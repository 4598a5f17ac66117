/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_WORKER_PLACING_H_
#define WEIR_API_WORKER_PLACING_H_

#include "runtime/base/env.h"
#include "runtime/graph/graph.h"

/* The placing of a worker's own step, apart from the parts of a training, which
 * have another split than the placer's. */

struct weir_placing;

/* The GPUs of a worker. */
typedef struct weir_worker_gpus {
  uint32_t count;
  int64_t memory_bytes; /* of each, by the cluster; 0: it does not say */
  bool in_turns;        /* with other processes */
} weir_worker_gpus;

/* Places |graph| on one CPU and |gpus|; any request may be dropped. |env|
 * outlives the placing. Errors: those of weir_placing_create. */
weir_status weir_worker_placing_create(const weir_env *env,
                                       const weir_graph *graph,
                                       weir_worker_gpus gpus,
                                       struct weir_placing **out_placing,
                                       weir_error *err);
void weir_worker_placing_release(struct weir_placing *placing); /* NULL-safe */

#endif
