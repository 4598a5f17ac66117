/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/kernel.h"
#include "placement/place.h"
#include "placement/place_find.h"
#include "placement/report/dump_json.h"
#include "runtime/base/env_system.h"
#include "runtime/base/strbuf.h"
#include "runtime/graph/load/load.h"
#include "tests/check.h"

/* The plan object: goals, homes, wishes, changes, plans that are
 * given, and memory that runs out. */

static const char kTrained[] =
    "weir: 1\n"
    "dims: {n: null}\n"
    "inputs: {x: 'f32[n, 8]', t: 'f32[n, 1]'}\n"
    "data:\n"
    "  train: {source: memory, batch: 16}\n"
    "nodes:\n"
    "  w: var([8, 16], init=glorot_uniform())\n"
    "  v: var([16, 1], init=zeros())\n"
    "  spare: var([8], init=zeros())\n"
    "  large: var([1000], init=zeros())\n"
    "  h: tanh(matmul(x, w))\n"
    "  y: matmul(h, v)\n"
    "  loss: mse(y, t)\n"
    "  other: reduce_sum(mul(large, 2))\n"
    "  more: reduce_sum(mul(spare, 2))\n"
    "outputs: [y, other, more]\n"
    "train: {minimize: loss, optimizer: adam(lr=0.1)}\n";

typedef struct scene {
  weir_counted_allocator memory;
  weir_graph *graph;
  weir_error err;
} scene;

static void open_scene(scene *s, const char *text) {
  weir_load_options o = {.registry = weir_builtin_registry()};
  s->err = (weir_error)WEIR_ERROR_INIT;
  weir_counted_allocator_init(&s->memory, NULL);
  weir_env env = *weir_env_system();
  env.alloc = &s->memory.base;
  assert_ok(weir_graph_load_text(&env, weir_sv_from(text), "g.yaml", &o,
                                 &s->graph, &s->err),
            &s->err);
}

static void close_scene(scene *s) {
  weir_graph_unref(s->graph);
  assert_int_equal(atomic_load(&s->memory.live_blocks), 0);
}

static weir_place_request request_of(const scene *s) {
  return (weir_place_request){.graph = s->graph,
                              .cluster = "ps=1,worker=2",
                              .options = {.strictness = WEIR_PLACE_WARN,
                                          .placer = weir_placer_find("random"),
                                          .seed = 7}};
}

static weir_plan *place(scene *s, const weir_place_request *r) {
  weir_plan *plan = NULL;
  assert_ok(weir_place_graph(&s->memory.base, r, &plan, &s->err), &s->err);
  return plan;
}

/* Where variable |name| is in |plan|; NONE: it is not in it. */
static uint32_t device_of(const weir_plan *plan, const char *name) {
  const weir_place_problem *p = plan->problem;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (weir_sv_is(p->names[n], name)) return plan->result.plan->device[n];
  return WEIR_PLACE_NONE;
}

static const char *reason_of(const weir_plan *plan, const char *name) {
  uint32_t unit = 0;
  assert_int_equal(weir_place_find_node(plan, name, &unit, NULL), WEIR_OK);
  return weir_place_reason_text(
      (weir_place_reason)plan->result.plan->reason[unit]);
}

/* ---- Homes */

static void variables_live_where_the_step_has_them(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kTrained);
  for (uint64_t seed = 1; seed <= 8; seed++) {
    weir_place_request r = request_of(&s);
    r.options.seed = seed;
    weir_plan *step = place(&s, &r);
    r.inference = true;
    weir_plan *outputs = place(&s, &r);
    assert_true(device_of(step, "w/adam_m") != WEIR_PLACE_NONE);
    assert_int_equal(device_of(outputs, "w/adam_m"), WEIR_PLACE_NONE);
    assert_int_equal(device_of(step, "w"), device_of(step, "w/adam_m"));
    assert_int_equal(device_of(step, "w"), device_of(outputs, "w"));
    assert_int_equal(device_of(step, "v"), device_of(outputs, "v"));
    assert_string_equal(reason_of(outputs, "w"), "home");
    assert_string_not_equal(reason_of(step, "w"), "home");
    /* Variables that the step does not touch: largest first, the emptiest
     * device. */
    assert_int_equal(device_of(step, "large"), WEIR_PLACE_NONE);
    assert_true(device_of(outputs, "large") != device_of(outputs, "spare"));
    assert_int_equal(device_of(outputs, "large"),
                     weir_placing_home(step->placing, WEIR_SV_LIT("large")));
    weir_plan_unref(outputs);
    weir_plan_unref(step);
  }
  close_scene(&s);
}

/* Five tables of 2^61 bytes: more than a sum of int64_t holds. */
static const char kHuge[] =
    "weir: 1\n"
    "inputs: {i: 'i32[4]'}\n"
    "nodes:\n"
    "  a: var([36028797018963968, 16], init=zeros())\n"
    "  b: var([36028797018963968, 16], init=zeros())\n"
    "  c: var([36028797018963968, 16], init=zeros())\n"
    "  d: var([36028797018963968, 16], init=zeros())\n"
    "  e: var([36028797018963968, 16], init=zeros())\n"
    "  y: gather(a, i) + gather(b, i) + gather(c, i)\n"
    "  z: gather(d, i) + gather(e, i) + y\n"
    "outputs: [z]\n";

