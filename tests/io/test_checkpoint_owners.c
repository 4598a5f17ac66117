/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_common.h"
#include "runtime/io/checkpoint/checkpoint_owners.h"
#include "runtime/io/checkpoint/checkpoint_shard.h"
#include "tests/io/checkpoint_check.h"

/* Checkpoints whose tensors have owners, on a file system that fails and
 * forgets (sim_fs.h): as in test_checkpoint_crash.c, the newest or the previous
 * generation loads after a crash anywhere, and the next run removes leftovers.
 * Three owners: two write where they see the folder, the last never does. */

enum { kBefore = 5, kDuring = 10, kAfter = 15, kOwners = 3, kCrashSeeds = 40 };

static const weir_checkpoint_options kOptions = {.keep = 1};
static const uint32_t kOwnerOf[kTensors] = {0, 1, 0, 2, 1};

/* The other processes. */
typedef struct owners {
  weir_checkpoint_owners base;
  const weir_env *env;
  const char *root; /* of those that write */
  set values;
  int written, pieces;
} owners;

static uint32_t owner_of(const weir_checkpoint_owners *o, size_t i) {
  (void)o;
  return kOwnerOf[i];
}

static weir_status write_order(owners *o, void *folder,
                               weir_checkpoint_order *order, weir_error *err) {
  const weir_fs *fs = o->env->fs;
  weir_sv names[kTensors];
  weir_tensor *tensors[kTensors];
  uint64_t offsets[kTensors];
  for (size_t i = 0; i < order->count; i++) {
    names[i] = o->values.entries[order->entries[i]].name;
    tensors[i] = o->values.tensors[order->entries[i]];
  }
  weir_checkpoint_shard shard = {.env = o->env,
                                 .folder = folder,
                                 .dir = "run",
                                 .name = order->file,
                                 .run_id = order->run_id,
                                 .names = names,
                                 .tensors = tensors,
                                 .count = order->count,
                                 .offsets = offsets,
                                 .crcs = order->crcs};
  assert_true(weir_checkpoint_is_new_shard(order->file));
  weir_status s = weir_checkpoint_shard_write(&shard, err);
  if (s == WEIR_OK) s = fs->folders->sync_folder(fs->self, folder, err);
  order->written = true;
  order->bytes = shard.bytes;
  order->crc = shard.crc;
  o->written++;
  return s;
}

static weir_status write_orders(weir_checkpoint_owners *base,
                                const weir_checkpoint_common *place,
                                weir_checkpoint_order *orders, size_t count,
                                weir_error *err) {
  owners *o = (owners *)base;
  weir_status first = WEIR_OK;
  for (size_t i = 0; i < count; i++) { /* all of them, as processes would */
    void *folder = NULL;
    if (orders[i].owner == 2) continue;
    weir_status s =
        weir_checkpoint_common_open(o->env, o->root, place, &folder, err);
    if (s == WEIR_OK && folder != NULL)
      s = write_order(o, folder, &orders[i], first == WEIR_OK ? err : NULL);
    o->env->fs->folders->close(o->env->fs->self, folder);
    if (first == WEIR_OK) first = s;
  }
  return first;
}

static weir_status read_piece(weir_checkpoint_owners *base, size_t i,
                              uint64_t offset, void *dst, size_t bytes,
                              weir_error *err) {
  owners *o = (owners *)base;
  const weir_tensor *t = o->values.tensors[i];
  (void)err;
  assert_true(offset + bytes <= t->bytes && bytes > 0);
  memcpy(dst, (const char *)t->data + offset, bytes);
  o->pieces++;
  return WEIR_OK;
}

static int g_released;

static void release(weir_checkpoint_owners *base) {
  (void)base;
  g_released++;
}

static const weir_checkpoint_owners_vtable kVtable = {owner_of, write_orders,
                                                      read_piece, release};

static weir_env env_with_random(sim_fs *fs) {
  weir_env env = env_of(fs);
  env.random = weir_env_system()->random;
  return env;
}

