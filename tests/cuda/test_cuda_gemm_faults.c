/* SPDX-License-Identifier: Apache-2.0 */
#include <cublas_api.h>
#include <driver_types.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/cuda/gemm_case.h"

/* Faults of products: each call of both libraries and each allocation fails
 * once, libraries are missing or of another version, and descriptions and
 * operands make no sense. */

/* A fault, and what a call that met it must have said. */
typedef struct fault {
  int code;
  const char *id, *says;
} fault;

/* Of a life without a fault. */
typedef struct life {
  uint64_t cuda, lt;          /* calls of both libraries */
  uint64_t blocks, libraries; /* of the GPU */
} life;

/* A product with an inner dimension and a bias, and one without, which needs
 * zeros. */
static weir_status products(weir_device *d, weir_error *err) {
  const int64_t sizes[4] = {3, 2, 8, 2}, none[4] = {2, 3, 0, 1};
  gemm_case c = gemm_case_make(WEIR_GEMM_F32, sizes, true, false, 4);
  c.desc.epilogue = WEIR_GEMM_GELU_TANH_BIAS;
  WEIR_TRY(gemm_case_run(d, &c, err));
  c = gemm_case_make(WEIR_GEMM_BF16, none, false, false, 4);
  c.desc.beta = 1;
  return gemm_case_run(d, &c, err);
}

/* All of a device's life. |f| NULL: without a fault. */
static weir_status live(const fault *f) {
  weir_counted_allocator counted;
  weir_counted_allocator_init(&counted, NULL);
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = NULL;
  weir_device_name name = weir_device_name_any();
  name.index = (weir_index_range){0, 0};
  weir_status s = cuda_world_create(&counted.base, &name, 0, &d, &err);
  bool created = s == WEIR_OK;
  if (created) s = products(d, &err);
  if (s != WEIR_OK && f == NULL) fail_msg("%s", err.message);
  if (s != WEIR_OK) {
    assert_string_equal(err.id, created ? f->id : "W6004");
    if (strstr(err.message, f->says) == NULL) fail_msg("%s", err.message);
    if (created)
      assert_int_equal(atomic_load(&d->lost), strcmp(f->id, "W6004") == 0);
  }
  weir_device_release(d);
  assert_int_equal(atomic_load(&counted.live_blocks), 0);
  return s;
}

static life count(void) {
  assert_int_equal(live(NULL), WEIR_OK);
  life n = {.cuda = standin->counts().calls,
            .lt = standin_lt->counts().calls,
            .blocks = standin->counts().mallocs};
  weir_device *d = cuda_world_device(0, 0);
  n.libraries = standin->counts().libraries;
  weir_device_release(d);
  gemm_case_check_clean();
  return n;
}

/* Calls that cannot report. Of CUDA: for each product synchronise and destroy a
 * queue, destroy an event; at the end set the GPU, unload bodies and free each
 * block. Of cuBLASLt: for each product destroy four layouts, an operation, a
 * preference; for one with a bias an operation more; and the handle. */
enum { kCudaReleases = 2 * 3 + 1, kLtReleases = 2 * 6 + 1 + 1 };

static void every_call_of_cuda_fails_once(void **state) {
  static const fault kFaults[] = {
      {cudaErrorInvalidValue, "W5001", "invalid argument"},
      {cudaErrorIllegalAddress, "W6004", "illegal memory access"}};
  (void)state;
  const life n = count();
  for (size_t i = 0; i < 2; i++) {
    uint64_t silent = 0;
    for (uint64_t k = 1; k <= n.cuda; k++) {
      standin->set_seed(k % 3);
      standin->fail_at(k, kFaults[i].code);
      silent += live(&kFaults[i]) == WEIR_OK;
      assert_true(standin->counts().calls >= k);
      gemm_case_check_clean();
    }
    /* A GPU that was lost while the first product was released is found to be
     * lost by the second. */
    bool loses = strcmp(kFaults[i].id, "W6004") == 0;
    assert_int_equal(silent,
                     kCudaReleases - (loses ? 3 : 0) + n.blocks + n.libraries);
  }
}

