/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/io/checkpoint/checkpoint_open.h"
#include "runtime/io/checkpoint/checkpoint_store.h"
#include "tests/io/checkpoint_check.h"

/* Checkpoints on a file system that fails and forgets (sim_fs.h). After a
 * crash anywhere in a save, the newest or the previous generation loads with
 * its own bits, and the next run removes all leftovers. */

enum { kBefore = 5, kDuring = 10, kAfter = 15, kCrashStates = 10000 };

/* Shards of a tensor or two; one generation is kept, so saving removes one. */
static const weir_checkpoint_options kOptions = {.keep = 1, .shard_bytes = 300};

/* A disk with one generation. */
static sim_fs *prepare(void) {
  sim_fs *fs = sim_fs_create(weir_allocator_system());
  weir_env env = env_of(fs);
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_store *store = NULL;
  assert_ok(weir_checkpoint_store_open(&env, "run", &kOptions, &store, &err),
            &err);
  assert_ok(save_step(store, kBefore, &err), &err);
  weir_checkpoint_store_close(store);
  assert_int_equal(fs->change_count, 0); /* all of it is on disk */
  fs->ops = 0;
  return fs;
}

/* Saves |step| as a new run does: opens the store, saves, closes it. */
static weir_status run_save(sim_fs *fs, uint64_t step, weir_error *err) {
  weir_env env = env_of(fs);
  weir_checkpoint_store *store = NULL;
  weir_status s =
      weir_checkpoint_store_open(&env, "run", &kOptions, &store, err);
  if (s == WEIR_OK) s = save_step(store, step, err);
  weir_checkpoint_store_close(store);
  return s;
}

/* The next run: it goes on from the disk as it is, and leaves one generation
 * and nothing else. */
static void goes_on(sim_fs *fs) {
  weir_env env = env_of(fs);
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(run_save(fs, kAfter, &err), &err);
  assert_int_equal(opens(&env, "run"), kAfter);
  assert_int_equal(sim_fs_count(fs, ".tmp"), 0);
  assert_int_equal(sim_fs_count(fs, ".json"), 1);
  assert_int_equal(sim_fs_count(fs, ".safetensors"), 3);
}

/* --- the machine stops --- */

/* Lets a save of |step| die in operation |at| and the disk keep the
 * bytes that |seed| decides. Whether the disk is right then. */
static bool crash_state(const sim_fs *start, uint64_t at, uint64_t seed,
                        uint64_t step, bool *out_finished) {
  sim_fs *fs = sim_fs_copy(start);
  weir_env env = env_of(fs);
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint *c = NULL;
  fs->crash_at = at;
  weir_status s = run_save(fs, step, &err);
  *out_finished = fs->ops < at;
  sim_fs_crash(fs, seed);
  bool good = weir_checkpoint_open(&env, "run", -1, NULL, &c, &err) == WEIR_OK;
  if (good) {
    uint64_t found = weir_checkpoint_about(c)->step;
    holds_step(c, found);
    /* A save that was reported done is on the disk. */
    good = s == WEIR_OK ? found == step : found == step || found == kBefore;
  }
  weir_checkpoint_release(c);
  if (good && !start->folder_sync_lies) goes_on(fs);
  sim_fs_destroy(fs);
  return good;
}

static void every_crash_state_loads(void **state) {
  (void)state;
  sim_fs *start = prepare();
  uint64_t ops = 0, states = 0;
  bool finished = false;
  while (!finished) {
    ops++;
    if (!crash_state(start, ops, 0, kDuring, &finished))
      fail_msg("operation %d", (int)ops);
  }
  assert_true(ops > 40);
  for (uint64_t seed = 1; states < kCrashStates; seed++)
    for (uint64_t at = 1; at < ops; at++, states++)
      if (!crash_state(start, at, seed, kDuring, &finished))
        fail_msg("operation %d, seed %d", (int)at, (int)seed);
  printf("%d crash states of %d operations\n", (int)states, (int)ops);
  sim_fs_destroy(start);
}

/* The same when the step is saved a second time. */
static void a_step_saved_again(void **state) {
  (void)state;
  sim_fs *start = prepare();
  bool finished = false;
  for (uint64_t at = 1; !finished; at++)
    for (uint64_t seed = 0; seed < 20; seed++)
      if (!crash_state(start, at, seed, kBefore, &finished))
        fail_msg("operation %d, seed %d", (int)at, (int)seed);
  sim_fs_destroy(start);
}

