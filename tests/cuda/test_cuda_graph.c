/* SPDX-License-Identifier: Apache-2.0 */
#include <driver_types.h>
#include <pthread.h>

#include "tests/cuda/graph_case.h"

/* Graphs of queued work: they give what the same calls give, in their queue's
 * order; other threads go on during a capture; what breaks a capture; faults;
 * memory that is gone when a graph is replayed. */

enum { kSeeds = 20, kRounds = 3, kCount = GRAPH_CASE_COUNT };
enum { kBytes = kCount * sizeof(float) };

/* The stand-in's; all 0 on a real GPU. */
static standin_counts counts(void) {
  return standin != NULL ? standin->counts() : (standin_counts){0};
}

static void open_case(graph_case *c, size_t limit_bytes) {
  assert_ok(graph_case_create(c, weir_allocator_system(), limit_bytes),
            &c->err);
}

static void close_case(graph_case *c) {
  graph_case_release(c);
  if (standin != NULL)
    assert_int_equal(standin->counts().destroyed_with_work, 0);
  gemm_case_check_clean();
}

static void replay(graph_case *c, weir_queue *q, weir_device_graph *graph) {
  assert_ok(c->d->vt->replay(c->d, q, graph, &c->err), &c->err);
}

/* By calls alone. */
static void check_calls(graph_case *c, int round) {
  graph_case_fill(c, round);
  assert_ok(graph_case_put(c), &c->err);
  assert_ok(graph_case_wait(c, c->q), &c->err);
  graph_case_check(c);
}

static void one_order(uint64_t seed) {
  graph_case c;
  open_case(&c, 0);
  if (standin != NULL) standin->set_seed(seed);
  graph_case_fill(&c, -1);
  uint64_t launches = counts().launches;
  assert_ok(graph_case_capture(&c), &c.err);
  assert_ok(graph_case_wait(&c, c.q), &c.err);
  for (int i = 0; i < 2 * kCount; i++) assert_true(c.out[i] == 99);
  assert_int_equal(counts().launches, launches); /* nothing was done */
  for (int round = 0; round < kRounds; round++) {
    graph_case_fill(&c, round);
    replay(&c, c.q, c.graph);
    assert_ok(graph_case_wait(&c, c.q), &c.err);
    graph_case_check(&c);
    check_calls(&c, round + kRounds); /* the queue is as it was */
  }
  if (standin != NULL) assert_int_equal(counts().graph_launches, kRounds);
  close_case(&c);
}

static void replays_give_what_calls_give(void **state) {
  (void)state;
  uint64_t seeds = standin != NULL ? kSeeds : 0;
  for (uint64_t seed = 0; seed <= seeds; seed++) one_order(seed);
}

/* Captures what |f| puts into c->q. */
static weir_device_graph *captured(graph_case *c,
                                   weir_status (*f)(graph_case *)) {
  weir_device_graph *graph = NULL;
  assert_ok(c->d->vt->capture_begin(c->d, c->q, &c->err), &c->err);
  if (f != NULL) assert_ok(f(c), &c->err);
  assert_ok(c->d->vt->capture_end(c->d, c->q, &graph, &c->err), &c->err);
  assert_non_null(graph);
  return graph;
}

static weir_status put_in(graph_case *c) {
  weir_device_place t = {&c->t, 0};
  return c->d->vt->copy_in(c->d, c->q, t, c->in, kBytes, &c->err);
}

/* The second half over the first one. */
static weir_status put_half(graph_case *c) {
  weir_device_place first = {&c->t, 0}, second = {&c->t, kBytes / 2};
  return c->d->vt->copy(c->d, c->q, first, second, kBytes / 2, &c->err);
}

static weir_status put_out(graph_case *c) {
  weir_device_place t = {&c->t, 0};
  return c->d->vt->copy_out(c->d, c->q, c->out, t, kBytes, &c->err);
}

