/* SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cuda/ew.h"
#include "tests/cuda/cuda_bench.h"
#include "tests/cuda/simt/planted.h"

/* Launches: their order and their argument, refusals, failures of CUDA, and the
 * faults of bodies that the stand-in finds. */

static weir_fill_args ones(const weir_device_buffer *a, int64_t n) {
  return (weir_fill_args){.y = a->handle, .n = n, .value = 1, .size = 1};
}

static const weir_device_grid kOne = {{1, 1, 1}, WEIR_BODY_THREADS, 0};

/* A launch is work of its queue, and has its argument as it was. */
static void launches_are_done_late(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  const weir_device_vtable *vt = d->vt;
  const weir_device_body *fill;
  weir_device_buffer a;
  weir_queue *q;
  assert_ok(vt->body(d, "fill", &fill, &err), &err);
  assert_ok(vt->queue_create(d, &q, &err), &err);
  assert_ok(vt->alloc(d, 4, &a, &err), &err);
  weir_device_place start = {&a, 0};
  weir_fill_args args = ones(&a, 2);
  char back[5] = "none";
  assert_ok(vt->copy_in(d, q, start, "abcd", 4, &err), &err);
  assert_ok(vt->launch(d, q, fill, &kOne, &args, sizeof args, &err), &err);
  args = (weir_fill_args){0};
  assert_ok(vt->copy_out(d, q, back, start, 4, &err), &err);
  if (standin != NULL) {
    assert_int_equal(standin->counts().launches, 0);
    assert_string_equal(back, "none");
  }
  vt->queue_release(d, q);
  if (standin != NULL) assert_int_equal(standin->counts().launches, 1);
  assert_memory_equal(back, "\1\1cd", 4);
  vt->free(d, &a);
  weir_device_release(d);
  cuda_world_check_clean();
}

static void refuses_what_no_gpu_has(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  const weir_device_vtable *vt = d->vt;
  const weir_device_body *fill, *none = (const weir_device_body *)&err;
  weir_device_buffer a;
  weir_queue *q;
  assert_error(vt->body(d, "fil", &none, &err), &err, "W9001");
  assert_string_equal(err.message, "the module for GPUs has no body fil");
  assert_null(none);
  assert_ok(vt->body(d, "fill", &fill, &err), &err);
  assert_ok(vt->queue_create(d, &q, &err), &err);
  assert_ok(vt->alloc(d, 4, &a, &err), &err);
  weir_fill_args args = ones(&a, 4);
  static const weir_device_grid kRefused[] = {
      {{1, 1, 1}, 0, 0},           {{1, 1, 1}, 1025, 0},
      {{0x80000000u, 1, 1}, 1, 0}, {{1, 0x10000, 1}, 1, 0},
      {{1, 1, 0x10000}, 1, 0},     {{0, 1, 1}, 0, 0}};
  for (size_t i = 0; i < sizeof kRefused / sizeof kRefused[0]; i++)
    assert_error(vt->launch(d, q, fill, &kRefused[i], &args, sizeof args, &err),
                 &err, "W9001");
  assert_error(vt->launch(d, q, fill, &kOne, &args, sizeof args - 1, &err),
               &err, "W9001");
  assert_non_null(strstr(err.message, "the body fill takes "));
  /* No blocks in any direction are no work. */
  for (int i = 0; i < 3; i++) {
    weir_device_grid none_at = kOne;
    none_at.blocks[i] = 0;
    assert_ok(vt->launch(d, q, fill, &none_at, &args, sizeof args, &err), &err);
  }
  if (standin != NULL) assert_int_equal(standin->counts().works, 0);
  /* More shared memory than a block has, more threads than this body can:
   * CUDA's refusals, and no loss. */
  weir_device_grid large = kOne, wide = kOne;
  large.shared_bytes = 1 << 20;
  assert_error(vt->launch(d, q, fill, &large, &args, sizeof args, &err), &err,
               "W5001");
  wide.threads = 2 * WEIR_BODY_THREADS;
  assert_error(vt->launch(d, q, fill, &wide, &args, sizeof args, &err), &err,
               "W5001");
  assert_false(atomic_load(&d->lost));
  vt->queue_release(d, q);
  vt->free(d, &a);
  weir_device_release(d);
  cuda_world_check_clean();
}

