/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/loop_eval.h"
#include "runtime/train/loop/loop_save.h"
#include "tests/train/loop_check.h"

/* Checkpoints of the loop: a run that goes on from one gives the bits of a run
 * that was never interrupted, for any number of threads. */

static weir_loop_options options_in(const char *folder, uint64_t steps) {
  static char dir[128];
  weir_loop_options o = {.seed = 5, .steps = steps};
  if (folder == NULL) return o;
  snprintf(dir, sizeof dir, "%s/%s", loop_folder, folder);
  o.checkpoint = dir;
  return o;
}

static const char *const kTrainings[] = {
    LOOP_ADAM "  checkpoint: {every: 3, keep: 2}\n",
    LOOP_GRAPH
    "train:\n  minimize: loss\n  accumulate: 3\n"
    "  optimizer: momentum(lr=0.1, momentum=0.9)\n"
    "  clip: {global_norm: 0.5}\n"
    "  checkpoint: {every: 2, keep: 2, async: false}\n"
    "  eval: {data: test, every: 1 epoch, metrics: [acc]}\n",
};
enum { TRAININGS = sizeof kTrainings / sizeof *kTrainings, STEPS = 23 };

static void same_bits(void **state) {
  (void)state;
  for (int k = 0; k < TRAININGS; k++) {
    weir_strbuf one, other;
    char folder[32];
    loop_train(kTrainings[k], 1, options_in(NULL, STEPS), &one);
    for (int threads = 1; threads <= 8; threads *= 2) {
      loop_train(kTrainings[k], threads, options_in(NULL, STEPS), &other);
      loop_same(&one, &other, "threads");
      weir_strbuf_release(&other);
    }
    snprintf(folder, sizeof folder, "same%d", k);
    loop_train(kTrainings[k], 2, options_in(folder, STEPS), &other);
    loop_same(&one, &other, "checkpoints");
    weir_strbuf_release(&other);
    weir_strbuf_release(&one);
  }
}

/* Ends after |steps| without a last checkpoint, as if killed. */
static void run_and_drop(const char *text, weir_loop_options options,
                         uint64_t steps) {
  loop_world w;
  weir_train_end end = WEIR_TRAIN_END_GOING;
  assert_ok(loop_open(&w, text, 2, options), &w.err);
  for (uint64_t i = 0; i < steps && end == WEIR_TRAIN_END_GOING; i++)
    assert_ok(weir_loop_step(w.loop, &end, &w.err), &w.err);
  loop_close(&w);
}

static void resumed_runs_give_the_same_bits(void **state) {
  (void)state;
  for (int k = 0; k < TRAININGS; k++) {
    weir_strbuf whole;
    loop_train(kTrainings[k], 1, options_in(NULL, STEPS), &whole);
    for (uint64_t at = 1; at < STEPS; at++) {
      weir_strbuf resumed;
      char folder[32];
      snprintf(folder, sizeof folder, "r%d-%d", k, (int)at);
      weir_loop_options o = options_in(folder, STEPS);
      run_and_drop(kTrainings[k], o, at);
      run_and_drop(kTrainings[k], o, at % 4); /* and again, shortly after */
      loop_train(kTrainings[k], 2, o, &resumed);
      loop_same(&whole, &resumed, folder);
      weir_strbuf_release(&resumed);
    }
    weir_strbuf_release(&whole);
  }
}

static void goes_on_where_it_was(void **state) {
  (void)state;
  loop_world w;
  weir_train_end end;
  weir_loop_options o = options_in("on", 10);
  weir_strbuf first;
  loop_train(kTrainings[0], 1, o, &first);
  weir_strbuf_release(&first);
  o.steps = 14;
  assert_ok(loop_open(&w, kTrainings[0], 1, o), &w.err);
  assert_int_equal(w.seen.resumed, 10);
  assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
  assert_int_equal(w.seen.steps, 4);
  loop_close(&w);
  /* There is nothing left to do. */
  assert_ok(loop_open(&w, kTrainings[0], 1, o), &w.err);
  assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
  assert_int_equal(end, WEIR_TRAIN_END_STEPS);
  assert_int_equal(w.seen.steps, 0);
  loop_close(&w);
  o.resume = WEIR_TRAIN_RESUME_NONE;
  assert_error(loop_open(&w, kTrainings[0], 1, o), &w.err, "W5025");
  loop_close(&w);
}

