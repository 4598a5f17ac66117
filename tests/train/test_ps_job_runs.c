/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "tests/train/ps_cluster.h"

/* Jobs of parameter servers, all tasks in one process: in sync mode the bits of
 * one process that accumulates, whoever computes what and whoever dies; in the
 * other modes every batch once. */

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
  "  ema: {decay: 0.9}\n  schedule: cosine(steps=20)\n"                        \
  "  eval: {data: test, every: 3, metrics: [loss, acc]}\n"

enum { STEPS = 9 };

/* Fetched values are those of one process that accumulates two batches. */
static void expect_bits(cluster *c, loop_world *one, const char *what) {
  const weir_split *split = c->w.job->split;
  uint32_t compared = 0;
  for (uint32_t s = 0; s < c->server_count; s++) {
    const weir_ps_lists *l = &c->w.job->servers[s];
    for (uint32_t i = 0; i < l->held_count; i++) {
      weir_tensor *want = NULL;
      const weir_split_var *v = &split->vars[l->held[i]];
      weir_sv name = v->name;
      weir_node_id id = weir_graph_find_node(weir_loop_graph(one->loop), name);
      assert_ok(weir_exec_variable_get(weir_loop_session(one->loop), id, &want,
                                       &one->err),
                &one->err);
      const weir_tensor *have = c->servers[s].values[i];
      if (have->bytes != v->bytes ||
          memcmp(have->data, (char *)want->data + v->rows.offset, v->bytes) !=
              0)
        fail_msg("%s: other bits of %.*s", what, WEIR_SV(name));
      weir_tensor_unref(want);
      compared++;
    }
  }
  assert_int_equal(compared, split->var_count);
}

/* One process, for STEPS steps. */
static void run_one(loop_world *one) {
  weir_train_end end;
  weir_loop_options o = {.steps = STEPS, .seed = 5, .session = {.seed = 5}};
  assert_ok(loop_open(one, NET "  accumulate: 2\n", 1, o), &one->err);
  assert_ok(weir_loop_run(one->loop, &end, &one->err), &one->err);
}

static void sync_has_the_bits_of_one_process(void **state) {
  (void)state;
  loop_world one;
  run_one(&one);
  for (uint32_t servers = 1; servers <= 2; servers++)
    for (uint32_t workers = 1; workers <= 3; workers++) {
      cluster c = {.pause = 1};
      cluster_open(&c, NET,
                   workers % 2 == 0
                       ? "  mode: sync(aggregate=2)\n"
                       : "  mode: sync(aggregate=2)\n  ps: {split: 16B}\n",
                   servers, STEPS);
      for (uint32_t i = 0; i < workers; i++) cluster_start(&c, i);
      /* A report may be lost, but with its link only. */
      cluster_await(&c, c.reports[0] > 0 && c.reports[1] > 0);
      cluster_go(&c);
      cluster_end(&c);
      expect_bits(&c, &one, "sync");
      assert_false(c.failed);
      cluster_close(&c);
    }
  loop_close(&one);
}

/* Workers die, come back and join late. */
static void sync_with_deaths(void **state) {
  (void)state;
  loop_world one;
  run_one(&one);
  for (int round = 0; round < 3; round++) {
    cluster c = {0};
    cluster_open(&c, NET, "  mode: sync(aggregate=2)\n", 2, STEPS);
    cluster_start(&c, 0);
    cluster_start(&c, 1);
    /* The last reports may be lost with the links, at the end. */
    cluster_await(&c, c.over || c.report_count >= 3u + (uint32_t)round);
    weir_ps_replica_stop(c.workers[0].replica);
    cluster_join(&c, 0);
    if (round > 0) cluster_start(&c, round == 1 ? 0 : 3);
    cluster_end(&c);
    expect_bits(&c, &one, "deaths");
    cluster_close(&c);
  }
  loop_close(&one);
}

/* Backups compute what is late; the first to arrive counts. */
static void sync_with_backups(void **state) {
  (void)state;
  loop_world one;
  run_one(&one);
  cluster c = {0};
  cluster_open(&c, NET, "  mode: sync(aggregate=2, backup=1)\n", 2, STEPS);
  for (uint32_t i = 0; i < 3; i++) cluster_start(&c, i);
  cluster_end(&c);
  expect_bits(&c, &one, "backups");
  cluster_close(&c);
  loop_close(&one);
}

/* A server dies; all go back to the last generation and compute again what came
 * after it. */
