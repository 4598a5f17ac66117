/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/env_system.h"
#include "runtime/graph/load/load.h"
#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/data/data_show.h"
#include "tests/train/data_check.h"

/* Maps: graphs between the rows read and the batches fed. The graph's file
 * stands in the test's folder, so that of the map is found beside it. */

static weir_status open_in_folder(const weir_env *env, const char *text,
                                  weir_dataset **out, weir_error *err) {
  char all[4096], path[128];
  weir_graph *g = NULL;
  *out = NULL;
  snprintf(all, sizeof all, "weir: 1\n%s", text);
  data_put_text("g.weir.yaml", all);
  snprintf(path, sizeof path, "%s/g.weir.yaml", data_folder);
  weir_load_options options = {.registry = weir_builtin_registry()};
  weir_dataset_options o = {.seed = 5};
  weir_status s = weir_graph_load(env, path, &options, &g, err);
  if (s == WEIR_OK)
    s = weir_dataset_open(env, g, WEIR_SV_LIT("t"), &o, out, err);
  weir_graph_unref(g);
  return s;
}

static weir_dataset *open_set(const char *text) {
  weir_dataset *set = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(open_in_folder(weir_env_system(), text, &set, &err), &err);
  return set;
}

static void gives(const char *text, int count, const char *want) {
  weir_dataset *set = open_set(text);
  weir_data_iter *it = data_iter(set);
  char *have = data_take(set, it, count);
  if (strcmp(have, want) != 0) fail_msg("gives %s\nwant  %s", have, want);
  free(have);
  weir_data_iter_release(it);
  weir_dataset_release(set);
}

#define FIVE(inputs, more)                                               \
  "inputs: {" inputs                                                     \
  "}\noutputs: [x]\ndata: {t: {source: memory, values: "                 \
  "{x: [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], y: [1, 2, 3, 4, 5]}, " \
  "batch: 2, columns: {x: f32, y: i32}, " more "}}\n"

/* The sum of a batch shows how many rows the map saw. */
static const char kSum[] =
    "weir: 1\ndims: [n]\ninputs: {x: 'f32[n, 2]'}\n"
    "nodes: {s: 'sum(x, axis=0, keepdims=true)'}\n"
    "outputs: {x: 'add(mul(x, 0), s)'}\n";
static const char kRow[] =
    "weir: 1\ninputs: {x: 'f32[2]'}\noutputs: {x: 'mul(x, 10)', z: 'sum(x)'}\n";
static const char kNoise[] =
    "weir: 1\ndims: [n]\ninputs: {x: 'f32[n, 2]'}\n"
    "outputs: {x: 'add(mul(x, 0), uniform(shape=[2, 2], dtype=f32))'}\n";

static void batches(void **state) {
  (void)state;
  data_put_text("m.weir.yaml", kSum);
  gives(FIVE("x: 'f32[?, 2]', y: 'i32[?]'", "map: m.weir.yaml"), 5,
        "x=4,6,4,6;y=1,2 | x=12,14,12,14;y=3,4 | x=9,10;y=5 | END "
        "x=4,6,4,6;y=1,2 | ");
  gives(FIVE("x: 'f32[?, 2]', y: 'i32[?]'",
             "remainder: pad, map: {graph: m.weir.yaml, per: batch}"),
        3, "x=4,6,4,6;y=1,2 | x=12,14,12,14;y=3,4 | x=18,20,18,20;y=5,5 | ");
}

static void examples(void **state) {
  (void)state;
  data_put_text("m.weir.yaml", kRow);
  gives(FIVE("x: 'f32[?, 2]', z: 'f32[?]', y: 'i32[?]'",
             "map: {graph: m.weir.yaml, per: example}"),
        3,
        "x=10,20,30,40;z=3,7;y=1,2 | x=50,60,70,80;z=11,15;y=3,4 | "
        "x=90,100;z=19;y=5 | ");
}

