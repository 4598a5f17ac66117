/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/chief_net.h"

#include <stdio.h>
#include <string.h>

#include "runtime/train/ps/account/chief_account.h"
#include "runtime/train/ps/chief_values.h"
#include "runtime/train/ps/seed/chief_seed.h"

/* The chief's control thread: the coordinator between the net and the loop. */

static int64_t now_of(const weir_chief *c) {
  return weir_loop_clock(c->loop);
}

/* ---- Calls of the coordinator */

static void send(void *self, weir_ps_task to, const weir_ps_message *m) {
  weir_chief *c = self;
  if (m->kind == WEIR_PS_RESTORE)
    weir_chief_seed_send(c, to, m);
  else
    weir_ps_net_send(c->net, to, m, NULL);
}

static void say(const weir_chief *c, const char *text) {
  if (c->options.log != NULL) c->options.log(c->options.log_self, text);
}

static void running(void *self, uint64_t generation, uint64_t step) {
  weir_chief *c = self;
  char text[160];
  pthread_mutex_lock(&c->lock);
  bool first = !c->runs;
  c->save_soon = c->seeds != NULL;
  c->runs = true;
  c->reached = false;
  c->stale = true;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  if (first && generation == 0) return;
  snprintf(text, sizeof text,
           "the servers have generation %llu: the job goes on with step %llu",
           (unsigned long long)generation, (unsigned long long)step + 1);
  say(c, text);
}