static void sync_with_a_servers_death(void **state) {
  (void)state;
  loop_world one;
  run_one(&one);
  for (uint32_t dead = 0; dead < 2; dead++) {
    char dir[128];
    cluster c = {.pause = 5, .dir = dir};
    snprintf(dir, sizeof dir, "%s/generations%u", loop_folder, dead);
    cluster_open(&c, NET, "  mode: sync(aggregate=2)\n", 2, STEPS);
    cluster_start(&c, 0);
    cluster_start(&c, 1);
    cluster_await(&c, c.paused);
    cluster_kill_server(&c, dead);
    cluster_go(&c);
    cluster_start_server(&c, dead);
    cluster_end(&c);
    expect_bits(&c, &one, "a server's death");
    assert_true(weir_ps_coordinator_account(c.chief)->rollbacks > 0);
    /* One of them may have come after it. */
    assert_true(c.workers[0].resets + c.workers[1].resets > 0);
    cluster_close(&c);
  }
  loop_close(&one);
}

/* ---- Every batch once: as in test_replicas.c, on two variables. */

#define SUMS                                                              \
  "weir: 1\n"                                                             \
  "inputs: {x: 'f32[?, 2]'}\n"                                            \
  "nodes:\n"                                                              \
  "  w: var([2], init=zeros())\n"                                         \
  "  v: var([2], init=zeros())\n"                                         \
  "  n: state([], dtype=i64)\n"                                           \
  "  count: assign_add(n, 1)\n"                                           \
  "  loss: reduce_sum(mul(reduce_sum(x, axis=[0]), add(w, v)))\n"         \
  "outputs: [loss]\n"                                                     \
  "data:\n"                                                               \
  "  train:\n"                                                            \
  "    source: memory\n"                                                  \
  "    values: {x: [[1, 1], [16, 1], [256, 1], [4096, 1], [65536, 1]]}\n" \
  "    shuffle: {buffer: 5}\n"                                            \
  "    batch: 1\n"                                                        \
  "train: {minimize: loss, optimizer: sgd(lr=1), nan_trap: false, "

enum { EPOCHS = 7 };

static void expect_epochs(const cluster *c) {
  uint32_t seen = 0;
  for (uint32_t s = 0; s < c->server_count; s++) {
    const weir_ps_lists *l = &c->w.job->servers[s];
    for (uint32_t i = 0; i < l->held_count; i++) {
      weir_sv name = c->w.job->split->vars[l->held[i]].name;
      const weir_tensor *t = c->servers[s].values[i];
      if (weir_sv_is(name, "n")) {
        assert_int_equal(weir_tensor_get_i64(t, 0), 5 * EPOCHS);
        seen++;
      }
      if (!weir_sv_is(name, "w") && !weir_sv_is(name, "v")) continue;
      assert_true(weir_tensor_get_f64(t, 0) == -69905.0 * EPOCHS);
      assert_true(weir_tensor_get_f64(t, 1) == -5.0 * EPOCHS);
      seen++;
    }
  }
  assert_int_equal(seen, 3);
}

static const char *const kFree[] = {
    "mode: async}\n", "mode: 'bounded(staleness=0)'}\n",
    "mode: 'bounded(staleness=2)'}\n", "mode: 'async(max_staleness=1)'}\n"};
enum { FREE = sizeof kFree / sizeof *kFree };

static void every_batch_once(void **state) {
  (void)state;
  for (size_t i = 0; i < FREE; i++)
    for (uint32_t workers = 1; workers <= 3; workers += 2) {
      cluster c = {0};
      cluster_open(&c, SUMS, kFree[i], 1 + workers / 2, 5 * EPOCHS);
      for (uint32_t k = 0; k < workers; k++) cluster_start(&c, k);
      cluster_end(&c);
      expect_epochs(&c);
      for (uint32_t s = 0; s < c.server_count; s++)
        assert_int_equal(
            weir_ps_server_count(weir_ps_host_machine(c.servers[s].host))
                .applied,
            5 * EPOCHS);
      cluster_close(&c);
    }
}

/* A worker leaves, and another one joins late. */
static void every_batch_once_with_a_drain(void **state) {
  (void)state;
  for (size_t i = 0; i < FREE; i++) {
    cluster c = {0};
    cluster_open(&c, SUMS, kFree[i], 2, 5 * EPOCHS);
    cluster_start(&c, 0);
    cluster_await(&c, c.over || c.report_count >= 3);
    weir_ps_replica_drain(c.workers[0].replica);
    cluster_join(&c, 0);
    assert_int_equal(c.workers[0].status, WEIR_OK);
    assert_true(c.workers[0].end == WEIR_PS_REPLICA_DRAINED ||
                c.workers[0].end == WEIR_PS_REPLICA_OVER);
    cluster_start(&c, 2);
    cluster_end(&c);
    expect_epochs(&c);
    cluster_close(&c);
  }
}

