/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/loop_eval.h"
#include "tests/train/loop_check.h"

/* The loop: epochs, evaluation, stop rules, and failures. */

static const weir_loop_options kNone = {.seed = 5};

static void trains_and_evaluates(void **state) {
  (void)state;
  loop_world w;
  weir_train_end end;
  weir_train_report r;
  assert_ok(loop_open(&w,
                      LOOP_ADAM "  epochs: 30\n"
                                "  eval: {data: test, every: 10 epochs, "
                                "metrics: [acc, loss]}\n",
                      2, kNone),
            &w.err);
  assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
  assert_int_equal(end, WEIR_TRAIN_END_EPOCHS);
  /* 13 examples are three batches of 4 and one of 1. */
  assert_int_equal(w.seen.steps, 120);
  assert_int_equal(w.seen.epochs, 30);
  assert_int_equal(w.seen.evals, 3);
  assert_true(w.seen.loss < 0.2 * w.seen.first_loss);
  assert_true(w.seen.metric == 1);
  assert_ok(weir_loop_eval(w.loop, NULL, &r, &w.err), &w.err);
  assert_int_equal(r.examples, 13);
  assert_int_equal(r.batches, 3); /* 5, 5, 3 */
  assert_true(r.values[0].value == 1 && r.values[1].value < 0.2);
  weir_train_progress now = weir_loop_now(w.loop);
  assert_int_equal(now.step, 120);
  assert_int_equal(now.examples, 390);
  assert_true(now.epoch == 30);
  loop_close(&w);
}

/* The average over examples is not that over batches. */
static void averages_count_examples(void **state) {
  (void)state;
  loop_world w;
  weir_train_report r;
  static const char text[] =
      "weir: 1\n"
      "inputs: {x: 'f32[?]'}\n"
      "nodes:\n"
      "  w: var([], init=zeros())\n"
      "  loss: mean(square(sub(x, w)))\n"
      "  m: mean(x)\n"
      "  lx: log(x)\n"
      "outputs: [m]\n"
      "data:\n"
      "  train: {source: memory, values: {x: [1, 2, 4, 8, 16]}, batch: 2}\n"
      "train:\n"
      "  minimize: loss\n"
      "  optimizer: sgd(lr=0)\n"
      "  eval: {data: train, metrics: [m, {name: p, perplexity: lx}]}\n";
  assert_ok(loop_open(&w, text, 1, kNone), &w.err);
  assert_ok(weir_loop_eval(w.loop, NULL, &r, &w.err), &w.err);
  assert_true(fabs(r.values[0].value - 31.0 / 5) < 1e-6);
  assert_true(fabs(r.values[1].value - 4) < 1e-5); /* geometric mean */
  loop_close(&w);
}

/* A recurrent layer written as a scan, with a state and dropout in its body.
 * Evaluating in between changes nothing. */
static void a_scan_is_trained(void **state) {
  (void)state;
  static const char text[] =
      "weir: 1\n"
      "inputs: {x: 'f32[4, 3]', y: 'f32[4, 3]'}\n"
      "blocks:\n"
      "  cell:\n"
      "    in: [x]\n"
      "    nodes:\n"
      "      h0: state([dim(x, 0), 6])\n"
      "      run:\n"
      "        scan:\n"
      "          over: {e: x}\n"
      "          axis: 1\n"
      "          carry: {h: h0}\n"
      "          nodes:\n"
      "            w: var([7, 6], init=glorot_uniform())\n"
      "            z: matmul(concat(unsqueeze(e, [1]), h, axis=1), w)\n"
      "            h2: dropout(tanh(z), keep=0.9)\n"
      "          next: {h: h2}\n"
      "          stack: {y: h2}\n"
      "    update: {h0: run.h}\n"
      "    out: run.y\n"
      "nodes:\n"
      "  v: var([6], init=glorot_uniform())\n"
      "  p: reduce_sum(mul(cell(x), v), axis=2)\n"
      "  loss: mean(square(sub(p, y)))\n"
      "outputs: [loss]\n"
      "data:\n"
      "  train: {source: memory, batch: 4, values: {\n"
      "    x: [[1, 0, 1], [0, 1, 1], [0, 0, 1], [1, 1, 0]],\n"
      "    y: [[0, 1, 0], [1, 0, 1], [0, 0, 0], [0, 1, 1]]}}\n"
      "train:\n"
      "  minimize: loss\n"
      "  optimizer: adam(lr=0.02)\n"
      "  steps: 150\n";
  double last[2];
  for (int k = 0; k < 2; k++) {
    loop_world w;
    weir_train_end end;
    char all[sizeof text + 80];
    snprintf(
        all, sizeof all, "%s%s", text,
        k == 0 ? "" : "  eval: {data: train, every: 7, metrics: [loss]}\n");
    assert_ok(loop_open(&w, all, 2, kNone), &w.err);
    assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
    assert_true(w.seen.loss < 0.5 * w.seen.first_loss);
    assert_int_equal(w.seen.evals, k == 0 ? 0 : 21);
    last[k] = w.seen.loss;
    loop_close(&w);
  }
  assert_true(last[0] == last[1]);
}

