/* SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#include "runtime/exec/run/trace.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "tests/cuda/scene.h"

/* Edges between two GPUs, or two tasks on one: the bytes go from memory to
 * memory. */

enum { kSide = 32, kBytes = kSide * kSide * 4, kSmallSide = 4 };

/* Values of |%d| by |%d| that go there and back, and to several; |%s|: what is
 * where. */
static const char kNodes[] =
    "weir: 1\n"
    "nodes:\n"
    "  w: var([%d, %d], init=uniform(-1, 1))\n"
    "  a: matmul(w, w)\n"
    "  b: softmax(a)\n"
    "  c: matmul(a, w)\n"
    "  d: matmul(b, c)\n"
    "  e: transpose(d)\n"
    "  f: matmul(e, c)\n"
    "  g: matmul(f, b)\n"
    "  k: softmax(e)\n"
    "  l: matmul(k, b)\n"
    "  m: softmax(l)\n"
    "  h: matmul(g, matmul(m, d))\n"
    "  w2: assign(w, mul(w, 0.9))\n"
    "  s: reduce_sum(h)\n"
    "  n: reduce_sum(w2)\n"
    "outputs: [s, n]\n"
    "placement:\n%s";

#define AT(task, gpu) "'/job:worker/task:" task "/gpu:" gpu "'}\n"

/* Where the nodes are, on which cluster; how many edges are between two GPUs,
 * and how many between two tasks on one. */
typedef struct split {
  const char *cluster, *places;
  unsigned peers, within;
} split;

static const split kSplits[] = {
    {"worker=1,gpu=1", "  - {match: '*', device: 'gpu:0'}\n", 0, 0},
    /* w, a and e go there, c and f come back */
    {"worker=1,gpu=2",
     "  - {match: 'c', device: 'gpu:1'}\n"
     "  - {match: 'f', device: 'gpu:1'}\n"
     "  - {match: '*', device: 'gpu:0'}\n",
     5, 0},
    {"worker=2,gpu=1",
     "  - {match: 'c', device: " AT("1", "0") "  - {match: 'f', device: " AT(
         "1", "0") "  - {match: '*', device: " AT("0", "0"),
     0, 5},
    /* a to two, b to one, w, c and f within, d and e */
    {"worker=2,gpu=2",
     "  - {match: 'b', device: " AT("0", "1") "  - {match: 'c', device: " AT(
         "1", "0") "  - {match: 'e', device: " AT("1", "1") "  - {match: '*', "
                                                            "device: " AT("0",
                                                                          "0"),
     4, 3},
};

enum { kSplits_count = sizeof kSplits / sizeof *kSplits };

static const split *usable(int i) {
  return &kSplits[cuda_world_gpus() > 1 ? i : i == 2 ? 2 : 0];
}

static void open_split(scene *s, const split *how, int threads) {
  char text[2048];
  snprintf(text, sizeof text, kNodes, kSide, kSide, how->places);
  scene_open(s, text, how->cluster, threads);
}

/* Steps, whose outputs go to |sums|, if it is not NULL. */
static weir_status run_steps(scene *s, int count, float *sums) {
  weir_status status = WEIR_OK;
  for (int i = 0; i < count && status == WEIR_OK; i++) {
    weir_exec_fetch fetches[kOutputs] = {0};
    weir_run_options options = {.step = (uint64_t)i};
    status = scene_run(s, fetches, &options);
    if (status == WEIR_OK && sums != NULL)
      sums[i] = *(const float *)fetches[0].tensor->data;
    scene_drop(s, fetches);
  }
  return status;
}

static void steps(scene *s, int count, float *sums) {
  assert_ok(run_steps(s, count, sums), &s->err);
}

/* ---- Values */

enum { kSteps = 6 };

