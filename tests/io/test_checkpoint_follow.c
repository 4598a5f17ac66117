/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_follow.h"

#include "runtime/base/bytes/crc32c.h"
#include "tests/counted.h"
#include "tests/io/checkpoint_check.h"

/* Following a folder: each generation is given once, damaged ones are passed
 * over, and the process that saves may remove what is read. */

typedef struct bench {
  sim_fs *fs;
  weir_env env;
  weir_checkpoint_store *store;
  weir_checkpoint_follower *f;
  int warnings;
  char id[8]; /* of the last one */
  weir_diag_sink sink;
  /* A save that happens while a manifest is read, |races| times. */
  weir_fs raced;
  weir_fs_folders folders;
  int races;
  bool saves;
  uint64_t next;
} bench;

static bench *racing;

static void warn(void *self, const weir_diag *d) {
  bench *b = self;
  b->warnings++;
  snprintf(b->id, sizeof b->id, "%s", d->error.id);
}

static weir_status read_late(void *self, void *folder, const char *name,
                             size_t limit, weir_file *out, weir_error *err) {
  bench *b = racing;
  if (b->races > 0 && !b->saves && strstr(name, ".json") != NULL) {
    b->races--;
    b->saves = true; /* it reads manifests, too */
    assert_ok(save_step(b->store, b->next++, err), err);
    b->saves = false;
  }
  return b->fs->fs.folders->read(self, folder, name, limit, out, err);
}

static void start(bench *b, const weir_allocator *alloc) {
  weir_error err = WEIR_ERROR_INIT;
  memset(b, 0, sizeof *b);
  b->fs = sim_fs_create(alloc);
  b->env = env_of(b->fs);
  b->raced = b->fs->fs;
  b->folders = *b->fs->fs.folders;
  b->folders.read = read_late;
  b->raced.folders = &b->folders;
  b->env.fs = &b->raced;
  b->sink = (weir_diag_sink){b, warn};
  racing = b;
  assert_ok(weir_checkpoint_follower_create(&b->env, NULL, "run", &b->sink,
                                            &b->f, &err),
            &err);
}

static void open_store(bench *b, uint32_t keep) {
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_options o = {.keep = keep};
  weir_checkpoint_store_close(b->store);
  assert_ok(weir_checkpoint_store_open(&b->env, "run", &o, &b->store, &err),
            &err);
}

static void finish(bench *b) {
  weir_checkpoint_follower_release(b->f);
  weir_checkpoint_store_close(b->store);
  sim_fs_destroy(b->fs);
}

static void save(bench *b, uint64_t step) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(save_step(b->store, step, &err), &err);
}

/* The next look gives |step|, 0: nothing. */
static void gives(bench *b, uint64_t step) {
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint *c = NULL;
  assert_ok(weir_checkpoint_follow(b->f, &c, &err), &err);
  if (step == 0) {
    assert_null(c);
    return;
  }
  assert_non_null(c);
  holds_step(c, step);
  weir_checkpoint_release(c);
}

static void remove_file(bench *b, const char *name) {
  weir_error err = WEIR_ERROR_INIT;
  void *folder = NULL;
  const weir_fs_folders *f = b->env.fs->folders;
  assert_ok(f->open(b->fs, NULL, "run", false, &folder, &err), &err);
  assert_ok(f->unlink(b->fs, folder, name, &err), &err);
  f->close(b->fs, folder);
}

static void turn_a_bit(bench *b, uint64_t step) {
  char path[80];
  snprintf(path, sizeof path, "run/step-%08d-00000-of-00001.safetensors",
           (int)step);
  sim_fs_file(b->fs, path)->data[900] ^= 4;
}

static void each_is_given_once(void **state) {
  (void)state;
  bench b;
  start(&b, weir_allocator_system());
  gives(&b, 0); /* there is no folder */
  open_store(&b, 0);
  gives(&b, 0); /* an empty one */
  save(&b, 1);
  gives(&b, 1);
  gives(&b, 0);
  save(&b, 2);
  save(&b, 3);
  gives(&b, 3); /* the newest */
  gives(&b, 0);
  save(&b, 3); /* step-00000003.1 */
  gives(&b, 3);
  gives(&b, 0);
  assert_int_equal(b.warnings, 0);
  finish(&b);
}

static void damage_is_told_once(void **state) {
  (void)state;
  bench b;
  start(&b, weir_allocator_system());
  open_store(&b, 0);
  for (uint64_t step = 1; step <= 3; step++) save(&b, step);
  turn_a_bit(&b, 3);
  gives(&b, 2); /* an older one, for nothing was given before */
  assert_int_equal(b.warnings, 1);
  assert_string_equal(b.id, "W4045");
  gives(&b, 0);
  gives(&b, 0);
  assert_int_equal(b.warnings, 1);
  save(&b, 4);
  gives(&b, 4);
  save(&b, 5);
  sim_fs_file(b.fs, "run/step-00000005.json")->size -= 1;
  gives(&b, 0);
  gives(&b, 0);
  assert_int_equal(b.warnings, 2);
  assert_string_equal(b.id, "W4041");
  finish(&b);
}

