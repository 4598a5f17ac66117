/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"
#include "tests/exec/control_cases.h"
#include "tests/exec/generated.h"
#include "tests/exec/support.h"

/* scan, while and if, from text to values: by hand, or against the same written
 * without them; with 1, 2 and 8 threads, without fusion, without folding, by
 * reference kernels. */

enum { kWays = 6 };

/* A recurrent cell as a scan, and the same unrolled by repeat. */
static const char kLstm[] =
    "weir: 1\n"
    "params: {b: 5, t: 7, d: 6, n: 8}\n"
    "inputs: {x: 'f32[b, t, d]'}\n"
    "blocks:\n"
    "  cell:\n"
    "    in: [xt, h, c, w]\n"
    "    nodes:\n"
    "      z: matmul(concat(xt, h, axis=-1), w)\n"
    "      i, f, g, o: split(z, 4, axis=-1)\n"
    "      c2: add(mul(sigmoid(f), c), mul(sigmoid(i), tanh(g)))\n"
    "      h2: mul(sigmoid(o), tanh(c2))\n"
    "    out: {h: h2, c: c2}\n"
    "nodes:\n"
    "  w: var([d + n, 4 * n], init=glorot_uniform())\n"
    "  run:\n"
    "    scan:\n"
    "      over: {xt: x}\n"
    "      axis: 1\n"
    "      carry: {h: 'zeros([b, n])', c: 'zeros([b, n])'}\n"
    "      nodes: {s: 'cell(xt, h, c, w)'}\n"
    "      next: {h: s.h, c: s.c}\n"
    "      stack: {y: s.h}\n"
    "  h[0]: zeros([b, n])\n"
    "  c[0]: zeros([b, n])\n"
    "  all:\n"
    "    repeat: {i: 0..t}\n"
    "    nodes:\n"
    "      xt: reshape(slice(x, start=[i], stop=[i + 1], axis=[1]), [b, d])\n"
    "      s: cell(xt, h[i], c[i], w)\n"
    "      h[i+1]: identity(s.h)\n"
    "      c[i+1]: identity(s.c)\n"
    "  y: stack(h[1], h[2], h[3], h[4], h[5], h[6], h[7], axis=1)\n"
    "outputs: {y: run.y, h: run.h, c: run.c, y2: y, h2: 'h[7]', c2: 'c[7]'}\n";

typedef struct control_world {
  exec_world world;
  weir_pool *pools[3];
  run_way ways[kWays];
} control_world;

static int set_up(void **state) {
  static const int counts[] = {1, 2, 8};
  control_world *w = calloc(1, sizeof *w);
  exec_world_init(&w->world);
  for (int i = 0; i < 3; i++) w->pools[i] = exec_pool(&w->world, counts[i]);
  w->ways[0] = (run_way){"1 thread", w->pools[0], {.no_fold = false}};
  w->ways[1] = (run_way){"2 threads", w->pools[1], {.no_fold = false}};
  w->ways[2] = (run_way){"8 threads", w->pools[2], {.no_fold = false}};
  w->ways[3] = (run_way){"no folding", w->pools[1], {.no_fold = true}};
  w->ways[4] = (run_way){"no fusion", w->pools[0], {.no_fusion = true}};
  w->ways[5] = (run_way){"reference", w->pools[0], {.ref_kernels = true}};
  *state = w;
  return 0;
}

static int tear_down(void **state) {
  control_world *w = *state;
  for (int i = 0; i < 3; i++) weir_pool_release(w->pools[i]);
  exec_world_check_empty(&w->world);
  free(w);
  return 0;
}

static void check_values(const control_case *c, const run_way *way,
                         const weir_graph *graph, const run_result *got) {
  for (uint32_t i = 0; i < graph->output_count; i++)
    control_case_check(c, way->name, i, got->outputs[i]);
}

static void by_hand(void **state) {
  control_world *w = *state;
  for (size_t i = 0; i < control_case_count; i++) {
    const control_case *c = &control_cases[i];
    weir_graph *graph = NULL;
    weir_tensor *none[RUN_INPUTS] = {NULL};
    char why[512] = "";
    if (!run_load(&w->world.env, c->text, strlen(c->text), &graph, why))
      fail_msg("%s: %s", c->name, why);
    for (int k = 0; k < kWays; k++) {
      run_result result;
      run_once(&w->world.env, graph, none, &w->ways[k], &result);
      if (result.status != WEIR_OK)
        fail_msg("%s, %s: %s %s", c->name, w->ways[k].name, result.error.id,
                 result.error.message);
      check_values(c, &w->ways[k], graph, &result);
      run_release(&result);
    }
    weir_graph_unref(graph);
  }
}

