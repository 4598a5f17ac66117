/* SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/run/trace.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "tests/cuda/scene.h"

/* Sessions whose nodes are on GPUs. */

/* ---- Options */

/* 1 + 2^-12 is 1 in TF32, and a sum of products of f32 keeps it. One line for
 * each way to a product, and one of f64, which is none of f32. */
static const char kProducts[] =
    "weir: 1\n"
    "inputs: {x: 'f32[16, 16] = 1.000244140625'}\n"
    "nodes:\n"
    "  i: eye(16)\n"
    "  a: matmul(x, i)\n"
    "  b: relu(add(matmul(x, i), 0))\n"
    "  c: einsum(x, i, equation='ij,jk->ki')\n"
    "  d: cast(matmul(cast(x, dtype=f64), cast(i, dtype=f64)), dtype=f32)\n"
    "outputs: [a, b, c, d]\n"
    "placement: [{match: '*', device: 'gpu:0', soft: true}]\n";

static void factors_are_rounded_where_that_is_allowed(void **state) {
  (void)state;
  for (int tf32 = 0; tf32 < 2; tf32++) {
    scene s;
    weir_exec_fetch fetches[kOutputs] = {0};
    scene_open_graph(&s, kProducts, 1);
    s.tf32 = tf32 != 0;
    assert_ok(scene_open_session(&s, "worker=1,gpu=1"), &s.err);
    assert_ok(scene_run(&s, fetches, NULL), &s.err);
    for (uint32_t o = 0; o < s.graph->output_count; o++) {
      const float *y = fetches[o].tensor->data;
      bool rounds = tf32 != 0 && o < 3;
      if (y[0] == 1 && rounds) continue;
      if (y[0] == 1.000244140625F && (!rounds || standin == NULL)) continue;
      fail_msg("tf32 %d, output %u: %.9g", tf32, o, y[0]);
    }
    scene_drop(&s, fetches);
    scene_close(&s);
  }
}

/* ---- Values */

/* Nodes on two GPUs and the CPU; |%s|: what of the graph is on which. */
static const char kNodes[] =
    "weir: 1\n"
    "inputs: {x: 'f32[8, 6] = uniform(-1, 1, seed=3)'}\n"
    "nodes:\n"
    "  w: var([6], init=uniform(-1, 1))\n"
    "  v: var([8, 6], init=uniform(-1, 1))\n"
    "  a: mul(x, w)\n"
    "  b: tanh(add(a, v))\n"
    "  c: add(a, b)\n"
    "  d: sub(c, x)\n"
    "  e: max(d, b)\n"
    "  k: mul(e, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])\n"
    "  w2: assign(w, mul(w, 0.5))\n"
    "  v2: assign_add(v, k)\n"
    "outputs: [c, e, k, w2, v2, x]\n"
    "placement:\n%s";

/* The first needs one GPU, the last none. */
static const char *const kPlaces[] = {"  - {match: '*', device: 'gpu:0'}\n",
                                      "  - {match: 'v', device: 'gpu:1'}\n"
                                      "  - {match: 'w', device: 'cpu:0'}\n"
                                      "  - {match: 'c', device: 'cpu:0'}\n"
                                      "  - {match: '*', device: 'gpu:0'}\n",
                                      "  - {match: 'w', device: 'gpu:1'}\n"
                                      "  - {match: 'a', device: 'gpu:0'}\n"
                                      "  - {match: 'k', device: 'gpu:0'}\n"
                                      "  - {match: '*', device: 'cpu:0'}\n",
                                      "  - {match: '*', device: 'cpu:0'}\n"};

static void run_steps(scene *s, int steps, weir_tensor *out[][kOutputs]) {
  for (int i = 0; i < steps; i++) {
    weir_exec_fetch fetches[kOutputs] = {0};
    weir_run_options options = {.step = (uint64_t)i};
    assert_ok(scene_run(s, fetches, &options), &s->err);
    for (uint32_t k = 0; k < s->graph->output_count; k++)
      out[i][k] = fetches[k].tensor;
  }
}

