/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "placement/bench/generate.h"
#include "placement/bench/instance.h"
#include "placement/bench/instance_stg.h"
#include "placement/check.h"
#include "placement/schedule/rank.h"
#include "placement/schedule/schedule.h"
#include "placement/solve/search.h"
#include "tests/check.h"

static const weir_allocator *system_memory(void) {
  return weir_allocator_system();
}

/* |devices| of one class each with the same copy cost between all. */
static weir_place_builder *begin(const weir_allocator *a, uint32_t classes,
                                 uint32_t devices, weir_place_link link) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = NULL;
  if (weir_place_builder_create(a, classes, &b, &err) != WEIR_OK) return NULL;
  for (uint32_t d = 0; d < devices; d++)
    weir_place_add_device(
        b, &(weir_place_device){WEIR_SV_LIT("d"), d % classes, INT64_MAX});
  weir_place_connect_all(b, &link);
  return b;
}

static uint32_t add(weir_place_builder *b, const int64_t *cost, int64_t bytes,
                    const uint32_t *from, uint32_t count) {
  uint32_t n = weir_place_add_node(
      b, &(weir_place_node_spec){.cost = cost, .group = WEIR_PLACE_NONE});
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

static weir_place_result solve(const weir_place_problem *p, uint64_t moves) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_result r;
  weir_place_options o = {.moves = moves};
  assert_ok(weir_place_solve(system_memory(), p, &o, &r, &err), &err);
  assert_ok(weir_place_check(system_memory(), p, r.plan, NULL, &err), &err);
  assert_true(r.bounds.best_ns <= r.plan->makespan_ns);
  return r;
}

/* A diamond: 10, then 20 and 20, then 10. Two devices, copies of 5 ns: one
 * branch begins 5 ns later, and the end is best beside it: 10 + 5 + 20 + 10. */
static void a_diamond_by_hand(void **state) {
  (void)state;
  int64_t ten = 10, twenty = 20;
  weir_place_builder *b =
      begin(system_memory(), 1, 2,
            (weir_place_link){.latency_ns = 5, .exclusive = true});
  uint32_t a = add(b, &ten, 0, NULL, 0);
  uint32_t l = add(b, &twenty, 0, &a, 1), r = add(b, &twenty, 0, &a, 1);
  add(b, &ten, 0, (uint32_t[]){l, r}, 2);
  weir_place_problem *p = finish(b);
  weir_place_result got = solve(p, 0);
  assert_int_equal(got.plan->makespan_ns, 45);
  assert_int_equal(got.plan->copy_count, 2);
  assert_int_equal(got.bounds.path_ns, 40);
  weir_place_plan_release(got.plan);
  weir_place_problem_release(p);
}

/* One tensor used by three nodes of another device goes there once. */
static void a_tensor_is_copied_once(void **state) {
  (void)state;
  int64_t here[] = {10, INT64_MAX}, there[] = {INT64_MAX, 10};
  weir_place_builder *b =
      begin(system_memory(), 2, 2, (weir_place_link){0, 1000000, true});
  uint32_t a = add(b, here, 100, NULL, 0);
  for (int i = 0; i < 3; i++) add(b, there, 0, &a, 1);
  weir_place_problem *p = finish(b);
  weir_place_result got = solve(p, 50);
  assert_int_equal(got.plan->copy_count, 1);
  assert_int_equal(got.plan->makespan_ns, 10 + 100 + 30);
  weir_place_plan_release(got.plan);
  weir_place_problem_release(p);
}

