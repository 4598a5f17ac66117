/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_GRAPH_CASE_H_
#define TESTS_CUDA_GRAPH_CASE_H_

#include "tests/cuda/gemm_case.h"

/* A chain of work for a queue, of every kind that a graph may have: copies in,
 * within and out, launches, products with an inner dimension and without one.
 *
 *   y = relu(x), z = y w + bias, z[0] = 7, u = bias in each row
 *
 * All of 4 x 4 f32, |x| from |in|; z, then u, go to |out|. Values are small
 * integers, so all results are exact. */

enum { GRAPH_CASE_SIDE = 4, GRAPH_CASE_COUNT = 16 };

typedef struct graph_case {
  weir_device *d;
  weir_queue *q, *p; /* |p|: another one */
  weir_event *e;
  weir_device_buffer x, y, w, bias, z, t, u, scratch[2];
  float *in, *out; /* of host_alloc: 16 and 32 */
  weir_gemm_plan *product, *rows;
  const weir_device_body *unary, *fill;
  weir_device_graph *graph;
  weir_error err; /* of all functions */
  bool created;   /* the device */
  bool ready;     /* graph_case_create succeeded */
} graph_case;

/* Zeroes |*c| and makes all but the graph; what was made stays after a
 * failure. */
weir_status graph_case_create(graph_case *c, const weir_allocator *alloc,
                              size_t limit_bytes);
/* In the order that device.h asks for. */
void graph_case_release(graph_case *c);

/* Other values in |in| for each |round|, 99 in |out|. */
void graph_case_fill(graph_case *c, int round);
/* Puts the chain into |c->q|. */
weir_status graph_case_put(graph_case *c);
/* Puts it into a graph, |c->graph|; ends the capture in any case. */
weir_status graph_case_capture(graph_case *c);
/* Waits for all work of |q|, of |c->d|. */
weir_status graph_case_wait(graph_case *c, weir_queue *q);
/* Fails the test unless |out| is what the chain makes of |in|. */
void graph_case_check(const graph_case *c);

#endif
