/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/dist/ps/ledger.h"
#include "tests/dist/psnet_world.h"

/* The tasks of a job of parameter servers, each with its threads: links that
 * come, go and come again, messages in their order, values of any size.
 *
 *   test_dist_psnet [grpc]     over memory, or over sockets on loopback */

static bool s_grpc;

static const weir_ps_task kChief = {WEIR_PS_CHIEF, 0};
static const weir_ps_task kServer0 = {WEIR_PS_SERVER, 0};
static const weir_ps_task kServer1 = {WEIR_PS_SERVER, 1};
static const weir_ps_task kWorker0 = {WEIR_PS_WORKER, 0};
static const weir_ps_task kWorker1 = {WEIR_PS_WORKER, 1};

static void job(ps_world *w, uint32_t servers, uint32_t workers) {
  ps_world_job(w, servers, workers, s_grpc);
}

static weir_ps_message message_of(weir_ps_kind kind, uint64_t request) {
  return (weir_ps_message){.kind = kind, .request = request};
}

static void all_tasks_meet(void **state) {
  (void)state;
  ps_world w;
  char text[256];
  job(&w, 2, 2);
  const ps_host *server1 = w.hosts[1], *worker1 = w.hosts[4];
  pthread_mutex_lock(&w.lock);
  assert_int_equal(ps_heard_count(server1, PS_UP, kChief), 1);
  assert_int_equal(ps_heard_count(server1, PS_UP, kServer0), 1);
  assert_int_equal(ps_heard_count(server1, PS_UP, kWorker0), 1);
  assert_int_equal(ps_heard_count(server1, PS_UP, kWorker1), 1);
  assert_int_equal(ps_heard_count(worker1, PS_UP, kChief), 1);
  assert_int_equal(ps_heard_count(worker1, PS_UP, kServer1), 1);
  assert_int_equal(worker1->heard_count, 3);
  pthread_mutex_unlock(&w.lock);
  ps_host_describe(w.hosts[0], kWorker0, text);
  assert_string_equal(text, "up");
  ps_host_describe(w.hosts[3], kWorker1, text);
  assert_string_equal(text, "never answered");
  ps_host_describe(w.hosts[3], (weir_ps_task){WEIR_PS_SERVER, 9}, text);
  assert_string_equal(text, "no task of this job");
  ps_world_close(&w);
}

/* ---- Values */

typedef struct seen {
  uint64_t life, version;
  bool ledger, op;
  weir_ps_range range;
  weir_ps_lease lease;
} seen;

static void look(void *self, const weir_ps_message *m) {
  seen *s = self;
  s->life = m->life;
  s->version = m->version;
  s->range = m->range;
  s->ledger = m->ledger != NULL && m->ledger->lease_count == 1 &&
              m->ledger->config.workers == 1 && m->ledger->cursor == 4;
  if (s->ledger) s->lease = m->ledger->leases[0];
  s->op = m->op != NULL && m->op->kind == WEIR_PS_OP_LEASE && m->op->run == 5;
}

static void numbers_come_with_a_ledger_and_an_op(void **state) {
  (void)state;
  ps_world w;
  seen s = {0};
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_ledger *ledger = NULL;
  job(&w, 1, 1);
  ps_host *server = w.hosts[0], *chief = w.hosts[1];
  assert_ok(weir_ps_ledger_create(weir_allocator_system(), &w.config, 100,
                                  &ledger, &err),
            &err);
  weir_ps_op op = {.kind = WEIR_PS_OP_JOIN};
  assert_ok(weir_ps_ledger_apply(ledger, &op, &err), &err);
  op = (weir_ps_op){.kind = WEIR_PS_OP_LEASE, .range = {0, 4, 0, 1}, .run = 5};
  assert_ok(weir_ps_ledger_apply(ledger, &op, &err), &err);
  weir_ps_message m = {.kind = WEIR_PS_GRANTED,
                       .life = WEIR_PS_NONE,
                       .version = 3,
                       .range = {1, 2, 3, 4},
                       .ledger = ledger,
                       .op = &op};
  chief->check = look;
  chief->check_self = &s;
  ps_host_send(server, kChief, &m, NULL, SIZE_MAX);
  ps_await(&w, ps_heard_count(chief, PS_MESSAGE, kServer0) == 1);
  assert_true(s.ledger && s.op && s.life == WEIR_PS_NONE && s.version == 3);
  assert_int_equal(s.range.k_end, 4);
  assert_int_equal(s.lease.incarnation, 1);
  assert_int_equal(s.lease.range.end, 4);
  weir_ps_ledger_release(ledger);
  ps_world_close(&w);
}