static void a_group_stays_together(void **state) {
  (void)state;
  int64_t ten = 10;
  weir_place_builder *b = begin(system_memory(), 1, 2, (weir_place_link){0});
  for (int i = 0; i < 4; i++) {
    weir_place_node_spec spec = {.cost = &ten, .group = i < 3 ? 7 : 9};
    weir_place_add_node(b, &spec);
  }
  weir_place_problem *p = finish(b);
  weir_place_result got = solve(p, 100);
  assert_int_equal(got.plan->makespan_ns, 30);
  assert_int_equal(got.plan->device[0], got.plan->device[2]);
  got.plan->device[2] = !got.plan->device[2];
  weir_error err = WEIR_ERROR_INIT;
  assert_error(weir_place_check(system_memory(), p, got.plan, NULL, &err), &err,
               "W3016");
  assert_non_null(strstr(err.message, "group"));
  weir_place_plan_release(got.plan);
  weir_place_problem_release(p);
}

/* Two tensors of 100 ns over one link whose latency is 1000: the second has the
 * link when the first has left it, and both latencies pass together. */
static void latency_occupies_no_link(void **state) {
  (void)state;
  int64_t here[] = {10, INT64_MAX}, there[] = {INT64_MAX, 10};
  weir_place_builder *b =
      begin(system_memory(), 2, 2, (weir_place_link){1000, 1000000, true});
  uint32_t a = add(b, here, 100, NULL, 0), c = add(b, here, 100, NULL, 0);
  add(b, there, 0, (uint32_t[]){a, c}, 2);
  weir_place_problem *p = finish(b);
  weir_place_result got = solve(p, 0);
  assert_int_equal(got.plan->makespan_ns, 10 + 100 + 100 + 1000 + 10);
  weir_place_plan_release(got.plan);
  weir_place_problem_release(p);
}

/* a sends to the other device, for 30 ns of the 100 that the copy takes; c, on
 * a's device, waits for that or goes first. */
static void a_send_keeps_its_device_busy(void **state) {
  (void)state;
  int64_t here[] = {10, INT64_MAX}, there[] = {INT64_MAX, 10};
  int64_t last[] = {100, INT64_MAX};
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = begin(system_memory(), 2, 2,
                                (weir_place_link){.fs_per_byte = 1000000,
                                                  .exclusive = true,
                                                  .send_ns = 10,
                                                  .send_fs_per_byte = 200000});
  uint32_t a = add(b, here, 100, NULL, 0);
  add(b, there, 0, &a, 1);
  add(b, last, 0, &a, 1);
  weir_place_problem *p = finish(b);
  weir_place_result got = solve(p, 100);
  weir_place_plan *q = got.plan;
  assert_int_equal(q->makespan_ns, 10 + 30 + 100);
  assert_int_equal(q->copies[0].start_ns, 10);
  assert_int_equal(q->start_ns[2], 40);
  q->start_ns[2] -= 1, q->end_ns[2] -= 1, q->makespan_ns--;
  assert_error(weir_place_check(system_memory(), p, q, NULL, &err), &err,
               "W3016");
  assert_non_null(strstr(err.message, "two nodes or sends at once"));
  weir_place_plan_release(q);
  weir_place_problem_release(p);
}

/* Rates that were one, or none at all, in picoseconds a byte. */
static void fast_links_differ(void **state) {
  (void)state;
  const int64_t gb = 1000, bytes = 1200000000; /* bytes a microsecond */
  weir_place_link link = {0};
  int64_t want[] = {2000000, 1333200, 999600}, rate[] = {600, 900, 1200};
  for (int i = 0; i < 3; i++) {
    link.fs_per_byte = weir_place_fs_per_byte(rate[i] * gb);
    assert_true(weir_place_copy_ns(&link, bytes) >= want[i] - want[i] / 500);
    assert_true(weir_place_copy_ns(&link, bytes) <= want[i] + want[i] / 500);
  }
  assert_int_equal(weir_place_fs_per_byte(INT64_MAX), 1);
  link.fs_per_byte = 1000000000; /* 1 MB/s: the product leaves 64 bits */
  assert_int_equal(weir_place_copy_ns(&link, INT64_C(1) << 40), INT64_C(1000)
                                                                    << 40);
  assert_int_equal(weir_place_copy_ns(&link, INT64_MAX), WEIR_PLACE_COPY_LIMIT);
}