/* The next run dies too, while it tidies up. */
static void crash_after_crash(void **state) {
  (void)state;
  sim_fs *start = prepare();
  uint64_t states = 0;
  for (uint64_t first = 5; first < 60; first += 4)
    for (uint64_t second = 2; second < 60; second += 3, states++) {
      sim_fs *fs = sim_fs_copy(start);
      weir_env env = env_of(fs);
      weir_error err = WEIR_ERROR_INIT;
      fs->crash_at = first;
      (void)run_save(fs, kDuring, &err);
      sim_fs_crash(fs, first * 7 + second);
      fs->crash_at = second;
      (void)run_save(fs, kDuring + 1, &err);
      sim_fs_crash(fs, second * 11 + first);
      uint64_t found = opens(&env, "run");
      assert_true(found == kBefore || found == kDuring || found == kDuring + 1);
      goes_on(fs);
      sim_fs_destroy(fs);
    }
  sim_fs_destroy(start);
}

/* That the simulation can find mistakes: with a sync that does nothing some
 * state has to go wrong. */
static void a_planted_bug_is_found(void **state) {
  (void)state;
  sim_fs *start = prepare();
  bool finished = false;
  int wrong = 0;
  start->folder_sync_lies = true;
  for (uint64_t at = 1; !finished; at++)
    for (uint64_t seed = 0; seed < 40; seed++)
      wrong += !crash_state(start, at, seed, kDuring, &finished);
  assert_true(wrong > 0);
  sim_fs_destroy(start);
}

/* --- operations fail --- */

static void every_fault_leaves_a_generation(void **state) {
  (void)state;
  sim_fs *start = prepare();
  for (int fault = 0; fault < SIM_FAULTS; fault++)
    for (uint64_t at = 1;; at++) {
      sim_fs *fs = sim_fs_copy(start);
      weir_env env = env_of(fs);
      weir_error err = WEIR_ERROR_INIT;
      fs->fault_at = at;
      fs->fault = (sim_fault)fault;
      weir_status s = run_save(fs, kDuring, &err);
      bool reached = fs->ops >= at;
      fs->fault_at = 0;
      uint64_t found = opens(&env, "run");
      if (found != kDuring && (found != kBefore || s == WEIR_OK))
        fail_msg("fault %d at %d: step %d", fault, (int)at, (int)found);
      if (s != WEIR_OK) assert_int_not_equal(weir_error_exit_code(err.id), 8);
      /* And after that the machine stops. */
      sim_fs_crash(fs, at);
      found = opens(&env, "run");
      assert_true(found == kDuring || (found == kBefore && s != WEIR_OK));
      goes_on(fs);
      sim_fs_destroy(fs);
      if (!reached) break;
    }
  sim_fs_destroy(start);
}

/* The same store goes on after a save that failed. */
static void the_next_save_succeeds(void **state) {
  (void)state;
  for (int fault = 0; fault < SIM_FOR_EVER; fault++)
    for (uint64_t at = 1;; at++) {
      sim_fs *fs = prepare();
      weir_env env = env_of(fs);
      weir_error err = WEIR_ERROR_INIT;
      weir_checkpoint_store *store = NULL;
      assert_ok(
          weir_checkpoint_store_open(&env, "run", &kOptions, &store, &err),
          &err);
      fs->ops = 0;
      fs->fault_at = at;
      fs->fault = (sim_fault)fault;
      (void)save_step(store, kDuring, &err);
      bool reached = fs->ops >= at;
      fs->fault_at = 0;
      assert_ok(save_step(store, kDuring, &err), &err);
      assert_int_equal(opens(&env, "run"), kDuring);
      weir_checkpoint_store_close(store);
      goes_on(fs);
      sim_fs_destroy(fs);
      if (!reached) break;
    }
}

static void every_size_of_disk(void **state) {
  (void)state;
  sim_fs *start = prepare();
  size_t held = 0;
  for (int i = 0; i < start->name_count; i++)
    held += start->inodes[start->names[i].inode].size;
  int saved = 0;
  for (size_t room = 0; room < 12000; room += 64) {
    sim_fs *fs = sim_fs_copy(start);
    weir_env env = env_of(fs);
    weir_error err = WEIR_ERROR_INIT;
    fs->capacity = held + room;
    weir_status s = run_save(fs, kDuring, &err);
    if (s != WEIR_OK) assert_string_equal(err.id, "W6005");
    assert_int_equal(opens(&env, "run"), s == WEIR_OK ? kDuring : kBefore);
    assert_int_equal(sim_fs_count(fs, ".tmp"), 0);
    saved += s == WEIR_OK;
    fs->capacity = 0;
    goes_on(fs);
    sim_fs_destroy(fs);
  }
  assert_true(saved > 0 && saved < 150);
  sim_fs_destroy(start);
}

