/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/measure/step_profile.h"

#include <string.h>

#include "kernels/kernel.h"
#include "runtime/exec/measure/peak.h"
#include "runtime/exec/session/binding.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/support.h"

/* Profiles: sums by instruction, from times that tests choose. */

/* A group, a node alone, and a loop. */
static const char kGraph[] =
    "weir: 1\n"
    "inputs: {x: \"f32[4, 4]\"}\n"
    "nodes:\n"
    "  w: var([4, 4], init=ones())\n"
    "  b: var([4], init=ones())\n"
    "  h: relu(add(matmul(x, w), b))\n"
    "  s: softmax(h)\n"
    "  run:\n"
    "    scan:\n"
    "      over: {xt: x}\n"
    "      carry: {c: \"zeros([4])\"}\n"
    "      nodes: {c2: \"add(mul(c, xt), xt)\", d: softmax(c2)}\n"
    "      next: {c: d}\n"
    "      stack: {y: d}\n"
    "outputs: {h: h, s: s, y: run.y}\n";

typedef struct scene {
  exec_world world;
  int64_t time_ns; /* of the clock */
  weir_pool *pool;
  weir_graph *graph;
  weir_exec_session *session;
  weir_tensor *x;
  weir_binding *binding;
  weir_exec_fetch fetches[3];
  weir_step_profile *profile;
  weir_trace *trace; /* the profile's, for the next step */
} scene;

/* A clock that stands still, so that tracing seems to cost nothing. */
static int64_t stands_still(void *self) {
  return ((scene *)self)->time_ns;
}

static weir_status open_binding(scene *s, weir_error *err) {
  const weir_env *env = &s->world.env;
  weir_load_options o = {.registry = weir_builtin_registry()};
  weir_shape shape = {.rank = 2, .dims = {{.value = 4}, {.value = 4}}};
  weir_pool_options threads = {.threads = 1};
  WEIR_TRY(weir_pool_create(env, &threads, &s->pool, err));
  WEIR_TRY(weir_graph_load_text(env, weir_sv_from(kGraph), "g.yaml", &o,
                                &s->graph, err));
  WEIR_TRY(weir_tensor_create_shaped(env->alloc, WEIR_F32, &shape, &s->x, err));
  WEIR_TRY(
      weir_exec_session_create(env, s->pool, s->graph, NULL, &s->session, err));
  for (int i = 0; i < 3; i++) s->fetches[i].value = s->graph->outputs[i].value;
  weir_exec_feed feed = {s->graph->inputs[0].value, s->x};
  weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = s->fetches, .fetch_count = 3};
  return weir_exec_bind(s->session, &request, &s->binding, err);
}

static void begin(scene *s) {
  memset(s, 0, sizeof *s);
  exec_world_init(&s->world);
  s->world.clock = (weir_clock){s, stands_still};
}

static void end(scene *s) {
  weir_step_profile_release(s->profile);
  weir_binding_release(s->binding);
  for (int i = 0; i < 3; i++) weir_tensor_unref(s->fetches[i].tensor);
  weir_exec_session_release(s->session);
  weir_tensor_unref(s->x);
  weir_graph_unref(s->graph);
  weir_pool_release(s->pool);
  exec_world_check_empty(&s->world);
}

/* A run whose trace is the profile's. */
static weir_status run(scene *s, weir_error *err) {
  weir_run_options o = {.trace = weir_step_profile_trace(s->profile)};
  return weir_binding_run(s->binding, &o, err);
}

static void open_scene(scene *s, const weir_step_profile_options *options) {
  weir_error err = WEIR_ERROR_INIT;
  begin(s);
  assert_ok(open_binding(s, &err), &err);
  assert_ok(weir_step_profile_create(&s->world.env, options, &s->profile, &err),
            &err);
}

/* The events of a run by the names of their nodes; |at|: which of them. */
static weir_trace_event event_of(scene *s, const char *name, int at) {
  weir_error err = WEIR_ERROR_INIT;
  weir_run_options o = {.trace = weir_step_profile_trace(s->profile)};
  weir_trace_event found = {0};
  assert_ok(weir_binding_run(s->binding, &o, &err), &err);
  for (size_t i = 0; i < weir_trace_count(o.trace); i++) {
    weir_trace_event e = weir_trace_event_at(o.trace, i);
    if (weir_sv_is(e.name, name) && at-- == 0) found = e;
  }
  if (found.instr == NULL) fail_msg("no event of %s", name);
  found.name = WEIR_SV_LIT("");
  return found;
}

static void add(scene *s, weir_trace_event event, int64_t start_ns,
                int64_t end_ns) {
  event.start_ns = start_ns;
  event.end_ns = end_ns;
  weir_trace_add(s->trace, &event);
}