/* Saves what |o| holds; entries have no data. */
static weir_status save_owned(weir_checkpoint_store *store, owners *o,
                              uint64_t step, weir_error *err) {
  weir_checkpoint_entry entries[kTensors];
  weir_checkpoint_info info = info_of(step);
  weir_error none = WEIR_ERROR_INIT;
  o->values = make_set(step);
  for (int i = 0; i < kTensors; i++) {
    const weir_tensor *t = o->values.tensors[i];
    weir_tensor_memory memory = {.dtype = t->dtype, .shape = &t->shape};
    weir_tensor *shape = NULL;
    assert_ok(weir_tensor_wrap(weir_allocator_system(), &memory, &shape, &none),
              &none);
    entries[i] = o->values.entries[i];
    entries[i].tensor = shape;
  }
  int released = g_released;
  weir_status s = weir_checkpoint_save_owned(store, &info, entries, kTensors,
                                             &o->base, err);
  assert_int_equal(g_released, released + 1);
  for (int i = 0; i < kTensors; i++)
    weir_tensor_unref((weir_tensor *)(uintptr_t)entries[i].tensor);
  free_set(&o->values);
  return s;
}

/* A new run saves |step|. */
static weir_status run_save(sim_fs *fs, uint64_t step, const char *root,
                            owners *out, weir_error *err) {
  weir_env env = env_with_random(fs);
  weir_checkpoint_store *store = NULL;
  owners o = {.base.vt = &kVtable, .env = &env, .root = root};
  weir_status s =
      weir_checkpoint_store_open(&env, "run", &kOptions, &store, err);
  if (s == WEIR_OK) s = save_owned(store, &o, step, err);
  weir_checkpoint_store_close(store);
  if (out != NULL) *out = o;
  return s;
}

/* Whether the newest generation has the values of its step, by name: entries of
 * one owner stand together, so their order is another one. */
static uint64_t found_step(sim_fs *fs) {
  weir_env env = env_of(fs);
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint *c = NULL;
  assert_ok(weir_checkpoint_open(&env, "run", -1, NULL, &c, &err), &err);
  uint64_t step = weir_checkpoint_about(c)->step;
  set s = make_set(step);
  assert_int_equal(weir_checkpoint_count(c), kTensors);
  for (int i = 0; i < kTensors; i++) {
    size_t at = weir_checkpoint_find(c, s.entries[i].name);
    assert_true(at != SIZE_MAX);
    assert_int_equal(weir_checkpoint_role_of(c, at), s.entries[i].role);
    weir_tensor *t = weir_checkpoint_tensor(c, at);
    assert_memory_equal(t->data, s.tensors[i]->data, t->bytes);
    weir_tensor_unref(t);
  }
  free_set(&s);
  weir_checkpoint_release(c);
  return step;
}

static void goes_on(sim_fs *fs) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(run_save(fs, kAfter, "run", NULL, &err), &err);
  assert_int_equal(found_step(fs), kAfter);
  assert_int_equal(sim_fs_count(fs, ".tmp"), 0);
  assert_int_equal(sim_fs_count(fs, ".json"), 1);
  assert_int_equal(sim_fs_count(fs, ".safetensors"), kOwners);
}

static sim_fs *prepare(void) {
  sim_fs *fs = sim_fs_create(weir_allocator_system());
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(run_save(fs, kBefore, "run", NULL, &err), &err);
  fs->ops = 0;
  return fs;
}

/* --- who writes --- */

static void owners_write_where_they_see(void **state) {
  (void)state;
  static const struct {
    const char *root;
    int written, pieces;
  } kCases[] = {{"run", 2, 1}, {NULL, 0, 5}, {"elsewhere", 0, 5}};
  for (size_t i = 0; i < 3; i++) {
    sim_fs *fs = prepare();
    weir_error err = WEIR_ERROR_INIT;
    owners o;
    void *folder = NULL;
    if (i == 2) { /* it is there, and not the same */
      assert_ok(
          fs->fs.folders->open(fs, NULL, "elsewhere", true, &folder, &err),
          &err);
      fs->fs.folders->close(fs, folder);
    }
    assert_ok(run_save(fs, kDuring, kCases[i].root, &o, &err), &err);
    assert_int_equal(o.written, kCases[i].written);
    assert_int_equal(o.pieces, kCases[i].pieces);
    assert_int_equal(found_step(fs), kDuring);
    goes_on(fs);
    sim_fs_destroy(fs);
  }
}