/* Each damage of a sound plan breaks one rule. */
static void the_checker_refuses(void **state) {
  (void)state;
  int64_t here[] = {10, INT64_MAX}, there[] = {INT64_MAX, 10};
  weir_place_builder *b =
      begin(system_memory(), 2, 2, (weir_place_link){0, 1000000, true});
  uint32_t a = add(b, here, 100, NULL, 0), c = add(b, here, 100, NULL, 0);
  add(b, there, 0, (uint32_t[]){a, c}, 2);
  weir_place_problem *p = finish(b);
  const weir_allocator *m = system_memory();
  weir_error err = WEIR_ERROR_INIT;
  for (int damage = 0; damage < 10; damage++) {
    weir_place_result r = solve(p, 0);
    weir_place_plan *q = r.plan;
    switch (damage) {
      case 0:
        q->device[2] = 0;
        break;
      case 1:
        q->start_ns[2] -= 1, q->end_ns[2] -= 1, q->makespan_ns--;
        break;
      case 2:
        q->end_ns[1] += 1;
        break;
      case 3:
        q->makespan_ns += 1;
        break;
      case 4:
        q->copies[0].end_ns -= 1;
        break;
      case 5:
        q->copies[1].start_ns = q->copies[0].start_ns,
        q->copies[1].end_ns = q->copies[0].end_ns;
        break;
      case 6:
        q->copy_count = 1;
        break;
      case 7:
        q->end_ns[1] = INT64_MIN;
        break;
      case 8:
        q->copies[1].end_ns = INT64_MIN;
        break;
      default:
        q->start_ns[1] = q->start_ns[0], q->end_ns[1] = q->end_ns[0];
    }
    assert_error(weir_place_check(m, p, q, NULL, &err), &err, "W3016");
    weir_place_plan_release(q);
  }
  weir_place_problem_release(p);
}

static void peaks_are_those_by_hand(void **state) {
  (void)state;
  int64_t ten = 10, peak = 0;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = begin(system_memory(), 1, 1, (weir_place_link){0});
  weir_place_node_spec spec = {.cost = &ten,
                               .resident_bytes = 1000,
                               .temp_bytes = 7,
                               .group = WEIR_PLACE_NONE};
  uint32_t a = weir_place_add_node(b, &spec);
  weir_place_add_tensor(b, a, 100);
  spec = (weir_place_node_spec){.cost = &ten, .group = WEIR_PLACE_NONE};
  uint32_t c = weir_place_add_node(b, &spec);
  weir_place_add_tensor(b, c, 50);
  weir_place_add_use(b, c, 0);
  uint32_t d = weir_place_add_node(b, &spec);
  weir_place_add_use(b, d, 1);
  weir_place_problem *p = finish(b);
  weir_place_result r = solve(p, 0);
  assert_ok(weir_place_check(system_memory(), p, r.plan, &peak, &err), &err);
  assert_int_equal(peak, 1000 + 100 + 50);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
}

/* ---- Generated graphs */

static bool to_problem(void *self, const weir_task *t) {
  uint32_t n = add(self, &t->cost_ns, t->out_bytes, t->inputs, t->input_count);
  return n != WEIR_PLACE_NONE;
}

static weir_place_problem *generated(const char *kind, uint64_t nodes,
                                     weir_generated *out) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b =
      begin(system_memory(), 1, 4, (weir_place_link){100, 100000, true});
  weir_generate_options o = {
      .nodes = nodes, .processors = 4, .fs_per_byte = 200000, .seed = 3};
  weir_task_sink sink = {b, to_problem};
  assert_ok(
      weir_generate(system_memory(), weir_sv_from(kind), &o, &sink, out, &err),
      &err);
  return finish(b);
}

