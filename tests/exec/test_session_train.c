/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "kernels/kernel.h"
#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/support.h"

/* Sessions for training: snapshots that stay as they were, and steps
 * that are refused after they were computed. */

static const char kCounter[] =
    "weir: 1\n"
    "nodes:\n"
    "  v: var([4], init=zeros())\n"
    "  a: assign_add(v, [1, 1, 1, 1])\n"
    "outputs: [a]\n";

typedef struct scene {
  exec_world world;
  weir_graph *graph;
  weir_pool *pool;
  weir_exec_session *session;
  weir_binding *binding;
  weir_node_id var;
  weir_exec_fetch sum;
  weir_error err;
} scene;

static void open_scene(scene *s) {
  *s = (scene){.err = WEIR_ERROR_INIT};
  weir_load_options load = {.registry = weir_builtin_registry()};
  exec_world_init(&s->world);
  s->pool = exec_pool(&s->world, 2);
  assert_ok(weir_graph_load_text(&s->world.env, weir_sv_from(kCounter),
                                 "counter.yaml", &load, &s->graph, &s->err),
            &s->err);
  assert_ok(weir_exec_session_create(&s->world.env, s->pool, s->graph, NULL,
                                     &s->session, &s->err),
            &s->err);
  s->var = weir_graph_find_node(s->graph, WEIR_SV_LIT("v"));
  s->sum.value = s->graph->outputs[0].value;
  weir_exec_request request = {.fetches = &s->sum, .fetch_count = 1};
  assert_ok(weir_exec_bind(s->session, &request, &s->binding, &s->err),
            &s->err);
}

static void close_scene(scene *s) {
  weir_tensor_unref(s->sum.tensor);
  weir_binding_release(s->binding);
  weir_exec_session_release(s->session);
  weir_pool_release(s->pool);
  weir_graph_unref(s->graph);
  exec_world_check_empty(&s->world);
}

static float now(scene *s) {
  weir_tensor *t = NULL;
  assert_ok(weir_exec_variable_get(s->session, s->var, &t, &s->err), &s->err);
  float x = ((const float *)t->data)[3];
  weir_tensor_unref(t);
  return x;
}

static void a_snapshot_stays(void **state) {
  (void)state;
  scene s;
  weir_tensor *held[3] = {NULL};
  open_scene(&s);
  for (int i = 0; i < 3; i++) {
    assert_ok(weir_exec_variable_snapshot(s.session, s.var, &held[i], &s.err),
              &s.err);
    assert_true(held[i]->read_only);
    assert_ok(weir_binding_run(s.binding, NULL, &s.err), &s.err);
  }
  for (int i = 0; i < 3; i++) {
    assert_true(((const float *)held[i]->data)[3] == (float)i);
    weir_tensor_unref(held[i]);
  }
  assert_true(now(&s) == 3);
  /* The memory that they shared is used again: none is asked for any more. */
  uint64_t calls = atomic_load(&s.world.memory.calls);
  for (int i = 0; i < 9; i++)
    assert_ok(weir_binding_run(s.binding, NULL, &s.err), &s.err);
  assert_int_equal(atomic_load(&s.world.memory.calls), calls);
  weir_tensor *none = NULL;
  assert_error(weir_exec_variable_snapshot(
                   s.session, s.graph->values[s.sum.value].node, &none, &s.err),
               &s.err, "W0004");
  assert_null(none);
  close_scene(&s);
}

static weir_status refuse(void *self, weir_error *err) {
  const scene *s = self;
  float sum = ((const float *)s->sum.tensor->data)[0];
  if (sum < 3) return WEIR_OK;
  return weir_fail(err, WEIR_W5020, NULL, "%g is too much", (double)sum);
}

static void a_refused_step_changes_nothing(void **state) {
  (void)state;
  scene s;
  open_scene(&s);
  weir_run_options options = {.accept = refuse, .accept_self = &s};
  for (int i = 0; i < 2; i++)
    assert_ok(weir_binding_run(s.binding, &options, &s.err), &s.err);
  for (int i = 0; i < 2; i++) {
    assert_error(weir_binding_run(s.binding, &options, &s.err), &s.err,
                 "W5020");
    assert_true(now(&s) == 2);
  }
  assert_ok(weir_binding_run(s.binding, NULL, &s.err), &s.err);
  assert_true(now(&s) == 3);
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_snapshot_stays),
      cmocka_unit_test(a_refused_step_changes_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
