/* SPDX-License-Identifier: Apache-2.0
 * Who gets which call: by need, by numbers, again after a loss. */
#include "runtime/dist/deal/dealer.h"

#include "runtime/base/mix.h"
#include "tests/check.h"

enum { WORKERS = 3, EACH = 2, CALLS = 12 };

typedef struct table {
  weir_dealer_worker workers[WORKERS];
  weir_dealer dealer;
  weir_dealer_call calls[CALLS];
} table;

static void open_table(table *t, uint32_t workers) {
  *t = (table){0};
  weir_dealer_init(&t->dealer, t->workers, workers, EACH);
}

static uint32_t ask(table *t, int i) {
  weir_dealer_ask(&t->dealer, &t->calls[i]);
  return weir_dealer_grant(&t->dealer, &t->calls[i]);
}

static uint32_t grant(table *t, int i) {
  return weir_dealer_grant(&t->dealer, &t->calls[i]);
}

/* Each gets one before any gets two; then calls wait. */
static void all_get_work(void **state) {
  (void)state;
  table t;
  open_table(&t, WORKERS);
  for (int i = 0; i < WORKERS * EACH; i++)
    assert_int_equal(ask(&t, i), i % WORKERS);
  assert_int_equal(ask(&t, 6), WEIR_DEALER_WAIT);
  assert_int_equal(grant(&t, 6), WEIR_DEALER_WAIT);
  weir_dealer_end(&t.dealer, 1, WEIR_DEAL_DONE);
  assert_int_equal(grant(&t, 6), 1);
  assert_int_equal(t.workers[1].done, 1);
  assert_int_equal(t.workers[1].under_way, EACH);
}

/* Calls are served in the order of their asks, whoever looks first. */
static void by_numbers(void **state) {
  (void)state;
  table t;
  open_table(&t, 1);
  for (int i = 0; i < EACH; i++) assert_int_equal(ask(&t, i), 0);
  for (int i = EACH; i < 5; i++) assert_int_equal(ask(&t, i), WEIR_DEALER_WAIT);
  weir_dealer_end(&t.dealer, 0, WEIR_DEAL_DONE);
  assert_int_equal(grant(&t, 4), WEIR_DEALER_WAIT);
  assert_int_equal(grant(&t, 3), WEIR_DEALER_WAIT);
  assert_int_equal(grant(&t, 2), 0);
  weir_dealer_end(&t.dealer, 0, WEIR_DEAL_FAILED);
  assert_int_equal(grant(&t, 4), WEIR_DEALER_WAIT);
  assert_int_equal(grant(&t, 3), 0);
  assert_int_equal(t.workers[0].failed, 1);
}

/* A worker that is twice as fast gets twice as much. */
static void by_need(void **state) {
  (void)state;
  table t;
  uint64_t ends[2][EACH]; /* when the calls of a worker end; 0: none */
  open_table(&t, 2);
  for (int k = 0; k < EACH; k++) {
    assert_int_equal(ask(&t, 2 * k), 0);
    assert_int_equal(ask(&t, 2 * k + 1), 1);
    ends[0][k] = (uint64_t)(2 * (k + 1)), ends[1][k] = (uint64_t)(k + 1);
  }
  for (uint64_t now = 1; now <= 300; now++)
    for (uint32_t w = 0; w < 2; w++)
      for (int k = 0; k < EACH; k++) {
        if (ends[w][k] != now) continue;
        weir_dealer_end(&t.dealer, w, WEIR_DEAL_DONE);
        weir_dealer_call call = {0};
        weir_dealer_ask(&t.dealer, &call);
        assert_int_equal(weir_dealer_grant(&t.dealer, &call), w);
        ends[w][k] = now + (w == 0 ? 2 : 1) * EACH;
      }
  assert_in_range(t.workers[1].done, 2 * t.workers[0].done - 4,
                  2 * t.workers[0].done + 4);
}