static weir_train_end end_of(const char *more, uint64_t *out_steps,
                             int64_t tick_ns) {
  loop_world w;
  weir_train_end end = WEIR_TRAIN_END_FAILED;
  char text[4096];
  snprintf(text, sizeof text, "%s%s", LOOP_ADAM, more);
  assert_ok(loop_open(&w, text, 1, kNone), &w.err);
  w.tick_ns = tick_ns;
  assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
  *out_steps = w.seen.steps;
  loop_close(&w);
  return end;
}

static void ends(void **state) {
  (void)state;
  uint64_t steps;
  assert_int_equal(end_of("  steps: 7\n", &steps, 0), WEIR_TRAIN_END_STEPS);
  assert_int_equal(steps, 7);
  assert_int_equal(end_of("  epochs: 2\n  steps: 100\n", &steps, 0),
                   WEIR_TRAIN_END_EPOCHS);
  assert_int_equal(steps, 8);
  assert_int_equal(
      end_of("  epochs: 99\n  stop: {target: acc >= 0.99}\n"
             "  eval: {data: test, every: 1 epoch, metrics: [acc]}\n",
             &steps, 0),
      WEIR_TRAIN_END_TARGET);
  assert_true(steps < 400 && steps % 4 == 0);
  assert_int_equal(
      end_of("  epochs: 9999\n  stop: {time: 50s}\n", &steps, 1000000000),
      WEIR_TRAIN_END_TIME);
  assert_true(steps > 1 && steps < 50);
  /* A rate of 0 improves nothing: the first evaluation and two more. */
  assert_int_equal(end_of("  lr: {'*': 0}\n  epochs: 99\n"
                          "  stop: {early: {metric: loss, patience: 2}}\n"
                          "  eval: {data: test, every: 5, metrics: [loss]}\n",
                          &steps, 0),
                   WEIR_TRAIN_END_EARLY);
  assert_int_equal(steps, 15);
}

static void stops_when_asked(void **state) {
  (void)state;
  loop_world w;
  weir_train_end end;
  assert_ok(loop_open(&w, LOOP_ADAM "  epochs: 30\n", 1, kNone), &w.err);
  for (int i = 0; i < 3; i++)
    assert_ok(weir_loop_step(w.loop, &end, &w.err), &w.err);
  assert_int_equal(end, WEIR_TRAIN_END_GOING);
  weir_loop_stop(w.loop);
  assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
  assert_int_equal(end, WEIR_TRAIN_END_STOPPED);
  assert_int_equal(w.seen.steps, 4);
  loop_close(&w);
}

/* After the first epoch has seen each shape of batch. */
static void a_steady_step_allocates_nothing(void **state) {
  (void)state;
  loop_world w;
  weir_train_end end;
  assert_ok(
      loop_open(&w, LOOP_ADAM "  epochs: 99\n  accumulate: 2\n", 2, kNone),
      &w.err);
  for (int i = 0; i < 12; i++)
    assert_ok(weir_loop_step(w.loop, &end, &w.err), &w.err);
  uint64_t calls = atomic_load(&w.memory.calls);
  for (int i = 0; i < 40; i++)
    assert_ok(weir_loop_step(w.loop, &end, &w.err), &w.err);
  assert_int_equal(atomic_load(&w.memory.calls), calls);
  loop_close(&w);
}

/* ---- Failures */

static void a_nan_is_traced_and_changes_nothing(void **state) {
  (void)state;
  loop_world w;
  weir_train_end end;
  weir_strbuf before, after;
  static const char text[] =
      "weir: 1\n"
      "inputs: {x: 'f32[?]'}\n"
      "nodes:\n"
      "  w: var([], init=ones())\n"
      "  scaled: mul(x, w)\n"
      "  bad: log(scaled)\n"
      "  loss: mean(bad)\n"
      "outputs: [loss]\n"
      "data:\n"
      "  train: {source: memory, values: {x: [1, 2, 3, -1]}, batch: 1}\n"
      "train:\n  minimize: loss\n"
      "  optimizer: momentum(lr=0.001, momentum=0.9)\n  epochs: 2\n";
  weir_strbuf_init(&before, weir_allocator_system());
  weir_strbuf_init(&after, weir_allocator_system());
  assert_ok(loop_open(&w, text, 1, kNone), &w.err);
  for (int i = 0; i < 3; i++)
    assert_ok(weir_loop_step(w.loop, &end, &w.err), &w.err);
  loop_params(&w, &before);
  assert_error(weir_loop_step(w.loop, &end, &w.err), &w.err, "W5020");
  assert_int_equal(end, WEIR_TRAIN_END_FAILED);
  assert_string_equal(w.err.node, "bad");
  assert_int_equal(w.err.line, 6);
  assert_non_null(strstr(w.err.message, "step 4"));
  loop_params(&w, &after);
  loop_same(&before, &after, "a failed step");
  weir_strbuf_release(&before);
  weir_strbuf_release(&after);
  loop_close(&w);
}

