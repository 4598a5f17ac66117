/* SPDX-License-Identifier: Apache-2.0
 * Networks whose values lie in blocks of channels between kernels: the same
 * results as in rows and as the reference kernels', the same bits on 1, 2 and 8
 * threads, and no copy between the kernels. */
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/isa/choose.h"
#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/maker.h"
#include "tests/profiles.h"

static uint64_t profile; /* the best one that WEIR_ISA allows */

/* A stem of three channels, poolings, a residual with a projection, a step of
 * two, squeezing to one pixel and spreading it again, a depthwise convolution,
 * groups, a mean over pixels. */
static const char kNet[] =
    "weir: 1\n"
    "import: {nn: std/nn}\n"
    "inputs:\n"
    "  x: f32[2, 3, 21, 19]\n"
    "nodes:\n"
    "  w1: var([64, 64, 3, 3], init=uniform(-0.1, 0.1))\n"
    "  w2: var([128, 64, 1, 1], init=uniform(-0.2, 0.2))\n"
    "  w3: var([128, 1, 3, 3], init=uniform(-0.5, 0.5))\n"
    "  w4: var([128, 128, 1, 1], init=uniform(-0.2, 0.2))\n"
    "  w5: var([128, 32, 3, 3], init=uniform(-0.1, 0.1))\n"
    "  s:  nn.conv(x, filters=64, kernel=7, stride=2, pad=3, act=relu)\n"
    "  p:  max_pool(s, kernel=3, stride=2, pad=1)\n"
    "  a:  relu(conv2d(p, w1, pad=1))\n"
    "  b:  conv2d(a, w2, stride=2)\n"
    "  c:  conv2d(nn.conv(p, filters=64, kernel=3, stride=2, pad=1), w2)\n"
    "  r:  relu(add(b, c))\n"
    "  d:  sigmoid(conv2d(r, w3, pad=1, groups=128))\n"
    "  q:  sigmoid(conv2d(mean(d, axis=[2, 3], keepdims=true), w4))\n"
    "  e:  mul(d, q)\n"
    "  f:  relu(conv2d(e, w5, pad=1, groups=4))\n"
    "  g:  avg_pool(add(f, r), kernel=2, stride=1)\n"
    "  y:  mean(conv2d(g, w4), axis=[2, 3])\n"
    "outputs: [y]\n";

/* Channels that leave lanes of the last block empty, of 8 or of 16, or that
 * fill less than blocks ask for (8 of 16, 3). Functions with f(0) != 0 and 1 /
 * x go before convolutions, so what they leave in empty lanes would reach sums.
 */
static const char kOdd[] =
    "weir: 1\n"
    "import: {nn: std/nn}\n"
    "inputs:\n"
    "  x: f32[2, 3, 21, 19]\n"
    "nodes:\n"
    "  w1: var([72, 24, 1, 1], init=uniform(-0.2, 0.2))\n"
    "  w2: var([72, 1, 5, 5], init=uniform(-0.2, 0.2))\n"
    "  w3: var([24, 72, 1, 1], init=uniform(-0.2, 0.2))\n"
    "  w4: var([72, 24, 1, 1], init=uniform(-0.2, 0.2))\n"
    "  w5: var([40, 72, 3, 3], init=uniform(-0.1, 0.1))\n"
    "  w6: var([30, 40, 3, 3], init=uniform(-0.1, 0.1))\n"
    "  w7: var([30, 10, 3, 3], init=uniform(-0.1, 0.1))\n"
    "  w8: var([8, 30, 1, 1], init=uniform(-0.1, 0.1))\n"
    "  w9: var([29, 38, 3, 3], init=uniform(-0.1, 0.1))\n"
    "  s:  nn.conv(x, filters=24, kernel=3, stride=2, pad=1, act=relu)\n"
    "  a:  exp(conv2d(s, w1))\n"
    "  d:  reciprocal(exp(conv2d(a, w2, pad=2, groups=72)))\n"
    "  q:  relu(conv2d(mean(d, axis=[2, 3], keepdims=true), w3))\n"
    "  e:  sigmoid(conv2d(q, w4))\n"
    "  b:  conv2d(mul(d, e), w3)\n"
    "  u:  conv2d(s, w1)\n"
    "  c:  conv2d(add(div(u, u), reciprocal(a)), w3)\n"
    "  r:  add(add(b, c), s)\n"
    "  t:  cos(conv2d(r, w1))\n"
    "  p:  add(max_pool(t, kernel=3, stride=1, pad=1), a)\n"
    "  f:  exp(conv2d(p, w5, pad=1, stride=2))\n"
    "  g:  cos(conv2d(avg_pool(f, kernel=2, stride=1), w6, pad=1))\n"
    "  h:  conv2d(g, w7, pad=1, groups=3)\n"
    "  i:  concat(conv2d(h, w8), h, axis=1)\n"
    "  j:  cos(conv2d(i, w9, pad=1))\n"
    "  y:  max(add(j, div(j, exp(j))), axis=[2, 3])\n"
    "outputs: [y]\n";

enum { kInput = 2 * 3 * 21 * 19 };

typedef struct text_sink {
  char text[32768];
  size_t used;
} text_sink;

static bool keep_text(void *self, const char *data, size_t size) {
  text_sink *sink = self;
  if (sink->used + size >= sizeof sink->text) return false;
  memcpy(sink->text + sink->used, data, size);
  sink->used += size;
  return true;
}