/* All of a launch's life; |*late|: the failure came after the creation. */
static weir_status live(bool *late, weir_error *err) {
  weir_device *d = NULL;
  weir_device_name name = weir_device_name_any();
  name.index = (weir_index_range){0, 0};
  weir_queue *q = NULL;
  weir_device_buffer a = {0};
  const weir_device_body *fill;
  weir_status s = cuda_world_create(weir_allocator_system(), &name, 0, &d, err);
  *late = s == WEIR_OK;
  if (d == NULL) return s;
  const weir_device_vtable *vt = d->vt;
  s = vt->queue_create(d, &q, err);
  if (s == WEIR_OK) s = vt->alloc(d, 4, &a, err);
  if (s == WEIR_OK) s = vt->body(d, "fill", &fill, err);
  weir_fill_args args = ones(&a, 4);
  if (s == WEIR_OK) s = vt->launch(d, q, fill, &kOne, &args, sizeof args, err);
  vt->queue_release(d, q);
  vt->free(d, &a);
  weir_device_release(d);
  return s;
}

static void every_call_fails_once(void **state) {
  (void)state;
  cuda_world_needs_standin("calls that fail when they are told to");
  bool late;
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  uint64_t files = standin->counts().libraries; /* of bodies */
  assert_true(files > 0);
  weir_device_release(d);
  cuda_world_check_clean();
  assert_ok(live(&late, &err), &err);
  assert_int_equal(standin->counts().launches, 1);
  uint64_t calls = standin->counts().calls, silent = 0;
  cuda_world_check_clean();
  for (uint64_t k = 1; k <= calls; k++) {
    standin->fail_at(k, cudaErrorInvalidValue);
    weir_status s = live(&late, &err);
    if (s != WEIR_OK) {
      assert_string_equal(err.id, late ? "W5001" : "W6004");
      assert_non_null(strstr(err.message, "invalid argument"));
    }
    silent += s == WEIR_OK;
    cuda_world_check_clean();
  }
  /* Those of the end: a queue's two, the device, a block, the files. */
  assert_int_equal(silent, 2 + 1 + 1 + files);
}

static void missing_body_is_an_error_of_the_load(void **state) {
  (void)state;
  cuda_world_needs_standin("a body that is hidden");
  bool late;
  weir_error err = WEIR_ERROR_INIT;
  standin->hide("weir_body_softmax_kept_2");
  assert_error(live(&late, &err), &err, "W6004");
  assert_string_equal(err.message,
                      "GPU 0 cannot load the body softmax_kept_2: named "
                      "symbol not found (stand-in)");
  assert_false(late);
  cuda_world_check_clean();
}

/* CUDA's own functions, for bodies that the module has not. */
typedef struct cuda_functions {
  __typeof__(cudaLibraryLoadData) *load;
  __typeof__(cudaLibraryUnload) *unload;
  __typeof__(cudaLibraryGetKernel) *kernel;
  __typeof__(cudaLaunchKernelExC) *launch;
} cuda_functions;

static cuda_functions functions(void) {
  char path[PATH_MAX + 32];
  cuda_functions f;
  snprintf(path, sizeof path, "%s/libcudart.so.13", cuda_folder);
  void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(library);
  *(void **)&f.load = dlsym(library, "cudaLibraryLoadData");
  *(void **)&f.unload = dlsym(library, "cudaLibraryUnload");
  *(void **)&f.kernel = dlsym(library, "cudaLibraryGetKernel");
  *(void **)&f.launch = dlsym(library, "cudaLaunchKernelExC");
  return f;
}

/* Runs a planted body on |blocks| blocks and 256 floats; whether that went
 * well. */