static void a_nan_may_be_let_through(void **state) {
  (void)state;
  loop_world w;
  weir_train_end end;
  assert_ok(loop_open(&w,
                      "weir: 1\n"
                      "inputs: {x: 'f32[?]'}\n"
                      "nodes:\n"
                      "  w: var([], init=ones())\n"
                      "  loss: mean(log(mul(x, w)))\n"
                      "outputs: [loss]\n"
                      "data:\n"
                      "  train: {source: memory, values: {x: [-1]}}\n"
                      "train: {minimize: loss, optimizer: sgd(lr=0.1), steps: "
                      "3, nan_trap: false}\n",
                      1, kNone),
            &w.err);
  assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
  assert_true(isnan(w.seen.loss));
  loop_close(&w);
}

static void a_label_out_of_range_fails_the_step(void **state) {
  (void)state;
  loop_world w;
  weir_train_end end;
  assert_ok(loop_open(&w,
                      "weir: 1\n"
                      "inputs: {x: 'f32[?, 2]', label: 'i32[?]'}\n"
                      "nodes:\n"
                      "  w: var([2, 3], init=zeros())\n"
                      "  loss: mean(sparse_softmax_xent(matmul(x, w), label))\n"
                      "outputs: [loss]\n"
                      "data:\n"
                      "  train: {source: memory, values: {x: [[1, 2]], label: "
                      "[3]}}\n"
                      "train: {minimize: loss, optimizer: sgd(lr=0.1), steps: "
                      "3}\n",
                      1, kNone),
            &w.err);
  assert_error(weir_loop_step(w.loop, &end, &w.err), &w.err, "W5002");
  assert_int_equal(end, WEIR_TRAIN_END_FAILED);
  loop_close(&w);
}

static void refuses(const char *text, const char *id, const char *says) {
  loop_world w;
  weir_train_end end;
  weir_status s = loop_open(&w, text, 1, kNone);
  if (s == WEIR_OK) s = weir_loop_step(w.loop, &end, &w.err);
  if (s == WEIR_OK) fail_msg("trained, but: %s", says);
  if (strcmp(w.err.id, id) != 0 || strstr(w.err.message, says) == NULL)
    fail_msg("%s %s, want %s %s", w.err.id, w.err.message, id, says);
  loop_close(&w);
}

static void data_that_does_not_fit(void **state) {
  (void)state;
  refuses(
      "weir: 1\ninputs: {x: 'f32[?]'}\nnodes:\n"
      "  w: var([], init=zeros())\n"
      "  loss: mean(mul(x, w))\noutputs: [loss]\n"
      "data:\n  train: {source: memory, values: {x: [1]}, batch: 2, "
      "remainder: drop}\n"
      "train: {minimize: loss, optimizer: sgd(lr=0.1), steps: 9}\n",
      "W4033", "gives no batch");
  refuses(
      "weir: 1\ninputs: {x: 'f32[?]', z: 'f32[2]'}\nnodes:\n"
      "  w: var([2], init=zeros())\n"
      "  loss: mean(mul(mean(x), mul(z, w)))\noutputs: [loss]\n"
      "data:\n  train: {source: memory, values: {x: [1, 2]}}\n"
      "train: {minimize: loss, optimizer: sgd(lr=0.1), steps: 9}\n",
      "W4012", "z");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      LOOP_TEST(trains_and_evaluates),
      LOOP_TEST(a_scan_is_trained),
      LOOP_TEST(averages_count_examples),
      LOOP_TEST(ends),
      LOOP_TEST(stops_when_asked),
      LOOP_TEST(a_steady_step_allocates_nothing),
      LOOP_TEST(a_nan_is_traced_and_changes_nothing),
      LOOP_TEST(a_nan_may_be_let_through),
      LOOP_TEST(a_label_out_of_range_fails_the_step),
      LOOP_TEST(data_that_does_not_fit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