static void every_family_is_placed(void **state) {
  (void)state;
  for (size_t k = 0; weir_generate_kind(k) != NULL; k++)
    for (uint64_t nodes = 1; nodes <= 3000; nodes = nodes * 7 + 5) {
      weir_generated g;
      weir_place_problem *p = generated(weir_generate_kind(k), nodes, &g);
      assert_int_equal(g.nodes, p->node_count);
      weir_place_result r = solve(p, nodes < 300 ? 100 : 0);
      assert_true(r.plan->makespan_ns <= r.first_ns);
      if (g.optimum_ns != 0) {
        assert_true(r.plan->makespan_ns >= g.optimum_ns);
        assert_true(r.bounds.best_ns <= g.optimum_ns);
        if (nodes > 500)
          assert_true((double)r.plan->makespan_ns <
                      1.15 * (double)g.optimum_ns);
      }
      weir_place_plan_release(r.plan);
      weir_place_problem_release(p);
    }
}

static void the_same_input_gives_the_same_plan(void **state) {
  (void)state;
  weir_generated g;
  weir_place_problem *p = generated("layered", 500, &g);
  weir_place_result a = solve(p, 300), b = solve(p, 300);
  assert_memory_equal(a.plan->device, b.plan->device, 500 * sizeof(uint32_t));
  assert_memory_equal(a.plan->start_ns, b.plan->start_ns, 500 * 8);
  assert_true(a.plan->makespan_ns <= a.first_ns);
  weir_place_plan_release(a.plan);
  weir_place_plan_release(b.plan);
  weir_place_problem_release(p);
}

/* Orders by rank are sorted, others go through a heap; that is to make no
 * difference: a key that falls along no edge takes the same way as one that
 * rises along the first. */
static void an_order_is_by_key_then_number(void **state) {
  (void)state;
  enum { NODES = 700 };
  weir_generated g;
  weir_place_problem *p = generated("layered", NODES, &g);
  int64_t key[NODES];
  uint32_t heap[NODES], waiting[NODES], order[NODES], place[NODES];
  for (int kind = 0; kind < 3; kind++) {
    weir_place_rank(p, WEIR_RANK_MEAN, key);
    for (uint32_t n = 0; n < NODES && kind > 0; n++)
      key[n] = kind == 1 ? key[n] / 20000 : (int64_t)(n * 2654435761u % 50);
    weir_place_order(p, key, heap, waiting, order);
    for (uint32_t i = 0; i < NODES; i++) place[order[i]] = i;
    for (uint32_t i = 0; i < NODES; i++) {
      uint32_t n = order[i];
      assert_int_equal(place[n], i);
      uint32_t ready_at = 0; /* after the last of its predecessors */
      for (uint32_t k = p->in_first[n]; k < p->in_first[n + 1]; k++) {
        uint32_t from = place[p->tensor_node[p->in_tensor[k]]];
        assert_true(from < i);
        if (from + 1 > ready_at) ready_at = from + 1;
      }
      for (uint32_t k = ready_at; k < i; k++) /* it was ready and had to wait */
        assert_true(key[order[k]] > key[n] ||
                    (key[order[k]] == key[n] && order[k] < n));
    }
  }
  weir_place_problem_release(p);
}

/* ---- Exhaustive truth for tiny problems: all orders, all devices. */

static int64_t best_of_all(const weir_place_problem *p, uint32_t *device,
                           uint32_t n) {
  weir_error err = WEIR_ERROR_INIT;
  int64_t best = INT64_MAX;
  if (n < p->node_count) {
    for (device[n] = 0; device[n] < p->device_count; device[n]++) {
      if (weir_place_cost(p, n, device[n]) == WEIR_PLACE_NO_KERNEL) continue;
      int64_t got = best_of_all(p, device, n + 1);
      if (got < best) best = got;
    }
    return best;
  }
  weir_scheduler *s = NULL;
  weir_place_plan *plan = NULL;
  assert_ok(weir_scheduler_create(system_memory(), p, &s, &err), &err);
  assert_ok(weir_place_plan_create(system_memory(), p, &plan, &err), &err);
  int64_t key[8];
  uint32_t heap[8], waiting[8], order[8];
  for (uint32_t code = 0; code < 720; code++) {
    uint32_t left = code;
    for (uint32_t i = 0; i < p->node_count; i++, left /= 6) key[i] = left % 6;
    weir_place_order(p, key, heap, waiting, order);
    weir_schedule_input input = {order, device, 0};
    assert_ok(weir_schedule_run(s, &input, plan, NULL, &err), &err);
    assert_ok(weir_place_check(system_memory(), p, plan, NULL, &err), &err);
    if (plan->makespan_ns < best) best = plan->makespan_ns;
  }
  weir_place_plan_release(plan);
  weir_scheduler_release(s);
  return best;
}

