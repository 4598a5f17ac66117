/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/kv/kv.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/bytes/proto.h"
#include "runtime/base/size.h"
#include "runtime/base/table.h"

/* Messages to and from their form on the wire: numbers of eight bytes in one
 * order, which both sides have, then texts with their size before them. All
 * messages have all fields, but the set, which only an entry to a barrier has:
 * a message of some 300 bytes is small beside the frame that carries it. */

const char *weir_kv_kind_name(weir_kv_kind kind) {
  static const char *const kNames[] = {
      [WEIR_KV_JOIN] = "JOIN",   [WEIR_KV_DECLARE] = "DECLARE",
      [WEIR_KV_PUSH] = "PUSH",   [WEIR_KV_PUSH_PULL] = "PUSH_PULL",
      [WEIR_KV_PULL] = "PULL",   [WEIR_KV_ENTER] = "ENTER",
      [WEIR_KV_LEAVE] = "LEAVE", [WEIR_KV_JOINED] = "JOINED",
      [WEIR_KV_DONE] = "DONE",   [WEIR_KV_PASSED] = "PASSED"};
  WEIR_TABLE_OF(kNames, WEIR_KV_KIND_COUNT);
  return kind < WEIR_KV_KIND_COUNT ? kNames[kind] : "?";
}

void weir_kv_set_error(weir_kv_message *m, weir_status status,
                       const weir_error *err) {
  m->status = status;
  snprintf(m->id, sizeof m->id, "%s", err->id);
  snprintf(m->text, sizeof m->text, "%s", err->message);
}

weir_status weir_kv_get_error(const weir_kv_message *m, weir_error *err) {
  if (m->status == WEIR_OK || err == NULL) return m->status;
  weir_error told = WEIR_ERROR_INIT;
  told.code = m->status;
  snprintf(told.id, sizeof told.id, "%s", m->id);
  snprintf(told.message, sizeof told.message, "%s", m->text);
  weir_error_copy(err, &told);
  return m->status;
}

/* ---- Out */

static void put(weir_strbuf *out, uint64_t value) {
  weir_proto_put_fixed(out, value, 8);
}

static void put_text(weir_strbuf *out, const char *text) {
  size_t size = strlen(text);
  weir_proto_put_fixed(out, size, 2);
  weir_strbuf_append(out, text, size);
}

void weir_kv_encode(const weir_kv_message *m, weir_strbuf *out) {
  put(out, (uint64_t)m->kind);
  const uint64_t numbers[] = {m->incarnation,
                              m->life,
                              m->seq,
                              m->request,
                              m->ticket,
                              m->version,
                              m->mask,
                              m->newer,
                              m->by_row,
                              (uint64_t)m->dtype,
                              (uint64_t)m->rank,
                              (uint64_t)m->first,
                              (uint64_t)m->rows,
                              m->count,
                              m->value_bytes,
                              (uint64_t)m->status};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    put(out, numbers[i]);
  for (int32_t i = 0; i < m->rank; i++) put(out, (uint64_t)m->dims[i]);
  for (int i = 0; m->kind == WEIR_KV_ENTER && i < WEIR_KV_SET_WORDS; i++)
    put(out, m->set.bits[i]);
  put_text(out, m->id);
  put_text(out, m->name);
  put_text(out, m->text);
}

/* ---- In */

static uint64_t get(weir_reader *r) {
  return weir_reader_u64le(r);
}

/* A text without NUL of fewer than |size| bytes. */
static void get_text(weir_reader *r, char *text, size_t size) {
  size_t n = weir_reader_u16le(r);
  const uint8_t *p = weir_reader_bytes(r, n);
  if (p == NULL || n >= size) {
    r->failed = true;
    return;
  }
  memcpy(text, p, n);
  text[n] = '\0';
  for (size_t i = 0; i < n; i++)
    if (text[i] == '\0') r->failed = true;
}

/* What other numbers of the message depend on. */
static bool is_sound(const weir_kv_message *m) {
  uint64_t ids;
  if (m->kind >= WEIR_KV_KIND_COUNT || (unsigned)m->status > 16) return false;
  if (m->rank < 0 || m->rank > WEIR_KV_RANK) return false;
  if (m->count > WEIR_KV_MESSAGE_BYTES / 8) return false;
  if (m->value_bytes > WEIR_KV_MESSAGE_BYTES) return false;
  ids = weir_kv_id_bytes(m);
  return ids + m->value_bytes <= WEIR_KV_MESSAGE_BYTES;
}

static void get_numbers(weir_reader *r, weir_kv_message *m) {
  m->kind = (weir_kv_kind)get(r);
  m->incarnation = get(r);
  m->life = get(r);
  m->seq = get(r);
  m->request = get(r);
  m->ticket = get(r);
  m->version = get(r);
  m->mask = get(r);
  m->newer = get(r) != 0;
  m->by_row = get(r) != 0;
  uint64_t dtype = get(r), rank = get(r);
  m->dtype = dtype < 64 ? (weir_dtype)dtype : WEIR_DTYPE_NONE;
  m->rank = rank <= WEIR_KV_RANK ? (int32_t)rank : -1;
  m->first = (int64_t)get(r);
  m->rows = (int64_t)get(r);
  m->count = get(r);
  m->value_bytes = get(r);
  uint64_t status = get(r);
  m->status = status <= 16 ? (weir_status)status : WEIR_UNKNOWN;
}

weir_status weir_kv_decode(weir_sv note, const char *who, weir_kv_message *m,
                           weir_error *err) {
  weir_reader r = weir_reader_of(note.data, note.size);
  *m = (weir_kv_message){.kind = WEIR_KV_KIND_COUNT};
  get_numbers(&r, m);
  if (!r.failed && !is_sound(m)) r.failed = true;
  for (int32_t i = 0; !r.failed && i < m->rank; i++)
    m->dims[i] = (int64_t)get(&r);
  for (int i = 0; m->kind == WEIR_KV_ENTER && i < WEIR_KV_SET_WORDS; i++)
    m->set.bits[i] = get(&r);
  get_text(&r, m->id, sizeof m->id);
  get_text(&r, m->name, sizeof m->name);
  get_text(&r, m->text, sizeof m->text);
  if (!r.failed && r.at == r.size) return WEIR_OK;
  return weir_fail(err, WEIR_W7011, NULL,
                   "%s sends a message of the key-value interface that is no "
                   "such message, of %zu bytes",
                   who, note.size);
}
