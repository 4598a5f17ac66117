/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/psnet/psnet_transfer.h"

#include <string.h>

#include "runtime/base/size.h"
#include "runtime/dist/psnet/psnet_link.h"

/* The slots of a transfer: EDGE |place of the piece| of step |number|, and this
 * one for the small pieces. */
static const uint32_t kPack = UINT32_MAX;

static bool is_small(const weir_ps_piece *piece) {
  return piece->bytes <= WEIR_WIRE_VALUE_BYTES;
}

static weir_status count_values(const weir_ps_piece *pieces, uint32_t count,
                                size_t *out_values, size_t *out_pack,
                                weir_error *err) {
  *out_values = *out_pack = 0;
  for (uint32_t i = 0; i < count; i++)
    if (!is_small(&pieces[i]))
      ++*out_values;
    else if (!weir_size_add(*out_pack, pieces[i].bytes, out_pack))
      return weir_fail_memory(err, SIZE_MAX);
  *out_values += *out_pack > 0;
  return WEIR_OK;
}

/* Copies the small pieces to the pack, or from it. */
static void copy_small(const weir_ps_transfer *t, bool gather) {
  uint8_t *at = t->pack;
  for (uint32_t i = 0; i < t->count; i++) {
    const weir_ps_piece *piece = &t->pieces[i];
    if (!is_small(piece) || piece->bytes == 0) continue;
    if (gather)
      memcpy(at, piece->data, piece->bytes);
    else
      memcpy(piece->data, at, piece->bytes);
    at += piece->bytes;
  }
}

weir_status weir_ps_transfer_create(weir_ps_link *link, uint64_t number,
                                    weir_ps_values *values,
                                    const weir_ps_place *place,
                                    weir_ps_transfer **out_transfer,
                                    weir_error *err) {
  const weir_allocator *alloc = link->net->env->alloc;
  const weir_ps_piece *pieces = values != NULL ? values->pieces : place->pieces;
  uint32_t count = values != NULL ? values->count : place->count;
  size_t value_count, pack_bytes, bytes;
  *out_transfer = NULL;
  WEIR_TRY(count_values(pieces, count, &value_count, &pack_bytes, err));
  if (!weir_size_mul(value_count, sizeof(weir_channel_done), &bytes) ||
      !weir_size_add(bytes, sizeof(weir_ps_transfer), &bytes))
    return weir_fail_memory(err, SIZE_MAX);
  weir_ps_transfer *t = weir_alloc(alloc, bytes);
  uint8_t *pack = pack_bytes > 0 ? weir_alloc(alloc, pack_bytes) : NULL;
  if (t == NULL || (pack_bytes > 0 && pack == NULL)) {
    weir_free(alloc, t);
    weir_free(alloc, pack);
    return weir_fail_memory(err, t == NULL ? bytes : pack_bytes);
  }
  *t = (weir_ps_transfer){.link = link,
                          .values = values,
                          .pieces = pieces,
                          .count = count,
                          .number = number,
                          .err = WEIR_ERROR_INIT,
                          .pack = pack,
                          .pack_bytes = pack_bytes,
                          .value_count = value_count};
  atomic_init(&t->left, value_count + 1);
  if (values != NULL) copy_small(t, true);
  weir_ps_link_hold(link);
  *out_transfer = t;
  return WEIR_OK;
}

void weir_ps_transfer_release(weir_ps_transfer *t) {
  const weir_allocator *alloc = t->link->net->env->alloc;
  weir_ps_link_let_go(t->link);
  weir_free(alloc, t->pack);
  weir_free(alloc, t);
}

/* The last one to be over ends the transfer: from here on it is the control
 * thread's. */
static void one_over(weir_ps_transfer *t) {
  weir_ps_net *net = t->link->net;
  if (atomic_fetch_sub(&t->left, 1) != 1) return;
  pthread_mutex_lock(&net->lock);
  t->over = true;
  t->next = net->ended;
  net->ended = t;
  weir_ps_net_wake(net);
  pthread_cond_broadcast(&net->changed);
  pthread_mutex_unlock(&net->lock);
}

/* Any thread. */
static void value_over(void *self, weir_status status, const weir_error *err) {
  weir_ps_transfer *t = self;
  if (status != WEIR_OK) {
    pthread_mutex_lock(&t->link->net->lock);
    if (t->status == WEIR_OK) {
      t->status = status;
      weir_error_copy(&t->err, err);
    }
    pthread_mutex_unlock(&t->link->net->lock);
  }
  one_over(t);
}

static void begin_value(weir_ps_transfer *t, size_t at, uint32_t id,
                        const weir_ps_piece *piece) {
  weir_exchange *values = t->link->values;
  const weir_slot slot = {WEIR__V1__VALUE_KIND__EDGE, id, t->number};
  t->done[at] = (weir_channel_done){.fn = value_over, .self = t};
  if (t->values != NULL)
    weir_exchange_send(values, 0, &slot,
                       (weir_bytes){piece->data, piece->bytes}, &t->done[at]);
  else
    weir_exchange_recv(values, 0, &slot, piece->data, piece->bytes,
                       &t->done[at]);
}

void weir_ps_transfer_begin(weir_ps_transfer *t) {
  size_t at = 0;
  if (t->pack_bytes > 0)
    begin_value(t, at++, kPack, &(weir_ps_piece){t->pack, t->pack_bytes});
  for (uint32_t i = 0; i < t->count; i++)
    if (!is_small(&t->pieces[i])) begin_value(t, at++, i, &t->pieces[i]);
  one_over(t);
}

void weir_ps_transfer_scatter(const weir_ps_transfer *t) {
  copy_small(t, false);
}

void weir_ps_transfer_wait(weir_ps_transfer *t) {
  weir_ps_net *net = t->link->net;
  pthread_mutex_lock(&net->lock);
  while (!t->over) pthread_cond_wait(&net->changed, &net->lock);
  pthread_mutex_unlock(&net->lock);
}
