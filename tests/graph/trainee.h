/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_GRAPH_TRAINEE_H_
#define TESTS_GRAPH_TRAINEE_H_

#include <string.h>

#include "kernels/kernel.h"
#include "runtime/exec/session/session.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/train/train.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"
#include "tests/exec/support.h"

/* A graph's text, rewritten for training and run. */
typedef struct trainee {
  exec_world world;
  weir_pool *pool;
  weir_graph *graph;
  weir_train_spec *spec;
  weir_train_graph *train;
  weir_exec_session *session;
  uint64_t runs;
} trainee;

static inline void trainee_open(trainee *t, const char *text, int threads) {
  weir_error err = WEIR_ERROR_INIT;
  memset(t, 0, sizeof *t);
  exec_world_init(&t->world);
  t->pool = exec_pool(&t->world, threads);
  weir_load_options options = {.registry = weir_builtin_registry()};
  assert_ok(weir_graph_load_text(&t->world.env, weir_sv_from(text), "t",
                                 &options, &t->graph, &err),
            &err);
  assert_ok(weir_train_spec_read(t->graph, NULL, &t->spec, &err), &err);
  assert_ok(weir_graph_train(t->graph, t->spec, &t->train, &err), &err);
  weir_session_options session = {.seed = 1};
  assert_ok(weir_exec_session_create(&t->world.env, t->pool, t->train->graph,
                                     &session, &t->session, &err),
            &err);
}

static inline void trainee_close(trainee *t) {
  weir_exec_session_release(t->session);
  weir_train_graph_release(t->train);
  weir_train_spec_release(t->spec);
  weir_graph_unref(t->graph);
  weir_pool_release(t->pool);
  exec_world_check_empty(&t->world);
}

/* One input, fed by name, as f64. */
typedef struct trainee_feed {
  const char *name;
  const double *data;
  int count; /* rank 1 */
} trainee_feed;

/* One run of the accumulating or the updating targets; the loss. */
static inline double trainee_run(trainee *t, const trainee_feed *feeds,
                                 size_t count, bool accumulate) {
  weir_error err = WEIR_ERROR_INIT;
  weir_exec_feed fed[4];
  for (size_t i = 0; i < count; i++) {
    int64_t dim = feeds[i].count;
    weir_shape shape = weir_shape_of(1, &dim);
    fed[i].value =
        weir_graph_find_value(t->train->graph, weir_sv_from(feeds[i].name));
    assert_int_not_equal(fed[i].value, WEIR_NO_VALUE);
    assert_ok(
        weir_tensor_create_shaped(t->world.env.alloc,
                                  t->train->graph->values[fed[i].value].dtype,
                                  &shape, &fed[i].tensor, &err),
        &err);
    for (int k = 0; k < feeds[i].count; k++)
      weir_tensor_set_f64(fed[i].tensor, k, feeds[i].data[k]);
  }
  weir_exec_fetch loss = {.value = t->train->loss};
  weir_run_options options = {.step = t->runs++};
  weir_exec_request request = {
      .feeds = fed,
      .feed_count = count,
      .fetches = &loss,
      .fetch_count = 1,
      .targets = accumulate ? t->train->accumulate_targets : t->train->targets,
      .target_count = accumulate ? t->train->accumulate_target_count
                                 : t->train->target_count,
      .options = &options};
  assert_ok(weir_exec_run(t->session, &request, &err), &err);
  double value = weir_tensor_get_f64(loss.tensor, 0);
  weir_tensor_unref(loss.tensor);
  for (size_t i = 0; i < count; i++) weir_tensor_unref(fed[i].tensor);
  return value;
}

/* Element |i| of a variable, slot or other state. */
static inline double trainee_get(trainee *t, const char *name, int64_t i) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *tensor = NULL;
  weir_node_id id = weir_graph_find_node(t->train->graph, weir_sv_from(name));
  if (id == UINT32_MAX) fail_msg("there is no %s", name);
  assert_ok(weir_exec_variable_get(t->session, id, &tensor, &err), &err);
  double value = tensor->dtype == WEIR_I64
                     ? (double)weir_tensor_get_i64(tensor, i)
                     : weir_tensor_get_f64(tensor, i);
  weir_tensor_unref(tensor);
  return value;
}

/* A value of the training graph, fetched without training. */
static inline double trainee_fetch(trainee *t, weir_value_id value) {
  weir_error err = WEIR_ERROR_INIT;
  weir_exec_fetch fetch = {.value = value};
  weir_exec_request request = {.fetches = &fetch, .fetch_count = 1};
  assert_ok(weir_exec_run(t->session, &request, &err), &err);
  double result = weir_tensor_get_f64(fetch.tensor, 0);
  weir_tensor_unref(fetch.tensor);
  return result;
}

#endif