static void sums_of_bytes_stay_in_range(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kHuge);
  weir_place_request r = request_of(&s);
  r.cluster = "worker=1";
  for (uint64_t seed = 1; seed <= 4; seed++) {
    r.options.seed = seed;
    weir_plan *plan = place(&s, &r);
    int64_t held = 0;
    for (uint32_t d = 0; d < plan->problem->device_count; d++) {
      assert_true(plan->peaks[d] >= 0);
      held += plan->peaks[d] / 1024;
    }
    assert_in_range(held, (int64_t)1 << 46, (int64_t)1 << 52);
    weir_plan_unref(plan);
  }
  close_scene(&s);
}

/* A session's placing agrees with weir_place_graph. */
static void a_placing_plans_alike(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kTrained);
  weir_place_request r = request_of(&s);
  weir_placing *placing = NULL;
  weir_plan *first = NULL, *again = NULL;
  assert_ok(weir_placing_create(&s.memory.base, &r, &placing, &first, &s.err),
            &s.err);
  weir_plan *step = place(&s, &r);
  r.inference = true;
  weir_plan *outputs = place(&s, &r);
  assert_int_equal(weir_plan_hash(first), weir_plan_hash(step));
  assert_int_equal(weir_place_plan_hash(&first->view),
                   weir_place_plan_hash(&step->view));
  assert_ok(
      weir_placing_plan(placing, outputs->placement->graph, &again, &s.err),
      &s.err);
  assert_int_equal(weir_place_plan_hash(&again->view),
                   weir_place_plan_hash(&outputs->view));
  weir_plan_unref(again);
  weir_plan_unref(first);
  weir_plan_unref(step);
  weir_plan_unref(outputs);
  weir_placing_unref(placing);
  close_scene(&s);
}

/* Sizes that are fed change the plan and no home; an open size is refused. */
static void homes_do_not_depend_on_sizes(void **state) {
  (void)state;
  scene s;
  open_scene(&s,
             "weir: 1\ndims: {n: null}\ninputs: {x: 'f32[n, 8]'}\n"
             "nodes:\n  w: var([8, 4], init=ones())\n"
             "  v: var([8, 4], init=ones())\n  a: matmul(x, w)\n"
             "  b: softmax(matmul(x, v))\noutputs: [a, b]\n");
  weir_place_request r = request_of(&s);
  weir_plan *none = NULL;
  assert_error(weir_place_graph(&s.memory.base, &r, &none, &s.err), &s.err,
               "W2008");
  assert_null(none);
  r.open = true;
  weir_plan *nominal = place(&s, &r);
  r.open = false;
  for (int64_t n = 1; n < 4000; n *= 9) {
    weir_shape shape = weir_shape_of(2, (int64_t[]){n, 8});
    r.shapes = &shape;
    weir_plan *plan = place(&s, &r);
    assert_true(weir_plan_hash(plan) != weir_plan_hash(nominal));
    assert_int_equal(device_of(plan, "w"), device_of(nominal, "w"));
    assert_int_equal(device_of(plan, "v"), device_of(nominal, "v"));
    assert_string_equal(reason_of(plan, "v"), "home");
    weir_plan_unref(plan);
  }
  weir_plan_unref(nominal);
  close_scene(&s);
}

/* A request that no device meets: no plan of all outputs can be made, and
 * variables go by rules and bytes. */
static void homes_without_a_plan(void **state) {
  (void)state;
  scene s;
  open_scene(&s,
             "weir: 1\ninputs: {x: 'f32[2]'}\n"
             "nodes:\n  u: var([100], init=ones())\n"
             "  v: var([30], init=ones())\n  w: var([80], init=ones())\n"
             "  a: mul(x, reduce_sum(u))\n  b: mul(a, reduce_sum(v))\n"
             "  c: mul(b, reduce_sum(w))\noutputs: [c]\n"
             "placement: [{match: v, device: /job:ps},"
             " {match: c, device: /job:nobody}]\n");
  weir_place_request r = request_of(&s);
  weir_placing *placing = NULL;
  weir_plan *plan = NULL;
  assert_ok(weir_placing_create(&s.memory.base, &r, &placing, &plan, &s.err),
            &s.err);
  assert_null(plan);
  assert_int_equal(weir_placing_home(placing, WEIR_SV_LIT("u")), 0);
  assert_int_equal(weir_placing_home(placing, WEIR_SV_LIT("w")), 1);
  assert_int_equal(weir_placing_home(placing, WEIR_SV_LIT("v")), 0);
  assert_int_equal(weir_placing_home(placing, WEIR_SV_LIT("a")),
                   WEIR_PLACE_NONE);
  weir_placing_unref(placing);
  close_scene(&s);
}

/* ---- Requests */

static weir_place_wish wish(const char *node, const char *device) {
  weir_place_wish w = {.node = weir_sv_from(node)};
  assert_int_equal(
      weir_device_name_parse(weir_sv_from(device), &w.device, NULL, NULL),
      WEIR_OK);
  return w;
}