static void every_call_of_cublaslt_fails_once(void **state) {
  static const fault kFaults[] = {
      {CUBLAS_STATUS_INVALID_VALUE, "W5001",
       "an unsupported value or parameter was passed"},
      {CUBLAS_STATUS_NOT_SUPPORTED, "W5001",
       "the functionality requested is not supported"},
      {CUBLAS_STATUS_EXECUTION_FAILED, "W5001",
       "the function failed to launch on the GPU"},
      {CUBLAS_STATUS_ALLOC_FAILED, "W6001", "the resource allocation failed"}};
  (void)state;
  uint64_t calls = count().lt;
  for (size_t i = 0; i < sizeof kFaults / sizeof kFaults[0]; i++) {
    uint64_t silent = 0;
    for (uint64_t k = 1; k <= calls; k++) {
      standin_lt->fail_at(k, kFaults[i].code);
      silent += live(&kFaults[i]) == WEIR_OK;
      assert_true(standin_lt->counts().calls >= k);
      gemm_case_check_clean();
    }
    assert_int_equal(silent, kLtReleases);
  }
}

/* Lost for ever at any call: W6004 in CUDA's words, also where cuBLASLt met it
 * first, and all goes away. */
static void lost_at_any_call(void **state) {
  const fault lost = {cudaErrorLaunchFailure, "W6004",
                      "unspecified launch failure"};
  (void)state;
  const life n = count();
  uint64_t kept = 0;
  for (uint64_t k = 1; k <= n.cuda; k++) {
    standin->set_seed(k % 3);
    standin->lose_at(k, lost.code);
    kept += live(&lost) == WEIR_OK;
    gemm_case_check_clean();
  }
  /* After the last wait nobody asks: two calls for the queue, one for the
   * event, one that sets the GPU, the libraries and the blocks. */
  assert_int_equal(kept, 4 + n.blocks + n.libraries);
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  const uint64_t blocks = count().blocks;
  uint64_t k = 0;
  for (weir_status s = WEIR_INTERNAL; s != WEIR_OK;) {
    weir_counted_allocator counted;
    weir_counted_allocator_init(&counted, NULL);
    weir_error err = WEIR_ERROR_INIT;
    weir_device *d = NULL;
    weir_device_name name = weir_device_name_any();
    name.index = (weir_index_range){0, 0};
    counted.fail_at = ++k;
    s = cuda_world_create(&counted.base, &name, 0, &d, &err);
    if (s == WEIR_OK) s = products(d, &err);
    if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
    weir_device_release(d);
    assert_int_equal(atomic_load(&counted.live_blocks), 0);
    gemm_case_check_clean();
  }
  assert_int_equal(k - 1, 3 + 2 + blocks); /* a device, its bodies; two plans */
}

/* Operands that are gone when the work is done lose the device. */
static void work_without_its_memory(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 64 << 10), *other;
  const weir_gemm_matrix one = {.ld = 1};
  const weir_gemm_desc desc = {.m = 1,
                               .n = 1,
                               .k = 1,
                               .batch = 1,
                               .a = one,
                               .b = one,
                               .d = one,
                               .alpha = 1};
  weir_gemm_plan *plan;
  weir_queue *q;
  weir_device_buffer in, out, large;
  size_t bytes;
  assert_ok(d->vt->gemm->plan(d, &desc, &plan, &bytes, &err), &err);
  assert_ok(d->vt->queue_create(d, &q, &err), &err);
  assert_ok(d->vt->alloc(d, 4, &in, &err), &err);
  assert_ok(d->vt->alloc(d, 4, &out, &err), &err);
  const weir_gemm_operands o = {.a = {&in, 0}, .b = {&in, 0}, .d = {&out, 0}};
  other = cuda_world_device(1, 0); /* which becomes this thread's GPU */
  assert_ok(d->vt->gemm->run(d, plan, q, &o, &err), &err);
  d->vt->free(d, &in); /* against the contract */
  assert_ok(d->vt->alloc(d, (64 << 10) - 512, &large, &err), &err);
  d->vt->queue_release(d, q);
  assert_true(atomic_load(&d->lost));
  assert_error(d->vt->gemm->run(d, plan, NULL, &o, &err), &err, "W6004");
  d->vt->gemm->release(d, plan);
  assert_error(d->vt->gemm->plan(d, &desc, &plan, &bytes, &err), &err, "W6004");
  assert_null(plan);
  d->vt->free(d, &out);
  d->vt->free(d, &large);
  weir_device_release(other);
  weir_device_release(d);
  gemm_case_check_clean();
}

