/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/env_system.h"
#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data.h"
#include "runtime/train/data/data_open.h"

#include "tests/train/data_check.h"

/* Order, batches, epochs, state: on examples in memory. */

#define GRAPH                    \
  "inputs: {x: 'f32[?, 2]', y: " \
  "'i32[?]'}\n"                  \
  "outputs: [x]\n"
#define FIVE                                                             \
  "values: {x: [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], y: [1, 2, 3, " \
  "4, 5]}"
/* Ten examples, one number each. */
#define TEN(more)                                                    \
  "inputs: {x: 'f32[?]'}\noutputs: [x]\ndata: {t: {source: memory, " \
  "values: {x: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}, prefetch: 0" more "}}\n"
#define TEN_AHEAD(more)                                              \
  "inputs: {x: 'f32[?]'}\noutputs: [x]\ndata: {t: {source: memory, " \
  "values: {x: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}" more "}}\n"

static void batches(void **state) {
  (void)state;
  data_gives(GRAPH "data: {t: {source: memory, " FIVE ", batch: 2}}\n", 5,
             "x=1,2,3,4;y=1,2 | x=5,6,7,8;y=3,4 | x=9,10;y=5 | END "
             "x=1,2,3,4;y=1,2 | ");
  data_gives(GRAPH "data: {t: {source: memory, " FIVE "}}\n", 2,
             "x=1,2;y=1 | x=3,4;y=2 | ");
  data_gives(TEN(", batch: 20"), 3,
             "x=0,1,2,3,4,5,6,7,8,9 | END "
             "x=0,1,2,3,4,5,6,7,8,9 | ");
}

static void remainders(void **state) {
  (void)state;
  data_gives(TEN(", batch: 4, remainder: drop"), 4,
             "x=0,1,2,3 | x=4,5,6,7 | END x=0,1,2,3 | ");
  data_gives(TEN(", batch: 4, remainder: keep"), 4,
             "x=0,1,2,3 | x=4,5,6,7 | x=8,9 | END ");
  data_gives(TEN(", batch: 4, remainder: pad"), 4,
             "x=0,1,2,3 | x=4,5,6,7 | x=8,9,9,9 | END ");
  /* A graph that takes batches of 4 only. */
#define FIXED(more)                                                  \
  "inputs: {x: 'f32[4]'}\noutputs: [x]\ndata: {t: {source: memory, " \
  "values: {x: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}, prefetch: 0" more "}}\n"
  data_gives(FIXED(""), 3, "x=0,1,2,3 | x=4,5,6,7 | END ");
  data_gives(FIXED(", remainder: pad"), 3,
             "x=0,1,2,3 | x=4,5,6,7 | x=8,9,9,9 | ");
  data_refuses(FIXED(", remainder: keep"), "W4022", "last batch");
  data_refuses(FIXED(", batch: 5"), "W4022", "batches of 5");
}

static void rows_and_counts(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_batch b;
  weir_dataset *set = data_open(TEN(", batch: 4, remainder: pad"));
  weir_data_iter *it = data_iter(set);
  assert_int_equal(weir_dataset_examples(set), 10);
  assert_int_equal(weir_dataset_batches(set), 3);
  assert_int_equal(weir_dataset_column(set, 0)->dims[0], 4);
  for (int i = 0; i < 3; i++)
    assert_ok(weir_data_iter_next(it, &b, &err), &err);
  assert_int_equal(b.rows, 2);
  weir_data_iter_release(it);
  weir_dataset_release(set);
  set = data_open(TEN(", batch: 4"));
  assert_int_equal(weir_dataset_batches(set), 3);
  assert_int_equal(weir_dataset_column(set, 0)->dims[0], -1);
  weir_dataset_release(set);
  set = data_open(TEN(", batch: 4, repeat: forever"));
  assert_int_equal(weir_dataset_examples(set), -1);
  assert_int_equal(weir_dataset_batches(set), -1);
  weir_dataset_release(set);
}