/* Runs |graph| in way |k| on inputs that are the same each time. */
static void run_way_of(control_world *w, const weir_graph *graph, int k,
                       weir_tensor *const *inputs, run_result *out) {
  run_once(&w->world.env, graph, inputs, &w->ways[k], out);
  if (out->status != WEIR_OK)
    fail_msg("%s: %s %s", w->ways[k].name, out->error.id, out->error.message);
}

/* The last three outputs are the first three, computed without a scan. */
static void lstm_is_as_unrolled(void **state) {
  control_world *w = *state;
  weir_graph *graph = NULL;
  weir_tensor *inputs[RUN_INPUTS];
  run_result first, result;
  char why[512] = "";
  if (!run_load(&w->world.env, kLstm, sizeof kLstm - 1, &graph, why))
    fail_msg("%s", why);
  assert_true(run_inputs(&w->world.env, graph, inputs));
  run_way_of(w, graph, 0, inputs, &first);
  for (int k = 0; k < kWays; k++) {
    run_way_of(w, graph, k, inputs, &result);
    for (uint32_t i = 0; i < 3; i++) {
      const weir_tensor *a = result.outputs[i], *b = result.outputs[i + 3];
      assert_int_equal(a->bytes, b->bytes);
      if (memcmp(a->data, b->data, a->bytes) != 0)
        fail_msg("%s: output %u is not as unrolled", w->ways[k].name, i);
    }
    if (k < 4 && !run_same_bits(graph, &first, &result, why))
      fail_msg("%s: %s", w->ways[k].name, why);
    run_release(&result);
  }
  run_release(&first);
  for (int i = 0; i < RUN_INPUTS; i++) weir_tensor_unref(inputs[i]);
  weir_graph_unref(graph);
}

/* Two states of a block's call and a counter of the graph. */
static const char kStates[] =
    "weir: 1\n"
    "inputs: {x: 'f32[2]'}\n"
    "blocks:\n"
    "  sum:\n"
    "    in: [v]\n"
    "    nodes:\n"
    "      s0: state([])\n"
    "      run:\n"
    "        scan:\n"
    "          over: {e: v}\n"
    "          carry: {s: s0}\n"
    "          next: {s: 'add(s, e)'}\n"
    "    update: {s0: run.s}\n"
    "    out: {total: run.s, before: s0}\n"
    "nodes:\n"
    "  steps: state([], dtype=i64)\n"
    "  a: sum(x)\n"
    "  b: sum(mul(x, 2))\n"
    "  both: add(a.total, b.total)\n"
    "  now: add(steps, 1)\n"
    "update: {steps: now}\n"
    "outputs: {a: a.total, both: both, now: now}\n";

typedef struct state_run {
  weir_exec_session *session;
  weir_exec_feed feed;
  const weir_graph *graph;
} state_run;

/* Fetches outputs |first| to |last|; the value of the last. */
static double step(state_run *r, const char *first, const char *second) {
  weir_error err = WEIR_ERROR_INIT;
  const char *const names[] = {first, second};
  weir_exec_fetch fetches[2] = {{0}};
  uint32_t n = second != NULL ? 2 : 1;
  for (uint32_t i = 0; i < n; i++) {
    fetches[i].value = weir_graph_find_value(r->graph, weir_sv_from(names[i]));
    assert_int_not_equal(fetches[i].value, WEIR_NO_VALUE);
  }
  uint32_t fed = strcmp(names[n - 1], "a/s0") == 0 ? 0 : 1;
  weir_exec_request request = {.feeds = &r->feed,
                               .feed_count = fed,
                               .fetches = fetches,
                               .fetch_count = n};
  assert_ok(weir_exec_run(r->session, &request, &err), &err);
  const weir_tensor *t = fetches[n - 1].tensor;
  double value = t->dtype == WEIR_F32 ? weir_tensor_get_f64(t, 0)
                                      : (double)weir_tensor_get_i64(t, 0);
  for (uint32_t i = 0; i < n; i++) weir_tensor_unref(fetches[i].tensor);
  return value;
}

static void states_live_across_runs(void **state) {
  control_world *w = *state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *inputs[RUN_INPUTS];
  state_run r;
  weir_graph *graph = NULL;
  char why[512] = "";
  if (!run_load(&w->world.env, kStates, sizeof kStates - 1, &graph, why))
    fail_msg("%s", why);
  assert_true(run_inputs(&w->world.env, graph, inputs));
  ((float *)inputs[0]->data)[0] = 1;
  ((float *)inputs[0]->data)[1] = 2;
  assert_ok(weir_exec_session_create(&w->world.env, w->pools[1], graph, NULL,
                                     &r.session, &err),
            &err);
  r.graph = graph;
  r.feed = (weir_exec_feed){graph->inputs[0].value, inputs[0]};
  assert_true(step(&r, "a", NULL) == 3);
  assert_true(step(&r, "a", NULL) == 6);
  assert_true(step(&r, "a/s0", NULL) == 6); /* to look changes nothing */
  assert_true(step(&r, "a/s0", NULL) == 6);
  assert_true(step(&r, "both", NULL) == 9 + 6);
  assert_true(step(&r, "now", "both") == 12 + 12);
  assert_true(step(&r, "now", NULL) == 2);
  assert_true(step(&r, "both", "now") == 3);
  weir_exec_session_release(r.session);
  for (int i = 0; i < RUN_INPUTS; i++) weir_tensor_unref(inputs[i]);
  weir_graph_unref(graph);
}