/* Another nonce than the folder holds, or none: not common. */
static void a_nonce_tells(void **state) {
  (void)state;
  sim_fs *fs = prepare();
  weir_env env = env_of(fs);
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_common place = {.path = "/run"};
  uint8_t other[WEIR_CHECKPOINT_NONCE_BYTES + 1] = {1};
  void *folder = NULL;
  for (int i = 0; i < 4; i++) {
    if (i == 1) sim_fs_put(fs, "run/" WEIR_CHECKPOINT_NONCE, other, 32);
    if (i == 2) sim_fs_put(fs, "run/" WEIR_CHECKPOINT_NONCE, place.nonce, 31);
    if (i == 3) sim_fs_put(fs, "run/" WEIR_CHECKPOINT_NONCE, other, 33);
    assert_ok(weir_checkpoint_common_open(&env, "run", &place, &folder, &err),
              &err);
    assert_null(folder);
  }
  sim_fs_put(fs, "run/" WEIR_CHECKPOINT_NONCE, place.nonce, 32);
  static const char *const kElsewhere[] = {"/", "/runs", "/ru", "",
                                           "/run/../x"};
  for (size_t i = 0; i < sizeof kElsewhere / sizeof kElsewhere[0]; i++) {
    weir_checkpoint_common odd = {.path = kElsewhere[i]};
    assert_ok(weir_checkpoint_common_open(&env, "run", &odd, &folder, &err),
              &err);
    assert_null(folder);
  }
  assert_ok(weir_checkpoint_common_open(&env, "run", &place, &folder, &err),
            &err);
  assert_non_null(folder);
  fs->fs.folders->close(fs, folder);
  sim_fs_destroy(fs);
}

static void only_shards_have_their_names(void **state) {
  (void)state;
  const char *made = "step-00000010-00001-of-00003.safetensors.tmp";
  const char *last = "step-00000010-00001-of-00003.safetensors";
  assert_true(weir_checkpoint_is_new_shard(made));
  assert_false(weir_checkpoint_is_new_shard(last));
  assert_true(weir_checkpoint_is_shard(last));
  assert_false(weir_checkpoint_is_shard(made));
  static const char *const kOdd[] = {
      "",
      "/etc/passwd",
      "../step-00000010-00001-of-00003.safetensors.tmp",
      "step-00000010.json",
      "step-00000010.json.tmp",
      ".weir-lock",
      "a/step-00000010-00001-of-00003.safetensors"};
  for (size_t i = 0; i < sizeof kOdd / sizeof kOdd[0]; i++) {
    assert_false(weir_checkpoint_is_new_shard(kOdd[i]));
    assert_false(weir_checkpoint_is_shard(kOdd[i]));
  }
}

/* --- the machine stops, operations fail, memory ends --- */

static void every_crash_state_loads(void **state) {
  (void)state;
  sim_fs *start = prepare();
  bool finished = false;
  uint64_t at = 0;
  while (!finished) {
    at++;
    for (uint64_t seed = 0; seed < kCrashSeeds; seed++) {
      sim_fs *fs = sim_fs_copy(start);
      weir_error err = WEIR_ERROR_INIT;
      fs->crash_at = at;
      weir_status s = run_save(fs, kDuring, "run", NULL, &err);
      finished = fs->ops < at;
      sim_fs_crash(fs, seed);
      uint64_t found = found_step(fs);
      if (found != kDuring && (found != kBefore || s == WEIR_OK))
        fail_msg("operation %d, seed %d: %d", (int)at, (int)seed, (int)found);
      goes_on(fs);
      sim_fs_destroy(fs);
    }
  }
  assert_true(at > 40);
  sim_fs_destroy(start);
}