/* But for tanh, whose products the host's compiler may join otherwise. */
static void check_near(const weir_tensor *got, const weir_tensor *want) {
  const float *a = got->data, *b = want->data;
  assert_int_equal(got->bytes, want->bytes);
  for (size_t i = 0; i < got->bytes / sizeof *a; i++)
    if (!(fabsf(a[i] - b[i]) <= 4e-6f * (1 + fabsf(b[i]))))
      fail_msg("element %zu is %g, not %g", i, a[i], b[i]);
}

static void values_are_the_hosts(void **state) {
  enum { kSteps = 7 };
  (void)state;
  const int kHost = sizeof kPlaces / sizeof *kPlaces - 1;
  const int places = cuda_world_gpus() > 1 ? kHost : 1;
  const char *cluster = places > 1 ? "worker=1,gpu=2" : "worker=1,gpu=1";
  char text[2048];
  weir_tensor *want[kSteps][kOutputs], *got[kSteps][kOutputs];
  scene host;
  snprintf(text, sizeof text, kNodes, kPlaces[kHost]);
  scene_open(&host, text, cluster, 1);
  run_steps(&host, kSteps, want);
  for (int i = 0; i < 12; i++) {
    scene s;
    snprintf(text, sizeof text, kNodes, kPlaces[i % places]);
    if (standin != NULL) standin->set_seed((uint64_t)i);
    if (standin != NULL) standin->set_check_launches(true);
    scene_open(&s, text, cluster, 1 + i % 4);
    run_steps(&s, kSteps, got);
    if (standin != NULL) assert_true(standin->counts().launches > 0);
    for (int step = 0; step < kSteps; step++)
      for (uint32_t k = 0; k < s.graph->output_count; k++) {
        check_near(got[step][k], want[step][k]);
        weir_tensor_unref(got[step][k]);
      }
    scene_close(&s);
  }
  for (int step = 0; step < kSteps; step++)
    for (uint32_t k = 0; k < host.graph->output_count; k++)
      weir_tensor_unref(want[step][k]);
  scene_close(&host);
}

/* ---- Variables */

static const char kCounter[] =
    "weir: 1\n"
    "nodes:\n"
    "  w: var([3], init=ones([3]))\n"
    "  w2: assign(w, add(w, w))\n"
    "outputs: [w2]\n"
    "placement:\n"
    "  - {match: '*', device: 'gpu:0'}\n";

static float first_of(scene *s, const char *name) {
  weir_tensor *t = NULL;
  assert_ok(
      weir_exec_variable_get(s->session, scene_node(s, name), &t, &s->err),
      &s->err);
  float value = *(const float *)t->data;
  weir_tensor_unref(t);
  return value;
}

static void variables_are_read_and_set(void **state) {
  (void)state;
  scene s;
  weir_exec_fetch fetches[kOutputs] = {0};
  weir_tensor *kept = NULL, *set = NULL;
  const int64_t dims[] = {3};
  weir_shape shape = weir_shape_of(1, dims);
  scene_open(&s, kCounter, "worker=1,gpu=1", 2);
  assert_true(first_of(&s, "w") == 1.0f);
  for (int i = 0; i < 3; i++) {
    assert_ok(scene_run(&s, fetches, NULL), &s.err);
    scene_drop(&s, fetches);
  }
  assert_ok(weir_exec_variable_snapshot(s.session, scene_node(&s, "w"), &kept,
                                        &s.err),
            &s.err);
  assert_ok(scene_run(&s, fetches, NULL), &s.err);
  scene_drop(&s, fetches);
  assert_true(*(const float *)kept->data == 8.0f);
  assert_true(first_of(&s, "w") == 16.0f);
  weir_tensor_unref(kept);
  assert_ok(weir_tensor_create_shaped(s.world.env.alloc, WEIR_F32, &shape, &set,
                                      &s.err),
            &s.err);
  for (int i = 0; i < 3; i++) ((float *)set->data)[i] = 5.0f;
  assert_ok(weir_exec_variable_set(s.session, scene_node(&s, "w"), set, &s.err),
            &s.err);
  assert_ok(scene_run(&s, fetches, NULL), &s.err);
  assert_true(*(const float *)fetches[0].tensor->data == 10.0f);
  scene_drop(&s, fetches);
  weir_tensor_unref(set);
  scene_close(&s);
}

/* ---- Failures */

