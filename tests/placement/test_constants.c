/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/check.h"
#include "placement/plan.h"
#include "placement/report/dump.h"
#include "placement/report/dump_critical.h"
#include "placement/report/dump_json.h"
#include "placement/solve/balance.h"
#include "placement/solve/chain.h"
#include "placement/solve/objective.h"
#include "placement/solve/search.h"
#include "runtime/base/mix.h"
#include "tests/check.h"

/* Constants: bytes that lie on every device with a reader, once. */

enum { DEVICES = 4, LAYERS = 4, WEIGHT = 100 };

static const weir_allocator *system_memory(void) {
  return weir_allocator_system();
}

static weir_place_builder *begin(const weir_allocator *a, int64_t cap) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = NULL;
  if (weir_place_builder_create(a, 1, &b, &err) != WEIR_OK) return NULL;
  for (uint32_t d = 0; d < DEVICES; d++)
    weir_place_add_device(b, &(weir_place_device){WEIR_SV_LIT("d"), 0, cap});
  weir_place_connect_all(b, &(weir_place_link){10, 100, true});
  return b;
}

static weir_status finish(weir_place_builder *b, weir_place_problem **p,
                          weir_error *err) {
  weir_status s = weir_place_builder_finish(b, p, err);
  weir_place_builder_release(b);
  return s;
}

static uint32_t add(weir_place_builder *b, const char *name, int64_t cost,
                    uint32_t group) {
  weir_place_node_spec spec = {
      .name = weir_sv_from(name), .cost = &cost, .group = group};
  return weir_place_add_node(b, &spec);
}

/* A chain of layers, each with a weight of its own; the variables come first.
 * One constant more, which no node has, is read by all. */
static weir_status layers(const weir_allocator *a, int64_t cap,
                          weir_place_problem **p, weir_error *err) {
  weir_place_builder *b = begin(a, cap);
  uint32_t weight[LAYERS], tensor = WEIR_PLACE_NONE;
  *p = NULL;
  if (b == NULL) return weir_fail_memory(err, 1);
  for (int i = 0; i < LAYERS; i++)
    weight[i] =
        weir_place_add_constant(b, add(b, "w", 0, WEIR_PLACE_NONE), WEIGHT);
  uint32_t all = weir_place_add_constant(b, WEIR_PLACE_NONE, 5);
  for (int i = 0; i < LAYERS; i++) {
    uint32_t n = add(b, "layer", 1000, WEIR_PLACE_NONE);
    if (i > 0) weir_place_add_use(b, n, tensor);
    weir_place_add_constant_use(b, n, weight[i]);
    weir_place_add_constant_use(b, n, all);
    weir_place_add_constant_use(b, n, weight[i]); /* counts once */
    tensor = weir_place_add_tensor(b, n, 1);
  }
  return finish(b, p, err);
}

static void caps_hold_where_constants_are_read(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  /* One layer a device, then two, then no cap that matters. */
  static const int64_t caps[] = {110, 220, 1000};
  static const uint32_t used[] = {4, 2, 1};
  for (int i = 0; i < 3; i++) {
    weir_place_problem *p = NULL;
    weir_place_result r;
    int64_t peaks[DEVICES], bytes[DEVICES], copied;
    uint32_t stamp[DEVICES], devices = 0;
    weir_place_options o = {.moves = 1000};
    assert_ok(layers(system_memory(), caps[i], &p, &err), &err);
    assert_ok(weir_place_solve(system_memory(), p, &o, &r, &err), &err);
    weir_place_settle_homes(p, r.plan);
    assert_ok(weir_place_check(system_memory(), p, r.plan, peaks, &err), &err);
    weir_place_resident(p, r.plan->device, bytes, stamp);
    for (uint32_t d = 0; d < DEVICES; d++) {
      assert_true(peaks[d] <= caps[i] && bytes[d] <= peaks[d]);
      devices += peaks[d] > 0;
      assert_true(bytes[d] % WEIGHT == (bytes[d] > 0 ? 5 : 0));
    }
    assert_int_equal(devices, used[i]);
    /* Each weight is at home with its reader; the other one is everywhere. */
    assert_int_equal(weir_place_start_copies(p, r.plan->device, stamp, &copied),
                     0);
    r.plan->device[0] = (r.plan->device[LAYERS] + 1) % DEVICES;
    assert_int_equal(weir_place_start_copies(p, r.plan->device, stamp, &copied),
                     1);
    assert_int_equal(copied, WEIGHT);
    weir_place_plan_release(r.plan);
    weir_place_problem_release(p);
  }
}

