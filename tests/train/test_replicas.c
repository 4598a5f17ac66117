/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/loop_create.h"
#include "runtime/train/loop/loop_save.h"
#include "tests/train/loop_check.h"

/* Replicas between graphs on threads: in sync mode the bits of one process
 * that accumulates, whatever the number of replicas; in the other modes every
 * batch once. */

/* ---- The same bits */

#define NET                                                                    \
  "weir: 1\n"                                                                  \
  "import: {nn: std/nn}\n"                                                     \
  "inputs: {x: 'f32[?, 2]', label: 'i32[?]'}\n"                                \
  "nodes:\n"                                                                   \
  "  n: state([], dtype=i64)\n"                                                \
  "  count: assign_add(n, 1)\n"                                                \
  "  h: nn.batch_norm(nn.dense(x, units=8))\n"                                 \
  "  d: dropout(tanh(h), keep=0.75)\n"                                         \
  "  logits: nn.dense(d, units=2)\n"                                           \
  "  loss: mean(sparse_softmax_xent(logits, label))\n"                         \
  "  acc: mean(cast(equal(argmax(logits, axis=-1), cast(label, i64)), f32))\n" \
  "outputs: [logits]\n" LOOP_POINTS                                            \
  "train:\n  minimize: loss\n  optimizer: adam(lr=0.05, l2=0.01)\n"            \
  "  clip: {global_norm: 0.2}\n  ema: {decay: 0.9}\n"                          \
  "  schedule: cosine(steps=20)\n"                                             \
  "  eval: {data: test, every: 3, metrics: [loss, acc]}\n"

/* Epochs of four batches, the last of one example: 3 does not divide them. */
static void check_sync(int n, const char *more) {
  char text[4096];
  weir_strbuf want, have;
  snprintf(text, sizeof text, "%s%s  accumulate: %d\n", NET, more, n);
  loop_train(text, 1, (weir_loop_options){.epochs = 4, .seed = 5}, &want);
  snprintf(text, sizeof text, "%s%s  mode: sync(aggregate=%d)\n", NET, more, n);
  for (uint32_t replicas = 1; replicas <= 4; replicas++) {
    weir_loop_options o = {.epochs = 4, .seed = 5, .replicas = replicas};
    loop_train(text, 2, o, &have);
    loop_same(&have, &want, "sync");
    weir_strbuf_release(&have);
  }
  weir_strbuf_release(&want);
}

static void sync_has_the_bits_of_accumulation(void **state) {
  (void)state;
  for (int n = 1; n <= 3; n++) check_sync(n, "");
  for (int n = 2; n <= 3; n++) check_sync(n, "  average: examples\n");
}

/* ---- Means of batches */

/* The gradient of w is the mean of a batch, of two or one of five examples. */
#define MEANS                                                             \
  "weir: 1\n"                                                             \
  "inputs: {x: 'f32[?]'}\n"                                               \
  "nodes:\n"                                                              \
  "  w: var([], init=zeros())\n"                                          \
  "  loss: mean(mul(x, w))\n"                                             \
  "outputs: [loss]\n"                                                     \
  "data: {train: {source: memory, values: {x: [1, 2, 4, 8, 25]}, batch: " \
  "2, remainder: %s}}\n"                                                  \
  "train: {minimize: loss, optimizer: sgd(lr=1), %s}\n"

static double trained_by(const char *remainder, const char *rest,
                         uint32_t replicas) {
  char text[2048];
  loop_world w;
  weir_train_end end;
  weir_tensor *t = NULL;
  snprintf(text, sizeof text, MEANS, remainder, rest);
  weir_loop_options o = {.epochs = 2, .replicas = replicas};
  assert_ok(loop_open(&w, text, 2, o), &w.err);
  assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
  assert_int_equal(weir_loop_now(w.loop).step, 2);
  assert_int_equal(weir_loop_now(w.loop).examples, 10);
  weir_node_id id =
      weir_graph_find_node(weir_loop_graph(w.loop), WEIR_SV_LIT("w"));
  assert_ok(weir_exec_variable_get(weir_loop_session(w.loop), id, &t, &w.err),
            &w.err);
  double value = weir_tensor_get_f64(t, 0);
  weir_tensor_unref(t);
  loop_close(&w);
  return value;
}