/* The division fails, on whatever device. */
static const char kDivision[] =
    "weir: 1\n"
    "inputs: {n: 'i32[300] = range(0, 300)'}\n"
    "nodes:\n"
    "  w: var([2], init=ones([2]))\n"
    "  q: div(600, sub(n, 77))\n"
    "  r: add(q, n)\n"
    "  o: add(n, n)\n"
    "  w2: assign(w, add(w, w))\n"
    "outputs: [q, r, o, w2]\n"
    "placement:\n"
    "  - {match: '*', device: '%s'}\n";

static void refused_data_is_the_hosts_error(void **state) {
  (void)state;
  weir_error told[2][4];
  for (int gpu = 0; gpu < 2; gpu++) {
    scene s;
    char text[1024];
    weir_exec_fetch fetches[kOutputs] = {0};
    snprintf(text, sizeof text, kDivision, gpu ? "gpu:0" : "cpu:0");
    scene_open(&s, text, "worker=1,gpu=1", 2);
    for (int k = 0; k < 4; k++) {
      told[gpu][k] = (weir_error)WEIR_ERROR_INIT;
      fetches[k].error = &told[gpu][k];
    }
    assert_true(scene_run(&s, fetches, NULL) != WEIR_OK);
    assert_ok(fetches[2].status, &told[gpu][2]);
    assert_int_equal(((const int32_t *)fetches[2].tensor->data)[299], 598);
    scene_drop(&s, fetches);
    assert_true(first_of(&s, "w") == 1.0f); /* no step */
    scene_close(&s);
  }
  for (int k = 0; k < 2; k++) {
    assert_string_equal(told[0][k].id, told[1][k].id);
    assert_string_equal(told[0][k].message, told[1][k].message);
    assert_string_equal(told[0][k].node, told[1][k].node);
  }
}

static void nan_is_trapped(void **state) {
  (void)state;
  scene s;
  char text[1024];
  weir_exec_fetch fetches[kOutputs] = {0};
  weir_run_options options = {.trap_nan = true};
  snprintf(text, sizeof text,
           "weir: 1\ninputs: {x: 'f32[4] = zeros([4])'}\nnodes:\n"
           "  a: sub(x, 1)\n  b: log(a)\n  c: exp(b)\noutputs: [c, a]\n"
           "placement:\n  - {match: '*', device: 'gpu:0'}\n");
  scene_open(&s, text, "worker=1,gpu=1", 2);
  assert_error(scene_run(&s, fetches, &options), &s.err, "W5004");
  assert_string_equal(s.err.node, "b");
  scene_drop(&s, fetches);
  scene_close(&s);
}

static void traces_have_a_row_for_the_gpu(void **state) {
  enum { kAddNs = STANDIN_LAUNCH_NS + 256 }; /* a block of threads */
  (void)state;
  scene s;
  weir_trace *trace = NULL;
  weir_exec_fetch fetches[kOutputs] = {0};
  scene_open(&s, kCounter, "worker=1,gpu=1", 1);
  assert_ok(weir_exec_trace_create(&s.world.env, 64, &trace, &s.err), &s.err);
  weir_run_options options = {.trace = trace};
  assert_ok(scene_run(&s, fetches, &options), &s.err);
  scene_drop(&s, fetches);
  bool met = false;
  for (size_t i = 0; i < weir_trace_count(trace); i++) {
    weir_trace_event e = weir_trace_event_at(trace, i);
    met = met || (e.kernel != NULL && strstr(e.kernel, "gpu.add") != NULL);
    assert_true(strstr(e.device.data, "GPU:0") != NULL);
    assert_true(e.end_ns >= e.start_ns);
    /* The GPU's own time of the work, the price of marks taken out. */
    assert_true(e.by_device);
    if (standin != NULL && strstr(e.kernel, "gpu.add") != NULL)
      assert_int_equal(e.end_ns - e.start_ns, kAddNs);
    if (standin != NULL && strcmp(e.category, "fetch") == 0)
      assert_int_equal(e.end_ns - e.start_ns, STANDIN_COPY_NS);
  }
  assert_true(met);
  weir_exec_trace_release(trace);
  scene_close(&s);
}

/* ---- Steps that are kept */

