/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/philox.h"
#include "tests/check.h"

typedef struct known_answer {
  uint32_t counter[4], key[2], want[4];
} known_answer;

/* Published with the Random123 library as kat_vectors, philox4x32, 10 rounds.
 */
static const known_answer answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void test_known_answers(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
    const known_answer *a = &answers[i];
    weir_philox counter = {
        {a->counter[0], a->counter[1], a->counter[2], a->counter[3]}};
    weir_philox got =
        weir_philox_10(counter, (uint64_t)a->key[1] << 32 | a->key[0]);
    assert_memory_equal(got.word, a->want, sizeof got.word);
  }
}

/* Step and block land in different halves of the counter. */
static void test_blocks_differ(void **state) {
  weir_philox a = weir_philox_block(1, 2, 3), b = weir_philox_block(1, 3, 2);
  weir_philox c = weir_philox_10((weir_philox){{3, 0, 2, 0}}, 1);
  (void)state;
  assert_memory_equal(a.word, c.word, sizeof a.word);
  assert_memory_not_equal(a.word, b.word, sizeof a.word);
}

static void test_uniform_range(void **state) {
  (void)state;
  assert_true(weir_uniform_f32(0) == 0.0f);
  assert_true(weir_uniform_f32(UINT32_MAX) == 1.0f - 0x1p-24f);
  assert_true(weir_uniform_f64(0, 0) == 0.0);
  assert_true(weir_uniform_f64(UINT32_MAX, UINT32_MAX) == 1.0 - 0x1p-53);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_answers),
      cmocka_unit_test(test_blocks_differ),
      cmocka_unit_test(test_uniform_range),
  };
  return cmocka_run_group_tests_name("kernels/philox", tests, NULL, NULL);
}