/* Graphs of one queue, one without work, beside calls, in the queue's order. */
static void graphs_follow_each_other(void **state) {
  (void)state;
  graph_case c;
  open_case(&c, 0);
  const weir_device_vtable *vt = c.d->vt;
  weir_device_graph *in = captured(&c, put_in), *half = captured(&c, put_half);
  weir_device_graph *none = captured(&c, NULL);
  for (int round = 0; round < kRounds; round++) {
    graph_case_fill(&c, round);
    replay(&c, c.q, none);
    replay(&c, c.q, in);
    replay(&c, c.q, half);
    replay(&c, c.q, none);
    assert_ok(put_out(&c), &c.err);
    assert_ok(graph_case_wait(&c, c.q), &c.err);
    assert_memory_equal(c.out, c.in + kCount / 2, kBytes / 2);
    assert_memory_equal(c.out + kCount / 2, c.in + kCount / 2, kBytes / 2);
    replay(&c, c.q, half);
    replay(&c, c.q, in);
    assert_ok(put_out(&c), &c.err);
    replay(&c, c.q, none);
    assert_ok(graph_case_wait(&c, c.q), &c.err);
    assert_memory_equal(c.out, c.in, kBytes);
  }
  vt->graph_release(c.d, in);
  vt->graph_release(c.d, half);
  vt->graph_release(c.d, none);
  vt->graph_release(c.d, NULL);
  close_case(&c);
}

/* A graph of one queue in another one, which waits for the first by an event;
 * then back. */
static void graphs_are_ordered_by_events(void **state) {
  (void)state;
  uint64_t seeds = standin != NULL ? kSeeds : 0;
  for (uint64_t seed = 0; seed <= seeds; seed++) {
    graph_case c;
    open_case(&c, 0);
    const weir_device_vtable *vt = c.d->vt;
    if (standin != NULL) standin->set_seed(seed);
    weir_device_graph *half = captured(&c, put_half);
    graph_case_fill(&c, (int)seed);
    assert_ok(put_in(&c), &c.err);
    assert_ok(vt->record(c.d, c.q, c.e, &c.err), &c.err);
    assert_ok(vt->queue_wait(c.d, c.p, c.e, &c.err), &c.err);
    replay(&c, c.p, half);
    assert_ok(vt->record(c.d, c.p, c.e, &c.err), &c.err);
    assert_ok(vt->queue_wait(c.d, c.q, c.e, &c.err), &c.err);
    assert_ok(put_out(&c), &c.err);
    assert_ok(graph_case_wait(&c, c.q), &c.err);
    assert_memory_equal(c.out, c.in + kCount / 2, kBytes / 2);
    vt->graph_release(c.d, half);
    close_case(&c);
  }
}

/* Another thread's life beside a capture: it allocates, copies and waits. */
static void *live_beside(void *arg) {
  weir_device *d = arg;
  const weir_device_vtable *vt = d->vt;
  weir_error err = WEIR_ERROR_INIT;
  weir_queue *q = NULL;
  weir_event *e = NULL;
  weir_device_buffer a = {0};
  weir_device_place start = {&a, 0};
  char back[8] = "none";
  void *host = NULL;
  weir_status s = vt->queue_create(d, &q, &err);
  if (s == WEIR_OK) s = vt->event_create(d, &e, &err);
  if (s == WEIR_OK) s = vt->alloc(d, 1 << 20, &a, &err);
  if (s == WEIR_OK) s = vt->host_alloc(d, 64, &host, &err);
  if (s == WEIR_OK) s = vt->copy_in(d, q, start, "beside!", 8, &err);
  if (s == WEIR_OK) s = vt->copy_out(d, q, back, start, 8, &err);
  if (s == WEIR_OK) s = vt->record(d, q, e, &err);
  if (s == WEIR_OK) s = vt->wait(d, e, &err);
  vt->queue_release(d, q);
  vt->event_release(d, e);
  vt->free(d, &a);
  vt->host_free(d, host);
  if (s != WEIR_OK) return strdup(err.message);
  return strcmp(back, "beside!") == 0 ? NULL : strdup(back);
}