static void blocks(void **state) {
  (void)state;
#define BLOCKS                                                               \
  "params: {k: 10}\nblocks:\n  scale: {in: [x], out: 'mul(x, k)'}\n"         \
  "  parts: {in: [y, x], nodes: {z: 'sum(x, axis=1)'}, out: {z: z, x: x}}\n" \
  "  row: {in: [x], out: {z: 'sum(x)'}}\n"                                   \
  "  two: {in: [x], out: [x, x]}\n"
  gives(BLOCKS FIVE("x: 'f32[?, 2]', y: 'i32[?]'", "map: {block: scale}"), 4,
        "x=10,20,30,40;y=1,2 | x=50,60,70,80;y=3,4 | x=90,100;y=5 | END ");
  gives(BLOCKS FIVE("x: 'f32[?, 2]', z: 'f32[?]'", "map: {block: parts}"), 1,
        "z=3,7;x=1,2,3,4 | ");
  gives(BLOCKS FIVE("z: 'f32[?]', y: 'i32[?]', x: 'f32[1] = ones()'",
                    "map: {block: row, per: example}"),
        3, "z=3,7;y=1,2 | z=11,15;y=3,4 | z=19;y=5 | ");
}

/* Random ops: anew for each batch, and the same after a restart. */
static void resumes_random(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  data_put_text("m.weir.yaml", kNoise);
  weir_dataset *set = open_set(
      FIVE("x: 'f32[2, 2]', y: 'i32[2]'", "map: m.weir.yaml, shuffle: true"));
  weir_data_iter *one = data_iter(set);
  char *a = data_take(set, one, 1), *b = data_take(set, one, 1);
  assert_string_not_equal(a, b);
  char *state_text = data_state(one);
  char *want = data_take(set, one, 6);
  for (int i = 0; i < 3; i++) {
    weir_data_iter *two = data_iter(set);
    free(data_take(set, two, i));
    assert_ok(weir_data_iter_restore(two, weir_sv_from(state_text), &err),
              &err);
    char *have = data_take(set, two, 6);
    assert_string_equal(have, want);
    free(have);
    weir_data_iter_release(two);
  }
  free(a);
  free(b);
  free(want);
  free(state_text);
  weir_data_iter_release(one);
  weir_dataset_release(set);
}

static void refuses_block(const char *more, const char *id, const char *says) {
  char text[1024];
  weir_dataset *set = NULL;
  weir_error err = WEIR_ERROR_INIT;
  snprintf(text, sizeof text, BLOCKS FIVE("x: 'f32[?, 2]', y: 'i32[?]'", "%s"),
           more);
  assert_error(open_in_folder(weir_env_system(), text, &set, &err), &err, id);
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
}

static void refuses(const char *map, const char *more, const char *id,
                    const char *says) {
  char text[1024];
  weir_dataset *set = NULL;
  weir_error err = WEIR_ERROR_INIT;
  if (map != NULL) data_put_text("m.weir.yaml", map);
  snprintf(text, sizeof text, FIVE("x: 'f32[?, 2]', y: 'i32[?]'", "%s"), more);
  assert_error(open_in_folder(weir_env_system(), text, &set, &err), &err, id);
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
}

static void wrong(void **state) {
  (void)state;
  refuses("weir: 1\ninputs: {q: 'f32[2]'}\noutputs: [q]\n", "map: m.weir.yaml",
          "W4034", "no column feeds the map's input 'q'");
  refuses(
      "weir: 1\ndims: [n]\ninputs: {x: 'f32[n, 2]'}\noutputs: {x: "
      "'sum(x, axis=0)'}\n",
      "map: m.weir.yaml, batch: 3", "W1006", "batch");
  refuses(
      "weir: 1\ndims: [n]\ninputs: {x: 'f32[n, 2]'}\noutputs: {x: "
      "'sum(x)'}\n",
      "map: m.weir.yaml", "W4034", "one row for each");
  refuses("weir: 1\ndims: [n]\ninputs: {x: 'i32[n, 2]'}\noutputs: [x]\n",
          "map: m.weir.yaml", "W4034", "is f32, the map's input i32");
  refuses_block("map: {block: scle}", "W4034", "'scle' is not in");
  refuses_block("map: {block: two}", "W4034", "several results");
  refuses_block("ignore: [x], map: {block: scale}", "W4034", "no column feeds");
  refuses_block("map: {block: scale, graph: m.weir.yaml}", "W4024",
                "map needs");
  refuses(NULL, "map: none.weir.yaml", "W4001", "No such file");
  refuses(NULL, "map: ../m.weir.yaml", "W4002", "leaves its folder");
}