static void the_checker_counts_constants(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL, *small = NULL;
  weir_place_result r;
  int64_t peaks[DEVICES];
  weir_place_options o = {0};
  assert_ok(layers(system_memory(), 1000, &p, &err), &err);
  assert_ok(weir_place_solve(system_memory(), p, &o, &r, &err), &err);
  assert_ok(weir_place_check(system_memory(), p, r.plan, peaks, &err), &err);
  assert_int_equal(peaks[r.plan->device[LAYERS]], 4 * WEIGHT + 5 + 2);
  /* The same plan under caps is refused. */
  assert_ok(layers(system_memory(), 300, &small, &err), &err);
  assert_error(weir_place_check(system_memory(), small, r.plan, NULL, &err),
               &err, "W3013");
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
  weir_place_problem_release(small);
}

/* No device has room for the constants of one node. */
static void too_many_constants_are_refused(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  weir_place_result r = {0};
  weir_place_options o = {0};
  assert_ok(layers(system_memory(), 90, &p, &err), &err);
  assert_error(weir_place_solve(system_memory(), p, &o, &r, &err), &err,
               "W3030");
  assert_true(strstr(err.message, "106 bytes") != NULL);
  weir_place_problem_release(p);
}

/* Splits count a constant once a device, however many items read it. */
static void splits_share_constants(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  uint64_t random = 1;
  for (int round = 0; round < 20; round++) {
    weir_place_problem *p = NULL;
    weir_items *items = NULL;
    uint32_t split[64], device[64], stamp[DEVICES], tensor = 0;
    int64_t caps[DEVICES], bytes[DEVICES];
    bool found = false;
    uint32_t all[WEIR_CHAIN_SPLITS * 24];
    uint64_t moves = 0;
    weir_place_builder *b = begin(system_memory(), INT64_MAX);
    for (uint32_t c = 0; c < 6; c++)
      weir_place_add_constant(b, WEIR_PLACE_NONE, 10 + c);
    for (uint32_t i = 0; i < 24; i++) {
      uint32_t n = add(b, "n", 100, i % 5 == 0 ? i % 2 : WEIR_PLACE_NONE);
      if (i > 0) weir_place_add_use(b, n, tensor);
      weir_place_add_constant_use(b, n, (uint32_t)(weir_mix_next(&random) % 6));
      weir_place_add_constant_use(b, n, i / 4);
      tensor = weir_place_add_tensor(b, n, 1);
    }
    assert_ok(finish(b, &p, &err), &err);
    assert_ok(weir_items_create(system_memory(), p, &items, &err), &err);
    for (uint32_t d = 0; d < DEVICES; d++) caps[d] = 60;
    weir_chain_options cut = {.cap = caps, .orders = 24};
    weir_chain_splits splits = {.device = all};
    assert_ok(weir_chain_split(items, &cut, &splits, &err), &err);
    found = splits.count > 0;
    memcpy(split, all, items->count * sizeof *split);
    for (uint32_t i = 0; i < items->count && !found; i++)
      split[i] = i % DEVICES;
    const weir_balance_options o = {
        .goal = weir_place_objective_find("throughput")->goal,
        .cap = caps,
        .moves = 3000,
        .seed = 1};
    for (int pass = 0; pass < 2; pass++) {
      for (uint32_t n = 0; n < p->node_count; n++)
        device[n] = split[items->of[n]];
      weir_place_resident(p, device, bytes, stamp);
      for (uint32_t d = 0; d < DEVICES && found; d++)
        assert_true(bytes[d] <= caps[d]);
      if (pass == 0)
        assert_ok(weir_balance(items, &o, split, &moves, &err), &err);
    }
    weir_items_release(items);
    weir_place_problem_release(p);
  }
}

