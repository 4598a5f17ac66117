/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "placement/bench/generate.h"
#include "placement/check.h"
#include "placement/plan_retime.h"
#include "placement/schedule/rank.h"
#include "placement/schedule/schedule_sends.h"
#include "placement/solve/search.h"
#include "runtime/base/mix.h"
#include "tests/check.h"

/* Copies that keep their senders busy: a device sends a node's tensors directly
 * after the node, and the link may take them later. */

static const weir_allocator *system_memory(void) {
  return weir_allocator_system();
}

/* A ns a byte on the link; the sender works for 10 ns and a fifth of that. */
static const weir_place_link kLink = {.fs_per_byte = 1000000,
                                      .exclusive = true,
                                      .send_ns = 10,
                                      .send_fs_per_byte = 200000};

static weir_place_builder *begin(uint32_t devices, const weir_place_link *link,
                                 int64_t cap) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = NULL;
  assert_ok(weir_place_builder_create(system_memory(), 1, &b, &err), &err);
  for (uint32_t d = 0; d < devices; d++)
    weir_place_add_device(b, &(weir_place_device){WEIR_SV_LIT("d"), 0, cap});
  if (link != NULL) weir_place_connect_all(b, link);
  return b;
}

static uint32_t add(weir_place_builder *b, int64_t cost, int64_t bytes,
                    const uint32_t *from, uint32_t count) {
  weir_place_node_spec spec = {.cost = &cost, .group = WEIR_PLACE_NONE};
  uint32_t n = weir_place_add_node(b, &spec);
  weir_place_add_tensor(b, n, bytes);
  for (uint32_t i = 0; i < count; i++) weir_place_add_use(b, n, from[i]);
  return n;
}

static weir_place_problem *finish(weir_place_builder *b) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  assert_ok(weir_place_builder_finish(b, &p, &err), &err);
  weir_place_builder_release(b);
  return p;
}

static void check(const weir_place_problem *p, const weir_place_plan *plan) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_place_check(system_memory(), p, plan, NULL, &err), &err);
}

/* The plan of the nodes as numbered, on |device|. */
static weir_place_plan *plan_on(const weir_place_problem *p,
                                const uint32_t *device) {
  weir_error err = WEIR_ERROR_INIT;
  weir_scheduler *s = NULL;
  weir_place_plan *plan = NULL;
  uint32_t *order = calloc(p->node_count + 1, sizeof *order);
  for (uint32_t n = 0; n < p->node_count; n++) order[n] = n;
  weir_schedule_input input = {.order = order, .device = device};
  assert_ok(weir_scheduler_create(system_memory(), p, &s, &err), &err);
  assert_true(weir_schedule_has_sends(s));
  assert_ok(weir_place_plan_create(system_memory(), p, &plan, &err), &err);
  assert_ok(weir_schedule_run(s, &input, plan, NULL, &err), &err);
  check(p, plan);
  weir_scheduler_release(s);
  free(order);
  return plan;
}

static const weir_place_copy *copy_to(const weir_place_plan *plan,
                                      uint32_t tensor, uint32_t to) {
  for (uint32_t c = 0; c < plan->copy_count; c++)
    if (plan->copies[c].tensor == tensor && plan->copies[c].to == to)
      return &plan->copies[c];
  fail_msg("no copy of %u to %u", tensor, to);
  return NULL;
}

/* a, then b on the same device for long; c and d read a elsewhere. */
static void sends_come_before_the_next_node(void **state) {
  (void)state;
  weir_place_builder *builder = begin(3, &kLink, INT64_MAX);
  uint32_t a = add(builder, 10, 100, NULL, 0);
  uint32_t b = add(builder, 1000, 0, NULL, 0);
  uint32_t c = add(builder, 10, 0, &a, 1), d = add(builder, 10, 0, &a, 1);
  uint32_t e = add(builder, 10, 0, &a, 1); /* beside d: no copy of its own */
  weir_place_problem *p = finish(builder);
  weir_place_plan *plan = plan_on(p, (uint32_t[]){0, 0, 1, 2, 2});
  assert_int_equal(plan->start_ns[c], 10 + 100);
  assert_int_equal(copy_to(plan, a, 2)->start_ns, 10 + 30);
  assert_int_equal(plan->start_ns[d], 10 + 30 + 100);
  assert_int_equal(plan->start_ns[e], 10 + 30 + 100 + 10);
  assert_int_equal(plan->start_ns[b], 10 + 30 + 30); /* the third is itself */
  assert_int_equal(plan->copy_count, 2);
  weir_place_plan_release(plan);
  weir_place_problem_release(p);
}