static void every_fault_leaves_a_generation(void **state) {
  (void)state;
  sim_fs *start = prepare();
  for (int fault = 0; fault < SIM_FAULTS; fault++)
    for (uint64_t at = 1;; at++) {
      sim_fs *fs = sim_fs_copy(start);
      weir_error err = WEIR_ERROR_INIT;
      fs->fault_at = at;
      fs->fault = (sim_fault)fault;
      weir_status s = run_save(fs, kDuring, "run", NULL, &err);
      bool reached = fs->ops >= at;
      fs->fault_at = 0;
      uint64_t found = found_step(fs);
      if (found != kDuring && (found != kBefore || s == WEIR_OK))
        fail_msg("fault %d at %d: step %d", fault, (int)at, (int)found);
      goes_on(fs);
      sim_fs_destroy(fs);
      if (!reached) break;
    }
  sim_fs_destroy(start);
}

static void every_allocation_fails(void **state) {
  (void)state;
  sim_fs *start = prepare();
  for (int forever = 0; forever < 2; forever++) {
    weir_status s = WEIR_UNKNOWN;
    for (uint64_t k = 1; s != WEIR_OK; k++) {
      sim_fs *fs = sim_fs_copy(start);
      weir_counted_allocator counted;
      weir_error err = WEIR_ERROR_INIT;
      weir_counted_allocator_init(&counted, NULL);
      fs->alloc = &counted.base;
      counted.fail_at = k;
      counted.fail_forever = forever;
      s = run_save(fs, kDuring, "run", NULL, &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      assert_int_equal(atomic_load(&counted.live_blocks), 0);
      counted.fail_at = 0;
      goes_on(fs);
      sim_fs_destroy(fs);
    }
  }
  sim_fs_destroy(start);
}

/* --- bare checkpoints --- */

/* Compares each tensor as an owner would read it. */
static weir_status take_all(void *self, const weir_checkpoint *c,
                            weir_error *err) {
  uint64_t step = weir_checkpoint_about(c)->step;
  set s = make_set(step);
  weir_status status = WEIR_OK;
  (void)self;
  for (int i = 0; status == WEIR_OK && i < kTensors; i++) {
    size_t at = weir_checkpoint_find(c, s.entries[i].name);
    weir_tensor *t = NULL;
    assert_int_equal(weir_checkpoint_dtype(c, at), kDtypes[i]);
    status = weir_checkpoint_read(c, at, &t, err);
    if (status == WEIR_OK)
      assert_memory_equal(t->data, s.tensors[i]->data, t->bytes);
    weir_tensor_unref(t);
  }
  free_set(&s);
  return status;
}

/* The step that is taken. */
static uint64_t taken_step(sim_fs *fs) {
  weir_env env = env_of(fs);
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint *c = NULL;
  weir_checkpoint_taker taker = {NULL, take_all};
  assert_ok(
      weir_checkpoint_take_newest(&env, NULL, "run", NULL, &taker, &c, &err),
      &err);
  uint64_t step = weir_checkpoint_about(c)->step;
  weir_checkpoint_release(c);
  return step;
}

/* Two generations; |run_id| is the same. */
static sim_fs *prepare_two(void) {
  sim_fs *fs = sim_fs_create(weir_allocator_system());
  weir_env env = env_with_random(fs);
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_store *store = NULL;
  assert_ok(weir_checkpoint_store_open(&env, "run", NULL, &store, &err), &err);
  for (uint64_t step = kBefore; step <= kDuring; step += kDuring - kBefore) {
    owners o = {.base.vt = &kVtable, .env = &env, .root = "run"};
    assert_ok(save_owned(store, &o, step, &err), &err);
  }
  weir_checkpoint_store_close(store);
  return fs;
}

/* A bit turned anywhere in a shard, of header or tensor, and each length. */
static void every_flip_and_cut_is_passed_over(void **state) {
  (void)state;
  sim_fs *fs = prepare_two();
  assert_int_equal(taken_step(fs), kDuring);
  for (int k = 0; k < kOwners; k++) {
    char path[96];
    snprintf(path, sizeof path, "run/step-00000010-%05d-of-%05d.safetensors", k,
             kOwners);
    sim_inode *f = sim_fs_file(fs, path);
    size_t size = f->size;
    for (size_t bit = 0; bit < size * 8; bit++) {
      f->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
      if (taken_step(fs) != kBefore)
        fail_msg("%s is taken with bit %d turned", path, (int)bit);
      f->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (f->size = 0; f->size < size; f->size++)
      if (taken_step(fs) != kBefore)
        fail_msg("%s is taken with %d bytes", path, (int)f->size);
  }
  assert_int_equal(taken_step(fs), kDuring);
  sim_fs_destroy(fs);
}

/* A shard of the older generation in place of the newer one's. */
static void mixed_generations_are_passed_over(void **state) {
  (void)state;
  sim_fs *fs = prepare_two();
  sim_inode *old =
      sim_fs_file(fs, "run/step-00000005-00001-of-00003.safetensors");
  sim_fs_put(fs, "run/step-00000010-00001-of-00003.safetensors", old->data,
             old->size);
  assert_int_equal(taken_step(fs), kBefore);
  sim_fs_destroy(fs);
}

static void memory_fails_while_taking(void **state) {
  (void)state;
  sim_fs *fs = prepare_two();
  weir_status s = WEIR_UNKNOWN;
  for (uint64_t k = 1; s != WEIR_OK; k++) {
    weir_counted_allocator counted;
    weir_checkpoint *c = NULL;
    weir_error err = WEIR_ERROR_INIT;
    weir_checkpoint_taker taker = {NULL, take_all};
    weir_counted_allocator_init(&counted, NULL);
    fs->alloc = &counted.base;
    counted.fail_at = k;
    weir_env env = env_of(fs);
    s = weir_checkpoint_take_newest(&env, NULL, "run", NULL, &taker, &c, &err);
    if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
    weir_checkpoint_release(c);
    assert_int_equal(atomic_load(&counted.live_blocks), 0);
  }
  fs->alloc = weir_allocator_system();
  sim_fs_destroy(fs);
}

/* An owner knows a generation by its manifest. */
static void a_manifest_tells(void **state) {
  (void)state;
  sim_fs *fs = prepare_two();
  weir_env env = env_of(fs);
  weir_error err = WEIR_ERROR_INIT;
  sim_inode *f = sim_fs_file(fs, "run/step-00000010.json");
  weir_checkpoint_common place = {.path = "/run",
                                  .manifest = "step-00000010.json"};
  void *folder = NULL;
  weir_checkpoint_manifest_hash((weir_bytes){f->data, f->size}, place.nonce);
  assert_ok(weir_checkpoint_common_open(&env, "run", &place, &folder, &err),
            &err);
  assert_non_null(folder);
  fs->fs.folders->close(fs, folder);
  static const char *const kOther[] = {"step-00000005.json", "none.json",
                                       "step-00000011.json"};
  for (size_t i = 0; i < 3; i++) {
    place.manifest = kOther[i];
    assert_ok(weir_checkpoint_common_open(&env, "run", &place, &folder, &err),
              &err);
    assert_null(folder);
  }
  sim_fs_destroy(fs);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(owners_write_where_they_see),
      cmocka_unit_test(a_nonce_tells),
      cmocka_unit_test(only_shards_have_their_names),
      cmocka_unit_test(every_crash_state_loads),
      cmocka_unit_test(every_fault_leaves_a_generation),
      cmocka_unit_test(every_allocation_fails),
      cmocka_unit_test(every_flip_and_cut_is_passed_over),
      cmocka_unit_test(mixed_generations_are_passed_over),
      cmocka_unit_test(memory_fails_while_taking),
      cmocka_unit_test(a_manifest_tells),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