static const char kSteady[] =
    "weir: 1\n"
    "inputs: {x: 'f32[3] = ones([3])'}\n"
    "nodes:\n"
    "  w: var([3], init=ones([3]))\n"
    "  s: mul(w, x)\n"
    "  w2: assign(w, add(w, s))\n"
    "  a, b, c: lstm(reshape(s, [1, 3, 1]), ones([1, 8]), ones([2, 8]))\n"
    "  d, e: gru(a, ones([2, 6]), ones([2, 6]))\n"
    "  f, g: rnn(d, ones([2, 1]), ones([1, 1]))\n"
    "outputs: [s, w2, f]\n"
    "placement:\n"
    "  - {match: '*', device: 'gpu:0'}\n";

static void a_steady_step_is_one_call(void **state) {
  (void)state;
  scene s;
  weir_exec_fetch fetches[kOutputs] = {0};
  scene_open(&s, kSteady, "worker=1,gpu=1", 1);
  for (int i = 0; i < 8; i++) {
    standin_counts before = {0};
    if (standin != NULL) before = standin->counts();
    assert_ok(scene_run(&s, fetches, NULL), &s.err);
    float got = *(const float *)fetches[0].tensor->data;
    if (got != (float)(1 << i)) fail_msg("step %d: %g", i, got);
    scene_drop(&s, fetches);
    if (standin == NULL || i < 4) continue;
    standin_counts after = standin->counts();
    assert_int_equal(after.graph_launches - before.graph_launches, 1);
    /* the GPU made this thread's, the graph, the mark; and the wait */
    assert_int_equal(after.calls - before.calls, 6);
    assert_int_equal(after.mallocs, before.mallocs);
  }
  scene_close(&s);
}

/* The pool copies them. */
static void large_outputs_are_whole(void **state) {
  (void)state;
  scene s;
  weir_exec_fetch fetches[kOutputs] = {0};
  scene_open(&s,
             "weir: 1\n"
             "inputs: {n: 'i32[300000] = range(0, 300000)'}\n"
             "nodes:\n  y: add(n, n)\noutputs: [y]\n"
             "placement:\n  - {match: '*', device: 'gpu:0'}\n",
             "worker=1,gpu=1", 3);
  for (int i = 0; i < 4; i++) {
    assert_ok(scene_run(&s, fetches, NULL), &s.err);
    const int32_t *y = fetches[0].tensor->data;
    for (int k = 0; k < 300000; k++)
      if (y[k] != 2 * k) fail_msg("run %d: element %d is %d", i, k, (int)y[k]);
    scene_drop(&s, fetches);
  }
  scene_close(&s);
}

/* ---- Sweeps: open, run, read a variable, close */

enum { kLifeElements = 8 * 6 };

/* Loops that the host decides about, and one that it does not. */
static const char kLoops[] =
    "weir: 1\n"
    "nodes:\n"
    "  v: var([8, 6], init=uniform(0, 1))\n"
    "  l: {scan: {over: {e: v}, axis: 1, length: 6, carry: {s: 'zeros([8])'},\n"
    "    next: {s: e}, stack: {y: s}}}\n"
    "  m: {while: {carry: {t: l.y}, cond: 'less(reduce_max(t), 1)',\n"
    "    next: {t: 'add(t, 1)'}}}\n"
    "  v2: assign_add(v, m.t)\n"
    "outputs: [v2]\n"
    "placement:\n"
    "  - {match: '*', device: 'gpu:0'}\n";

/* |v|: the variable of that name after it. */
static weir_status life(scene *s, float v[kLifeElements]) {
  weir_status status = scene_open_session(s, "worker=1,gpu=2");
  for (int i = 0; i < 5 && status == WEIR_OK; i++) {
    weir_exec_fetch fetches[kOutputs] = {0};
    status = scene_run(s, fetches, NULL);
    scene_drop(s, fetches);
  }
  weir_tensor *t = NULL;
  if (status == WEIR_OK)
    status =
        weir_exec_variable_get(s->session, scene_node(s, "v"), &t, &s->err);
  if (status == WEIR_OK) memcpy(v, t->data, kLifeElements * sizeof *v);
  weir_tensor_unref(t);
  return status;
}