typedef struct net {
  exec_world world;
  weir_graph *graph;
  weir_tensor *x;
} net;

static void make(net *n, const char *text) {
  weir_error err = WEIR_ERROR_INIT;
  weir_load_options options = {.registry = weir_builtin_registry()};
  n->graph = NULL;
  exec_world_init(&n->world);
  n->world.env.profile = profile;
  assert_ok(weir_graph_load_text(&n->world.env, (weir_sv){text, strlen(text)},
                                 "net", &options, &n->graph, &err),
            &err);
  int64_t dims[] = {2, 3, 21, 19};
  n->x = f32_tensor(&n->world.memory.base, 4, dims, NULL);
  float *x = n->x->data;
  for (int64_t i = 0; i < kInput; i++)
    x[i] = (float)((i * 7919) % 201 - 100) / 100;
}

/* The last output, and how many values are in blocks and how many copies. */
static weir_tensor *run(net *n, int threads,
                        const weir_session_options *options, int *blocks,
                        int *copies) {
  weir_error err = WEIR_ERROR_INIT;
  weir_pool *pool = exec_pool(&n->world, threads);
  weir_exec_session *session = NULL;
  weir_binding *binding = NULL;
  weir_exec_feed feed = {n->graph->inputs[0].value, n->x};
  weir_exec_fetch out = {.value =
                             weir_graph_find_value(n->graph, WEIR_SV_LIT("y"))};
  assert_ok(weir_exec_session_create(&n->world.env, pool, n->graph, options,
                                     &session, &err),
            &err);
  weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = &out, .fetch_count = 1};
  /* Empty lanes are looked at too. */
  weir_run_options trap = {.trap_nan = true};
  assert_ok(weir_exec_bind(session, &request, &binding, &err), &err);
  assert_ok(weir_binding_run(binding, &trap, &err), &err);
  text_sink *sink = calloc(1, sizeof *sink);
  weir_writer writer = {sink, keep_text};
  assert_true(weir_binding_describe(binding, &writer));
  *blocks = *copies = 0;
  for (char *at = sink->text; (at = strstr(at, "\tc8\t")) != NULL; at++)
    ++*blocks;
  for (char *at = sink->text; (at = strstr(at, "\tc16\t")) != NULL; at++)
    ++*blocks;
  for (char *at = sink->text; (at = strstr(at, "_to_plain")) != NULL; at++)
    ++*copies;
  free(sink);
  weir_binding_release(binding);
  weir_exec_session_release(session);
  weir_pool_release(pool);
  return out.tensor;
}

static void compare(const weir_tensor *a, const weir_tensor *b, float rtol) {
  const float *x = a->data, *y = b->data;
  size_t count = a->bytes / sizeof *x;
  float most = 0;
  for (size_t k = 0; k < count; k++)
    if (fabsf(y[k]) > most) most = fabsf(y[k]);
  assert_true(most > 0);
  for (size_t k = 0; k < count; k++)
    if (!(fabsf(x[k] - y[k]) <= rtol * most))
      fail_msg("element %zu is %.9g, want %.9g", k, x[k], y[k]);
}

/* |least| of the values lie in blocks, where there are any. */
static void check(const char *text, int least, int most_copies) {
  net n;
  static const weir_session_options kDefault = {.no_layout = false};
  static const weir_session_options kPlain = {.no_layout = true};
  static const weir_session_options kLone = {.no_fusion = true};
  static const weir_session_options kRef = {.ref_kernels = true,
                                            .no_fusion = true};
  int blocks = 0, copies = 0, none = 0;
  make(&n, text);
  weir_tensor *first = run(&n, 1, &kDefault, &blocks, &copies);
  if (weir_isa_blocks(profile) == WEIR_LAYOUT_PLAIN) least = 0;
  if (blocks < least || copies > most_copies)
    fail_msg("%d values in blocks, %d copies", blocks, copies);
  for (int threads = 2; threads <= 8; threads += 6) {
    weir_tensor *same = run(&n, threads, &kDefault, &blocks, &copies);
    compare(same, first, 0);
    weir_tensor_unref(same);
  }
  weir_tensor *want = run(&n, 1, &kRef, &none, &copies);
  assert_int_equal(none, 0);
  compare(first, want, 1e-5f);
  weir_tensor *rows = run(&n, 2, &kPlain, &none, &copies);
  assert_int_equal(none, 0);
  compare(rows, want, 1e-5f);
  weir_tensor *lone = run(&n, 2, &kLone, &blocks, &copies);
  assert_true(blocks >= least);
  compare(lone, want, 1e-5f);
  weir_tensor_unref(first);
  weir_tensor_unref(want);
  weir_tensor_unref(rows);
  weir_tensor_unref(lone);
  weir_tensor_unref(n.x);
  weir_graph_unref(n.graph);
  exec_world_check_empty(&n.world);
}

static void test_net(void **state) {
  (void)state;
  check(kNet, 12, 0);
}

static void test_empty_lanes(void **state) {
  (void)state;
  check(kOdd, 12, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_net),
                                     cmocka_unit_test(test_empty_lanes)};
  test_profiles profiles;
  if (!test_profiles_find(&profiles)) return 1;
  profile = profiles.list[0];
  return cmocka_run_group_tests(tests, NULL, NULL);
}