/* By examples an update is of the mean of all five; a padded batch weighs by
 * what it has of its own. Equal: the one of the last batch counts twice. */
static void batches_weigh_by_examples(void **state) {
  (void)state;
  static const char *const kRemainders[] = {"keep", "pad"};
  static const char *const kWays[] = {"accumulate: 3",
                                      "mode: 'sync(aggregate=3)'"};
  for (int i = 0; i < 4; i++) {
    char rest[128];
    uint32_t replicas = i / 2 == 0 ? 0 : 2;
    snprintf(rest, sizeof rest, "%s, average: examples", kWays[i / 2]);
    assert_true(trained_by(kRemainders[i % 2], rest, replicas) == -16);
    snprintf(rest, sizeof rest, "%s, average: equal", kWays[i / 2]);
    assert_true(fabs(trained_by(kRemainders[i % 2], rest, replicas) +
                     2 * (1.5 + 6 + 25) / 3) < 1e-5);
    assert_true(trained_by(kRemainders[i % 2], rest, replicas) ==
                trained_by(kRemainders[i % 2], kWays[i / 2], replicas));
  }
}

/* Alone, a replica pulls what it pushed last. */
static void one_replica_is_one_process(void **state) {
  (void)state;
  static const char *const kModes[] = {
      "async", "bounded(staleness=3)", "async(max_staleness=0)", "sync",
      "bounded(staleness=3, staleness_lr=inverse)"};
  weir_strbuf want, have;
  loop_train(NET, 1, (weir_loop_options){.epochs = 3, .seed = 5}, &want);
  for (size_t i = 0; i < sizeof kModes / sizeof *kModes; i++) {
    char text[4096];
    snprintf(text, sizeof text, "%s  mode: %s\n", NET, kModes[i]);
    weir_loop_options o = {.epochs = 3, .seed = 5, .replicas = 1};
    loop_train(text, 1, o, &have);
    loop_same(&have, &want, kModes[i]);
    weir_strbuf_release(&have);
  }
  weir_strbuf_release(&want);
}

/* A run that goes on from a checkpoint, with another number of replicas. */
static void sync_goes_on(void **state) {
  (void)state;
  char dir[128];
  const char text[] = NET
      "  mode: sync(aggregate=2)\n"
      "  checkpoint: {every: 1, keep: 3}\n";
  weir_strbuf want, have;
  snprintf(dir, sizeof dir, "%s/on", loop_folder);
  loop_train(text, 1, (weir_loop_options){.steps = 9, .seed = 5, .replicas = 2},
             &want);
  for (uint32_t steps = 3; steps <= 9; steps += 3) {
    weir_loop_options o = {.steps = steps,
                           .seed = 5,
                           .replicas = 1 + steps / 3,
                           .checkpoint = dir};
    loop_train(text, 2, o, &have);
    if (steps < 9) weir_strbuf_release(&have);
  }
  loop_same(&have, &want, "resumed");
  weir_strbuf_release(&have);
  weir_strbuf_release(&want);
}

/* ---- Every batch once */

/* The gradient of w is the sum of a batch whatever w is, and all numbers are
 * small powers of two or sums of them: w tells how often each example counted.
 */
#define SUMS                                                              \
  "weir: 1\n"                                                             \
  "inputs: {x: 'f32[?, 2]'}\n"                                            \
  "nodes:\n"                                                              \
  "  w: var([2], init=zeros())\n"                                         \
  "  n: state([], dtype=i64)\n"                                           \
  "  count: assign_add(n, 1)\n"                                           \
  "  loss: reduce_sum(mul(reduce_sum(x, axis=[0]), w))\n"                 \
  "outputs: [loss]\n"                                                     \
  "data:\n"                                                               \
  "  train:\n"                                                            \
  "    source: memory\n"                                                  \
  "    values: {x: [[1, 1], [16, 1], [256, 1], [4096, 1], [65536, 1]]}\n" \
  "    shuffle: {buffer: 5}\n"                                            \
  "    batch: 1\n"                                                        \
  "train: {minimize: loss, optimizer: sgd(lr=1), nan_trap: false, "

