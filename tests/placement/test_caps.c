/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "placement/bench/generate.h"
#include "placement/check.h"
#include "placement/solve/rescue.h"
#include "placement/solve/rescue_order.h"
#include "placement/solve/search.h"
#include "runtime/base/mix.h"
#include "tests/check.h"

/* Memory caps: kept at every moment, searched for, and refused in words. */

static const weir_allocator *system_memory(void) {
  return weir_allocator_system();
}

static weir_place_builder *begin(const weir_allocator *a, uint32_t classes,
                                 uint32_t devices, int64_t cap) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = NULL;
  if (weir_place_builder_create(a, classes, &b, &err) != WEIR_OK) return NULL;
  for (uint32_t d = 0; d < devices; d++)
    weir_place_add_device(
        b, &(weir_place_device){WEIR_SV_LIT("d"), d % classes, cap});
  weir_place_connect_all(b, &(weir_place_link){10, 100000, true});
  return b;
}

static weir_status finish(weir_place_builder *b, weir_place_problem **p,
                          weir_error *err) {
  weir_status s = weir_place_builder_finish(b, p, err);
  weir_place_builder_release(b);
  return s;
}

static uint32_t add(weir_place_builder *b, const char *name,
                    const int64_t *cost, const uint32_t *uses, uint32_t count) {
  weir_place_node_spec spec = {
      .name = weir_sv_from(name), .cost = cost, .group = WEIR_PLACE_NONE};
  uint32_t n = weir_place_add_node(b, &spec);
  for (uint32_t i = 0; i < count; i++) weir_place_add_use(b, n, uses[i]);
  return n;
}

/* Solves and checks; the peaks are below the caps by the checker's word. */
static weir_place_result solve(const weir_place_problem *p, uint64_t moves) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_result r;
  weir_place_options o = {.moves = moves};
  assert_ok(weir_place_solve(system_memory(), p, &o, &r, &err), &err);
  assert_ok(weir_place_check(system_memory(), p, r.plan, NULL, &err), &err);
  assert_true(r.bounds.best_ns <= r.plan->makespan_ns);
  return r;
}

/* ---- By hand */

/* Only the first device computes; t1 (60 bytes) must wait while b (50) runs on
 * a device of 100: it goes to the other one and comes back. */
static weir_status spill_problem(const weir_allocator *a, int64_t cap,
                                 weir_place_problem **p, weir_error *err) {
  int64_t here[] = {10, WEIR_PLACE_NO_KERNEL};
  weir_place_builder *b = begin(a, 2, 2, cap);
  if (b == NULL) return weir_fail_memory(err, 1);
  uint32_t n = add(b, "a", here, NULL, 0);
  uint32_t t1 = weir_place_add_tensor(b, n, 60);
  uint32_t t2 = weir_place_add_tensor(b, n, 1);
  n = add(b, "b", here, &t2, 1);
  uint32_t t3 = weir_place_add_tensor(b, n, 50);
  n = add(b, "c", here, &t3, 1);
  uint32_t t4 = weir_place_add_tensor(b, n, 1);
  add(b, "d", here, (uint32_t[]){t1, t4}, 2);
  return finish(b, p, err);
}

static void a_tensor_waits_elsewhere(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  int64_t peaks[2];
  assert_ok(spill_problem(system_memory(), 100, &p, &err), &err);
  weir_place_result r = solve(p, 20);
  assert_int_equal(r.plan->copy_count, 2);
  assert_int_equal(r.plan->copies[0].tensor, 0);
  assert_int_equal(r.plan->copies[0].to, 1);
  assert_int_equal(r.plan->copies[1].from, 1);
  assert_string_equal(r.plan->placer, "memory, spilled");
  assert_ok(weir_place_check(system_memory(), p, r.plan, peaks, &err), &err);
  assert_true(peaks[0] <= 100 && peaks[1] == 60);
  /* Without the way back, d has no t1 in time: the one that left is gone from
   * memory's count only if nobody uses it, so that the peak is too high. */
  r.plan->copy_count = 1;
  assert_error(weir_place_check(system_memory(), p, r.plan, peaks, &err), &err,
               "W3013");
  assert_int_equal(peaks[0], 111);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
}

static void what_can_never_fit_is_named(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  weir_place_result r;
  assert_ok(spill_problem(system_memory(), 60, &p, &err), &err);
  assert_error(weir_place_solve(system_memory(), p, NULL, &r, &err), &err,
               "W3030");
  assert_non_null(strstr(err.message, "node 0 a needs 61 bytes"));
  assert_null(r.plan);
  weir_place_problem_release(p);
}

/* Three weights of 40 and one device of 100: the message names a cap, and with
 * that cap there is a plan. */