static void values_are_those_of_one_gpu(void **state) {
  (void)state;
  float want[kSteps], got[kSteps];
  scene one;
  open_split(&one, &kSplits[0], 1);
  steps(&one, kSteps, want);
  scene_close(&one);
  for (int i = 1; i < kSteps; i++) assert_true(want[i] != want[i - 1]);
  for (int i = 0; i < 24; i++) {
    scene s;
    if (standin != NULL) standin->set_seed((uint64_t)i);
    open_split(&s, usable(1 + i % (kSplits_count - 1)), 1 + i % 4);
    steps(&s, kSteps, got);
    for (int k = 0; k < kSteps; k++)
      if (memcmp(&got[k], &want[k], sizeof *got) != 0)
        fail_msg("round %d: sum %d is %g, not %g", i, k, (double)got[k],
                 (double)want[k]);
    scene_close(&s);
  }
}

/* ---- Ways */

static void no_byte_goes_through_the_host(void **state) {
  (void)state;
  cuda_world_needs_standin("counts of copied bytes");
  for (int i = 0; i < kSplits_count; i++) {
    const split *how = &kSplits[i];
    scene s;
    open_split(&s, how, 2);
    steps(&s, 3, NULL);
    for (int k = 0; k < 4; k++) {
      standin_counts before = standin->counts();
      steps(&s, 1, NULL);
      standin_counts after = standin->counts();
      assert_int_equal(after.peer_copies - before.peer_copies, how->peers);
      assert_int_equal(after.peer_bytes - before.peer_bytes,
                       how->peers * kBytes);
      assert_int_equal(after.within_bytes - before.within_bytes,
                       how->within * kBytes);
      /* blocks of tasks, and the sum */
      assert_true(after.host_bytes - before.host_bytes < kBytes / 2);
      assert_true(after.graph_launches > before.graph_launches);
      assert_int_equal(after.mallocs, before.mallocs);
    }
    scene_close(&s);
  }
}

/* One GPU after the other has ways of its own to the others, a second session
 * too; where there are none, the values are the same. */
static void ways_between_gpus_are_opened(void **state) {
  (void)state;
  cuda_world_needs_standin("counts of copies that go through the host");
  float sums[3][2];
  for (int i = 0; i < 3; i++) {
    scene s;
    if (i == 2) standin->set_ways(false);
    open_split(&s, &kSplits[1], 2);
    uint64_t far = standin->counts().far_copies;
    steps(&s, 2, sums[i]);
    far = standin->counts().far_copies - far;
    assert_int_equal(far, i == 2 ? 2 * kSplits[1].peers : 0);
    assert_memory_equal(sums[i], sums[0], sizeof sums[0]);
    scene_close(&s);
  }
}

/* A receive's row is its copy, from when both ends have come. */
static void traces_have_a_row_for_each_copy(void **state) {
  (void)state;
  cuda_world_needs_standin("two GPUs");
  const split *how = &kSplits[1];
  scene s;
  weir_trace *trace = NULL;
  weir_exec_fetch fetches[kOutputs] = {0};
  unsigned copies = 0, sends = 0;
  open_split(&s, how, 2);
  assert_ok(weir_exec_trace_create(&s.world.env, 256, &trace, &s.err), &s.err);
  weir_run_options options = {.trace = trace};
  assert_ok(scene_run(&s, fetches, &options), &s.err);
  scene_drop(&s, fetches);
  for (size_t i = 0; i < weir_trace_count(trace); i++) {
    weir_trace_event e = weir_trace_event_at(trace, i);
    assert_true(e.end_ns >= e.start_ns && e.start_ns > 0);
    sends += strcmp(e.category, "send") == 0;
    if (strcmp(e.category, "recv") != 0) continue;
    assert_string_equal(e.kernel, "copy.gpu_to_gpu");
    copies++;
  }
  assert_int_equal(copies, how->peers);
  assert_int_equal(sends, how->peers);
  weir_exec_trace_release(trace);
  scene_close(&s);
}

