/* SPDX-License-Identifier: Apache-2.0 */
#include <driver_types.h>

#include "kernels/cuda/ew.h"
#include "tests/cuda/cuda_world.h"

/* Faults of the CUDA device: each call of CUDA and each allocation of the host
 * fails once, GPUs get lost, and there are four ways to have none. */

/* What an owner of a device has. */
typedef struct owner {
  weir_device *d[2];
  weir_queue *q[2];
  weir_event *e[2];
  weir_device_buffer a, b;
  char *src, *dst;
  weir_error err;
  bool created; /* the failure came later than the devices' creation */
} owner;

static weir_status create_all(owner *o, const weir_allocator *alloc) {
  weir_device_name name = weir_device_name_any();
  for (int32_t i = 0; i < 2; i++) {
    name.index = (weir_index_range){i, i};
    WEIR_TRY(cuda_world_create(alloc, &name, 0, &o->d[i], &o->err));
  }
  o->created = true;
  for (int i = 0; i < 2; i++) {
    WEIR_TRY(o->d[i]->vt->queue_create(o->d[i], &o->q[i], &o->err));
    WEIR_TRY(o->d[i]->vt->event_create(o->d[i], &o->e[i], &o->err));
  }
  WEIR_TRY(o->d[0]->vt->host_alloc(o->d[0], 64, (void **)&o->src, &o->err));
  WEIR_TRY(o->d[0]->vt->host_alloc(o->d[0], 64, (void **)&o->dst, &o->err));
  WEIR_TRY(o->d[0]->vt->alloc(o->d[0], 64, &o->a, &o->err));
  return o->d[1]->vt->alloc(o->d[1], 64, &o->b, &o->err);
}

/* In by one device, over to the other, out by that. */
static weir_status copy_all(owner *o) {
  weir_device_place a = {&o->a, 0}, a32 = {&o->a, 32}, b = {&o->b, 0};
  weir_device *d = o->d[0], *p = o->d[1];
  memset(o->dst, 0, 64);
  memcpy(o->src, "sweeping", 9);
  WEIR_TRY(d->vt->copy_in(d, o->q[0], a, o->src, 9, &o->err));
  WEIR_TRY(d->vt->copy(d, o->q[0], a32, a, 9, &o->err));
  WEIR_TRY(d->vt->record(d, o->q[0], o->e[0], &o->err));
  WEIR_TRY(p->vt->queue_wait(p, o->q[1], o->e[0], &o->err));
  WEIR_TRY(p->vt->copy_peer(p, o->q[1], b, d, a32, 9, &o->err));
  WEIR_TRY(p->vt->copy_out(p, o->q[1], o->dst, b, 9, &o->err));
  WEIR_TRY(p->vt->record(p, o->q[1], o->e[1], &o->err));
  WEIR_TRY(p->vt->wait(p, o->e[1], &o->err));
  assert_string_equal(o->dst, "sweeping");
  return WEIR_OK;
}

/* In the order that device.h asks of whoever gives up. */
static void release_all(owner *o) {
  for (int i = 0; i < 2; i++)
    if (o->d[i] != NULL) o->d[i]->vt->queue_release(o->d[i], o->q[i]);
  for (int i = 0; i < 2; i++)
    if (o->d[i] != NULL) o->d[i]->vt->event_release(o->d[i], o->e[i]);
  if (o->d[1] != NULL) o->d[1]->vt->free(o->d[1], &o->b);
  if (o->d[0] != NULL) {
    o->d[0]->vt->free(o->d[0], &o->a);
    o->d[0]->vt->host_free(o->d[0], o->src);
    o->d[0]->vt->host_free(o->d[0], o->dst);
  }
  for (int i = 0; i < 2; i++) weir_device_release(o->d[i]);
}

/* A device that lost its GPU says so whatever it is asked, in CUDA's words. */
static void check_lost(weir_device *d, const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  weir_queue *q;
  weir_event *e;
  weir_device_buffer a = {.bytes = 8};
  weir_device_place at = {&a, 0};
  void *data;
  char byte = 0;
  const weir_device_body *fill;
  const weir_device_grid grid = {{1, 1, 1}, WEIR_BODY_THREADS, 0};
  weir_fill_args args = {0};
  assert_true(atomic_load(&d->lost));
  assert_ok(d->vt->body(d, "fill", &fill, &err), &err);
#define LOST(call)                                    \
  assert_error(d->vt->call, &err, "W6004");           \
  assert_non_null(strstr(err.message, " is lost: ")); \
  assert_non_null(strstr(err.message, says))
  LOST(alloc(d, 1, &a, &err));
  a.bytes = 8;
  LOST(host_alloc(d, 1, &data, &err));
  LOST(copy_in(d, NULL, at, &byte, 1, &err));
  LOST(copy_out(d, NULL, &byte, at, 1, &err));
  LOST(copy(d, NULL, at, at, 1, &err));
  LOST(copy_peer(d, NULL, at, d, at, 1, &err));
  LOST(launch(d, NULL, fill, &grid, &args, sizeof args, &err));
  LOST(queue_create(d, &q, &err));
  LOST(event_create(d, &e, &err));
  LOST(record(d, NULL, NULL, &err));
  LOST(queue_wait(d, NULL, NULL, &err));
  LOST(wait(d, NULL, &err));
#undef LOST
  assert_null(q);
  assert_null(e);
}