static void skips_takes_repeats(void **state) {
  (void)state;
  data_gives(TEN(", batch: 3, skip: 2, take: 5"), 3, "x=2,3,4 | x=5,6 | END ");
  data_gives(TEN(", batch: 4, take: 3, repeat: 2"), 3,
             "x=0,1,2,0 | x=1,2 | END ");
  data_gives(TEN(", batch: 4, take: 3, repeat: forever"), 4,
             "x=0,1,2,0 | x=1,2,0,1 | x=2,0,1,2 | x=0,1,2,0 | ");
  data_refuses(TEN(", skip: 10"), "W4033", "0 examples");
  data_refuses(TEN(", batch: 11, remainder: drop"), "W4033", "10 examples");
}

static void shuffles(void **state) {
  (void)state;
  /* tests/train/test_data_order.c has the order. */
  data_gives(TEN(", take: 8, batch: 4, shuffle: {seed: 7}"), 5,
             "x=5,0,7,4 | x=2,6,1,3 | END x=6,0,7,5 | x=2,4,1,3 | ");
  data_gives(TEN(", take: 8, batch: 8, repeat: 2, shuffle: {seed: 7}"), 3,
             "x=5,0,7,4,2,6,1,3 | x=6,0,7,5,2,4,1,3 | END ");
  data_same(TEN(", shuffle: {seed: 7, buffer: 10}"),
            TEN(", shuffle: {seed: 7, buffer: 60000}"), 25);
  data_same(TEN(", shuffle: {seed: 3, buffer: 4}, batch: 3"),
            TEN_AHEAD(", shuffle: {seed: 3, buffer: 4}, batch: 3"), 25);
}

static void seeds_from_outside(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_dataset_options o = {.seed = 7};
  weir_dataset *set = NULL;
  assert_ok(
      data_open_with(weir_env_system(),
                     TEN(", take: 8, batch: 8, shuffle: true"), &o, &set, &err),
      &err);
  weir_data_iter *it = data_iter(set);
  char *text = data_take(set, it, 1);
  assert_string_equal(text, "x=5,0,7,4,2,6,1,3 | ");
  free(text);
  weir_data_iter_release(it);
  weir_dataset_release(set);
}

static void shards(void **state) {
  (void)state;
  static const char *const kWant[] = {"x=0,3,6,9 | END ", "x=1,4,7 | END ",
                                      "x=2,5,8 | END "};
  for (uint32_t k = 0; k < 3; k++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_dataset_options o = {.shard = k, .shards = 3};
    weir_dataset *set = NULL;
    assert_ok(
        data_open_with(weir_env_system(), TEN(", batch: 8"), &o, &set, &err),
        &err);
    weir_data_iter *it = data_iter(set);
    char *text = data_take(set, it, 2);
    assert_string_equal(text, kWant[k]);
    free(text);
    weir_data_iter_release(it);
    weir_dataset_release(set);
    assert_ok(data_open_with(weir_env_system(), TEN(", batch: 8, shard: none"),
                             &o, &set, &err),
              &err);
    assert_int_equal(weir_dataset_examples(set), 10);
    weir_dataset_release(set);
  }
}

static void converts(void **state) {
  (void)state;
#define ONE(type, more)                         \
  "inputs: {x: '" type                          \
  "[?, 2]'}\noutputs: [x]\ndata: {t: {source: " \
  "memory, values: {x: [[1, 2], [3, 250]]}, " more ", batch: 2}}\n"
  data_gives(ONE("f32", "normalise: {x: {mean: 1, std: 2}}"), 1,
             "x=0,0.5,1,124.5 | ");
  data_gives(ONE("f32", "normalise: {x: {mean: [1, 2], std: [1, 4]}}"), 1,
             "x=0,0,2,62 | ");
  data_gives(ONE("f32", "normalise: {x: {scale: 0.5, offset: 1}}"), 1,
             "x=1.5,2,2.5,126 | ");
  data_gives(ONE("u8", "columns: {x: u8}"), 1, "x=1,2,3,250 | ");
  data_gives(ONE("i64", "columns: {x: {dtype: i64}}"), 1, "x=1,2,3,250 | ");
  data_gives(ONE("i32", "bucketize: {x: [2, 3, 100]}"), 1, "x=0,1,2,3 | ");
  data_gives(ONE("i32", "vocabulary: {x: ['250', '3', '2', '1']}"), 1,
             "x=3,2,1,0 | ");
  data_gives(ONE("i32", "vocabulary: {x: {list: ['3'], unknown: u}}"), 1,
             "x=0,0,1,0 | ");
  data_gives(
      "inputs: {x: 'f32[?, 1, 2]'}\noutputs: [x]\n"
      "data: {t: {source: memory, values: {x: [[1, 2]]}, columns: {x: "
      "'f32[1, 2]'}}}\n",
      1, "x=1,2 | ");
  data_refuses(ONE("u8", "columns: {x: i32}"), "W4022", "x' is i32[2, 2]");
  data_refuses(ONE("f32", "normalise: {x: {mean: [1, 2, 3]}}"), "W4024",
               "3 numbers");
}

