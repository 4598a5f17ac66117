/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/server_host.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "runtime/train/ps/norm/server_norm.h"
#include "runtime/train/ps/server_compute.h"
#include "runtime/train/ps/server_save.h"
#include "runtime/train/ps/server_values.h"

/* The control thread's side: events of the net to the machine, and back. */

void weir_ps_host_log(const weir_ps_host *h, const char *format, ...) {
  char text[1000];
  va_list args;
  if (h->options.log == NULL) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  h->options.log(h->options.self, text);
}

void weir_ps_host_log_loss(const weir_ps_host *h, uint64_t generation,
                           const char *what, const weir_error *why) {
  bool file = why->file[0] != '\0';
  weir_ps_host_log(h, "generation %" PRIu64 " %s: %s %s%s%s", generation, what,
                   why->id, why->message, file ? ", in " : "", why->file);
}

static void end(weir_ps_host *h, const weir_error *why) {
  if (h->ended) return;
  h->ended = true;
  h->options.over(h->options.self, why);
}

void weir_ps_host_fail(weir_ps_host *h, const weir_error *why) {
  weir_ps_host_log(h, "the server cannot go on: %s %s", why->id, why->message);
  end(h, why);
}

/* ---- Calls of the machine */

static void send(void *self, weir_ps_task to, const weir_ps_message *m) {
  weir_ps_host *h = self;
  bool answers = m->kind == WEIR_PS_PULLED || m->kind == WEIR_PS_PUSHED;
  if (answers && m->newer)
    weir_ps_host_send_values(
        h, to, m, h->pull_at,
        m->ok ? h->lists->pull_count : h->lists->changing_count);
  else if (m->kind == WEIR_PS_NORM)
    weir_ps_norm_send(h, to, m);
  else
    h->net.send(h->net.self, to, m, NULL);
}

static void publish(void *self, uint64_t version) {
  weir_ps_host_swap(self, version);
  weir_ps_host_fetch(self);
}

static void drop(void *self, void *data) {
  weir_ps_host_give(self, data);
}

/* ---- Events of the net */

static void on_up(void *self, weir_ps_task peer) {
  weir_ps_server_up(((weir_ps_host *)self)->machine, peer);
}

static void on_lost(void *self, weir_ps_task peer, const weir_error *why) {
  weir_ps_host *h = self;
  (void)why;
  if (peer.role == WEIR_PS_CHIEF) h->fetch_waits = false; /* it asks again */
  weir_ps_server_lost(((weir_ps_host *)self)->machine, peer);
}

static void on_away(void *self, weir_ps_task peer, const weir_error *why) {
  (void)peer;
  weir_ps_host_fail(self, why);
}

static weir_status on_receive(void *self, weir_ps_task from,
                              const weir_ps_message *m, weir_ps_place *out,
                              weir_error *err) {
  weir_ps_host *h = self;
  weir_ps_buffer *b = NULL;
  if (m->kind == WEIR_PS_RESTORE && from.role == WEIR_PS_CHIEF) {
    WEIR_TRY(weir_ps_seed_create(h->engine, &h->seed_coming, err));
    *out = (weir_ps_place){h->seed_coming->pieces, h->lists->held_count,
                           h->seed_coming};
    return WEIR_OK;
  }
  if (m->kind == WEIR_PS_NORM && from.role == WEIR_PS_SERVER)
    return weir_ps_norm_receive(h, from.index, out, err);
  if (m->kind != WEIR_PS_PUSH || from.role != WEIR_PS_WORKER)
    return weir_fail(err, WEIR_W7011, NULL,
                     "a server takes no values with a message %s",
                     weir_ps_kind_name(m->kind));
  WEIR_TRY(weir_ps_host_take(h, &b, err));
  *out = (weir_ps_place){b->pieces, h->lists->push_count, b};
  return WEIR_OK;
}

static void on_unreceived(void *self, void *data) {
  weir_ps_host *h = self;
  if (data != NULL && data == h->seed_coming) {
    weir_ps_seed_release(h->engine, h->seed_coming);
    h->seed_coming = NULL;
    return;
  }
  if (!weir_ps_norm_unreceived(h, data)) weir_ps_host_give(h, data);
}

/* A restore with first values, for weir_ps_host_restore; if the machine does
 * not ask for it, they are not wanted. */
static void on_seeded(weir_ps_host *h, weir_ps_task from, weir_ps_message *m) {
  h->seed = h->seed_coming;
  h->seed_coming = NULL;
  h->seed->version = m->version;
  m->data = NULL;
  weir_ps_server_message(h->machine, from, m);
  weir_ps_seed_release(h->engine, h->seed);
  h->seed = NULL;
}

