/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "tests/exec/generated.h"
#include "tests/exec/support.h"

/* Bad input that only a run meets: indices that are no numbers, sizes that fit
 * no machine, huge dimensions beside one of 0. Classes of README.md. */

typedef struct bad {
  exec_world world;
  weir_pool *pool;
  weir_graph *graph;
  weir_exec_session *session;
  weir_error err;
} bad;

static void open_bad(bad *b, const char *text) {
  char why[512] = "";
  weir_session_options options = {.no_fold = true};
  *b = (bad){.err = WEIR_ERROR_INIT};
  exec_world_init(&b->world);
  b->pool = exec_pool(&b->world, 2);
  if (!run_load(&b->world.env, text, strlen(text), &b->graph, why))
    fail_msg("%s", why);
  assert_ok(weir_exec_session_create(&b->world.env, b->pool, b->graph, &options,
                                     &b->session, &b->err),
            &b->err);
}

static void close_bad(bad *b) {
  weir_exec_session_release(b->session);
  weir_graph_unref(b->graph);
  weir_pool_release(b->pool);
  exec_world_check_empty(&b->world);
}

/* Runs all outputs; |feed| (may be NULL) goes to the first input. */
static weir_status run_bad(bad *b, weir_tensor *feed) {
  weir_exec_fetch fetches[RUN_OUTPUTS] = {{0}};
  uint32_t n = b->graph->output_count;
  weir_exec_feed first = {0, feed};
  if (feed != NULL) first.value = b->graph->inputs[0].value;
  for (uint32_t i = 0; i < n; i++)
    fetches[i].value = b->graph->outputs[i].value;
  weir_exec_request request = {.feeds = &first,
                               .feed_count = feed != NULL,
                               .fetches = fetches,
                               .fetch_count = n};
  weir_status s = weir_exec_run(b->session, &request, &b->err);
  for (uint32_t i = 0; i < n; i++) weir_tensor_unref(fetches[i].tensor);
  return s;
}

static float variable(bad *b, const char *name) {
  weir_tensor *t = NULL;
  weir_node_id node = weir_graph_find_node(b->graph, weir_sv_from(name));
  assert_ok(weir_exec_variable_get(b->session, node, &t, &b->err), &b->err);
  float value = *(const float *)t->data;
  weir_tensor_unref(t);
  return value;
}

static weir_tensor *scalar(bad *b, float value) {
  weir_shape shape = weir_shape_of(0, NULL);
  weir_tensor *t = NULL;
  assert_ok(weir_tensor_create_shaped(b->world.env.alloc, WEIR_F32, &shape, &t,
                                      &b->err),
            &b->err);
  memcpy(t->data, &value, sizeof value);
  return t;
}

/* V12, V32, A14: the step fails, and no variable has changed. */
static void indices(void **state) {
  static const struct {
    float index;
    bool good;
  } cases[] = {{2, true},        {3, false},      {-4, false},
               {1e30f, false},   {-1e30f, false}, {(float)NAN, false},
               {INFINITY, false}};
  (void)state;
  bad b;
  open_bad(&b,
           "weir: 1\n"
           "inputs: {x: 'f32[]'}\n"
           "nodes:\n"
           "  v: var([], init=zeros())\n"
           "  w: var([3, 4], init=ones())\n"
           "  i: cast(x, i64)\n"
           "  g: gather(w, i)\n"
           "  a: assign_add(v, 1)\n"
           "outputs: [g, a]\n");
  float runs = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weir_tensor *x = scalar(&b, cases[i].index);
    weir_status s = run_bad(&b, x);
    bool nan_is_zero = cases[i].index != cases[i].index && s == WEIR_OK;
    if (!nan_is_zero) assert_int_equal(s == WEIR_OK, cases[i].good);
    if (s != WEIR_OK) assert_string_equal(b.err.id, "W5002");
    runs += s == WEIR_OK;
    assert_true(variable(&b, "v") == runs);
    weir_tensor_unref(x);
  }
  close_bad(&b);
}

/* A learning rate or a label that is out of range stops the step before any
 * variable has changed. */
