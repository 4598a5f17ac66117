/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/norm/server_norm.h"

#include <string.h>

#include "runtime/train/ps/server_compute.h"

/* Sums have their places in one list, in the order in which they are added
 * (weir_split_norm). Cost: a double for 32768 elements. */

static uint32_t sums_of(const weir_ps_host *h, uint32_t server) {
  const weir_update_graph *u = &h->job->split->updates[server];
  uint32_t n = 0;
  for (uint32_t i = 0; i < u->share_count; i++) n += u->shares[i].count;
  return n;
}

weir_status weir_ps_norm_init(weir_ps_host *h, weir_error *err) {
  const weir_split *split = h->job->split;
  weir_ps_norm *n = &h->norm;
  size_t room = split->sum_count + 1u;
  if (split->sum_count == 0) return WEIR_OK;
  n->own_count = sums_of(h, h->options.index);
  n->sums = weir_arena_array(&h->arena, room, sizeof *n->sums);
  n->own = weir_arena_array(&h->arena, room, sizeof *n->own);
  n->coming =
      weir_arena_array(&h->arena, split->server_count, sizeof *n->coming);
  if (!n->sums || !n->own || !n->coming)
    return weir_fail_memory(err, room * sizeof *n->sums);
  return WEIR_OK;
}

void weir_ps_norm_release(weir_ps_host *h) {
  for (uint32_t k = 0; h->norm.coming != NULL && k < h->job->config.servers;
       k++)
    weir_free(h->env->alloc, h->norm.coming[k]);
}

/* ---- Computing */

void weir_ps_host_norm(void *self, uint64_t ticket, uint64_t step) {
  weir_ps_host *h = self;
  weir_ps_buffer *buffer = h->last;
  h->last = NULL;
  (void)step;
  weir_ps_host_compute(h, WEIR_PS_COMPUTE_NORM, ticket, buffer);
}

weir_status weir_ps_norm_work(weir_ps_host *h, weir_ps_buffer *b,
                              weir_error *err) {
  const weir_update_graph *u = h->engine->update;
  double *to = h->norm.own;
  WEIR_TRY(weir_ps_engine_shares(h->engine, b, err));
  for (uint32_t i = 0; i < u->share_count; i++) {
    memcpy(to, h->engine->shares[i]->data, u->shares[i].count * sizeof *to);
    to += u->shares[i].count;
  }
  return WEIR_OK;
}

/* Puts the share of |server| in its places. */
static void place(weir_ps_host *h, uint32_t server, const double *sums) {
  const weir_update_graph *u = &h->job->split->updates[server];
  for (uint32_t i = 0; i < u->share_count; i++) {
    memcpy(h->norm.sums + u->shares[i].first, sums,
           u->shares[i].count * sizeof *sums);
    sums += u->shares[i].count;
  }
}

void weir_ps_norm_own(weir_ps_host *h) {
  place(h, h->options.index, h->norm.own);
}

void weir_ps_norm_set(weir_ps_host *h) {
  if (h->norm.sums == NULL) return;
  weir_tensor_set_f64(h->engine->norm, 0,
                      weir_split_norm(h->job->split, h->norm.sums));
}

/* ---- Messages */

typedef struct outgoing {
  weir_ps_values values;
  weir_ps_piece piece;
  const weir_allocator *alloc;
  double sums[];
} outgoing;

static void sent(weir_ps_values *values) {
  outgoing *out = values->owner;
  weir_free(out->alloc, out);
}

void weir_ps_norm_send(weir_ps_host *h, weir_ps_task to,
                       const weir_ps_message *m) {
  weir_error err = WEIR_ERROR_INIT;
  size_t bytes = h->norm.own_count * sizeof(double);
  if (bytes == 0) {
    h->net.send(h->net.self, to, m, NULL);
    return;
  }
  outgoing *out = weir_alloc(h->env->alloc, sizeof *out + bytes);
  if (out == NULL) { /* sent again over a new link */
    (void)weir_fail_memory(&err, bytes);
    h->net.give_up(h->net.self, to, &err);
    return;
  }
  out->alloc = h->env->alloc;
  out->piece = (weir_ps_piece){out->sums, bytes};
  out->values = (weir_ps_values){
      .pieces = &out->piece, .count = 1, .sent = sent, .owner = out};
  memcpy(out->sums, h->norm.own, bytes);
  h->net.send(h->net.self, to, m, &out->values);
}

weir_status weir_ps_norm_receive(weir_ps_host *h, uint32_t from,
                                 weir_ps_place *out, weir_error *err) {
  if (h->norm.coming == NULL || from >= h->job->config.servers)
    return weir_fail(err, WEIR_W7011, NULL,
                     "a share of a norm that this job does not have");
  size_t bytes = sums_of(h, from) * sizeof(double);
  weir_ps_arrival *a = weir_alloc(h->env->alloc, sizeof *a + bytes);
  if (a == NULL) return weir_fail_memory(err, bytes);
  a->piece = (weir_ps_piece){a->sums, bytes};
  h->norm.coming[from] = a;
  *out = (weir_ps_place){&a->piece, 1, a};
  return WEIR_OK;
}

bool weir_ps_norm_unreceived(weir_ps_host *h, const void *data) {
  for (uint32_t k = 0; h->norm.coming != NULL && k < h->job->config.servers;
       k++) {
    if (data == NULL || h->norm.coming[k] != data) continue;
    weir_free(h->env->alloc, h->norm.coming[k]);
    h->norm.coming[k] = NULL;
    return true;
  }
  return false;
}

bool weir_ps_norm_message(weir_ps_host *h, uint32_t from, weir_ps_message *m) {
  weir_ps_server_counts now = weir_ps_server_count(h->machine);
  const weir_ps_arrival *a = m->data;
  bool counts = now.life != 0 && m->life == now.life && m->step == now.version;
  if (counts && a != NULL) place(h, from, a->sums);
  bool whole = a != NULL || h->norm.sums == NULL || sums_of(h, from) == 0;
  (void)weir_ps_norm_unreceived(h, a);
  m->data = NULL;
  return whole;
}
