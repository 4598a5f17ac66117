/* SPDX-License-Identifier: Apache-2.0
 * Gradients of small networks of convolutions, with values kept 16 images at a
 * time and without, on 1, 2 and 8 threads: the layout changes nothing but the
 * order of sums, threads change no bit. */
#include <math.h>
#include <stdlib.h>

#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/graph/grad/gradients.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/maker.h"

enum { kMostVars = 12, kImages = 37 };

static const char kNet[] =
    "weir: 1\n"
    "import: {nn: std/nn}\n"
    "inputs:\n"
    "  x: f32[37, 2, 13, 12]\n"
    "nodes:\n"
    "  c1: nn.conv(x, filters=5, kernel=3, pad=1, act=sigmoid)\n"
    "  p1: avg_pool(c1, kernel=2, stride=2)\n"
    "  c2: nn.conv(p1, filters=4, kernel=3, act=tanh)\n"
    "  s2: mul(c2, var([4, 1, 1], init=uniform(0.5, 1)))\n"
    "  p2: max_pool(s2, kernel=2, stride=1)\n"
    "  c3: nn.conv(p2, filters=18, kernel=2, act=relu)\n"
    "  f:  nn.dense(flatten(avg_pool(c3, kernel=2)), units=3)\n"
    "  loss: mean(square(f))\n"
    "outputs: [loss]\n";

/* Here a convolution refuses: the region ends, and a COPY is not needed. */
static const char kBroken[] =
    "weir: 1\n"
    "import: {nn: std/nn}\n"
    "inputs:\n"
    "  x: f32[37, 2, 13, 12]\n"
    "nodes:\n"
    "  c1: nn.conv(x, filters=4, kernel=3, pad=1, act=sigmoid)\n"
    "  w:  var([6, 2, 3, 3], init=uniform(-1, 1))\n"
    "  c2: sigmoid(conv2d(c1, w, groups=2))\n"
    "  c3: nn.conv(c2, filters=3, kernel=3, stride=2, act=relu)\n"
    "  n:  add(c3, mean(c3, axis=0, keepdims=true))\n"
    "  loss: mean(square(n))\n"
    "outputs: [loss]\n";

typedef struct net {
  exec_world world;
  weir_graph *graph;
  weir_value_id grads[kMostVars], loss;
  size_t count;
  weir_tensor *x;
} net;

static void make(net *n, const char *text) {
  weir_error err = WEIR_ERROR_INIT;
  weir_load_options options = {.registry = weir_builtin_registry()};
  weir_value_id vars[kMostVars];
  weir_graph *g = NULL;
  *n = (net){.count = 0};
  exec_world_init(&n->world);
  assert_ok(weir_graph_load_text(&n->world.env, weir_sv_from(text), "net",
                                 &options, &g, &err),
            &err);
  for (weir_node_id i = 0; i < g->node_count; i++)
    if (strcmp(g->nodes[i].op->name, "var") == 0)
      vars[n->count++] = g->nodes[i].first_output;
  n->loss = weir_graph_find_value(g, WEIR_SV_LIT("loss"));
  assert_ok(weir_graph_gradients(g, n->loss, vars, n->count, n->grads,
                                 &n->graph, &err),
            &err);
  weir_graph_unref(g);
  int64_t dims[] = {kImages, 2, 13, 12};
  n->x = f32_tensor(&n->world.memory.base, 4, dims, NULL);
  float *x = n->x->data;
  for (int64_t i = 0; i < kImages * 2 * 13 * 12; i++)
    x[i] = (float)((i * 7919) % 201 - 100) / 100;
}

static void end(net *n) {
  weir_tensor_unref(n->x);
  weir_graph_unref(n->graph);
  exec_world_check_empty(&n->world);
}

typedef struct text_sink {
  char text[16384];
  size_t used;
} text_sink;

static bool keep_text(void *self, const char *data, size_t size) {
  text_sink *sink = self;
  if (sink->used + size >= sizeof sink->text) return false;
  memcpy(sink->text + sink->used, data, size);
  sink->used += size;
  return true;
}

