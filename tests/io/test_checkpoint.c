/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/io/checkpoint/checkpoint_open.h"
#include "runtime/io/checkpoint/checkpoint_store.h"
#include "tests/io/checkpoint_check.h"

/* Checkpoints: saved values come back, generations are kept, bad ones refused.
 */

/* --- on the simulated file system --- */

typedef struct bench {
  sim_fs *fs;
  weir_env env;
  weir_checkpoint_store *store;
} bench;

static void start(bench *b, const weir_checkpoint_options *options) {
  weir_error err = WEIR_ERROR_INIT;
  b->fs = sim_fs_create(weir_allocator_system());
  b->env = env_of(b->fs);
  assert_ok(
      weir_checkpoint_store_open(&b->env, "run", options, &b->store, &err),
      &err);
}

static void reopen(bench *b, const weir_checkpoint_options *options) {
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_store_close(b->store);
  assert_ok(
      weir_checkpoint_store_open(&b->env, "run", options, &b->store, &err),
      &err);
}

static void finish(bench *b) {
  weir_checkpoint_store_close(b->store);
  sim_fs_destroy(b->fs);
}

static void save(bench *b, uint64_t step) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(save_step(b->store, step, &err), &err);
  assert_int_equal(sim_fs_count(b->fs, ".tmp"), 0);
}

static void has(const bench *b, const char *name, bool there) {
  char path[160];
  snprintf(path, sizeof path, "run/%s", name);
  if ((sim_fs_file(b->fs, path) != NULL) != there)
    fail_msg("%s is %sthere", name, there ? "not " : "");
}

static const weir_checkpoint_options kPlain = {0};

static void comes_back(void **state) {
  (void)state;
  static const size_t kShardBytes[] = {0, 1, 300};
  static const int kShards[] = {1, 5, 3};
  for (int i = 0; i < 3; i++) {
    weir_checkpoint_options o = {.shard_bytes = kShardBytes[i]};
    bench b;
    start(&b, &o);
    save(&b, 123);
    assert_int_equal(sim_fs_count(b.fs, ".safetensors"), kShards[i]);
    has(&b, "step-00000123.json", true);
    assert_int_equal(opens(&b.env, "run"), 123);
    finish(&b);
  }
}

static void empty_and_many(void **state) {
  (void)state;
  bench b;
  start(&b, &kPlain);
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint *c = NULL;
  weir_checkpoint_info info = {.step = 0};
  assert_ok(weir_checkpoint_save(b.store, &info, NULL, 0, &err), &err);
  assert_ok(weir_checkpoint_open(&b.env, "run", -1, NULL, &c, &err), &err);
  assert_int_equal(weir_checkpoint_count(c), 0);
  assert_int_equal(weir_checkpoint_about(c)->data.size, 0);
  weir_checkpoint_release(c);
  weir_checkpoint_release(NULL);
  weir_checkpoint_store_close(NULL);
  info.step = INT64_MAX;
  assert_ok(weir_checkpoint_save(b.store, &info, NULL, 0, &err), &err);
  has(&b, "step-9223372036854775807.json", true);
  finish(&b);
}

static void tensors_outlive_checkpoints(void **state) {
  (void)state;
  bench b;
  start(&b, &kPlain);
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint *c = NULL;
  save(&b, 3);
  assert_ok(weir_checkpoint_open(&b.env, "run", 3, NULL, &c, &err), &err);
  weir_tensor *t = weir_checkpoint_tensor(c, 0);
  weir_checkpoint_release(c);
  assert_true(weir_tensor_get_f64(t, 0) == 3.0);
  assert_true(t->read_only);
  weir_tensor_unref(t);
  finish(&b);
}

static void keeps_some(void **state) {
  (void)state;
  weir_checkpoint_options o = {.keep = 2, .keep_every_steps = 4};
  bench b;
  start(&b, &o);
  for (uint64_t step = 1; step <= 7; step++) save(&b, step);
  for (uint64_t step = 1; step <= 7; step++) {
    char name[64];
    snprintf(name, sizeof name, "step-%08d.json", (int)step);
    has(&b, name, step == 4 || step >= 6);
    snprintf(name, sizeof name, "step-%08d-00000-of-00001.safetensors",
             (int)step);
    has(&b, name, step == 4 || step >= 6);
  }
  does_not_open(&b.env, "run", 5, "W4048", "no checkpoint of step 5");
  o.keep = 0;
  reopen(&b, &o);
  save(&b, 8);
  save(&b, 9);
  assert_int_equal(sim_fs_count(b.fs, ".json"), 5);
  o = (weir_checkpoint_options){.keep = 1};
  reopen(&b, &o);
  save(&b, 5); /* went back: it is kept beside the newest */
  assert_int_equal(sim_fs_count(b.fs, ".json"), 2);
  has(&b, "step-00000005.json", true);
  has(&b, "step-00000009.json", true);
  finish(&b);
}