static void a_folder_that_goes_back(void **state) {
  (void)state;
  bench b;
  start(&b, weir_allocator_system());
  open_store(&b, 1);
  save(&b, 7);
  gives(&b, 7);
  remove_file(&b, "step-00000007.json"); /* somebody emptied it */
  remove_file(&b, "step-00000007-00000-of-00001.safetensors");
  gives(&b, 0);
  save(&b, 2);
  gives(&b, 2);
  gives(&b, 0);
  open_store(&b, 0);
  save(&b, 5);
  gives(&b, 5);
  remove_file(&b, "step-00000005.json"); /* training goes on from 2 */
  gives(&b, 2);
  gives(&b, 0);
  finish(&b);
}

/* What is about to be read goes, because newer ones are saved. */
static void the_writer_is_faster(void **state) {
  (void)state;
  bench b;
  for (int races = 1; races <= 4; races++) {
    start(&b, weir_allocator_system());
    open_store(&b, 1);
    save(&b, 1);
    b.races = races;
    b.next = 2;
    if (races <= 2) {
      gives(&b, (uint64_t)races + 1);
    } else { /* given up, until the next look */
      gives(&b, 0);
      b.races = 0;
      gives(&b, b.next - 1);
    }
    assert_int_equal(b.warnings, 0);
    finish(&b);
  }
}

static void a_last_word_is_heard(void **state) {
  (void)state;
  bench b;
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint *c = NULL;
  start(&b, weir_allocator_system());
  open_store(&b, 0);
  save(&b, 1);
  gives(&b, 1);
  set s = make_set(2);
  weir_checkpoint_info info = info_of(2);
  info.extra = WEIR_SV_LIT("{\"ended\":\"steps\"}");
  assert_ok(weir_checkpoint_save(b.store, &info, s.entries, kTensors, &err),
            &err);
  free_set(&s);
  turn_a_bit(&b, 2);
  assert_ok(weir_checkpoint_follow(b.f, &c, &err), &err);
  assert_null(c);
  assert_int_equal(b.warnings, 1);
  assert_true(
      weir_sv_is(weir_checkpoint_follower_lost(b.f), "{\"ended\":\"steps\"}"));
  gives(&b, 0);
  assert_int_equal(weir_checkpoint_follower_lost(b.f).size, 0);
  finish(&b);
}

static void a_newer_format_is_no_damage(void **state) {
  (void)state;
  bench b;
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint *c = NULL;
  char text[80] = "{\"weir_checkpoint\": 2,\n", line[40];
  start(&b, weir_allocator_system());
  open_store(&b, 0);
  save(&b, 1);
  snprintf(line, sizeof line, " \"crc32c\": \"%08x\"}\n",
           weir_crc32c(0, text, strlen(text)));
  strcat(text, line);
  sim_fs_put(b.fs, "run/step-00000009.json", text, strlen(text));
  assert_error(weir_checkpoint_follow(b.f, &c, &err), &err, "W4044");
  assert_null(c);
  finish(&b);
}

/* A file stands in the folder's place. */
static void no_folder(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint *c = NULL;
  weir_checkpoint_follower *f = NULL;
  assert_ok(weir_checkpoint_follower_create(weir_env_system(), NULL,
                                            "/dev/null", NULL, &f, &err),
            &err);
  assert_error(weir_checkpoint_follow(f, &c, &err), &err, "W4002");
  weir_checkpoint_follower_release(f);
}

static void memory_runs_out(void **state) {
  (void)state;
  bool done = false;
  for (uint64_t k = 1; !done; k++) {
    bench b;
    weir_counted_allocator memory;
    weir_error err = WEIR_ERROR_INIT;
    weir_checkpoint *c = NULL;
    weir_checkpoint_follower *f = NULL;
    start(&b, weir_allocator_system());
    open_store(&b, 0);
    for (uint64_t step = 1; step <= 3; step++) save(&b, step);
    turn_a_bit(&b, 3);
    weir_counted_allocator_init(&memory, NULL);
    weir_env env = b.env;
    env.alloc = &memory.base;
    b.fs->alloc = &memory.base;
    memory.fail_at = k;
    weir_status s =
        weir_checkpoint_follower_create(&env, NULL, "run", &b.sink, &f, &err);
    if (s == WEIR_OK) s = weir_checkpoint_follow(f, &c, &err);
    done = atomic_load(&memory.calls) < k;
    if (!done && s != WEIR_OK) assert_string_equal(err.id, "W6001");
    memory.fail_at = 0;
    if (f != NULL && c == NULL) /* it goes on */
      assert_ok(weir_checkpoint_follow(f, &c, &err), &err);
    if (f != NULL) assert_non_null(c);
    if (c != NULL) holds_step(c, 2);
    weir_checkpoint_release(c);
    weir_checkpoint_follower_release(f);
    assert_int_equal(atomic_load(&memory.live_blocks), 0);
    b.fs->alloc = weir_allocator_system();
    finish(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_is_given_once),
      cmocka_unit_test(damage_is_told_once),
      cmocka_unit_test(a_folder_that_goes_back),
      cmocka_unit_test(the_writer_is_faster),
      cmocka_unit_test(a_last_word_is_heard),
      cmocka_unit_test(a_newer_format_is_no_damage),
      cmocka_unit_test(no_folder),
      cmocka_unit_test(memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