static void rates_and_labels(void **state) {
  static const struct {
    float x;
    const char *id, *says; /* NULL: good */
  } cases[] = {
      {0.5f, NULL, NULL},
      {2, NULL, NULL},
      {-1, "W5008", "the learning rate is -1, expected a finite number"},
      {(float)NAN, "W5008", "the learning rate is nan"},
      {INFINITY, "W5008", "the learning rate is inf"},
      {3, "W5002", "label 3 at element 1 is outside 0 to 2"}};
  (void)state;
  bad b;
  open_bad(&b,
           "weir: 1\n"
           "inputs: {x: 'f32[]'}\n"
           "nodes:\n"
           "  v: var([], init=zeros())\n"
           "  w: var([40], init=ones())\n"
           "  labels: stack(0, mul(cast(equal(x, 3), i64), 3))\n"
           "  loss: sparse_softmax_xent(reshape(slice(w, [0], [6]), [2, 3]), "
           "labels)\n"
           "  next: apply_sgd(w, ones([40]), x)\n"
           "  a: assign(w, next)\n"
           "  c: assign_add(v, 1)\n"
           "outputs: [loss, a, c]\n");
  float runs = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weir_tensor *x = scalar(&b, cases[i].x);
    weir_status s = run_bad(&b, x);
    assert_int_equal(s == WEIR_OK, cases[i].id == NULL);
    if (s != WEIR_OK) {
      assert_string_equal(b.err.id, cases[i].id);
      assert_non_null(strstr(b.err.message, cases[i].says));
    }
    runs += s == WEIR_OK;
    assert_true(variable(&b, "v") == runs);
    weir_tensor_unref(x);
  }
  assert_true(variable(&b, "w") == 1 - 2.5f);
  close_bad(&b);
}

/* A06, V28: a size that fits 63 bits is loaded, for shapes allocate nothing;
 * the run reports the bytes it needs. */
static void no_such_memory(void **state) {
  (void)state;
  bad b;
  open_bad(&b,
           "weir: 1\n"
           "nodes:\n"
           "  big: ones([1048576, 262144])\n"
           "  y: reduce_sum(exp(big))\n"
           "outputs: [y]\n");
  int64_t loaded = atomic_load(&b.world.memory.peak_bytes);
  assert_true(loaded < (16 << 20));
  weir_session_options limited = {.no_fold = true,
                                  .memory_limit = (size_t)1 << 30};
  weir_exec_session_release(b.session);
  assert_ok(weir_exec_session_create(&b.world.env, b.pool, b.graph, &limited,
                                     &b.session, &b.err),
            &b.err);
  weir_status s = run_bad(&b, NULL);
  assert_int_equal(s, WEIR_RESOURCE_EXHAUSTED);
  assert_string_equal(b.err.id, "W6002");
  assert_non_null(strstr(b.err.message, "a run needs 1099"));
  close_bad(&b);
}

/* V03, V04, V18: nothing to do, over more rows than an int can count. */
static void huge_and_empty(void **state) {
  (void)state;
  bad b;
  open_bad(&b,
           "weir: 1\n"
           "inputs: {x: 'f32[0, 3000000000]'}\n"
           "nodes:\n"
           "  y: tanh(add(x, 1))\n"
           "  t: transpose(y)\n"
           "  s: softmax(y)\n"
           "  r: reduce_sum(y, axis=1)\n"
           "  m: matmul(t, zeros([0, 0]))\n"
           "  c: concat(y, y, axis=1)\n"
           "  n: layer_norm(t, ones([0]), ones([0]))\n"
           "  p: slice(y, [5], [2999999999], axis=[1], step=[7])\n"
           "outputs: [t, s, r, m, c, n, p]\n");
  const int64_t dims[] = {0, 3000000000};
  weir_shape shape = weir_shape_of(2, dims);
  weir_tensor *x = NULL;
  assert_ok(weir_tensor_create_shaped(b.world.env.alloc, WEIR_F32, &shape, &x,
                                      &b.err),
            &b.err);
  assert_ok(run_bad(&b, x), &b.err);
  weir_tensor_unref(x);
  close_bad(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(indices), cmocka_unit_test(rates_and_labels),
      cmocka_unit_test(no_such_memory), cmocka_unit_test(huge_and_empty)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
