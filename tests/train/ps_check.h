/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_PS_CHECK_H_
#define TESTS_TRAIN_PS_CHECK_H_

#include <string.h>

#include "kernels/kernel.h"
#include "runtime/base/fs/fs_system.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/train/train_spec.h"
#include "runtime/train/ps/job.h"
#include "tests/exec/support.h"

/* Shared by the tests of training over parameter servers: a world of counted
 * memory with the job of a graph that is written as text. */

typedef struct ps_world {
  exec_world world;
  weir_graph *graph;
  weir_train_spec *spec;
  weir_ps_job *job;
  weir_error err;
} ps_world;

/* A model with what a server meets: slots, averages of batches, a counter that
 * the graph assigns, dropped units, a schedule. Ends within `train`. */
#define PS_NET                                                                 \
  "weir: 1\n"                                                                  \
  "import: {nn: std/nn}\n"                                                     \
  "inputs: {x: 'f32[8, 2]', label: 'i32[8]'}\n"                                \
  "nodes:\n"                                                                   \
  "  n: state([], dtype=i64)\n"                                                \
  "  count: assign_add(n, 1)\n"                                                \
  "  h: nn.batch_norm(nn.dense(x, units=8))\n"                                 \
  "  d: dropout(tanh(h), keep=0.75)\n"                                         \
  "  logits: nn.dense(d, units=2)\n"                                           \
  "  loss: mean(sparse_softmax_xent(logits, label))\n"                         \
  "  acc: mean(cast(equal(argmax(logits, axis=-1), cast(label, i64)), f32))\n" \
  "outputs: [logits]\n"                                                        \
  "train:\n  minimize: loss\n  optimizer: adam(lr=0.05, l2=0.01)\n"            \
  "  ema: {decay: 0.9}\n  schedule: cosine(steps=20)\n"                        \
  "  eval: {data: test, metrics: [acc]}\n"

static inline void ps_world_load(ps_world *w, const char *text,
                                 uint64_t graph_seed) {
  memset(w, 0, sizeof *w);
  w->err = (weir_error)WEIR_ERROR_INIT;
  exec_world_init(&w->world);
  w->world.env.fs = &weir_system_fs;
  weir_load_options options = {.registry = weir_builtin_registry(),
                               .seed = graph_seed};
  assert_ok(weir_graph_load_text(&w->world.env, weir_sv_from(text), "t",
                                 &options, &w->graph, &w->err),
            &w->err);
  assert_ok(weir_train_spec_read(w->graph, NULL, &w->spec, &w->err), &w->err);
}

static inline weir_status ps_world_job(ps_world *w, uint32_t servers,
                                       uint32_t workers, uint64_t seed) {
  weir_ps_job_options options = {servers, workers, seed};
  return weir_ps_job_create(&w->world.env, w->graph, w->spec, &options, &w->job,
                            &w->err);
}

/* Of |text| with |more| at its end. */
static inline weir_status ps_world_open(ps_world *w, const char *text,
                                        const char *more, uint32_t servers,
                                        uint32_t workers) {
  char all[4096];
  int n = snprintf(all, sizeof all, "%s%s", text, more);
  assert_true(n > 0 && (size_t)n < sizeof all);
  ps_world_load(w, all, 0);
  return ps_world_job(w, servers, workers, 5);
}

static inline void ps_world_close(ps_world *w) {
  weir_ps_job_release(w->job);
  weir_train_spec_release(w->spec);
  weir_graph_unref(w->graph);
  exec_world_check_empty(&w->world);
}

#endif
