/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: an op on a key is a share for each server that has a part of it. */
#include "runtime/api/kv/kv_handle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/base/size.h"

/* A handle is held by its caller, by each share without an answer, and by each
 * message whose values a transport may still read: the caller's tensor stays
 * until then. */

weir_status weir_kv_handle_create(weir_kv *kv, uint32_t shares,
                                  weir_kv_handle **out_handle,
                                  weir_error *err) {
  size_t bytes;
  *out_handle = NULL;
  if (!weir_size_mul(shares, sizeof(weir_kv_share), &bytes) ||
      !weir_size_add(bytes, sizeof(weir_kv_handle), &bytes))
    return weir_fail_memory(err, SIZE_MAX);
  weir_kv_handle *h = weir_alloc_array(kv->env.alloc, 1, bytes);
  if (h == NULL) return weir_fail_memory(err, bytes);
  weir_kv_hold(kv);
  h->kv = kv;
  h->refs = 1;
  h->err = (weir_error)WEIR_ERROR_INIT;
  h->version = UINT64_MAX;
  h->newer = true;
  h->share_count = shares;
  for (uint32_t i = 0; i < shares; i++) {
    h->shares[i].handle = h;
    h->shares[i].op.err = (weir_error)WEIR_ERROR_INIT;
    h->shares[i].op.owner = &h->shares[i];
  }
  *out_handle = h;
  return WEIR_OK;
}

static void free_handle(weir_kv_handle *h) {
  weir_kv *kv = h->kv;
  for (uint32_t i = 0; i < h->share_count; i++) {
    weir_kv_block_release(h->shares[i].ids_and_rows);
    weir_free(kv->env.alloc, h->shares[i].places);
  }
  weir_tensor_unref(h->in);
  weir_tensor_unref(h->out);
  weir_free(kv->env.alloc, h);
  weir_kv_drop(kv);
}

static void hold(weir_kv_handle *h) {
  pthread_mutex_lock(&h->kv->lock);
  h->refs++;
  pthread_mutex_unlock(&h->kv->lock);
}

void weir_kv_handle_release(weir_kv_handle *handle) {
  if (handle == NULL) return;
  pthread_mutex_lock(&handle->kv->lock);
  bool last = --handle->refs == 0;
  pthread_mutex_unlock(&handle->kv->lock);
  if (last) free_handle(handle);
}

/* ---- Values on their way out */

typedef struct outgoing {
  weir_ps_values values;
  weir_ps_piece pieces[2];
  weir_kv_handle *handle; /* held */
} outgoing;

static void sent(weir_ps_values *values) {
  outgoing *out = values->owner;
  weir_kv_handle *h = out->handle;
  weir_free(h->kv->env.alloc, out);
  weir_kv_handle_release(h);
}

/* Ids and values of |m|, from the share's block or the caller's tensor. */
static uint32_t put_pieces(const weir_kv_share *share, const weir_kv_message *m,
                           weir_ps_piece *pieces) {
  const weir_kv_block *block = share->ids_and_rows;
  size_t ids = (size_t)weir_kv_id_bytes(m), values = (size_t)m->value_bytes;
  uint32_t n = 0;
  if (ids > 0) pieces[n++] = (weir_ps_piece){block->ids, ids};
  if (values > 0)
    pieces[n++] = (weir_ps_piece){
        block != NULL ? block->values : (void *)(uintptr_t)share->src, values};
  return n;
}

static weir_status make_outgoing(weir_kv_share *share, const weir_kv_message *m,
                                 weir_ps_values **out_values, weir_error *err) {
  *out_values = NULL;
  if (weir_kv_id_bytes(m) + m->value_bytes == 0) return WEIR_OK;
  outgoing *out =
      weir_alloc_array(share->handle->kv->env.alloc, 1, sizeof *out);
  if (out == NULL) return weir_fail_memory(err, sizeof *out);
  out->handle = share->handle;
  hold(share->handle);
  out->values = (weir_ps_values){.pieces = out->pieces,
                                 .count = put_pieces(share, m, out->pieces),
                                 .sent = sent,
                                 .owner = out};
  *out_values = &out->values;
  return WEIR_OK;
}

void weir_kv_handle_send(void *self, uint32_t server, const weir_kv_message *m,
                         weir_kv_op *op) {
  weir_kv *kv = self;
  const weir_ps_task to = {WEIR_PS_SERVER, server};
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_values *values = NULL;
  if (op != NULL && make_outgoing(op->owner, m, &values, &err) != WEIR_OK)
    weir_ps_net_give_up(kv->net, to, &err); /* it is sent again */
  else
    weir_kv_net_send(kv->env.alloc, kv->net, to, m, values);
}

/* ---- Answers */

/* Memory of the caller's, as a block. */
static weir_status lend(weir_kv *kv, void *dst, size_t bytes,
                        weir_kv_block **out_block, weir_error *err) {
  weir_kv_block *b = weir_alloc_array(kv->env.alloc, 1, sizeof *b);
  *out_block = b;
  if (b == NULL) return weir_fail_memory(err, sizeof *b);
  *b = (weir_kv_block){.alloc = kv->env.alloc,
                       .values = dst,
                       .pieces = {{dst, bytes}},
                       .count = 1};
  return WEIR_OK;
}

/* What an answer to |share| must have. */
static size_t answer_bytes(const weir_kv_share *share) {
  const weir_kv_handle *h = share->handle;
  const weir_kv_message *m = &share->op.message;
  uint64_t rows = m->by_row ? m->count : (uint64_t)m->rows;
  return h->out == NULL ? 0 : (size_t)rows * h->row_bytes;
}

