/* SPDX-License-Identifier: Apache-2.0 */
#include <cublasLt.h>
#include <dlfcn.h>
#include <math.h>

#include "tests/cuda/gemm_case.h"
#include "tests/cuda/standin_lt/half.h"

/* The stand-in for cuBLASLt refuses what makes no sense: a module that asked
 * for it would not get by. Its numbers of 16 bits are right.
 *
 * On the real cuBLASLt the same calls are made, and what it says of each is
 * printed for a reader: the stand-in may be stricter. */

typedef struct functions {
#define WEIR_CUDA_LT_FUNCTION(f) __typeof__(f) *f;
#include "runtime/device/cuda/lt.def"
#undef WEIR_CUDA_LT_FUNCTION
} functions;

static functions f;

static int open_functions(void **state) {
  char path[4200];
  gemm_case_open(state);
  snprintf(path, sizeof path, "%s/libcublasLt.so.13", cuda_folder);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(library);
#define WEIR_CUDA_LT_FUNCTION(name) \
  assert_non_null(*(void **)&f.name = dlsym(library, #name));
#include "runtime/device/cuda/lt.def"
#undef WEIR_CUDA_LT_FUNCTION
  return 0;
}

/* What a product is asked with: D, 4 x 6, of A, 4 x 5, and B, 5 x 6. */
typedef struct asked {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t op;
  cublasLtMatrixLayout_t a, b, c, d;
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t best;
} asked;

static weir_device *device;
static weir_queue *queue;
static weir_device_buffer memory;

/* The first refusal within a change, where the real one may have any. */
static cublasStatus_t refusal;
static bool is_changing;

static void ok(cublasStatus_t s) {
  if (is_changing && standin_lt == NULL) {
    if (refusal == CUBLAS_STATUS_SUCCESS) refusal = s;
    return;
  }
  if (s != CUBLAS_STATUS_SUCCESS) fail_msg("%s", f.cublasLtGetStatusString(s));
}

static cublasStatus_t layout(cublasLtMatrixLayout_t *out, cudaDataType type,
                             uint64_t rows, uint64_t cols, int64_t ld) {
  if (*out != NULL) ok(f.cublasLtMatrixLayoutDestroy(*out));
  *out = NULL;
  return f.cublasLtMatrixLayoutCreate(out, type, rows, cols, ld);
}

static void begin(asked *q) {
  const uint64_t most = 4096;
  *q = (asked){0};
  ok(f.cublasLtCreate(&q->handle));
  ok(f.cublasLtMatmulDescCreate(&q->op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  ok(layout(&q->a, CUDA_R_32F, 4, 5, 4));
  ok(layout(&q->b, CUDA_R_32F, 5, 6, 5));
  ok(layout(&q->c, CUDA_R_32F, 4, 6, 4));
  ok(layout(&q->d, CUDA_R_32F, 4, 6, 7));
  ok(f.cublasLtMatmulPreferenceCreate(&q->preference));
  ok(f.cublasLtMatmulPreferenceSetAttribute(
      q->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
      sizeof most));
}

static void end(asked *q) {
  cublasLtMatrixLayout_t layouts[] = {q->a, q->b, q->c, q->d};
  for (int i = 0; i < 4; i++) /* a change may have left none */
    if (layouts[i] != NULL) ok(f.cublasLtMatrixLayoutDestroy(layouts[i]));
  if (q->op != NULL) ok(f.cublasLtMatmulDescDestroy(q->op));
  ok(f.cublasLtMatmulPreferenceDestroy(q->preference));
  ok(f.cublasLtDestroy(q->handle));
}

static cublasStatus_t choose(asked *q) {
  int count = 0;
  return f.cublasLtMatmulAlgoGetHeuristic(q->handle, q->op, q->a, q->b, q->c,
                                          q->d, q->preference, 1, &q->best,
                                          &count);
}

static cublasStatus_t set_op(asked *q, cublasLtMatmulDescAttributes_t id,
                             const void *value, size_t bytes) {
  return f.cublasLtMatmulDescSetAttribute(q->op, id, value, bytes);
}

static cublasStatus_t set_batch(cublasLtMatrixLayout_t l, int32_t batch,
                                int64_t stride) {
  ok(f.cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                        &batch, sizeof batch));
  return f.cublasLtMatrixLayoutSetAttribute(
      l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
}

static void tell(const char *what, int which, cublasStatus_t s) {
  print_message("%s, change %d: %s\n", what, which,
                f.cublasLtGetStatusString(s));
}

static void begin_change(void) {
  is_changing = true;
  refusal = CUBLAS_STATUS_SUCCESS;
}

/* Each changes one thing; the heuristic must refuse what comes of it. */
static void change_description(asked *q, int which) {
  const int32_t t = CUBLAS_OP_T, c = CUBLAS_OP_C;
  const uint32_t bias = CUBLASLT_EPILOGUE_BIAS, grad = CUBLASLT_EPILOGUE_DRELU;
  switch (which) {
    case 0:
      ok(layout(&q->a, CUDA_R_32F, 4, 5, 3)); /* leading dimension */
      break;
    case 1:
      ok(layout(&q->d, CUDA_R_32F, 4, 6, -4));
      break;
    case 2:
      ok(layout(&q->a, CUDA_R_32F, 4, 4, 4)); /* inner dimension */
      break;
    case 3:
      ok(layout(&q->c, CUDA_R_32F, 6, 4, 6));
      break;
    case 4:
      ok(set_op(q, CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof t));
      break;
    case 5:
      ok(set_op(q, CUBLASLT_MATMUL_DESC_TRANSB, &c, sizeof c));
      break;
    case 6:
      ok(set_op(q, CUBLASLT_MATMUL_DESC_EPILOGUE, &bias, sizeof bias));
      break;
    case 7:
      ok(set_op(q, CUBLASLT_MATMUL_DESC_EPILOGUE, &grad, sizeof grad));
      break;
    case 8:
      ok(layout(&q->b, CUDA_R_16F, 5, 6, 5)); /* types */
      break;
    case 9:
      ok(layout(&q->d, CUDA_R_64F, 4, 6, 4));
      break;
    case 10:
      ok(set_batch(q->d, 2, 24)); /* the others have one */
      break;
    case 11:
      ok(set_batch(q->a, 2, 20));
      ok(set_batch(q->b, 2, 30));
      ok(set_batch(q->c, 2, 24));
      ok(set_batch(q->d, 2, 0));
      break;
    case 12:
      ok(set_batch(q->a, 1, -20));
      break;
    case 13:
      ok(layout(&q->a, CUDA_R_32F, 4, 0, 4));
      break;
    default:
      ok(f.cublasLtMatmulDescDestroy(q->op));
      ok(f.cublasLtMatmulDescCreate(&q->op, CUBLAS_COMPUTE_64F, CUDA_R_64F));
      break;
  }
}

static void descriptions_are_looked_at(void **state) {
  enum { kChanges = 15 };
  asked q;
  (void)state;
  for (int which = 0; which < kChanges; which++) {
    begin(&q);
    ok(choose(&q));
    begin_change();
    change_description(&q, which);
    is_changing = false;
    cublasStatus_t s = refusal;
    if (s == CUBLAS_STATUS_SUCCESS) s = choose(&q);
    if (standin_lt == NULL)
      tell("description", which, s);
    else if (s != CUBLAS_STATUS_INVALID_VALUE &&
             s != CUBLAS_STATUS_NOT_SUPPORTED)
      fail_msg("change %d is not seen", which);
    end(&q);
  }
  if (standin_lt == NULL) return;
  assert_int_equal(standin_lt->counts().refused, kChanges);
  standin_lt->reset();
}

static void attributes_are_looked_at(void **state) {
  const int32_t value = 0;
  asked q;
  (void)state;
  cuda_world_needs_standin("the real one may read what it is given");
  begin(&q);
  assert_int_equal(set_op(&q, CUBLASLT_MATMUL_DESC_TRANSA, &value, 8),
                   CUBLAS_STATUS_INVALID_VALUE);
  assert_int_equal(set_op(&q, CUBLASLT_MATMUL_DESC_TRANSA, NULL, sizeof value),
                   CUBLAS_STATUS_INVALID_VALUE);
  assert_int_equal(f.cublasLtMatrixLayoutSetAttribute(
                       q.a, CUBLASLT_MATRIX_LAYOUT_ORDER, &value, sizeof value),
                   CUBLAS_STATUS_INVALID_VALUE);
  assert_int_equal(f.cublasLtMatmulDescDestroy((cublasLtMatmulDesc_t)q.a),
                   CUBLAS_STATUS_INVALID_VALUE);
  end(&q);
  standin_lt->reset();
}

static void algorithms_are_looked_at(void **state) {
  const cublasStatus_t bad = CUBLAS_STATUS_INVALID_VALUE;
  const uint32_t wide = 1;
  const cudaDataType_t t = CUDA_R_32F;
  cublasLtMatmulAlgo_t algo, none = {{0}};
  cublasLtMatmulHeuristicResult_t result;
  uint32_t got;
  size_t written;
  asked q;
  (void)state;
  cuda_world_needs_standin("the real one may read what it is given");
  begin(&q);
  ok(choose(&q));
  algo = q.best.algo;
  ok(f.cublasLtMatmulAlgoCheck(q.handle, q.op, q.a, q.b, q.c, q.d, &algo,
                               &result));
  assert_int_equal(result.workspaceSize, q.best.workspaceSize);
  ok(f.cublasLtMatmulAlgoConfigGetAttribute(&algo, CUBLASLT_ALGO_CONFIG_TILE_ID,
                                            NULL, 0, &written));
  assert_int_equal(written, sizeof got);
  const cublasStatus_t all[] = {
      f.cublasLtMatmulAlgoConfigGetAttribute(
          &algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &got, 2, &written),
      f.cublasLtMatmulAlgoConfigGetAttribute(
          &algo, CUBLASLT_ALGO_CONFIG_TILE_ID, NULL, 4, &written),
      f.cublasLtMatmulAlgoConfigGetAttribute(
          &none, CUBLASLT_ALGO_CONFIG_TILE_ID, &got, 4, &written),
      f.cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_ID,
                                             &wide, sizeof wide),
      f.cublasLtMatmulAlgoConfigSetAttribute(
          &algo, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, &wide, sizeof wide),
      f.cublasLtMatmulAlgoConfigSetAttribute(
          &algo, CUBLASLT_ALGO_CONFIG_TILE_ID, NULL, sizeof wide),
      f.cublasLtMatmulAlgoCapGetAttribute(
          &algo, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, &got, 8, &written),
      f.cublasLtMatmulAlgoInit(q.handle, CUBLAS_COMPUTE_32F, t, t, t, t, t, 99,
                               &none),
      f.cublasLtMatmulAlgoInit(NULL, CUBLAS_COMPUTE_32F, t, t, t, t, t, 0,
                               &none),
      f.cublasLtMatmulAlgoCheck(q.handle, q.op, q.a, q.b, q.c, q.d, &none,
                                &result),
      f.cublasLtMatmulAlgoCheck(q.handle, q.op, q.b, q.a, q.c, q.d, &algo,
                                &result)};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (all[i] != bad) fail_msg("call %zu is not seen", i);
  assert_int_equal(f.cublasLtMatmulAlgoInit(q.handle, CUBLAS_COMPUTE_64F, t, t,
                                            t, t, t, 0, &none),
                   CUBLAS_STATUS_NOT_SUPPORTED);
  ok(f.cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_TILE_ID,
                                            &wide, sizeof wide));
  assert_int_equal(f.cublasLtMatmulAlgoCheck(q.handle, q.op, q.a, q.b, q.c, q.d,
                                             &algo, &result),
                   CUBLAS_STATUS_NOT_SUPPORTED);
  end(&q);
  standin_lt->reset();
}

/* The addresses and the rest of a call; by default one that is right. */
typedef struct given {
  float alpha, beta;
  char *a, *b, *c, *d, *workspace;
  size_t bytes;
} given;

static cublasStatus_t multiply(asked *q, const given *g) {
  return f.cublasLtMatmul(q->handle, q->op, &g->alpha, g->a, q->a, g->b, q->b,
                          &g->beta, g->c, q->c, g->d, q->d, &q->best.algo,
                          g->workspace, g->bytes, (cudaStream_t)queue);
}

static void change_call(asked *q, given *g, int which) {
  const int32_t n = CUBLAS_OP_N;
  const uint32_t relu = CUBLASLT_EPILOGUE_RELU;
  switch (which) {
    case 0:
      g->a += 4; /* 256 was promised */
      break;
    case 1:
      g->b += 128;
      break;
    case 2:
      g->c += 4;
      break;
    case 3:
      g->d += 4;
      break;
    case 4:
      g->a = NULL;
      break;
    case 5:
      g->d = g->c; /* in place, of another leading dimension */
      break;
    case 6:
      g->workspace = NULL;
      break;
    case 7:
      g->workspace += 16;
      break;
    case 8:
      g->bytes--;
      break;
    case 9:
      ok(layout(&q->d, CUDA_R_32F, 4, 6, 4)); /* chosen for another one */
      break;
    case 10:
      ok(set_op(q, CUBLASLT_MATMUL_DESC_EPILOGUE, &relu, sizeof relu));
      break;
    case 11:
      ok(set_op(q, CUBLASLT_MATMUL_DESC_TRANSB, &n, sizeof n));
      ok(layout(&q->b, CUDA_R_32F, 5, 6, 6));
      break;
    default:
      ok(layout(&q->c, CUDA_R_32F, 4, 6, 3));
      break;
  }
}

/* A call with one change; -1: with none. */
static cublasStatus_t call_with_change(int which) {
  asked q;
  begin(&q);
  ok(choose(&q));
  char *m = memory.handle;
  given g = {1,        0,        m,        m + 1024,
             m + 2048, m + 3072, m + 4096, q.best.workspaceSize};
  if (standin_lt != NULL) assert_true(g.bytes > 0);
  begin_change();
  if (which >= 0) change_call(&q, &g, which);
  is_changing = false;
  cublasStatus_t s = refusal;
  if (s == CUBLAS_STATUS_SUCCESS) s = multiply(&q, &g);
  end(&q);
  return s;
}

/* The real one may run what it does not refuse, and fail then: false. */
static bool has_ended_well(void) {
  weir_error err = WEIR_ERROR_INIT;
  weir_event *event = NULL;
  const weir_device_vtable *vt = device->vt;
  weir_status s = vt->event_create(device, &event, &err);
  if (s == WEIR_OK) s = vt->record(device, queue, event, &err);
  if (s == WEIR_OK) s = vt->wait(device, event, &err);
  vt->event_release(device, event);
  if (s != WEIR_OK) print_message("then: %s\n", err.message);
  return s == WEIR_OK;
}

/* On a real GPU the changes of addresses come last. */
static void calls_of_a_real_one(void) {
  enum { kFirst = 4, kChanges = 13 };
  ok(call_with_change(-1));
  assert_true(has_ended_well());
  for (int i = 0; i < kChanges; i++) {
    int which = (i + kFirst) % kChanges;
    tell("call", which, call_with_change(which));
    if (!has_ended_well()) break;
  }
  device->vt->queue_release(device, queue);
  device->vt->free(device, &memory);
  weir_device_release(device);
}

static void calls_are_looked_at(void **state) {
  enum { kChanges = 13 };
  weir_error err = WEIR_ERROR_INIT;
  (void)state;
  device = cuda_world_device(0, 0);
  assert_ok(device->vt->queue_create(device, &queue, &err), &err);
  assert_ok(device->vt->alloc(device, 8192, &memory, &err), &err);
  if (standin_lt == NULL) {
    calls_of_a_real_one();
    return;
  }
  for (int which = -1; which < kChanges; which++) {
    cublasStatus_t s = call_with_change(which);
    if ((s == CUBLAS_STATUS_INVALID_VALUE) != (which >= 0))
      fail_msg("change %d: %s", which, f.cublasLtGetStatusString(s));
  }
  assert_int_equal(standin_lt->counts().products, 1);
  device->vt->queue_release(device, queue);
  assert_false(atomic_load(&device->lost));
  device->vt->free(device, &memory);
  weir_device_release(device);
  standin_lt->reset();
  gemm_case_check_clean();
}

/* By hand, from IEEE 754: borders of f16, and ties. */
static void numbers_of_16_bits(void **state) {
  static const struct {
    float x;
    uint16_t f16, bf16;
  } kNumbers[] = {{1, 0x3c00, 0x3f80},
                  {-2, 0xc000, 0xc000},
                  {65504, 0x7bff, 0x4780}, /* the largest f16 */
                  {65520, 0x7c00, 0x4780}, /* a tie, to infinity */
                  {0x1p-14f, 0x0400, 0x3880},
                  {0x1p-24f, 0x0001, 0x3380},
                  {0x1p-25f, 0x0000, 0x3300}, /* a tie, to 0 */
                  {1 + 0x1p-11f, 0x3c00, 0x3f80},
                  {1 + 0x3p-11f, 0x3c02, 0x3f80},
                  {1 + 0x1p-8f, 0x3c04, 0x3f80},
                  {1 + 0x3p-8f, 0x3c0c, 0x3f82},
                  {INFINITY, 0x7c00, 0x7f80}};
  (void)state;
  for (size_t i = 0; i < sizeof kNumbers / sizeof kNumbers[0]; i++) {
    assert_int_equal(f16_of(kNumbers[i].x), kNumbers[i].f16);
    assert_int_equal(bf16_of(kNumbers[i].x), kNumbers[i].bf16);
  }
  assert_true(isnan(f32_of_f16(f16_of(NAN))));
  assert_true(isnan(f32_of_bf16(bf16_of(NAN))));
  assert_true(tf32_of(1 + 0x1p-11f) == 1);
  assert_true(tf32_of(1 + 0x3p-11f) == 1 + 0x1p-9f);
  for (uint32_t x = 0; x < 0x7c00; x++)
    assert_int_equal(f16_of(f32_of_f16((uint16_t)x)), x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(descriptions_are_looked_at),
      cmocka_unit_test(attributes_are_looked_at),
      cmocka_unit_test(algorithms_are_looked_at),
      cmocka_unit_test(calls_are_looked_at),
      cmocka_unit_test(numbers_of_16_bits),
  };
  return cmocka_run_group_tests(tests, open_functions, NULL);
}
