/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ps_worker_check.h"

/* The host of a worker, between a test that is all others and the thread that
 * computes: what is pushed has the bits of the worker graph on the batches of
 * one process, whatever links, chief and servers do in between. */

#define NET                                                                    \
  "weir: 1\n"                                                                  \
  "import: {nn: std/nn}\n"                                                     \
  "inputs: {x: 'f32[?, 2]', label: 'i32[?]'}\n"                                \
  "nodes:\n"                                                                   \
  "  h: nn.batch_norm(nn.dense(x, units=8))\n"                                 \
  "  d: dropout(tanh(h), keep=0.75)\n"                                         \
  "  logits: nn.dense(d, units=2)\n"                                           \
  "  loss: mean(sparse_softmax_xent(logits, label))\n"                         \
  "  acc: mean(cast(equal(argmax(logits, axis=-1), cast(label, i64)), f32))\n" \
  "outputs: [logits]\n" LOOP_POINTS                                            \
  "train:\n  minimize: loss\n  optimizer: adam(lr=0.05, l2=0.01)\n"            \
  "  ema: {decay: 0.9}\n"                                                      \
  "  eval: {data: test, every: 3, metrics: [loss, acc]}\n"
#define ASYNC "  clip: {global_norm: 0.2}\n  mode: async\n"
#define SYNC "  mode: sync(aggregate=2)\n"

/* Two epochs and more, of three full batches and a small one. */
static void async_runs(void **state) {
  (void)state;
  side s;
  side_open(&s, NET, ASYNC);
  side_up(&s);
  side_join(&s, 1, 7);
  (void)side_take(&s, WEIR_PS_WANT, kChief);
  side_lease(&s, 1, 0, 5, 1);
  for (uint64_t run = 0; run < 11; run++) {
    side_pulled(&s, run);
    side_computed(&s);
    side_pushed(&s, run, run);
    if (run == 3) side_lease(&s, 2, 5, 9, 1);
    if (run == 7) side_lease(&s, 3, 9, 11, 1);
    for (uint32_t k = 0; k < SERVERS; k++)
      side_applied(&s, k, run + 1, run + 1);
    assert_int_equal(side_take(&s, WEIR_PS_PROGRESS, kChief)->message.run, run);
  }
  side_none(&s, WEIR_PS_PULL);
  weir_worker_numbers n = weir_worker_host_count(s.host);
  assert_int_equal(n.runs.computed, 11);
  assert_int_equal(n.runs.pushed, 11);
  assert_int_equal(n.rows, 13 + 13 + 12);
  side_deliver(&s, kChief, (weir_ps_message){.kind = WEIR_PS_OVER, .epoch = 9});
  assert_true(s.over && !s.drained && s.failed == WEIR_OK);
  side_close(&s);
}

/* Push and pull in one message each way. When a server has nothing more to say,
 * its answer holds the values for the next run, and no PULL is sent. */
static void answers_hold_values(void **state) {
  (void)state;
  side s;
  side_open(&s, NET, ASYNC);
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 0, 5, 1);
  side_pulled(&s, 0);
  for (uint64_t run = 0; run < 5; run++) {
    side_computed(&s);
    side_pushed(&s, run, run);
    for (uint32_t k = 0; k < SERVERS && run < 4; k++) {
      weir_ps_message push = side_asked(&s, k);
      assert_true(push.kind == WEIR_PS_PUSH && push.run == run);
      side_answer(&s, k,
                  (weir_ps_message){.kind = WEIR_PS_PUSHED,
                                    .seq = run + 1,
                                    .request = push.request,
                                    .version = run + 1,
                                    .newer = true});
    }
  }
  side_none(&s, WEIR_PS_PULL);
  /* No run was left after the last. */
  for (size_t i = 0; i < s.sent.count; i++)
    if (s.sent.items[i].message.kind == WEIR_PS_PUSH)
      assert_int_equal(s.sent.items[i].message.request != 0,
                       s.sent.items[i].message.run < 4);
  side_close(&s);
}

/* With a window the next run is pulled and computed while pushes wait, and all
 * that wait are sent again after a link came back. */
