/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "tests/cuda/scene.h"
#include "tests/exec/control_cases.h"

/* scan, while and if on a GPU: the values of the cases that the host has too;
 * random numbers of turns; gradients; what bodies refuse; which steps are
 * graphs. */

enum { kRuns = 5 };

static const char kThere[] = "placement:\n  - {match: '*', device: 'gpu:0'}\n";

/* |text| on a GPU, or, with |host|, on the CPU. */
static void open_on(scene *s, const char *text, bool host, int threads) {
  char all[8192];
  snprintf(all, sizeof all, "%s%s", text, host ? "" : kThere);
  scene_open(s, all, "worker=1,gpu=1", threads);
}

static standin_counts counts(void) {
  return standin != NULL ? standin->counts() : (standin_counts){0};
}

/* Whether the graph has a node whose way depends on data. */
static bool asks(const control_case *c) {
  return strstr(c->text, "while:") != NULL || strstr(c->text, "if:") != NULL;
}

static void values_by_hand(void **state) {
  uint64_t launches = 0;
  (void)state;
  for (size_t i = 0; i < control_case_count; i++) {
    const control_case *c = &control_cases[i];
    scene s;
    if (standin != NULL) standin->set_seed(i);
    if (standin != NULL) standin->set_check_launches(true);
    open_on(&s, c->text, false, 1 + (int)(i % 3));
    for (int run = 0; run < kRuns; run++) {
      weir_exec_fetch fetches[kOutputs] = {0};
      assert_ok(scene_run(&s, fetches, NULL), &s.err);
      for (uint32_t k = 0; k < s.graph->output_count; k++)
        control_case_check(c, "a GPU", k, fetches[k].tensor);
      scene_drop(&s, fetches);
    }
    if (standin != NULL) {
      launches += counts().launches;
      if (asks(c) == (counts().graph_launches > 0))
        fail_msg("%s: %d launches of graphs", c->name,
                 (int)counts().graph_launches);
    }
    scene_close(&s);
  }
  if (standin != NULL) assert_true(launches > 20 * control_case_count);
}

/* ---- Against the host */

/* Both devices' outputs, within |bound| of the largest; 0: the same bits. */
static void check_same(const char *text, float bound) {
  scene host, gpu;
  open_on(&host, text, true, 1);
  open_on(&gpu, text, false, 2);
  for (int run = 0; run < kRuns; run++) {
    weir_exec_fetch want[kOutputs] = {0}, got[kOutputs] = {0};
    const weir_run_options options = {.step = (uint64_t)run};
    assert_ok(scene_run(&host, want, &options), &host.err);
    assert_ok(scene_run(&gpu, got, &options), &gpu.err);
    for (uint32_t k = 0; k < gpu.graph->output_count; k++) {
      const float *a = got[k].tensor->data, *b = want[k].tensor->data;
      assert_int_equal(got[k].tensor->bytes, want[k].tensor->bytes);
      for (size_t i = 0; i < want[k].tensor->bytes / sizeof *a; i++)
        if (!(fabsf(a[i] - b[i]) <= bound * (1 + fabsf(b[i]))))
          fail_msg("run %d: output %u[%zu] is %.9g, not %.9g", run, k, i, a[i],
                   b[i]);
    }
    scene_drop(&host, want);
    scene_drop(&gpu, got);
  }
  scene_close(&gpu);
  scene_close(&host);
}