/* One without a fault. */
typedef struct sound_life {
  char text[2048];
  uint64_t calls, allocations;
  float v[kLifeElements];
} sound_life;

static sound_life make_sound_life(bool loops) {
  sound_life l;
  scene s;
  if (loops)
    snprintf(l.text, sizeof l.text, "%s", kLoops);
  else
    snprintf(l.text, sizeof l.text, kNodes, kPlaces[1]);
  scene_open_graph(&s, l.text, 2);
  uint64_t before = standin->counts().calls;
  uint64_t made = atomic_load(&s.world.memory.calls);
  assert_ok(life(&s, l.v), &s.err);
  l.calls = standin->counts().calls - before;
  l.allocations = atomic_load(&s.world.memory.calls) - made;
  scene_close(&s);
  return l;
}

/* A life with a fault fails, or has the values of one without. */
static weir_status check_life(const sound_life *l, scene *s, uint64_t k) {
  float v[kLifeElements];
  weir_status status = life(s, v);
  if (status == WEIR_OK && memcmp(v, l->v, sizeof v) != 0)
    fail_msg("fault %d: no error, and other values", (int)k);
  return status;
}

static void fail_calls(bool loops) {
  static const int kCodes[] = {cudaErrorInvalidValue,
                               cudaErrorMemoryAllocation};
  const sound_life l = make_sound_life(loops);
  for (uint64_t k = 1; k <= l.calls; k = scene_next(k)) {
    scene s;
    scene_open_graph(&s, l.text, 1 + (int)(k % 2));
    standin->set_seed(k % 3);
    standin->fail_at(k, kCodes[k % 2]);
    if (check_life(&l, &s, k) != WEIR_OK) assert_true(s.err.id[0] == 'W');
    scene_close(&s);
  }
}

static void every_call_fails_once(void **state) {
  (void)state;
  cuda_world_needs_standin("calls that fail when they are told to");
  for (int loops = 0; loops < 2; loops++) fail_calls(loops != 0);
}

static void lose_gpus(bool loops) {
  const sound_life l = make_sound_life(loops);
  for (uint64_t k = 1; k <= l.calls; k += 3) {
    scene s;
    scene_open_graph(&s, l.text, 2);
    standin->lose_at(k, cudaErrorECCUncorrectable);
    if (check_life(&l, &s, k) != WEIR_OK) assert_true(s.err.id[0] == 'W');
    scene_close_lost(&s);
  }
}

static void lost_gpus_end_runs(void **state) {
  (void)state;
  cuda_world_needs_standin("GPUs that are lost when they are told to");
  for (int loops = 0; loops < 2; loops++) lose_gpus(loops != 0);
}

static void fail_allocations(bool loops) {
  const sound_life l = make_sound_life(loops);
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

static void every_allocation_fails_once(void **state) {
  (void)state;
  cuda_world_needs_standin("two GPUs, and a start that takes no time");
  for (int loops = 0; loops < 2; loops++) fail_allocations(loops != 0);
}

static void missing_gpu_is_an_error(void **state) {
  (void)state;
  cuda_world_needs_standin("GPUs that go away");
  scene s;
  weir_exec_fetch fetches[kOutputs] = {0};
  scene_open_graph(&s, kCounter, 1);
  standin->set_devices(0);
  assert_ok(scene_open_session(&s, "worker=1,gpu=1"), &s.err);
  assert_error(scene_run(&s, fetches, NULL), &s.err, "W6004");
  scene_drop(&s, fetches);
  scene_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(factors_are_rounded_where_that_is_allowed),
      cmocka_unit_test(values_are_the_hosts),
      cmocka_unit_test(variables_are_read_and_set),
      cmocka_unit_test(refused_data_is_the_hosts_error),
      cmocka_unit_test(nan_is_trapped),
      cmocka_unit_test(traces_have_a_row_for_the_gpu),
      cmocka_unit_test(a_steady_step_is_one_call),
      cmocka_unit_test(large_outputs_are_whole),
      cmocka_unit_test(every_call_fails_once),
      cmocka_unit_test(lost_gpus_end_runs),
      cmocka_unit_test(every_allocation_fails_once),
      cmocka_unit_test(missing_gpu_is_an_error),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