static void a_window_of_pushes(void **state) {
  (void)state;
  weir_error why = {.message = "cut"};
  side s;
  side_open_window(&s, NET, ASYNC, 3);
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 0, 9, 1);
  for (uint64_t run = 0; run < 3; run++) {
    side_pulled(&s, run);
    side_computed(&s);
    side_pushed(&s, run, run);
  }
  side_none(&s, WEIR_PS_PULL); /* three wait */
  for (uint64_t seq = 1; seq <= 3; seq++) side_applied(&s, 0, seq, seq);
  side_applied(&s, 1, 1, 1);
  s.net.lost(s.net.self, side_server(1), &why);
  s.net.up(s.net.self, side_server(1));
  assert_non_null(strstr(s.log, "server 1 is lost: cut\nserver 1 is there\n"));
  (void)side_take(&s, WEIR_PS_ASK, side_server(1));
  side_deliver(&s, side_server(1),
               (weir_ps_message){.kind = WEIR_PS_MARK, .seq = 1});
  for (uint64_t run = 1; run < 3; run++) {
    side_expect(&s, run, run);
    side_give_back(&s, side_pushed_to(&s, 1, run));
    side_applied(&s, 1, run + 1, run + 1);
  }
  side_pulled(&s, 3);
  side_computed(&s);
  side_pushed(&s, 3, 3);
  assert_int_equal(weir_worker_host_count(s.host).runs.resent, 2);
  side_close(&s);
}

/* Runs in any order of leases, with a run that is too old and comes again. */
static void stale_runs_come_again(void **state) {
  (void)state;
  side s;
  side_open(&s, NET, "  mode: async(max_staleness=1)\n");
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 9, 10, 1);
  side_lease(&s, 2, 2, 3, 1);
  side_pulled(&s, 4);
  side_computed(&s);
  side_pushed(&s, 9, 4);
  side_applied(&s, 0, 1, 5);
  side_deliver(&s, side_server(1),
               (weir_ps_message){.kind = WEIR_PS_PUSHED,
                                 .seq = 1,
                                 .version = 8,
                                 .verdict = WEIR_PS_STALE});
  side_pulled(&s, 8);
  side_computed(&s);
  side_expect(&s, 9, 8);
  side_give_back(&s, side_pushed_to(&s, 1, 9));
  assert_null(side_find(&s, WEIR_PS_PUSH, side_server(0)));
  side_applied(&s, 1, 1, 9);
  side_give_back(&s, side_take(&s, WEIR_PS_REPORT, kChief));
  side_pulled(&s, 9);
  side_computed(&s);
  side_pushed(&s, 2, 9);
  assert_int_equal(weir_worker_host_count(s.host).runs.again, 1);
  side_close(&s);
}

/* Both micro-batches of a step are computed on one pull. */
static void sync_computes_a_step_on_one_pull(void **state) {
  (void)state;
  side s;
  side_open(&s, NET, SYNC);
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 0, 4, 2);
  for (uint64_t step = 0; step < 4; step++) {
    for (uint32_t k = 0; k < SERVERS; k++) {
      weir_ps_message pull =
          side_take(&s, WEIR_PS_PULL, side_server(k))->message;
      assert_int_equal(pull.step, step);
      side_values(&s, k, &pull, step);
    }
    side_computed(&s);
    side_none(&s, WEIR_PS_PULL);
    side_pushed(&s, 2 * step, step);
    side_computed(&s);
    side_pushed(&s, 2 * step + 1, step);
  }
  side_close(&s);
}