/* Each turn of each step has numbers of its own, in nested loops too. */
static void turns_draw_as_on_the_host(void **state) {
  (void)state;
  check_same(
      "weir: 1\n"
      "nodes:\n"
      "  a:\n"
      "    scan:\n"
      "      length: 3\n"
      "      nodes:\n"
      "        u: uniform(shape=[5])\n"
      "        b:\n"
      "          scan:\n"
      "            length: 2\n"
      "            reverse: true\n"
      "            nodes: {v: 'uniform(shape=[2])'}\n"
      "            stack: {v: v}\n"
      "      stack: {u: u, v: b.v}\n"
      "  w:\n"
      "    while:\n"
      "      carry: {t: 'zeros([4])'}\n"
      "      cond: less(reduce_max(t), 2)\n"
      "      next: {t: 'add(t, uniform(shape=[4]))'}\n"
      "  d:\n"
      "    scan:\n"
      "      length: 4\n"
      "      nodes: {y: 'dropout(ones([6]), keep=0.5, training=true)'}\n"
      "      stack: {y: y}\n"
      "outputs: [a.u, a.v, w.t, d.y]\n",
      0);
}

/* Slices that are no views. */
static void slices_of_every_axis(void **state) {
  (void)state;
  check_same(
      "weir: 1\n"
      "inputs: {x: 'f32[3, 5, 6] = uniform(-1, 1, seed=2)'}\n"
      "nodes:\n"
      "  mid:\n"
      "    scan:\n"
      "      over: {e: x}\n"
      "      axis: 1\n"
      "      carry: {s: 'zeros([3, 6])'}\n"
      "      next: {s: 'add(s, e)'}\n"
      "      stack: {y: 'mul(s, 2)', z: e}\n"
      "  last:\n"
      "    scan:\n"
      "      over: {e: x}\n"
      "      axis: 2\n"
      "      reverse: true\n"
      "      carry: {s: 'zeros([3, 5])'}\n"
      "      nodes: {t: 'add(s, e)'}\n"
      "      next: {s: t}\n"
      "      stack: {y: t, again: t}\n"
      "  g: gradients(reduce_sum(mul(mid.y, mid.z)), [x])\n"
      "outputs: [mid.y, mid.z, last.y, last.again, g]\n",
      2e-6f);
}

/* The gradient is a scan backwards, of stacks and with products. */
static void gradients_of_a_cell(void **state) {
  (void)state;
  check_same(
      "weir: 1\n"
      "params: {b: 5, t: 7, d: 6, n: 8}\n"
      "inputs: {x: 'f32[b, t, d] = uniform(-1, 1, seed=4)'}\n"
      "nodes:\n"
      "  w: var([d + n, n], init=glorot_uniform())\n"
      "  run:\n"
      "    scan:\n"
      "      over: {xt: x}\n"
      "      axis: 1\n"
      "      carry: {h: 'zeros([b, n])'}\n"
      "      nodes: {z: 'tanh(matmul(concat(xt, h, axis=-1), w))'}\n"
      "      next: {h: z}\n"
      "      stack: {y: z}\n"
      "  loss: reduce_mean(square(run.y))\n"
      "  g: gradients(loss, [w])\n"
      "  w2: assign(w, sub(w, g))\n"
      "outputs: [run.y, loss, g, w2]\n",
      1e-5f);
}

/* Its gradient is a scan with a count of turns, over stacks that the while did
 * not fill. */
static void gradients_of_a_while(void **state) {
  (void)state;
  check_same(
      "weir: 1\n"
      "inputs: {x: 'f32[2, 3] = uniform(0.5, 1, seed=6)'}\n"
      "nodes:\n"
      "  p:\n"
      "    while:\n"
      "      carry: {t: x}\n"
      "      cond: less(reduce_max(t), 9)\n"
      "      next: {t: 'mul(t, add(t, 1))'}\n"
      "      limit: 11\n"
      "  g: gradients(reduce_sum(p.t), [x])\n"
      "outputs: [p.t, g]\n",
      1e-5f);
}

/* ---- Failures */

