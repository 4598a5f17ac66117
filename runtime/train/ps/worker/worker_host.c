/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/worker/worker_host.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "runtime/train/ps/worker/worker_pulls.h"
#include "runtime/train/ps/worker/worker_sets.h"
#include "runtime/train/ps/worker/worker_wait.h"

/* Idea: values are received into the tensors that the next run reads, and sent
 * from those that a run wrote. So who may touch them when must be clear:
 *
 *   pulled tensors  A server's are written while an answer to its last PULL
 *     comes in, and read while a run is under way. The machine never pulls
 *     while it computes; but it may be reset, join again and pull while the run
 *     that is void goes on, so a PULL waits here until no run is under way.
 *     Answers to older requests are received aside. A link that ends in the
 *     middle leaves *torn* values, of no version: the next PULL says so.
 *   a set of pushes (worker_sets.h)  A run waits here until there is a free
 *     one.
 *
 * Nothing that a machine's call does leads back into the machine: a run begins
 * at the end of the event, in settle(). */

static const int64_t kHangNs = INT64_C(10000000000);

struct weir_worker_host {
  const weir_env *env;
  weir_worker_host_options options;
  weir_worker_port port;
  weir_ps_worker *machine;
  weir_worker_compute *compute;
  weir_worker_pulls pulls;
  weir_worker_sets sets;
  weir_worker_wait wait;
  /* The run that the machine wants, and the one under way. */
  bool wanted, busy, is_void;
  uint64_t ticket, busy_ticket;
  weir_ps_work work, busy_work;
  weir_worker_job job; /* the compute's while busy */
  weir_node_call done;
  uint64_t rows;
  /* Time with a run at hand, since the last report. */
  bool has_work;
  int64_t busy_ns, since_ns;
  weir_status failed; /* of the first run that failed, with |err| */
  weir_error err;
  uint64_t over_number; /* of the OVER at hand */
  bool over, stopped;
};

static void say(const weir_worker_host *h, const char *text) {
  if (h->options.log != NULL) h->options.log(h->options.self, text);
}

static void end(weir_worker_host *h, bool drained) {
  if (h->over) return;
  h->over = true;
  weir_worker_compute_cancel(h->compute);
  h->options.over(h->options.self, drained, h->failed, &h->err);
}

/* ---- Runs */

static void run_failed(weir_worker_host *h, uint64_t run, weir_status status,
                       const weir_error *err) {
  char text[700];
  if (h->failed == WEIR_OK) weir_error_copy(&h->err, err);
  if (h->failed == WEIR_OK) h->failed = status;
  snprintf(text, sizeof text, "run %" PRIu64 " failed: %s %s", run, err->id,
           err->message);
  say(h, text);
}

/* Begins the run that the machine wants. false: it cannot yet. */
static bool begin(weir_worker_host *h) {
  weir_worker_set *set = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_worker_sets_drop(&h->sets, h->work.run); /* it is computed again */
  weir_status s = weir_worker_sets_find(&h->sets, &set, &err);
  if (s == WEIR_OK && set == NULL) return false;
  h->wanted = false;
  if (s != WEIR_OK) {
    run_failed(h, h->work.run, s, &err);
    weir_ps_worker_computed(h->machine, h->ticket, false);
    return true;
  }
  for (uint32_t i = 0; i < h->options.job->config.servers; i++)
    h->pulls.items[i].expected = false;
  set->held = true;
  set->run = h->work.run;
  h->job =
      (weir_worker_job){.set = set, .run = h->work.run, .step = h->work.step};
  h->job.ahead_count = weir_ps_worker_ahead(
      h->machine, h->job.ahead, weir_worker_compute_ahead(h->compute));
  h->busy = true;
  h->busy_ticket = h->ticket;
  h->busy_work = h->work;
  weir_worker_compute_begin(h->compute, &h->job);
  return true;
}

/* Time goes on: it counts where the worker had a run at hand, in whatever
 * state. */