/* The same where nodes choose: b is placed before a device for c is known. */
static void a_list_knows_who_reads(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_result r;
  weir_place_options o = {.moves = 0};
  weir_place_builder *builder = begin(2, &kLink, INT64_MAX);
  uint32_t a = add(builder, 10, 100, NULL, 0);
  add(builder, 1000, 0, &a, 1);
  uint32_t c = add(builder, 500, 0, &a, 1);
  weir_place_problem *p = finish(builder);
  assert_ok(weir_place_solve(system_memory(), p, &o, &r, &err), &err);
  check(p, r.plan);
  assert_int_equal(r.plan->makespan_ns, 10 + 30 + 1000);
  assert_int_equal(r.plan->start_ns[c], 10 + 100);
  assert_int_equal(r.plan->reason[c], WEIR_PLACE_EFT);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
}

/* Devices 0 and 1 share a link to 2: the second sends, and goes on, while its
 * copy waits for the link. */
static weir_place_problem *shared_link(void) {
  weir_place_builder *builder = begin(3, NULL, INT64_MAX);
  uint32_t link = weir_place_add_link(builder, &kLink);
  weir_place_connect(builder, 0, 2, link);
  weir_place_connect(builder, 1, 2, link);
  uint32_t from[2] = {add(builder, 10, 100, NULL, 0),
                      add(builder, 10, 100, NULL, 0)};
  add(builder, 1000, 0, &from[0], 1);
  add(builder, 1000, 0, &from[1], 1);
  add(builder, 10, 0, from, 2);
  return finish(builder);
}

static const uint32_t kShared[] = {0, 1, 0, 1, 2};

static void a_copy_waits_for_its_link(void **state) {
  (void)state;
  weir_place_problem *p = shared_link();
  weir_place_plan *plan = plan_on(p, kShared);
  assert_int_equal(plan->copies[1].start_ns, 10);
  assert_int_equal(weir_place_copy_begin(p, &plan->copies[1]), 10 + 100);
  assert_int_equal(plan->copies[1].end_ns, 10 + 100 + 100);
  assert_int_equal(plan->start_ns[3], 10 + 30);
  assert_int_equal(plan->start_ns[4], 10 + 100 + 100);
  weir_place_plan_release(plan);
  weir_place_problem_release(p);
}

/* Each damage breaks one rule. */
static void the_checker_knows_senders_and_links(void **state) {
  (void)state;
  static const char *const says[] = {
      "two nodes or sends at once on a device", "two copies at once on a link",
      "a copy faster than its link", "a copy before its tensor is there"};
  weir_place_problem *p = shared_link();
  for (int damage = 0; damage < 4; damage++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_plan *plan = plan_on(p, kShared);
    if (damage == 0) plan->start_ns[3]--, plan->end_ns[3]--;
    if (damage == 1) plan->copies[1].end_ns--;
    if (damage == 2) plan->copies[0].start_ns++;
    if (damage == 3) plan->copies[1].start_ns--;
    assert_error(weir_place_check(system_memory(), p, plan, NULL, &err), &err,
                 "W3016");
    assert_non_null(strstr(err.message, says[damage]));
    weir_place_plan_release(plan);
  }
  weir_place_problem_release(p);
  /* Two sends at once. */
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *builder = begin(3, &kLink, INT64_MAX);
  uint32_t a = add(builder, 10, 100, NULL, 0);
  add(builder, 10, 0, &a, 1);
  add(builder, 10, 0, &a, 1);
  p = finish(builder);
  weir_place_plan *plan = plan_on(p, (uint32_t[]){0, 1, 2});
  plan->copies[1].start_ns--;
  assert_error(weir_place_check(system_memory(), p, plan, NULL, &err), &err,
               "W3016");
  assert_non_null(strstr(err.message, says[0]));
  weir_place_plan_release(plan);
  weir_place_problem_release(p);
}

/* ---- Many problems */

static uint32_t below(uint64_t *random, uint32_t limit) {
  return (uint32_t)((weir_mix_next(random) >> 32) % limit);
}

enum { MOST = 24 };

static weir_place_problem *any_problem(uint64_t seed, uint32_t devices,
                                       bool sends, int64_t cap) {
  weir_place_link link = {50, 1000000, true, 0, 0};
  if (sends) link.send_ns = 20, link.send_fs_per_byte = 100000;
  weir_place_builder *b = begin(devices, &link, cap);
  for (uint32_t n = 0; n < MOST; n++) {
    uint32_t from[3], count = 0;
    for (uint32_t i = 0; i < 3 && n > 0; i++) {
      uint32_t f = below(&seed, n);
      if (count == 0 || (f != from[0] && f != from[count - 1]))
        from[count++] = f;
    }
    add(b, n % 7 == 0 ? 0 : 100 + below(&seed, 400), below(&seed, 300), from,
        count);
  }
  return finish(b);
}