/* cuBLASLt reports that it failed; CUDA knows why. */
static void cublaslt_meets_the_loss_first(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  const weir_gemm_matrix one = {.ld = 1};
  const weir_gemm_desc desc = {.m = 1,
                               .n = 1,
                               .k = 1,
                               .batch = 1,
                               .a = one,
                               .b = one,
                               .d = one,
                               .alpha = 1};
  weir_gemm_plan *plan;
  weir_device_buffer all;
  size_t bytes;
  assert_ok(d->vt->gemm->plan(d, &desc, &plan, &bytes, &err), &err);
  assert_ok(d->vt->alloc(d, 12, &all, &err), &err);
  const weir_gemm_operands o = {.a = {&all, 0}, .b = {&all, 4}, .d = {&all, 8}};
  standin_lt->fail_at(1, CUBLAS_STATUS_EXECUTION_FAILED);
  standin->lose_at(2, cudaErrorLaunchFailure); /* the run sets the GPU first */
  assert_error(d->vt->gemm->run(d, plan, NULL, &o, &err), &err, "W6004");
  assert_string_equal(err.message,
                      "GPU 0 is lost: unspecified launch failure (stand-in)");
  assert_true(atomic_load(&d->lost));
  d->vt->gemm->release(d, plan);
  d->vt->free(d, &all);
  weir_device_release(d);
  gemm_case_check_clean();
}

/* Fails to plan any product, with W6004 and |says|. */
static void check_none(const char *folder, const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d;
  weir_device_name name = weir_device_name_any();
  weir_env env = {.alloc = weir_allocator_system()};
  const weir_cuda_options o = {.runtime_folder = folder};
  const int64_t sizes[4] = {1, 1, 1, 1};
  gemm_case c = gemm_case_make(WEIR_GEMM_F32, sizes, false, false, 0);
  assert_ok(weir_device_cuda_create(&env, &cuda_module, &name, &o, &d, &err),
            &err);
  for (int i = 0; i < 2; i++) { /* the second try says the same */
    assert_error(gemm_case_run(d, &c, &err), &err, "W6004");
    if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
  }
  assert_false(atomic_load(&d->lost));
  weir_device_release(d);
}

/* Folders that have CUDA's runtime library, and no cuBLASLt that is one. */
static void says_why_there_is_no_cublaslt(void **state) {
  (void)state;
  char folder[] = "/tmp/weir_gemm_XXXXXX", from[PATH_MAX], to[64], says[128];
  assert_non_null(mkdtemp(folder));
  assert_non_null(realpath(cuda_folder, from));
  strncat(from, "/libcudart.so.13", sizeof from - strlen(from) - 1);
  snprintf(to, sizeof to, "%s/libcudart.so.13", folder);
  assert_int_equal(symlink(from, to), 0);
  snprintf(says, sizeof says,
           "cuBLASLt, for matrix products, cannot be loaded: "
           "%s/libcublasLt.so.13: ",
           folder);
  check_none(folder, says);
  /* One that has the name alone. */
  snprintf(to, sizeof to, "%s/libcublasLt.so.13", folder);
  assert_int_equal(symlink(from, to), 0);
  check_none(folder, "libcublasLt.so.13 has no function cublasLtGetVersion");
  assert_int_equal(unlink(to), 0);
  snprintf(to, sizeof to, "%s/libcudart.so.13", folder);
  assert_int_equal(unlink(to), 0);
  assert_int_equal(rmdir(folder), 0);
  gemm_case_check_clean();
}

static void other_versions_are_refused(void **state) {
  (void)state;
  standin_lt->set_version(120804);
  check_none(cuda_folder,
             "libcublasLt.so.13 is of cuBLAS 12.8, this weir needs 13");
  standin_lt->set_version(140000);
  check_none(cuda_folder,
             "libcublasLt.so.13 is of cuBLAS 14.0, this weir needs 13");
  gemm_case_check_clean();
}

static void no_algorithm_is_an_error(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  const int64_t sizes[4] = {1, 1, 1, 1};
  gemm_case c = gemm_case_make(WEIR_GEMM_F32, sizes, false, false, 0);
  standin_lt->set_algorithms(0);
  assert_error(gemm_case_run(d, &c, &err), &err, "W5001");
  assert_string_equal(err.message,
                      "GPU 0: cublasLtMatmulAlgoGetHeuristic: the "
                      "functionality requested is not supported (stand-in)");
  weir_device_release(d);
  gemm_case_check_clean();
}

/* A description with one thing wrong. */
static void refuse(weir_device *d, weir_gemm_desc desc, const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  weir_gemm_plan *plan = (weir_gemm_plan *)&err;
  size_t bytes = 1;
  assert_error(d->vt->gemm->plan(d, &desc, &plan, &bytes, &err), &err, "W9001");
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
  assert_null(plan);
  assert_int_equal(bytes, 0);
}