static weir_status weights(const weir_allocator *a, uint32_t devices,
                           int64_t cap, weir_place_problem **p,
                           weir_error *err) {
  int64_t ten = 10, nothing = 0;
  weir_place_builder *b = begin(a, 1, devices, cap);
  if (b == NULL) return weir_fail_memory(err, 1);
  uint32_t x = WEIR_PLACE_NONE;
  for (int i = 0; i < 3; i++) {
    weir_place_node_spec var = {.name = WEIR_SV_LIT("w"),
                                .cost = &nothing,
                                .resident_bytes = 40,
                                .group = WEIR_PLACE_NONE};
    uint32_t n = weir_place_add_node(b, &var);
    uint32_t in[2] = {weir_place_add_tensor(b, n, 40), x};
    weir_place_keep_tensor(b, in[0], n);
    n = add(b, "product", &ten, in, i == 0 ? 1 : 2);
    x = weir_place_add_tensor(b, n, 8);
  }
  return finish(b, p, err);
}

static void the_cap_that_is_named_would_do(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  weir_place_result r;
  assert_ok(weights(system_memory(), 1, 100, &p, &err), &err);
  assert_error(weir_place_solve(system_memory(), p, NULL, &r, &err), &err,
               "W3013");
  assert_non_null(strstr(err.message,
                         "no plan can keep the memory caps: "
                         "variables of 120 bytes may only be on "
                         "devices of 100 bytes in all; with "));
  weir_place_problem_release(p);
  const char *with = strstr(err.message, "with ");
  assert_non_null(with);
  assert_non_null(strstr(err.message, "holds w 40, w 40, w 40"));
  int64_t cap = strtoll(with + 5, NULL, 10);
  assert_int_equal(cap, 120 + 8 + 8);
  assert_ok(weights(system_memory(), 1, cap, &p, &err), &err);
  weir_place_plan_release(solve(p, 0).plan);
  weir_place_problem_release(p);
}

/* Of three weights of 40 bytes no two share one of two devices of 79. On one
 * device of 125 the tensors between do not fit, which no bound proves. */
static void only_what_is_proved_is_said_to_be_impossible(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  weir_place_result r;
  assert_ok(weights(system_memory(), 2, 79, &p, &err), &err);
  assert_error(weir_place_solve(system_memory(), p, NULL, &r, &err), &err,
               "W3013");
  assert_non_null(strstr(err.message,
                         "3 groups take more than half of a device"
                         " each, and they may only be on 2; "));
  weir_place_problem_release(p);
  assert_ok(weights(system_memory(), 1, 125, &p, &err), &err);
  assert_error(weir_place_solve(system_memory(), p, NULL, &r, &err), &err,
               "W3013");
  assert_non_null(strstr(err.message,
                         "no plan that keeps the memory caps was found within "
                         "the budget; with 136 bytes"));
  weir_place_problem_release(p);
}

static void weights_are_spread(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  for (int64_t cap = 96; cap < 160; cap += 8) {
    assert_ok(weights(system_memory(), 2, cap, &p, &err), &err);
    weir_place_plan_release(solve(p, 50).plan);
    weir_place_problem_release(p);
  }
}

/* ---- Generated: caps that some plan keeps, and caps between the least that a
 * node needs and the memory of a plan without caps. */

static bool to_builder(void *self, const weir_task *t) {
  weir_place_builder *b = self;
  uint32_t n = add(b, t->name, &t->cost_ns, t->inputs, t->input_count);
  weir_place_add_tensor(b, n, t->out_bytes);
  return true;
}

static weir_place_problem *generated(const char *kind, uint64_t nodes,
                                     uint64_t seed, int64_t cap) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = begin(system_memory(), 1, 4, cap);
  weir_place_problem *p = NULL;
  weir_generated made;
  weir_generate_options o = {
      .nodes = nodes, .processors = 4, .fs_per_byte = 100000, .seed = seed};
  weir_task_sink sink = {b, to_builder};
  assert_ok(weir_generate(system_memory(), weir_sv_from(kind), &o, &sink, &made,
                          &err),
            &err);
  assert_ok(finish(b, &p, &err), &err);
  return p;
}

static int64_t peak_without_caps(const char *kind, uint64_t nodes,
                                 uint64_t seed) {
  weir_error err = WEIR_ERROR_INIT;
  int64_t peaks[4], most = 0;
  weir_place_problem *p = generated(kind, nodes, seed, INT64_MAX);
  weir_place_result r = solve(p, 0);
  assert_ok(weir_place_check(system_memory(), p, r.plan, peaks, &err), &err);
  for (int d = 0; d < 4; d++)
    if (peaks[d] > most) most = peaks[d];
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
  return most;
}

static int64_t least_cap(const weir_place_problem *p) {
  int64_t most = 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    int64_t bytes = 0;
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      bytes += p->tensor_bytes[t];
    for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++)
      bytes += p->tensor_bytes[p->in_tensor[i]];
    if (bytes > most) most = bytes;
  }
  return most;
}