static void other_threads_go_on(void **state) {
  (void)state;
  graph_case c;
  open_case(&c, 0);
  pthread_t thread;
  void *failure = NULL;
  graph_case_fill(&c, 1);
  assert_ok(c.d->vt->capture_begin(c.d, c.q, &c.err), &c.err);
  assert_int_equal(pthread_create(&thread, NULL, live_beside, c.d), 0);
  assert_ok(graph_case_put(&c), &c.err);
  assert_int_equal(pthread_join(thread, &failure), 0);
  if (failure != NULL) fail_msg("%s", (char *)failure);
  assert_ok(c.d->vt->capture_end(c.d, c.q, &c.graph, &c.err), &c.err);
  replay(&c, c.q, c.graph);
  assert_ok(graph_case_wait(&c, c.q), &c.err);
  graph_case_check(&c);
  close_case(&c);
}

static weir_status waits(graph_case *c) {
  return c->d->vt->wait(c->d, c->e, &c->err);
}

static weir_status waits_for_itself(graph_case *c) {
  WEIR_TRY(c->d->vt->record(c->d, c->q, c->e, &c->err));
  return c->d->vt->wait(c->d, c->e, &c->err);
}

static weir_status waits_for_another_queue(graph_case *c) {
  return c->d->vt->queue_wait(c->d, c->q, c->e, &c->err);
}

static weir_status lets_another_queue_wait(graph_case *c) {
  WEIR_TRY(c->d->vt->record(c->d, c->q, c->e, &c->err));
  return c->d->vt->queue_wait(c->d, c->p, c->e, &c->err);
}

static weir_status copies_pageable_memory_in(graph_case *c) {
  weir_device_place t = {&c->t, 0};
  return c->d->vt->copy_in(c->d, c->q, t, "pageable", 8, &c->err);
}

static weir_status copies_pageable_memory_out(graph_case *c) {
  static char back[8];
  weir_device_place t = {&c->t, 0};
  return c->d->vt->copy_out(c->d, c->q, back, t, 8, &c->err);
}

static weir_status copies_of_peers(graph_case *c) {
  weir_device_place t = {&c->t, 0}, x = {&c->x, 0};
  return c->d->vt->copy_peer(c->d, c->q, t, c->d, x, 8, &c->err);
}

static weir_status allocates(graph_case *c) {
  weir_device_buffer a;
  return c->d->vt->alloc(c->d, 1 << 20, &a, &c->err);
}

static weir_status allocates_of_the_host(graph_case *c) {
  void *data;
  return c->d->vt->host_alloc(c->d, 64, &data, &c->err);
}

static weir_status replays(graph_case *c) {
  return c->d->vt->replay(c->d, c->q, c->graph, &c->err);
}

/* CUDA refuses them, or might: the capture is lost, the queue is not. */
static void broken_by(weir_status (*f)(graph_case *)) {
  graph_case c;
  open_case(&c, 0);
  const weir_device_vtable *vt = c.d->vt;
  weir_device_graph *graph = (weir_device_graph *)&c;
  c.graph = captured(&c, put_in);
  assert_ok(vt->record(c.d, c.p, c.e, &c.err), &c.err);
  assert_ok(vt->capture_begin(c.d, c.q, &c.err), &c.err);
  assert_ok(put_in(&c), &c.err);
  assert_error(f(&c), &c.err, "W5001");
  assert_error(put_in(&c), &c.err, "W5001");
  assert_non_null(strstr(c.err.message, "previous error during capture"));
  assert_error(vt->capture_end(c.d, c.q, &graph, &c.err), &c.err, "W5001");
  assert_non_null(strstr(c.err.message, "cudaStreamEndCapture"));
  assert_null(graph);
  assert_false(atomic_load(&c.d->lost));
  check_calls(&c, 1);
  close_case(&c);
}

static void some_calls_break_a_capture(void **state) {
  static weir_status (*const kCalls[])(graph_case *) = {
      waits,
      waits_for_itself,
      waits_for_another_queue,
      lets_another_queue_wait,
      copies_pageable_memory_in,
      copies_pageable_memory_out,
      copies_of_peers,
      allocates,
      allocates_of_the_host,
      replays};
  (void)state;
  cuda_world_needs_standin("a refusal of all that CUDA might refuse");
  for (size_t i = 0; i < sizeof kCalls / sizeof kCalls[0]; i++)
    broken_by(kCalls[i]);
}