/* The values of a push are kept until all servers have it. */
static void a_lost_link_sends_again(void **state) {
  (void)state;
  weir_error why = WEIR_ERROR_INIT;
  side s;
  side_open(&s, NET, ASYNC);
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 0, 3, 1);
  side_pulled(&s, 0);
  side_computed(&s);
  side_expect(&s, 0, 0);
  side_give_back(&s, side_pushed_to(&s, 0, 0));
  side_applied(&s, 0, 1, 1);
  for (int times = 0; times < 3; times++) {
    side_sent *push = side_pushed_to(&s, 1, 0);
    /* The old link's values may be given back before or after the new link. */
    if (times != 1) side_give_back(&s, push);
    s.net.lost(s.net.self, side_server(1), &why);
    s.net.up(s.net.self, side_server(1));
    (void)side_take(&s, WEIR_PS_ASK, side_server(1));
    side_deliver(&s, side_server(1),
                 (weir_ps_message){.kind = WEIR_PS_MARK, .seq = 0});
  }
  for (size_t i = 0; i < s.sent.count; i++)
    if (s.sent.items[i].taken) side_give_back(&s, &s.sent.items[i]);
  side_give_back(&s, side_pushed_to(&s, 1, 0));
  side_applied(&s, 1, 1, 1);
  assert_int_equal(weir_worker_host_count(s.host).runs.resent, 3);
  side_pulled(&s, 1);
  side_computed(&s);
  side_expect(&s, 1, 1);
  side_give_back(&s, side_pushed_to(&s, 0, 1));
  side_close(&s);
}

/* A link that ends within values leaves no version: they are asked for anew,
 * also when the server has nothing newer. */
static void torn_values_are_pulled_again(void **state) {
  (void)state;
  weir_error why = WEIR_ERROR_INIT;
  side s;
  side_open(&s, NET, ASYNC);
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 0, 3, 1);
  side_pulled(&s, 5);
  side_computed(&s);
  side_pushed(&s, 0, 5);
  for (uint32_t k = 0; k < SERVERS; k++) side_applied(&s, k, 1, 6);
  weir_ps_message pull = side_asked(&s, 1);
  weir_ps_message m = {.kind = WEIR_PS_PULLED,
                       .request = pull.request,
                       .life = 1,
                       .incarnation = 7,
                       .version = 6,
                       .newer = true};
  weir_ps_place place = {0};
  assert_ok(s.net.receive(s.net.self, side_server(1), &m, &place, &s.w.err),
            &s.w.err);
  memset(place.pieces[0].data, 0xff, place.pieces[0].bytes);
  s.net.unreceived(s.net.self, place.data);
  s.net.lost(s.net.self, side_server(1), &why);
  s.net.up(s.net.self, side_server(1));
  pull = side_take(&s, WEIR_PS_PULL, side_server(1))->message;
  assert_true(pull.version == WEIR_PS_NONE);
  side_values(&s, 1, &pull, 5);
  pull = side_asked(&s, 0);
  pull.version = 5;
  side_values(&s, 0, &pull, 5); /* nothing newer */
  side_computed(&s);
  side_pushed(&s, 1, 5);
  side_close(&s);
}

/* Answers that nobody waits for are received aside. */
static void old_answers_change_nothing(void **state) {
  (void)state;
  side s;
  side_open(&s, NET, ASYNC);
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 0, 3, 1);
  weir_ps_message pulls[SERVERS];
  for (uint32_t k = 0; k < SERVERS; k++) {
    pulls[k] = side_take(&s, WEIR_PS_PULL, side_server(k))->message;
    side_values(&s, k, &pulls[k], 1);
  }
  /* While the run is under way, and after it. */
  for (uint32_t k = 0; k < SERVERS; k++) side_values(&s, k, &pulls[k], 33);
  side_computed(&s);
  side_pushed(&s, 0, 1);
  for (uint32_t k = 0; k < SERVERS; k++) side_applied(&s, k, 1, 2);
  for (uint32_t k = 0; k < SERVERS; k++) side_values(&s, k, &pulls[k], 34);
  for (uint32_t k = 0; k < SERVERS; k++) {
    weir_ps_message pull = side_asked(&s, k);
    pull.version = 1; /* nothing newer */
    side_values(&s, k, &pull, 1);
  }
  side_computed(&s);
  side_pushed(&s, 1, 1);
  side_close(&s);
}

/* The servers were restored while a run was under way: it is void, and the
 * values that it reads are left alone until it has ended. */