#define REFUSE(member, value, says) \
  do {                              \
    weir_gemm_desc wrong = good;    \
    wrong.member = value;           \
    refuse(d, wrong, says);         \
  } while (0)

static void descriptions_that_make_no_sense(void **state) {
  (void)state;
  weir_device *d = cuda_world_device(0, 0);
  const int64_t sizes[4] = {2, 3, 4, 2};
  weir_gemm_desc good =
      gemm_case_make(WEIR_GEMM_F32, sizes, false, false, 0).desc;
  good.beta = 1;
  REFUSE(type, WEIR_GEMM_TYPE_COUNT, "no type 5 or epilogue 0");
  REFUSE(epilogue, WEIR_GEMM_EPILOGUE_COUNT, "no type 0 or epilogue 6");
  REFUSE(m, -1, "m, n, k and batch are -1, 3, 4 and 2");
  REFUSE(n, -1, "m, n, k and batch are 2, -1, 4 and 2");
  REFUSE(k, -1, "m, n, k and batch are 2, 3, -1 and 2");
  REFUSE(batch, -1, "m, n, k and batch are 2, 3, 4 and -1");
  REFUSE(batch, (int64_t)INT32_MAX + 1, "m, n, k and batch are ");
  REFUSE(a.ld, 3, "leading dimension of A is 3, its rows have 4 elements");
  REFUSE(b.ld, 2, "leading dimension of B is 2, its rows have 3 elements");
  REFUSE(c.ld, 2, "leading dimension of C is 2, its rows have 3 elements");
  REFUSE(d.ld, 2, "leading dimension of D is 2, its rows have 3 elements");
  REFUSE(b_transposed, true, "leading dimension of B is 3, its rows have 4");
  REFUSE(a.stride, -1, "the stride of A is -1");
  REFUSE(b.stride, -4, "the stride of B is -4");
  REFUSE(c.stride, -4, "the stride of C is -4");
  REFUSE(d.stride, -4, "the stride of D is -4");
  REFUSE(d.stride, 0, "matrices of D overlap, their stride is 0");
  REFUSE(d.stride, 5, "matrices of D overlap, their stride is 5");
  REFUSE(a.stride, INT64_MAX, "no memory is as large as A");
  REFUSE(a.ld, INT64_MAX / 2, "no memory is as large as A");
  REFUSE(b.ld, INT64_MAX / 4, "no memory is as large as B");
  REFUSE(align_bytes, 2, "elements of 4 bytes are not aligned to 2");
  REFUSE(align_bytes, 12, "elements of 4 bytes are not aligned to 12");
  REFUSE(align_bytes, 512, "elements of 4 bytes are not aligned to 512");
  /* The same numbers where they are not read. */
  good.beta = 0;
  good.c.ld = -5;
  good.batch = 1;
  good.d.stride = -1;
  weir_error err = WEIR_ERROR_INIT;
  weir_gemm_plan *plan;
  size_t bytes;
  assert_ok(d->vt->gemm->plan(d, &good, &plan, &bytes, &err), &err);
  d->vt->gemm->release(d, plan);
  weir_device_release(d);
  gemm_case_check_clean();
}

/* A run that must fail with |says|. */
static void refuse_run(weir_device *d, const weir_gemm_plan *plan,
                       weir_queue *q, weir_gemm_operands o, const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  uint64_t products = standin_lt->counts().products;
  assert_error(d->vt->gemm->run(d, plan, q, &o, &err), &err, "W9001");
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
  assert_int_equal(standin_lt->counts().products, products);
}

#define REFUSE_RUN(member, value, says)  \
  do {                                   \
    weir_gemm_operands wrong = o;        \
    wrong.member = value;                \
    refuse_run(d, plan, q, wrong, says); \
  } while (0)