static bool run_planted(const char *symbol, unsigned blocks, float *y) {
  static const unsigned char kCode[] = {0x50, 0xed, 0x55, 0xba};
  weir_error err = WEIR_ERROR_INIT;
  cuda_functions f = functions();
  weir_device *d = cuda_world_device(0, 0);
  weir_device_buffer a;
  weir_queue *q;
  weir_event *e;
  cudaLibrary_t library;
  cudaKernel_t kernel;
  size_t bytes = WEIR_BODY_THREADS * sizeof *y;
  assert_ok(d->vt->queue_create(d, &q, &err), &err);
  assert_ok(d->vt->event_create(d, &e, &err), &err);
  assert_ok(d->vt->alloc(d, bytes, &a, &err), &err);
  weir_device_place start = {&a, 0};
  assert_ok(d->vt->copy_in(d, q, start, y, bytes, &err), &err);
  assert_int_equal(f.load(&library, kCode, NULL, NULL, 0, NULL, NULL, 0), 0);
  assert_int_equal(f.kernel(&kernel, library, symbol), 0);
  planted_args args = {a.handle};
  void *pointer = &args;
  const cudaLaunchConfig_t config = {.gridDim = {blocks, 1, 1},
                                     .blockDim = {WEIR_BODY_THREADS, 1, 1},
                                     .stream = (cudaStream_t)q};
  assert_int_equal(f.launch(&config, (const void *)kernel, &pointer), 0);
  assert_ok(d->vt->copy_out(d, q, y, start, bytes, &err), &err);
  assert_ok(d->vt->record(d, q, e, &err), &err);
  weir_status s = d->vt->wait(d, e, &err);
  if (s != WEIR_OK) {
    assert_string_equal(err.id, "W6004");
    assert_non_null(strstr(err.message, "unspecified launch failure"));
  }
  f.unload(library);
  d->vt->queue_release(d, q);
  d->vt->event_release(d, e);
  d->vt->free(d, &a);
  weir_device_release(d);
  return s == WEIR_OK;
}

static void check_fault(const char *symbol, unsigned blocks, bool both,
                        const char *fault) {
  float y[WEIR_BODY_THREADS];
  for (int i = 0; i < WEIR_BODY_THREADS; i++) y[i] = (float)i;
  standin->set_check_launches(both);
  bool well = run_planted(symbol, blocks, y);
  if (well != (*fault == '\0')) fail_msg("%s: %s", symbol, standin->fault());
  assert_string_equal(standin->fault(), fault);
  if (*fault == '\0' && strcmp(symbol, "weir_body_planted_sound") == 0)
    for (int i = 0; i < WEIR_BODY_THREADS; i++)
      assert_true(y[i] == (float)(WEIR_BODY_THREADS - 1 - i));
  cuda_world_check_clean();
}

static void planted_faults_are_found(void **state) {
  (void)state;
  cuda_world_needs_standin("it finds them");
  const char *order = "the bits depend on the order of threads";
  const char *end = "threads ended before a barrier of their block";
  check_fault("weir_body_planted_sound", 1, false, "");
  check_fault("weir_body_planted_sound", 1, true, "");
  check_fault("weir_body_planted_no_barrier", 1, true, order);
  check_fault("weir_body_planted_shared_element", 3, true, order);
  /* One order alone sees neither. */
  check_fault("weir_body_planted_no_barrier", 1, false, "");
  check_fault("weir_body_planted_shared_element", 3, false, "");
  check_fault("weir_body_planted_half_barrier", 1, false, end);
  check_fault("weir_body_planted_diverged", 1, false,
              "lanes of a warp are apart");
  check_fault("weir_body_planted_sound", 1, true, ""); /* after the faults */
}

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(SANITIZED)
/* In a process of its own, which the sanitizer ends. */
static void store_past_the_end_is_found(void **state) {
  (void)state;
  cuda_world_needs_standin("memory that the sanitizer knows");
  float y[WEIR_BODY_THREADS] = {0};
  char text[1 << 16] = "";
  int ends[2], status = 0;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    run_planted("weir_body_planted_past_the_end", 1, y);
    _exit(0);
  }
  close(ends[1]);
  size_t at = 0;
  for (ssize_t n; at < sizeof text - 1 &&
                  (n = read(ends[0], text + at, sizeof text - 1 - at)) > 0;)
    at += (size_t)n;
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_non_null(strstr(text, "heap-buffer-overflow"));
  assert_non_null(strstr(text, "planted.cu"));
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(launches_are_done_late),
    cmocka_unit_test(refuses_what_no_gpu_has),
    cmocka_unit_test(every_call_fails_once),
    cmocka_unit_test(missing_body_is_an_error_of_the_load),
    cmocka_unit_test(planted_faults_are_found),
#if defined(SANITIZED)
    cmocka_unit_test(store_past_the_end_is_found),
#endif
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
