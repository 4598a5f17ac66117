/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/kv/key.h"

#include <inttypes.h>

#include "runtime/base/size.h"
#include "runtime/train/kv/update.h"

/* ---- Life */

static weir_status unfit(const weir_kv_message *m, weir_error *err,
                         const char *why) {
  return weir_fail(err, WEIR_W7113, NULL, "%s of key `%.64s`: %s",
                   weir_kv_kind_name(m->kind), m->name, why);
}

/* Sizes that follow from what |m| declares. */
static weir_status measure(weir_kv_key *key, const weir_kv_message *m,
                           weir_error *err) {
  int64_t all = m->rank > 0 ? m->dims[0] : 1;
  size_t size = weir_dtype_size(m->dtype);
  bool fits = size > 0 && m->name[0] != '\0' && m->first >= 0 && m->rows > 0 &&
              m->first <= all && m->rows <= all - m->first;
  key->row_elements = 1;
  for (int32_t i = 1; fits && i < m->rank; i++)
    fits =
        m->dims[i] > 0 && weir_size_mul(key->row_elements, (size_t)m->dims[i],
                                        &key->row_elements);
  fits = fits && weir_size_mul(key->row_elements, size, &key->row_bytes) &&
         weir_size_mul(key->row_bytes, (size_t)m->rows, &key->bytes) &&
         key->bytes <= PTRDIFF_MAX;
  if (!fits) return unfit(m, err, "its type or shape is no tensor's");
  if (m->data != NULL && (m->by_row || m->value_bytes != key->bytes))
    return unfit(m, err, "its first values have another size");
  return WEIR_OK;
}

static void fill(const weir_kv_key *key, void *data, double value) {
  size_t n = key->row_elements * (size_t)key->rows;
  for (size_t i = 0; i < n; i++)
    if (key->dtype == WEIR_F64)
      ((double *)data)[i] = value;
    else
      ((float *)data)[i] = (float)value;
}

static weir_status make_memory(weir_kv_key *key, const weir_kv_message *m,
                               weir_error *err) {
  const weir_kv_block *block = m->data;
  key->values = weir_alloc_aligned(key->alloc, key->bytes, 64);
  if (key->values == NULL) return weir_fail_memory(err, key->bytes);
  if (block != NULL)
    memcpy(key->values, block->values, key->bytes);
  else
    memset(key->values, 0, key->bytes);
  for (uint32_t i = 0; i < key->rule->slots; i++) {
    key->slots[i] = weir_alloc_aligned(key->alloc, key->bytes, 64);
    if (key->slots[i] == NULL) return weir_fail_memory(err, key->bytes);
    fill(key, key->slots[i], key->rule->initial[i]);
  }
  return WEIR_OK;
}

weir_status weir_kv_key_create(const weir_allocator *alloc,
                               const weir_kv_message *m, weir_kv_rule *rule,
                               weir_kv_key **out_key, weir_error *err) {
  *out_key = NULL;
  weir_kv_key *key = weir_alloc_array(alloc, 1, sizeof *key);
  if (key == NULL) return weir_fail_memory(err, sizeof *key);
  key->alloc = alloc;
  memcpy(key->name, m->name, sizeof key->name);
  memcpy(key->dims, m->dims, sizeof key->dims);
  key->dtype = m->dtype;
  key->rank = m->rank;
  key->first = m->first;
  key->rows = m->rows;
  key->rule = rule;
  key->broken = (weir_error)WEIR_ERROR_INIT;
  weir_status s = measure(key, m, err);
  if (s == WEIR_OK) s = make_memory(key, m, err);
  if (s == WEIR_OK)
    *out_key = key;
  else
    weir_kv_key_release(key);
  return s;
}

void weir_kv_key_release(weir_kv_key *key) {
  if (key == NULL) return;
  weir_free(key->alloc, key->values);
  for (int i = 0; i < WEIR_SLOTS; i++) weir_free(key->alloc, key->slots[i]);
  weir_free(key->alloc, key);
}

/* ---- Checks */

weir_status weir_kv_key_same(const weir_kv_key *key, const weir_kv_message *m,
                             weir_error *err) {
  const char *what = NULL;
  if (key->dtype != m->dtype)
    what = "type";
  else if (key->rank != m->rank ||
           memcmp(key->dims, m->dims, sizeof key->dims) != 0)
    what = "shape";
  else if (strcmp(key->rule->text, m->text) != 0)
    what = "rule";
  else if (key->first != m->first || key->rows != m->rows)
    what = "split over the servers";
  if (what == NULL) return WEIR_OK;
  return weir_fail(err, WEIR_W7112, NULL,
                   "key `%.64s` was declared with another %s (it is %s, rule "
                   "`%.64s`)",
                   m->name, what, weir_dtype_name(key->dtype), key->rule->text);
}

weir_status weir_kv_key_check(const weir_kv_key *key, const weir_kv_message *m,
                              bool push, weir_error *err) {
  const weir_kv_block *block = m->data;
  uint64_t want = weir_kv_key_read_bytes(key, m);
  if (push && m->value_bytes != want)
    return weir_fail(err, WEIR_W7113, NULL,
                     "%s of key `%.64s` has %" PRIu64
                     " bytes of values, %" PRIu64 " are expected",
                     weir_kv_kind_name(m->kind), m->name, m->value_bytes, want);
  for (uint64_t i = 0; m->by_row && i < m->count; i++) {
    int64_t id = block->ids[i];
    if (id < key->first || id - key->first >= key->rows)
      return weir_fail(err, WEIR_W7113, NULL,
                       "%s of key `%.64s` names row %" PRId64 ", rows %" PRId64
                       " to %" PRId64 " are here",
                       weir_kv_kind_name(m->kind), m->name, id, key->first,
                       key->first + key->rows - 1);
  }
  return WEIR_OK;
}

/* ---- Reading */

uint64_t weir_kv_key_read_bytes(const weir_kv_key *key,
                                const weir_kv_message *m) {
  if (!m->by_row) return key->bytes;
  return m->count <= UINT64_MAX / key->row_bytes ? m->count * key->row_bytes
                                                 : UINT64_MAX;
}

void weir_kv_key_read(const weir_kv_key *key, const weir_kv_message *m,
                      void *dst) {
  const weir_kv_block *block = m->data;
  const uint8_t *src = key->values;
  uint8_t *to = dst;
  if (!m->by_row) memcpy(dst, src, key->bytes);
  for (uint64_t i = 0; m->by_row && i < m->count; i++)
    memcpy(to + i * key->row_bytes,
           src + (size_t)(block->ids[i] - key->first) * key->row_bytes,
           key->row_bytes);
}

weir_status weir_kv_key_push(weir_kv_key *key, const weir_kv_message *m,
                             weir_error *err) {
  const weir_kv_block *block = m->data;
  weir_kv_rows rows = {0};
  WEIR_TRY(weir_kv_rows_create(key, m, &rows, err));
  if (m->by_row ? m->count > 0 : true) {
    uint8_t *values = block->values;
    weir_kv_rows_merge(key, &rows, values);
    weir_kv_update(key, &rows, values);
  }
  weir_kv_rows_release(key, &rows);
  key->version++;
  return WEIR_OK;
}
