/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_PS_WORKER_CHECK_H_
#define TESTS_TRAIN_PS_WORKER_CHECK_H_

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/vec.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/ps/worker/worker_host.h"
#include "tests/train/loop_check.h"
#include "tests/train/ps_check.h"

/* The other end of a worker's host: a test is its net, chief and servers, on
 * one thread. All that the host sends is kept in a list until the test takes
 * it; the values of a push are compared, bit for bit, with those that the
 * worker graph gives when it is run on the batches of a plain iterator. */

enum { SERVERS = 2 };

/* Something that was sent. */
typedef struct side_sent {
  weir_ps_task to;
  weir_ps_message message;
  weir_ps_values *values; /* NULL: none, or given back */
  bool taken;
} side_sent;

typedef struct side {
  ps_world w;
  weir_pool *pool;
  weir_worker_host *host;
  weir_ps_net_events net;
  WEIR_VEC(side_sent) sent;
  pthread_mutex_t lock;
  pthread_cond_t posted;
  weir_node_call *posts; /* of the compute's thread */
  uint32_t gave_up;
  bool over, drained;
  weir_status failed;
  weir_error why;
  char log[2048];
  /* The same worker graph, run by itself. */
  weir_exec_session *session;
  weir_dataset *data;
  weir_tensor **vars, **pushes;
  double numbers[8];
} side;

/* ---- The port */

static inline void side_send(void *self, weir_ps_task to,
                             const weir_ps_message *m, weir_ps_values *values) {
  side *s = self;
  assert_true(weir_vec_push(weir_allocator_system(), &s->sent,
                            (side_sent){to, *m, values, false}));
}

static inline void side_give_up(void *self, weir_ps_task peer,
                                const weir_error *why) {
  (void)peer;
  assert_string_equal(why->id, "W6001");
  ((side *)self)->gave_up++;
}

static inline void side_post(void *self, weir_node_call *call) {
  side *s = self;
  pthread_mutex_lock(&s->lock);
  assert(s->posts == NULL);
  call->next = NULL;
  s->posts = call;
  pthread_cond_signal(&s->posted);
  pthread_mutex_unlock(&s->lock);
}

static inline void side_describe(void *self, weir_ps_task peer, char *text,
                                 size_t size) {
  (void)self;
  snprintf(text, size, peer.role == WEIR_PS_CHIEF ? "up" : "never answered");
}

/* Waits until the run under way has ended, and tells the host. */
static inline void side_computed(side *s) {
  pthread_mutex_lock(&s->lock);
  while (s->posts == NULL) pthread_cond_wait(&s->posted, &s->lock);
  weir_node_call *call = s->posts;
  s->posts = NULL;
  pthread_mutex_unlock(&s->lock);
  call->fn(call->self, true);
}

static inline void side_over(void *self, bool drained, weir_status failed,
                             const weir_error *err) {
  side *s = self;
  assert_false(s->over);
  s->over = true;
  s->drained = drained;
  s->failed = failed;
  if (failed != WEIR_OK) weir_error_copy(&s->why, err);
}

static inline void side_log(void *self, const char *text) {
  side *s = self;
  size_t n = strlen(s->log);
  snprintf(s->log + n, sizeof s->log - n, "%s\n", text);
}

/* ---- Open and close */

static inline weir_status side_host(side *s, weir_error *err) {
  weir_worker_host_options options = {.job = s->w.job,
                                      .index = 1,
                                      .pool = s->pool,
                                      .session = {.seed = 9},
                                      .data = {.seed = 5},
                                      .over = side_over,
                                      .log = side_log,
                                      .self = s};
  weir_worker_port port = {s, side_send, side_give_up, side_post,
                           side_describe};
  WEIR_TRY(weir_worker_host_create(&s->w.world.env, &options, &s->host, err));
  weir_worker_host_connect(s->host, &port);
  s->net = weir_worker_host_events(s->host);
  return WEIR_OK;
}

static inline weir_tensor *side_tensor(side *s, weir_value_id value) {
  const weir_value *v = &s->w.job->split->worker->values[value];
  weir_tensor *t = NULL;
  assert_ok(weir_tensor_create_shaped(&s->w.world.memory.base, v->dtype,
                                      v->shape, &t, &s->w.err),
            &s->w.err);
  return t;
}