static bool collect(void *self, const char *data, size_t size) {
  char *text = self;
  size_t used = strlen(text);
  if (used + size >= 8192) return false;
  memcpy(text + used, data, size);
  text[used + size] = 0;
  return true;
}

static void reports_name_constants(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  weir_place_result r;
  int64_t peaks[DEVICES];
  char text[8192] = "";
  weir_writer out = {.self = text, .write = collect};
  weir_place_options o = {0};
  assert_ok(layers(system_memory(), 1000, &p, &err), &err);
  assert_ok(weir_place_solve(system_memory(), p, &o, &r, &err), &err);
  for (uint32_t i = 0; i < LAYERS; i++)
    r.plan->device[i] = (r.plan->device[LAYERS] + 1) % DEVICES;
  assert_ok(weir_place_check(system_memory(), p, r.plan, peaks, &err), &err);
  weir_place_view v = {.alloc = system_memory(),
                       .problem = p,
                       .plan = r.plan,
                       .bounds = &r.bounds,
                       .peaks = peaks};
  assert_true(weir_place_write_summary(&v, &out));
  assert_non_null(strstr(text, "before the first step: 4 weights, 400 B\n"));
  text[0] = 0;
  assert_true(weir_place_write_json(&v, &out));
  assert_non_null(
      strstr(text, "\"before_first_step\": {\"copies\": 4, \"bytes\": 400}"));
  assert_non_null(strstr(text,
                         "{\"node\": 3, \"bytes\": 100, \"readers\": "
                         "[7]}"));
  assert_non_null(strstr(text, "{\"bytes\": 5, \"readers\": [4, 5, 6, 7]}"));
  text[0] = 0;
  assert_ok(weir_place_write_memory(&v, r.plan->device[LAYERS], &out, &err),
            &err);
  assert_non_null(strstr(text, "100 B  constant  w\n"));
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
}

static weir_status all_of_it(const weir_allocator *a, weir_error *err) {
  weir_place_problem *p = NULL;
  weir_place_result r = {0};
  weir_place_options o = {.moves = 20};
  weir_status s = layers(a, 220, &p, err);
  if (s == WEIR_OK) s = weir_place_solve(a, p, &o, &r, err);
  if (s == WEIR_OK)
    s = weir_place_improve(a, p, weir_place_objective_find("memory"), &o, &r,
                           err);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
  return s;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = WEIR_RESOURCE_EXHAUSTED;
  for (uint64_t k = 1; s != WEIR_OK; k++) {
    weir_counted_allocator_init(&c, NULL);
    c.fail_at = k;
    s = all_of_it(&c.base, &err);
    if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
    assert_int_equal(atomic_load(&c.live_blocks), 0);
  }
}

static void bad_constants_are_refused(void **state) {
  (void)state;
  for (int kind = 0; kind < 4; kind++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_problem *p = NULL;
    weir_place_builder *b = begin(system_memory(), 100);
    if (kind == 0) weir_place_add_constant(b, 0, 5); /* no such node */
    uint32_t n = add(b, "n", 1, WEIR_PLACE_NONE);
    if (kind == 1) weir_place_add_constant(b, n, -1);
    uint32_t c = weir_place_add_constant(b, n, 5);
    if (kind == 2) weir_place_add_constant_use(b, n, c + 2);
    add(b, "m", 1, WEIR_PLACE_NONE);
    if (kind == 3) weir_place_add_constant_use(b, n, c); /* not the last */
    assert_error(finish(b, &p, &err), &err, "W3010");
    assert_null(p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(caps_hold_where_constants_are_read),
      cmocka_unit_test(the_checker_counts_constants),
      cmocka_unit_test(too_many_constants_are_refused),
      cmocka_unit_test(splits_share_constants),
      cmocka_unit_test(reports_name_constants),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(bad_constants_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
