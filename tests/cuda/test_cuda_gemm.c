/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <pthread.h>

#include "tests/cuda/gemm_case.h"

/* Products of matrices on a GPU's device: right for all sizes, layouts and
 * epilogues, in the order of queues, and by several threads. */

static void run(weir_device *d, const gemm_case *c) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(gemm_case_run(d, c, &err), &err);
}

/* A case whose epilogue, beta and batch follow from its number. */
static gemm_case numbered(weir_gemm_type type, const int64_t mnk[3],
                          unsigned transposed, uint64_t n) {
  static const double kBetas[] = {0, 1, -0.5};
  int64_t sizes[4] = {mnk[0], mnk[1], mnk[2], (int64_t)(n / 5 % 4)};
  gemm_case c =
      gemm_case_make(type, sizes, transposed & 1, (transposed & 2) != 0, n);
  c.desc.epilogue = (weir_gemm_epilogue)(n % WEIR_GEMM_EPILOGUE_COUNT);
  c.desc.beta = kBetas[n / 6 % 3];
  c.desc.alpha = n % 7 == 0 ? -2 : 0.5;
  c.in_place = n / 18 % 2 == 1;
  if (c.in_place) c.desc.c = c.desc.d;
  return c;
}

/* Every small size and both sides of a border, all types, all transpositions.
 */
static void all_sizes(void **state) {
  static const int64_t kSizes[] = {0, 1, 2, 3, 5, 9};
  enum { kCount = sizeof kSizes / sizeof kSizes[0] };
  (void)state;
  weir_device *d = cuda_world_device(0, 0);
  uint64_t n = 0;
  for (int type = 0; type < WEIR_GEMM_TYPE_COUNT; type++)
    for (int i = 0; i < kCount * kCount * kCount; i++)
      for (unsigned transposed = 0; transposed < 4; transposed++) {
        const int64_t mnk[3] = {kSizes[i % kCount], kSizes[i / kCount % kCount],
                                kSizes[i / kCount / kCount]};
        gemm_case c = numbered((weir_gemm_type)type, mnk, transposed, n++);
        run(d, &c);
      }
  weir_device_release(d);
  gemm_case_check_clean();
}

/* Every epilogue with every beta, batch and broadcast; k 0 has no factors. */
static void all_epilogues(void **state) {
  static const double kBetas[] = {0, 1, 2};
  static const int64_t kInner[] = {0, 1, 7};
  (void)state;
  weir_device *d = cuda_world_device(1, 0);
  for (unsigned i = 0; i < 5 * 6 * 3 * 3 * 3 * 4 * 2; i++) {
    int64_t sizes[4] = {3, 5, kInner[i / 30 % 3],
                        (int64_t[]){1, 2, 5}[i / 90 % 3]};
    gemm_case c =
        gemm_case_make((weir_gemm_type)(i % 5), sizes, i & 1, i % 4 > 1, i);
    c.desc.epilogue = (weir_gemm_epilogue)(i / 5 % 6);
    c.desc.beta = kBetas[i / 270 % 3];
    unsigned broadcast = i / 810 % 4;
    if (broadcast & 1) c.desc.a.stride = 0;
    if (broadcast & 2) c.desc.b.stride = 0;
    c.in_place = i / 3240 == 1;
    if (c.in_place) c.desc.c = c.desc.d;
    run(d, &c);
  }
  weir_device_release(d);
  gemm_case_check_clean();
}

/* Matrices of a batch side by side in the rows of a larger one, as heads are,
 * and one C for all. */
static void batches_lie_side_by_side(void **state) {
  (void)state;
  weir_device *d = cuda_world_device(0, 0);
  const int64_t sizes[4] = {4, 3, 6, 5};
  gemm_case c = gemm_case_make(WEIR_GEMM_F32, sizes, false, true, 1);
  c.desc.a = (weir_gemm_matrix){.ld = 30, .stride = 6};
  c.desc.b = (weir_gemm_matrix){.ld = 31, .stride = 6};
  c.desc.d = (weir_gemm_matrix){.ld = 15, .stride = 3};
  c.desc.c = (weir_gemm_matrix){.ld = 3, .stride = 0};
  c.desc.beta = 1;
  run(d, &c);
  weir_device_release(d);
  gemm_case_check_clean();
}

