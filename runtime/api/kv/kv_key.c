/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: their declarations, and which server has which rows. */
#include "runtime/api/kv/kv_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/api/kv/kv_handle.h"
#include "runtime/base/size.h"

static const int64_t kPatience = 30000000000;

const weir_kv_known *weir_kv_find(weir_kv *kv, const char *name) {
  pthread_mutex_lock(&kv->lock);
  uint32_t i = weir_map_get(&kv->names, weir_sv_from(name));
  const weir_kv_known *key = i == WEIR_MAP_NONE ? NULL : kv->keys[i];
  pthread_mutex_unlock(&kv->lock);
  return key;
}

/* Keeps |key|, or frees it if another thread was first. */
static weir_status keep(weir_kv *kv, weir_kv_known *key, weir_error *err) {
  const weir_allocator *alloc = kv->env.alloc;
  weir_status s = WEIR_OK;
  bool kept = false;
  pthread_mutex_lock(&kv->lock);
  bool there =
      weir_map_get(&kv->names, weir_sv_from(key->name)) != WEIR_MAP_NONE;
  if (!there && kv->key_count == kv->key_room) {
    size_t room = kv->key_room > 0 ? 2 * kv->key_room : 16;
    weir_kv_known **keys = weir_alloc_array(alloc, room, sizeof *keys);
    if (keys == NULL) {
      s = weir_fail_memory(err, room * sizeof *keys);
    } else {
      if (kv->key_count > 0)
        memcpy(keys, kv->keys, kv->key_count * sizeof *keys);
      weir_free(alloc, kv->keys);
      kv->keys = keys;
      kv->key_room = room;
    }
  }
  if (s == WEIR_OK && !there) {
    kept = weir_map_put(&kv->names, weir_sv_from(key->name),
                        (uint32_t)kv->key_count, NULL);
    if (kept)
      kv->keys[kv->key_count++] = key;
    else
      s = weir_fail_memory(err, sizeof *key);
  }
  pthread_mutex_unlock(&kv->lock);
  if (!kept) weir_free(alloc, key);
  return s;
}

/* ---- Which server */

/* A large key is cut over all servers, as evenly as rows go. */
static void split(const weir_kv *kv, weir_kv_known *key, size_t bytes) {
  uint32_t servers = kv->part.server_count;
  key->piece_count = 1;
  if (bytes <= kv->part.split_bytes || key->rows < servers || servers == 1) {
    uint64_t hash = weir_hash_bytes(key->name, strlen(key->name), 0);
    key->pieces[0] = (weir_kv_piece){(uint32_t)(hash % servers), 0, key->rows};
    return;
  }
  key->piece_count = servers;
  int64_t each = key->rows / servers, more = key->rows % servers, first = 0;
  for (uint32_t i = 0; i < servers; i++) {
    int64_t rows = each + (i < more);
    key->pieces[i] = (weir_kv_piece){i, first, rows};
    first += rows;
  }
}

static weir_status unfit(const char *name, const char *why, weir_error *err) {
  return weir_fail(err, WEIR_W7113, NULL, "key `%.64s`: %s", name, why);
}

static weir_status measure(const weir_kv *kv, const weir_kv_key_opts *o,
                           weir_kv_known *key, weir_error *err) {
  size_t bytes, size = weir_dtype_size(o->dtype);
  bool fits = size > 0 && o->rank >= 0 && o->rank <= WEIR_KV_RANK;
  key->row_bytes = size;
  key->rows = 1;
  for (int32_t i = 0; fits && i < o->rank; i++) {
    key->dims[i] = o->dims[i];
    fits = o->dims[i] > 0;
    if (fits && i > 0)
      fits = weir_size_mul(key->row_bytes, (size_t)o->dims[i], &key->row_bytes);
  }
  if (fits && o->rank > 0) key->rows = o->dims[0];
  fits = fits && weir_size_mul(key->row_bytes, (size_t)key->rows, &bytes) &&
         bytes <= PTRDIFF_MAX;
  if (!fits) return unfit(key->name, "its type or shape is no tensor's", err);
  key->dtype = o->dtype;
  key->rank = o->rank;
  split(kv, key, bytes);
  return WEIR_OK;
}

