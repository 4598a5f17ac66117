/* SPDX-License-Identifier: Apache-2.0 */
/* A worker of keys: its handle, and the machine between net and callers. */
#include "runtime/weir/kv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/api/kv/kv_handle.h"
#include "runtime/dist/cluster/wires.h"
#include "runtime/train/kv/serve.h"

/* Bytes under way to a server: few enough that an op of high priority overtakes
 * most of what waits, and enough to fill a link. */
static const uint64_t kWindowBytes = UINT64_C(16) << 20;

static void free_kv(weir_kv *kv) {
  const weir_allocator *alloc = kv->env.alloc;
  weir_runtime *runtime = weir_runtime_ref(kv->part.runtime);
  for (size_t i = 0; i < kv->key_count; i++) weir_free(alloc, kv->keys[i]);
  weir_free(alloc, kv->keys);
  weir_free(alloc, kv->links);
  weir_map_release(&kv->names);
  pthread_cond_destroy(&kv->changed);
  pthread_mutex_destroy(&kv->lock);
  weir_kv_part_release(&kv->part);
  weir_free(alloc, kv);
  weir_runtime_release(runtime);
}

void weir_kv_hold(weir_kv *kv) {
  pthread_mutex_lock(&kv->lock);
  kv->refs++;
  pthread_mutex_unlock(&kv->lock);
}

void weir_kv_drop(weir_kv *kv) {
  pthread_mutex_lock(&kv->lock);
  bool last = --kv->refs == 0;
  pthread_mutex_unlock(&kv->lock);
  if (last) free_kv(kv);
}

/* ---- Ops on their way to the machine */

static weir_kv_op *take_submitted(weir_kv *kv) {
  pthread_mutex_lock(&kv->lock);
  weir_kv_op *ops = kv->submitted;
  kv->submitted = kv->last = NULL;
  kv->posted = false;
  pthread_mutex_unlock(&kv->lock);
  return ops;
}

static void submit_call(void *self, bool runs) {
  weir_kv *kv = self;
  weir_kv_op *op = take_submitted(kv);
  (void)runs; /* close() waits for the thread: it always does */
  for (weir_kv_op *next; op != NULL; op = next) {
    next = op->next;
    weir_kv_client_submit(kv->machine, op);
  }
}

weir_status weir_kv_begin(weir_kv *kv, weir_kv_handle *h, weir_error *err) {
  pthread_mutex_lock(&kv->lock);
  bool open = !kv->closed;
  for (uint32_t i = 0; open && i < h->share_count; i++) {
    weir_kv_op *op = &h->shares[i].op;
    op->next = NULL;
    *(kv->last != NULL ? &kv->last->next : &kv->submitted) = op;
    kv->last = op;
    h->refs++;
  }
  h->left = open ? h->share_count : 0;
  if (open && !kv->posted) {
    kv->posted = true;
    weir_ps_net_post(kv->net, &kv->submit);
  }
  pthread_mutex_unlock(&kv->lock);
  if (open) return WEIR_OK;
  return weir_fail(err, WEIR_W7118, NULL,
                   "the key-value interface has been closed");
}

/* ---- Events of the net */

static void set_link(weir_kv *kv, uint32_t server, const char *text) {
  pthread_mutex_lock(&kv->lock);
  snprintf(kv->links[server], sizeof kv->links[server], "%.120s", text);
  pthread_mutex_unlock(&kv->lock);
}

static void on_up(void *self, weir_ps_task peer) {
  weir_kv *kv = self;
  set_link(kv, peer.index, "up");
  weir_kv_client_up(kv->machine, peer.index);
}

static void on_lost(void *self, weir_ps_task peer, const weir_error *why) {
  weir_kv *kv = self;
  set_link(kv, peer.index, why->message);
  weir_kv_client_down(kv->machine, peer.index);
}

static weir_status decode(weir_ps_task from, const weir_ps_message *m,
                          weir_kv_message *out, weir_error *err) {
  char who[32];
  snprintf(who, sizeof who, "ps:%" PRIu32, from.index);
  if (m->kind == WEIR_PS_KV) return weir_kv_decode(m->note, who, out, err);
  return weir_fail(err, WEIR_W7011, NULL, "%s sends %s to a worker of keys",
                   who, weir_ps_kind_name(m->kind));
}

static weir_status on_receive(void *self, weir_ps_task from,
                              const weir_ps_message *m, weir_ps_place *out,
                              weir_error *err) {
  weir_kv_message it;
  WEIR_TRY(decode(from, m, &it, err));
  return weir_kv_handle_place(self, from.index, &it, out, err);
}

static void drop(void *self, void *data) {
  (void)self;
  weir_kv_block_release(data);
}

static void on_message(void *self, weir_ps_task from,
                       const weir_ps_message *m) {
  weir_kv *kv = self;
  weir_kv_message it;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = decode(from, m, &it, &err);
  if (s == WEIR_OK && (it.value_bytes > 0) != (m->data != NULL))
    s = weir_fail(&err, WEIR_W7011, NULL,
                  "ps:%" PRIu32 " sends an answer without its values",
                  from.index);
  if (s != WEIR_OK) {
    weir_kv_block_release(m->data);
    weir_ps_net_give_up(kv->net, from, &err);
    return;
  }
  it.data = m->data;
  weir_kv_client_message(kv->machine, from.index, &it);
}