static void reset_within_a_run(void **state) {
  (void)state;
  side s;
  side_open(&s, NET, ASYNC);
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 0, 3, 1);
  side_pulled(&s, 3);
  weir_ps_message m = {.kind = WEIR_PS_EPOCH, .epoch = 10, .life = 10};
  side_deliver(&s, kChief, m);
  (void)side_take(&s, WEIR_PS_JOIN, kChief);
  m.kind = WEIR_PS_WELCOME;
  m.incarnation = 8;
  side_deliver(&s, kChief, m);
  m.kind = WEIR_PS_LEASE;
  m.lease = 1;
  m.range = (weir_ps_range){0, 2, 0, 1};
  side_deliver(&s, kChief, m);
  side_none(&s, WEIR_PS_PULL);
  side_computed(&s);
  side_none(&s, WEIR_PS_PUSH);
  side_none(&s, WEIR_PS_REPORT);
  side_none(&s, WEIR_PS_FAILED);
  side_pulled(&s, 2);
  side_computed(&s);
  side_pushed(&s, 0, 2);
  assert_int_equal(weir_worker_host_count(s.host).runs.resets, 1);
  assert_int_equal(weir_worker_host_count(s.host).rows, 4);
  assert_non_null(strstr(s.log, "begins anew"));
  side_close(&s);
}

static void drained(void **state) {
  (void)state;
  side s;
  side_open(&s, NET, ASYNC);
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 0, 5, 1);
  side_pulled(&s, 0);
  weir_worker_host_drain(s.host);
  assert_false(s.over);
  side_computed(&s);
  side_pushed(&s, 0, 0);
  side_none(&s, WEIR_PS_LEAVE);
  for (uint32_t k = 0; k < SERVERS; k++) side_applied(&s, k, 1, 1);
  (void)side_take(&s, WEIR_PS_LEAVE, kChief);
  side_none(&s, WEIR_PS_PULL);
  assert_false(s.over);
  side_deliver(&s, kChief, (weir_ps_message){.kind = WEIR_PS_BYE, .epoch = 9});
  assert_true(s.over && s.drained && s.failed == WEIR_OK);
  side_close(&s);
}

/* Nobody is there yet: it leaves at once. */
static void drained_before_it_joins(void **state) {
  (void)state;
  side s;
  side_open(&s, NET, SYNC);
  weir_worker_host_drain(s.host);
  assert_true(s.over && s.drained);
  side_close(&s);
}

#define LOGS                                                                \
  "weir: 1\ninputs: {x: 'f32[?]'}\nnodes:\n"                                \
  "  w: var([], init=ones())\n"                                             \
  "  v: var([], init=ones())\n"                                             \
  "  bad: log(mul(x, w))\n"                                                 \
  "  loss: mean(mul(bad, v))\noutputs: [loss]\n"                            \
  "data: {train: {source: memory, values: {x: [1, 2, 3, -1]}, batch: 1}}\n" \
  "train:\n  minimize: loss\n  optimizer: sgd(lr=0)\n"

/* A loss that is NaN is not pushed and ends the job, with its node. */
static void a_bad_loss_ends_it(void **state) {
  (void)state;
  side s;
  double bad = 0;
  for (uint64_t version = 0; bad == 0; version++)
    if (side_element(0, version, 0) > 0) bad = (double)version + 1;
  side_open(&s, LOGS, ASYNC);
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 3, 4, 1);
  side_pulled(&s, (uint64_t)bad - 1);
  side_computed(&s);
  assert_int_equal(side_take(&s, WEIR_PS_FAILED, kChief)->message.run, 3);
  side_none(&s, WEIR_PS_PUSH);
  side_none(&s, WEIR_PS_REPORT);
  assert_false(s.over);
  side_deliver(&s, kChief, (weir_ps_message){.kind = WEIR_PS_OVER, .epoch = 9});
  assert_true(s.over && !s.drained && s.failed != WEIR_OK);
  assert_string_equal(s.why.id, "W5020");
  assert_string_equal(s.why.node, "bad");
  assert_non_null(strstr(s.why.message, "step 4: the loss is"));
  assert_non_null(strstr(s.log, "run 3 failed: W5020"));
  side_close(&s);
}

