/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/diag/diag_print.h"
#include "runtime/exec/compile/compile.h"
#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/generated.h"
#include "tests/exec/support.h"

/* Memory runs out: load, compile, run, bind and run again, with the k-th
 * allocation failing, once and from then on, for every k until none fails.
 * Every failure is reported, nothing is left, and where the session was made it
 * works as soon as there is memory again. */

static const char kDense[] =
    "weir: 1\n"
    "dims: {n: null}\n"
    "inputs: {x: 'f32[n, 8]'}\n"
    "nodes:\n"
    "  w: var([8, 16], init=uniform(-1, 1))\n"
    "  b: var([16], init=uniform(-1, 1))\n"
    "  y: relu(add(matmul(x, w), b))\n"
    "outputs: [y]\n";

static const char kImages[] =
    "weir: 1\n"
    "inputs: {x: 'f32[16, 3, 9, 9]'}\n"
    "nodes:\n"
    "  w: var([8, 3, 3, 3], init=uniform(-1, 1))\n"
    "  y: max_pool(relu(conv2d(x, w, pad=1)), 2)\n"
    "  z: softmax(reduce_mean(y, axis=[2, 3]))\n"
    "outputs: [y, z]\n";

static const char kCounter[] =
    "weir: 1\n"
    "inputs: {x: 'f32[4] = 1'}\n"
    "nodes:\n"
    "  v: var([4], init=ones())\n"
    "  w: var([4], init=zeros())\n"
    "  a: assign_add(v, x)\n"
    "  s: assign(w, mul(v, 2))\n"
    "outputs: [a, s]\n";

static const char kLoops[] =
    "weir: 1\n"
    "inputs: {x: 'f32[4] = 1'}\n"
    "nodes:\n"
    "  run:\n"
    "    scan:\n"
    "      over: {e: x}\n"
    "      carry: {s: 0}\n"
    "      nodes:\n"
    "        w: var([3], init=ones())\n"
    "        more:\n"
    "          while:\n"
    "            carry: {v: e}\n"
    "            cond: less(v, 4)\n"
    "            next: {v: 'add(v, reduce_sum(w))'}\n"
    "            limit: 3\n"
    "        pick: {if: {cond: 'greater(s, 5)', then: {out: s}, else: {out: "
    "'add(s, more)'}}}\n"
    "      next: {s: pick}\n"
    "      stack: {y: pick, z: w}\n"
    "outputs: {y: run.y, s: run.s}\n";

/* Defaults that a placed session computes: one stays, one varies. */
static const char kDefaults[] =
    "weir: 1\n"
    "inputs:\n"
    "  x: 'f32[4]'\n"
    "  c: 'f32[4] = fill([4], 2.0)'\n"
    "  r: 'f32[4] = uniform(-1, 1, [4])'\n"
    "nodes:\n"
    "  a: add(mul(x, c), r)\n"
    "  s: reduce_sum(a)\n"
    "outputs: [a, s]\n";

typedef struct scene {
  exec_world world;
  const char *placer; /* on three devices; NULL: on one */
  weir_placing *placing;
  weir_plan *plan;
  weir_graph *graph;
  weir_pool *pool;
  weir_exec_session *session;
  weir_tensor *x;
  weir_shape shape;
} scene;

/* One run by fetches, and two of a binding. */
static weir_status run(scene *s, weir_error *err) {
  const weir_graph *g = s->graph;
  weir_exec_fetch first[2] = {{0}}, second[2] = {{0}};
  weir_exec_feed feed = {g->inputs[0].value, s->x};
  weir_binding *binding = NULL;
  uint32_t n = g->output_count;
  for (uint32_t i = 0; i < n; i++)
    first[i].value = second[i].value = g->outputs[i].value;
  weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = first, .fetch_count = n};
  weir_status status = weir_exec_run(s->session, &request, err);
  request.fetches = second;
  if (status == WEIR_OK)
    status = weir_exec_bind(s->session, &request, &binding, err);
  for (int i = 0; i < 2 && status == WEIR_OK; i++)
    status = weir_binding_run(binding, NULL, err);
  weir_binding_release(binding);
  for (uint32_t i = 0; i < n; i++) {
    weir_tensor_unref(first[i].tensor);
    weir_tensor_unref(second[i].tensor);
  }
  return status;
}

