/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tests/cuda/standin_lt/lt_internal.h"

/* Faults, counts, handles, and the functions that only tell something. */

enum { kVersion = 130100, kAlgorithms = 100 };

lt_state lt = {.version = kVersion, .algorithms = kAlgorithms, .quickest = -1};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool injected;

cublasStatus_t lt_begin(void) {
  pthread_mutex_lock(&lock);
  lt.counts.calls++;
  injected = lt.fail_at != 0 && --lt.fail_at == 0;
  return injected ? lt.fail_status : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t lt_end(cublasStatus_t s) {
  if (!injected)
    lt.counts.refused +=
        s == CUBLAS_STATUS_INVALID_VALUE || s == CUBLAS_STATUS_NOT_SUPPORTED;
  pthread_mutex_unlock(&lock);
  return s;
}

size_t cublasLtGetVersion(void) {
  return lt.version;
}

const char *cublasLtGetStatusString(cublasStatus_t s) {
  switch (s) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized (stand-in)";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "the resource allocation failed (stand-in)";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed (stand-in)";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the function failed to launch on the GPU (stand-in)";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the functionality requested is not supported (stand-in)";
    default:
      return "another status (stand-in)";
  }
}

/* It takes its time, so that threads meet that nothing keeps apart. */
cublasStatus_t cublasLtCreate(cublasLtHandle_t *out) {
  nanosleep(&(struct timespec){.tv_nsec = 200 * 1000}, NULL);
  cublasStatus_t s = lt_begin();
  lt_handle *h = s == CUBLAS_STATUS_SUCCESS ? malloc(sizeof *h) : NULL;
  if (s == CUBLAS_STATUS_SUCCESS && h == NULL) s = CUBLAS_STATUS_ALLOC_FAILED;
  if (s == CUBLAS_STATUS_SUCCESS) {
    *h = (lt_handle){LT_HANDLE, standin_functions.device()};
    *out = (cublasLtHandle_t)h;
    lt.counts.handles++;
  }
  return lt_end(s);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  cublasStatus_t s = lt_begin();
  lt_handle *h = (lt_handle *)handle;
  if (h == NULL || h->kind != LT_HANDLE)
    return lt_end(CUBLAS_STATUS_INVALID_VALUE);
  free(h);
  lt.counts.handles--;
  return lt_end(s);
}

/* Of commands, which nobody else can steer. */
static int from_environment(void) {
  const char *quickest = getenv("STANDIN_QUICKEST");
  return quickest != NULL ? atoi(quickest) : -1;
}

__attribute__((constructor)) static void start(void) {
  lt.quickest = from_environment();
}

static void reset(void) {
  pthread_mutex_lock(&lock);
  standin_lt_counts c = lt.counts;
  c.calls = c.refused = c.products = 0;
  lt = (lt_state){.version = kVersion,
                  .algorithms = kAlgorithms,
                  .quickest = from_environment(),
                  .counts = c};
  pthread_mutex_unlock(&lock);
}

static void fail_at(uint64_t k, int status) {
  lt.fail_at = k;
  lt.fail_status = (cublasStatus_t)status;
}

static void set_version(size_t version) {
  lt.version = version;
}

static void set_algorithms(int count) {
  lt.algorithms = count;
}

static void set_quickest(int id) {
  lt.quickest = id;
}

static standin_lt_counts counts(void) {
  pthread_mutex_lock(&lock);
  standin_lt_counts c = lt.counts;
  pthread_mutex_unlock(&lock);
  return c;
}

extern const standin_lt_control standin_lt_functions;
const standin_lt_control standin_lt_functions = {
    reset, fail_at, set_version, set_algorithms, set_quickest, counts};
