/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/seed/chief_seed.h"

#include <inttypes.h>

#include "runtime/exec/session/session_snapshot.h"
#include "runtime/train/data/data_open.h"

/* Snapshots of the loop's session: what the loop puts there later goes into
 * other buffers. They are whole; a server is sent the bytes of its rows. */

static weir_status take(weir_chief *c, uint32_t server, weir_error *err) {
  const weir_ps_lists *lists = &c->job->servers[server];
  weir_tensor **to =
      weir_alloc_array(c->loop->alloc, lists->held_count + 1u, sizeof *to);
  if (to == NULL) return weir_fail_memory(err, lists->held_count);
  c->seeds[server] = to;
  for (uint32_t i = 0; i < lists->held_count; i++)
    WEIR_TRY(weir_exec_variable_snapshot(
        c->loop->session, c->nodes[lists->held[i]], &to[i], err));
  return WEIR_OK;
}

/* Runs are counted from the first, so the data must stand where so many runs
 * lead. */
static weir_status check_place(const weir_chief *c, weir_error *err) {
  const weir_loop *loop = c->loop;
  uint64_t all = (uint64_t)weir_dataset_batches(loop->data);
  uint64_t place = loop->epoch * all + loop->batches;
  uint64_t runs = loop->step * loop->spec->accumulate;
  if (place == runs) return WEIR_OK;
  weir_status s =
      weir_fail(err, WEIR_W5025, NULL,
                "the checkpoint of step %" PRIu64 " has read %" PRIu64
                " batches; with %u batches an update it would be %" PRIu64,
                loop->step, place, loop->spec->accumulate, runs);
  weir_hint(err,
            "sync(aggregate=N) goes on from `accumulate: N`, the other modes "
            "from one batch an update; --init begins with its variables alone");
  return s;
}

weir_status weir_chief_seed_create(weir_chief *c, weir_error *err) {
  const weir_loop *loop = c->loop;
  uint32_t servers = c->job->config.servers;
  c->seed_step = loop->step;
  if (loop->saved) WEIR_TRY(check_place(c, err));
  if (!loop->saved && loop->options.init == NULL) return WEIR_OK;
  c->seeds = weir_alloc_array(loop->alloc, servers, sizeof *c->seeds);
  if (c->seeds == NULL) return weir_fail_memory(err, servers);
  for (uint32_t s = 0; s < servers; s++) WEIR_TRY(take(c, s, err));
  return WEIR_OK;
}

void weir_chief_seed_release(weir_chief *c) {
  for (uint32_t s = 0; c->seeds != NULL && s < c->job->config.servers; s++) {
    uint32_t count = c->seeds[s] != NULL ? c->job->servers[s].held_count : 0;
    for (uint32_t i = 0; i < count; i++) weir_tensor_unref(c->seeds[s][i]);
    weir_free(c->loop->alloc, c->seeds[s]);
  }
  weir_free(c->loop->alloc, c->seeds);
  c->seeds = NULL;
}

/* ---- On the way */

typedef struct parcel {
  weir_ps_values values;
  const weir_allocator *alloc;
  weir_tensor **tensors;
  weir_ps_piece *pieces;
} parcel;

static void sent(weir_ps_values *values) {
  parcel *p = values->owner;
  for (uint32_t i = 0; i < values->count; i++) weir_tensor_unref(p->tensors[i]);
  weir_free(p->alloc, p->tensors);
  weir_free(p->alloc, p->pieces);
  weir_free(p->alloc, p);
}

static parcel *pack(const weir_chief *c, uint32_t server) {
  const weir_allocator *alloc = c->loop->alloc;
  uint32_t count = c->job->servers[server].held_count;
  parcel *p = weir_alloc_array(alloc, 1, sizeof *p);
  if (p == NULL) return NULL;
  p->alloc = alloc;
  p->tensors = weir_alloc_array(alloc, count + 1u, sizeof *p->tensors);
  p->pieces = weir_alloc_array(alloc, count + 1u, sizeof *p->pieces);
  p->values = (weir_ps_values){.pieces = p->pieces, .sent = sent, .owner = p};
  if (p->tensors == NULL || p->pieces == NULL) {
    sent(&p->values);
    return NULL;
  }
  for (uint32_t i = 0; i < count; i++) {
    p->tensors[i] = weir_tensor_ref(c->seeds[server][i]);
    uint32_t v = c->job->servers[server].held[i];
    p->pieces[i] = weir_ps_var_piece(c->job, v, p->tensors[i]);
  }
  p->values.count = count;
  return p;
}

void weir_chief_seed_send(weir_chief *c, weir_ps_task to,
                          const weir_ps_message *m) {
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_message seeded = *m;
  if (c->seeds == NULL) {
    weir_ps_net_send(c->net, to, m, NULL);
    return;
  }
  parcel *p = pack(c, to.index);
  if (p == NULL) { /* asked for again over a new link */
    (void)weir_fail_memory(&err, c->job->servers[to.index].held_count);
    weir_ps_net_give_up(c->net, to, &err);
    return;
  }
  seeded.newer = true;
  seeded.version = c->seed_step;
  weir_ps_net_send(c->net, to, &seeded, &p->values);
}

void weir_chief_seed_saved(weir_chief *c) {
  if (c->options.folder) weir_chief_seed_release(c);
}