/* It need not wait for a chief that is gone, too. */
static void a_bad_loss_and_no_chief(void **state) {
  (void)state;
  side s;
  side_open(&s, LOGS, ASYNC);
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 0, 4, 1);
  for (uint64_t run = 0, version = 0; run < 4 && !s.over; run++, version++) {
    /* One of the first two signs of w gives a NaN. */
    side_pulled(&s, version);
    side_computed(&s);
    if (side_find(&s, WEIR_PS_FAILED, kChief) != NULL) {
      weir_worker_host_drain(s.host);
      break;
    }
    side_pushed(&s, run, version);
    for (uint32_t k = 0; k < SERVERS; k++)
      side_applied(&s, k, run + 1, version + 1);
  }
  assert_true(s.over && s.failed != WEIR_OK);
  side_close(&s);
}

/* Batches that cannot be read end it as well. */
static void bad_data_ends_it(void **state) {
  (void)state;
  static const char kText[] =
      "weir: 1\ninputs: {x: 'f32[?]'}\nnodes:\n"
      "  w: var([], init=ones())\n  v: var([], init=ones())\n"
      "  loss: mean(mul(mul(x, w), v))\noutputs: [loss]\n"
      "data: {train: {source: csv, files: ps_worker_bad.csv, columns: [x], "
      "batch: 1, prefetch: 2}}\n"
      "train:\n  minimize: loss\n  optimizer: sgd(lr=0)\n";
  char path[128];
  side s;
  snprintf(path, sizeof path, "%s/ps_worker_bad.csv", loop_folder);
  FILE *f = fopen(path, "w");
  fputs("x\n1\n2\nthree\n", f);
  fclose(f);
  memset(&s, 0, sizeof s);
  pthread_mutex_init(&s.lock, NULL);
  pthread_cond_init(&s.posted, NULL);
  assert_ok(ps_world_open(&s.w, kText, ASYNC, SERVERS, 3), &s.w.err);
  s.pool = exec_pool(&s.w.world, 1);
  weir_worker_host_options options = {.job = s.w.job,
                                      .pool = s.pool,
                                      .data = {.root = loop_folder},
                                      .over = side_over,
                                      .log = side_log,
                                      .self = &s,
                                      .index = 1};
  weir_worker_port port = {&s, side_send, side_give_up, side_post, NULL};
  assert_ok(
      weir_worker_host_create(&s.w.world.env, &options, &s.host, &s.w.err),
      &s.w.err);
  weir_worker_host_connect(s.host, &port);
  s.net = weir_worker_host_events(s.host);
  s.vars = calloc(s.w.job->split->var_count + 1u, sizeof(weir_tensor *));
  s.pushes = calloc(s.w.job->split->push_count + 1u, sizeof(weir_tensor *));
  for (uint32_t k = 0; k < SERVERS; k++)
    for (uint32_t i = 0; i < s.w.job->servers[k].pull_count; i++) {
      uint32_t v = s.w.job->servers[k].pulls[i];
      s.vars[v] = side_tensor(&s, s.w.job->split->vars[v].worker);
    }
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 2, 3, 1);
  side_pulled(&s, 0);
  side_computed(&s);
  assert_int_equal(side_take(&s, WEIR_PS_FAILED, kChief)->message.run, 2);
  weir_worker_host_drain(s.host);
  assert_true(s.over);
  assert_string_equal(s.why.id, "W4027");
  side_close(&s);
}

/* Looks twice, 12 s apart, and 12 s later; expects |line| each time but the
 * first. */
static void expect_wait(side *s, int64_t *now_s, const char *line) {
  char want[256];
  const int64_t second = 1000000000;
  s->log[0] = '\0';
  assert_true(s->net.step(s->net.self, *now_s * second) ==
              (*now_s + 10) * second);
  assert_string_equal(s->log, "");
  *now_s += 12;
  assert_true(s->net.step(s->net.self, *now_s * second) ==
              (*now_s + 12) * second);
  snprintf(want, sizeof want, "has waited 12 s for %s\n", line);
  assert_string_equal(s->log, want);
  *now_s += 8;
  (void)s->net.step(s->net.self, *now_s * second);
  assert_string_equal(s->log, want);
  s->log[0] = '\0';
  *now_s += 4;
  (void)s->net.step(s->net.self, *now_s * second);
  snprintf(want, sizeof want, "has waited 24 s for %s\n", line);
  assert_string_equal(s->log, want);
}