static void reached(void *self, uint64_t step) {
  weir_chief *c = self;
  pthread_mutex_lock(&c->lock);
  c->reached = true;
  c->step = step;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

static void generation(void *self, uint64_t number, bool ok) {
  weir_chief *c = self;
  char text[160];
  if (ok) weir_chief_seed_saved(c);
  if (ok || number == 0) return;
  snprintf(text, sizeof text,
           "generation %llu was given up: the one before it is what a restart "
           "goes on from",
           (unsigned long long)number);
  say(c, text);
}

static void member(void *self, uint32_t worker, bool in, bool drained) {
  const weir_chief *c = self;
  char text[96];
  snprintf(text, sizeof text, "worker:%u %s", worker,
           in        ? "has joined"
           : drained ? "has left, its work is dealt again"
                     : "is out, its work is dealt again");
  say(c, text);
}

static void over(void *self, bool failed, uint64_t run) {
  weir_chief *c = self;
  pthread_mutex_lock(&c->lock);
  c->over = true;
  c->failed = failed;
  c->failed_run = run;
  c->unsaved = weir_ps_coordinator_account(c->machine)->unsaved;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

static void fenced(void *self, uint64_t epoch) {
  weir_chief *c = self;
  (void)epoch;
  pthread_mutex_lock(&c->lock);
  c->fenced = true;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

weir_ps_coordinator_calls weir_chief_calls(weir_chief *c) {
  return (weir_ps_coordinator_calls){.self = c,
                                     .send = send,
                                     .running = running,
                                     .reached = reached,
                                     .generation = generation,
                                     .member = member,
                                     .over = over,
                                     .fenced = fenced};
}

/* ---- Values that come */

static void ask_for_values(weir_chief *c, uint32_t server) {
  weir_ps_message m = {.kind = WEIR_PS_FETCH,
                       .epoch = weir_ps_coordinator_epoch(c->machine),
                       .life = c->fetch_life,
                       .version = c->fetch_version,
                       .request = c->request};
  weir_ps_net_send(c->net, (weir_ps_task){WEIR_PS_SERVER, server}, &m, NULL);
}

static weir_status receive(void *self, weir_ps_task from,
                           const weir_ps_message *m, weir_ps_place *out,
                           weir_error *err) {
  weir_chief *c = self;
  if (m->kind == WEIR_PS_FETCHED && from.role == WEIR_PS_SERVER &&
      from.index < c->job->config.servers && c->fetches[from.index].pending) {
    uint32_t more = c->job->watched[from.index].count > 0;
    *out =
        (weir_ps_place){.pieces = c->fetches[from.index].pieces,
                        .count = c->job->servers[from.index].held_count + more};
    return WEIR_OK;
  }
  if (m->kind != WEIR_PS_REPORT || from.role != WEIR_PS_WORKER)
    return weir_fail(err, WEIR_W7011, NULL,
                     "%s brings values that nobody asked for",
                     weir_ps_kind_name(m->kind));
  weir_ps_piece *piece = weir_alloc_array(
      c->job->env->alloc, 1, sizeof *piece + c->numbers * sizeof(double));
  if (piece == NULL) return weir_fail_memory(err, sizeof *piece);
  *piece = (weir_ps_piece){piece + 1, c->numbers * sizeof(double)};
  *out = (weir_ps_place){.pieces = piece, .count = 1, .data = piece};
  return WEIR_OK;
}

/* Of FETCHED |data| is NULL: its buffers stay. */
static void unreceived(void *self, void *data) {
  const weir_chief *c = self;
  weir_free(c->job->env->alloc, data);
}

static void note_report(weir_chief *c, uint32_t worker,
                        const weir_ps_message *m) {
  const weir_ps_piece *piece = m->data;
  weir_chief_report *r = &c->reports[m->run % WEIR_CHIEF_REPORTS];
  pthread_mutex_lock(&c->lock);
  weir_chief_account_note(c, worker, piece->data);
  if (r->run == WEIR_PS_NONE || m->run >= r->run) {
    r->run = m->run;
    memcpy(r->values, piece->data, piece->bytes);
  }
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

/* Sync: all values must be of one version. A job that is stopped at once may
 * have servers that have not heard of its last step yet. */
static bool ask_again(weir_chief *c) {
  bool behind = false;
  if (c->job->config.mode != WEIR_PS_SYNC || c->stale) return false;
  for (uint32_t s = 0; s < c->job->config.servers; s++)
    if (c->updates[s] > c->fetch_version) c->fetch_version = c->updates[s];
  for (uint32_t s = 0; s < c->job->config.servers; s++) {
    if (c->updates[s] == c->fetch_version) continue;
    behind = c->fetches[s].pending = true;
    c->missing++;
    ask_for_values(c, s);
  }
  return behind;
}

static void note_values(weir_chief *c, uint32_t server,
                        const weir_ps_message *m) {
  if (!c->fetches[server].pending) return;
  c->fetches[server].pending = false;
  pthread_mutex_lock(&c->lock);
  c->updates[server] = m->version;
  /* It has no state, or another one: all will go back, or have. */
  if (!m->newer || m->life != c->fetch_life) c->stale = true;
  c->missing--;
  if (c->missing == 0 && !ask_again(c)) c->version = c->updates[0];
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

static void message(void *self, weir_ps_task from, const weir_ps_message *m) {
  weir_chief *c = self;
  if (m->kind == WEIR_PS_REPORT && m->data != NULL) {
    note_report(c, from.index, m);
    weir_free(c->job->env->alloc, m->data);
  } else if (m->kind == WEIR_PS_FETCHED) {
    if (from.role == WEIR_PS_SERVER && from.index < c->job->config.servers)
      note_values(c, from.index, m);
  } else {
    weir_ps_coordinator_message(c->machine, now_of(c), from, m);
  }
}

/* ---- Servers that do not come */

static void get_stuck(weir_chief *c, const weir_error *why) {
  pthread_mutex_lock(&c->lock);
  if (!c->stuck) weir_error_copy(&c->stuck_why, why);
  c->stuck = true;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

/* |peer| refuses this process, or has not been there for long. */
static void away(void *self, weir_ps_task peer, const weir_error *why) {
  (void)peer;
  get_stuck(self, why);
}

static const char *words_of(weir_ps_chief_state state) {
  return state == WEIR_PS_CHIEF_CLAIMS  ? "to take this chief"
         : state == WEIR_PS_CHIEF_LOOKS ? "to say what they have"
                                        : "to load the generation";
}

/* A chief that was let in once goes back to claiming when server 0 is lost. */
static int64_t look_for_servers(weir_chief *c, int64_t now_ns) {
  uint64_t missing = 0;
  weir_error why = WEIR_ERROR_INIT;
  weir_ps_chief_state state = weir_ps_coordinator_look(c->machine, &missing);
  if (state > WEIR_PS_CHIEF_RESTORES) {
    c->idle_ns = 0;
    return INT64_MAX;
  }
  if (c->idle_ns == 0) c->idle_ns = now_ns;
  int64_t most = c->options.away_ns > 0 ? c->options.away_ns : WEIR_PS_AWAY_NS;
  if (now_ns < c->idle_ns + most) return c->idle_ns + most;
  char list[200] = "", how[128] = "";
  size_t n = 0;
  for (uint32_t s = 0; s < c->job->config.servers && n < 150; s++) {
    if ((missing >> s & 1) == 0) continue;
    weir_ps_net_describe(c->net, (weir_ps_task){WEIR_PS_SERVER, s}, how,
                         sizeof how);
    n += (size_t)snprintf(list + n, sizeof list - n, "%sps:%u (%.40s)",
                          n > 0 ? ", " : "", s, how);
  }
  weir_fail(&why, WEIR_W7103, NULL, "waited %.0f s for %s %s",
            (double)(now_ns - c->idle_ns) / 1e9, list, words_of(state));
  get_stuck(c, &why);
  return INT64_MAX;
}

/* ---- Links */

/* One more process is there, or one less; this one does not count. */
static void count(weir_chief *c, weir_ps_task peer, bool more) {
  bool worker = peer.role == WEIR_PS_WORKER;
  pthread_mutex_lock(&c->lock);
  /* Who is lost before the end may be cut off, and has not heard of it. Workers
   * hear with the last generation, servers once the chief has saved too. */
  uint64_t bit = worker ? 0 : UINT64_C(1) << peer.index;
  if (worker) c->met[peer.index] = more || c->told || c->over;
  c->away = more || c->told ? c->away & ~bit : c->away | bit;
  if (!worker || peer.index != c->options.own_worker)
    c->here += more ? 1 : UINT32_MAX;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

static void up(void *self, weir_ps_task peer) {
  weir_chief *c = self;
  count(c, peer, true);
  weir_ps_coordinator_up(c->machine, now_of(c), peer);
  bool over = weir_ps_coordinator_look(c->machine, NULL) == WEIR_PS_CHIEF_OVER;
  weir_ps_message end = {.kind = WEIR_PS_OVER,
                         .epoch = weir_ps_coordinator_epoch(c->machine),
                         .seq = c->over_number};
  if (c->over_number != 0) weir_ps_net_send(c->net, peer, &end, NULL);
  if (peer.role != WEIR_PS_SERVER) return;
  if (c->fetches[peer.index].pending)
    ask_for_values(c, peer.index);
  else if (over)
    weir_ps_net_send(c->net, peer, &end, NULL);
}

static void lost(void *self, weir_ps_task peer, const weir_error *why) {
  weir_chief *c = self;
  count(c, peer, false);
  char text[600];
  bool over = weir_ps_coordinator_look(c->machine, NULL) == WEIR_PS_CHIEF_OVER;
  snprintf(text, sizeof text, "%s:%u is lost: %s",
           peer.role == WEIR_PS_SERVER ? "ps" : "worker", peer.index,
           why->message);
  if (!over) say(c, text);
  weir_ps_coordinator_lost(c->machine, now_of(c), peer);
}

static int64_t step(void *self, int64_t now_ns) {
  weir_chief *c = self;
  if (c->save_soon) weir_ps_coordinator_save(c->machine, now_ns);
  c->save_soon = false;
  int64_t next = weir_ps_coordinator_tick(c->machine, now_ns);
  int64_t at = look_for_servers(c, now_ns);
  return at < next ? at : next;
}

static void log_line(void *self, const char *text) {
  say(self, text);
}

weir_ps_net_events weir_chief_events(weir_chief *c) {
  return (weir_ps_net_events){.self = c,
                              .up = up,
                              .lost = lost,
                              .receive = receive,
                              .unreceived = unreceived,
                              .message = message,
                              .away = away,
                              .step = step,
                              .log = log_line};
}

/* ---- What the loop's thread asks for */

typedef struct asking {
  weir_node_call call;
  weir_chief *c;
  weir_chief_ask ask;
  uint64_t number;
  bool done; /* under the lock */
} asking;

static void begin_fetch(weir_chief *c, uint64_t version) {
  c->request++;
  c->fetch_life = weir_ps_coordinator_life(c->machine);
  c->fetch_version = version;
  for (uint32_t s = 0; s < c->job->config.servers; s++) {
    c->fetches[s].pending = true;
    ask_for_values(c, s);
  }
}

static void end_servers(weir_chief *c) {
  weir_ps_message m = {.kind = WEIR_PS_OVER,
                       .epoch = weir_ps_coordinator_epoch(c->machine)};
  for (uint32_t s = 0; s < c->job->config.servers; s++)
    weir_ps_net_send(c->net, (weir_ps_task){WEIR_PS_SERVER, s}, &m, NULL);
}

/* The epoch is that of the chief: where none was granted, nobody has one. */
static void fail_all(weir_chief *c, uint64_t number) {
  weir_ps_message m = {.kind = WEIR_PS_OVER,
                       .epoch = weir_ps_coordinator_epoch(c->machine),
                       .seq = number};
  c->over_number = number;
  for (uint32_t i = 0; i < c->job->config.workers; i++)
    weir_ps_net_send(c->net, (weir_ps_task){WEIR_PS_WORKER, i}, &m, NULL);
  for (uint32_t s = 0; s < c->job->config.servers; s++)
    weir_ps_net_send(c->net, (weir_ps_task){WEIR_PS_SERVER, s}, &m, NULL);
}

static void do_ask(void *self, bool runs) {
  asking *a = self;
  weir_chief *c = a->c;
  if (runs && a->ask == WEIR_CHIEF_GO)
    weir_ps_coordinator_go(c->machine, now_of(c), a->number);
  else if (runs && a->ask == WEIR_CHIEF_STOP)
    weir_ps_coordinator_stop(c->machine, now_of(c), a->number);
  else if (runs && a->ask == WEIR_CHIEF_FETCH)
    begin_fetch(c, a->number);
  else if (runs && a->ask == WEIR_CHIEF_FAIL)
    fail_all(c, a->number);
  else if (runs && a->ask == WEIR_CHIEF_END)
    end_servers(c);
  pthread_mutex_lock(&c->lock);
  c->told |= a->ask == WEIR_CHIEF_END || a->ask == WEIR_CHIEF_FAIL;
  if (runs && a->ask == WEIR_CHIEF_ACCOUNT) weir_chief_account_take(c);
  a->done = true;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

void weir_chief_tell(weir_chief *c, weir_chief_ask ask, uint64_t number) {
  asking a = {.c = c, .ask = ask, .number = number};
  a.call = (weir_node_call){.fn = do_ask, .self = &a};
  weir_ps_net_post(c->net, &a.call);
  pthread_mutex_lock(&c->lock);
  while (!a.done) pthread_cond_wait(&c->changed, &c->lock);
  pthread_mutex_unlock(&c->lock);
}