static void hashes_the_same_everywhere(void **state) {
  (void)state;
  char *a = data_stream(ONE("i32", "hash_bucket: {x: 1000}"), 1);
  char *b = data_stream(ONE("i32", "hash_bucket: {x: {buckets: 1000}}"), 1);
  assert_string_equal(a, b);
  free(a);
  free(b);
}

static void ids_out_of_place(void **state) {
  (void)state;

  data_refuses(
      "inputs: {x: 'f32[?]'}\noutputs: [x]\ndata: {u: {source: "
      "memory, values: {x: [1]}}}\n",
      "W4023", "no section 't'");
  data_refuses("inputs: {x: 'f32[?]'}\noutputs: [x]\n", "W4023", "'t'");
  data_refuses(TEN(", ignore: [x]"), "W4024", "no columns");
  data_refuses(TEN(", shuffle: {buffer: 0}"), "W4024", "buffer");
  data_refuses(TEN(", batch: no"), "W4024", "batch must be an integer");
  data_refuses(TEN(", shard: by_lode"), "W4024", "by_load");
  data_refuses(TEN(", prefetsch: 3"), "W1009", "prefetsch");
  data_refuses(TEN(", shuffle: {bufer: 3}"), "W1009", "bufer");
  data_refuses(TEN(", normalise: {z: {mean: 1}}"), "W4021", "no column 'z'");
  data_refuses(TEN(", memory: lots"), "W4024", "memory");
  data_refuses(
      "inputs: {image: 'f32[?]'}\noutputs: [image]\ndata: {t: {source: "
      "memory, values: {imge: [1]}}}\n",
      "W4021", "no input 'imge'");
  data_refuses(
      "inputs: {x: 'f32[?, 3]'}\noutputs: [x]\ndata: {t: {source: "
      "memory, values: {x: [[1, 2]]}}}\n",
      "W4022", "x' is f32[1, 2], the graph's input f32[?1, 3]");
  data_refuses(
      "inputs: {x: 'f32[?]', y: 'f32[?]'}\noutputs: [x]\ndata: {t: "
      "{source: memory, values: {x: [1, 2], y: [1]}}}\n",
      "W4025", "'y' has 1 examples, column 'x' 2");
  data_refuses(
      "inputs: {x: 'f32[?, 2]'}\noutputs: [x]\ndata: {t: {source: "
      "memory, values: {x: [[1, 2], [1]]}}}\n",
      "W4024", "differ in length");
  data_refuses(
      "inputs: {x: 'u8[?]'}\noutputs: [x]\ndata: {t: {source: "
      "memory, values: {x: [1, 256]}}}\n",
      "W4027", "not a number of dtype u8");
}

static void resumes(void **state) {
  (void)state;
  data_resumes(TEN(", batch: 4"), 9);
  data_resumes(TEN(", batch: 4, shuffle: {seed: 1, buffer: 3}"), 9);
  data_resumes(TEN(", batch: 3, shuffle: {seed: 1}, repeat: 2"), 17);
  data_resumes(TEN_AHEAD(", batch: 3, shuffle: {seed: 1, buffer: 4}"), 9);
  data_resumes(TEN_AHEAD(", batch: 4, prefetch: 7, repeat: forever"), 12);
}