weir_status weir_kv_handle_place(weir_kv *kv, uint32_t server,
                                 const weir_kv_message *m, weir_ps_place *out,
                                 weir_error *err) {
  weir_kv_op *op = weir_kv_client_find(kv->machine, server, m);
  weir_kv_share *share = op != NULL ? op->owner : NULL;
  weir_kv_block *block = NULL;
  if (share == NULL || m->value_bytes != answer_bytes(share) ||
      m->value_bytes == 0)
    return weir_fail(err, WEIR_W7011, NULL,
                     "ps:%" PRIu32 " sends %" PRIu64
                     " bytes of values, for which nobody asked",
                     server, m->value_bytes);
  WEIR_TRY(share->dst != NULL
               ? lend(kv, share->dst, (size_t)m->value_bytes, &block, err)
               : weir_kv_block_create(kv->env.alloc, m, false, &block, err));
  *out = (weir_ps_place){block->pieces, block->count, block};
  return WEIR_OK;
}

/* Rows of an answer to their places in the caller's tensor. */
static void scatter(const weir_kv_share *share, const weir_kv_block *block) {
  const weir_kv_handle *h = share->handle;
  const weir_kv_message *m = &share->op.message;
  const uint8_t *src = block->values;
  uint8_t *dst = h->out->data;
  size_t bytes = h->row_bytes;
  if (!m->by_row)
    memcpy(dst + (size_t)m->first * bytes, src, (size_t)m->rows * bytes);
  for (uint64_t i = 0; m->by_row && i < m->count; i++)
    memcpy(dst + (size_t)share->places[i] * bytes, src + (size_t)i * bytes,
           bytes);
}

/* Whether an answer should have values and has none. */
static bool lacks_values(const weir_kv_op *op) {
  const weir_kv_share *share = op->owner;
  bool asked = op->newer || op->message.version == 0;
  return op->status == WEIR_OK && op->data == NULL && asked &&
         answer_bytes(share) > 0;
}

/* All answers are there: to the caller's tensor, or not at all. */
static void settle_answers(weir_kv_handle *h) {
  for (uint32_t i = 0; i < h->share_count; i++) {
    weir_kv_share *share = &h->shares[i];
    if (share->answer != NULL && h->status == WEIR_OK && h->newer)
      scatter(share, share->answer);
    weir_kv_block_release(share->answer);
    share->answer = NULL;
  }
}

/* |status| and |newer| are written here alone. */
static bool note(weir_kv_handle *h, const weir_kv_op *op) {
  pthread_mutex_lock(&h->kv->lock);
  if (h->status == WEIR_OK && op->status != WEIR_OK) {
    h->status = op->status;
    weir_error_copy(&h->err, &op->err);
  }
  if (op->version < h->version) h->version = op->version;
  h->newer = h->newer && op->newer;
  bool last = h->left == 1;
  pthread_mutex_unlock(&h->kv->lock);
  return last;
}

void weir_kv_handle_done(void *self, weir_kv_op *op) {
  weir_kv *kv = self;
  weir_kv_share *share = op->owner;
  weir_kv_handle *h = share->handle;
  if (lacks_values(op))
    op->status = weir_fail(&op->err, WEIR_W7011, NULL,
                           "ps:%" PRIu32 " answers the %.200s without values",
                           op->server, h->what);
  if (share->dst == NULL)
    share->answer = op->data;
  else
    weir_kv_block_release(op->data);
  if (note(h, op)) settle_answers(h);
  pthread_mutex_lock(&kv->lock);
  h->left--;
  pthread_cond_broadcast(&kv->changed);
  pthread_mutex_unlock(&kv->lock);
  weir_kv_handle_release(h);
}

/* ---- Waiting */

/* On the clock of |changed|. */
static struct timespec until(const weir_kv *kv, int64_t timeout_ns) {
  int64_t now = kv->env.clock->now_ns(kv->env.clock->self);
  int64_t end = timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
  return (struct timespec){(time_t)(end / 1000000000), end % 1000000000};
}

/* With the lock. */
static weir_status fail_late(const weir_kv_handle *h, weir_error *err) {
  const weir_kv *kv = h->kv;
  uint32_t server = 0;
  for (uint32_t i = 0; i < kv->part.server_count; i++)
    if (strcmp(kv->links[i], "up") != 0) {
      server = i;
      break;
    }
  return weir_fail(err, WEIR_W7116, NULL,
                   "%s has no answer of %" PRIu32 " of %" PRIu32
                   " servers; link to ps:%" PRIu32 ": %s",
                   h->what, h->left, h->share_count, server, kv->links[server]);
}

weir_status weir_kv_wait(weir_kv_handle *handle, int64_t timeout_ns,
                         weir_kv_result *out_result, weir_error *err) {
  if (handle == NULL) return weir_fail_null(err, "handle");
  weir_kv *kv = handle->kv;
  struct timespec end = until(kv, timeout_ns > 0 ? timeout_ns : 0);
  bool late = timeout_ns == 0;
  pthread_mutex_lock(&kv->lock);
  while (handle->left > 0 && !late) {
    if (timeout_ns < 0)
      pthread_cond_wait(&kv->changed, &kv->lock);
    else
      late = pthread_cond_timedwait(&kv->changed, &kv->lock, &end) == ETIMEDOUT;
  }
  weir_status s = handle->status;
  weir_kv_result result = {.struct_size = sizeof result,
                           .newer = handle->newer && handle->out != NULL,
                           .version = handle->version};
  if (handle->left > 0)
    s = fail_late(handle, err);
  else if (s != WEIR_OK)
    weir_error_copy(err, &handle->err);
  pthread_mutex_unlock(&kv->lock);
  if (s != WEIR_OK || out_result == NULL) return s;
  return WEIR_OPTS_WRITE(weir_kv_result, out_result, &result, err);
}
