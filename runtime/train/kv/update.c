/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/kv/update.h"

#include <stdlib.h>

#include "runtime/base/size.h"

/* Rules on rows.
 *
 * The elements of a push are numbered through, row after row, and taken in
 * chunks of a fixed size, whatever the rows' length: a chunk may begin and end
 * within a row. All rules go by element, so the bits do not depend on where the
 * chunks are cut. */

static int by_id(const void *a, const void *b) {
  const weir_kv_row *x = a, *y = b;
  if (x->id != y->id) return x->id < y->id ? -1 : 1;
  return x->place < y->place ? -1 : x->place > y->place;
}

weir_status weir_kv_rows_create(const weir_kv_key *key,
                                const weir_kv_message *m, weir_kv_rows *out,
                                weir_error *err) {
  const weir_kv_block *block = m->data;
  size_t n = m->by_row ? (size_t)m->count : 0;
  *out = (weir_kv_rows){.count = (size_t)key->rows};
  if (!m->by_row) return WEIR_OK;
  out->items = weir_alloc_array(key->alloc, n + 1, sizeof *out->items);
  out->count = n;
  if (out->items == NULL) return weir_fail_memory(err, n * sizeof *out->items);
  for (size_t i = 0; i < n; i++)
    out->items[i] = (weir_kv_row){block->ids[i], i};
  return WEIR_OK;
}

void weir_kv_rows_release(const weir_kv_key *key, weir_kv_rows *rows) {
  weir_free(key->alloc, rows->items);
}

/* ---- Adding */

#define ADD(type, sum)                                         \
  do {                                                         \
    type *x = dst;                                             \
    const type *y = src;                                       \
    for (size_t i = 0; i < n; i++) x[i] = (type)(x[i] + y[i]); \
  } while (0)

/* dst += src, |n| elements; integers wrap around. */
static void add(weir_dtype dtype, void *dst, const void *src, size_t n) {
  switch (dtype) {
    case WEIR_F32:
      ADD(float, float);
      break;
    case WEIR_F64:
      ADD(double, double);
      break;
    case WEIR_I32:
      ADD(uint32_t, uint32_t);
      break;
    case WEIR_I64:
      ADD(uint64_t, uint64_t);
      break;
    default:
      ADD(uint8_t, uint8_t);
  }
}

static uint8_t *row_at(const weir_kv_key *key, void *values, uint64_t place) {
  return (uint8_t *)values + (size_t)place * key->row_bytes;
}

void weir_kv_rows_merge(const weir_kv_key *key, weir_kv_rows *rows,
                        void *values) {
  size_t kept = 0;
  if (rows->items == NULL) return;
  qsort(rows->items, rows->count, sizeof *rows->items, by_id);
  for (size_t i = 0; i < rows->count; i++) {
    const weir_kv_row *row = &rows->items[i];
    if (kept == 0 || rows->items[kept - 1].id != row->id)
      rows->items[kept++] = *row;
    else if (key->rule->kind == WEIR_KV_ASSIGN)
      rows->items[kept - 1].place = row->place;
    else
      add(key->dtype, row_at(key, values, rows->items[kept - 1].place),
          row_at(key, values, row->place), key->row_elements);
  }
  rows->count = kept;
}

/* ---- Chunks */

/* Copies elements [at, at + n) of the push's rows between |chunk| and |all|,
 * the key's memory, or from |values| of the push. */
typedef enum way { FROM_KEY, TO_KEY, FROM_PUSH } way;

static void copy(const weir_kv_key *key, const weir_kv_rows *rows, way how,
                 void *all, void *chunk, size_t at, size_t n) {
  size_t size = weir_dtype_size(key->dtype), done = 0;
  while (done < n) {
    size_t row = (at + done) / key->row_elements;
    size_t from = (at + done) % key->row_elements;
    size_t part = key->row_elements - from;
    size_t place = row;
    if (part > n - done) part = n - done;
    if (rows->items != NULL)
      place = how == FROM_PUSH ? (size_t)rows->items[row].place
                               : (size_t)(rows->items[row].id - key->first);
    uint8_t *there = (uint8_t *)all + place * key->row_bytes + from * size;
    uint8_t *here = (uint8_t *)chunk + done * size;
    if (how == TO_KEY)
      memcpy(there, here, part * size);
    else
      memcpy(here, there, part * size);
    done += part;
  }
}

static weir_status apply_chunk(weir_kv_key *key, const weir_kv_rows *rows,
                               void *values, size_t at, size_t n,
                               weir_error *err) {
  weir_kv_rule *rule = key->rule;
  copy(key, rows, FROM_KEY, key->values, rule->in[0]->data, at, n);
  for (uint32_t i = 0; i < rule->slots; i++)
    copy(key, rows, FROM_KEY, key->slots[i], rule->in[i + 1]->data, at, n);
  copy(key, rows, FROM_PUSH, values, rule->grad->data, at, n);
  WEIR_TRY(weir_binding_run(rule->binding, NULL, err));
  copy(key, rows, TO_KEY, key->values, rule->out[0]->data, at, n);
  for (uint32_t i = 0; i < rule->slots; i++)
    copy(key, rows, TO_KEY, key->slots[i], rule->out[i + 1]->data, at, n);
  return WEIR_OK;
}

static void apply(weir_kv_key *key, const weir_kv_rows *rows, void *values) {
  size_t all = rows->count * key->row_elements;
  weir_kv_rule *rule = key->rule;
  if (rule->step != NULL)
    weir_tensor_set_i64(rule->step, 0, (int64_t)key->version + 1);
  for (size_t at = 0; at < all && key->broken.id[0] == '\0';
       at += WEIR_KV_CHUNK) {
    size_t n = all - at < WEIR_KV_CHUNK ? all - at : WEIR_KV_CHUNK;
    (void)apply_chunk(key, rows, values, at, n, &key->broken);
  }
}

void weir_kv_update(weir_kv_key *key, const weir_kv_rows *rows,
                    const void *values) {
  void *push = (void *)(uintptr_t)values;
  if (key->rule->kind == WEIR_KV_APPLY) {
    apply(key, rows, push);
    return;
  }
  for (size_t i = 0; i < rows->count; i++) {
    bool listed = rows->items != NULL;
    size_t row = listed ? (size_t)(rows->items[i].id - key->first) : i;
    uint8_t *dst = (uint8_t *)key->values + row * key->row_bytes;
    const uint8_t *src = row_at(key, push, listed ? rows->items[i].place : i);
    if (key->rule->kind == WEIR_KV_ADD)
      add(key->dtype, dst, src, key->row_elements);
    else
      memcpy(dst, src, key->row_bytes);
  }
}