/* A row of a table that is not there, in a while that it then decides about. */
static const char kRefused[] =
    "weir: 1\n"
    "inputs: {n: 'i32[4] = const([0, 2, 9, 1], dtype=i32)', x: 'f32[3, 2] = "
    "ones([3, 2])'}\n"
    "nodes:\n"
    "  rows:\n"
    "    scan:\n"
    "      over: {i: n}\n"
    "      nodes:\n"
    "        one: {if: {cond: 'greater_equal(i, 0)', then: {nodes: {row: "
    "'gather(x, i)'}, out: row}, else: {out: 'zeros([2])'}}}\n"
    "      stack: {y: one}\n"
    "  on:\n"
    "    while:\n"
    "      carry: {t: 'reduce_sum(rows.y)'}\n"
    "      cond: not_equal(t, 8)\n"
    "      next: {t: 'add(t, 0)'}\n"
    "  free: add(x, x)\n"
    "outputs: [rows.y, on.t, free]\n";

static void refused_data_is_the_hosts_error(void **state) {
  (void)state;
  weir_error told[2][3];
  for (int gpu = 0; gpu < 2; gpu++) {
    scene s;
    weir_exec_fetch fetches[kOutputs] = {0};
    open_on(&s, kRefused, !gpu, 2);
    for (int k = 0; k < 3; k++) {
      told[gpu][k] = (weir_error)WEIR_ERROR_INIT;
      fetches[k].error = &told[gpu][k];
    }
    assert_true(scene_run(&s, fetches, NULL) != WEIR_OK);
    assert_ok(fetches[2].status, &told[gpu][2]);
    assert_true(((const float *)fetches[2].tensor->data)[5] == 2);
    scene_drop(&s, fetches);
    scene_close(&s);
  }
  for (int k = 0; k < 2; k++) {
    assert_string_equal(told[0][k].id, told[1][k].id);
    assert_string_equal(told[0][k].message, told[1][k].message);
    assert_string_equal(told[0][k].node, told[1][k].node);
    assert_int_equal(told[0][k].line, told[1][k].line);
  }
}

static void nan_is_trapped_in_a_body(void **state) {
  (void)state;
  scene s;
  weir_exec_fetch fetches[kOutputs] = {0};
  const weir_run_options options = {.trap_nan = true};
  open_on(&s,
          "weir: 1\ninputs: {x: 'f32[3] = const([1, -2, 3], dtype=f32)'}\n"
          "nodes:\n  a:\n    scan:\n      over: {e: x}\n"
          "      nodes: {b: 'log(e)', c: 'matmul(reshape(b, [1, 1]), "
          "ones([1, 2]))'}\n"
          "      stack: {y: c}\noutputs: [a.y]\n",
          false, 2);
  assert_error(scene_run(&s, fetches, &options), &s.err, "W5004");
  assert_non_null(strstr(s.err.node, "b"));
  scene_drop(&s, fetches);
  scene_close(&s);
}

/* ---- Long loops */

static void long_loops_are_no_graph(void **state) {
  (void)state;
  cuda_world_needs_standin("counts of launches of graphs");
  scene s;
  open_on(&s,
          "weir: 1\nnodes:\n  a:\n    scan:\n      length: 10001\n"
          "      carry: {s: 'zeros([])', t: 'ones([])'}\n"
          "      next: {s: 'add(s, 1)', t: 'neg(t)'}\noutputs: [a.s, a.t]\n",
          false, 1);
  standin->set_check_launches(false);
  for (int run = 0; run < 3; run++) {
    weir_exec_fetch fetches[kOutputs] = {0};
    assert_ok(scene_run(&s, fetches, NULL), &s.err);
    assert_true(*(const float *)fetches[0].tensor->data == 10001);
    assert_true(*(const float *)fetches[1].tensor->data == -1);
    scene_drop(&s, fetches);
  }
  assert_int_equal(standin->counts().graph_launches, 0);
  scene_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_by_hand),
      cmocka_unit_test(turns_draw_as_on_the_host),
      cmocka_unit_test(slices_of_every_axis),
      cmocka_unit_test(gradients_of_a_cell),
      cmocka_unit_test(gradients_of_a_while),
      cmocka_unit_test(refused_data_is_the_hosts_error),
      cmocka_unit_test(nan_is_trapped_in_a_body),
      cmocka_unit_test(long_loops_are_no_graph),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