static void values_of_any_size_go_both_ways_in_order(void **state) {
  (void)state;
  ps_world w;
  const size_t sizes[] = {10, 0, 5 << 20, 8192, 8193, 0, 1, 3 << 20};
  enum { COUNT = 8, ROUNDS = 4, SMALL = 20 };
  const size_t few = PS_REPORT_BYTES; /* within the message, which waits */
  job(&w, 1, 1);
  ps_host *server = w.hosts[0], *worker = w.hosts[2];
  ps_host_wants(server, sizes, COUNT);
  ps_host_wants(worker, sizes, COUNT);
  uint64_t request = 0;
  for (int round = 0; round < ROUNDS; round++) {
    weir_ps_message m = message_of(WEIR_PS_PUSH, request);
    ps_host_send(worker, kServer0, &m, sizes, COUNT);
    m.kind = WEIR_PS_PULLED;
    ps_host_send(server, kWorker0, &m, sizes, COUNT);
    request++;
    m = message_of(WEIR_PS_REPORT, request++);
    ps_host_send(worker, kServer0, &m, &few, 1);
    ps_host_send(server, kWorker0, &m, &few, 1);
    for (int i = 0; i < SMALL; i++, request++) {
      m = message_of(WEIR_PS_ASK, request);
      ps_host_send(worker, kServer0, &m, NULL, SIZE_MAX);
      ps_host_send(server, kWorker0, &m, NULL, SIZE_MAX);
    }
  }
  ps_await(&w, ps_heard_count(server, PS_MESSAGE, kWorker0) == request &&
                   ps_heard_count(worker, PS_MESSAGE, kServer0) == request);
  ps_await(&w, server->sent == 2 * ROUNDS && worker->sent == 2 * ROUNDS);
  for (int k = 0; k < 2; k++) {
    const ps_host *h = k == 0 ? server : worker;
    uint64_t next = 0;
    for (size_t i = 0; i < h->heard_count; i++) {
      const ps_heard *e = &h->heard[i];
      if (e->what != PS_MESSAGE) continue;
      assert_int_equal(e->request, next++);
      assert_true(e->intact);
      assert_int_equal(e->pieces, e->kind == WEIR_PS_ASK      ? 0
                                  : e->kind == WEIR_PS_REPORT ? 1
                                                              : COUNT);
    }
  }
  ps_world_close(&w);
}

static void values_may_be_none_or_all_empty(void **state) {
  (void)state;
  ps_world w;
  const size_t empty[] = {0, 0, 0};
  job(&w, 1, 1);
  ps_host *server = w.hosts[0], *worker = w.hosts[2];
  weir_ps_message m = message_of(WEIR_PS_PUSH, 1);
  ps_host_send(worker, kServer0, &m, NULL, 0);
  ps_await(&w, ps_heard_count(server, PS_MESSAGE, kWorker0) == 1);
  ps_host_wants(server, empty, 3);
  ps_host_send(worker, kServer0, &m, empty, 3);
  ps_await(&w, ps_heard_count(server, PS_MESSAGE, kWorker0) == 2);
  assert_int_equal(ps_heard_last(server, PS_MESSAGE, kWorker0)->pieces, 3);
  ps_await(&w, worker->sent == 2);
  ps_world_close(&w);
}

static void what_is_sent_to_nobody_comes_back(void **state) {
  (void)state;
  ps_world w;
  const size_t sizes[] = {100, 100000};
  job(&w, 1, 1);
  ps_host *worker = w.hosts[2];
  weir_ps_message m = message_of(WEIR_PS_PUSH, 1);
  ps_host_release(w.hosts[0]);
  ps_await(&w, ps_heard_count(worker, PS_LOST, kServer0) == 1);
  ps_host_send(worker, kServer0, &m, sizes, 2);
  ps_host_send(worker, kWorker0, &m, sizes, 2);
  ps_await(&w, worker->sent == 2);
  ps_world_close(&w);
}

