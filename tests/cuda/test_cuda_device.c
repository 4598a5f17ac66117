/* SPDX-License-Identifier: Apache-2.0 */
#include <driver_types.h>
#include <pthread.h>

#include "tests/cuda/cuda_world.h"
#include "tests/device/conformance.h"

/* The CUDA device: the cases of every device under many orders
 * of work, the order of queues, and memory. */

enum { kSeeds = 20, kPoison = 0xA5 };

static device_maker gpu = {cuda_world_create, true, true};

static void conforms_under_many_orders(void **state) {
  static void (*const kCases[])(void **) = {
      device_copies, device_times,         device_host_memory,
      device_peers,  device_limit_is_kept, device_no_memory};
  void *maker = &gpu;
  (void)state;
  cuda_world_needs_standin("a seed for the order of work");
  for (uint64_t seed = 0; seed <= kSeeds; seed++) {
    for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; i++) {
      standin->set_seed(seed);
      kCases[i](&maker);
      assert_int_equal(standin->counts().destroyed_with_work, 0);
      cuda_world_check_clean();
    }
  }
}

/* A copy between two timers, on the stand-in to the nanosecond. */
static void times_are_the_devices(void **state) {
  enum { kBytes = 1 << 20 };
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  const weir_device_vtable *vt = d->vt;
  weir_queue *queue;
  weir_event *begin, *end, *plain;
  weir_device_buffer a;
  void *data;
  int64_t ns = 0;
  (void)state;
  assert_ok(vt->queue_create(d, &queue, &err), &err);
  assert_ok(vt->timer_create(d, &begin, &err), &err);
  assert_ok(vt->timer_create(d, &end, &err), &err);
  assert_ok(vt->event_create(d, &plain, &err), &err);
  assert_ok(vt->alloc(d, kBytes, &a, &err), &err);
  assert_ok(vt->host_alloc(d, kBytes, &data, &err), &err);
  memset(data, 0, kBytes);
  assert_error(vt->elapsed(d, begin, end, &ns, &err), &err, "W5001");
  assert_ok(vt->record(d, queue, begin, &err), &err);
  weir_device_place at = {&a, 0};
  assert_ok(vt->copy_in(d, queue, at, data, kBytes, &err), &err);
  assert_ok(vt->record(d, queue, end, &err), &err);
  assert_ok(vt->record(d, queue, plain, &err), &err);
  if (standin != NULL) /* the copy is not done yet */
    assert_error(vt->elapsed(d, begin, end, &ns, &err), &err, "W5001");
  assert_ok(vt->wait(d, plain, &err), &err);
  assert_ok(vt->elapsed(d, begin, end, &ns, &err), &err);
  assert_true(ns > 0);
  if (standin != NULL)
    assert_int_equal(ns, STANDIN_COPY_NS + kBytes / STANDIN_BYTES_PER_NS +
                             STANDIN_RECORD_NS);
  assert_error(vt->elapsed(d, begin, plain, &ns, &err), &err, "W5001");
  assert_false(atomic_load(&d->lost));
  vt->event_release(d, begin);
  vt->event_release(d, end);
  vt->event_release(d, plain);
  vt->host_free(d, data);
  vt->free(d, &a);
  vt->queue_release(d, queue);
  weir_device_release(d);
  cuda_world_check_clean();
}

/* Bytes that one queue brings in and another one brings out; |ordered|: the
 * other one waits for an event between. */
static void through_two_queues(uint64_t seed, bool ordered, char back[8]) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  const weir_device_vtable *vt = d->vt;
  weir_queue *in, *out;
  weir_event *filled, *done;
  weir_device_buffer a;
  if (standin != NULL) standin->set_seed(seed);
  assert_ok(vt->queue_create(d, &in, &err), &err);
  assert_ok(vt->queue_create(d, &out, &err), &err);
  assert_ok(vt->event_create(d, &filled, &err), &err);
  assert_ok(vt->event_create(d, &done, &err), &err);
  assert_ok(vt->alloc(d, 8, &a, &err), &err);
  weir_device_place start = {&a, 0};
  assert_ok(vt->copy_in(d, in, start, "orderly", 8, &err), &err);
  assert_ok(vt->record(d, in, filled, &err), &err);
  if (ordered) assert_ok(vt->queue_wait(d, out, filled, &err), &err);
  assert_ok(vt->copy_out(d, out, back, start, 8, &err), &err);
  assert_ok(vt->record(d, out, done, &err), &err);
  assert_ok(vt->wait(d, done, &err), &err);
  vt->queue_release(d, in);
  vt->queue_release(d, out);
  vt->event_release(d, filled);
  vt->event_release(d, done);
  vt->free(d, &a);
  weir_device_release(d);
  cuda_world_check_clean();
}