static inline void side_reference(side *s) {
  const weir_split *split = s->w.job->split;
  weir_session_options options = {.seed = 9};
  weir_dataset_options data = {.seed = 5, .pool = s->pool};
  assert_ok(weir_exec_session_create(&s->w.world.env, s->pool, split->worker,
                                     &options, &s->session, &s->w.err),
            &s->w.err);
  assert_ok(weir_dataset_open(&s->w.world.env, s->w.graph, WEIR_SV_LIT("train"),
                              &data, &s->data, &s->w.err),
            &s->w.err);
  s->vars = calloc(split->var_count + 1u, sizeof(weir_tensor *));
  s->pushes = calloc(split->push_count + 1u, sizeof(weir_tensor *));
  for (uint32_t k = 0; k < SERVERS; k++) {
    const weir_ps_lists *l = &s->w.job->servers[k];
    for (uint32_t i = 0; i < l->pull_count; i++)
      s->vars[l->pulls[i]] = side_tensor(s, split->vars[l->pulls[i]].worker);
  }
}

/* |window|: pushes that may wait; 0: the job's. */
static inline void side_open_window(side *s, const char *text, const char *mode,
                                    uint32_t window) {
  memset(s, 0, sizeof *s);
  s->why = (weir_error)WEIR_ERROR_INIT;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->posted, NULL);
  assert_ok(ps_world_open(&s->w, text, mode, SERVERS, 3), &s->w.err);
  if (window > 0) s->w.job->config.window = window;
  s->pool = exec_pool(&s->w.world, 2);
  assert_ok(side_host(s, &s->w.err), &s->w.err);
  side_reference(s);
}

static inline void side_open(side *s, const char *text, const char *mode) {
  side_open_window(s, text, mode, 0);
}

static inline void side_give_back(side *s, side_sent *m) {
  weir_ps_values *values = m->values;
  (void)s;
  m->values = NULL;
  if (values != NULL) values->sent(values);
}

static inline void side_close(side *s) {
  weir_worker_host_stop(s->host);
  for (size_t i = 0; i < s->sent.count; i++)
    side_give_back(s, &s->sent.items[i]);
  weir_worker_host_release(s->host);
  for (uint32_t v = 0; v < s->w.job->split->var_count; v++)
    weir_tensor_unref(s->vars[v]);
  for (uint32_t p = 0; p < s->w.job->split->push_count; p++)
    weir_tensor_unref(s->pushes[p]);
  free(s->vars);
  free(s->pushes);
  weir_dataset_release(s->data);
  weir_exec_session_release(s->session);
  weir_pool_release(s->pool);
  weir_vec_free(weir_allocator_system(), &s->sent);
  pthread_cond_destroy(&s->posted);
  pthread_mutex_destroy(&s->lock);
  ps_world_close(&s->w);
}

/* ---- Values */

/* Element |i| of variable |v| at |version|. */
static inline double side_element(uint32_t v, uint64_t version, int64_t i) {
  uint64_t x = (uint64_t)i * 7919 + version * 104729 + v * 31 + 13;
  return (double)(x * 2654435761u % 2003) / 1001 - 1;
}

static inline void side_fill(weir_tensor *t, uint32_t v, uint64_t version) {
  for (int64_t i = 0; i < weir_shape_elements(&t->shape); i++)
    weir_tensor_set_f64(t, i, side_element(v, version, i));
}

/* Batch |run| of one process, as feeds of the worker graph. */
static inline uint32_t side_batch(side *s, weir_data_iter *it, uint64_t run,
                                  weir_exec_feed *feeds) {
  const weir_graph *g = s->w.job->split->worker;
  weir_batch b;
  uint32_t n = 0;
  for (uint64_t at = 0; at <= run; at += !b.end_of_epoch)
    assert_ok(weir_data_iter_next(it, &b, &s->w.err), &s->w.err);
  for (uint32_t c = 0; c < weir_dataset_column_count(s->data); c++)
    for (uint32_t i = 0; i < g->input_count; i++)
      if (weir_sv_equal(g->inputs[i].name,
                        weir_dataset_column(s->data, c)->name))
        feeds[n++] = (weir_exec_feed){g->inputs[i].value, b.columns[c]};
  return n;
}