static weir_status check_first(const weir_kv_known *key,
                               const weir_kv_key_opts *o, weir_error *err) {
  const weir_tensor *t = o->first;
  if (t == NULL) return WEIR_OK;
  WEIR_TRY(weir_check_on_host(t, "first", err));
  if (t->dtype != o->dtype || t->shape.rank != o->rank)
    return unfit(key->name, "its first values have another type or shape", err);
  for (int32_t i = 0; i < o->rank; i++)
    if (t->shape.dims[i].value != o->dims[i])
      return unfit(key->name, "its first values have another shape", err);
  if ((uint64_t)key->pieces[0].rows * key->row_bytes > WEIR_KV_MESSAGE_BYTES)
    return unfit(key->name,
                 "its first values are more than 4 GiB for one server", err);
  return WEIR_OK;
}

/* ---- Declaring */

static void fill_share(const weir_kv_known *key, const weir_kv_key_opts *o,
                       uint32_t i, weir_kv_handle *h) {
  weir_kv_share *share = &h->shares[i];
  const weir_kv_piece *piece = &key->pieces[i];
  weir_kv_message *m = &share->op.message;
  m->kind = WEIR_KV_DECLARE;
  m->dtype = key->dtype;
  m->rank = key->rank;
  memcpy(m->dims, key->dims, sizeof m->dims);
  m->first = piece->first;
  m->rows = piece->rows;
  snprintf(m->name, sizeof m->name, "%s", key->name);
  snprintf(m->text, sizeof m->text, "%s", o->rule != NULL ? o->rule : "add");
  share->op.server = piece->server;
  if (h->in == NULL) return;
  m->value_bytes = (uint64_t)piece->rows * key->row_bytes;
  share->op.bytes = m->value_bytes;
  share->src =
      (const uint8_t *)h->in->data + (size_t)piece->first * key->row_bytes;
}

static weir_status ask(weir_kv *kv, const weir_kv_known *key,
                       const weir_kv_key_opts *o, weir_error *err) {
  weir_kv_handle *h;
  int64_t timeout = o->timeout_ns == 0 ? kPatience : o->timeout_ns;
  WEIR_TRY(weir_kv_handle_create(kv, key->piece_count, &h, err));
  snprintf(h->what, sizeof h->what, "declaration of key `%s`", key->name);
  if (o->first != NULL)
    h->in = weir_tensor_ref((weir_tensor *)(uintptr_t)o->first);
  for (uint32_t i = 0; i < key->piece_count; i++) fill_share(key, o, i, h);
  weir_status s = weir_kv_begin(kv, h, err);
  if (s == WEIR_OK) s = weir_kv_wait(h, timeout, NULL, err);
  weir_kv_handle_release(h);
  return s;
}

static weir_status check(const char *name, const weir_kv_key_opts *o,
                         weir_error *err) {
  size_t length = strlen(name);
  if (length == 0 || length >= WEIR_KV_NAME_BYTES)
    return weir_fail(err, WEIR_W7113, NULL,
                     "the name of a key has 1 to %d bytes, not %zu",
                     WEIR_KV_NAME_BYTES - 1, length);
  if (o->rank > 0 && o->dims == NULL)
    return weir_fail_null(err, "weir_kv_key_opts: dims");
  if (o->rule != NULL && strlen(o->rule) >= WEIR_KV_TEXT_BYTES)
    return weir_fail(err, WEIR_W7117, NULL,
                     "the rule of key `%.64s` has %zu bytes, fewer than %d are "
                     "expected",
                     name, strlen(o->rule), WEIR_KV_TEXT_BYTES);
  return WEIR_OK;
}

weir_status weir_kv_declare(weir_kv *kv, const char *name,
                            const weir_kv_key_opts *opts, weir_error *err) {
  weir_kv_key_opts o;
  if (kv == NULL) return weir_fail_null(err, "kv");
  if (name == NULL) return weir_fail_null(err, "name");
  if (opts == NULL) return weir_fail_null(err, "opts");
  WEIR_TRY(WEIR_OPTS_READ(weir_kv_key_opts, &o, opts, err));
  WEIR_TRY(check(name, &o, err));
  weir_kv_known *key = weir_alloc_array(kv->env.alloc, 1, sizeof *key);
  if (key == NULL) return weir_fail_memory(err, sizeof *key);
  snprintf(key->name, sizeof key->name, "%s", name);
  weir_status s = measure(kv, &o, key, err);
  if (s == WEIR_OK) s = check_first(key, &o, err);
  if (s == WEIR_OK) s = ask(kv, key, &o, err);
  if (s == WEIR_OK) return keep(kv, key, err);
  weir_free(kv->env.alloc, key);
  return s;
}