/* What a call that failed with CUDA's |fault| must have said. */
typedef struct fault {
  int code;
  const char *id; /* of a device that was created */
  const char *says;
} fault;

static void check_fault(const owner *o, const fault *f) {
  bool memory = strcmp(f->id, "W6001") == 0;
  /* A GPU that cannot be had is missing; perhaps it had no memory. */
  if (o->created || (memory && strcmp(o->err.id, "W6001") == 0))
    assert_string_equal(o->err.id, f->id);
  else
    assert_string_equal(o->err.id, "W6004");
  if (strstr(o->err.message, f->says) == NULL &&
      !(memory && strstr(o->err.message, " wanted, ") != NULL))
    fail_msg("%s", o->err.message);
  int lost = 0;
  for (int i = 0; i < 2; i++) {
    if (o->d[i] == NULL || !atomic_load(&o->d[i]->lost)) continue;
    check_lost(o->d[i], f->says);
    lost++;
  }
  if (o->created) assert_int_equal(lost, strcmp(f->id, "W6004") == 0);
}

/* Calls of CUDA at the end of that life: for each device synchronise, destroy a
 * queue, an event, set the device, free; and two of the host's memory. Then
 * there are the libraries of bodies. */
enum { kReleases = 2 * 5 + 2 };
static uint64_t releases;

/* Calls that ask for a way from one GPU to the other: without it copies are as
 * right, unless the GPU is lost. */
enum { kWays = 2 };

/* All of an owner's life; |f| NULL: without a fault. */
static weir_status live(const fault *f) {
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  owner o = {.err = WEIR_ERROR_INIT};
  weir_status s = create_all(&o, &c.base);
  if (s == WEIR_OK) s = copy_all(&o);
  if (s != WEIR_OK) {
    assert_non_null(f);
    check_fault(&o, f);
  }
  if (f == NULL) releases = kReleases + standin->counts().libraries;
  release_all(&o);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
  return s;
}

/* Each call of CUDA in turn fails. Those that release cannot report. */
static void sweep(const fault *f) {
  uint64_t silent = 0;
  assert_int_equal(live(NULL), WEIR_OK);
  uint64_t calls = standin->counts().calls;
  cuda_world_check_clean();
  for (uint64_t k = 1; k <= calls; k++) {
    standin->set_seed(k % 3);
    standin->fail_at(k, f->code);
    silent += live(f) == WEIR_OK;
    assert_true(standin->counts().calls >= k);
    cuda_world_check_clean();
  }
  bool stays = strcmp(f->id, "W6004") == 0;
  assert_int_equal(silent, releases + (stays ? 0 : kWays));
}

static void every_call_fails_once(void **state) {
  (void)state;
  const fault kFaults[] = {
      {cudaErrorInvalidValue, "W5001", "invalid argument"},
      {cudaErrorMemoryAllocation, "W6001", "out of memory"},
      {cudaErrorIllegalAddress, "W6004", "illegal memory access"}};
  for (size_t i = 0; i < sizeof kFaults / sizeof kFaults[0]; i++)
    sweep(&kFaults[i]);
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  uint64_t k = 1;
  for (weir_status s = WEIR_INTERNAL; s != WEIR_OK; k++) {
    weir_counted_allocator c;
    weir_counted_allocator_init(&c, NULL);
    owner o = {.err = WEIR_ERROR_INIT};
    c.fail_at = k;
    s = create_all(&o, &c.base);
    if (s == WEIR_OK) s = copy_all(&o);
    if (s != WEIR_OK) assert_string_equal(o.err.id, "W6001");
    release_all(&o);
    assert_int_equal(atomic_load(&c.live_blocks), 0);
    cuda_world_check_clean();
  }
  assert_int_equal(k - 2, 2 * 3 + 2); /* two devices and their bodies, blocks */
}

/* Lost for ever at any call: the owner still gets rid of all it has. */
static void lost_at_any_call(void **state) {
  (void)state;
  assert_int_equal(live(NULL), WEIR_OK);
  uint64_t calls = standin->counts().calls;
  cuda_world_check_clean();
  const fault lost = {cudaErrorLaunchFailure, "W6004",
                      "unspecified launch failure"};
  for (uint64_t k = 1; k <= calls; k++) {
    standin->lose_at(k, lost.code);
    weir_status s = live(&lost);
    assert_int_equal(s == WEIR_OK, k > calls - releases);
    cuda_world_check_clean();
  }
}