/* Server 0 tells the chief of a step before the others hear of it: its values
 * may be wanted before they are here. */
static bool is_early(const weir_ps_host *h, const weir_ps_server_counts *now) {
  return h->fetch.life == now->life && now->version < h->fetch.version;
}

/* The values of this moment, all of one version: behind an update that is under
 * way they are those of the next one. */
void weir_ps_host_fetch(weir_ps_host *h) {
  weir_ps_server_counts now = weir_ps_server_count(h->machine);
  weir_ps_message reply = {.kind = WEIR_PS_FETCHED,
                           .epoch = now.epoch,
                           .life = now.life,
                           .request = h->fetch.request,
                           .version = now.version,
                           .newer = now.life != 0};
  if (!h->fetch_waits) return;
  if (now.life != 0 && (h->unsettled || is_early(h, &now))) return;
  h->fetch_waits = false;
  weir_ps_host_send_values(h, h->fetcher, &reply, NULL,
                           now.life != 0 ? h->current.count : 0);
}

static void on_fetch(weir_ps_host *h, weir_ps_task from,
                     const weir_ps_message *m) {
  h->fetch_waits = true;
  h->fetcher = from;
  h->fetch = *m;
  weir_ps_host_fetch(h);
}

/* A push for a server that takes no values has none. */
static weir_status complete_push(weir_ps_host *h, weir_ps_message *m,
                                 weir_error *err) {
  weir_ps_buffer *b = NULL;
  if (m->data != NULL) return WEIR_OK;
  if (h->lists->push_count > 0)
    return weir_fail(err, WEIR_W7011, NULL, "a push came without its values");
  WEIR_TRY(weir_ps_host_take(h, &b, err));
  m->data = b;
  return WEIR_OK;
}

static void on_message(void *self, weir_ps_task from,
                       const weir_ps_message *m) {
  weir_ps_host *h = self;
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_message mine = *m;
  bool chief = from.role == WEIR_PS_CHIEF;
  if (chief && m->kind == WEIR_PS_FETCH) {
    on_fetch(h, from, m);
    return;
  }
  if (chief && m->kind == WEIR_PS_OVER) {
    if (m->epoch < weir_ps_server_count(h->machine).epoch) return;
    if (m->seq != 0) weir_ps_over_error(m->seq, &err);
    end(h, m->seq != 0 ? &err : NULL);
    return;
  }
  if (chief && m->data != NULL && m->data == h->seed_coming) {
    on_seeded(h, from, &mine);
    return;
  }
  if (m->kind == WEIR_PS_NORM && from.role == WEIR_PS_SERVER &&
      !weir_ps_norm_message(h, from.index, &mine)) {
    (void)weir_fail(&err, WEIR_W7011, NULL, "a norm came without its share");
    h->net.give_up(h->net.self, from, &err);
    return;
  }
  if (m->kind == WEIR_PS_PUSH && complete_push(h, &mine, &err) != WEIR_OK) {
    h->net.give_up(h->net.self, from, &err);
    return;
  }
  weir_ps_server_message(h->machine, from, &mine);
}

weir_ps_net_events weir_ps_host_events(weir_ps_host *host) {
  return (weir_ps_net_events){.self = host,
                              .up = on_up,
                              .lost = on_lost,
                              .receive = on_receive,
                              .unreceived = on_unreceived,
                              .message = on_message,
                              .away = on_away};
}

const weir_ps_server *weir_ps_host_machine(const weir_ps_host *host) {
  return host->machine;
}

/* ---- Start and end */

static weir_status make_machine(weir_ps_host *h, weir_error *err) {
  weir_ps_kept kept = {0};
  if (h->files != NULL && h->options.index == 0)
    WEIR_TRY(weir_ps_generations_kept(h->files, &kept, err));
  weir_ps_server_options options = {.config = h->job->config,
                                    .index = h->options.index,
                                    .limit = h->options.limit,
                                    .epoch = kept.epoch,
                                    .chief = kept.chief,
                                    .generation = kept.generation,
                                    .failpoints = h->options.failpoints};
  weir_ps_server_calls calls = {.self = h,
                                .send = send,
                                .apply = weir_ps_host_apply,
                                .add = weir_ps_host_add,
                                .norm = weir_ps_host_norm,
                                .finish = weir_ps_host_finish,
                                .publish = publish,
                                .drop = drop,
                                .save = weir_ps_host_save,
                                .restore = weir_ps_host_restore,
                                .keep = weir_ps_host_keep,
                                .seal = weir_ps_host_seal};
  return weir_ps_server_create(h->env->alloc, &options, &calls, &h->machine,
                               err);
}