static void refuses_other_positions(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_dataset *a = data_open(TEN(", batch: 4, shuffle: {seed: 1}"));
  weir_dataset *b = data_open(TEN(", batch: 4, shuffle: {seed: 2}"));
  weir_data_iter *one = data_iter(a), *two = data_iter(b);
  free(data_take(a, one, 2));
  char *text = data_state(one);
  assert_error(weir_data_iter_restore(two, weir_sv_from(text), &err), &err,
               "W4037");
  assert_non_null(strstr(err.message, "seed"));
  for (size_t cut = 0; cut < strlen(text); cut++)
    assert_error(weir_data_iter_restore(one, (weir_sv){text, cut}, &err), &err,
                 "W4037");
  char *at = strstr(text, "\"example\": 8");
  if (at == NULL) at = strstr(text, "\"example\":8");
  assert_non_null(at);
  *strchr(at, '8') = '7'; /* within a batch */
  assert_error(weir_data_iter_restore(one, weir_sv_from(text), &err), &err,
               "W4037");
  free(text);
  text = data_take(a, one, 1); /* and is where it was */
  assert_int_equal(strlen(text), strlen("x=0,1 | "));
  free(text);
  weir_data_iter_release(one);
  weir_data_iter_release(two);
  weir_dataset_release(a);
  weir_dataset_release(b);
}

/* A batch that was handed out stays valid while more are made ahead. */
static void lent_until_the_next_call(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_dataset *set = data_open(TEN_AHEAD(", prefetch: 3"));
  weir_data_iter *it = data_iter(set);
  weir_batch b;
  for (int i = 0; i < 40; i++) {
    assert_ok(weir_data_iter_next(it, &b, &err), &err);
    usleep(200);
    if (i % 11 == 10)
      assert_true(b.end_of_epoch);
    else
      assert_true(weir_tensor_get_f64(b.columns[0], 0) == i % 11);
  }
  assert_true(weir_data_iter_wait_ns(it) >= 0);
  weir_data_iter_release(it);
  weir_dataset_release(set);
}

static void allocates_nothing_in_a_step(void **state) {
  (void)state;
  data_env e;
  weir_error err = WEIR_ERROR_INIT;
  weir_dataset *set = NULL;
  weir_data_iter *it = NULL;
  weir_batch b;
  data_env_init(&e);
  assert_ok(data_open_with(&e.env, TEN_AHEAD(", batch: 3, shuffle: true"), NULL,
                           &set, &err),
            &err);
  assert_ok(weir_data_iter_create(set, &it, &err), &err);
  uint64_t calls = atomic_load(&e.counted.calls);
  for (int i = 0; i < 100; i++)
    assert_ok(weir_data_iter_next(it, &b, &err), &err);
  assert_int_equal(atomic_load(&e.counted.calls), calls);
  weir_data_iter_release(it);
  weir_dataset_release(set);
  assert_int_equal(atomic_load(&e.counted.live_blocks), 0);
}

static void without_memory(void **state) {
  (void)state;
  data_sweep(GRAPH "data: {t: {source: memory, " FIVE
                   ", batch: 2, shuffle: {seed: 1}, normalise: {x: {mean: 1, "
                   "std: 2}}, vocabulary: {y: {list: ['1', '2'], unknown: u}}}"
                   "}\n",
             4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      DATA_TEST(batches),
      DATA_TEST(remainders),
      DATA_TEST(rows_and_counts),
      DATA_TEST(skips_takes_repeats),
      DATA_TEST(shuffles),
      DATA_TEST(seeds_from_outside),
      DATA_TEST(shards),
      DATA_TEST(converts),
      DATA_TEST(hashes_the_same_everywhere),
      DATA_TEST(ids_out_of_place),
      DATA_TEST(resumes),
      DATA_TEST(refuses_other_positions),
      DATA_TEST(lent_until_the_next_call),
      DATA_TEST(allocates_nothing_in_a_step),
      DATA_TEST(without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