static void other_shapes_are_each_named(void **state) {
  (void)state;
  loop_world w;
  weir_strbuf first;
  weir_loop_options o = options_in("shapes", 2);
  loop_train(kTrainings[0], 1, o, &first);
  weir_strbuf_release(&first);
  char text[4096];
  snprintf(text, sizeof text, "%s", kTrainings[0]);
  char *at = text;
  while ((at = strchr(at, '8')) != NULL) { /* 8 hidden units become 7 */
    if (at[-1] == '[' || at[1] == ']') *at = '7';
    at++;
  }
  assert_error(loop_open(&w, text, 1, o), &w.err, "W5022");
  assert_non_null(strstr(w.err.message, "w1 is f32[2, 7], there f32[2, 8]"));
  assert_non_null(strstr(w.err.message, "b1 is f32[7], there f32[8]"));
  loop_close(&w);
}

static void evaluates_a_checkpoint(void **state) {
  (void)state;
  static const char text[] = LOOP_ADAM
      "  checkpoint: {every: 10}\n"
      "  eval: {data: test, every: 10, metrics: [loss, acc]}\n";
  loop_world w;
  weir_train_report r;
  weir_train_end end;
  weir_loop_options o = options_in("eval", 60);
  assert_ok(loop_open(&w, text, 1, o), &w.err);
  assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
  double loss = w.seen.metric;
  loop_close(&w);
  o.eval_only = true;
  assert_ok(loop_open(&w, text, 2, o), &w.err);
  assert_ok(weir_loop_eval(w.loop, NULL, &r, &w.err), &w.err);
  assert_int_equal(r.step, 60);
  assert_true(fabs(r.values[0].value - loss) < 1e-6);
  assert_true(r.values[1].value == 1);
  loop_close(&w);
  o.checkpoint = "/nowhere/at/all";
  assert_error(loop_open(&w, text, 2, o), &w.err, "W4040");
  loop_close(&w);
}

/* Early stopping counts on: the decision comes at the same step. */
static void early_stopping_survives(void **state) {
  (void)state;
  static const char text[] = LOOP_GRAPH
      "train:\n  minimize: loss\n  optimizer: sgd(lr=0)\n  epochs: 50\n"
      "  stop: {early: {metric: loss, patience: 4}}\n"
      "  checkpoint: {every: 1}\n"
      "  eval: {data: test, every: 3, metrics: [loss]}\n";
  loop_world w;
  weir_train_end end = WEIR_TRAIN_END_GOING;
  weir_loop_options o = options_in("early", 0);
  uint64_t steps = 0, opened = 0;
  while (end != WEIR_TRAIN_END_EARLY && opened++ < 40) {
    assert_ok(loop_open(&w, text, 1, o), &w.err);
    assert_ok(weir_loop_step(w.loop, &end, &w.err), &w.err);
    steps = weir_loop_now(w.loop).step;
    assert_ok(weir_loop_finish(w.loop, &w.err), &w.err);
    loop_close(&w);
  }
  assert_int_equal(steps, 15);
}

int main(void) {
  const struct CMUnitTest tests[] = {LOOP_TEST(same_bits),
                                     LOOP_TEST(resumed_runs_give_the_same_bits),
                                     LOOP_TEST(goes_on_where_it_was),
                                     LOOP_TEST(other_shapes_are_each_named),
                                     LOOP_TEST(evaluates_a_checkpoint),
                                     LOOP_TEST(early_stopping_survives)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