/* ---- Ends */

static weir_ps_replica *at_signal;

static void on_signal(int number) {
  (void)number;
  weir_ps_replica_drain(at_signal);
}

/* A signal's handler may drain; a worker that nobody answers leaves at once. */
static void a_signal_drains(void **state) {
  (void)state;
  cluster c = {.pause = 2};
  struct sigaction now = {.sa_handler = on_signal}, before;
  cluster_open(&c, SUMS, kFree[0], 1, 8);
  cluster_start(&c, 0);
  cluster_await(&c, c.paused);
  at_signal = c.workers[0].replica;
  sigaction(SIGTERM, &now, &before);
  raise(SIGTERM);
  sigaction(SIGTERM, &before, NULL);
  cluster_join(&c, 0);
  assert_int_equal(c.workers[0].status, WEIR_OK);
  assert_int_equal(c.workers[0].end, WEIR_PS_REPLICA_DRAINED);
  cluster_await(&c, c.left == 1);
  cluster_start(&c, 1);
  cluster_go(&c);
  cluster_end(&c);
  assert_int_equal(c.workers[1].end, WEIR_PS_REPLICA_OVER);
  cluster_close(&c);
}

static void nobody_is_there(void **state) {
  (void)state;
  cluster c = {0};
  cluster_open(&c, SUMS, kFree[0], 1, 8);
  c.chief_address = "local:nobody";
  for (int i = 0; i < 2; i++) {
    cluster_start(&c, 0);
    if (i == 0)
      weir_ps_replica_drain(c.workers[0].replica);
    else
      weir_ps_replica_stop(c.workers[0].replica);
    cluster_join(&c, 0);
    assert_int_equal(c.workers[0].status, WEIR_OK);
    assert_int_equal(c.workers[0].end, i == 0 ? WEIR_PS_REPLICA_DRAINED
                                              : WEIR_PS_REPLICA_STOPPED);
  }
  c.chief_address = NULL;
  cluster_start(&c, 0);
  cluster_end(&c);
  cluster_close(&c);
}

/* Every allocation of a replica's create fails once. */
static void without_memory(void **state) {
  (void)state;
  cluster c = {0};
  cluster_open(&c, SUMS, kFree[0], 1, 8);
  for (uint64_t k = 1, failed = 1; failed; k++) {
    weir_counted_allocator memory;
    weir_error err = WEIR_ERROR_INIT;
    weir_ps_replica *replica = NULL;
    weir_counted_allocator_init(&memory, NULL);
    weir_env env = c.w.world.env;
    env.alloc = &memory.base;
    memory.fail_at = k;
    weir_ps_replica_options o = cluster_worker_options(&c, 0);
    failed = weir_ps_replica_create(&env, &o, &replica, &err) != WEIR_OK;
    if (failed) assert_string_equal(err.id, "W6001");
    weir_ps_replica_release(replica);
    assert_int_equal(atomic_load(&memory.live_blocks), 0);
  }
  cluster_start(&c, 0);
  cluster_end(&c);
  cluster_close(&c);
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
  cluster c = {0};
  cluster_open(&c, kText, "", 1, 40);
  cluster_start(&c, 0);
  cluster_start(&c, 1);
  cluster_await(&c, c.over);
  assert_true(c.failed);
  assert_int_equal(c.failed_run % 4, 3);
  uint32_t named = 0;
  for (uint32_t i = 0; i < 2; i++) {
    cluster_join(&c, i);
    if (c.workers[i].status == WEIR_OK) continue;
    assert_string_equal(c.workers[i].err.id, "W5020");
    assert_string_equal(c.workers[i].err.node, "bad");
    named++;
  }
  assert_true(named > 0);
  cluster_end(&c);
  cluster_close(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sync_has_the_bits_of_one_process),
      cmocka_unit_test(sync_with_deaths),
      cmocka_unit_test(sync_with_backups),
      LOOP_TEST(sync_with_a_servers_death),
      cmocka_unit_test(every_batch_once),
      cmocka_unit_test(every_batch_once_with_a_drain),
      cmocka_unit_test(a_signal_drains),
      cmocka_unit_test(nobody_is_there),
      cmocka_unit_test(without_memory),
      cmocka_unit_test(a_bad_loss_ends_it)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
