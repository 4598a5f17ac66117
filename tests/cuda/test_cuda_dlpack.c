/* SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include "runtime/dlpack.h"
#include "tests/api/host.h"
#include "tests/cuda/standin/standin.h"

/* Tensors on a GPU that come and go by DLPack, as a program sees it: through
 * libweir.so, weir.h and CUDA's library, which here is the producer's too. */

enum { kRows = 2, kCols = 3, kCount = kRows * kCols, kBytes = kCount * 4 };

static const char kText[] =
    "weir: 1\n"
    "inputs: {x: 'f32[2, 3]'}\n"
    "nodes:\n"
    "  w: state([2, 3])\n"
    "  y: add(x, 1)\n"
    "  h: mul(x, 2)\n"
    "  bump: assign_add(w, y)\n"
    "outputs: [y, h]\n"
    "placement:\n"
    "  - {match: h, device: 'cpu:0'}\n"
    "  - {match: '*', device: 'gpu:0'}\n";

static const char kTrained[] =
    "weir: 1\n"
    "inputs: {n: 'f32[2]'}\n"
    "nodes:\n"
    "  p: var([], init=ones())\n"
    "  loss: mean(square(mul(n, p)))\n"
    "outputs: [loss]\n"
    "data:\n"
    "  train: {source: memory, values: {n: [0, 1]}, batch: 2}\n"
    "train: {minimize: loss, optimizer: sgd(lr=0.1), steps: 1}\n";

static const DLDataType kF32 = {kDLFloat, 32, 1};

/* ---- CUDA's library, as somebody else uses it */

static struct {
  cudaError_t (*set_device)(int device);
  cudaError_t (*malloc)(void **ptr, size_t bytes);
  cudaError_t (*free)(void *ptr);
  cudaError_t (*copy)(void *dst, const void *src, size_t bytes,
                      enum cudaMemcpyKind kind, cudaStream_t stream);
  cudaError_t (*stream)(cudaStream_t *stream, unsigned flags);
  cudaError_t (*sync)(cudaStream_t stream);
  cudaError_t (*end)(cudaStream_t stream);
  const standin_control *standin; /* NULL: a real GPU */
} cuda;

static int open_library(void **state) {
  (void)state;
  const char *folder = getenv("WEIR_CUDA_FOLDER");
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s%slibcudart.so.13",
           folder != NULL ? folder : "", folder != NULL ? "/" : "");
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) fail_msg("%s", dlerror());
  *(void **)&cuda.set_device = dlsym(library, "cudaSetDevice");
  *(void **)&cuda.malloc = dlsym(library, "cudaMalloc");
  *(void **)&cuda.free = dlsym(library, "cudaFree");
  *(void **)&cuda.copy = dlsym(library, "cudaMemcpyAsync");
  *(void **)&cuda.sync = dlsym(library, "cudaStreamSynchronize");
  *(void **)&cuda.stream = dlsym(library, "cudaStreamCreateWithFlags");
  *(void **)&cuda.end = dlsym(library, "cudaStreamDestroy");
  cuda.standin = dlsym(library, "standin_functions");
  return cuda.sync == NULL;
}

static void copy(void *dst, const void *src, size_t bytes,
                 enum cudaMemcpyKind kind) {
  cudaStream_t stream = NULL;
  assert_int_equal(cuda.set_device(0), 0);
  assert_int_equal(cuda.stream(&stream, cudaStreamNonBlocking), 0);
  assert_int_equal(cuda.copy(dst, src, bytes, kind, stream), 0);
  assert_int_equal(cuda.sync(stream), 0);
  assert_int_equal(cuda.end(stream), 0);
}

/* A producer's tensor, |offset| bytes into its memory. */
typedef struct producer {
  DLManagedTensorVersioned managed;
  void *memory;
  int64_t shape[2];
  int deleted;
} producer;

static void producer_delete(DLManagedTensorVersioned *self) {
  ((producer *)self->manager_ctx)->deleted++;
}