/* A copy that finds no memory is seen by the call that waits for it. */
static void queued_work_loses_the_device(void **state) {
  (void)state;
  owner o = {.err = WEIR_ERROR_INIT};
  assert_ok(create_all(&o, weir_allocator_system()), &o.err);
  weir_device *d = o.d[0];
  weir_device_place a = {&o.a, 0};
  assert_ok(d->vt->copy_in(d, o.q[0], a, o.src, 8, &o.err), &o.err);
  d->vt->host_free(d, o.src); /* against the contract */
  o.src = NULL;
  assert_ok(d->vt->record(d, o.q[0], o.e[0], &o.err), &o.err);
  assert_false(atomic_load(&d->lost));
  assert_error(d->vt->wait(d, o.e[0], &o.err), &o.err, "W6004");
  assert_string_equal(o.err.message,
                      "GPU 0 is lost: an illegal memory access was encountered "
                      "(stand-in)");
  check_lost(d, "illegal memory access");
  /* Nothing is copied from it; the other one is not to blame. */
  weir_device_place b = {&o.b, 0};
  assert_error(o.d[1]->vt->copy_peer(o.d[1], o.q[1], b, d, a, 8, &o.err),
               &o.err, "W6004");
  assert_non_null(strstr(o.err.message, "GPU 0 is lost"));
  assert_false(atomic_load(&o.d[1]->lost));
  release_all(&o);
  cuda_world_check_clean();
}

/* Why there is no GPU, in one sentence; by find and by create. */
static void check_none(const char *folder, const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  weir_cuda_found found;
  assert_error(weir_device_cuda_find(&cuda_module, folder, &found, &err), &err,
               "W6004");
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
  assert_int_equal(found.gpu_count, 0);
  weir_device *d;
  weir_device_name name = weir_device_name_any();
  weir_cuda_options o = {.runtime_folder = folder};
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  weir_env env = {.alloc = &c.base};
  assert_error(weir_device_cuda_create(&env, &cuda_module, &name, &o, &d, &err),
               &err, "W6004");
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
  assert_null(d);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
  cuda_world_check_clean();
}

static void says_why_there_is_no_gpu(void **state) {
  (void)state;
  char bare[4200];
  snprintf(bare, sizeof bare, "%s/../bare", cuda_folder);
  check_none("/nowhere",
             "CUDA's runtime library cannot be loaded: "
             "/nowhere/libcudart.so.13: ");
  check_none("standin", "the folder of CUDA, standin, is not an absolute path");
  check_none(bare, "libcudart.so.13 has no function cudaDriverGetVersion");
}

typedef struct refusal {
  int driver, runtime, devices;
  const char *says;
} refusal;

static void drivers_and_versions(void **state) {
  static const refusal kRefusals[] = {
      {13000, 12080, 2, "libcudart.so.13 is of CUDA 12.8, this weir needs 13"},
      {13000, 14000, 2, "libcudart.so.13 is of CUDA 14.0, this weir needs 13"},
      {0, 13000, 2, "no NVIDIA driver is on this machine"},
      {12040, 13010, 2,
       "the NVIDIA driver is too old: it knows CUDA 12.4, 13.1 is needed"},
      {13000, 13000, 0, "the NVIDIA driver has no GPU for this process"},
  };
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_cuda_found found;
  weir_device *d;
  weir_device_name name = weir_device_name_any();
  name.index = (weir_index_range){0, 0};
  for (size_t i = 0; i < sizeof kRefusals / sizeof kRefusals[0]; i++) {
    const refusal *r = &kRefusals[i];
    standin->set_versions(r->driver, r->runtime);
    standin->set_devices(r->devices);
    assert_error(weir_device_cuda_find(&cuda_module, cuda_folder, &found, &err),
                 &err, "W6004");
    assert_string_equal(err.message, r->says);
    assert_int_equal(found.gpu_count, 0);
    assert_error(cuda_world_create(weir_allocator_system(), &name, 0, &d, &err),
                 &err, "W6004");
    assert_string_equal(err.message, r->says);
    assert_null(d);
    cuda_world_check_clean();
  }
}

static void finds_gpus(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_cuda_found found;
  assert_ok(weir_device_cuda_find(&cuda_module, cuda_folder, &found, &err),
            &err);
  assert_int_equal(found.driver, 13000);
  assert_int_equal(found.runtime, 13000);
  assert_int_equal(found.gpu_count, 2);
  assert_string_equal(found.gpus[1].name, "stand-in 1");
  assert_int_equal(found.gpus[1].major, 9);
  assert_int_equal(found.gpus[1].minor, 0);
  assert_int_equal(found.gpus[1].total_bytes, 1 << 30);
  weir_device *d;
  weir_device_name name = weir_device_name_any();
  for (int32_t gpu = -1; gpu <= 2; gpu += 3) {
    name.index = (weir_index_range){gpu, gpu};
    assert_error(cuda_world_create(weir_allocator_system(), &name, 0, &d, &err),
                 &err, "W6004");
    assert_non_null(strstr(err.message, ": CUDA sees 2"));
  }
  cuda_world_check_clean();
}

int main(void) {
  int skipped =
      cuda_world_skip_program("calls that fail when they are told to");
  if (skipped != 0) return skipped;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_call_fails_once),
      cmocka_unit_test(every_allocation_fails_once),
      cmocka_unit_test(lost_at_any_call),
      cmocka_unit_test(queued_work_loses_the_device),
      cmocka_unit_test(says_why_there_is_no_gpu),
      cmocka_unit_test(drivers_and_versions),
      cmocka_unit_test(finds_gpus),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