/* No NaN out of infinity times nothing. */
static void empty_sums_are_zero_whatever_alpha_is(void **state) {
  (void)state;
  weir_device *d = cuda_world_device(0, 0);
  const int64_t sizes[4] = {3, 300, 0, 2};
  gemm_case c = gemm_case_make(WEIR_GEMM_F32, sizes, false, false, 5);
  c.desc.alpha = INFINITY;
  c.desc.epilogue = WEIR_GEMM_BIAS;
  run(d, &c);
  c.desc.type = WEIR_GEMM_F64;
  c.desc.alpha = NAN;
  run(d, &c);
  weir_device_release(d);
  gemm_case_check_clean();
}

/* The epilogue is of what is left, C and the bias. */
static void alpha_0_leaves_the_epilogue(void **state) {
  (void)state;
  weir_device *d = cuda_world_device(0, 0);
  const int64_t sizes[4] = {3, 300, 7, 1};
  for (int e = 0; e < WEIR_GEMM_EPILOGUE_COUNT; e++) {
    gemm_case c = gemm_case_make(WEIR_GEMM_F32, sizes, false, true, 6);
    c.desc.alpha = 0;
    c.desc.beta = 1;
    c.desc.epilogue = (weir_gemm_epilogue)e;
    run(d, &c);
  }
  weir_device_release(d);
  gemm_case_check_clean();
}

/* Without an element of D nothing is loaded, planned or run. */
static void no_elements_need_no_library(void **state) {
  (void)state;
  weir_device *d = cuda_world_device(0, 0);
  for (int empty = 0; empty < 3; empty++) {
    int64_t sizes[4] = {2, 3, 4, 1};
    sizes[empty == 2 ? 3 : empty] = 0;
    gemm_case c = gemm_case_make(WEIR_GEMM_F32, sizes, false, false, 5);
    run(d, &c);
  }
  if (standin_lt != NULL) assert_int_equal(standin_lt->counts().calls, 0);
  weir_device_release(d);
  gemm_case_check_clean();
}

/* A product of two numbers, on one queue after another; |ordered|: each waits
 * for an event of the one before. */
static float through_queues(uint64_t seed, bool ordered, weir_gemm_type type,
                            float x) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  const weir_device_vtable *vt = d->vt;
  weir_queue *q[3];
  weir_event *e[3];
  weir_device_buffer in, out, scratch;
  weir_gemm_plan *plan;
  size_t workspace_bytes;
  float data[2] = {x, 1}, back = 0;
  const weir_gemm_matrix one = {.ld = 1};
  const weir_gemm_desc desc = {.type = type,
                               .m = 1,
                               .n = 1,
                               .k = 1,
                               .batch = 1,
                               .a = one,
                               .b = one,
                               .d = one,
                               .alpha = 1};
  if (standin != NULL) standin->set_seed(seed);
  assert_ok(vt->gemm->plan(d, &desc, &plan, &workspace_bytes, &err), &err);
  if (standin != NULL) assert_int_equal(workspace_bytes, 0);
  for (int i = 0; i < 3; i++) {
    assert_ok(vt->queue_create(d, &q[i], &err), &err);
    assert_ok(vt->event_create(d, &e[i], &err), &err);
  }
  assert_ok(vt->alloc(d, sizeof data, &in, &err), &err);
  assert_ok(vt->alloc(d, sizeof back, &out, &err), &err);
  assert_ok(vt->alloc(d, workspace_bytes, &scratch, &err), &err);
  const weir_gemm_operands o = {
      .a = {&in, 0}, .b = {&in, 4}, .d = {&out, 0}, .workspace = {&scratch, 0}};
  assert_ok(vt->copy_in(d, q[0], o.a, data, sizeof data, &err), &err);
  assert_ok(vt->record(d, q[0], e[0], &err), &err);
  if (ordered) assert_ok(vt->queue_wait(d, q[1], e[0], &err), &err);
  assert_ok(vt->gemm->run(d, plan, q[1], &o, &err), &err);
  vt->gemm->release(d, plan); /* the work needs it no more */
  assert_ok(vt->record(d, q[1], e[1], &err), &err);
  if (ordered) assert_ok(vt->queue_wait(d, q[2], e[1], &err), &err);
  assert_ok(vt->copy_out(d, q[2], &back, o.d, sizeof back, &err), &err);
  assert_ok(vt->record(d, q[2], e[2], &err), &err);
  assert_ok(vt->wait(d, e[2], &err), &err);
  for (int i = 0; i < 3; i++) vt->queue_release(d, q[i]);
  for (int i = 0; i < 3; i++) vt->event_release(d, e[i]);
  vt->free(d, &in);
  vt->free(d, &out);
  vt->free(d, &scratch);
  weir_device_release(d);
  gemm_case_check_clean();
  return back;
}

