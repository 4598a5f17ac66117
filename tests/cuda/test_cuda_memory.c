/* SPDX-License-Identifier: Apache-2.0 */
#include <cublas_api.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/exec/gpu/gpu_memory.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "tests/cuda/gemm_case.h"
#include "tests/cuda/scene.h"

/* Memory of GPUs that several tasks and processes have: limits and waits. */

enum { kMs = 1000000, kBytes = 256 << 10 };

/* A step writes another buffer of 256 KiB than the one it reads. */
static const char kCounter[] =
    "weir: 1\n"
    "nodes:\n"
    "  w: var([65536], init=ones([65536]))\n"
    "  w2: assign(w, add(w, w))\n"
    "  s: sum(w2)\n"
    "outputs: [s]\n"
    "placement:\n"
    "  - {match: '*', device: '/task:0/gpu:0'}\n";

/* A product has a handle, a constant and staged outputs. */
static const char kProduct[] =
    "weir: 1\n"
    "inputs: {x: 'f32[4, 4] = uniform(-1, 1, seed=1)'}\n"
    "nodes:\n"
    "  y: matmul(x, [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0],\n"
    "               [1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]])\n"
    "outputs: [y]\n"
    "placement:\n"
    "  - {match: '*', device: '/task:0/gpu:0', soft: true}\n";

static int64_t clock_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void nap_ms(int64_t ms) {
  nanosleep(&(struct timespec){ms / 1000, ms % 1000 * kMs}, NULL);
}

/* GPU 0 of |s|, which is opened without a limit. */
static weir_exec_gpu *gpu_of(scene *s) {
  weir_exec_gpu *gpu = NULL;
  assert_ok(weir_gpus_get(s->world.env.gpus, 0, 0, &gpu, &s->err), &s->err);
  return gpu;
}

static weir_device_memory memory_of(const weir_exec_gpu *gpu) {
  return gpu->gpu.device->vt->memory(gpu->gpu.device);
}

/* ---- Limits */

static void step(scene *s) {
  weir_exec_fetch fetches[kOutputs] = {0};
  assert_ok(scene_run(s, fetches, NULL), &s->err);
  scene_drop(s, fetches);
}

static void keep(scene *s, weir_tensor **out) {
  assert_ok(
      weir_exec_variable_snapshot(s->session, scene_node(s, "w"), out, &s->err),
      &s->err);
}

static void check_limit(const char *cluster, size_t limit_bytes) {
  scene s;
  scene_open(&s, kCounter, cluster, 1);
  weir_exec_gpu *gpu = gpu_of(&s);
  step(&s);
  assert_int_equal(memory_of(gpu).limit_bytes, limit_bytes);
  scene_close(&s);
}

static void a_cluster_limits_its_tasks(void **state) {
  (void)state;
  check_limit("worker=1,gpu=1", 0);
  check_limit("worker=1,gpu=1,gpu_memory=2MiB", 2 << 20);
  /* They are one process here, which has one GPU 0. */
  check_limit("worker=3,gpu=1,gpu_memory=2MiB", 6 << 20);
}