/* Two classes; one, for the energy test; one, where some nodes have one device;
 * two, where a copy keeps its sender busy. */
enum { TWO_CLASSES, ONE_CLASS, WITH_SETS, WITH_SENDS, VARIANTS };

static void bounds_hold_against_enumeration(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed < 25; seed++)
    for (int variant = 0; variant < VARIANTS; variant++) {
      uint32_t x = seed * 2654435761u;
      uint32_t classes =
          variant == TWO_CLASSES || variant == WITH_SENDS ? 2 : 1;
      weir_place_link link = {seed % 5, 0, seed % 2, 0, 0};
      if (variant == WITH_SENDS) link.send_ns = 1 + seed % 3;
      weir_place_builder *b = begin(system_memory(), classes, 2, link);
      uint32_t set = weir_place_add_set(b, (uint32_t[]){1}, 1);
      for (uint32_t n = 0; n < 5; n++) {
        int64_t cost[2] = {1 + (x >> 4) % 9, 1 + (x >> 9) % 9};
        weir_place_node_spec spec = {
            .cost = cost,
            .set = variant == WITH_SETS && (x >> 3) % 2 ? set : 0,
            .group = WEIR_PLACE_NONE};
        weir_place_add_node(b, &spec);
        weir_place_add_tensor(b, n, 1);
        for (uint32_t k = 0; k < n; k++)
          if (((x >> (12 + k)) & 3) == 0) weir_place_add_use(b, n, k);
        x = x * 1664525u + 1013904223u;
      }
      weir_place_problem *p = finish(b);
      uint32_t device[8];
      int64_t truth = best_of_all(p, device, 0);
      weir_place_result r = solve(p, 2000);
      assert_true(r.bounds.best_ns <= truth);
      assert_true(r.plan->makespan_ns <= truth);
      weir_place_plan_release(r.plan);
      weir_place_problem_release(p);
    }
}

/* Of four devices: six nodes of 10 that may use the first, eight the first
 * two: 140 on two devices; spread over all four it would be 35. */
static void bounds_know_where_nodes_may_be(void **state) {
  (void)state;
  int64_t ten = 10;
  weir_place_builder *b = begin(system_memory(), 1, 4, (weir_place_link){0});
  uint32_t one = weir_place_add_set(b, (uint32_t[]){0}, 1);
  uint32_t two = weir_place_add_set(b, (uint32_t[]){0, 1}, 2);
  for (int i = 0; i < 14; i++) {
    weir_place_node_spec spec = {
        .cost = &ten, .set = i < 6 ? one : two, .group = WEIR_PLACE_NONE};
    weir_place_add_node(b, &spec);
  }
  weir_place_problem *p = finish(b);
  weir_place_result r = solve(p, 0);
  assert_int_equal(r.bounds.area_ns, 70);
  assert_int_equal(r.plan->makespan_ns, 70);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
}

/* ---- Files */

static const char stg[] =
    "  4\n 0 0 0\n 1 5 1 0\n 2 7 1 0\n 3 2 2 1 2\n 4 3 1 3\n 5 0 1 4\n# end\n";