/* Computes the pushes and numbers of |run| on values of |version|. */
static inline void side_expect(side *s, uint64_t run, uint64_t version) {
  const weir_ps_job *job = s->w.job;
  const weir_split *split = job->split;
  weir_exec_feed feeds[64];
  weir_exec_fetch fetches[64] = {0};
  weir_data_iter *it = NULL;
  assert_ok(weir_data_iter_create(s->data, &it, &s->w.err), &s->w.err);
  uint32_t n = side_batch(s, it, run, feeds), numbers = job->number_count;
  for (uint32_t v = 0; v < split->var_count; v++) {
    if (s->vars[v] == NULL) continue;
    side_fill(s->vars[v], v, version);
    feeds[n++] = (weir_exec_feed){split->vars[v].worker, s->vars[v]};
  }
  for (uint32_t i = 0; i < numbers; i++) fetches[i].value = job->numbers[i];
  for (uint32_t p = 0; p < split->push_count; p++)
    fetches[numbers + p].value = split->pushes[p].worker;
  weir_run_options options = {.step = run};
  weir_exec_request request = {.feeds = feeds,
                               .feed_count = n,
                               .fetches = fetches,
                               .fetch_count = numbers + split->push_count,
                               .options = &options};
  assert_ok(weir_exec_run(s->session, &request, &s->w.err), &s->w.err);
  for (uint32_t i = 0; i < numbers; i++) {
    s->numbers[i] = weir_tensor_get_f64(fetches[i].tensor, 0);
    weir_tensor_unref(fetches[i].tensor);
  }
  for (uint32_t p = 0; p < split->push_count; p++) {
    weir_tensor_unref(s->pushes[p]);
    s->pushes[p] = fetches[numbers + p].tensor;
  }
  weir_data_iter_release(it);
}

/* ---- Messages */

static inline weir_ps_task side_server(uint32_t i) {
  return (weir_ps_task){WEIR_PS_SERVER, i};
}

static const weir_ps_task kChief = {WEIR_PS_CHIEF, 0};

static inline side_sent *side_find(side *s, weir_ps_kind kind,
                                   weir_ps_task to) {
  for (size_t i = 0; i < s->sent.count; i++) {
    side_sent *m = &s->sent.items[i];
    if (!m->taken && m->message.kind == kind && m->to.role == to.role &&
        m->to.index == to.index)
      return m;
  }
  return NULL;
}

/* The first that was sent of this kind. */
static inline side_sent *side_take(side *s, weir_ps_kind kind,
                                   weir_ps_task to) {
  side_sent *m = side_find(s, kind, to);
  if (m == NULL)
    fail_msg("no %s to %d %u", weir_ps_kind_name(kind), to.role, to.index);
  m->taken = true;
  return m;
}

static inline void side_none(side *s, weir_ps_kind kind) {
  for (size_t i = 0; i < s->sent.count; i++)
    if (!s->sent.items[i].taken && s->sent.items[i].message.kind == kind)
      fail_msg("a %s was sent", weir_ps_kind_name(kind));
}

static inline void side_deliver(side *s, weir_ps_task from, weir_ps_message m) {
  m.life = m.life != 0 ? m.life : 1;
  m.epoch = m.epoch != 0 ? m.epoch : 1;
  m.incarnation = m.incarnation != 0 ? m.incarnation : 7;
  m.worker = 1;
  s->net.message(s->net.self, from, &m);
}

/* Joins, and gets a lease. */
static inline void side_join(side *s, uint64_t life, uint64_t incarnation) {
  weir_ps_message m = {.kind = WEIR_PS_EPOCH, .epoch = life, .life = life};
  side_deliver(s, kChief, m);
  (void)side_take(s, WEIR_PS_JOIN, kChief);
  m.kind = WEIR_PS_WELCOME;
  m.incarnation = incarnation;
  side_deliver(s, kChief, m);
}

static inline void side_up(side *s) {
  s->net.up(s->net.self, kChief);
  for (uint32_t k = 0; k < SERVERS; k++) s->net.up(s->net.self, side_server(k));
}

static inline void side_lease(side *s, uint64_t lease, uint64_t first,
                              uint64_t end, uint32_t k_end) {
  side_deliver(s, kChief,
               (weir_ps_message){.kind = WEIR_PS_LEASE,
                                 .lease = lease,
                                 .epoch = 9,
                                 .range = {first, end, 0, k_end}});
}