static void the_last_limit_holds_under_the_bound(void **state) {
  (void)state;
  scene s;
  scene_open(&s, kCounter, "worker=1,gpu=1", 1);
  weir_exec_gpu *gpu = gpu_of(&s), *again = NULL;
  const struct {
    size_t most, limit, want;
  } rows[] = {{0, 7, 7}, {0, 9, 9}, {8, 9, 8}, {8, 7, 7}, {8, 0, 8}, {0, 0, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    weir_gpus_bound(s.world.env.gpus, 0, rows[i].most);
    assert_ok(weir_gpus_get(s.world.env.gpus, 0, rows[i].limit, &again, &s.err),
              &s.err);
    assert_ptr_equal(again, gpu);
    assert_int_equal(memory_of(gpu).limit_bytes, rows[i].want);
  }
  weir_gpus_bound(s.world.env.gpus, -1, 1); /* of none */
  weir_gpus_bound(s.world.env.gpus, 99, 1);
  weir_gpus_bound(NULL, 0, 1);
  scene_close(&s);
}

static void a_run_beyond_the_limit_fails(void **state) {
  (void)state;
  scene s;
  weir_tensor *kept[4] = {0};
  weir_status status = WEIR_OK;
  scene_open(&s, kCounter, "worker=1,gpu=1,gpu_memory=820KiB", 1);
  step(&s);
  /* What is kept of a variable is one more buffer of it. */
  for (int i = 0; i < 4 && status == WEIR_OK; i++) {
    weir_exec_fetch fetches[kOutputs] = {0};
    keep(&s, &kept[i]);
    status = scene_run(&s, fetches, NULL);
    scene_drop(&s, fetches);
  }
  assert_error(status, &s.err, "W6002");
  assert_non_null(strstr(s.err.message, "262144 bytes of GPU 0 wanted, "));
  assert_non_null(strstr(s.err.message, " of 839680 in use, the limit"));
  assert_non_null(strstr(s.err.hint, "`memory:`"));
  for (int i = 0; i < 4; i++) weir_tensor_unref(kept[i]);
  step(&s);
  scene_close(&s);
}

/* ---- Waits */

static void open_waiting(scene *s, const char *cluster, int64_t wait_ns) {
  scene_open_graph(s, kCounter, 2);
  s->wait_ns = wait_ns;
  assert_ok(scene_open_session(s, cluster), &s->err);
}

static void memory_of_others_is_waited_for(void **state) {
  (void)state;
  cuda_world_needs_standin("other processes that hold memory");
  standin->set_memory(1 << 20);
  scene s;
  open_waiting(&s, "worker=1,gpu=1", INT64_C(60000) * kMs);
  weir_exec_gpu *gpu = gpu_of(&s);
  weir_device_buffer a;
  standin->set_others(1 << 20, 6);
  uint64_t before = standin->counts().mallocs;
  assert_ok(weir_gpu_alloc_waiting(gpu, kBytes, &a, &s.err), &s.err);
  assert_int_equal(standin->counts().mallocs - before, 7);
  assert_string_equal(s.err.id, "");
  gpu->gpu.device->vt->free(gpu->gpu.device, &a);
  standin->set_others(1 << 20, 6);
  step(&s); /* frame and variables */
  scene_close(&s);
}

static void waits_end(void **state) {
  (void)state;
  cuda_world_needs_standin("other processes that hold memory");
  standin->set_memory(1 << 20);
  scene s;
  open_waiting(&s, "worker=1,gpu=1", 120 * kMs);
  weir_exec_gpu *gpu = gpu_of(&s);
  weir_device_buffer a;
  standin->set_others(900 << 10, 0);
  uint64_t before = standin->counts().mallocs;
  int64_t begin_ns = clock_ns();
  assert_error(weir_gpu_alloc_waiting(gpu, kBytes, &a, &s.err), &s.err,
               "W6001");
  assert_true(clock_ns() - begin_ns >= 120 * kMs);
  /* Naps of 1, 2, 4 .. ms: few tries. */
  uint64_t tries = standin->counts().mallocs - before;
  assert_true(tries >= 3 && tries <= 10);
  static const char kSays[] =
      "262144 bytes of GPU 0 wanted, 0 are in use here, 126976 of 1048576 are "
      "free there, other processes and CUDA itself hold 921600, after a wait "
      "of ";
  assert_memory_equal(s.err.message, kSays, sizeof kSays - 1);
  char *end = NULL; /* as long as the machine took: 0.1 s, or more */
  assert_true(strtod(s.err.message + sizeof kSays - 1, &end) > 0.05);
  assert_string_equal(end, " s");
  /* No time helps: more than there is, a limit, a GPU that is not there. */
  before = standin->counts().mallocs;
  assert_error(weir_gpu_alloc_waiting(gpu, 2 << 20, &a, &s.err), &s.err,
               "W6001");
  assert_int_equal(standin->counts().mallocs - before, 1);
  gpu->gpu.device->vt->set_limit(gpu->gpu.device, 1000);
  assert_error(weir_gpu_alloc_waiting(gpu, 2000, &a, &s.err), &s.err, "W6002");
  weir_gpu_wait wait = {0};
  weir_status status = WEIR_RESOURCE_EXHAUSTED;
  assert_false(weir_gpu_wait_more(gpu, &wait, &status, &s.err));
  assert_false(weir_gpu_wait_more(NULL, &wait, &status, &s.err));
  assert_int_equal(status, WEIR_RESOURCE_EXHAUSTED);
  scene_close(&s);
}

static void without_time_one_try_is_all(void **state) {
  (void)state;
  cuda_world_needs_standin("other processes that hold memory");
  scene s;
  open_waiting(&s, "worker=1,gpu=1", 0);
  weir_exec_gpu *gpu = gpu_of(&s);
  weir_device_buffer a;
  standin->set_others((size_t)1 << 30, 2);
  assert_error(weir_gpu_alloc_waiting(gpu, kBytes, &a, &s.err), &s.err,
               "W6001");
  assert_null(strstr(s.err.message, "wait"));
  scene_close(&s);
}

/* The driver has no memory to begin with, once. */
static void a_start_is_waited_for(void **state) {
  (void)state;
  cuda_world_needs_standin("calls that fail when they are told to");
  uint64_t lacked[2] = {0};
  for (int waits = 0; waits < 2; waits++)
    for (uint64_t k = 1; k <= 8; k++) {
      scene s;
      open_waiting(&s, "worker=1,gpu=1", waits * INT64_C(60000) * kMs);
      weir_exec_gpu *gpu = NULL;
      weir_error err = WEIR_ERROR_INIT;
      standin->fail_at(k, cudaErrorMemoryAllocation);
      weir_status status = weir_gpus_get(s.world.env.gpus, 0, 0, &gpu, &err);
      lacked[waits] += status != WEIR_OK && strcmp(err.id, "W6001") == 0;
      standin->fail_at(0, 0);
      scene_close(&s);
    }
  assert_true(lacked[0] > 0);
  assert_int_equal(lacked[1], 0);
}

/* Whether |say| is of a step's own work, which is not waited for: a copy, a
 * launch, a mark, or the choice of a GPU before it. */
static bool is_of_work(const char *say) {
  static const char *const kWork[] = {
      "cudaSetDevice:",   "cudaMemcpyAsync:",      "cudaMemsetAsync:",
      "cudaEventRecord:", "cudaEventSynchronize:", "cudaLaunchKernelExC:",
      "cublasLtMatmul:"};
  for (size_t i = 0; i < sizeof kWork / sizeof *kWork; i++)
    if (strstr(say, kWork[i]) != NULL) return true;
  return false;
}

/* One run of a product, whose call |k| from its compilation on fails for lack
 * of memory. Whether the run failed so. */
static bool lacks(uint64_t k, bool of_lt, bool waits, bool *out_reached) {
  scene s;
  weir_exec_fetch fetches[kOutputs] = {0};
  scene_open_graph(&s, kProduct, 2);
  s.wait_ns = waits ? INT64_C(60000) * kMs : 0;
  assert_ok(scene_open_session(&s, "worker=1,gpu=1"), &s.err);
  uint64_t before =
      of_lt ? standin_lt->counts().calls : standin->counts().calls;
  if (of_lt)
    standin_lt->fail_at(k, CUBLAS_STATUS_ALLOC_FAILED);
  else
    standin->fail_at(k, cudaErrorMemoryAllocation);
  weir_status status = scene_run(&s, fetches, NULL);
  *out_reached =
      k <=
      (of_lt ? standin_lt->counts().calls : standin->counts().calls) - before;
  standin->fail_at(0, 0);
  standin_lt->fail_at(0, 0);
  bool lacked = status != WEIR_OK && strcmp(s.err.id, "W6001") == 0;
  if (lacked && waits && !is_of_work(s.err.message))
    fail_msg("call %d: %s", (int)k, s.err.message);
  scene_drop(&s, fetches);
  scene_close(&s);
  return lacked;
}

/* Memory, queues, events, pinned memory, bodies and a product's handle: with a
 * wait, no run notices that one was lacking. */
static void a_lack_of_anything_is_waited_for(void **state) {
  (void)state;
  cuda_world_needs_standin("calls that fail when they are told to");
  for (int of_lt = 0; of_lt < 2; of_lt++) {
    int lacked[2] = {0};
    for (int waits = 0; waits < 2; waits++) {
      bool reached = true;
      for (uint64_t k = 1; reached; k++)
        lacked[waits] += lacks(k, of_lt != 0, waits != 0, &reached);
    }
    assert_true(lacked[0] >= 3);
    assert_true(lacked[1] < lacked[0]);
  }
}

typedef struct waiting {
  scene *s;
  atomic_bool cancel;
  weir_run_options options;
  weir_status status;
} waiting;

static void *run_waiting(void *self) {
  waiting *w = self;
  weir_exec_fetch fetches[kOutputs] = {0};
  w->status = scene_run(w->s, fetches, &w->options);
  scene_drop(w->s, fetches);
  return NULL;
}

/* At each place where a run waits: the GPU's opening, the program's constants,
 * the frame, the buffers of variables. */
static void check_stop(size_t others, bool cancels, const char *id) {
  scene s;
  pthread_t thread;
  standin->set_memory(1 << 20);
  scene_open_graph(&s, kCounter, 2);
  s.wait_ns = INT64_C(3600000) * kMs;
  assert_ok(scene_open_session(&s, "worker=1,gpu=1"), &s.err);
  waiting w = {.s = &s};
  standin->set_others(others, 0);
  int64_t begin_ns = clock_ns();
  w.options.cancel = cancels ? &w.cancel : NULL;
  w.options.deadline_ns = cancels ? 0 : begin_ns + 100 * kMs;
  assert_int_equal(pthread_create(&thread, NULL, run_waiting, &w), 0);
  if (cancels) nap_ms(100);
  atomic_store(&w.cancel, true);
  pthread_join(thread, NULL);
  assert_true(clock_ns() - begin_ns < INT64_C(60000) * kMs);
  assert_error(w.status, &s.err, id);
  standin->set_others(0, 0);
  step(&s); /* nothing was left behind */
  scene_close(&s);
  standin->set_memory((size_t)1 << 30);
}

static void a_wait_ends_with_its_run(void **state) {
  (void)state;
  cuda_world_needs_standin("other processes that hold memory");
  for (size_t free_bytes = 0; free_bytes <= 768 << 10; free_bytes += 128 << 10)
    if (free_bytes < 640 << 10) {
      check_stop((1 << 20) - free_bytes, true, "W5005");
      check_stop((1 << 20) - free_bytes, false, "W5006");
    }
}

static void *run_one(void *self) {
  scene *s = self;
  weir_exec_fetch fetches[kOutputs] = {0};
  weir_status status = scene_run(s, fetches, NULL);
  scene_drop(s, fetches);
  return status == WEIR_OK ? self : NULL;
}

/* A run that waits for a variable's buffer does not hold up others. */
static void a_wait_holds_no_lock(void **state) {
  (void)state;
  cuda_world_needs_standin("other processes that hold memory");
  scene s;
  open_waiting(&s, "worker=1,gpu=1", INT64_C(60000) * kMs);
  weir_tensor *kept = NULL, *t = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_node_id w = scene_node(&s, "w");
  pthread_t thread;
  void *ran = NULL;
  step(&s);
  keep(&s, &kept);
  step(&s); /* the next one needs a third buffer */
  standin->set_others((size_t)1 << 30, 0);
  uint64_t before = standin->counts().mallocs;
  assert_int_equal(pthread_create(&thread, NULL, run_one, &s), 0);
  while (standin->counts().mallocs < before + 3) nap_ms(1);
  int64_t begin_ns = clock_ns();
  assert_ok(weir_exec_variable_get(s.session, w, &t, &err), &err);
  assert_true(*(const float *)t->data == 4.0f);
  assert_true(clock_ns() - begin_ns < INT64_C(20000) * kMs);
  standin->set_others(0, 0);
  pthread_join(thread, &ran);
  assert_ok(ran != NULL ? WEIR_OK : WEIR_INTERNAL, &s.err);
  weir_tensor_unref(t);
  weir_tensor_unref(kept);
  scene_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_cluster_limits_its_tasks),
      cmocka_unit_test(the_last_limit_holds_under_the_bound),
      cmocka_unit_test(a_run_beyond_the_limit_fails),
      cmocka_unit_test(memory_of_others_is_waited_for),
      cmocka_unit_test(waits_end),
      cmocka_unit_test(without_time_one_try_is_all),
      cmocka_unit_test(a_start_is_waited_for),
      cmocka_unit_test(a_wait_holds_no_lock),
      cmocka_unit_test(a_lack_of_anything_is_waited_for),
      cmocka_unit_test(a_wait_ends_with_its_run),
  };
  return cmocka_run_group_tests(tests, gemm_case_open, NULL);
}
