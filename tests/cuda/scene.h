/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_SCENE_H_
#define TESTS_CUDA_SCENE_H_

#include "placement/place.h"
#include "runtime/exec/gpu/gpus.h"
#include "runtime/exec/session/session_run.h"
#include "tests/cuda/cuda_world.h"
#include "tests/exec/support.h"

/* A session whose nodes are on GPUs.
 *
 *   scene_open(&s, text, "worker=1,gpu=1", 2);
 *   assert_ok(scene_run(&s, fetches, NULL), &s.err);
 *   scene_drop(&s, fetches);
 *   scene_close(&s);                            checks that nothing is left */

enum { kOutputs = 8 };

typedef struct scene {
  exec_world world;
  weir_pool *pool;
  weir_graph *graph;
  weir_placing *placing;
  weir_exec_session *session;
  bool tf32;       /* may be set before scene_open_session */
  int64_t wait_ns; /* of its GPUs; may be set before scene_open_session */
  weir_error err;
} scene;

/* The graph and the pool: what is not to fail. */
void scene_open_graph(scene *s, const char *text, int threads);

/* The session, on |cluster|. */
weir_status scene_open_session(scene *s, const char *cluster);

/* Both; fails the test. */
void scene_open(scene *s, const char *text, const char *cluster, int threads);

/* No queue is destroyed with work left, nor that of a graph; a lost GPU may
 * leave some. */
void scene_close(scene *s);
void scene_close_lost(scene *s);

/* A run that fetches all outputs; scene_drop gives them back. */
weir_status scene_run(scene *s, weir_exec_fetch *fetches,
                      const weir_run_options *options);
void scene_drop(const scene *s, weir_exec_fetch *fetches);

/* The call or allocation that fails after the k-th, in tests that fail each.
 * The memory that a failure leaves behind is of a few kinds, and ASan's build
 * is slow: one in three there. */
static inline uint64_t scene_next(uint64_t k) {
#if defined(__SANITIZE_ADDRESS__)
  return k + 3;
#else
  return k + 1;
#endif
}

/* The node called |name|; fails the test. */
weir_node_id scene_node(const scene *s, const char *name);

#endif