/* Each wait that does not end is named. */
static void waits_are_named(void **state) {
  (void)state;
  int64_t now = 100;
  side s;
  side_open(&s, NET, ASYNC);
  expect_wait(&s, &now, "to be let in by the chief (up)");
  side_up(&s);
  side_join(&s, 1, 7);
  expect_wait(&s, &now, "runs from the chief (up)");
  side_lease(&s, 1, 0, 2, 1);
  expect_wait(&s, &now,
              "values of server 0 (never answered) server 1 (never answered)");
  weir_ps_message pull = side_take(&s, WEIR_PS_PULL, side_server(0))->message;
  side_values(&s, 0, &pull, 3);
  expect_wait(&s, &now, "values of server 1 (never answered)");
  pull = side_take(&s, WEIR_PS_PULL, side_server(1))->message;
  side_values(&s, 1, &pull, 3);
  expect_wait(&s, &now, "the end of its own run 0");
  side_computed(&s);
  side_pushed(&s, 0, 3);
  pull = side_asked(&s, 1);
  side_answer(&s, 1,
              (weir_ps_message){.kind = WEIR_PS_PUSHED,
                                .seq = 1,
                                .request = pull.request,
                                .version = 4,
                                .newer = true});
  expect_wait(&s, &now, "answers to pushes from server 0 (never answered)");
  weir_worker_host_drain(s.host);
  side_applied(&s, 0, 1, 4);
  expect_wait(&s, &now, "to be let go by the chief (up)");
  side_deliver(&s, kChief, (weir_ps_message){.kind = WEIR_PS_BYE, .epoch = 9});
  assert_true(s.net.step(s.net.self, INT64_MAX) == INT64_MAX);
  side_close(&s);
}

static void values_of_no_use_are_refused(void **state) {
  (void)state;
  side s;
  side_open(&s, NET, ASYNC);
  const struct {
    weir_ps_task from;
    weir_ps_message m;
  } kBad[] = {{kChief, {.kind = WEIR_PS_PULLED, .newer = true}},
              {side_server(0), {.kind = WEIR_PS_PUSH}},
              {side_server(0), {.kind = WEIR_PS_PULLED}},
              {side_server(SERVERS), {.kind = WEIR_PS_PULLED, .newer = true}},
              {{WEIR_PS_WORKER, 0}, {.kind = WEIR_PS_PULLED, .newer = true}}};
  for (size_t i = 0; i < sizeof kBad / sizeof *kBad; i++) {
    weir_ps_place place = {0};
    assert_error(
        s.net.receive(s.net.self, kBad[i].from, &kBad[i].m, &place, &s.w.err),
        &s.w.err, "W7011");
  }
  side_close(&s);
}

/* Once each shape of batch was seen, runs allocate nothing, and the host has as
 * many sets of pushes as it needs, with one push waiting. */
static void steady(void **state) {
  (void)state;
  side s;
  uint64_t before = 0;
  side_open(&s, NET, ASYNC);
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 0, 60, 1);
  for (uint64_t run = 0; run < 40; run++) {
    if (run == 16) before = atomic_load(&s.w.world.memory.calls);
    side_pulled(&s, run);
    side_computed(&s);
    for (uint32_t k = 0; k < SERVERS; k++)
      side_give_back(&s, side_take(&s, WEIR_PS_PUSH, side_server(k)));
    side_give_back(&s, side_take(&s, WEIR_PS_REPORT, kChief));
    for (uint32_t k = 0; k < SERVERS; k++)
      side_applied(&s, k, run + 1, run + 1);
  }
  assert_int_equal(atomic_load(&s.w.world.memory.calls), before);
  side_close(&s);
}

/* A push that is still being sent keeps its memory: the next run waits for it
 * when there is no other. */