static void an_stg_file_is_read(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  weir_instance_options o = {2};
  assert_ok(weir_instance_read_stg(system_memory(), weir_sv_from(stg), "x.stg",
                                   &o, &p, &err),
            &err);
  assert_int_equal(p->node_count, 6);
  weir_place_result r = solve(p, 10);
  assert_int_equal(r.plan->makespan_ns, 12);
  assert_int_equal(r.bounds.best_ns, 12);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
}

static void bad_stg_files_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint32_t line;
  } bad[] = {{"", 1},
             {"x", 1},
             {"1\n0 0 0\n", 3},
             {"1\n0 0 0\n2 1 0\n", 3},
             {"1\n0 0 0\n1 1 1 1\n2 0 0\n", 3},
             {"1\n0 0 0\n1 99999999999 0\n2 0 0\n", 3},
             {"99999999999", 1},
             {"0\n0 0 0\n1 0 0\n7", 4},
             {"0\n0 -1 0\n", 2}};
  weir_instance_options o = {0};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_problem *p = NULL;
    assert_error(
        weir_instance_read_stg(system_memory(), weir_sv_from(bad[i].text),
                               "x.stg", &o, &p, &err),
        &err, "W3015");
    assert_int_equal(err.line, bad[i].line);
    assert_null(p);
  }
  for (size_t cut = 0; cut + 8 < sizeof stg; cut++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_problem *p = NULL;
    weir_status s = weir_instance_read_stg(system_memory(), (weir_sv){stg, cut},
                                           "x.stg", &o, &p, &err);
    if (s == WEIR_OK) weir_place_problem_release(p);
  }
}

/* ---- Faults */

static weir_status place_all(const weir_allocator *a, weir_error *err) {
  weir_place_problem *p = NULL;
  weir_place_result r = {0};
  weir_instance_options o = {3};
  WEIR_TRY(weir_instance_read_stg(a, weir_sv_from(stg), "x.stg", &o, &p, err));
  weir_place_options options = {.moves = 5};
  weir_status s = weir_place_solve(a, p, &options, &r, err);
  if (s == WEIR_OK) s = weir_place_check(a, p, r.plan, NULL, err);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
  return s;
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

static void bad_problems_are_refused(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  int64_t minus = -1, none = WEIR_PLACE_NO_KERNEL;
  weir_place_builder *b = begin(system_memory(), 1, 2, (weir_place_link){0});
  add(b, &minus, 0, NULL, 0);
  assert_error(weir_place_builder_finish(b, &p, &err), &err, "W3010");
  weir_place_builder_release(b);
  b = begin(system_memory(), 1, 2, (weir_place_link){0});
  add(b, &none, 0, NULL, 0);
  assert_error(weir_place_builder_finish(b, &p, &err), &err, "W3011");
  weir_place_builder_release(b);
  b = begin(system_memory(), 1, 2, (weir_place_link){0});
  weir_place_connect(b, 0, 9, 0);
  assert_error(weir_place_builder_finish(b, &p, &err), &err, "W3010");
  weir_place_builder_release(b);
  assert_null(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_diamond_by_hand),
      cmocka_unit_test(a_tensor_is_copied_once),
      cmocka_unit_test(latency_occupies_no_link),
      cmocka_unit_test(a_send_keeps_its_device_busy),
      cmocka_unit_test(fast_links_differ),
      cmocka_unit_test(a_group_stays_together),
      cmocka_unit_test(the_checker_refuses),
      cmocka_unit_test(peaks_are_those_by_hand),
      cmocka_unit_test(every_family_is_placed),
      cmocka_unit_test(the_same_input_gives_the_same_plan),
      cmocka_unit_test(an_order_is_by_key_then_number),
      cmocka_unit_test(bounds_hold_against_enumeration),
      cmocka_unit_test(bounds_know_where_nodes_may_be),
      cmocka_unit_test(an_stg_file_is_read),
      cmocka_unit_test(bad_stg_files_are_refused),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(bad_problems_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
