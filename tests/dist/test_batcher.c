/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/dist/predict/batcher.h"
#include "runtime/dist/predict/latency.h"
#include "tests/check.h"

/* Which requests make a batch, and when, on a clock of the test's. */

enum { ITEMS = 16 };

typedef struct scene {
  weir_batcher b;
  weir_batch_item items[ITEMS];
  weir_error err;
} scene;

static void begin(scene *s, int64_t rows, uint32_t queue, int64_t wait_ns) {
  const weir_batcher_options o = {
      .rows = rows, .queue = queue, .queue_bytes = 1000, .wait_ns = wait_ns};
  *s = (scene){.err = WEIR_ERROR_INIT};
  weir_batcher_init(&s->b, &o);
  for (int i = 0; i < ITEMS; i++)
    s->items[i] =
        (weir_batch_item){.rows = 1, .bytes = 10, .deadline_ns = INT64_MAX};
}

static void add(scene *s, int i, int64_t now) {
  assert_ok(weir_batcher_add(&s->b, &s->items[i], now, &s->err), &s->err);
}

/* The items of a list as digits: "013"; "" when it is empty. */
static const char *numbers(const scene *s, const weir_batch_item *list,
                           char text[ITEMS + 1]) {
  int n = 0;
  for (; list != NULL; list = list->next)
    text[n++] = (char)('0' + (list - s->items));
  text[n] = '\0';
  return text;
}

/* Takes at |now|: |batch| and |late| as digits, |next|: when to ask again. */
static void check_take(scene *s, int64_t now, const char *batch,
                       const char *late, int64_t next) {
  weir_batch_item *got, *over;
  int64_t again, before;
  char text[ITEMS + 1];
  bool expected = batch[0] != '\0';
  bool ready = weir_batcher_ready(&s->b, now, &before);
  assert_int_equal(ready, expected || late[0] != '\0');
  if (!ready) assert_int_equal(before, next);
  assert_int_equal(weir_batcher_take(&s->b, now, &got, &over, &again),
                   expected);
  assert_string_equal(numbers(s, got, text), batch);
  assert_string_equal(numbers(s, over, text), late);
  assert_int_equal(again, next);
}

static void test_full(void **state) {
  scene s;
  (void)state;
  begin(&s, 3, 10, 100);
  check_take(&s, 0, "", "", INT64_MAX);
  add(&s, 0, 10);
  add(&s, 1, 20);
  check_take(&s, 30, "", "", 110);
  add(&s, 2, 40);
  add(&s, 3, 40);
  check_take(&s, 40, "012", "", INT64_MAX);
  check_take(&s, 40, "", "", 140);
  assert_int_equal(s.b.count, 1);
  assert_int_equal(s.b.bytes, 10);
}

static void test_waits_for_the_first(void **state) {
  scene s;
  (void)state;
  begin(&s, 8, 10, 100);
  add(&s, 0, 10);
  add(&s, 1, 90);
  check_take(&s, 109, "", "", 110);
  check_take(&s, 110, "01", "", INT64_MAX);
  check_take(&s, 111, "", "", INT64_MAX);
  assert_int_equal(s.b.count, 0);
  assert_int_equal(s.b.bytes, 0);
  add(&s, 2, 200); /* the list's end was the list's begin */
  check_take(&s, 300, "2", "", INT64_MAX);
}

static void test_without_a_wait(void **state) {
  scene s;
  (void)state;
  begin(&s, 8, 10, 0);
  add(&s, 0, 10);
  add(&s, 1, 10);
  check_take(&s, 10, "01", "", INT64_MAX);
}

/* What does not fit is passed over, and comes first in the next batch. */
static void test_rows_that_do_not_fit(void **state) {
  scene s;
  (void)state;
  begin(&s, 8, 10, 100);
  s.items[0].rows = 3;
  s.items[1].rows = 6;
  s.items[2].rows = 5;
  s.items[3].rows = 8;
  for (int i = 0; i < 4; i++) add(&s, i, 10);
  check_take(&s, 10, "02", "", INT64_MAX);
  check_take(&s, 10, "1", "", INT64_MAX);
  check_take(&s, 10, "3", "", INT64_MAX);
}