static void sends_keep_their_values(void **state) {
  (void)state;
  side s;
  side_sent *waiting[3];
  side_open(&s, NET, ASYNC);
  side_up(&s);
  side_join(&s, 1, 7);
  side_lease(&s, 1, 0, 9, 1);
  for (uint64_t run = 0; run < 3; run++) {
    side_pulled(&s, run);
    side_computed(&s);
    side_expect(&s, run, run);
    (void)side_pushed_to(&s, 0, run);
    side_give_back(&s, side_pushed_to(&s, 1, run));
    side_give_back(&s, side_take(&s, WEIR_PS_REPORT, kChief));
    for (uint32_t k = 0; k < SERVERS; k++)
      side_applied(&s, k, run + 1, run + 1);
  }
  for (size_t i = 0, n = 0; i < s.sent.count; i++)
    if (s.sent.items[i].values != NULL) waiting[n++] = &s.sent.items[i];
  side_expect(&s, 1, 1);
  const weir_ps_lists *l = &s.w.job->servers[0];
  for (uint32_t i = 0; i < l->push_count; i++)
    assert_memory_equal(waiting[1]->values->pieces[i].data,
                        s.pushes[l->pushes[i]]->data,
                        s.pushes[l->pushes[i]]->bytes);
  side_pulled(&s, 3); /* the run is wanted, and waits */
  for (size_t i = 0; i < s.sent.count; i++)
    if (s.sent.items[i].values != NULL) {
      side_give_back(&s, &s.sent.items[i]);
      break;
    }
  side_computed(&s);
  side_pushed(&s, 3, 3);
  side_close(&s);
}

/* Every allocation of create fails once. */
static void without_memory(void **state) {
  (void)state;
  for (uint64_t k = 1, failed = 1; failed; k++) {
    side s;
    weir_error err = WEIR_ERROR_INIT;
    memset(&s, 0, sizeof s);
    assert_ok(ps_world_open(&s.w, NET, k % 2 ? ASYNC : SYNC, SERVERS, 3),
              &s.w.err);
    s.pool = exec_pool(&s.w.world, 1);
    s.w.world.memory.fail_at = atomic_load(&s.w.world.memory.calls) + k;
    failed = side_host(&s, &err) != WEIR_OK;
    s.w.world.memory.fail_at = 0;
    if (failed) assert_string_equal(err.id, "W6001");
    weir_worker_host_release(s.host);
    weir_pool_release(s.pool);
    ps_world_close(&s.w);
  }
}

/* Memory ends within runs: the job ends, or a link is given up and the push
 * comes again; nothing is left behind. */
static void without_memory_in_runs(void **state) {
  (void)state;
  for (uint64_t k = 1, failed = 1; failed; k++) {
    side s;
    side_open(&s, NET, ASYNC);
    side_up(&s);
    s.w.world.memory.fail_at = atomic_load(&s.w.world.memory.calls) + k;
    side_join(&s, 1, 7);
    side_lease(&s, 1, 0, 2, 1);
    side_pulled(&s, 0);
    if (side_find(&s, WEIR_PS_FAILED, kChief) == NULL) side_computed(&s);
    failed = atomic_load(&s.w.world.memory.calls) >= s.w.world.memory.fail_at;
    s.w.world.memory.fail_at = 0;
    if (side_find(&s, WEIR_PS_FAILED, kChief) != NULL) {
      weir_worker_host_drain(s.host);
      assert_string_equal(s.why.id, "W6001");
    } else if (s.gave_up == 0) {
      side_expect(&s, 0, 0);
      for (uint32_t i = 0; i < SERVERS; i++) (void)side_pushed_to(&s, i, 0);
    }
    side_close(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(async_runs),
      cmocka_unit_test(answers_hold_values),
      cmocka_unit_test(a_window_of_pushes),
      cmocka_unit_test(stale_runs_come_again),
      cmocka_unit_test(sync_computes_a_step_on_one_pull),
      cmocka_unit_test(a_lost_link_sends_again),
      cmocka_unit_test(torn_values_are_pulled_again),
      cmocka_unit_test(old_answers_change_nothing),
      cmocka_unit_test(reset_within_a_run),
      cmocka_unit_test(drained),
      cmocka_unit_test(drained_before_it_joins),
      cmocka_unit_test(a_bad_loss_ends_it),
      cmocka_unit_test(a_bad_loss_and_no_chief),
      LOOP_TEST(bad_data_ends_it),
      cmocka_unit_test(waits_are_named),
      cmocka_unit_test(values_of_no_use_are_refused),
      cmocka_unit_test(steady),
      cmocka_unit_test(sends_keep_their_values),
      cmocka_unit_test(without_memory),
      cmocka_unit_test(without_memory_in_runs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