static void queues_are_ordered_by_events_alone(void **state) {
  enum { kSeeds = 30 };
  (void)state;
  int wrong = 0;
  for (uint64_t seed = 0; seed <= kSeeds; seed++) {
    float x = through_queues(seed, true, WEIR_GEMM_F32, 3);
    assert_true(x == 3);
    if (standin == NULL) continue; /* any order may come of no order */
    x = through_queues(seed, false, WEIR_GEMM_F32, 3);
    wrong += x != 3;
    if (seed == 0) assert_false(x == 3);
  }
  /* By luck some seeds have the right order, and some have not. */
  if (standin != NULL) assert_in_range(wrong, 1, kSeeds);
}

static void tf32_only_where_it_is_allowed(void **state) {
  (void)state;
  const float x = 1 + 0x1p-12f; /* TF32 keeps 10 bits behind the point */
  assert_true(through_queues(0, true, WEIR_GEMM_F32, x) == x);
  float tf32 = through_queues(0, true, WEIR_GEMM_F32_TF32, x);
  if (standin != NULL) assert_true(tf32 == 1);
  assert_true(tf32 == 1 || tf32 == x); /* cuBLASLt may, and need not */
}

/* Parts of a sum are not rounded to 16 bits before they are added. */
static void sums_of_16_bits_are_rounded_once(void **state) {
  (void)state;
  weir_device *d = cuda_world_device(0, 0);
  const int64_t sizes[4] = {9, 9, 64, 1};
  for (uint64_t seed = 0; seed < 20; seed++) {
    gemm_case c = gemm_case_make(WEIR_GEMM_BF16, sizes, false, false, seed);
    run(d, &c);
    c = gemm_case_make(WEIR_GEMM_F16, sizes, false, false, seed);
    run(d, &c);
  }
  weir_device_release(d);
  gemm_case_check_clean();
}

/* More is promised of the addresses than an element's size. */
static void alignment_is_kept(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  const int64_t sizes[4] = {2, 2, 2, 1};
  for (int type = 0; type < WEIR_GEMM_TYPE_COUNT; type++) {
    gemm_case c = gemm_case_make((weir_gemm_type)type, sizes, false, false, 3);
    size_t size = type == WEIR_GEMM_F64 ? 8 : type >= WEIR_GEMM_BF16 ? 2 : 4;
    c.desc.epilogue = WEIR_GEMM_BIAS;
    c.desc.align_bytes = (uint32_t)size;
    run(d, &c);
    c.desc.align_bytes = (uint32_t)size * 2; /* before it are 3 elements */
    assert_error(gemm_case_run(d, &c, &err), &err, "W9001");
    assert_non_null(strstr(err.message, "D is not aligned to "));
    c.before = 2;
    run(d, &c);
    c.before = (int64_t)(WEIR_GEMM_MOST_ALIGN_BYTES / size);
    c.desc.align_bytes = WEIR_GEMM_MOST_ALIGN_BYTES;
    run(d, &c);
  }
  weir_device_release(d);
  gemm_case_check_clean();
}