static void steady(void **state) {
  (void)state;
  data_put_text("m.weir.yaml", kSum);
  data_env e;
  weir_error err = WEIR_ERROR_INIT;
  weir_dataset *set = NULL;
  weir_data_iter *it = NULL;
  weir_batch b;
  data_env_init(&e);
  assert_ok(open_in_folder(&e.env,
                           FIVE("x: 'f32[?, 2]', y: 'i32[?]'",
                                "map: m.weir.yaml, repeat: 3"),
                           &set, &err),
            &err);
  assert_ok(weir_data_iter_create(set, &it, &err), &err);
  for (int i = 0; i < 30; i++)
    assert_ok(weir_data_iter_next(it, &b, &err), &err);
  uint64_t calls = atomic_load(&e.counted.calls);
  for (int i = 0; i < 60; i++)
    assert_ok(weir_data_iter_next(it, &b, &err), &err);
  assert_int_equal(atomic_load(&e.counted.calls), calls);
  weir_data_iter_release(it);
  weir_dataset_release(set);
  assert_int_equal(atomic_load(&e.counted.live_blocks), 0);
}

static void without_memory(void **state) {
  (void)state;
  data_put_text("m.weir.yaml", kRow);
  for (uint64_t k = 1, done = 0; !done; k++) {
    data_env e;
    weir_error err = WEIR_ERROR_INIT;
    weir_dataset *set = NULL;
    weir_data_iter *it = NULL;
    weir_batch b;
    data_env_init(&e);
    e.counted.fail_at = k;
    weir_status s =
        open_in_folder(&e.env,
                       FIVE("x: 'f32[?, 2]', z: 'f32[?]', y: 'i32[?]'",
                            "map: {graph: m.weir.yaml, per: example}"),
                       &set, &err);
    if (s == WEIR_OK) s = weir_data_iter_create(set, &it, &err);
    if (s == WEIR_OK) s = weir_data_iter_next(it, &b, &err);
    if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
    done = s == WEIR_OK;
    weir_data_iter_release(it);
    weir_dataset_release(set);
    assert_int_equal(atomic_load(&e.counted.live_blocks), 0);
  }
}

/* ---- The output of `weir show data`. */

static void shows(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  weir_dataset *set = open_set(
      FIVE("x: 'f32[?, 2]', y: 'i32[?]'", "take: 3, shuffle: {seed: 1}"));
  weir_strbuf_init(&out, weir_allocator_system());
  assert_ok(weir_dataset_show(set, &out, &err), &err);
  assert_non_null(strstr(out.data, "t  memory, 3 examples, 2 batches of 2\n"));
  assert_non_null(strstr(out.data, "the last batch has 1 examples\n"));
  assert_non_null(strstr(out.data, "shuffled with seed 1, all orders\n"));
  assert_non_null(strstr(out.data, "x      f32[*, 2]  1 to 6, mean 3.5\n"));
  assert_non_null(strstr(out.data, "values  1: 1  2: 1  3: 1\n"));
  weir_strbuf_release(&out);
  weir_json_writer w;
  weir_json_writer_init(&w, weir_strbuf_writer(&out), 0);
  assert_ok(weir_dataset_show_json(set, &w, &err), &err);
  assert_true(weir_json_finish(&w));
  assert_non_null(strstr(out.data, "\"counts\":[0,1,1,1]"));
  weir_strbuf_release(&out);
  weir_dataset_release(set);
}

static void shows_words(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  data_put_text("a.txt", "the cat\nthe \x01 dog");
  weir_dataset *set = data_open(
      "inputs: {tokens: 'i32[?, 6]'}\noutputs: [tokens]\ndata: {t: {source: "
      "text, files: a.txt, text: {level: words, end_of_line: \"\\n\"}, window: "
      "{length: 6}}}\n");
  weir_strbuf_init(&out, weir_allocator_system());
  assert_ok(weir_dataset_show(set, &out, &err), &err);
  if (strstr(out.data, "first  the cat \\n the \\u0001 dog\n") == NULL)
    fail_msg("%s", out.data);
  weir_strbuf_release(&out);
  weir_dataset_release(set);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      DATA_TEST(batches),        DATA_TEST(blocks), DATA_TEST(examples),
      DATA_TEST(resumes_random), DATA_TEST(wrong),  DATA_TEST(steady),
      DATA_TEST(without_memory), DATA_TEST(shows),  DATA_TEST(shows_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