static void caps_of_a_feasible_plan_are_kept(void **state) {
  (void)state;
  for (size_t k = 0; weir_generate_kind(k) != NULL; k++)
    for (uint64_t seed = 1; seed < 4; seed++) {
      const char *kind = weir_generate_kind(k);
      int64_t cap = peak_without_caps(kind, 300, seed);
      weir_place_problem *p = generated(kind, 300, seed, cap);
      weir_place_plan_release(solve(p, 20).plan);
      weir_place_problem_release(p);
    }
}

/* The memory of one device that runs the nodes in the rescue's order. */
static int64_t serial_peak(const weir_place_problem *p) {
  weir_error err = WEIR_ERROR_INIT;
  uint32_t order[512], left[512];
  int64_t live = 0, peak = 0;
  assert_true(p->node_count <= 512);
  assert_ok(
      weir_rescue_order_make(system_memory(), p, WEIR_RESCUE_NET, order, &err),
      &err);
  for (uint32_t t = 0; t < p->tensor_count; t++)
    left[t] = p->use_first[t + 1] - p->use_first[t];
  for (uint32_t i = 0; i < p->node_count; i++) {
    uint32_t n = order[i];
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      live += p->tensor_bytes[t];
    if (live > peak) peak = live;
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      if (left[t] == 0) live -= p->tensor_bytes[t];
    for (uint32_t k = p->in_first[n]; k < p->in_first[n + 1]; k++)
      if (--left[p->in_tensor[k]] == 0)
        live -= p->tensor_bytes[p->in_tensor[k]];
  }
  return peak;
}

/* Caps from the need of one device for everything down to half way to the need
 * of the largest node: then tensors must be spread, and wait elsewhere. */
static void tighter_caps_are_kept_too(void **state) {
  (void)state;
  for (size_t k = 0; weir_generate_kind(k) != NULL; k++)
    for (int64_t quarter = 4; quarter > 1; quarter--) {
      const char *kind = weir_generate_kind(k);
      weir_place_problem *p = generated(kind, 200, 5, INT64_MAX);
      int64_t low = least_cap(p), high = serial_peak(p);
      weir_place_problem_release(p);
      p = generated(kind, 200, 5, low + (high - low) * quarter / 4);
      weir_place_plan_release(solve(p, 20).plan);
      weir_place_problem_release(p);
    }
}

static void the_same_caps_give_the_same_plan(void **state) {
  (void)state;
  int64_t cap = peak_without_caps("layered", 300, 9) * 3 / 4;
  weir_place_problem *p = generated("layered", 300, 9, cap);
  weir_place_result a = solve(p, 100), b = solve(p, 100);
  assert_memory_equal(a.plan->device, b.plan->device,
                      p->node_count * sizeof(uint32_t));
  assert_memory_equal(a.plan->start_ns, b.plan->start_ns, p->node_count * 8);
  assert_int_equal(a.plan->copy_count, b.plan->copy_count);
  weir_place_plan_release(a.plan);
  weir_place_plan_release(b.plan);
  weir_place_problem_release(p);
}

/* ---- Faults */

static weir_status place_all(const weir_allocator *a, weir_error *err) {
  weir_place_problem *p = NULL;
  weir_place_result r = {0};
  weir_status s = spill_problem(a, 100, &p, err);
  if (s == WEIR_OK) s = weir_place_solve(a, p, NULL, &r, err);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
  p = NULL;
  if (s != WEIR_OK) return s;
  s = weights(a, 1, 100, &p, err);
  if (s == WEIR_OK) s = weir_place_solve(a, p, NULL, &r, err);
  weir_place_problem_release(p);
  if (s == WEIR_OK) return weir_fail(err, WEIR_W9001, NULL, "it must not fit");
  return strcmp(err->id, "W3013") == 0 ? WEIR_OK : s;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  weir_counted_allocator c;
  for (int forever = 0; forever < 2; forever++)
    for (uint64_t k = 1;; k++) {
      weir_error err = WEIR_ERROR_INIT;
      weir_counted_allocator_init(&c, NULL);
      c.fail_at = k;
      c.fail_forever = forever != 0;
      weir_status s = place_all(&c.base, &err);
      assert_int_equal(atomic_load(&c.live_bytes), 0);
      if (s == WEIR_OK) break;
      assert_string_equal(err.id, "W6001");
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_tensor_waits_elsewhere),
      cmocka_unit_test(what_can_never_fit_is_named),
      cmocka_unit_test(the_cap_that_is_named_would_do),
      cmocka_unit_test(only_what_is_proved_is_said_to_be_impossible),
      cmocka_unit_test(weights_are_spread),
      cmocka_unit_test(caps_of_a_feasible_plan_are_kept),
      cmocka_unit_test(tighter_caps_are_kept_too),
      cmocka_unit_test(the_same_caps_give_the_same_plan),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