static void operands_that_do_not_fit(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  const int64_t sizes[4] = {2, 3, 8, 2};
  weir_gemm_desc desc =
      gemm_case_make(WEIR_GEMM_F32, sizes, false, false, 0).desc;
  weir_gemm_plan *plan;
  weir_queue *q;
  weir_device_buffer all;
  size_t bytes;
  desc.beta = 1;
  desc.epilogue = WEIR_GEMM_BIAS;
  assert_ok(d->vt->gemm->plan(d, &desc, &plan, &bytes, &err), &err);
  assert_ok(d->vt->queue_create(d, &q, &err), &err);
  assert_ok(d->vt->alloc(d, 2048, &all, &err), &err);
  /* A: 2 x 2 x 8 + 1; B: 2 x 8 x 3; C: one row's gap, 2 between; D: 2 x 2 x 3.
   */
  const weir_gemm_operands o = {.a = {&all, 0},
                                .b = {&all, 256},
                                .c = {&all, 512},
                                .d = {&all, 640},
                                .bias = {&all, 768},
                                .workspace = {&all, 1024}};
  assert_ok(d->vt->gemm->run(d, plan, q, &o, &err), &err);
  const weir_device_place none = {0};
  REFUSE_RUN(a, none, "A is missing");
  REFUSE_RUN(b, none, "B is missing");
  REFUSE_RUN(c, none, "C is missing");
  REFUSE_RUN(d, none, "D is missing");
  REFUSE_RUN(bias, none, "the bias is missing");
  REFUSE_RUN(workspace, none, "the workspace is missing");
  REFUSE_RUN(a.offset, 2048 - 128, "A has 132 bytes at ");
  REFUSE_RUN(b.offset, SIZE_MAX - 3, "B has 192 bytes at ");
  REFUSE_RUN(bias.offset, 2048 - 8, "the bias has 12 bytes at ");
  REFUSE_RUN(workspace.offset, 2048, "the workspace has ");
  REFUSE_RUN(a.offset, 2, "A is not aligned to 4 bytes");
  REFUSE_RUN(bias.offset, 769, "the bias is not aligned to 4 bytes");
  REFUSE_RUN(workspace.offset, 896, "the workspace is not aligned to 256");
  REFUSE_RUN(d.offset, 128, "D overlaps A");
  REFUSE_RUN(d.offset, 444, "D overlaps B");
  REFUSE_RUN(d.offset, 512, "D overlaps C"); /* of another leading dimension */
  REFUSE_RUN(d.offset, 764, "D overlaps the bias");
  REFUSE_RUN(d.offset, 1028, "D overlaps the workspace");
  REFUSE_RUN(a.offset, 1024, "the workspace overlaps A");
  REFUSE_RUN(bias.offset, 1024, "the workspace overlaps the bias");
  REFUSE_RUN(c.offset, 1024, "the workspace overlaps C");
  d->vt->queue_release(d, q);
  assert_false(atomic_load(&d->lost));
  d->vt->gemm->release(d, plan);
  d->vt->gemm->release(d, NULL);
  d->vt->free(d, &all);
  weir_device_release(d);
  gemm_case_check_clean();
}

/* C and D are the same bytes, not the same matrices. */
static void in_place_is_the_same_layout(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  weir_device_buffer all;
  assert_ok(d->vt->alloc(d, 2048, &all, &err), &err);
  const weir_gemm_operands o = {
      .a = {&all, 0}, .b = {&all, 256}, .c = {&all, 512}, .d = {&all, 512}};
  for (int i = 0; i < 2; i++) {
    const int64_t sizes[4] = {2, 2, 2, i + 1};
    weir_gemm_desc desc =
        gemm_case_make(WEIR_GEMM_F32, sizes, false, false, 0).desc;
    weir_gemm_plan *plan;
    size_t bytes;
    desc.beta = 1;
    desc.c = desc.d;
    if (i == 0) desc.c.ld++;
    if (i == 1) desc.c.stride++;
    assert_ok(d->vt->gemm->plan(d, &desc, &plan, &bytes, &err), &err);
    assert_int_equal(bytes, 0);
    refuse_run(d, plan, NULL, o, "D overlaps C");
    d->vt->gemm->release(d, plan);
  }
  d->vt->free(d, &all);
  weir_device_release(d);
  gemm_case_check_clean();
}

int main(void) {
  int skipped =
      cuda_world_skip_program("calls that fail when they are told to");
  if (skipped != 0) return skipped;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_call_of_cuda_fails_once),
      cmocka_unit_test(every_call_of_cublaslt_fails_once),
      cmocka_unit_test(lost_at_any_call),
      cmocka_unit_test(every_allocation_fails_once),
      cmocka_unit_test(work_without_its_memory),
      cmocka_unit_test(cublaslt_meets_the_loss_first),
      cmocka_unit_test(says_why_there_is_no_cublaslt),
      cmocka_unit_test(other_versions_are_refused),
      cmocka_unit_test(no_algorithm_is_an_error),
      cmocka_unit_test(descriptions_that_make_no_sense),
      cmocka_unit_test(operands_that_do_not_fit),
      cmocka_unit_test(in_place_is_the_same_layout),
  };
  return cmocka_run_group_tests(tests, gemm_case_open, NULL);
}