static const weir_profile_row *row_of(const weir_profile_sum *sum,
                                      const char *name) {
  for (uint32_t i = 0; i < sum->row_count; i++)
    if (weir_sv_is(sum->rows[i].node, name)) return &sum->rows[i];
  fail_msg("no row of %s", name);
  return NULL;
}

static weir_profile_sum sum_of(scene *s) {
  weir_error err = WEIR_ERROR_INIT;
  weir_profile_sum sum;
  assert_ok(weir_step_profile_sum(s->profile, &sum, &err), &err);
  return sum;
}

static void take(scene *s, int64_t took_ns) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_step_profile_take(s->profile, took_ns, &err), &err);
}

static void every_instruction_has_a_row(void **state) {
  (void)state;
  scene s;
  weir_error err = WEIR_ERROR_INIT;
  const weir_step_profile_options two = {.steps = 2};
  open_scene(&s, &two);
  for (int i = 0; i < 2; i++) {
    assert_ok(run(&s, &err), &err);
    take(&s, 1000);
  }
  assert_null(weir_step_profile_trace(s.profile));
  weir_profile_sum sum = sum_of(&s);
  assert_int_equal(sum.steps, 2);
  assert_int_equal(sum.others, 0);
  const weir_profile_row *h = row_of(&sum, "h");
  assert_true(weir_sv_is(h->op, "matmul+add+relu"));
  assert_int_equal(h->member_count, 3);
  assert_true(weir_sv_is(h->members[2], "h"));
  assert_true(weir_sv_is(h->kernel, "cpu.matmul_fused"));
  assert_true(h->reason.size > 0);
  assert_int_equal(h->calls, 1);
  assert_int_equal(h->dtype, WEIR_F32);
  assert_true(h->on_host && !h->by_device);
  assert_true(h->flops >= 2 * 4 * 4 * 4 && h->bytes > 0);
  const weir_profile_row *loop = row_of(&sum, "run"),
                         *d = row_of(&sum, "run/d");
  assert_string_equal(loop->category, "loop");
  assert_ptr_equal(&sum.rows[d->parent], loop);
  assert_int_equal(d->calls, 4); /* a turn for each row of x */
  assert_int_equal(loop->parent, WEIR_NO_INDEX);
  assert_int_equal(row_of(&sum, "s")->member_count, 0);
  end(&s);
}

static void times_are_medians_of_sums(void **state) {
  (void)state;
  scene s;
  const weir_step_profile_options three = {.steps = 3};
  const int64_t more[3] = {0, 900, 100}; /* the second was interrupted */
  open_scene(&s, &three);
  weir_trace_event a = event_of(&s, "h", 0), b = event_of(&s, "s", 0);
  weir_trace_event loop = event_of(&s, "run", 0), d = event_of(&s, "run/d", 0);
  for (int i = 0; i < 3; i++) {
    s.trace = weir_step_profile_trace(s.profile);
    add(&s, a, 100, 300 + more[i]);
    add(&s, b, 200, 400); /* on another thread, while a runs */
    add(&s, d, 2110, 2160);
    add(&s, d, 2200, 2300);
    add(&s, loop, 2100, 2500);
    take(&s, 3000 + more[i]);
  }
  weir_profile_sum sum = sum_of(&s);
  assert_int_equal(sum.steps, 3);
  assert_int_equal(row_of(&sum, "h")->time.median_ns, 300);
  assert_int_equal(row_of(&sum, "s")->time.median_ns, 200);
  assert_int_equal(row_of(&sum, "run")->time.median_ns, 400);
  assert_int_equal(row_of(&sum, "run")->own_ns, 400 - 150);
  assert_int_equal(row_of(&sum, "run/d")->own_ns, 150);
  assert_int_equal(row_of(&sum, "run/d")->calls, 2);
  assert_int_equal(sum.step.median_ns, 3100);
  /* 100 to 400, 1200 or 400, and 2100 to 2500 */
  assert_int_equal(sum.between.median_ns, 3000 + 100 - 300 - 400);
  assert_int_equal(sum.all_ns, 300 + 200 + 400);
  end(&s);
}

static void a_step_may_be_as_long_as_its_events(void **state) {
  (void)state;
  scene s;
  const weir_step_profile_options one = {.steps = 1};
  open_scene(&s, &one);
  weir_trace_event a = event_of(&s, "h", 0), b = event_of(&s, "s", 0);
  s.trace = weir_step_profile_trace(s.profile);
  add(&s, b, 700, 800);
  add(&s, a, 500, 600);
  take(&s, -1);
  weir_profile_sum sum = sum_of(&s);
  assert_int_equal(sum.step.median_ns, 300);
  assert_int_equal(sum.between.median_ns, 100);
  assert_int_equal(row_of(&sum, "run")->calls, 0);
  end(&s);
}