static void clog_bulk(ps_world *w, uint32_t at) {
  pthread_mutex_lock(&w->lock);
  w->clog_at = at;
  w->bulk_frames = 0;
  w->clogged = false;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
}

static void block(void *self, const weir_ps_message *m) {
  ps_world *w = self;
  (void)m;
  pthread_cond_broadcast(&w->changed); /* the message is noted */
  while (w->clog_at > 0) pthread_cond_wait(&w->changed, &w->lock);
}

static void *release(void *self) {
  ps_host_release(self);
  return NULL;
}

/* What a process sends last arrives, though its receiver is slow: one that does
 * not wait for it has a while to end. */
static void last_words_arrive(void **state) {
  (void)state;
  enum { WORDS = 50 };
  const struct timespec a_while = {.tv_nsec = 50000000};
  ps_world w;
  pthread_t thread;
  job(&w, 1, 1);
  ps_host *chief = w.hosts[1], *worker = w.hosts[2];
  worker->check = block;
  worker->check_self = &w;
  clog_bulk(&w, UINT32_MAX);
  for (uint64_t i = 0; i < WORDS; i++) {
    const weir_ps_message m = message_of(WEIR_PS_OVER, i);
    ps_host_send(chief, kWorker0, &m, NULL, SIZE_MAX);
  }
  ps_await(&w, ps_heard_count(worker, PS_MESSAGE, kChief) == 1);
  assert_int_equal(pthread_create(&thread, NULL, release, chief), 0);
  nanosleep(&a_while, NULL);
  clog_bulk(&w, 0);
  ps_await(&w, ps_heard_count(worker, PS_LOST, kChief) == 1);
  assert_int_equal(ps_heard_count(worker, PS_MESSAGE, kChief), WORDS);
  assert_int_equal(pthread_join(thread, NULL), 0);
  ps_world_close(&w);
}

/* ---- Links that end */

/* The worker sends |sizes|, which the server does not take; |words|: why. Then
 * another link is there. */
static void send_unfit(ps_world *w, const size_t *sizes, uint32_t count,
                       const char *words, bool handed_out) {
  ps_host *server = w->hosts[0], *worker = w->hosts[2];
  weir_ps_message m = message_of(WEIR_PS_PUSH, 1);
  uint32_t before = ps_heard_count(server, PS_LOST, kWorker0);
  uint32_t back = ps_heard_count(server, PS_UNRECEIVED, kWorker0);
  ps_host_send(worker, kServer0, &m, sizes, count);
  ps_await(w, ps_heard_count(server, PS_LOST, kWorker0) == before + 1);
  const ps_heard *lost = ps_heard_last(server, PS_LOST, kWorker0);
  if (strstr(lost->why, words) == NULL || strncmp(lost->why, "W7011", 5) != 0)
    fail_msg("%s: not \"%s\"", lost->why, words);
  assert_int_equal(ps_heard_count(server, PS_UNRECEIVED, kWorker0),
                   back + handed_out);
  ps_await(w, ps_heard_count(worker, PS_UP, kServer0) == before + 2);
  ps_await(w, ps_heard_count(server, PS_UP, kWorker0) == before + 2);
  ps_await(w, worker->sent == before + 1);
  assert_int_equal(ps_heard_count(server, PS_MESSAGE, kWorker0), 0);
}

static void values_that_do_not_fit_end_the_link(void **state) {
  (void)state;
  ps_world w;
  const size_t want[] = {10, 100000}, less[] = {9, 100000},
               more[] = {10, 100001};
  job(&w, 1, 1);
  ps_host *server = w.hosts[0];
  ps_host_wants(server, want, 2);
  send_unfit(&w, want, 1, "PUSH of worker:0 comes with 1 values, 2 are wanted",
             true);
  send_unfit(&w, less, 2,
             "PUSH of worker:0 comes with 9 bytes as value 0, 10 are wanted",
             true);
  send_unfit(&w, more, 2, "100001 bytes as value 1, 100000 are wanted", true);
  pthread_mutex_lock(&w.lock);
  server->refuses = true;
  pthread_mutex_unlock(&w.lock);
  send_unfit(&w, want, 2, "no room for that here", false);
  ps_world_close(&w);
}