enum { kThreads = 3, kRounds = 60 };

typedef struct sharing {
  weir_device *device;
  const weir_gemm_plan *plan;
  size_t workspace_bytes;
  gemm_case c;
  weir_error err;
} sharing;

/* A thread's own data, queue and workspace, by the plan of all. */
static void *rounds(void *self) {
  sharing *s = self;
  for (uint64_t i = 0; i < kRounds; i++) {
    s->c.seed += i * kThreads;
    if (gemm_case_run_plan(s->device, &s->c, s->plan, s->workspace_bytes,
                           &s->err) != WEIR_OK)
      return s;
  }
  return NULL;
}

static void threads_share_a_plan(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  const int64_t sizes[4] = {4, 3, 8, 2};
  gemm_case c = gemm_case_make(WEIR_GEMM_F32, sizes, true, false, 1);
  c.desc.epilogue = WEIR_GEMM_RELU_BIAS;
  weir_gemm_plan *plan;
  size_t workspace_bytes;
  assert_ok(d->vt->gemm->plan(d, &c.desc, &plan, &workspace_bytes, &err), &err);
  if (standin != NULL) assert_int_not_equal(workspace_bytes, 0);
  pthread_t threads[kThreads];
  sharing all[kThreads];
  for (int i = 0; i < kThreads; i++) {
    all[i] = (sharing){d, plan, workspace_bytes, c, WEIR_ERROR_INIT};
    all[i].c.seed = (uint64_t)i + 1;
    assert_int_equal(pthread_create(&threads[i], NULL, rounds, &all[i]), 0);
  }
  for (int i = 0; i < kThreads; i++) {
    void *failed;
    assert_int_equal(pthread_join(threads[i], &failed), 0);
    if (failed != NULL) fail_msg("%s", all[i].err.message);
  }
  d->vt->gemm->release(d, plan);
  weir_device_release(d);
  gemm_case_check_clean();
}

/* Threads that plan at the same time open the library once. */
static void *first_plan(void *self) {
  sharing *s = self;
  return gemm_case_run(s->device, &s->c, &s->err) == WEIR_OK ? NULL : s;
}

static void threads_open_one_library(void **state) {
  (void)state;
  const int64_t sizes[4] = {1, 1, 1, 1};
  for (int round = 0; round < 20; round++) {
    weir_device *d = cuda_world_device(0, 0);
    pthread_t threads[kThreads];
    sharing all[kThreads];
    for (int i = 0; i < kThreads; i++) {
      all[i] = (sharing){.device = d, .err = WEIR_ERROR_INIT};
      all[i].c = gemm_case_make(WEIR_GEMM_F32, sizes, false, false, 2);
      assert_int_equal(pthread_create(&threads[i], NULL, first_plan, &all[i]),
                       0);
    }
    for (int i = 0; i < kThreads; i++) {
      void *failed;
      assert_int_equal(pthread_join(threads[i], &failed), 0);
      if (failed != NULL) fail_msg("%s", all[i].err.message);
    }
    if (standin_lt != NULL) assert_int_equal(standin_lt->counts().handles, 1);
    weir_device_release(d);
    gemm_case_check_clean();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_sizes),
      cmocka_unit_test(all_epilogues),
      cmocka_unit_test(batches_lie_side_by_side),
      cmocka_unit_test(empty_sums_are_zero_whatever_alpha_is),
      cmocka_unit_test(alpha_0_leaves_the_epilogue),
      cmocka_unit_test(no_elements_need_no_library),
      cmocka_unit_test(queues_are_ordered_by_events_alone),
      cmocka_unit_test(tf32_only_where_it_is_allowed),
      cmocka_unit_test(sums_of_16_bits_are_rounded_once),
      cmocka_unit_test(alignment_is_kept),
      cmocka_unit_test(threads_share_a_plan),
      cmocka_unit_test(threads_open_one_library),
  };
  return cmocka_run_group_tests(tests, gemm_case_open, NULL);
}