static void expect_epochs(loop_world *w, int epochs) {
  weir_tensor *t = NULL;
  weir_node_id id =
      weir_graph_find_node(weir_loop_graph(w->loop), WEIR_SV_LIT("w"));
  assert_ok(weir_exec_variable_get(weir_loop_session(w->loop), id, &t, &w->err),
            &w->err);
  assert_true(weir_tensor_get_f64(t, 0) == -69905.0 * epochs);
  assert_true(weir_tensor_get_f64(t, 1) == -5.0 * epochs);
  weir_tensor_unref(t);
  id = weir_graph_find_node(weir_loop_graph(w->loop), WEIR_SV_LIT("n"));
  assert_ok(weir_exec_variable_get(weir_loop_session(w->loop), id, &t, &w->err),
            &w->err);
  assert_int_equal(weir_tensor_get_i64(t, 0), 5 * epochs);
  weir_tensor_unref(t);
}

static const char *const kFree[] = {
    "mode: async}\n", "mode: 'bounded(staleness=0)'}\n",
    "mode: 'bounded(staleness=2)'}\n", "mode: 'async(max_staleness=1)'}\n",
    "mode: 'sync(aggregate=1)'}\n"};
enum { FREE = sizeof kFree / sizeof *kFree };

static void every_batch_once(void **state) {
  (void)state;
  for (size_t i = 0; i < FREE; i++)
    for (uint32_t replicas = 1; replicas <= 4; replicas += 3) {
      char text[2048];
      loop_world w;
      weir_train_end end;
      snprintf(text, sizeof text, "%s%s", SUMS, kFree[i]);
      weir_loop_options o = {.epochs = 7, .seed = 5, .replicas = replicas};
      assert_ok(loop_open(&w, text, 2, o), &w.err);
      assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
      assert_int_equal(end, WEIR_TRAIN_END_EPOCHS);
      assert_int_equal(weir_loop_now(w.loop).step, 35);
      assert_int_equal(w.seen.epochs, 7);
      expect_epochs(&w, 7);
      loop_close(&w);
    }
}

/* Saved, stopped and gone on with, in the middle of epochs: by steps, by a
 * save between steps, and by what a stop leaves under way. */
static void every_batch_once_when_it_goes_on(void **state) {
  (void)state;
  for (size_t i = 0; i < FREE; i++) {
    char text[2048], dir[128];
    weir_train_end end = WEIR_TRAIN_END_GOING;
    snprintf(text, sizeof text, "%scheckpoint: {every: 3}, %s", SUMS, kFree[i]);
    snprintf(dir, sizeof dir, "%s/free%d", loop_folder, (int)i);
    for (int part = 0; end != WEIR_TRAIN_END_EPOCHS; part++) {
      loop_world w;
      weir_loop_options o = {.epochs = 6,
                             .seed = 5,
                             .replicas = 1 + (uint32_t)part % 4,
                             .checkpoint = dir};
      assert_true(part < 40);
      assert_ok(loop_open(&w, text, 2, o), &w.err);
      end = WEIR_TRAIN_END_GOING;
      for (int k = 0; k < 4 && end == WEIR_TRAIN_END_GOING; k++) {
        assert_ok(weir_loop_step(w.loop, &end, &w.err), &w.err);
        if (k == 2 && part % 2 == 0)
          assert_ok(weir_loop_save(w.loop, true, &w.err), &w.err);
      }
      if (part % 3 == 0 && end == WEIR_TRAIN_END_GOING) {
        weir_loop_stop(w.loop);
        assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
      } else {
        assert_ok(weir_loop_finish(w.loop, &w.err), &w.err);
      }
      if (end == WEIR_TRAIN_END_EPOCHS) expect_epochs(&w, 6);
      loop_close(&w);
    }
  }
}

/* ---- Staleness */

/* Of three replicas that go in step, each is at most two updates behind. An
 * update of staleness 2 is half of one: the account says how many they were. */