static void give_up_worker(ps_host *h, void *arg) {
  weir_error err = WEIR_ERROR_INIT;
  weir_fail(&err, WEIR_W7011, NULL, "it is not what it says");
  weir_ps_net_give_up(h->net, *(const weir_ps_task *)arg, &err);
}

static void a_link_that_is_given_up_comes_again(void **state) {
  (void)state;
  ps_world w;
  weir_ps_task nobody = kWorker1, who = kWorker0;
  job(&w, 1, 2);
  ps_host *server = w.hosts[0], *worker = w.hosts[2];
  ps_host_release(w.hosts[3]);
  ps_await(&w, ps_heard_count(server, PS_LOST, kWorker1) == 1);
  ps_host_call(server, give_up_worker, &nobody); /* nothing happens */
  ps_host_call(server, give_up_worker, &who);
  ps_await(&w, ps_heard_count(server, PS_UP, kWorker0) == 2 &&
                   ps_heard_count(worker, PS_UP, kServer0) == 2);
  assert_string_equal(ps_heard_last(server, PS_LOST, kWorker0)->why,
                      "W7011 it is not what it says");
  assert_int_equal(ps_heard_count(server, PS_LOST, kWorker0), 1);
  weir_ps_message m = message_of(WEIR_PS_ASK, 3);
  ps_host_send(worker, kServer0, &m, NULL, SIZE_MAX);
  ps_await(&w, ps_heard_count(server, PS_MESSAGE, kWorker0) == 1);
  ps_world_close(&w);
}

/* |sender| is released when a part of its value has come. */
static void a_sender_may_end_half_way(void **state) {
  (void)state;
  ps_world w;
  const size_t sizes[] = {32 << 20, 10};
  job(&w, 1, 1);
  ps_host *server = w.hosts[0], *worker = w.hosts[2];
  ps_host_wants(server, sizes, 2);
  weir_ps_message m = message_of(WEIR_PS_PUSH, 1);
  clog_bulk(&w, 3);
  ps_host_send(worker, kServer0, &m, sizes, 2);
  ps_await(&w, w.clogged);
  m = message_of(WEIR_PS_ASK, 2); /* waits behind it, and is gone too */
  ps_host_send(worker, kServer0, &m, NULL, SIZE_MAX);
  weir_ps_net_stop(worker->net);
  clog_bulk(&w, 0);
  ps_host_release(worker);
  ps_await(&w, ps_heard_count(server, PS_LOST, kWorker0) == 1);
  assert_int_equal(worker->sent, 1);
  assert_int_equal(ps_heard_count(server, PS_UNRECEIVED, kWorker0), 1);
  assert_int_equal(ps_heard_count(server, PS_MESSAGE, kWorker0), 0);
  assert_true(ps_heard_last(server, PS_LOST, kWorker0)->why[0] == 'W');
  ps_world_close(&w);
}

static void a_receiver_may_end_half_way(void **state) {
  (void)state;
  ps_world w;
  const size_t sizes[] = {32 << 20, 10};
  job(&w, 1, 1);
  ps_host *server = w.hosts[0], *worker = w.hosts[2];
  ps_host_wants(server, sizes, 2);
  weir_ps_message m = message_of(WEIR_PS_PUSH, 1);
  clog_bulk(&w, 3);
  ps_host_send(worker, kServer0, &m, sizes, 2);
  ps_await(&w, w.clogged);
  clog_bulk(&w, 0);
  ps_host_release(server);
  ps_await(&w, ps_heard_count(worker, PS_LOST, kServer0) == 1);
  ps_await(&w, worker->sent == 1);
  assert_int_equal(ps_heard_count(server, PS_UNRECEIVED, kWorker0) +
                       ps_heard_count(server, PS_MESSAGE, kWorker0),
                   1);
  ps_world_close(&w);
}

/* The process of a worker that was killed and started again, while the servers
 * do not know yet that the first one is gone. */