static void producer_make(producer *p, size_t offset, float first) {
  float values[kCount];
  for (int i = 0; i < kCount; i++) values[i] = first + (float)i;
  *p = (producer){.shape = {kRows, kCols}};
  assert_int_equal(cuda.set_device(0), 0);
  assert_int_equal(cuda.malloc(&p->memory, kBytes + offset), 0);
  copy((char *)p->memory + offset, values, kBytes, cudaMemcpyHostToDevice);
  p->managed = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .manager_ctx = p,
      .deleter = producer_delete,
      .dl_tensor = {.data = p->memory,
                    .device = {kDLCUDA, 0},
                    .ndim = 2,
                    .dtype = kF32,
                    .shape = p->shape,
                    .byte_offset = offset}};
}

static void producer_drop(producer *p, int deleted) {
  assert_int_equal(p->deleted, deleted);
  assert_int_equal(cuda.free(p->memory), 0);
}

/* ---- A program */

typedef struct program {
  weir_runtime *runtime;
  weir_graph *graph;
  weir_session *session;
  weir_error err;
} program;

static weir_status program_begin(program *p, const weir_allocator_hook *hook) {
  *p = (program){.err = WEIR_ERROR_INIT};
  const weir_runtime_opts opts = {
      .struct_size = sizeof opts, .allocator = hook, .threads = 1};
  const weir_plan_opts place = {.struct_size = sizeof place,
                                .cluster = "worker=1,gpu=1"};
  const weir_session_opts session = {.struct_size = sizeof session,
                                     .place = &place};
  weir_status s = weir_runtime_create(&opts, &p->runtime, &p->err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(p->runtime, kText, sizeof kText - 1, "g", NULL,
                               &p->graph, &p->err);
  if (s == WEIR_OK)
    s = weir_session_create(p->runtime, p->graph, &session, &p->session,
                            &p->err);
  return s;
}

static void program_end(program *p) {
  weir_session_release(p->session);
  weir_graph_release(p->graph);
  weir_runtime_release(p->runtime);
}

static void begin(program *p) {
  assert_ok(program_begin(p, NULL), &p->err);
}

static weir_status import(program *p, producer *from, weir_tensor **out) {
  return weir_tensor_from_dlpack(p->runtime, &from->managed, out, &p->err);
}

static weir_tensor_info info_of(const weir_tensor *t) {
  weir_tensor_info info = {.struct_size = sizeof info};
  assert_int_equal(weir_tensor_desc(t, &info), WEIR_OK);
  return info;
}

static void check_values(const void *data, float first, float step) {
  for (int i = 0; i < kCount; i++)
    if (((const float *)data)[i] != first + step * (float)i)
      fail_msg("element %d is %g", i, (double)((const float *)data)[i]);
}

static void check_clean(void) {
  if (cuda.standin == NULL) return;
  cuda.standin->reset(); /* looks at freed memory */
  standin_counts n = cuda.standin->counts();
  assert_int_equal(n.blocks + n.host_blocks + n.streams + n.events, 0);
  assert_int_equal(n.libraries + n.graphs + n.written_after_free, 0);
}

/* ---- In */

static void test_in(void **state) {
  (void)state;
  program p;
  producer from;
  weir_tensor *t = NULL, *there = NULL, *same = NULL;
  begin(&p);
  producer_make(&from, 16, 3);
  from.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  assert_ok(import(&p, &from, &t), &p.err);
  weir_tensor_info info = info_of(t);
  assert_int_equal(info.memory, WEIR_MEMORY_GPU);
  assert_int_equal(info.gpu, 0);
  assert_true(info.read_only);
  assert_int_equal(info.bytes, kBytes);
  assert_null(weir_tensor_data(t));
  assert_null(weir_tensor_mutable_data(t));
  assert_ok(weir_tensor_to_host(p.runtime, t, &there, &p.err), &p.err);
  assert_int_equal(info_of(there).memory, WEIR_MEMORY_HOST);
  check_values(weir_tensor_data(there), 3, 1);
  assert_ok(weir_tensor_to_host(p.runtime, there, &same, &p.err), &p.err);
  assert_ptr_equal(same, there);
  weir_tensor_release(same);
  weir_tensor_release(there);
  assert_int_equal(from.deleted, 0);
  weir_tensor_release(t);
  producer_drop(&from, 1);
  program_end(&p);
  check_clean();
}

static void refused(program *p, const producer *good,
                    void (*spoil)(DLTensor *t), const char *id,
                    const char *says) {
  producer from = *good;
  weir_tensor *t = NULL;
  from.managed.manager_ctx = &from;
  from.managed.dl_tensor.shape = from.shape;
  spoil(&from.managed.dl_tensor);
  p->err = (weir_error)WEIR_ERROR_INIT;
  assert_error(import(p, &from, &t), &p->err, id);
  if (strstr(p->err.message, says) == NULL) fail_msg("%s", p->err.message);
  assert_null(t);
  assert_int_equal(from.deleted, 0); /* still the caller's */
}

static void transpose(DLTensor *t) {
  static int64_t strides[] = {1, kRows};
  t->strides = strides;
}
static void shift(DLTensor *t) {
  t->byte_offset = 2;
}
static void move_far(DLTensor *t) {
  t->device.device_id = 15;
}
static void move_back(DLTensor *t) {
  t->device.device_id = -1;
}
static void other_kind(DLTensor *t) {
  t->device.device_type = (DLDeviceType)10;
}
static void lose_data(DLTensor *t) {
  t->data = NULL;
}

static void test_in_refuses(void **state) {
  (void)state;
  program p;
  producer from;
  begin(&p);
  producer_make(&from, 0, 0);
  refused(&p, &from, transpose, "W0004", "GPU 0 is not row-major");
  refused(&p, &from, shift, "W0004", "GPU 0 is not aligned to 4");
  refused(&p, &from, move_far, "W6004", "is on GPU 15");
  refused(&p, &from, move_back, "W6004", "is on GPU -1");
  refused(&p, &from, other_kind, "W0004", "device type 10");
  refused(&p, &from, lose_data, "W0004", "DLPack data");
  producer_drop(&from, 0);
  program_end(&p);
  check_clean();
}

/* ---- Calls of the host alone */

static bool never_write(void *self, const char *data, size_t size) {
  (void)self;
  (void)data;
  (void)size;
  fail_msg("something was written");
  return false;
}

static void says_gpu(program *p, weir_status s) {
  assert_int_equal(s, WEIR_INVALID_ARGUMENT);
  assert_string_equal(p->err.id, "W0004");
  if (strstr(p->err.message, "is a tensor on GPU 0") == NULL ||
      strstr(p->err.hint, "weir_tensor_to_host") == NULL)
    fail_msg("%s (%s)", p->err.message, p->err.hint);
  p->err = (weir_error)WEIR_ERROR_INIT;
}

static void trainers_refuse(program *p, const weir_tensor *t) {
  weir_graph *graph = NULL;
  weir_trainer *trainer = NULL;
  assert_ok(weir_graph_load_buffer(p->runtime, kTrained, sizeof kTrained - 1,
                                   "t", NULL, &graph, &p->err),
            &p->err);
  assert_ok(weir_trainer_create(p->runtime, graph, NULL, &trainer, &p->err),
            &p->err);
  says_gpu(p, weir_trainer_variable_set(trainer, "p", t, &p->err));
  weir_trainer_release(trainer);
  weir_graph_release(graph);
}

static void test_host_calls_refuse(void **state) {
  (void)state;
  program p;
  producer from;
  weir_tensor *t = NULL;
  const char *name = "t";
  begin(&p);
  producer_make(&from, 0, 0);
  assert_ok(import(&p, &from, &t), &p.err);
  const weir_tensor *const tensors[] = {t};
  const weir_tensor_list list = WEIR_TENSOR_LIST(1, &name, tensors);
  says_gpu(&p,
           weir_tensor_write_file(p.runtime, "/tmp/never.npy", &list, &p.err));
  says_gpu(&p, weir_tensor_write_stream(p.runtime, WEIR_FILE_NPY, &list,
                                        never_write, NULL, &p.err));
  says_gpu(&p, weir_session_variable_set(p.session, "w", t, &p.err));
  const weir_feed feed = WEIR_FEED("x", t);
  weir_fetch fetch = WEIR_FETCH("h");
  fetch.tensor = t;
  const weir_run_request request = WEIR_RUN_REQUEST(&feed, 1, &fetch, 1);
  says_gpu(&p, weir_session_run(p.session, &request, NULL, &p.err));
  trainers_refuse(&p, t);
  weir_tensor_release(t);
  producer_drop(&from, 1);
  program_end(&p);
  check_clean();
}

/* ---- Runs, and out */

/* y stays, h comes; |out| gets y by DLPack. */
static weir_status life(program *p, producer *from, float h[kCount],
                        DLManagedTensorVersioned **out) {
  weir_tensor *x = NULL;
  WEIR_TRY(import(p, from, &x));
  const weir_feed feed = WEIR_FEED("x", x);
  weir_fetch fetches[] = {WEIR_FETCH("y"), WEIR_FETCH("h")};
  const weir_run_request request = WEIR_RUN_REQUEST(&feed, 1, fetches, 2);
  fetches[0].on_device = fetches[1].on_device = true;
  weir_status s = weir_session_run(p->session, &request, NULL, &p->err);
  weir_tensor_release(x);
  if (s == WEIR_OK) {
    assert_int_equal(info_of(fetches[0].tensor).memory, WEIR_MEMORY_GPU);
    assert_int_equal(info_of(fetches[1].tensor).memory, WEIR_MEMORY_HOST);
    memcpy(h, weir_tensor_data(fetches[1].tensor), kBytes);
    s = weir_tensor_to_dlpack(fetches[0].tensor, out, &p->err);
  }
  weir_tensor_release(fetches[0].tensor);
  weir_tensor_release(fetches[1].tensor);
  return s;
}

/* The consumer is done when weir has gone. */
static void test_out_outlives_the_runtime(void **state) {
  (void)state;
  for (size_t offset = 0; offset < 8; offset += 4) { /* in place, and copied */
    program p;
    producer from;
    float y[kCount], h[kCount];
    DLManagedTensorVersioned *out = NULL;
    begin(&p);
    producer_make(&from, offset, 5);
    assert_ok(life(&p, &from, h, &out), &p.err);
    producer_drop(&from, 1);
    program_end(&p);
    assert_int_equal(out->dl_tensor.device.device_type, kDLCUDA);
    assert_int_equal(out->dl_tensor.device.device_id, 0);
    assert_int_equal(out->dl_tensor.strides[0], kCols);
    assert_int_equal(out->flags, 0);
    copy(y, (char *)out->dl_tensor.data + out->dl_tensor.byte_offset, kBytes,
         cudaMemcpyDeviceToHost);
    check_values(y, 6, 1);
    check_values(h, 10, 2);
    out->deleter(out);
    check_clean();
  }
}

/* What went out is what was fed, at the same address. */
static void test_out_and_back(void **state) {
  (void)state;
  program p;
  producer from;
  weir_tensor *t = NULL, *back = NULL;
  DLManagedTensorVersioned *out = NULL;
  begin(&p);
  producer_make(&from, 0, 1);
  assert_ok(import(&p, &from, &t), &p.err);
  assert_ok(weir_tensor_to_dlpack(t, &out, &p.err), &p.err);
  weir_tensor_release(t);
  assert_ptr_equal(out->dl_tensor.data, from.memory);
  assert_ok(weir_tensor_from_dlpack(p.runtime, out, &back, &p.err), &p.err);
  assert_int_equal(from.deleted, 0);
  weir_tensor_release(back);
  producer_drop(&from, 1);
  from.shape[0] = 0;
  from.managed.dl_tensor.data = NULL;
  assert_ok(import(&p, &from, &t), &p.err);
  assert_int_equal(info_of(t).memory, WEIR_MEMORY_GPU);
  assert_ok(weir_tensor_to_dlpack(t, &out, &p.err), &p.err);
  assert_null(out->dl_tensor.data);
  assert_int_equal(out->dl_tensor.device.device_type, kDLCUDA);
  weir_tensor_release(t);
  out->deleter(out);
  program_end(&p);
  check_clean();
}

/* A bound run reads what is there when it begins. */
static void test_bound_runs(void **state) {
  (void)state;
  program p;
  producer from;
  weir_tensor *x = NULL, *there = NULL;
  weir_bound *bound = NULL;
  begin(&p);
  producer_make(&from, 0, 0);
  assert_ok(import(&p, &from, &x), &p.err);
  const weir_feed feed = WEIR_FEED("x", x);
  weir_fetch fetch = WEIR_FETCH("y");
  const weir_run_request request = WEIR_RUN_REQUEST(&feed, 1, &fetch, 1);
  fetch.on_device = true;
  assert_ok(weir_session_bind(p.session, &request, &bound, &p.err), &p.err);
  weir_tensor_release(x);
  for (int i = 0; i < 5; i++) {
    float values[kCount];
    for (int k = 0; k < kCount; k++) values[k] = (float)(i * 100 + k);
    copy(from.memory, values, kBytes, cudaMemcpyHostToDevice);
    assert_ok(weir_bound_run(bound, NULL, &p.err), &p.err);
    assert_ok(weir_tensor_to_host(p.runtime, fetch.tensor, &there, &p.err),
              &p.err);
    check_values(weir_tensor_data(there), (float)(i * 100 + 1), 1);
    weir_tensor_release(there);
  }
  weir_tensor_release(fetch.tensor);
  weir_bound_release(bound);
  producer_drop(&from, 1);
  program_end(&p);
  check_clean();
}

/* Each allocation fails once: what was lent is given back, or still the
 * caller's. */
static void test_allocations_that_fail(void **state) {
  (void)state;
  if (cuda.standin == NULL) {
    print_message(
        "skipped, this needs the stand-in: a start that takes no "
        "time\n");
    skip();
  }
  for (long k = 1;; k++) {
    host memory = {.fail_at = k};
    const weir_allocator_hook hook = {sizeof hook, &memory, host_alloc,
                                      host_free};
    program p;
    producer from;
    float h[kCount];
    DLManagedTensorVersioned *out = NULL;
    producer_make(&from, 4, 5);
    weir_status s = program_begin(&p, &hook);
    if (s == WEIR_OK) s = life(&p, &from, h, &out);
    if (s != WEIR_OK && strcmp(p.err.id, "W6001") != 0)
      fail_msg("allocation %ld: %s %s", k, p.err.id, p.err.message);
    program_end(&p);
    if (out != NULL) out->deleter(out);
    assert_int_equal(memory.live, 0);
    assert_true(from.deleted <= 1 && (s != WEIR_OK || from.deleted == 1));
    producer_drop(&from, from.deleted);
    check_clean();
    if (s == WEIR_OK && memory.calls < k) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_in),
      cmocka_unit_test(test_in_refuses),
      cmocka_unit_test(test_host_calls_refuse),
      cmocka_unit_test(test_out_outlives_the_runtime),
      cmocka_unit_test(test_out_and_back),
      cmocka_unit_test(test_bound_runs),
      cmocka_unit_test(test_allocations_that_fail),
  };
  return cmocka_run_group_tests(tests, open_library, NULL);
}
