/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_KV_KEY_H_
#define WEIR_TRAIN_KV_KEY_H_

#include "runtime/train/kv/block.h"
#include "runtime/train/kv/rule.h"

/* A key of a store: its memory, and what pushes and pulls do to it. */

typedef struct weir_kv_key {
  const weir_allocator *alloc;
  char name[WEIR_KV_NAME_BYTES];
  weir_dtype dtype;
  int32_t rank;
  int64_t dims[WEIR_KV_RANK];
  int64_t first, rows;            /* that it holds */
  size_t row_elements, row_bytes; /* of a row */
  size_t bytes;
  weir_kv_rule *rule; /* the store's */
  void *values, *slots[WEIR_SLOTS];
  uint64_t version;
  weir_error broken; /* id "": it is sound */
} weir_kv_key;

/* As |m| declares, with the values of its block, or zeros. Errors: W7113,
 * W6001. */
weir_status weir_kv_key_create(const weir_allocator *alloc,
                               const weir_kv_message *m, weir_kv_rule *rule,
                               weir_kv_key **out_key, weir_error *err);
void weir_kv_key_release(weir_kv_key *key); /* NULL-safe */
/* Whether |m| declares the same. Errors: W7112. */
weir_status weir_kv_key_same(const weir_kv_key *key, const weir_kv_message *m,
                             weir_error *err);
/* Whether ids and values of |m| fit. Errors: W7113. */
weir_status weir_kv_key_check(const weir_kv_key *key, const weir_kv_message *m,
                              bool push, weir_error *err);
/* One push, checked. Rows that come twice are summed first, in their order; of
 * `assign` the last counts. Errors: W6001, then nothing was changed. */
weir_status weir_kv_key_push(weir_kv_key *key, const weir_kv_message *m,
                             weir_error *err);
/* The values that |m| asks for, to |dst|. */
void weir_kv_key_read(const weir_kv_key *key, const weir_kv_message *m,
                      void *dst);
/* Bytes of them. */
uint64_t weir_kv_key_read_bytes(const weir_kv_key *key,
                                const weir_kv_message *m);

#endif