static void steps_that_do_not_fit_are_counted(void **state) {
  (void)state;
  scene s;
  weir_error err = WEIR_ERROR_INIT;
  const weir_step_profile_options few = {
      .steps = 1, .skip = 1, .max_events = 2};
  open_scene(&s, &few);
  assert_ok(run(&s, &err), &err); /* more than two events: left out */
  take(&s, 1000);
  assert_int_equal(sum_of(&s).others, 1);
  assert_ok(run(&s, &err), &err); /* warms up */
  take(&s, 1000);
  assert_int_equal(sum_of(&s).steps, 0);
  weir_trace_event a = event_of(&s, "h", 0);
  take(&s, 1000);
  assert_int_equal(sum_of(&s).steps, 1);
  assert_null(weir_step_profile_trace(s.profile));
  end(&s);
  /* Of another program: here one that is none. */
  const weir_step_profile_options two = {.steps = 2};
  open_scene(&s, &two);
  assert_ok(run(&s, &err), &err);
  take(&s, 1000);
  a = event_of(&s, "h", 0);
  a.program = (const struct weir_program *)&s;
  s.trace = weir_step_profile_trace(s.profile);
  add(&s, a, 100, 300);
  take(&s, 1000);
  assert_int_equal(sum_of(&s).steps, 1);
  assert_int_equal(sum_of(&s).others, 1);
  end(&s);
}

static weir_status whole(scene *s, weir_error *err) {
  const weir_step_profile_options two = {.steps = 2, .max_events = 2};
  weir_profile_sum sum;
  WEIR_TRY(open_binding(s, err));
  WEIR_TRY(weir_step_profile_create(&s->world.env, &two, &s->profile, err));
  while (weir_step_profile_trace(s->profile) != NULL) {
    WEIR_TRY(run(s, err));
    WEIR_TRY(weir_step_profile_take(s->profile, 1000, err));
  }
  return weir_step_profile_sum(s->profile, &sum, err);
}

static void no_memory(void **state) {
  (void)state;
  scene s;
  weir_status status;
  uint64_t k = 0;
  do {
    weir_error err = WEIR_ERROR_INIT;
    begin(&s);
    s.world.memory.fail_at = ++k;
    status = whole(&s, &err);
    s.world.memory.fail_at = 0;
    if (status != WEIR_OK) assert_error(status, &err, "W6001");
    end(&s);
  } while (status != WEIR_OK);
  assert_true(k > 30);
}

static void a_peak_is_arithmetic_or_bytes(void **state) {
  (void)state;
  const weir_peak peak = {
      .f32_gflops = 10,
      .f64_gflops = 5,
      .copies = {{100, 8}, {1000, 4}, {10000, 2}, {100000, 1}}};
  assert_true(weir_peak_least_ns(&peak, 1, WEIR_F32, 1000, 0) == 100);
  assert_true(weir_peak_least_ns(&peak, 1, WEIR_F64, 1000, 0) == 200);
  assert_true(weir_peak_least_ns(&peak, 2, WEIR_F32, 1000, 0) == 50);
  assert_true(weir_peak_least_ns(&peak, 1, WEIR_F32, 1, 80) == 10);
  assert_true(weir_peak_least_ns(&peak, 1, WEIR_F32, 1, 100) == 12.5);
  assert_true(weir_peak_least_ns(&peak, 1, WEIR_F32, 1, 200) == 50);
  assert_true(weir_peak_least_ns(&peak, 0, WEIR_F32, 1, 200000) == 200000);
}

static void the_machine_has_a_peak(void **state) {
  (void)state;
  exec_world world;
  weir_peak peak;
  weir_error err = WEIR_ERROR_INIT;
  exec_world_init(&world);
  assert_ok(weir_peak_measure(&world.env, 0, &peak, &err), &err);
  assert_true(peak.f32_gflops > 0 && peak.f64_gflops > 0);
  assert_true(peak.isa[0] != '\0');
  for (int i = 0; i < WEIR_PEAK_COPIES; i++) {
    assert_true(peak.copies[i].gb_per_s > 0);
    if (i > 0) assert_true(peak.copies[i].bytes > peak.copies[i - 1].bytes);
  }
  exec_world_check_empty(&world);
  world.memory.fail_at = atomic_load(&world.memory.calls) + 1;
  assert_error(weir_peak_measure(&world.env, 0, &peak, &err), &err, "W6001");
  exec_world_check_empty(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_instruction_has_a_row),
      cmocka_unit_test(times_are_medians_of_sums),
      cmocka_unit_test(a_step_may_be_as_long_as_its_events),
      cmocka_unit_test(steps_that_do_not_fit_are_counted),
      cmocka_unit_test(no_memory),
      cmocka_unit_test(a_peak_is_arithmetic_or_bytes),
      cmocka_unit_test(the_machine_has_a_peak),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