static void count_time(weir_worker_host *h) {
  const weir_clock *clock = h->env->clock;
  weir_ps_worker_state state = weir_ps_worker_look(h->machine, NULL, NULL);
  int64_t now_ns = clock->now_ns(clock->self);
  if (h->has_work) h->busy_ns += now_ns - h->since_ns;
  h->since_ns = now_ns;
  h->has_work = state == WEIR_PS_WAITS_PULL || state == WEIR_PS_COMPUTES ||
                state == WEIR_PS_WAITS_PUSH;
}

/* Does what waited for the end of an event. */
static void settle(weir_worker_host *h) {
  while (h->wanted && !h->busy && !h->over && !h->stopped)
    if (!begin(h)) break;
  count_time(h);
}

/* ---- Sending */

static void on_freed(void *self) {
  settle(self);
}

/* A push is lost only with its link: the machine sends it again then. */
static void send_push(weir_worker_host *h, weir_ps_task to,
                      const weir_ps_message *m) {
  uint32_t count = h->options.job->servers[to.index].push_count;
  weir_worker_set *set = weir_worker_sets_of(&h->sets, m->run);
  weir_ps_values *values = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert(set != NULL);
  if (m->request != 0) { /* of all that changes, so nothing stays torn */
    h->pulls.items[to.index].request = m->request;
    h->pulls.items[to.index].expected = true;
  }
  if (count > 0) {
    values = weir_worker_sets_wrap(&h->sets, set, set->pieces[to.index], count);
    if (values == NULL) {
      (void)weir_fail_memory(&err, sizeof(weir_worker_parcel));
      h->port.give_up(h->port.self, to, &err);
      return;
    }
  }
  h->port.send(h->port.self, to, m, values);
}

static void send_pull(weir_worker_host *h, uint32_t server) {
  weir_worker_pull *p = &h->pulls.items[server];
  p->waits = false;
  p->request = p->message.request;
  p->expected = true;
  if (p->torn) p->message.version = WEIR_PS_NONE;
  h->port.send(h->port.self, (weir_ps_task){WEIR_PS_SERVER, server},
               &p->message, NULL);
}

/* The numbers of a run, for the chief's log: lost if there is no memory. */
static void send_report(weir_worker_host *h, weir_worker_set *set,
                        const weir_ps_work *work) {
  weir_ps_message m = {.kind = WEIR_PS_REPORT,
                       .worker = h->options.index,
                       .run = work->run,
                       .step = work->step,
                       .k = work->k,
                       .version = work->version};
  double *more = set->numbers + h->options.job->number_count;
  count_time(h);
  more[WEIR_REPORT_ROWS] = (double)h->job.rows;
  more[WEIR_REPORT_COMPUTE_NS] = (double)h->job.ns;
  more[WEIR_REPORT_BUSY_NS] = (double)h->busy_ns;
  h->busy_ns = 0;
  weir_ps_values *values =
      weir_worker_sets_wrap(&h->sets, set, &set->report, 1);
  if (values != NULL)
    h->port.send(h->port.self, (weir_ps_task){WEIR_PS_CHIEF, 0}, &m, values);
}

/* ---- Calls of the machine */

static void on_send(void *self, weir_ps_task to, const weir_ps_message *m) {
  weir_worker_host *h = self;
  if (h->over) return;
  if (m->kind == WEIR_PS_PUSH) {
    send_push(h, to, m);
  } else if (m->kind == WEIR_PS_PULL) {
    h->pulls.items[to.index].message = *m;
    h->pulls.items[to.index].waits = true;
    if (!h->busy) send_pull(h, to.index);
  } else {
    h->port.send(h->port.self, to, m, NULL);
  }
}

static void on_compute(void *self, uint64_t ticket, const weir_ps_work *work) {
  weir_worker_host *h = self;
  h->wanted = true;
  h->ticket = ticket;
  h->work = *work;
}

static void on_forget(void *self, uint64_t run) {
  weir_worker_sets_drop(&((weir_worker_host *)self)->sets, run);
}

static void on_reset(void *self) {
  weir_worker_host *h = self;
  h->wanted = false;
  weir_worker_sets_drop_all(&h->sets);
  for (uint32_t i = 0; i < h->options.job->config.servers; i++)
    h->pulls.items[i].expected = h->pulls.items[i].waits = false;
  if (h->busy) {
    h->is_void = h->job.set->held = true; /* until its run has ended */
    h->job.set->run = WEIR_PS_NONE;
    weir_worker_compute_cancel(h->compute);
  }
  say(h, "begins anew: its values and runs are void");
}