/* Searches, with and without caps: sound plans, and bounds below them. */
static void every_plan_is_sound(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 8; seed++)
    for (int capped = 0; capped < 2; capped++) {
      weir_error err = WEIR_ERROR_INIT;
      weir_place_result r;
      weir_place_options o = {.moves = 200};
      weir_place_problem *p = any_problem(seed, 2 + (uint32_t)(seed % 3), true,
                                          capped ? 2600 : INT64_MAX);
      assert_ok(weir_place_solve(system_memory(), p, &o, &r, &err), &err);
      check(p, r.plan);
      assert_true(r.bounds.best_ns <= r.plan->makespan_ns);
      weir_place_plan_release(r.plan);
      weir_place_problem_release(p);
    }
}

/* The plan's own costs give the plan, and it is said that they are its own; a
 * plan of links without sends becomes one that knows them. */
static void new_times_know_sends(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_result r, own;
    weir_place_options o = {.moves = 50};
    weir_place_problem *without = any_problem(seed, 3, false, INT64_MAX);
    weir_place_problem *p = any_problem(seed, 3, true, INT64_MAX);
    assert_ok(weir_place_solve(system_memory(), without, &o, &r, &err), &err);
    if (r.plan->copy_count > 0) {
      bool is_sound =
          weir_place_check(system_memory(), p, r.plan, NULL, NULL) == WEIR_OK;
      assert_int_equal(weir_place_plan_has_other_times(p, r.plan, is_sound),
                       !is_sound);
    }
    assert_ok(weir_place_plan_retime(system_memory(), p, r.plan, &err), &err);
    check(p, r.plan);
    assert_ok(weir_place_solve(system_memory(), p, &o, &own, &err), &err);
    assert_false(weir_place_plan_has_other_times(p, own.plan, true));
    int64_t step = own.plan->makespan_ns;
    assert_ok(weir_place_plan_retime(system_memory(), p, own.plan, &err), &err);
    check(p, own.plan);
    assert_true(own.plan->makespan_ns <= step);
    weir_place_plan_release(r.plan);
    weir_place_plan_release(own.plan);
    weir_place_problem_release(without);
    weir_place_problem_release(p);
  }
}

static bool take_task(void *self, const weir_task *task) {
  add(self, 2000 * task->cost_ns, task->out_bytes, task->inputs,
      task->input_count);
  return true;
}

static int64_t step_of(const char *kind, uint32_t devices,
                       const weir_place_link *link) {
  weir_error err = WEIR_ERROR_INIT;
  weir_generated g;
  weir_place_result r;
  weir_place_options o = {.moves = 0};
  weir_place_builder *b = begin(devices, link, INT64_MAX);
  weir_generate_options go = {.nodes = 60, .seed = 1};
  weir_task_sink sink = {b, take_task};
  assert_ok(
      weir_generate(system_memory(), weir_sv_from(kind), &go, &sink, &g, &err),
      &err);
  weir_place_problem *p = finish(b);
  assert_ok(weir_place_solve(system_memory(), p, &o, &r, &err), &err);
  check(p, r.plan);
  int64_t step = r.plan->makespan_ns;
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
  return step;
}

/* Sends of a microsecond between tasks of milliseconds. */
static void short_sends_cost_little(void **state) {
  (void)state;
  const weir_place_link sends = {200, 20000, true, 200, 20000};
  const weir_place_link without = {200, 20000, true, 0, 0};
  static const char *const kinds[] = {"lu", "cholesky"};
  for (int k = 0; k < 2; k++)
    for (uint32_t devices = 2; devices <= 8; devices *= 2) {
      int64_t with = step_of(kinds[k], devices, &sends);
      int64_t least = step_of(kinds[k], devices, &without);
      assert_true(llabs(with - least) * 100 <= least);
    }
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_place_problem *p = any_problem(3, 2, true, 2600);
  for (uint64_t k = 1;; k++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_result r;
    weir_place_options o = {.moves = 2};
    weir_counted_allocator_init(&c, NULL);
    c.fail_at = k;
    weir_status s = weir_place_solve(&c.base, p, &o, &r, &err);
    if (s == WEIR_OK) s = weir_place_plan_retime(&c.base, p, r.plan, &err);
    weir_place_plan_release(r.plan);
    assert_int_equal(atomic_load(&c.live_bytes), 0);
    if (s == WEIR_OK) break;
    assert_string_equal(err.id, "W6001");
  }
  weir_place_problem_release(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sends_come_before_the_next_node),
      cmocka_unit_test(a_list_knows_who_reads),
      cmocka_unit_test(a_copy_waits_for_its_link),
      cmocka_unit_test(the_checker_knows_senders_and_links),
      cmocka_unit_test(every_plan_is_sound),
      cmocka_unit_test(new_times_know_sends),
      cmocka_unit_test(short_sends_cost_little),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