/* A failure in a body names the body's node, and so does the trap for NaN. */
static void failures_name_the_node_of_the_body(void **state) {
  static const char text[] =
      "weir: 1\n"
      "inputs: {x: 'f32[3]', i: 'i32[3]'}\n"
      "nodes:\n"
      "  run:\n"
      "    scan:\n"
      "      over: {e: x, k: i}\n"
      "      carry: {s: 1}\n"
      "      nodes:\n"
      "        part: div(6, k)\n"
      "        bad: log(sub(e, 1))\n"
      "      next: {s: 'add(s, bad)'}\n"
      "      stack: {p: part}\n"
      "outputs: {s: run.s, p: run.p}\n";
  control_world *w = *state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *inputs[RUN_INPUTS];
  weir_exec_session *session = NULL;
  weir_graph *graph = NULL;
  char why[512] = "";
  if (!run_load(&w->world.env, text, sizeof text - 1, &graph, why))
    fail_msg("%s", why);
  assert_true(run_inputs(&w->world.env, graph, inputs));
  weir_exec_feed feeds[2] = {{graph->inputs[0].value, inputs[0]},
                             {graph->inputs[1].value, inputs[1]}};
  weir_exec_fetch fetches[2] = {{.value = graph->outputs[0].value},
                                {.value = graph->outputs[1].value}};
  assert_ok(weir_exec_session_create(&w->world.env, w->pools[0], graph, NULL,
                                     &session, &err),
            &err);
  for (int i = 0; i < 3; i++) ((int32_t *)inputs[1]->data)[i] = 1 - i;
  weir_run_options options = {.trap_nan = false};
  weir_exec_request request = {.feeds = feeds,
                               .feed_count = 2,
                               .fetches = fetches,
                               .fetch_count = 2,
                               .options = &options};
  assert_error(weir_exec_run(session, &request, &err), &err, err.id);
  assert_string_equal(err.node, "run/part");
  assert_int_equal(err.line, 9);
  for (int i = 0; i < 3; i++) ((int32_t *)inputs[1]->data)[i] = 1;
  err = (weir_error)WEIR_ERROR_INIT;
  options.trap_nan = true;
  assert_error(weir_exec_run(session, &request, &err), &err, "W5004");
  assert_string_equal(err.node, "run/bad");
  weir_exec_session_release(session);
  for (int i = 0; i < RUN_INPUTS; i++) weir_tensor_unref(inputs[i]);
  weir_graph_unref(graph);
}

static void a_steady_step_allocates_nothing(void **state) {
  control_world *w = *state;
  weir_graph *graph = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *inputs[RUN_INPUTS];
  weir_exec_session *session = NULL;
  weir_binding *binding = NULL;
  char why[512] = "";
  if (!run_load(&w->world.env, kLstm, sizeof kLstm - 1, &graph, why))
    fail_msg("%s", why);
  assert_true(run_inputs(&w->world.env, graph, inputs));
  weir_exec_feed feed = {graph->inputs[0].value, inputs[0]};
  weir_exec_fetch fetch = {.value = graph->outputs[0].value};
  assert_ok(weir_exec_session_create(&w->world.env, w->pools[1], graph, NULL,
                                     &session, &err),
            &err);
  weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
  assert_ok(weir_exec_bind(session, &request, &binding, &err), &err);
  assert_ok(weir_binding_run(binding, NULL, &err), &err);
  uint64_t calls = atomic_load(&w->world.memory.calls);
  for (int i = 0; i < 5; i++)
    assert_ok(weir_binding_run(binding, NULL, &err), &err);
  assert_int_equal(atomic_load(&w->world.memory.calls), calls);
  weir_binding_release(binding);
  weir_tensor_unref(fetch.tensor);
  weir_exec_session_release(session);
  for (int i = 0; i < RUN_INPUTS; i++) weir_tensor_unref(inputs[i]);
  weir_graph_unref(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(by_hand), cmocka_unit_test(lstm_is_as_unrolled),
      cmocka_unit_test(states_live_across_runs),
      cmocka_unit_test(failures_name_the_node_of_the_body),
      cmocka_unit_test(a_steady_step_allocates_nothing)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