/* An end without a beginning has no graph, and a queue captures once. */
static void captures_begin_and_end(void **state) {
  (void)state;
  graph_case c;
  open_case(&c, 0);
  const weir_device_vtable *vt = c.d->vt;
  weir_device_graph *graph = (weir_device_graph *)&c;
  assert_error(vt->capture_end(c.d, c.q, &graph, &c.err), &c.err, "W5001");
  assert_null(graph);
  assert_ok(vt->capture_begin(c.d, c.q, &c.err), &c.err);
  assert_error(vt->capture_begin(c.d, c.q, &c.err), &c.err, "W5001");
  (void)vt->capture_end(c.d, c.q, &graph, &c.err);
  vt->graph_release(c.d, graph);
  check_calls(&c, 2);
  close_case(&c);
}

/* What the clean-up looks at: a graph counts as long as it lives. */
static void graphs_are_counted(void **state) {
  (void)state;
  cuda_world_needs_standin("counts of graphs");
  graph_case c;
  open_case(&c, 0);
  assert_int_equal(counts().graphs, 0);
  c.graph = captured(&c, put_in);
  assert_int_equal(counts().graphs, 1);
  replay(&c, c.q, c.graph);
  c.d->vt->graph_release(c.d, c.graph); /* against the contract */
  c.graph = NULL;
  assert_int_equal(counts().graphs, 0);
  assert_int_equal(counts().destroyed_with_work, 1);
  graph_case_release(&c);
  gemm_case_check_clean();
}

/* A fault of CUDA, and what a call that met it must have said. */
typedef struct fault {
  int code;
  const char *id, *says;
} fault;

/* Calls that cannot report at the end of a life: two queues synchronise and are
 * destroyed, a graph, an event, two of the host's memory, the GPU is set; then
 * there are bodies and blocks. In the middle a graph's description is
 * destroyed. */
enum { kReleases = 2 * 2 + 1 + 1 + 2 + 1 };
static uint64_t releases;

static weir_status capture_and_replay(graph_case *c) {
  WEIR_TRY(graph_case_capture(c));
  for (int round = 0; round < 2; round++) {
    graph_case_fill(c, round);
    WEIR_TRY(c->d->vt->replay(c->d, c->q, c->graph, &c->err));
    WEIR_TRY(graph_case_wait(c, c->q));
    graph_case_check(c);
  }
  return WEIR_OK;
}

/* All of a device's life; |f| NULL: without a fault. */
static weir_status live(const fault *f) {
  weir_counted_allocator counted;
  weir_counted_allocator_init(&counted, NULL);
  graph_case c;
  weir_status s = graph_case_create(&c, &counted.base, 0);
  if (s == WEIR_OK) s = capture_and_replay(&c);
  if (s != WEIR_OK && f == NULL) fail_msg("%s", c.err.message);
  if (s != WEIR_OK) {
    assert_string_equal(c.err.id, c.created ? f->id : "W6004");
    if (strstr(c.err.message, f->says) == NULL) fail_msg("%s", c.err.message);
    if (c.created)
      assert_int_equal(atomic_load(&c.d->lost), strcmp(f->id, "W6004") == 0);
    if (c.ready && !atomic_load(&c.d->lost)) check_calls(&c, 5);
  }
  if (f == NULL) releases = kReleases + counts().libraries + counts().blocks;
  graph_case_release(&c);
  assert_int_equal(atomic_load(&counted.live_blocks), 0);
  return s;
}

static void every_call_fails_once(void **state) {
  static const fault kFaults[] = {
      {cudaErrorInvalidValue, "W5001", "invalid argument"},
      {cudaErrorIllegalAddress, "W6004", "illegal memory access"}};
  (void)state;
  cuda_world_needs_standin("calls that fail when they are told to");
  assert_int_equal(live(NULL), WEIR_OK);
  uint64_t calls = counts().calls;
  gemm_case_check_clean();
  for (size_t i = 0; i < sizeof kFaults / sizeof kFaults[0]; i++) {
    uint64_t silent = 0;
    for (uint64_t k = 1; k <= calls; k++) {
      standin->set_seed(k % 3);
      standin->fail_at(k, kFaults[i].code);
      silent += live(&kFaults[i]) == WEIR_OK;
      assert_true(counts().calls >= k);
      gemm_case_check_clean();
    }
    /* A GPU that is lost at that point is found to be so by the replay. */
    bool loses = strcmp(kFaults[i].id, "W6004") == 0;
    assert_int_equal(silent, releases + (loses ? 0 : 1));
  }
}