static void queues_are_ordered_by_events_alone(void **state) {
  (void)state;
  char back[8], unordered[8];
  int wrong = 0;
  for (uint64_t seed = 0; seed <= kSeeds; seed++) {
    through_two_queues(seed, true, back);
    assert_memory_equal(back, "orderly", 8);
    if (standin == NULL) continue; /* any order may come of no order */
    through_two_queues(seed, false, unordered);
    wrong += memcmp(unordered, "orderly", 8) != 0;
    /* Nothing waits for the other queue: its copy is not done yet. */
    if (seed == 0)
      for (int i = 0; i < 8; i++)
        assert_int_equal((unsigned char)unordered[i], kPoison);
  }
  /* By luck some seeds have the right order, and some have not. */
  if (standin != NULL) assert_in_range(wrong, 1, kSeeds);
}

/* copy_in may read late and copy_out may write late, as device.h says. */
static void copies_are_not_done_at_once(void **state) {
  (void)state;
  cuda_world_needs_standin("copies that are late for sure");
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  weir_queue *queue;
  weir_event *event;
  weir_device_buffer a;
  char data[8] = "before", back[8] = "nothing";
  assert_ok(d->vt->queue_create(d, &queue, &err), &err);
  assert_ok(d->vt->event_create(d, &event, &err), &err);
  assert_ok(d->vt->alloc(d, 8, &a, &err), &err);
  weir_device_place start = {&a, 0};
  assert_ok(d->vt->copy_in(d, queue, start, data, 8, &err), &err);
  assert_ok(d->vt->copy_out(d, queue, back, start, 8, &err), &err);
  memcpy(data, "after!", 7);
  assert_string_equal(back, "nothing");
  assert_ok(d->vt->record(d, queue, event, &err), &err);
  assert_ok(d->vt->wait(d, event, &err), &err);
  assert_string_equal(back, "after!");
  d->vt->event_release(d, event);
  d->vt->queue_release(d, queue);
  d->vt->free(d, &a);
  weir_device_release(d);
  cuda_world_check_clean();
}

enum { kMost = 1 << 18 };
static char bytes_in[kMost];

/* Fills all of a buffer; that one is too small loses the device. */
static void fill(weir_device *d, weir_queue *queue, const weir_device_buffer *a,
                 size_t bytes) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device_place start = {a, 0};
  assert_ok(d->vt->copy_in(d, queue, start, bytes_in, bytes, &err), &err);
}

/* All 0 on a real GPU, which does not count. */
static standin_counts counts(void) {
  return standin != NULL ? standin->counts() : (standin_counts){0};
}

/* A size's block holds it and little more, and is the next buffer's. */
static void block_of(size_t size) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  weir_queue *queue;
  weir_device_buffer a, b;
  assert_ok(d->vt->queue_create(d, &queue, &err), &err);
  assert_ok(d->vt->alloc(d, size, &a, &err), &err);
  void *first = a.handle;
  standin_counts n = counts();
  size_t loss = size / 16 > 511 ? size / 16 : 511 + (size == 0);
  if (standin != NULL) assert_in_range(n.block_bytes, size, size + loss);
  d->vt->free(d, &a);
  assert_ok(d->vt->alloc(d, size, &a, &err), &err);
  assert_ptr_equal(a.handle, first);
  assert_int_equal(counts().mallocs, n.mallocs);
  assert_int_equal(counts().frees, 0);
  assert_ok(d->vt->alloc(d, size, &b, &err), &err); /* the first is taken */
  assert_ptr_not_equal(b.handle, first);
  fill(d, queue, &a, size);
  d->vt->queue_release(d, queue);
  assert_false(atomic_load(&d->lost));
  d->vt->free(d, &a);
  d->vt->free(d, &b);
  weir_device_release(d);
  cuda_world_check_clean();
}

/* The border of classes after |border|, of those that cache.c describes. */
static size_t next_border(size_t border) {
  size_t step = 512;
  while (border >= step * 32) step *= 2; /* sixteen an octave */
  return border + step;
}

static void freed_blocks_are_used_again(void **state) {
  (void)state;
  block_of(0);
  for (size_t at = 512; at <= kMost; at = next_border(at)) {
    block_of(at - 1);
    block_of(at);
    if (at < kMost) block_of(at + 1);
  }
}