/* A step that is saved again: first the new one is there, then the old goes. */
static void same_step_twice(void **state) {
  (void)state;
  bench b;
  start(&b, &kPlain);
  save(&b, 5);
  save(&b, 5);
  has(&b, "step-00000005.json", false);
  has(&b, "step-00000005.1.json", true);
  has(&b, "step-00000005.1-00000-of-00001.safetensors", true);
  assert_int_equal(sim_fs_count(b.fs, ".safetensors"), 1);
  assert_int_equal(opens(&b.env, "run"), 5);
  save(&b, 5);
  has(&b, "step-00000005.2.json", true);
  assert_int_equal(opens(&b.env, "run"), 5);
  /* Two of one step: the newer is damaged, the older is taken. */
  sim_fs *older = sim_fs_copy(b.fs);
  weir_env env = env_of(older);
  sim_fs_put(older, "run/step-00000005.3.json", "torn", 4);
  assert_int_equal(opens(&env, "run"), 5);
  sim_fs_destroy(older);
  finish(&b);
}

static void other_files_stay(void **state) {
  (void)state;
  static const char *const kOthers[] = {
      "notes.txt",
      "step-5.json",
      "step-00000001.json.bak",
      "x.tmp",
      "step-00000001-00001-of-00001.safetensors",
      "step-00000001.0.json",
      "step-00000009-00000-of-00001.safetensors",
      "step-.json"};
  weir_checkpoint_options o = {.keep = 1};
  bench b;
  start(&b, &o);
  for (size_t i = 0; i < sizeof kOthers / sizeof kOthers[0]; i++) {
    char path[160];
    snprintf(path, sizeof path, "run/%s", kOthers[i]);
    sim_fs_put(b.fs, path, "x", 1);
  }
  reopen(&b, &o);
  assert_ok(save_step(b.store, 2, NULL), &(weir_error)WEIR_ERROR_INIT);
  assert_ok(save_step(b.store, 3, NULL), &(weir_error)WEIR_ERROR_INIT);
  for (size_t i = 0; i < sizeof kOthers / sizeof kOthers[0]; i++)
    has(&b, kOthers[i], true);
  assert_int_equal(opens(&b.env, "run"), 3);
  finish(&b);
}

/* --- warnings --- */

typedef struct told {
  int count;
  char ids[8][8], message[512];
} told;

static void tell(void *self, const weir_diag *diag) {
  told *t = self;
  assert_int_equal(diag->severity, WEIR_SEVERITY_WARNING);
  assert_true(t->count < 8);
  snprintf(t->ids[t->count++], 8, "%s", diag->error.id);
  snprintf(t->message, sizeof t->message, "%s", diag->error.message);
}

static void odd_values_load(void **state) {
  (void)state;
  bench b;
  start(&b, &kPlain);
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint *c = NULL;
  told t = {0};
  weir_diag_sink sink = {&t, tell};
  set s = make_set(1);
  weir_checkpoint_info info = info_of(1);
  weir_tensor_set_f64(s.tensors[0], 5, NAN);
  weir_tensor_set_f64(s.tensors[0], 9, INFINITY);
  assert_ok(weir_checkpoint_save(b.store, &info, s.entries, kTensors, &err),
            &err);
  assert_ok(weir_checkpoint_open(&b.env, "run", -1, &sink, &c, &err), &err);
  assert_int_equal(t.count, 1);
  assert_string_equal(t.ids[0], "W4047");
  assert_non_null(strstr(t.message, "'w' holds 2 elements"));
  assert_non_null(strstr(t.message, "element 5"));
  weir_checkpoint_release(c);
  free_set(&s);
  finish(&b);
}