static void a_new_process_takes_its_place(void **state) {
  (void)state;
  ps_world w;
  char text[256] = "";
  job(&w, 2, 1);
  ps_host *server = w.hosts[0], *old = w.hosts[3];
  ps_host *fresh = ps_host_create(&w, WEIR_PS_WORKER, 0);
  ps_host_start(fresh);
  ps_await(&w, fresh->heard_count >= 3);
  ps_await(&w, ps_heard_count(server, PS_UP, kWorker0) == 2);
  assert_int_equal(ps_heard_count(server, PS_LOST, kWorker0), 1);
  const ps_heard *lost = ps_heard_last(server, PS_LOST, kWorker0);
  assert_true(lost < ps_heard_last(server, PS_UP, kWorker0));
  assert_non_null(strstr(lost->why, "another process has taken its place"));
  ps_await(&w, ps_heard_count(old, PS_LOST, kServer0) == 1);
  while (strstr(text, "refused: an older process of worker:0") == NULL) {
    ps_host_describe(old, kServer0, text);
    sched_yield();
  }
  weir_ps_message m = message_of(WEIR_PS_ASK, 3);
  ps_host_send(old, kServer0, &m, NULL, SIZE_MAX); /* to nobody */
  m.request = 4;
  ps_host_send(fresh, kServer0, &m, NULL, SIZE_MAX);
  ps_await(&w, ps_heard_count(server, PS_MESSAGE, kWorker0) == 1);
  assert_int_equal(ps_heard_last(server, PS_MESSAGE, kWorker0)->request, 4);
  assert_int_equal(ps_heard_count(server, PS_UP, kWorker0), 2);
  ps_world_close(&w);
}

/* A process that ends and one that is started later with its address. */
static void a_server_comes_again(void **state) {
  (void)state;
  ps_world w;
  job(&w, 2, 1);
  ps_host *server1 = w.hosts[1], *chief = w.hosts[2], *worker = w.hosts[3];
  ps_host_release(w.hosts[0]);
  ps_await(&w, ps_heard_count(server1, PS_LOST, kServer0) == 1 &&
                   ps_heard_count(chief, PS_LOST, kServer0) == 1 &&
                   ps_heard_count(worker, PS_LOST, kServer0) == 1);
  ps_host *again = ps_host_create(&w, WEIR_PS_SERVER, 0);
  ps_host_start(again);
  ps_await(&w, again->heard_count == 3);
  ps_await(&w, ps_heard_count(worker, PS_UP, kServer0) == 2);
  ps_world_close(&w);
}

static void strangers_are_refused(void **state) {
  (void)state;
  ps_world w;
  char text[256] = "";
  ps_world_open(&w, 1, 1, s_grpc);
  ps_host *server = ps_host_create(&w, WEIR_PS_SERVER, 0);
  ps_host_create(&w, WEIR_PS_CHIEF, 0);
  ps_host *other = ps_host_of(&w, WEIR_PS_WORKER, 0, 8);
  w.config.workers = 4;
  ps_host *fourth = ps_host_create(&w, WEIR_PS_WORKER, 3);
  for (uint32_t i = 0; i < w.host_count; i++) ps_host_start(w.hosts[i]);
  while (strstr(text,
                "refused: worker:0 was started with another graph, "
                "configuration or first values") == NULL)
    ps_host_describe(other, kServer0, text);
  while (strstr(text,
                "refused: worker:3 has no place at ps:0 in a job of 1 "
                "servers and 1 workers") == NULL)
    ps_host_describe(fourth, kServer0, text);
  ps_await(&w, strstr(server->log, "refused ") != NULL);
  assert_int_equal(ps_heard_count(server, PS_UP, kWorker0), 0);
  assert_int_equal(other->heard_count + fourth->heard_count, 0);
  ps_world_close(&w);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_tasks_meet),
      cmocka_unit_test(numbers_come_with_a_ledger_and_an_op),
      cmocka_unit_test(values_of_any_size_go_both_ways_in_order),
      cmocka_unit_test(values_may_be_none_or_all_empty),
      cmocka_unit_test(what_is_sent_to_nobody_comes_back),
      cmocka_unit_test(last_words_arrive),
      cmocka_unit_test(values_that_do_not_fit_end_the_link),
      cmocka_unit_test(a_link_that_is_given_up_comes_again),
      cmocka_unit_test(a_sender_may_end_half_way),
      cmocka_unit_test(a_receiver_may_end_half_way),
      cmocka_unit_test(a_new_process_takes_its_place),
      cmocka_unit_test(a_server_comes_again),
      cmocka_unit_test(strangers_are_refused),
  };
  s_grpc = argc == 2 && strcmp(argv[1], "grpc") == 0;
  if (s_grpc) setenv("GRPC_POLL_STRATEGY", "poll", 0);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