/* Loss and gradients; returns how many values of the program are N16. */
static int run(net *n, int threads, const weir_session_options *options,
               weir_exec_fetch *out) {
  weir_error err = WEIR_ERROR_INIT;
  weir_pool *pool = exec_pool(&n->world, threads);
  weir_exec_session *session = NULL;
  weir_binding *binding = NULL;
  weir_exec_feed feed = {n->graph->inputs[0].value, n->x};
  out[0] = (weir_exec_fetch){.value = n->loss};
  for (size_t i = 0; i < n->count; i++)
    out[1 + i] = (weir_exec_fetch){.value = n->grads[i]};
  assert_ok(weir_exec_session_create(&n->world.env, pool, n->graph, options,
                                     &session, &err),
            &err);
  weir_exec_request request = {.feeds = &feed,
                               .feed_count = 1,
                               .fetches = out,
                               .fetch_count = n->count + 1};
  assert_ok(weir_exec_bind(session, &request, &binding, &err), &err);
  assert_ok(weir_binding_run(binding, NULL, &err), &err);
  text_sink *sink = calloc(1, sizeof *sink);
  weir_writer writer = {sink, keep_text};
  assert_true(weir_binding_describe(binding, &writer));
  int special = 0;
  for (char *at = sink->text; (at = strstr(at, "n16")) != NULL; at++) special++;
  free(sink);
  weir_binding_release(binding);
  weir_exec_session_release(session);
  weir_pool_release(pool);
  return special;
}

static void release(net *n, weir_exec_fetch *out) {
  for (size_t i = 0; i <= n->count; i++) weir_tensor_unref(out[i].tensor);
}

static void compare(net *n, const weir_exec_fetch *a, const weir_exec_fetch *b,
                    float rtol) {
  for (size_t i = 0; i <= n->count; i++) {
    const float *x = a[i].tensor->data, *y = b[i].tensor->data;
    size_t count = a[i].tensor->bytes / sizeof *x;
    float most = 0;
    for (size_t k = 0; k < count; k++)
      if (fabsf(y[k]) > most) most = fabsf(y[k]);
    for (size_t k = 0; k < count; k++)
      if (!(fabsf(x[k] - y[k]) <= rtol * most))
        fail_msg("output %zu, element %zu is %.9g, want %.9g", i, k, x[k],
                 y[k]);
  }
}

static void check(const char *text, int least_special) {
  net n;
  weir_exec_fetch ways[5][kMostVars + 1];
  make(&n, text);
  static const weir_session_options kPlain = {.no_layout = true};
  static const weir_session_options kRef = {.ref_kernels = true,
                                            .no_fusion = true};
  static const weir_session_options kDefault = {.no_layout = false};
  int special = run(&n, 1, &kDefault, ways[0]);
  if (special < least_special)
    fail_msg("%d values are N16, expected %d", special, least_special);
  (void)run(&n, 2, &kDefault, ways[1]);
  (void)run(&n, 8, &kDefault, ways[2]);
  assert_int_equal(run(&n, 2, &kPlain, ways[3]), 0);
  assert_int_equal(run(&n, 1, &kRef, ways[4]), 0);
  compare(&n, ways[1], ways[0], 0);
  compare(&n, ways[2], ways[0], 0);
  compare(&n, ways[3], ways[0], 1e-4f);
  compare(&n, ways[4], ways[0], 1e-4f);
  for (int i = 0; i < 5; i++) release(&n, ways[i]);
  end(&n);
}

static void test_whole_region(void **state) {
  (void)state;
  check(kNet, 12);
}

static void test_broken_region(void **state) {
  (void)state;
  check(kBroken, 0);
}

/* The lanes of images 38 to 48 hold anything: the trap does not look there. */
static void test_trap(void **state) {
  (void)state;
  net n;
  weir_error err = WEIR_ERROR_INIT;
  weir_exec_session *session = NULL;
  make(&n, kNet);
  weir_pool *pool = exec_pool(&n.world, 1);
  weir_exec_feed feed = {n.graph->inputs[0].value, n.x};
  weir_exec_fetch fetch = {.value = n.grads[0]};
  weir_session_options options = {.no_layout = false};
  weir_run_options trap = {.trap_nan = true};
  assert_ok(weir_exec_session_create(&n.world.env, pool, n.graph, &options,
                                     &session, &err),
            &err);
  weir_exec_request request = {.feeds = &feed,
                               .feed_count = 1,
                               .fetches = &fetch,
                               .fetch_count = 1,
                               .options = &trap};
  assert_ok(weir_exec_run(session, &request, &err), &err);
  weir_tensor_unref(fetch.tensor);
  fetch.tensor = NULL;
  ((float *)n.x->data)[36 * 2 * 13 * 12] = NAN;
  assert_int_not_equal(weir_exec_run(session, &request, &err), WEIR_OK);
  assert_string_equal(err.id, "W5004");
  weir_exec_session_release(session);
  weir_pool_release(pool);
  end(&n);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole_region),
                                     cmocka_unit_test(test_broken_region),
                                     cmocka_unit_test(test_trap)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