static void damage_is_passed_over(void **state) {
  (void)state;
  bench b;
  start(&b, &kPlain);
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint *c = NULL;
  told t = {0};
  weir_diag_sink sink = {&t, tell};
  for (uint64_t step = 1; step <= 4; step++) save(&b, step);
  /* 4: a bit of its data; 3: the shard is gone; 2: the manifest is cut. */
  sim_fs_file(b.fs, "run/step-00000004-00000-of-00001.safetensors")
      ->data[900] ^= 4;
  void *folder = NULL;
  assert_ok(b.env.fs->folders->open(b.fs, NULL, "run", false, &folder, &err),
            &err);
  assert_ok(b.env.fs->folders->unlink(
                b.fs, folder, "step-00000003-00000-of-00001.safetensors", &err),
            &err);
  b.env.fs->folders->close(b.fs, folder);
  sim_fs_file(b.fs, "run/step-00000002.json")->size -= 1;
  assert_ok(weir_checkpoint_open(&b.env, "run", -1, &sink, &c, &err), &err);
  holds_step(c, 1);
  assert_string_equal(weir_checkpoint_path_of(c), "run/step-00000001.json");
  weir_checkpoint_release(c);
  assert_int_equal(t.count, 3);
  assert_string_equal(t.ids[0], "W4045");
  assert_string_equal(t.ids[1], "W4045");
  assert_string_equal(t.ids[2], "W4041");
  does_not_open(&b.env, "run", 4, "W4045", "CRC32C");
  does_not_open(&b.env, "run", 3, "W4045", "cannot open");
  does_not_open(&b.env, "run/step-00000002.json", -1, "W4041", "damaged");
  sim_fs_file(b.fs, "run/step-00000001.json")->data[1] = 'x';
  does_not_open(&b.env, "run", -1, "W4040", "none of the 4");
  does_not_open(&b.env, "none", -1, "W4040", "there is no checkpoint in");
  finish(&b);
}

/* --- manifests that lie: the CRC is right, the content is not --- */

/* Replaces |from| by |to| in the manifest at |path| and sums it again. */
static void rewrite(sim_fs *fs, const char *path, const char *from,
                    const char *to) {
  sim_inode *f = sim_fs_file(fs, path);
  char text[8192];
  size_t tail = 23, size = f->size - tail;
  memcpy(text, f->data, size);
  text[size] = '\0';
  char *at = strstr(text, from);
  if (at == NULL) fail_msg("no %s in %s", from, text);
  size_t old = strlen(from), new = strlen(to);
  memmove(at + new, at + old, strlen(at + old) + 1);
  memcpy(at, to, new);
  size = strlen(text);
  snprintf(text + size, sizeof text - size, " \"crc32c\": \"%08x\"}\n",
           weir_crc32c(0, text, size));
  sim_fs_put(fs, path, text, strlen(text));
}

typedef struct lie {
  const char *from, *to, *id;
} lie;