static void fail(weir_worker_host *h, const weir_error *why) {
  if (h->failed != WEIR_OK) return; /* the first counts */
  weir_error_copy(&h->err, why);
  h->failed = why->code;
}

static void on_over(void *self, bool drained) {
  weir_worker_host *h = self;
  weir_error err = WEIR_ERROR_INIT;
  if (h->over_number != 0) {
    weir_ps_over_error(h->over_number, &err);
    fail(h, &err);
  }
  end(h, drained);
}

/* ---- The end of a run */

static void finish(weir_worker_host *h) {
  weir_worker_job *r = &h->job;
  bool ok = r->status == WEIR_OK;
  if (ok) {
    h->rows += (uint64_t)r->rows;
  } else {
    r->set->held = false;
    run_failed(h, r->run, r->status, &r->err);
  }
  weir_ps_worker_computed(h->machine, h->busy_ticket, ok);
  if (ok) send_report(h, r->set, &h->busy_work);
}

/* On the control thread, or, when that has ended, anywhere. */
static void on_done(void *self, bool runs) {
  weir_worker_host *h = self;
  if (!runs || h->stopped) return;
  bool was_void = h->is_void;
  h->busy = h->is_void = false;
  if (was_void) h->job.set->held = false;
  if (h->over) return;
  if (!was_void) finish(h);
  for (uint32_t i = 0; i < h->options.job->config.servers; i++)
    if (h->pulls.items[i].waits) send_pull(h, i);
  settle(h);
}

/* On the compute's thread. */
static void tell_done(void *self) {
  weir_worker_host *h = self;
  h->port.post(h->port.self, &h->done);
}

/* ---- Events of the net */

static void say_link(const weir_worker_host *h, weir_ps_task peer,
                     const char *text, const char *why) {
  char line[400];
  if (peer.role == WEIR_PS_CHIEF)
    snprintf(line, sizeof line, "the chief is %s%.300s", text, why);
  else
    snprintf(line, sizeof line, "server %u is %s%.300s", peer.index, text, why);
  say(h, line);
}

static void on_up(void *self, weir_ps_task peer) {
  weir_worker_host *h = self;
  say_link(h, peer, "there", "");
  weir_ps_worker_up(h->machine, peer);
  settle(h);
}

static void on_lost(void *self, weir_ps_task peer, const weir_error *why) {
  weir_worker_host *h = self;
  say_link(h, peer, "lost: ", why->message);
  weir_ps_worker_lost(h->machine, peer);
  settle(h);
}

static weir_status on_receive(void *self, weir_ps_task from,
                              const weir_ps_message *m, weir_ps_place *out,
                              weir_error *err) {
  weir_worker_host *h = self;
  weir_worker_pull *p = weir_worker_pulls_of(&h->pulls, from, m);
  if (p == NULL || !m->newer)
    return weir_fail(err, WEIR_W7011, NULL, "a %s with values",
                     weir_ps_kind_name(m->kind));
  WEIR_TRY(weir_worker_pulls_place(&h->pulls, p, m, out, err));
  assert(out->data == NULL || !h->busy);
  return WEIR_OK;
}

/* The values are torn, as receive() noted. */
static void on_unreceived(void *self, void *data) {
  (void)self;
  (void)data;
}

static void on_message(void *self, weir_ps_task from,
                       const weir_ps_message *m) {
  weir_worker_host *h = self;
  weir_worker_pull *p = weir_worker_pulls_of(&h->pulls, from, m);
  if (p != NULL && m->data == p) p->torn = false;
  if (p != NULL && m->request == p->request) p->expected = false;
  h->over_number = m->kind == WEIR_PS_OVER ? m->seq : 0;
  weir_ps_worker_message(h->machine, from, m);
  h->over_number = 0;
  settle(h);
}

static void on_away(void *self, weir_ps_task peer, const weir_error *why) {
  weir_worker_host *h = self;
  (void)peer;
  fail(h, why);
  end(h, false);
}