/* Kept blocks of smaller sizes are there at each turn: none is taken. */
static void sizes_do_not_mix(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  weir_queue *queue;
  weir_device_buffer a;
  assert_ok(d->vt->queue_create(d, &queue, &err), &err);
  for (size_t at = 512; at <= kMost; at = next_border(at)) {
    for (size_t size = at - 511; size <= at; size += 511) {
      assert_ok(d->vt->alloc(d, size, &a, &err), &err);
      fill(d, queue, &a, size);
      d->vt->free(d, &a);
    }
  }
  /* 512 to 8192, and five octaves from there to 256 KiB. */
  if (standin != NULL) assert_int_equal(counts().mallocs, 16 + 5 * 16);
  d->vt->queue_release(d, queue);
  assert_false(atomic_load(&d->lost));
  weir_device_release(d);
  cuda_world_check_clean();
}

enum { kThreads = 4, kRounds = 300 };
static pthread_barrier_t all_there;

/* A thread's own queue, event and buffers, on the device of all. */
static void *rounds(void *self) {
  weir_device *d = self;
  weir_queue *queue = NULL;
  weir_event *event = NULL;
  pthread_barrier_wait(&all_there);
  weir_status s = d->vt->queue_create(d, &queue, NULL);
  if (s == WEIR_OK) s = d->vt->event_create(d, &event, NULL);
  for (int i = 0; i < kRounds && s == WEIR_OK; i++) {
    weir_device_buffer a;
    int in = i, out = -1;
    s = d->vt->alloc(d, sizeof in << (i % 10), &a, NULL);
    if (s != WEIR_OK) break;
    weir_device_place start = {&a, 0};
    s = d->vt->copy_in(d, queue, start, &in, sizeof in, NULL);
    if (s == WEIR_OK)
      s = d->vt->copy_out(d, queue, &out, start, sizeof out, NULL);
    if (s == WEIR_OK) s = d->vt->record(d, queue, event, NULL);
    if (s == WEIR_OK) s = d->vt->wait(d, event, NULL);
    if (s == WEIR_OK && out != i) s = WEIR_INTERNAL;
    d->vt->free(d, &a);
  }
  d->vt->event_release(d, event);
  d->vt->queue_release(d, queue);
  return s == WEIR_OK ? NULL : self;
}

static void threads_share_a_device(void **state) {
  (void)state;
  weir_device *d = cuda_world_device(1, 0);
  pthread_t threads[kThreads];
  assert_int_equal(pthread_barrier_init(&all_there, NULL, kThreads), 0);
  for (int i = 0; i < kThreads; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, rounds, d), 0);
  for (int i = 0; i < kThreads; i++) {
    void *failed;
    assert_int_equal(pthread_join(threads[i], &failed), 0);
    assert_null(failed);
  }
  pthread_barrier_destroy(&all_there);
  assert_int_equal(d->vt->memory(d).used_bytes, 0);
  weir_device_release(d);
  cuda_world_check_clean();
}

/* The checks of the other tests find something where there is something. */
static void standin_sees_misuse(void **state) {
  (void)state;
  cuda_world_needs_standin("it is what is tested");
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 0);
  weir_device_buffer a;
  weir_queue *queue;
  weir_event *event;
  void *pinned;
  assert_ok(d->vt->queue_create(d, &queue, &err), &err);
  assert_ok(d->vt->event_create(d, &event, &err), &err);
  assert_ok(d->vt->host_alloc(d, 8, &pinned, &err), &err);
  assert_ok(d->vt->alloc(d, 8, &a, &err), &err);
  standin->reset();
  standin_counts n = standin->counts();
  assert_int_equal(n.streams, 1);
  assert_int_equal(n.events, 1);
  assert_int_equal(n.host_blocks, 1);
  assert_int_equal(n.blocks, 1);
  assert_int_equal(n.block_bytes, 512);
  unsigned char *gone = a.handle;
  d->vt->free(d, &a);
  d->vt->host_free(d, pinned);
  d->vt->event_release(d, event);
  d->vt->queue_release(d, queue);
  weir_device_release(d);
  assert_int_equal(gone[511], kPoison);
  gone[511] = 0;
  standin->reset();
  assert_int_equal(standin->counts().written_after_free, 1);
  cuda_world_check_clean(); /* seen once */
}