static weir_status open_scene(scene *s, const char *text, weir_error *err) {
  weir_load_options load = {.registry = weir_builtin_registry()};
  weir_pool_options pool = {.threads = 1, .spin_ns = -1};
  weir_status status = weir_graph_load_text(
      &s->world.env, weir_sv_from(text), "sweep.yaml", &load, &s->graph, err);
  if (status == WEIR_OK)
    status = weir_pool_create(&s->world.env, &pool, &s->pool, err);
  if (status == WEIR_OK)
    status = weir_tensor_create_shaped(s->world.env.alloc, WEIR_F32, &s->shape,
                                       &s->x, err);
  if (status == WEIR_OK) memset(s->x->data, 0, s->x->bytes);
  if (status == WEIR_OK && s->placer != NULL) {
    weir_place_request request = {
        .graph = s->graph,
        .cluster = "ps=1,worker=2",
        .options = {.placer = weir_placer_find(s->placer),
                    .strictness = WEIR_PLACE_WARN}};
    status = weir_placing_create(s->world.env.alloc, &request, &s->placing,
                                 &s->plan, err);
  }
  weir_session_options options = {.placing = s->placing, .plan = s->plan};
  if (status == WEIR_OK)
    status = weir_exec_session_create(&s->world.env, s->pool, s->graph,
                                      &options, &s->session, err);
  return status;
}

static void close_scene(scene *s) {
  weir_exec_session_release(s->session);
  weir_plan_unref(s->plan);
  weir_placing_unref(s->placing);
  weir_tensor_unref(s->x);
  weir_pool_release(s->pool);
  weir_graph_unref(s->graph);
}

static weir_shape shape_of_input(const char *text) {
  const int64_t rows[] = {5, 8}, images[] = {16, 3, 9, 9}, four[] = {4};
  if (text == kDense) return weir_shape_of(2, rows);
  return text == kImages ? weir_shape_of(4, images) : weir_shape_of(1, four);
}

/* An error is printed in every form though there is no memory at all. */
static bool write_nothing(void *self, const char *data, size_t size) {
  (void)data;
  *(size_t *)self += size;
  return true;
}

static void print(const weir_error *err) {
  static const weir_diag_format formats[] = {WEIR_DIAG_HUMAN, WEIR_DIAG_GCC,
                                             WEIR_DIAG_JSON};
  static weir_diag diag;
  diag.error = *err;
  for (int i = 0; i < 3; i++) {
    size_t size = 0;
    weir_diag_printer printer = {.format = formats[i],
                                 .out = {&size, write_nothing}};
    assert_true(weir_diag_print(&printer, &diag));
    assert_true(size > strlen(err->id));
  }
}

/* True when no allocation failed any more. */
static bool sweep_one(const char *text, const char *placer, uint64_t k,
                      bool for_ever) {
  scene s = {.shape = shape_of_input(text), .placer = placer};
  weir_error err = WEIR_ERROR_INIT, again = WEIR_ERROR_INIT;
  exec_world_init(&s.world);
  s.world.memory.fail_at = k;
  s.world.memory.fail_forever = for_ever;
  weir_status status = open_scene(&s, text, &err);
  if (status == WEIR_OK) status = run(&s, &err);
  bool failed = atomic_load(&s.world.memory.calls) >= k;
  if (!failed && status != WEIR_OK)
    fail_msg("nothing failed: %s %s", err.id, err.message);
  if (failed && for_ever) assert_int_not_equal(status, WEIR_OK);
  if (status != WEIR_OK) {
    if (strcmp(err.id, "W6001") != 0)
      fail_msg("allocation %d: %s %s", (int)k, err.id, err.message);
    print(&err);
  }
  s.world.memory.fail_at = 0;
  s.world.memory.fail_forever = false;
  if (s.session != NULL) assert_ok(run(&s, &again), &again);
  close_scene(&s);
  if (atomic_load(&s.world.memory.live_blocks) != 0)
    fail_msg("allocation %d: blocks are left", (int)k);
  return !failed;
}

static void sweep_placed(const char *text, const char *placer) {
  for (int for_ever = 0; for_ever < 2; for_ever++) {
    uint64_t k = 1;
    while (!sweep_one(text, placer, k, for_ever != 0)) k = counted_next(k);
    assert_true(k > 60);
  }
}

static void sweep(const char *text) {
  sweep_placed(text, NULL);
}

static void dense(void **state) {
  (void)state;
  sweep(kDense);
}

static void images(void **state) {
  (void)state;
  sweep(kImages);
}

static void counter(void **state) {
  (void)state;
  sweep(kCounter);
}

static void loops(void **state) {
  (void)state;
  sweep(kLoops);
}

/* The same on three devices, with values sent between them. */
static void parts(void **state) {
  (void)state;
  sweep_placed(kDense, "round_robin");
  sweep_placed(kCounter, "round_robin");
  sweep_placed(kDefaults, "round_robin");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dense), cmocka_unit_test(images),
      cmocka_unit_test(counter), cmocka_unit_test(loops),
      cmocka_unit_test(parts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