static int64_t on_step(void *self, int64_t now_ns) {
  weir_worker_host *h = self;
  char text[512];
  int64_t due = weir_worker_wait_look(&h->wait, h->machine, now_ns, text);
  if (text[0] != '\0') say(h, text);
  return due;
}

static void on_log(void *self, const char *text) {
  say(self, text);
}

weir_ps_net_events weir_worker_host_events(weir_worker_host *h) {
  return (weir_ps_net_events){.self = h,
                              .up = on_up,
                              .lost = on_lost,
                              .receive = on_receive,
                              .unreceived = on_unreceived,
                              .message = on_message,
                              .away = on_away,
                              .step = on_step,
                              .log = on_log};
}

void weir_worker_host_drain(weir_worker_host *h) {
  if (h->failed != WEIR_OK)
    end(h, false); /* the chief's OVER may never come */
  else
    weir_ps_worker_drain(h->machine);
  settle(h);
}

/* ---- The host */

static weir_status make_all(weir_worker_host *h, weir_error *err) {
  const weir_worker_host_options *o = &h->options;
  weir_ps_worker_options machine = {
      .config = o->job->config, .index = o->index, .failpoints = o->failpoints};
  weir_ps_worker_calls calls = {.self = h,
                                .send = on_send,
                                .compute = on_compute,
                                .forget = on_forget,
                                .reset = on_reset,
                                .over = on_over};
  weir_worker_compute_options compute = {.job = o->job,
                                         .pool = o->pool,
                                         .session = o->session,
                                         .data = o->data,
                                         .done = tell_done,
                                         .self = h};
  WEIR_TRY(
      weir_ps_worker_create(h->env->alloc, &machine, &calls, &h->machine, err));
  WEIR_TRY(weir_worker_compute_create(h->env, &compute, &h->compute, err));
  uint32_t most = o->job->config.window > o->job->config.aggregate
                      ? o->job->config.window
                      : o->job->config.aggregate;
  h->sets = (weir_worker_sets){.alloc = h->env->alloc,
                               .compute = h->compute,
                               .most = most + 2u,
                               .freed = on_freed,
                               .self = h};
  return weir_worker_pulls_init(&h->pulls, o->job, h->compute, err);
}

weir_status weir_worker_host_create(const weir_env *env,
                                    const weir_worker_host_options *options,
                                    weir_worker_host **out_host,
                                    weir_error *err) {
  *out_host = NULL;
  weir_worker_host *h = weir_alloc_array(env->alloc, 1, sizeof *h);
  if (h == NULL) return weir_fail_memory(err, sizeof *h);
  h->env = env;
  h->options = *options;
  h->sets.alloc = h->pulls.alloc = env->alloc;
  h->err = (weir_error)WEIR_ERROR_INIT;
  h->done = (weir_node_call){.fn = on_done, .self = h};
  weir_status s = make_all(h, err);
  if (s == WEIR_OK)
    *out_host = h;
  else
    weir_worker_host_release(h);
  return s;
}

void weir_worker_host_connect(weir_worker_host *h,
                              const weir_worker_port *port) {
  int64_t hang_ns = h->options.hang_ns;
  h->port = *port;
  h->wait = (weir_worker_wait){.limit_ns = hang_ns > 0 ? hang_ns : kHangNs,
                               .describe = port->describe,
                               .self = port->self};
}

void weir_worker_host_stop(weir_worker_host *h) {
  h->stopped = true;
  if (h->compute != NULL) weir_worker_compute_stop(h->compute);
}

void weir_worker_host_release(weir_worker_host *h) {
  if (h == NULL) return;
  const weir_allocator *alloc = h->env->alloc;
  weir_worker_host_stop(h);
  weir_worker_sets_release(&h->sets);
  weir_worker_pulls_release(&h->pulls);
  weir_worker_compute_release(h->compute);
  weir_ps_worker_release(h->machine);
  weir_free(alloc, h);
}

weir_worker_numbers weir_worker_host_count(const weir_worker_host *h) {
  return (weir_worker_numbers){
      .runs = *weir_ps_worker_count(h->machine),
      .rows = h->rows,
      .wait_ns = h->busy ? 0 : weir_worker_compute_wait_ns(h->compute)};
}