static void limit_bounds_kept_blocks_too(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = cuda_world_device(0, 100 << 10);
  weir_device_buffer a, b;
  assert_ok(d->vt->alloc(d, 64 << 10, &a, &err), &err);
  d->vt->free(d, &a);
  assert_ok(d->vt->alloc(d, 32 << 10, &b, &err), &err);
  /* Both have room. */
  if (standin != NULL) assert_int_equal(counts().blocks, 2);
  d->vt->free(d, &b);
  assert_ok(d->vt->alloc(d, 96 << 10, &a, &err), &err);
  if (standin != NULL) assert_int_equal(counts().blocks, 1);
  assert_error(d->vt->alloc(d, 8 << 10, &b, &err), &err, "W6002");
  assert_non_null(strstr(err.message,
                         "8192 bytes of GPU 0 wanted, 98304 of "
                         "102400 in use, the limit of this process there"));
  weir_device_memory m = d->vt->memory(d);
  if (standin != NULL) assert_int_equal(m.total_bytes, 1 << 30);
  assert_int_equal(m.limit_bytes, 100 << 10);
  assert_int_equal(m.used_bytes, 96 << 10);
  assert_int_equal(m.peak_bytes, 96 << 10);
  d->vt->free(d, &a);
  /* A lower limit gives back what is kept beyond it. */
  if (standin != NULL) assert_int_equal(counts().blocks, 1);
  d->vt->set_limit(d, 4 << 10);
  if (standin != NULL) assert_int_equal(counts().blocks, 0);
  weir_device_release(d);
  cuda_world_check_clean();
}

static void kept_blocks_make_room(void **state) {
  (void)state;
  cuda_world_needs_standin("a GPU of 1 MiB");
  weir_error err = WEIR_ERROR_INIT;
  standin->set_memory(1 << 20);
  weir_device *d = cuda_world_device(0, 0);
  weir_device_buffer a, b, c;
  assert_ok(d->vt->alloc(d, 300 << 10, &a, &err), &err);
  assert_ok(d->vt->alloc(d, 300 << 10, &b, &err), &err);
  d->vt->free(d, &a);
  d->vt->free(d, &b);
  assert_int_equal(standin->counts().blocks, 2);
  assert_ok(d->vt->alloc(d, 640 << 10, &a, &err), &err);
  assert_int_equal(standin->counts().blocks, 1);
  assert_int_equal(standin->counts().frees, 2);
  /* Nothing is kept now: the next one that does not fit fails. */
  assert_error(d->vt->alloc(d, 400 << 10, &c, &err), &err, "W6001");
  assert_non_null(strstr(err.message,
                         "409600 bytes of GPU 0 wanted, 655360 are in use "
                         "here, 393216 of 1048576 are free there, other "
                         "processes and CUDA itself hold 0"));
  standin->set_others(100 << 10, 0);
  d->vt->set_limit(d, 1100 << 10);
  assert_error(d->vt->alloc(d, 400 << 10, &c, &err), &err, "W6001");
  assert_non_null(strstr(err.message,
                         "655360 are in use here of a limit of 1126400, 290816 "
                         "of 1048576 are free there, other processes and CUDA "
                         "itself hold 102400"));
  d->vt->set_limit(d, 0);
  assert_error(d->vt->alloc(d, SIZE_MAX - (640 << 10), &c, &err), &err,
               "W6001");
  assert_error(d->vt->alloc(d, SIZE_MAX / 2 + 2, &c, &err), &err, "W6001");
  /* The same when the GPU does not say what it has: the third call. */
  standin->fail_at(3, cudaErrorInvalidValue);
  assert_error(d->vt->alloc(d, 400 << 10, &c, &err), &err, "W6001");
  assert_string_equal(err.message,
                      "409600 bytes of GPU 0 wanted, 655360 are "
                      "in use here");
  assert_null(c.handle);
  assert_int_equal(d->vt->memory(d).used_bytes, 640 << 10);
  assert_false(atomic_load(&d->lost));
  standin->fail_at(3, cudaErrorECCUncorrectable);
  assert_error(d->vt->alloc(d, 400 << 10, &c, &err), &err, "W6004");
  assert_true(atomic_load(&d->lost));
  d->vt->free(d, &a);
  weir_device_release(d);
  cuda_world_check_clean();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      DEVICE_CONFORMANCE(gpu),
      cmocka_unit_test(conforms_under_many_orders),
      cmocka_unit_test(times_are_the_devices),
      cmocka_unit_test(queues_are_ordered_by_events_alone),
      cmocka_unit_test(copies_are_not_done_at_once),
      cmocka_unit_test(freed_blocks_are_used_again),
      cmocka_unit_test(sizes_do_not_mix),
      cmocka_unit_test(threads_share_a_device),
      cmocka_unit_test(standin_sees_misuse),
      cmocka_unit_test(limit_bounds_kept_blocks_too),
      cmocka_unit_test(kept_blocks_make_room),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