static void stale_updates_are_smaller(void **state) {
  (void)state;
  char text[2048];
  loop_world w;
  weir_train_end end;
  weir_tensor *t = NULL;
  snprintf(text, sizeof text, "%s%s", SUMS,
           "mode: 'bounded(staleness=0, staleness_lr=inverse)'}\n");
  weir_loop_options o = {.epochs = 30, .seed = 5, .replicas = 3};
  assert_ok(loop_open(&w, text, 2, o), &w.err);
  assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
  weir_node_id id =
      weir_graph_find_node(weir_loop_graph(w.loop), WEIR_SV_LIT("w"));
  assert_ok(weir_exec_variable_get(weir_loop_session(w.loop), id, &t, &w.err),
            &w.err);
  const uint64_t *n = w.seen.staleness;
  assert_true(w.seen.staleness_most <= 2);
  assert_int_equal(n[0] + n[1] + n[2], 150);
  assert_true(weir_tensor_get_f64(t, 1) ==
              -(double)(n[0] + n[1]) - (double)n[2] / 2);
  weir_tensor_unref(t);
  loop_close(&w);
}

/* A number of updates is kept exactly. */
static void steps_are_exact(void **state) {
  (void)state;
  for (size_t i = 0; i < FREE; i++) {
    char text[2048];
    loop_world w;
    weir_train_end end;
    snprintf(text, sizeof text, "%s%s", SUMS, kFree[i]);
    weir_loop_options o = {.steps = 13, .seed = 5, .replicas = 3};
    assert_ok(loop_open(&w, text, 2, o), &w.err);
    assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
    assert_int_equal(end, WEIR_TRAIN_END_STEPS);
    assert_int_equal(weir_loop_now(w.loop).step, 13);
    loop_close(&w);
  }
}

/* ---- Failures */

static void a_bad_loss_ends_it(void **state) {
  (void)state;
  static const char kText[] =
      "weir: 1\ninputs: {x: 'f32[?]'}\nnodes:\n"
      "  w: var([], init=ones())\n"
      "  bad: log(mul(x, w))\n"
      "  loss: mean(bad)\noutputs: [loss]\n"
      "data: {train: {source: memory, values: {x: [1, 2, 3, -1]}, batch: 1}}\n"
      "train: {minimize: loss, optimizer: sgd(lr=0), mode: async}\n";
  loop_world w;
  weir_train_end end;
  weir_loop_options o = {.epochs = 2, .replicas = 2};
  assert_ok(loop_open(&w, kText, 2, o), &w.err);
  assert_error(weir_loop_run(w.loop, &end, &w.err), &w.err, "W5020");
  assert_string_equal(w.err.node, "bad");
  assert_int_equal(end, WEIR_TRAIN_END_FAILED);
  loop_close(&w);
}

static void refused(void **state) {
  (void)state;
  static const struct {
    const char *nodes, *rest;
  } kBad[] = {{"  s: state([2])\n  next: assign(s, w)\n"
               "  loss: reduce_sum(mul(add(w, s), reduce_sum(x, axis=[0])))\n",
               "mode: async"},
              {"  loss: reduce_sum(mul(w, reduce_sum(x, axis=[0])))\n",
               "mode: 'sync(aggregate=2, backup=1)'"},
              {"  loss: reduce_sum(mul(w, reduce_sum(x, axis=[0])))\n",
               "mode: sync, clip: {global_norm: 1}, summary: {dir: s, scalars: "
               "[train/grad_norm]}"}};
  for (size_t i = 0; i < sizeof kBad / sizeof *kBad; i++) {
    char text[2048];
    loop_world w;
    snprintf(text, sizeof text,
             "weir: 1\ninputs: {x: 'f32[?, 2]'}\nnodes:\n"
             "  w: var([2])\n%soutputs: [loss]\n"
             "data: {train: {source: memory, values: {x: [[1, 2]]}}}\n"
             "train: {minimize: loss, optimizer: sgd(lr=1), %s}\n",
             kBad[i].nodes, kBad[i].rest);
    weir_loop_options o = {.epochs = 1, .replicas = 2, .out = loop_folder};
    assert_error(loop_open(&w, text, 2, o), &w.err, "W1122");
    loop_close(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      LOOP_TEST(sync_has_the_bits_of_accumulation),
      LOOP_TEST(batches_weigh_by_examples),
      LOOP_TEST(one_replica_is_one_process),
      LOOP_TEST(sync_goes_on),
      LOOP_TEST(every_batch_once),
      LOOP_TEST(every_batch_once_when_it_goes_on),
      LOOP_TEST(stale_updates_are_smaller),
      LOOP_TEST(steps_are_exact),
      LOOP_TEST(a_bad_loss_ends_it),
      LOOP_TEST(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