/* Where the pulls stand among what is held. */
static weir_status find_pulls(weir_ps_host *h, weir_error *err) {
  const weir_ps_lists *l = h->lists;
  uint32_t at = 0;
  h->pull_at =
      weir_arena_array(&h->arena, l->pull_count + 1u, sizeof *h->pull_at);
  if (h->pull_at == NULL) return weir_fail_memory(err, l->pull_count);
  for (uint32_t i = 0; i < l->pull_count; i++) {
    if (i == l->changing_count) at = 0; /* each part in the split's order */
    while (l->held[at] != l->pulls[i]) at++;
    h->pull_at[i] = at;
  }
  return WEIR_OK;
}

static weir_status build(weir_ps_host *h, weir_error *err) {
  const weir_ps_host_options *o = &h->options;
  WEIR_TRY(weir_ps_host_save_init(h, err));
  WEIR_TRY(find_pulls(h, err));
  WEIR_TRY(weir_ps_norm_init(h, err));
  WEIR_TRY(weir_ps_engine_create(h->env, o->pool, h->job, o->index, &h->engine,
                                 err));
  WEIR_TRY(weir_ps_set_init(h->engine, &h->current, err));
  WEIR_TRY(weir_ps_set_init(h->engine, &h->next, err));
  if (o->dir != NULL)
    WEIR_TRY(
        weir_ps_generations_open(h->env, o->dir, o->index, &h->files, err));
  WEIR_TRY(make_machine(h, err));
  WEIR_TRY(weir_ps_runner_start(&h->computer, err));
  return weir_ps_runner_start(&h->disk, err);
}

/* Variables that are too large for one server, and yet on one. */
static void log_whole(const weir_ps_host *h) {
  const weir_split *s = h->job->split;
  for (uint32_t i = 0; i < s->var_count; i++) {
    weir_node_id node = s->vars[i].whole_for;
    if (node != UINT32_MAX)
      weir_ps_host_log(h, "%.*s is not cut: %.*s needs all of it",
                       WEIR_SV(s->vars[i].name),
                       WEIR_SV(s->train->graph->nodes[node].name));
  }
}

weir_status weir_ps_host_create(const weir_env *env,
                                const weir_ps_host_options *options,
                                const weir_ps_host_net *net,
                                weir_ps_host **out_host, weir_error *err) {
  *out_host = NULL;
  if (options->index >= options->job->config.servers)
    return weir_fail(err, WEIR_W7090, NULL, "server %u of %u", options->index,
                     options->job->config.servers);
  weir_ps_host *h = weir_alloc_array(env->alloc, 1, sizeof *h);
  if (h == NULL) return weir_fail_memory(err, sizeof *h);
  weir_arena_init(&h->arena, env->alloc);
  h->env = env;
  h->options = *options;
  h->net = *net;
  h->job = options->job;
  h->lists = &options->job->servers[options->index];
  weir_ps_runner_init(&h->computer);
  weir_ps_runner_init(&h->disk);
  h->computer.post = h->disk.post = net->post;
  h->computer.self = h->disk.self = net->self;
  weir_ps_host_compute_init(h);
  weir_status s = build(h, err);
  if (s == WEIR_OK && options->index == 0) log_whole(h);
  if (s == WEIR_OK)
    *out_host = h;
  else
    weir_ps_host_release(h);
  return s;
}

void weir_ps_host_stop(weir_ps_host *host) {
  weir_ps_runner_stop(&host->computer);
  weir_ps_runner_stop(&host->disk);
}

void weir_ps_host_release(weir_ps_host *h) {
  if (h == NULL) return;
  weir_ps_runner_destroy(&h->computer);
  weir_ps_runner_destroy(&h->disk);
  weir_ps_server_release(h->machine);
  weir_ps_ledger_release(h->load.ledger);
  if (h->engine != NULL) weir_ps_host_drop_seeds(h);
  weir_ps_host_save_release(h);
  weir_ps_host_values_release(h);
  weir_ps_norm_release(h);
  weir_ps_generations_release(h->files);
  weir_ps_engine_release(h->engine);
  weir_arena_release(&h->arena);
  weir_free(h->env->alloc, h);
}