/* The calls of a lost worker keep their numbers and come first. */
static void again_after_a_loss(void **state) {
  (void)state;
  table t;
  open_table(&t, 2);
  for (int i = 0; i < 2 * EACH; i++) assert_int_equal(ask(&t, i), i % 2);
  assert_int_equal(ask(&t, 4), WEIR_DEALER_WAIT);
  assert_true(weir_dealer_lose(&t.dealer, 1));
  assert_false(weir_dealer_lose(&t.dealer, 1));
  for (int i = 1; i < 4; i += 2) {
    weir_dealer_end(&t.dealer, 1, WEIR_DEAL_AGAIN);
    assert_int_equal(ask(&t, i), WEIR_DEALER_WAIT);
  }
  assert_int_equal(t.workers[1].again, 2);
  assert_int_equal(grant(&t, 4), WEIR_DEALER_WAIT);
  weir_dealer_end(&t.dealer, 0, WEIR_DEAL_DONE);
  assert_int_equal(grant(&t, 4), WEIR_DEALER_WAIT);
  assert_int_equal(grant(&t, 3), WEIR_DEALER_WAIT);
  assert_int_equal(grant(&t, 1), 0);
  weir_dealer_end(&t.dealer, 0, WEIR_DEAL_DONE);
  assert_int_equal(grant(&t, 3), 0);
  weir_dealer_end(&t.dealer, 0, WEIR_DEAL_DONE);
  assert_int_equal(grant(&t, 4), 0);
}

static void none_is_left(void **state) {
  (void)state;
  table t;
  open_table(&t, 2);
  for (int i = 0; i < 2 * EACH; i++) assert_int_equal(ask(&t, i), i % 2);
  assert_int_equal(ask(&t, 4), WEIR_DEALER_WAIT);
  for (uint32_t w = 0; w < 2; w++) assert_true(weir_dealer_lose(&t.dealer, w));
  for (uint32_t i = 0; i < 2 * EACH; i++) {
    weir_dealer_end(&t.dealer, i % 2, WEIR_DEAL_AGAIN);
    assert_int_equal(ask(&t, (int)i), WEIR_DEALER_NONE);
  }
  assert_int_equal(grant(&t, 4), WEIR_DEALER_NONE);
  assert_null(t.dealer.queue);
}

/* Whatever happens in which order: no worker has too many, every call ends
 * once, and there is always one that can go on. */
static void many_orders(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    table t;
    uint64_t random = seed;
    int with[CALLS], left = CALLS; /* -2: not asked; -1: waits; -3: over */
    open_table(&t, WORKERS);
    for (int i = 0; i < CALLS; i++) with[i] = -2;
    while (left > 0) {
      int i = (int)(weir_mix_next(&random) % CALLS);
      uint32_t got = WEIR_DEALER_WAIT;
      if (weir_mix_next(&random) % 40 == 0 && t.dealer.left > 1)
        (void)weir_dealer_lose(&t.dealer,
                               (uint32_t)(weir_mix_next(&random) % WORKERS));
      if (with[i] >= 0) {
        bool lost = t.workers[with[i]].lost;
        weir_dealer_end(&t.dealer, (uint32_t)with[i],
                        lost ? WEIR_DEAL_AGAIN : WEIR_DEAL_DONE);
        with[i] = lost ? -2 : -3;
        left -= !lost;
        continue;
      }
      if (with[i] == -3) continue;
      got = with[i] == -2 ? ask(&t, i) : grant(&t, i);
      with[i] = got == WEIR_DEALER_WAIT ? -1 : (int)got;
      if (with[i] < 0) continue;
      assert_false(t.workers[with[i]].lost);
      assert_in_range(t.workers[with[i]].under_way, 1, EACH);
    }
    uint64_t done = 0;
    for (int w = 0; w < WORKERS; w++) {
      done += t.workers[w].done;
      assert_int_equal(t.workers[w].under_way, 0);
    }
    assert_int_equal(done, CALLS);
    assert_null(t.dealer.queue);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_get_work), cmocka_unit_test(by_numbers),
      cmocka_unit_test(by_need),      cmocka_unit_test(again_after_a_loss),
      cmocka_unit_test(none_is_left), cmocka_unit_test(many_orders),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
