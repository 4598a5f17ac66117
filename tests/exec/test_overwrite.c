/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session.h"
#include "runtime/exec/session/session_first.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/support.h"

/* Sessions that write new values of variables over old ones and over feeds:
 * each has the bits of one that does not, and less memory. */

enum { N = 40000, BYTES = N * (int)sizeof(float), VARS = 4, STEPS = 6 };

/* What a server does with the last push of several, and a state that reads the
 * variable too: before its update, or after it, when w may not be the new one
 * yet. */
#define HEAD                           \
  "weir: 1\n"                          \
  "inputs:\n"                          \
  "  g: \"f32[40000]\"\n"              \
  "nodes:\n"                           \
  "  w: var([40000], init=ones())\n"   \
  "  m: var([40000], init=zeros())\n"  \
  "  sum: var([40000], init=ones())\n" \
  "  q: var([40000], init=zeros())\n"
#define READ                                     \
  "  lower: slice(w, start=[0], stop=[20000])\n" \
  "  upper: slice(w, start=[20000], stop=[40000])\n"
#define UPDATE                      \
  "  mean: div(add(sum, g), 2.0)\n" \
  "  w1, m1: apply_momentum(w, m, mean, 0.1, momentum=0.5)\n"
#define ASSIGN                                                 \
  "  set_w: assign(w, w1)\n"                                   \
  "  set_m: assign(m, m1)\n"                                   \
  "  set_sum: assign(sum, zeros_like(sum))\n"                  \
  "  set_q: assign(q, add(q, concat(upper, lower, axis=0)))\n" \
  "outputs: [set_w, set_m, set_sum, set_q]\n"
static const char kEarly[] = HEAD READ UPDATE ASSIGN;
static const char kLate[] = HEAD UPDATE READ ASSIGN;

static const char *const kVars[VARS] = {"w", "m", "sum", "q"};

typedef struct scene {
  exec_world world;
  weir_graph *graph;
  weir_pool *pool;
  weir_exec_session *session;
  weir_binding *binding;
  weir_tensor *grad;
  weir_node_id vars[VARS], targets[VARS];
  weir_error err;
} scene;

static weir_tensor *make_grad(scene *s) {
  weir_tensor *t = NULL;
  int64_t dims[] = {N};
  weir_shape shape = weir_shape_of(1, dims);
  assert_ok(weir_tensor_create_shaped(&s->world.memory.base, WEIR_F32, &shape,
                                      &t, &s->err),
            &s->err);
  return t;
}

static void fill_grad(weir_tensor *t, int step) {
  float *x = t->data;
  for (int i = 0; i < N; i++) x[i] = (float)((i * 7 + step * 13) % 101) - 50;
}

static void bind(scene *s) {
  weir_exec_feed feed = {s->graph->inputs[0].value, s->grad};
  weir_exec_request request = {.feeds = &feed,
                               .feed_count = 1,
                               .targets = s->targets,
                               .target_count = VARS};
  assert_ok(weir_exec_bind(s->session, &request, &s->binding, &s->err),
            &s->err);
}

static void open_text(scene *s, const char *text, int threads, bool overwrite) {
  *s = (scene){.err = WEIR_ERROR_INIT};
  weir_load_options load = {.registry = weir_builtin_registry()};
  weir_session_options options = {.overwrite = overwrite};
  exec_world_init(&s->world);
  s->pool = exec_pool(&s->world, threads);
  assert_ok(weir_graph_load_text(&s->world.env, weir_sv_from(text),
                                 "update.yaml", &load, &s->graph, &s->err),
            &s->err);
  assert_ok(weir_exec_session_create(&s->world.env, s->pool, s->graph, &options,
                                     &s->session, &s->err),
            &s->err);
  for (int v = 0; v < VARS; v++) {
    s->vars[v] = weir_graph_find_node(s->graph, weir_sv_from(kVars[v]));
    s->targets[v] = s->graph->values[s->graph->outputs[v].value].node;
  }
  s->grad = make_grad(s);
  bind(s);
}

static void open_scene(scene *s, int threads, bool overwrite) {
  open_text(s, kEarly, threads, overwrite);
}

static void close_scene(scene *s) {
  weir_tensor_unref(s->grad);
  weir_binding_release(s->binding);
  weir_exec_session_release(s->session);
  weir_pool_release(s->pool);
  weir_graph_unref(s->graph);
  exec_world_check_empty(&s->world);
}

static weir_tensor *snapshot(scene *s, int var) {
  weir_tensor *t = NULL;
  assert_ok(weir_exec_variable_snapshot(s->session, s->vars[var], &t, &s->err),
            &s->err);
  return t;
}

/* Where the variable is now. */
static const void *place_of(scene *s, int var) {
  weir_tensor *t = snapshot(s, var);
  const void *data = t->data;
  weir_tensor_unref(t);
  return data;
}

static void step(scene *s, int number) {
  fill_grad(s->grad, number);
  weir_binding_feed(s->binding, 0, s->grad);
  assert_ok(weir_binding_run(s->binding, NULL, &s->err), &s->err);
}

static void check_same(scene *a, scene *b) {
  for (int v = 0; v < VARS; v++) {
    weir_tensor *x = snapshot(a, v), *y = snapshot(b, v);
    assert_memory_equal(x->data, y->data, BYTES);
    weir_tensor_unref(x);
    weir_tensor_unref(y);
  }
}

static void give_room(scene *s) {
  weir_binding_feed(s->binding, 0, NULL);
  weir_tensor_unref(s->grad);
  s->grad = NULL;
  assert_ok(weir_exec_variable_room(s->session, s->vars[0], &s->grad, &s->err),
            &s->err);
}

