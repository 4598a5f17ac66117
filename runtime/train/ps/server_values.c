/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/server_values.h"

#include <assert.h>
#include <string.h>

/* Values on their way in and out. Memory for them goes around. */

enum { SPARE_BYTES = 16 << 20 };

/* ---- Out */

static void sent(weir_ps_values *values) {
  weir_ps_out *out = values->owner;
  for (uint32_t i = 0; i < out->count; i++) weir_tensor_unref(out->tensors[i]);
  out->count = 0;
  out->next = out->host->outs;
  out->host->outs = out;
}

static void free_out(const weir_allocator *alloc, weir_ps_out *out) {
  for (uint32_t i = 0; i < out->count; i++) weir_tensor_unref(out->tensors[i]);
  weir_free(alloc, out->pieces);
  weir_free(alloc, out->tensors);
  weir_free(alloc, out);
}

static weir_ps_out *take_out(weir_ps_host *h) {
  const weir_allocator *alloc = h->env->alloc;
  weir_ps_out *out = h->outs;
  if (out != NULL) {
    h->outs = out->next;
    return out;
  }
  size_t room = h->lists->held_count + 1u;
  out = weir_alloc_array(alloc, 1, sizeof *out);
  if (out == NULL) return NULL;
  out->pieces = weir_alloc_array(alloc, room, sizeof *out->pieces);
  out->tensors = weir_alloc_array(alloc, room, sizeof(void *));
  if (out->pieces == NULL || out->tensors == NULL) {
    free_out(alloc, out);
    return NULL;
  }
  out->host = h;
  out->values =
      (weir_ps_values){.pieces = out->pieces, .sent = sent, .owner = out};
  out->all = h->all_outs;
  h->all_outs = out;
  return out;
}

/* |t| goes out next, and its reference with it. */
static void put_out(weir_ps_out *out, weir_tensor *t) {
  uint32_t at = out->count++;
  out->tensors[at] = t;
  out->pieces[at] = (weir_ps_piece){t->data, t->bytes};
  out->values.count = out->count;
}

void weir_ps_host_send_values(weir_ps_host *h, weir_ps_task to,
                              const weir_ps_message *m, const uint32_t *places,
                              uint32_t count) {
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_out *out = count > 0 ? take_out(h) : NULL;
  weir_status s = WEIR_OK;
  if (count > 0 && out == NULL)
    s = weir_fail_memory(&err, count * sizeof *out->pieces);
  for (uint32_t i = 0; s == WEIR_OK && i < count; i++) {
    weir_tensor *t = NULL;
    s = weir_ps_host_value(h, places != NULL ? places[i] : i, &t, &err);
    if (s == WEIR_OK) put_out(out, t);
  }
  if (s == WEIR_OK) {
    if (out != NULL && places == NULL && h->current.watched != NULL)
      put_out(out, weir_tensor_ref(h->current.watched));
    h->net.send(h->net.self, to, m, out != NULL ? &out->values : NULL);
    return;
  }
  if (out != NULL) sent(&out->values);
  h->net.give_up(h->net.self, to, &err); /* it asks again over a new link */
}

weir_status weir_ps_host_value(weir_ps_host *h, uint32_t place,
                               weir_tensor **out, weir_error *err) {
  weir_tensor *lent = h->current.tensors[place];
  assert(lent != NULL || !h->unsettled);
  if (lent == NULL)
    return weir_ps_engine_hold(h->engine, place, h->summed, out, err);
  *out = weir_tensor_ref(lent);
  return WEIR_OK;
}

/* ---- In */

weir_status weir_ps_host_take(weir_ps_host *h, weir_ps_buffer **out,
                              weir_error *err) {
  weir_ps_buffer *b = h->buffers;
  *out = NULL;
  if (b != NULL) {
    h->buffers = b->next;
    h->buffer_count--;
  } else {
    WEIR_TRY(weir_ps_buffer_create(h->engine, &b, err));
    b->all = h->all_buffers;
    h->all_buffers = b;
  }
  weir_status s = weir_ps_buffer_fill(h->engine, b, err);
  if (s == WEIR_OK)
    *out = b;
  else
    weir_ps_host_give(h, b);
  return s;
}

/* A burst of pushes leaves buffers behind. Rooms are the variables' again; of
 * the rest one stays, and more within 16 MiB: fewer would be made anew for each
 * push, of pages that were never touched. */
static bool is_spare(const weir_ps_host *h) {
  return h->buffer_count >= 1 &&
         (h->buffer_count + 1) * h->engine->plain_bytes > (uint64_t)SPARE_BYTES;
}

void weir_ps_host_give(weir_ps_host *h, weir_ps_buffer *buffer) {
  if (buffer == NULL) return;
  weir_ps_buffer_leave(h->engine, buffer);
  if (!is_spare(h)) {
    buffer->next = h->buffers;
    h->buffers = buffer;
    h->buffer_count++;
    return;
  }
  weir_ps_buffer **at = &h->all_buffers;
  while (*at != buffer) at = &(*at)->all;
  *at = buffer->all;
  weir_ps_buffer_release(h->engine, buffer);
}

/* ---- The current ones */

void weir_ps_host_swap(weir_ps_host *h, uint64_t version) {
  weir_ps_set old = h->current;
  h->current = h->next;
  h->next = old;
  weir_ps_set_version(h->engine, &h->current, version);
  weir_ps_set_clear(&h->next);
  h->unsettled = h->summed = false;
}

void weir_ps_host_values_release(weir_ps_host *h) {
  while (h->all_outs != NULL) {
    weir_ps_out *out = h->all_outs;
    h->all_outs = out->all;
    free_out(h->env->alloc, out);
  }
  while (h->all_buffers != NULL) {
    weir_ps_buffer *b = h->all_buffers;
    h->all_buffers = b->all;
    weir_ps_buffer_release(h->engine, b);
  }
  h->outs = NULL;
  h->buffers = NULL;
  h->buffer_count = 0;
  weir_ps_set_clear(&h->current);
  weir_ps_set_clear(&h->next);
}
