/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_GPU_GRAPH_H_
#define WEIR_EXEC_GPU_GRAPH_H_

#include "runtime/exec/gpu/gpu_frame.h"

/* Work of a task that was kept, to be done again by one call.
 *
 * Work names addresses: those of the frame never change, those of variables do
 * from step to step, usually between two. So a task keeps a graph for each set
 * of them, WEIR_GPU_GRAPHS at most; the least recently used goes. */

enum { WEIR_GPU_GRAPHS = 4 };

typedef struct weir_gpu_graph {
  void **key; /* the addresses, in the order of the task's |slots| */
  weir_device_graph *graph;
  uint32_t seen; /* runs with these addresses */
  uint64_t used; /* when, for the LRU */
} weir_gpu_graph;

/* Why the work of a run is queued call by call. */
typedef enum weir_gpu_queued {
  WEIR_GPU_REPLAYED,
  WEIR_GPU_TRACED,
  WEIR_GPU_TRAPS,
  WEIR_GPU_NO_CAPTURE, /* of the device */
  WEIR_GPU_ASKS,       /* the host looks at data in the middle */
  WEIR_GPU_LONG,       /* it is more calls than are worth keeping */
  WEIR_GPU_REFUSED,    /* by the device, for this task */
  WEIR_GPU_MOVES,      /* its addresses are other ones each time */
  WEIR_GPU_QUEUED_COUNT
} weir_gpu_queued;

/* Says so to the one that the GPUs' options name, once for each reason and GPU;
 * |err|: what the device said, or NULL. */
void weir_gpu_graph_explain(weir_exec_gpu *gpu, weir_gpu_queued why,
                            const weir_error *err);

/* Makes what |task|'s graphs need; released with the frame. Errors: W6001. */
weir_status weir_gpu_graphs_create(weir_gpu_task *task, weir_error *err);
void weir_gpu_graphs_release(weir_gpu_task *task);

/* The graph for the addresses of this run, which may have none yet. */
weir_gpu_graph *weir_gpu_graph_find(weir_gpu_task *task);

#endif