static void nothing_is_copied_for_no_bytes(void **state) {
  (void)state;
  cuda_world_needs_standin("two GPUs, and counts of copies");
  scene s;
  weir_exec_fetch fetches[kOutputs] = {0};
  scene_open(&s,
             "weir: 1\n"
             "inputs: {x: 'f32[0, 4] = zeros([0, 4])', "
             "v: 'f32[2, 3] = ones([2, 3])'}\n"
             "nodes:\n"
             "  y: transpose(x)\n"
             "  z: transpose(y)\n"
             "  a: transpose(v)\n"
             "  b: transpose(a)\n"
             "outputs: [z, b]\n"
             "placement:\n"
             "  - {match: 'z', device: 'gpu:1'}\n"
             "  - {match: 'b', device: 'gpu:1'}\n"
             "  - {match: '*', device: 'gpu:0'}\n",
             "worker=1,gpu=2", 2);
  for (int i = 0; i < 4; i++) {
    assert_ok(scene_run(&s, fetches, NULL), &s.err);
    assert_int_equal(fetches[0].tensor->bytes, 0);
    scene_drop(&s, fetches);
  }
  assert_int_equal(standin->counts().peer_copies, 4); /* of a */
  scene_close(&s);
}

/* ---- Failures */

/* q fails, and so do its readers, there and back; o does not. */
static void failures_cross_and_nothing_else(void **state) {
  (void)state;
  cuda_world_needs_standin("two GPUs");
  for (int threads = 1; threads <= 3; threads++) {
    scene s;
    weir_error told[4];
    weir_exec_fetch fetches[kOutputs] = {0};
    scene_open(&s,
               "weir: 1\n"
               "inputs: {n: 'i32[300] = range(0, 300)'}\n"
               "nodes:\n"
               "  x: reshape(n, [30, 10])\n"
               "  q: div(600, sub(x, 77))\n"
               "  r: transpose(q)\n"
               "  t: transpose(r)\n"
               "  o: transpose(x)\n"
               "outputs: [q, r, t, o]\n"
               "placement:\n"
               "  - {match: 'r', device: 'gpu:1'}\n"
               "  - {match: 'o', device: 'gpu:1'}\n"
               "  - {match: '*', device: 'gpu:0'}\n",
               "worker=1,gpu=2", threads);
    standin->set_seed((uint64_t)threads);
    for (int i = 0; i < 4; i++) {
      for (int k = 0; k < 4; k++) {
        told[k] = (weir_error)WEIR_ERROR_INIT;
        fetches[k].error = &told[k];
      }
      assert_true(scene_run(&s, fetches, NULL) != WEIR_OK);
      for (int k = 0; k < 3; k++) {
        assert_string_equal(told[k].id, "W5003");
        assert_string_equal(told[k].node, "q");
      }
      assert_ok(fetches[3].status, &told[3]);
      assert_int_equal(((const int32_t *)fetches[3].tensor->data)[299], 299);
      scene_drop(&s, fetches);
    }
    assert_true(standin->counts().peer_copies > 0);
    scene_close(&s);
  }
}

/* And the next run is whole. */
static void stopped_runs_end(void **state) {
  (void)state;
  atomic_bool cancel;
  float want, got;
  scene s;
  weir_exec_fetch fetches[kOutputs] = {0};
  atomic_init(&cancel, true);
  open_split(&s, &kSplits[0], 1);
  steps(&s, 1, &want);
  scene_close(&s);
  open_split(&s, usable(1), 2);
  weir_run_options late = {.deadline_ns = 1}, off = {.cancel = &cancel};
  assert_error(scene_run(&s, fetches, &late), &s.err, "W5006");
  scene_drop(&s, fetches);
  assert_error(scene_run(&s, fetches, &off), &s.err, "W5005");
  scene_drop(&s, fetches);
  steps(&s, 1, &got);
  assert_memory_equal(&got, &want, sizeof got);
  scene_close(&s);
}

