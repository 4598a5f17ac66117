/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/batch/data_order.h"

#include "tests/check.h"

static weir_order *order(weir_order_spec spec) {
  weir_error err = WEIR_ERROR_INIT;
  weir_order *o = NULL;
  assert_ok(weir_order_create(weir_allocator_system(), &spec, &o, &err), &err);
  return o;
}

static weir_order_spec all(int64_t n) {
  return (weir_order_spec){.examples = n, .take = -1};
}

/* Every example comes once in a round, for any size of the buffer. */
static void each_once(void **state) {
  (void)state;
  for (int64_t n = 1; n < 40; n += 3)
    for (int64_t buffer = 1; buffer < 50; buffer += 7) {
      weir_order_spec spec = all(n);
      spec.shuffle = true;
      spec.buffer = buffer;
      weir_order *o = order(spec);
      for (uint64_t round = 0; round < 3; round++) {
        uint64_t seen = 0;
        weir_order_seek(o, round, 0);
        for (int64_t i = 0; i < n; i++) seen |= 1ull << weir_order_next(o);
        assert_int_equal(seen, (1ull << n) - 1);
      }
      weir_order_release(o);
    }
}

/* By the description in data_order.h, written again:
 *   M = 2**64 - 1
 *   def mix(x):
 *     x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & M
 *     x = (x ^ x >> 27) * 0x94d049bb133111eb & M
 *     return x ^ x >> 31
 *   key = mix(7 + mix(round + 1)); perm = list(range(8)); k = 0
 *   for i in range(7, 0, -1):
 *     k += 1
 *     j = mix(key + k * 0x9e3779b97f4a7c15 & M) * (i + 1) >> 64
 *     perm[i], perm[j] = perm[j], perm[i] */
static void known_permutations(void **state) {
  (void)state;
  static const int64_t want[2][8] = {{5, 0, 7, 4, 2, 6, 1, 3},
                                     {6, 0, 7, 5, 2, 4, 1, 3}};
  weir_order_spec spec = all(8);
  spec.shuffle = true;
  spec.buffer = 8;
  spec.seed = 7;
  weir_order *o = order(spec);
  for (uint64_t round = 0; round < 2; round++) {
    weir_order_seek(o, round, 0);
    for (int i = 0; i < 8; i++)
      assert_int_equal(weir_order_next(o), want[round][i]);
  }
  weir_order_release(o);
}

/* A buffer of b lets an example come at most b - 1 places early. */
static void buffers_reach_so_far(void **state) {
  (void)state;
  weir_order_spec spec = all(1000);
  spec.shuffle = true;
  spec.buffer = 10;
  weir_order *o = order(spec);
  bool moved = false;
  for (int64_t i = 0; i < 1000; i++) {
    int64_t given = weir_order_next(o);
    assert_true(given < i + 10);
    moved = moved || given != i;
  }
  assert_true(moved);
  weir_order_release(o);
}

/* Each example comes first about equally often: chi-squared with 9 degrees of
 * freedom stays below 27.9 (p = 0.001). */
static void even(void **state) {
  (void)state;
  int count[10] = {0};
  weir_order_spec spec = all(10);
  spec.shuffle = true;
  spec.buffer = 10;
  weir_order *o = order(spec);
  for (uint64_t round = 0; round < 10000; round++) {
    weir_order_seek(o, round, 0);
    count[weir_order_next(o)]++;
  }
  double chi = 0;
  for (int i = 0; i < 10; i++)
    chi += (count[i] - 1000.0) * (count[i] - 1000.0) / 1000.0;
  assert_true(chi < 27.9);
  weir_order_release(o);
}

static void seeks(void **state) {
  (void)state;
  for (int64_t buffer = 3; buffer <= 24; buffer += 21) {
    weir_order_spec spec = all(20);
    spec.shuffle = true;
    spec.buffer = buffer;
    weir_order *a = order(spec), *b = order(spec);
    for (int64_t at = 0; at <= 20; at++) {
      weir_order_seek(a, 5, 0);
      for (int64_t i = 0; i < at; i++) weir_order_next(a);
      weir_order_seek(b, 5, at);
      assert_int_equal(weir_order_at(b), at);
      for (int64_t i = at; i < 20; i++)
        assert_int_equal(weir_order_next(b), weir_order_next(a));
    }
    weir_order_release(a);
    weir_order_release(b);
  }
}

/* Seeks that stay in a round, forth and back, after draws and after none. */
static void seeks_within_a_round(void **state) {
  (void)state;
  for (int64_t buffer = 1; buffer <= 24; buffer += 5) {
    weir_order_spec spec = all(20);
    spec.shuffle = true;
    spec.buffer = buffer;
    int64_t want[2][20];
    weir_order *o = order(spec);
    for (uint64_t round = 0; round < 2; round++) {
      weir_order_seek(o, round, 0);
      for (int64_t i = 0; i < 20; i++) want[round][i] = weir_order_next(o);
    }
    for (uint64_t k = 0; k < 400; k++) {
      uint64_t round = k / 7 % 2;
      int64_t at = (int64_t)(k * k % 20);
      weir_order_seek(o, round, at);
      assert_int_equal(weir_order_at(o), at);
      if (k % 3 > 0) assert_int_equal(weir_order_next(o), want[round][at]);
    }
    weir_order_release(o);
  }
}

/* Shards part the examples; their sizes differ by one at most. */
static void shards(void **state) {
  (void)state;
  for (uint32_t n = 1; n < 6; n++)
    for (int64_t examples = 0; examples < 23; examples++) {
      uint64_t seen = 0;
      for (uint32_t k = 0; k < n; k++) {
        weir_order_spec spec = all(examples);
        spec.skip = 2;
        spec.take = 17;
        spec.shard = k;
        spec.shards = n;
        spec.shuffle = true;
        spec.buffer = 5;
        int64_t count = weir_order_count(&spec);
        int64_t kept = examples < 2 ? 0 : examples - 2 < 17 ? examples - 2 : 17;
        assert_true(count == kept / n || count == kept / n + 1);
        weir_order *o = order(spec);
        for (int64_t i = 0; i < count; i++) {
          uint64_t bit = 1ull << weir_order_next(o);
          assert_int_equal(seen & bit, 0);
          seen |= bit;
        }
        weir_order_release(o);
      }
      uint64_t top = examples < 19 ? (uint64_t)examples : 19;
      uint64_t want = examples < 2 ? 0 : ((1ull << top) - 1) & ~3ull;
      assert_int_equal(seen, want);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_once),
      cmocka_unit_test(even),
      cmocka_unit_test(known_permutations),
      cmocka_unit_test(seeks),
      cmocka_unit_test(seeks_within_a_round),
      cmocka_unit_test(buffers_reach_so_far),
      cmocka_unit_test(shards),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