static void wishes_are_met(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kTrained);
  weir_place_wish wishes[2] = {wish("v", "/job:worker/task:1"),
                               wish("h", "/job:ps")};
  weir_place_request r = request_of(&s);
  r.wishes = wishes;
  r.wish_count = 2;
  weir_plan *step = place(&s, &r);
  r.inference = true; /* the wish is heard where the home is decided */
  weir_plan *outputs = place(&s, &r);
  assert_int_equal(device_of(step, "v"), 2);
  assert_int_equal(device_of(outputs, "v"), 2);
  wishes[1] = wish("nobody", "/job:ps");
  weir_plan *none = NULL;
  assert_error(weir_place_graph(&s.memory.base, &r, &none, &s.err), &s.err,
               "W0002");
  weir_plan_unref(step);
  weir_plan_unref(outputs);
  close_scene(&s);
}

/* JSON of |plan|; the caller releases |out|. */
static void write_json(const weir_plan *plan, weir_strbuf *out) {
  weir_strbuf_init(out, weir_allocator_system());
  weir_writer writer = weir_strbuf_writer(out);
  assert_true(weir_place_write_json(&plan->view, &writer));
}

/* A given plan is taken as it is, and says where variables live. */
static void a_given_plan_gives_homes(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kTrained);
  weir_place_request r = request_of(&s);
  weir_plan *step = place(&s, &r);
  weir_strbuf json;
  write_json(step, &json);
  r.options.placer = weir_placer_find("first");
  r.given = weir_strbuf_view(&json);
  r.replay = true;
  weir_plan *again = place(&s, &r);
  for (uint32_t n = 0; n < step->problem->node_count; n++)
    assert_int_equal(again->result.plan->device[n],
                     step->result.plan->device[n]);
  assert_int_equal(weir_placing_home(again->placing, WEIR_SV_LIT("w")),
                   device_of(step, "w"));
  assert_true(weir_placing_home(again->placing, WEIR_SV_LIT("large")) !=
              WEIR_PLACE_NONE);
  r.inference = true; /* another graph's */
  weir_plan *none = NULL;
  assert_error(weir_place_graph(&s.memory.base, &r, &none, &s.err), &s.err,
               "W3016");
  weir_strbuf_release(&json);
  weir_plan_unref(again);
  weir_plan_unref(step);
  close_scene(&s);
}

static bool stop_at_once(void *self) {
  ++*(int *)self;
  return true;
}

static void a_search_can_be_stopped(void **state) {
  (void)state;
  scene s;
  int asked = 0;
  open_scene(&s, kTrained);
  weir_place_request r = request_of(&s);
  r.options.placer = NULL;
  r.options.moves = UINT64_MAX;
  r.stop = stop_at_once;
  r.stop_self = &asked;
  weir_plan *plan = place(&s, &r);
  assert_true(asked > 0 ||
              plan->result.plan->makespan_ns == plan->result.bounds.best_ns);
  weir_plan_unref(plan);
  close_scene(&s);
}

/* ---- Memory */

/* Everything that one request can want. */
static weir_status place_all(scene *s, const weir_place_request *first) {
  static const char *const changes[] = {"add worker", "pin v=/job:ps"};
  weir_place_request r = *first;
  weir_plan *plan = NULL, *changed = NULL;
  weir_status status = weir_place_graph(&s->memory.base, &r, &plan, &s->err);
  r.changes = changes;
  r.change_count = 2;
  r.before = plan;
  if (status == WEIR_OK)
    status = weir_place_graph(&s->memory.base, &r, &changed, &s->err);
  weir_plan_unref(changed);
  weir_plan_unref(plan);
  return status;
}

static void nothing_is_left_when_memory_runs_out(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kTrained);
  weir_place_wish wishes[1] = {wish("h", "/job:ps")};
  weir_place_request r = request_of(&s);
  r.wishes = wishes;
  r.wish_count = 1;
  r.inference = true;
  size_t blocks = atomic_load(&s.memory.live_blocks);
  for (uint64_t k = 1;; k += 1 + k / 200) {
    uint64_t before = atomic_load(&s.memory.calls);
    s.memory.fail_at = before + k;
    weir_status status = place_all(&s, &r);
    bool failed = atomic_load(&s.memory.calls) >= before + k;
    s.memory.fail_at = 0;
    assert_int_equal(atomic_load(&s.memory.live_blocks), blocks);
    if (!failed) {
      assert_ok(status, &s.err);
      assert_true(k > 500);
      break;
    }
    assert_error(status, &s.err, "W6001");
  }
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(variables_live_where_the_step_has_them),
      cmocka_unit_test(sums_of_bytes_stay_in_range),
      cmocka_unit_test(a_placing_plans_alike),
      cmocka_unit_test(homes_do_not_depend_on_sizes),
      cmocka_unit_test(homes_without_a_plan),
      cmocka_unit_test(wishes_are_met),
      cmocka_unit_test(a_given_plan_gives_homes),
      cmocka_unit_test(a_search_can_be_stopped),
      cmocka_unit_test(nothing_is_left_when_memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