static void give_up(void *self, uint32_t server, const weir_error *why) {
  weir_ps_net_give_up(((weir_kv *)self)->net,
                      (weir_ps_task){WEIR_PS_SERVER, server}, why);
}

/* ---- Life */

static weir_status make_machine(weir_kv *kv, weir_error *err) {
  weir_link_self self; /* a number of this handle alone */
  weir_wires_self(&kv->env, 0, kv, &self);
  const weir_kv_client_options options = {.servers = kv->part.server_count,
                                          .incarnation = self.incarnation,
                                          .window_bytes = kWindowBytes};
  const weir_kv_client_calls calls = {kv, weir_kv_handle_send,
                                      weir_kv_handle_done, drop, give_up};
  return weir_kv_client_create(kv->env.alloc, &options, &calls, &kv->machine,
                               err);
}

static weir_status make_net(weir_kv *kv, weir_error *err) {
  const weir_kv_part *p = &kv->part;
  const weir_ps_config config =
      weir_kv_config(p->server_count, p->member_count);
  const weir_ps_net_events events = {.self = kv,
                                     .up = on_up,
                                     .lost = on_lost,
                                     .receive = on_receive,
                                     .unreceived = drop,
                                     .message = on_message};
  const weir_ps_net_options options = {.transports = &p->maker.transports,
                                       .tls = p->tls,
                                       .insecure = p->insecure,
                                       .self = {WEIR_PS_WORKER, p->index},
                                       .servers = p->servers,
                                       .server_count = p->server_count,
                                       .keys = true,
                                       .job_hash = p->hash,
                                       .hashed = "cluster or split_bytes",
                                       .config = &config,
                                       .heartbeat_ns = p->heartbeat_ns};
  WEIR_TRY(weir_ps_net_create(&kv->env, &options, &events, &kv->net, err));
  weir_status s = weir_ps_net_start(kv->net, err);
  if (s == WEIR_OK) return s;
  weir_ps_net_release(kv->net); /* it has no thread to close it on */
  kv->net = NULL;
  return s;
}

static weir_status make_links(weir_kv *kv, weir_error *err) {
  uint32_t n = kv->part.server_count;
  kv->links = weir_alloc_array(kv->env.alloc, n, sizeof *kv->links);
  if (kv->links == NULL) return weir_fail_memory(err, n * sizeof *kv->links);
  for (uint32_t i = 0; i < n; i++)
    snprintf(kv->links[i], sizeof kv->links[i], "never answered");
  return WEIR_OK;
}

static void end_call(void *self, bool runs) {
  weir_kv *kv = self;
  weir_error why = WEIR_ERROR_INIT;
  (void)runs;
  weir_fail(&why, WEIR_W7118, NULL,
            "the key-value interface was closed before the answer came");
  weir_kv_client_end(kv->machine, &why);
  pthread_mutex_lock(&kv->lock);
  kv->ended = true;
  pthread_cond_broadcast(&kv->changed);
  pthread_mutex_unlock(&kv->lock);
}

weir_status weir_kv_open(weir_runtime *runtime, const weir_kv_opts *opts,
                         weir_kv **out_kv, weir_error *err) {
  if (out_kv == NULL) return weir_fail_null(err, "out_kv");
  *out_kv = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  const weir_allocator *alloc = runtime->env.alloc;
  weir_kv *kv = weir_alloc_array(alloc, 1, sizeof *kv);
  if (kv == NULL) return weir_fail_memory(err, sizeof *kv);
  kv->env = runtime->env;
  kv->refs = 1;
  pthread_mutex_init(&kv->lock, NULL);
  pthread_condattr_t monotonic; /* as the env's clock is */
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&kv->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  weir_map_init(&kv->names, alloc);
  kv->submit = (weir_node_call){.fn = submit_call, .self = kv};
  kv->end = (weir_node_call){.fn = end_call, .self = kv};
  weir_status s = weir_kv_part_init(&kv->part, runtime, opts, "worker", err);
  if (s == WEIR_OK) s = make_links(kv, err);
  if (s == WEIR_OK) s = make_machine(kv, err);
  if (s == WEIR_OK) s = make_net(kv, err);
  if (s == WEIR_OK)
    *out_kv = kv;
  else
    weir_kv_close(kv);
  return weir_settle(alloc, "opening the key-value interface", s, err);
}

/* All ops end on the control thread, and the farewell leaves. */
static void end_machine(weir_kv *kv) {
  pthread_mutex_lock(&kv->lock);
  kv->closed = true;
  weir_ps_net_post(kv->net, &kv->end); /* after all that was submitted */
  while (!kv->ended) pthread_cond_wait(&kv->changed, &kv->lock);
  pthread_mutex_unlock(&kv->lock);
  weir_ps_net_stop(kv->net);
}

void weir_kv_close(weir_kv *kv) {
  if (kv == NULL) return;
  if (kv->net != NULL) end_machine(kv);
  weir_ps_net_release(kv->net); /* values on their way come back */
  kv->net = NULL;
  weir_kv_client_release(kv->machine);
  kv->machine = NULL;
  weir_kv_drop(kv);
}