/* ---- Sweeps: open, run, close; a life with a fault fails, or has the values
 * of one without */

enum { kLifeSteps = 4 };

typedef struct sound_life {
  char text[2048];
  uint64_t calls, allocations;
  float sums[kLifeSteps];
} sound_life;

static weir_status life(scene *s, float *sums) {
  weir_status status = scene_open_session(s, kSplits[1].cluster);
  return status == WEIR_OK ? run_steps(s, kLifeSteps, sums) : status;
}

static sound_life make_sound_life(void) {
  sound_life l;
  scene s;
  snprintf(l.text, sizeof l.text, kNodes, kSmallSide, kSmallSide,
           kSplits[1].places);
  scene_open_graph(&s, l.text, 2);
  uint64_t calls = standin->counts().calls;
  uint64_t made = atomic_load(&s.world.memory.calls);
  assert_ok(life(&s, l.sums), &s.err);
  l.calls = standin->counts().calls - calls;
  l.allocations = atomic_load(&s.world.memory.calls) - made;
  assert_int_equal(standin->counts().peer_copies,
                   kLifeSteps * kSplits[1].peers);
  scene_close(&s);
  return l;
}

static weir_status check_life(const sound_life *l, scene *s, uint64_t k) {
  float sums[kLifeSteps];
  weir_status status = life(s, sums);
  if (status == WEIR_OK && memcmp(sums, l->sums, sizeof sums) != 0)
    fail_msg("fault %d: no error, and other values", (int)k);
  return status;
}

static void calls_fail_once(void **state) {
  (void)state;
  cuda_world_needs_standin("calls that fail when they are told to");
  const sound_life l = make_sound_life();
  for (uint64_t k = 1; k <= l.calls; k += 2) {
    scene s;
    scene_open_graph(&s, l.text, 1 + (int)(k / 2 % 2));
    standin->set_seed(k % 3);
    standin->fail_at(k, cudaErrorInvalidValue);
    if (check_life(&l, &s, k) != WEIR_OK) assert_true(s.err.id[0] == 'W');
    scene_close(&s);
  }
}

static void lost_gpus_end_runs(void **state) {
  (void)state;
  cuda_world_needs_standin("GPUs that are lost when they are told to");
  const sound_life l = make_sound_life();
  for (uint64_t k = 1; k <= l.calls; k += 3) {
    scene s;
    scene_open_graph(&s, l.text, 2);
    standin->set_seed(k % 3);
    standin->lose_at(k, cudaErrorECCUncorrectable);
    if (check_life(&l, &s, k) != WEIR_OK) assert_true(s.err.id[0] == 'W');
    scene_close_lost(&s);
  }
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  cuda_world_needs_standin("two GPUs, and a start that takes no time");
  const sound_life l = make_sound_life();
  for (uint64_t k = 1; k <= l.allocations; k = scene_next(k)) {
    scene s;
    scene_open_graph(&s, l.text, 2);
    s.world.memory.fail_at = atomic_load(&s.world.memory.calls) + k;
    weir_status status = check_life(&l, &s, k);
    s.world.memory.fail_at = 0;
    if (status != WEIR_OK && strcmp(s.err.id, "W6001") != 0)
      fail_msg("allocation %d: %s %s", (int)k, s.err.id, s.err.message);
    scene_close(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_are_those_of_one_gpu),
      cmocka_unit_test(no_byte_goes_through_the_host),
      cmocka_unit_test(ways_between_gpus_are_opened),
      cmocka_unit_test(traces_have_a_row_for_each_copy),
      cmocka_unit_test(nothing_is_copied_for_no_bytes),
      cmocka_unit_test(failures_cross_and_nothing_else),
      cmocka_unit_test(stopped_runs_end),
      cmocka_unit_test(calls_fail_once),
      cmocka_unit_test(lost_gpus_end_runs),
      cmocka_unit_test(every_allocation_fails_once),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