static void lies_are_found(void **state) {
  (void)state;
  /* clang-format off */
  static const lie kLies[] = {
      {"\"step\": 4", "\"step\": 5", "W4041"},
      {"\"step\": 4", "\"step\": -4", "W4041"},
      {"\"step\": 4", "\"step\": 4.5", "W4041"},
      {"\"step\": 4", "\"stop\": 4", "W4041"},
      {"\"epoch\": 0.5", "\"epoch\": -1", "W4041"},
      {"\"epoch\": 0.5", "\"epoch\": 1e999", "W4041"},
      {"\"epoch\": 0.5", "\"epoch\": \"NaN\"", "W4041"},
      {"\"run_id\": \"run-a\"", "\"run_id\": \"run-b\"", "W4046"},
      {"\"run_id\": \"run-a\"", "\"run_id\": 7", "W4041"},
      {"\"seed\": \"f", "\"seed\": \"g", "W4041"},
      {"\"seed\": \"f", "\"seed\": \"", "W4041"},
      {"\"graph_hash\": \"0", "\"graph_hash\": \"00", "W4041"},
      {"\"weir_checkpoint\": 1", "\"weir_checkpoint\": 0", "W4041"},
      {"\"weir_checkpoint\": 1", "\"weir_checkpoint\": true", "W4041"},
      {"\"weir_checkpoint\": 1", "\"weir\": 1", "W4041"},
      {"\"name\": \"w\"", "\"name\": \"v\"", "W4045"},
      {"\"name\": \"w\"", "\"name\": \"mask\"", "W4041"},
      {"\"role\": \"slot\"", "\"role\": \"slots\"", "W4041"},
      {"\"dtype\": \"f32\"", "\"dtype\": \"i32\"", "W4045"},
      {"\"dtype\": \"f32\"", "\"dtype\": \"f64\"", "W4041"},
      {"\"dtype\": \"f32\"", "\"dtype\": \"f128\"", "W4041"},
      {"[7, 9]", "[9, 7]", "W4045"},
      {"[7, 9]", "[7, 10]", "W4041"},
      {"[7, 9]", "[7, 9, 1, 1, 1, 1, 1, 1, 1]", "W4041"},
      {"[7, 9]", "[-7, -9]", "W4041"},
      {"[7, 9]", "[9223372036854775807, 9223372036854775807]", "W4041"},
      {"\"bytes\": 252", "\"bytes\": 251", "W4041"},
      {"\"bytes\": 252", "\"bytes\": 0", "W4041"},
      {"\"shard\": 0", "\"shard\": 1", "W4041"},
      {"\"shard\": 0", "\"shard\": 4294967296", "W4041"},
      {"\"file\": \"step-00000004-00000-of-00001.safetensors\"",
       "\"file\": \"step-00000003-00000-of-00001.safetensors\"", "W4045"},
      {"\"file\": \"step-00000004-00000-of-00001.safetensors\"",
       "\"file\": \"step-00000004-00000-of-00002.safetensors\"", "W4041"},
      {"\"file\": \"step-00000004-00000-of-00001.safetensors\"",
       "\"file\": \"../step-00000004-00000-of-00001.safetensors\"", "W4041"},
      {"\"file\": \"step-00000004-00000-of-00001.safetensors\"",
       "\"file\": \"/etc/passwd\"", "W4041"},
      {"\"extra\": {}", "\"extra\": 5", "W4041"},
      {"\"extra\": {}", "\"more\": {}", "W4041"},
      {"\"extra\": {},", "\"extra\": {}, \"extra\": {},", "W4041"},
      {"\"tensors\": [", "\"tensors\": [7, ", "W4041"},
      {"\"tensors\": [", "\"tensors\": [], \"x\": [", "W4041"},
  };
  /* clang-format on */
  for (size_t i = 0; i < sizeof kLies / sizeof kLies[0]; i++) {
    bench b;
    start(&b, &kPlain);
    save(&b, 3);
    save(&b, 4);
    rewrite(b.fs, "run/step-00000004.json", kLies[i].from, kLies[i].to);
    weir_checkpoint *c = NULL;
    weir_error err = WEIR_ERROR_INIT;
    weir_status s = weir_checkpoint_open(&b.env, "run", 4, NULL, &c, &err);
    if (s == WEIR_OK || strcmp(err.id, kLies[i].id) != 0)
      fail_msg("%s: %s %s", kLies[i].to, err.id, err.message);
    assert_int_equal(opens(&b.env, "run"), 3);
    finish(&b);
  }
}

/* Offsets, sizes and CRCs with wrong values: one more, one less, 0, much.
 */
static void numbers_that_lie(void **state) {
  (void)state;
  static const char *const kKeys[] = {"\"offset\": ", "\"bytes\": "};
  for (int key = 0; key < 2; key++)
    for (int way = 0; way < 4; way++) {
      bench b;
      start(&b, &kPlain);
      save(&b, 3);
      save(&b, 4);
      sim_inode *f = sim_fs_file(b.fs, "run/step-00000004.json");
      f->data[f->size - 1] = '\0';
      const char *at = strstr((char *)f->data, kKeys[key]);
      unsigned long long value = strtoull(at + strlen(kKeys[key]), NULL, 10);
      char from[64], to[64];
      snprintf(from, sizeof from, "%s%llu", kKeys[key], value);
      snprintf(to, sizeof to, "%s%llu", kKeys[key],
               way == 0   ? value + 1
               : way == 1 ? value - 1
               : way == 2 ? 0
                          : 9223372036854775807ULL);
      f->data[f->size - 1] = '\n';
      rewrite(b.fs, "run/step-00000004.json", from, to);
      does_not_open(&b.env, "run", 4, "W4045", "");
      assert_int_equal(opens(&b.env, "run"), 3);
      finish(&b);
    }
}

static void newer_format_stops(void **state) {
  (void)state;
  weir_checkpoint_options o = {.keep = 1};
  bench b;
  start(&b, &o);
  save(&b, 4);
  rewrite(b.fs, "run/step-00000004.json", "\"weir_checkpoint\": 1",
          "\"weir_checkpoint\": 2, \"unheard\": [{}]");
  save(&b, 3);
  does_not_open(&b.env, "run", -1, "W4044",
                "format 2; this one reads format 1");
  reopen(&b, &o);
  save(&b, 5);
  save(&b, 6);
  has(&b, "step-00000004.json", true); /* not moved, not removed */
  has(&b, "step-00000004-00000-of-00001.safetensors", true);
  assert_int_equal(opens(&b.env, "run"), 6);
  finish(&b);
}