static void faults_while_restoring(void **state) {
  (void)state;
  sim_fs *start = prepare();
  for (uint64_t at = 1;; at++) {
    sim_fs *fs = sim_fs_copy(start);
    weir_env env = env_of(fs);
    weir_error err = WEIR_ERROR_INIT;
    weir_checkpoint *c = NULL;
    fs->fault_at = at;
    weir_status s = weir_checkpoint_open(&env, "run", -1, NULL, &c, &err);
    bool reached = fs->ops >= at;
    assert_true((s == WEIR_OK) == (c != NULL));
    assert_true((s == WEIR_OK) == !reached);
    weir_checkpoint_release(c);
    sim_fs_destroy(fs);
    if (!reached) break;
  }
  sim_fs_destroy(start);
}

/* --- damage --- */

/* Every bit of every file, and every length. */
static void every_flip_and_cut_is_found(void **state) {
  (void)state;
  sim_fs *fs = sim_fs_create(weir_allocator_system());
  weir_env env = env_of(fs);
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_store *store = NULL;
  assert_ok(weir_checkpoint_store_open(&env, "run", NULL, &store, &err), &err);
  assert_ok(save_step(store, kBefore, &err), &err);
  /* Large enough for a checkpoint of 8 KiB. */
  int64_t dims[] = {1500};
  weir_shape shape = weir_shape_of(1, dims);
  weir_tensor *t = NULL;
  assert_ok(weir_tensor_create_shaped(weir_allocator_system(), WEIR_F32, &shape,
                                      &t, &err),
            &err);
  for (int64_t i = 0; i < dims[0]; i++) weir_tensor_set_f64(t, i, (double)i);
  set s = make_set(kDuring);
  weir_checkpoint_entry entries[kTensors + 1];
  memcpy(entries, s.entries, sizeof s.entries);
  entries[kTensors] = (weir_checkpoint_entry){WEIR_SV_LIT("big"), 0, t};
  weir_checkpoint_info info = info_of(kDuring);
  assert_ok(weir_checkpoint_save(store, &info, entries, kTensors + 1, &err),
            &err);
  weir_tensor_unref(t);
  free_set(&s);
  weir_checkpoint_store_close(store);
  static const char *const kFiles[] = {
      "run/step-00000010.json", "run/step-00000010-00000-of-00001.safetensors"};
  size_t total = 0, flips = 0, cuts = 0;
  for (int i = 0; i < 2; i++) {
    sim_inode *f = sim_fs_file(fs, kFiles[i]);
    size_t size = f->size;
    total += size;
    for (size_t bit = 0; bit < size * 8; bit++, flips++) {
      f->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
      if (opens(&env, "run") != kBefore)
        fail_msg("%s loads with bit %d turned", kFiles[i], (int)bit);
      f->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (f->size = 0; f->size < size; f->size++, cuts++)
      if (opens(&env, "run") != kBefore)
        fail_msg("%s loads with %d bytes", kFiles[i], (int)f->size);
  }
  assert_true(total >= 8192);
  weir_checkpoint *c = NULL;
  assert_ok(weir_checkpoint_open(&env, "run", -1, NULL, &c, &err), &err);
  assert_int_equal(weir_checkpoint_about(c)->step, kDuring);
  weir_checkpoint_release(c);
  printf("%d bits turned, %d cuts of %d bytes\n", (int)flips, (int)cuts,
         (int)total);
  sim_fs_destroy(fs);
}

/* --- no memory --- */

static void every_allocation_fails(void **state) {
  (void)state;
  sim_fs *start = prepare();
  for (int forever = 0; forever < 2; forever++) {
    weir_status s = WEIR_UNKNOWN;
    for (uint64_t k = 1; s != WEIR_OK; k++) {
      sim_fs *fs = sim_fs_copy(start);
      weir_counted_allocator counted;
      weir_error err = WEIR_ERROR_INIT;
      weir_checkpoint *c = NULL;
      weir_counted_allocator_init(&counted, NULL);
      fs->alloc = &counted.base;
      counted.fail_at = k;
      counted.fail_forever = forever;
      weir_env env = env_of(fs);
      s = run_save(fs, kDuring, &err);
      if (s == WEIR_OK)
        s = weir_checkpoint_open(&env, "run", -1, NULL, &c, &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      weir_checkpoint_release(c);
      assert_int_equal(atomic_load(&counted.live_blocks), 0);
      counted.fail_at = 0;
      (void)opens(&env, "run");
      goes_on(fs);
      sim_fs_destroy(fs);
    }
  }
  sim_fs_destroy(start);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_crash_state_loads),
      cmocka_unit_test(a_step_saved_again),
      cmocka_unit_test(crash_after_crash),
      cmocka_unit_test(a_planted_bug_is_found),
      cmocka_unit_test(every_fault_leaves_a_generation),
      cmocka_unit_test(the_next_save_succeeds),
      cmocka_unit_test(every_size_of_disk),
      cmocka_unit_test(faults_while_restoring),
      cmocka_unit_test(every_flip_and_cut_is_found),
      cmocka_unit_test(every_allocation_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
