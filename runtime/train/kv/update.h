/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_KV_UPDATE_H_
#define WEIR_TRAIN_KV_UPDATE_H_

#include "runtime/train/kv/key.h"

/* What a push does to values and slots. */

/* A row of a push: |place| among its rows. */
typedef struct weir_kv_row {
  int64_t id;
  uint64_t place;
} weir_kv_row;

/* The rows of a push; |items| NULL: all of the key, in their order. */
typedef struct weir_kv_rows {
  weir_kv_row *items;
  size_t count;
} weir_kv_rows;

/* Errors: W6001. */
weir_status weir_kv_rows_create(const weir_kv_key *key,
                                const weir_kv_message *m, weir_kv_rows *out,
                                weir_error *err);
void weir_kv_rows_release(const weir_kv_key *key, weir_kv_rows *rows);
/* Each row once: those that come again are added to the first, in place, or
 * take its place (`assign`). */
void weir_kv_rows_merge(const weir_kv_key *key, weir_kv_rows *rows,
                        void *values);
/* Applies the key's rule to these rows. |values| are of the push. A run that
 * fails leaves the key broken: its next use says so. */
void weir_kv_update(weir_kv_key *key, const weir_kv_rows *rows,
                    const void *values);

#endif