/* Delivers |m| of server |k|, if it is newer with the values of its version. */
static inline void side_answer(side *s, uint32_t k, weir_ps_message m) {
  const weir_ps_lists *l = &s->w.job->servers[k];
  weir_ps_place place = {0};
  if (m.newer) {
    assert_ok(
        s->net.receive(s->net.self, side_server(k), &m, &place, &s->w.err),
        &s->w.err);
    assert_int_equal(place.count, l->pull_count);
  }
  for (uint32_t i = 0; i < place.count; i++) {
    weir_tensor *t = s->vars[l->pulls[i]];
    assert_int_equal(place.pieces[i].bytes, t->bytes);
    side_fill(t, l->pulls[i], m.version);
    memcpy(place.pieces[i].data, t->data, t->bytes);
  }
  m.data = place.data;
  side_deliver(s, side_server(k), m);
}

/* Answers the PULL of server |k| with values of |version|. */
static inline void side_values(side *s, uint32_t k, const weir_ps_message *pull,
                               uint64_t version) {
  side_answer(s, k,
              (weir_ps_message){.kind = WEIR_PS_PULLED,
                                .request = pull->request,
                                .version = version,
                                .life = pull->life,
                                .incarnation = pull->incarnation,
                                .newer = pull->version != version});
}

/* What server |k| was asked for: a PULL, else what its last PUSH holds. */
static inline weir_ps_message side_asked(side *s, uint32_t k) {
  weir_ps_message m = {.kind = WEIR_PS_KIND_COUNT};
  if (side_find(s, WEIR_PS_PULL, side_server(k)) != NULL)
    return side_take(s, WEIR_PS_PULL, side_server(k))->message;
  for (size_t i = 0; i < s->sent.count; i++) {
    const side_sent *sent = &s->sent.items[i];
    if (sent->message.kind == WEIR_PS_PUSH && sent->to.index == k &&
        sent->message.request != 0)
      m = sent->message;
  }
  if (m.kind == WEIR_PS_KIND_COUNT) fail_msg("no values are asked of %u", k);
  m.version = WEIR_PS_NONE;
  return m;
}

static inline void side_pulled(side *s, uint64_t version) {
  for (uint32_t k = 0; k < SERVERS; k++) {
    weir_ps_message pull = side_asked(s, k);
    side_values(s, k, &pull, version);
  }
}

/* A PUSH of |run| to server |k|, with the right values. */
static inline side_sent *side_pushed_to(side *s, uint32_t k, uint64_t run) {
  const weir_ps_lists *l = &s->w.job->servers[k];
  side_sent *m = side_take(s, WEIR_PS_PUSH, side_server(k));
  assert_int_equal(m->message.run, run);
  assert_int_equal(m->message.worker, 1);
  assert_int_equal(m->values->count, l->push_count);
  for (uint32_t i = 0; i < l->push_count; i++) {
    const weir_tensor *want = s->pushes[l->pushes[i]];
    assert_int_equal(m->values->pieces[i].bytes, want->bytes);
    if (memcmp(m->values->pieces[i].data, want->data, want->bytes) != 0)
      fail_msg("run %d: other bits of %.*s", (int)run,
               WEIR_SV(s->w.job->split->pushes[l->pushes[i]].name));
  }
  return m;
}

/* Pushes of |run|, computed on values of |version|, have been sent to all. */
static inline void side_pushed(side *s, uint64_t run, uint64_t version) {
  side_expect(s, run, version);
  for (uint32_t k = 0; k < SERVERS; k++)
    side_give_back(s, side_pushed_to(s, k, run));
  side_sent *report = side_take(s, WEIR_PS_REPORT, kChief);
  assert_int_equal(report->message.run, run);
  assert_int_equal(report->values->count, 1);
  assert_int_equal(report->values->pieces[0].bytes,
                   weir_ps_report_count(s->w.job) * sizeof(double));
  assert_memory_equal(report->values->pieces[0].data, s->numbers,
                      s->w.job->number_count * sizeof(double));
  side_give_back(s, report);
}

/* Server |k| has applied push |seq|. */
static inline void side_applied(side *s, uint32_t k, uint64_t seq,
                                uint64_t version) {
  side_deliver(s, side_server(k),
               (weir_ps_message){.kind = WEIR_PS_PUSHED,
                                 .seq = seq,
                                 .version = version,
                                 .verdict = WEIR_PS_APPLIED});
}

#endif