static void test_deadlines(void **state) {
  scene s;
  (void)state;
  begin(&s, 8, 10, 100);
  s.items[1].deadline_ns = 60;
  s.items[2].deadline_ns = 30;
  for (int i = 0; i < 3; i++) add(&s, i, 10);
  weir_batcher_ran(&s.b, 20); /* so item 2 must leave at 10, item 1 at 40 */
  check_take(&s, 30, "", "2", 40);
  check_take(&s, 40, "01", "", INT64_MAX);
  s.items[3].deadline_ns = 50;
  assert_error(weir_batcher_add(&s.b, &s.items[3], 50, &s.err), &s.err,
               "W5006");
  for (int i = 4; i < 7; i++) s.items[i].deadline_ns = 70;
  for (int i = 4; i < 7; i++) add(&s, i, 60);
  check_take(&s, 70, "", "654", INT64_MAX);
  assert_int_equal(s.b.count, 0);
  add(&s, 0, 80);
  check_take(&s, 180, "0", "", INT64_MAX);
}

static void test_limits(void **state) {
  scene s;
  (void)state;
  begin(&s, 8, 2, 100);
  add(&s, 0, 10);
  add(&s, 1, 10);
  assert_error(weir_batcher_add(&s.b, &s.items[2], 10, &s.err), &s.err,
               "W7077");
  assert_string_equal(s.err.message, "2 requests wait, and the queue takes 2");
  begin(&s, 8, 10, 100);
  s.items[0].bytes = 2000; /* a first one is taken whatever its size */
  add(&s, 0, 10);
  assert_error(weir_batcher_add(&s.b, &s.items[1], 10, &s.err), &s.err,
               "W7077");
  check_take(&s, 110, "0", "", INT64_MAX);
  s.items[2].bytes = 990;
  add(&s, 2, 120);
  add(&s, 1, 120);
  assert_error(weir_batcher_add(&s.b, &s.items[3], 120, &s.err), &s.err,
               "W7077");
}

static void test_stop(void **state) {
  scene s;
  (void)state;
  begin(&s, 8, 10, 100);
  add(&s, 0, 10);
  weir_batcher_stop(&s.b);
  assert_error(weir_batcher_add(&s.b, &s.items[1], 10, &s.err), &s.err,
               "W7078");
  check_take(&s, 11, "0", "", INT64_MAX);
}

/* Every order of small sizes: each item leaves once, in a batch that it fits
 * in, and never behind a later one of no more rows. */
static void test_all_small_orders(void **state) {
  (void)state;
  for (int code = 0; code < 3 * 3 * 3 * 3 * 3; code++) {
    scene s;
    int left = 5, turn = 0, when[5] = {0};
    begin(&s, 3, 10, 0);
    for (int i = 0, c = code; i < 5; i++, c /= 3) {
      s.items[i].rows = 1 + c % 3;
      add(&s, i, 0);
    }
    for (; left > 0; turn++) {
      weir_batch_item *batch, *late;
      int64_t next, rows = 0;
      assert_true(weir_batcher_take(&s.b, 0, &batch, &late, &next));
      for (; batch != NULL; batch = batch->next, left--) {
        when[batch - s.items] = turn;
        rows += batch->rows;
      }
      assert_in_range(rows, 1, 3);
    }
    for (int i = 0; i < 5; i++)
      for (int k = i + 1; k < 5; k++)
        if (s.items[k].rows >= s.items[i].rows) assert_true(when[k] >= when[i]);
  }
}

static void test_latency(void **state) {
  static weir_latency l;
  (void)state;
  memset(&l, 0, sizeof l);
  assert_int_equal(weir_latency_at(&l, 0.5), 0);
  for (int64_t ns = 1; ns <= 100000; ns++) weir_latency_add(&l, ns);
  for (int p = 1; p <= 100; p++) {
    int64_t exact = p * 1000, got = weir_latency_at(&l, p / 100.0);
    assert_true(got + 1 >= exact && got <= exact + exact / 16 + 1);
  }
  weir_latency_add(&l, -5);
  weir_latency_add(&l, INT64_MAX);
  assert_true(weir_latency_at(&l, 1) > INT64_C(1) << 61);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_full),
      cmocka_unit_test(test_waits_for_the_first),
      cmocka_unit_test(test_without_a_wait),
      cmocka_unit_test(test_rows_that_do_not_fit),
      cmocka_unit_test(test_deadlines),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_stop),
      cmocka_unit_test(test_all_small_orders),
      cmocka_unit_test(test_latency),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
