/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_IO_CHECKPOINT_CHECK_H_
#define TESTS_IO_CHECKPOINT_CHECK_H_

#include <stdlib.h>
#include <string.h>

#include "runtime/base/env_system.h"
#include "runtime/io/checkpoint/checkpoint.h"
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/io/checkpoint/checkpoint_open.h"
#include "runtime/io/checkpoint/checkpoint_store.h"
#include "tests/base/sim_fs.h"
#include "tests/check.h"

/* Shared by the tests of checkpoints: five tensors whose values follow from
 * the step, saved and compared. */

enum { kTensors = 5 };

static const weir_dtype kDtypes[kTensors] = {WEIR_F32, WEIR_I64, WEIR_BOOL,
                                             WEIR_F32, WEIR_F64};
static const char *const kNames[kTensors] = {"w", "table", "mask", "w/m",
                                             "global \xc3\xa4 \"quoted\""};
static const int kRanks[kTensors] = {2, 1, 3, 2, 0};
static const int64_t kDims[kTensors][3] = {
    {7, 9}, {33}, {2, 3, 5}, {7, 9}, {0}};

typedef struct set {
  weir_tensor *tensors[kTensors];
  weir_checkpoint_entry entries[kTensors];
} set;

static inline set make_set(uint64_t step) {
  set s;
  weir_error err = WEIR_ERROR_INIT;
  for (int i = 0; i < kTensors; i++) {
    weir_shape shape = weir_shape_of(kRanks[i], kDims[i]);
    weir_tensor *t = NULL;
    assert_ok(weir_tensor_create_shaped(weir_allocator_system(), kDtypes[i],
                                        &shape, &t, &err),
              &err);
    for (int64_t e = 0; e < weir_shape_elements(&shape); e++)
      weir_tensor_set_f64(t, e,
                          kDtypes[i] == WEIR_BOOL
                              ? (double)((uint64_t)e * 7 % (step + 2) % 2)
                              : (double)e * 0.37 + (double)step * (i + 1));
    s.tensors[i] = t;
    s.entries[i] = (weir_checkpoint_entry){weir_sv_from(kNames[i]),
                                           i == 3   ? WEIR_CHECKPOINT_SLOT
                                           : i == 4 ? WEIR_CHECKPOINT_STATE
                                                    : WEIR_CHECKPOINT_VARIABLE,
                                           t};
  }
  return s;
}

static inline void free_set(set *s) {
  for (int i = 0; i < kTensors; i++) weir_tensor_unref(s->tensors[i]);
}

static inline weir_checkpoint_info info_of(uint64_t step) {
  return (weir_checkpoint_info){
      .step = step,
      .epoch = (double)step / 8,
      .seed = UINT64_MAX - step,
      .graph_hash = 0x0123456789abcdef,
      .run_id = WEIR_SV_LIT("run-a"),
      .data = WEIR_SV_LIT("{\"position\": [1, 2], \"text\": \"}\"}"),
      .extra = {NULL, 0},
      .time_ns = 1700000000000000000};
}

static inline weir_status save_step(weir_checkpoint_store *store, uint64_t step,
                                    weir_error *err) {
  set s = make_set(step);
  weir_checkpoint_info info = info_of(step);
  weir_status status =
      weir_checkpoint_save(store, &info, s.entries, kTensors, err);
  free_set(&s);
  return status;
}

/* |c| holds the tensors that save_step saved at |step|. */
static inline void holds_step(const weir_checkpoint *c, uint64_t step) {
  set s = make_set(step);
  const weir_checkpoint_info *a = weir_checkpoint_about(c);
  weir_checkpoint_info b = info_of(step);
  assert_int_equal(a->step, b.step);
  assert_true(a->epoch == b.epoch);
  assert_true(a->seed == b.seed);
  assert_true(a->graph_hash == b.graph_hash);
  assert_true(a->time_ns == b.time_ns);
  assert_true(weir_sv_equal(a->run_id, b.run_id));
  assert_true(weir_sv_equal(a->data, b.data));
  assert_true(weir_sv_equal(a->extra, b.extra));
  assert_int_equal(weir_checkpoint_count(c), kTensors);
  for (size_t i = 0; i < kTensors; i++) {
    size_t j = weir_checkpoint_find(c, s.entries[i].name);
    assert_int_equal(j, i);
    assert_true(weir_sv_equal(weir_checkpoint_name(c, i), s.entries[i].name));
    assert_int_equal(weir_checkpoint_role_of(c, i), s.entries[i].role);
    weir_tensor *t = weir_checkpoint_tensor(c, i);
    assert_int_equal(t->dtype, kDtypes[i]);
    assert_true(weir_shape_equal(&t->shape, &s.tensors[i]->shape));
    assert_memory_equal(t->data, s.tensors[i]->data, t->bytes);
    weir_tensor_unref(t);
  }
  assert_true(weir_checkpoint_find(c, WEIR_SV_LIT("none")) == SIZE_MAX);
  free_set(&s);
}

/* Opens the newest generation in |dir|, checks it, and gives its step. */
static inline uint64_t opens(const weir_env *env, const char *dir) {
  weir_checkpoint *c = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_checkpoint_open(env, dir, -1, NULL, &c, &err), &err);
  uint64_t step = weir_checkpoint_about(c)->step;
  holds_step(c, step);
  weir_checkpoint_release(c);
  return step;
}

static inline void does_not_open(const weir_env *env, const char *dir,
                                 int64_t step, const char *id,
                                 const char *says) {
  weir_checkpoint *c = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_error(weir_checkpoint_open(env, dir, step, NULL, &c, &err), &err, id);
  if (strstr(err.message, says) == NULL)
    fail_msg("%s, want %s", err.message, says);
  assert_null(c);
}

static inline weir_env env_of(sim_fs *fs) {
  return (weir_env){fs->alloc, &fs->fs, weir_env_system()->clock};
}

#endif
