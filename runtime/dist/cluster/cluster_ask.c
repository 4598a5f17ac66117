/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/cluster/cluster_ask.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/utf8.h"
#include "runtime/dist/channel/exchange.h"
#include "runtime/net/wire_error.h"

/* Answers come on the control thread, pieces on any; both are counted under the
 * lock, and the last one ends the call. The beginning counts too, so that a
 * call does not end while it is being made. */

enum { PATH_MOST = 4095 };

typedef struct ask_op {
  weir_dist_op base;
  weir_dist_ask *asks;
  uint32_t count;
  uint32_t left; /* answers and pieces; under the lock */
} ask_op;

/* Under the lock. |op| may be gone after it. */
static void one_ended(ask_op *op, weir_dist_ask *a, const weir_error *err) {
  if (err != NULL && a->error.id[0] == '\0') a->error = *err;
  if (--op->left == 0) weir_dist_done(&op->base, WEIR_OK, NULL);
}

static void piece_moved(void *self, weir_status status, const weir_error *err) {
  const weir_dist_move *move = self;
  ask_op *op = (ask_op *)move->op;
  weir_dist *d = op->base.dist;
  pthread_mutex_lock(&d->lock);
  one_ended(op, &op->asks[move->index], status != WEIR_OK ? err : NULL);
  pthread_mutex_unlock(&d->lock);
}

static void receive(ask_op *op, uint32_t i) {
  weir_dist_ask *a = &op->asks[i];
  weir_slot slot = {WEIR__V1__VALUE_KIND__VARIABLE, a->piece->node, *a->number};
  weir_dist_move *move = &a->piece->move;
  *move = (weir_dist_move){{.fn = piece_moved, .self = move}, &op->base, i};
  weir_exchange_recv(op->base.dist->values, a->place, &slot, a->piece->dst,
                     a->piece->bytes, &move->done);
}

static weir_status start_asks(weir_dist_op *base, weir_error *err) {
  (void)err;
  ask_op *op = (ask_op *)base;
  weir_dist *d = base->dist;
  for (uint32_t i = 0; i < op->count; i++) {
    weir_dist_ask *a = &op->asks[i];
    weir_error why = WEIR_ERROR_INIT;
    const weir_peer *peer = d->peers[a->place];
    snprintf(a->name, sizeof a->name, "%s", peer != NULL ? peer->name : "");
    if (weir_driver_ask(d->driver, weir_dist_now(d), a->place, &a->message,
                        a->number, &why) == WEIR_OK) {
      if (a->piece != NULL) receive(op, i);
      continue;
    }
    pthread_mutex_lock(&d->lock);
    a->told = true;
    if (a->piece != NULL) one_ended(op, a, &why);
    one_ended(op, a, &why);
    pthread_mutex_unlock(&d->lock);
  }
  pthread_mutex_lock(&d->lock);
  one_ended(op, NULL, NULL); /* the beginning itself */
  pthread_mutex_unlock(&d->lock);
  return WEIR_OK;
}

static void take_answer(weir_dist_ask *a,
                        const Weir__V1__CheckpointReply *reply) {
  weir_error err = WEIR_ERROR_INIT;
  a->apart = reply->apart != 0;
  a->bytes = reply->bytes;
  a->crc = reply->crc32c;
  if (weir_wire_error_is(reply->error)) {
    (void)weir_wire_error_get(reply->error, &a->error);
    return;
  }
  if (!a->apart && a->crcs != NULL && reply->n_crcs != a->crc_count) {
    weir_fail(&err, WEIR_W7011, NULL, "%zu checksums came for %zu tensors",
              reply->n_crcs, a->crc_count);
    a->error = err;
  } else if (!a->apart && a->crcs != NULL && a->crc_count > 0) {
    memcpy(a->crcs, reply->crcs, a->crc_count * sizeof *a->crcs);
  }
  for (size_t i = 0; a->warnings != NULL && i < reply->n_warnings &&
                     a->warning_count < WEIR_DIST_ASK_WARNINGS;
       i++)
    if (weir_wire_error_is(reply->warnings[i]))
      (void)weir_wire_error_get(reply->warnings[i],
                                &a->warnings[a->warning_count++]);
}

void weir_dist_replied(weir_dist *d, uint64_t request,
                       const Weir__V1__CheckpointReply *reply,
                       const weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  pthread_mutex_lock(&d->lock);
  for (weir_dist_op *it = d->ops; it != NULL; it = it->next) {
    ask_op *op = (ask_op *)it;
    if (it->kind != WEIR_DIST_ASK || it->done) continue;
    for (uint32_t i = 0; i < op->count && !it->done; i++) {
      weir_dist_ask *a = &op->asks[i];
      if (a->told || *a->number != request) continue;
      a->told = true;
      if (reply != NULL) take_answer(a, reply);
      if (reply != NULL && a->piece != NULL) why = a->error;
      one_ended(op, a, reply == NULL ? err : NULL);
    }
  }
  pthread_mutex_unlock(&d->lock);
  if (why.id[0] != '\0') weir_dist_give_up(d, &why);
}

/* Asks all of |asks|, and waits. The first error, with the task's name. */
weir_status weir_dist_ask_all(weir_dist *d, weir_dist_ask *asks, uint32_t count,
                              weir_error *err) {
  ask_op op = {.base = {.kind = WEIR_DIST_ASK, .start = start_asks},
               .asks = asks,
               .count = count,
               .left = count + 1};
  weir_error why = WEIR_ERROR_INIT;
  for (uint32_t i = 0; i < count; i++) {
    asks[i].error = (weir_error)WEIR_ERROR_INIT;
    op.left += asks[i].piece != NULL;
  }
  if (weir_dist_call(d, &op.base, &why) != WEIR_OK) {
    weir_error_copy(err, &why);
    return why.code;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (asks[i].error.id[0] == '\0') continue;
    why = asks[i].error;
    /* One that ends the session has the name already. */
    if (strncmp(why.id, "W70", 3) != 0)
      snprintf(why.message, sizeof why.message, "%s: %.400s", asks[i].name,
               asks[i].error.message);
    weir_error_copy(err, &why);
    return why.code;
  }
  return WEIR_OK;
}

bool weir_dist_can_tell(const weir_checkpoint_common *place,
                        Weir__V1__CheckpointFolder *out) {
  weir_sv path = weir_sv_from(place->path);
  *out = (Weir__V1__CheckpointFolder)WEIR__V1__CHECKPOINT_FOLDER__INIT;
  out->path = (char *)(uintptr_t)place->path;
  out->nonce.data = (uint8_t *)(uintptr_t)place->nonce;
  out->nonce.len = sizeof place->nonce;
  if (place->manifest != NULL)
    out->manifest = (char *)(uintptr_t)place->manifest;
  return path.size <= PATH_MOST && weir_utf8_valid(path, NULL);
}