static void shard_of_another_run(void **state) {
  (void)state;
  bench a;
  start(&a, &kPlain);
  const char *shard = "run/step-00000004-00000-of-00001.safetensors";
  save(&a, 3);
  save(&a, 4);
  set s = make_set(4);
  bench b;
  start(&b, &kPlain);
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_info info = info_of(4);
  info.run_id = WEIR_SV_LIT("run-z");
  assert_ok(weir_checkpoint_save(b.store, &info, s.entries, kTensors, &err),
            &err);
  sim_inode *f = sim_fs_file(b.fs, shard);
  sim_fs_put(a.fs, shard, f->data, f->size);
  does_not_open(&a.env, "run", 4, "W4046",
                "of run 'run-z', the manifest of run 'run-a'");
  assert_int_equal(opens(&a.env, "run"), 3);
  free_set(&s);
  finish(&a);
  finish(&b);
}

/* Two tensors of one shape, their bytes exchanged. */
static void swapped_tensors(void **state) {
  (void)state;
  weir_checkpoint_options o = {.shard_bytes = 1};
  bench b;
  start(&b, &o);
  save(&b, 4);
  sim_inode *w =
      sim_fs_file(b.fs, "run/step-00000004-00000-of-00005.safetensors");
  sim_inode *m =
      sim_fs_file(b.fs, "run/step-00000004-00003-of-00005.safetensors");
  uint8_t kept[252];
  memcpy(kept, w->data + w->size - 252, 252);
  memcpy(w->data + w->size - 252, m->data + m->size - 252, 252);
  memcpy(m->data + m->size - 252, kept, 252);
  does_not_open(&b.env, "run", -1, "W4040", "CRC32C");
  finish(&b);
}

static void refused_to_save(void **state) {
  (void)state;
  bench b;
  start(&b, &kPlain);
  weir_error err = WEIR_ERROR_INIT;
  set s = make_set(1);
  weir_checkpoint_info good = info_of(1), info = good;
  char deep[128];
  info.data = WEIR_SV_LIT("[1]");
  assert_error(weir_checkpoint_save(b.store, &info, s.entries, 1, &err), &err,
               "W0004");
  info.data = WEIR_SV_LIT("{} {}");
  assert_error(weir_checkpoint_save(b.store, &info, s.entries, 1, &err), &err,
               "W0004");
  memset(deep, '[', sizeof deep);
  memcpy(deep, "{\"a\":", 5);
  info.data = (weir_sv){deep, sizeof deep};
  assert_error(weir_checkpoint_save(b.store, &info, s.entries, 1, &err), &err,
               "W0004");
  info = good;
  info.epoch = NAN;
  assert_error(weir_checkpoint_save(b.store, &info, s.entries, 1, &err), &err,
               "W0004");
  info = good;
  info.run_id = WEIR_SV_LIT("\xff");
  assert_error(weir_checkpoint_save(b.store, &info, s.entries, 1, &err), &err,
               "W0004");
  s.entries[1].name = WEIR_SV_LIT("__metadata__");
  assert_error(weir_checkpoint_save(b.store, &good, s.entries, 2, &err), &err,
               "W5009");
  weir_checkpoint_options small = {.shard_bytes = 1};
  reopen(&b, &small); /* in shards of their own */
  s.entries[1].name = s.entries[0].name;
  assert_error(weir_checkpoint_save(b.store, &good, s.entries, 2, &err), &err,
               "W5009");
  assert_int_equal(sim_fs_count(b.fs, ".safetensors"), 0);
  assert_int_equal(sim_fs_count(b.fs, ".tmp"), 0);
  does_not_open(&b.env, "run", -1, "W4040", "no checkpoint");
  free_set(&s);
  finish(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(comes_back),
      cmocka_unit_test(empty_and_many),
      cmocka_unit_test(tensors_outlive_checkpoints),
      cmocka_unit_test(keeps_some),
      cmocka_unit_test(same_step_twice),
      cmocka_unit_test(other_files_stay),
      cmocka_unit_test(odd_values_load),
      cmocka_unit_test(damage_is_passed_over),
      cmocka_unit_test(lies_are_found),
      cmocka_unit_test(numbers_that_lie),
      cmocka_unit_test(newer_format_stops),
      cmocka_unit_test(shard_of_another_run),
      cmocka_unit_test(swapped_tensors),
      cmocka_unit_test(refused_to_save),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