static void lost_at_any_call(void **state) {
  (void)state;
  cuda_world_needs_standin("a GPU that gets lost");
  const fault lost = {cudaErrorLaunchFailure, "W6004",
                      "unspecified launch failure"};
  assert_int_equal(live(NULL), WEIR_OK);
  uint64_t calls = counts().calls;
  gemm_case_check_clean();
  for (uint64_t k = 1; k <= calls; k++) {
    standin->lose_at(k, lost.code);
    assert_int_equal(live(&lost) == WEIR_OK, k > calls - releases);
    gemm_case_check_clean();
  }
}

static void every_call_of_cublaslt_fails_once(void **state) {
  const fault fails = {14, "W5001", "GPU 0: cublasLt"}; /* INTERNAL_ERROR */
  (void)state;
  cuda_world_needs_standin("calls that fail when they are told to");
  assert_int_equal(live(NULL), WEIR_OK);
  uint64_t calls = standin_lt->counts().calls, silent = 0;
  gemm_case_check_clean();
  for (uint64_t k = 1; k <= calls; k++) {
    standin_lt->fail_at(k, fails.code);
    silent += live(&fails) == WEIR_OK;
    gemm_case_check_clean();
  }
  assert_in_range(silent, 1, calls - 1);
}

/* Gives freed blocks of the device back to CUDA: a new one needs the room. */
static void give_back(graph_case *c, size_t limit_bytes) {
  weir_device_buffer large;
  size_t used = c->d->vt->memory(c->d).used_bytes;
  assert_ok(c->d->vt->alloc(c->d, limit_bytes - used, &large, &c->err),
            &c->err);
  c->d->vt->free(c->d, &large);
}

/* Operand |k| of the chain is freed before the replay. */
static bool freed(int k) {
  enum { kLimit = 1 << 20 };
  graph_case c;
  open_case(&c, kLimit);
  weir_device_buffer *all[] = {&c.x, &c.y, &c.w,          &c.bias,      &c.z,
                               &c.t, &c.u, &c.scratch[0], &c.scratch[1]};
  float **host[] = {&c.in, &c.out};
  const int count = sizeof all / sizeof all[0];
  assert_ok(graph_case_capture(&c), &c.err);
  if (k < count) {
    c.d->vt->free(c.d, all[k]);
    give_back(&c, kLimit);
  } else {
    c.d->vt->host_free(c.d, *host[k - count]);
    *host[k - count] = NULL;
  }
  replay(&c, c.q, c.graph); /* it is done later */
  assert_false(atomic_load(&c.d->lost));
  assert_error(graph_case_wait(&c, c.q), &c.err, "W6004");
  assert_non_null(strstr(c.err.message, "an illegal memory access"));
  assert_true(atomic_load(&c.d->lost));
  graph_case_release(&c);
  gemm_case_check_clean();
  return k < count + 1;
}

static void freed_memory_loses_the_device(void **state) {
  (void)state;
  cuda_world_needs_standin("memory that is looked at after it was freed");
  int k = 0;
  while (freed(k)) k++;
  assert_int_equal(k, 9 + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(replays_give_what_calls_give),
      cmocka_unit_test(graphs_follow_each_other),
      cmocka_unit_test(graphs_are_ordered_by_events),
      cmocka_unit_test(other_threads_go_on),
      cmocka_unit_test(some_calls_break_a_capture),
      cmocka_unit_test(captures_begin_and_end),
      cmocka_unit_test(graphs_are_counted),
      cmocka_unit_test(every_call_fails_once),
      cmocka_unit_test(lost_at_any_call),
      cmocka_unit_test(every_call_of_cublaslt_fails_once),
      cmocka_unit_test(freed_memory_loses_the_device),
  };
  return cmocka_run_group_tests(tests, gemm_case_open, NULL);
}