/* With plain feeds, with room of w, and with each variable held by turns. */
static void the_bits_are_the_same(void **state) {
  (void)state;
  for (int k = 0; k < 4; k++) {
    scene plain, over;
    const char *text = k < 2 ? kEarly : kLate;
    open_text(&plain, text, 1 + k % 2, false);
    open_text(&over, text, 1 + k % 2, true);
    assert_int_equal(weir_binding_over(over.binding, 0), over.vars[0]);
    assert_int_equal(weir_binding_over(plain.binding, 0), UINT32_MAX);
    for (int i = 0; i < STEPS; i++) {
      weir_tensor *held = NULL, *copy = NULL;
      if (i >= 2) give_room(&over);
      if (i >= 2) {
        held = snapshot(&over, i % VARS);
        assert_ok(
            weir_tensor_copy(&over.world.memory.base, held, &copy, &over.err),
            &over.err);
      }
      step(&plain, i);
      step(&over, i);
      check_same(&plain, &over);
      if (held != NULL) assert_memory_equal(held->data, copy->data, BYTES);
      weir_tensor_unref(held);
      weir_tensor_unref(copy);
    }
    close_scene(&plain);
    close_scene(&over);
  }
}

/* w is read by the update of q too: it is written over after that. */
static void values_stay_where_they_are(void **state) {
  (void)state;
  scene s;
  open_scene(&s, 2, true);
  step(&s, 0);
  for (int v = 0; v < VARS; v++) {
    const void *before = place_of(&s, v);
    step(&s, 1);
    assert_ptr_equal(place_of(&s, v), before);
    weir_tensor *held = snapshot(&s, v);
    step(&s, 2);
    assert_ptr_not_equal(place_of(&s, v), before);
    weir_tensor_unref(held);
  }
  close_scene(&s);
}

static void a_room_becomes_the_value(void **state) {
  (void)state;
  scene s;
  open_scene(&s, 1, true);
  step(&s, 0);
  for (int i = 1; i < STEPS; i++) {
    give_room(&s);
    const void *room = s.grad->data;
    weir_tensor *held = snapshot(&s, 0);
    step(&s, i);
    assert_ptr_equal(place_of(&s, 0), room);
    weir_tensor_unref(held);
  }
  /* One that somebody else holds is read, and another buffer is written. */
  give_room(&s);
  weir_tensor *other = weir_tensor_ref(s.grad);
  const void *room = s.grad->data;
  step(&s, STEPS);
  assert_ptr_equal(place_of(&s, 0), room); /* the same hold */
  weir_tensor_unref(other);
  /* Room of another variable is a feed like any other. */
  weir_binding_feed(s.binding, 0, NULL);
  weir_tensor_unref(s.grad);
  assert_ok(weir_exec_variable_room(s.session, s.vars[1], &s.grad, &s.err),
            &s.err);
  room = s.grad->data;
  step(&s, STEPS + 1);
  for (int v = 0; v < VARS; v++) assert_ptr_not_equal(place_of(&s, v), room);
  close_scene(&s);
}

/* A value that is lent, room for the next, and the others once. */
static void the_memory_is_bounded(void **state) {
  (void)state;
  scene s;
  open_scene(&s, 1, true);
  step(&s, 0);
  weir_tensor *lent = snapshot(&s, 0);
  for (int i = 1; i < 3; i++) {
    give_room(&s);
    step(&s, i);
    weir_tensor_unref(lent);
    lent = snapshot(&s, 0);
  }
  int64_t before = atomic_load(&s.world.memory.live_bytes);
  atomic_store(&s.world.memory.peak_bytes, before);
  for (int i = 3; i < 9; i++) {
    give_room(&s);
    step(&s, i);
    weir_tensor_unref(lent);
    lent = snapshot(&s, 0);
  }
  assert_true(atomic_load(&s.world.memory.peak_bytes) <= before + BYTES / 2);
  weir_tensor_unref(lent);
  close_scene(&s);
}

static void first_values_come_back(void **state) {
  (void)state;
  scene fresh, s;
  open_scene(&fresh, 1, false);
  open_scene(&s, 1, true);
  weir_tensor *held = NULL;
  for (int i = 0; i < 3; i++) step(&s, i);
  held = snapshot(&s, 0);
  float was = ((const float *)held->data)[17];
  assert_true(was < 1 || was > 1);
  assert_ok(weir_exec_variables_first(s.session, &s.err), &s.err);
  check_same(&fresh, &s);
  float is = ((const float *)held->data)[17];
  assert_memory_equal(&is, &was, sizeof is);
  weir_tensor_unref(held);
  step(&fresh, 9);
  step(&s, 9);
  check_same(&fresh, &s);
  close_scene(&fresh);
  close_scene(&s);
}

static void memory_may_fail(void **state) {
  (void)state;
  for (uint64_t k = 1;; k++) {
    scene s;
    open_scene(&s, 1, true);
    weir_tensor *room = NULL;
    s.world.memory.fail_at = atomic_load(&s.world.memory.calls) + k;
    weir_status st =
        weir_exec_variable_room(s.session, s.vars[0], &room, &s.err);
    if (st == WEIR_OK) st = weir_exec_variables_first(s.session, &s.err);
    s.world.memory.fail_at = 0;
    weir_tensor_unref(room);
    if (st != WEIR_OK) assert_string_equal(s.err.id, "W6001");
    close_scene(&s);
    if (st == WEIR_OK) return;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_bits_are_the_same),
      cmocka_unit_test(values_stay_where_they_are),
      cmocka_unit_test(a_room_becomes_the_value),
      cmocka_unit_test(the_memory_is_bounded),
      cmocka_unit_test(first_values_come_back),
      cmocka_unit_test(memory_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
