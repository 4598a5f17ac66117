/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_KV_STORE_H_
#define WEIR_TRAIN_KV_STORE_H_

#include "runtime/train/kv/block.h"
#include "runtime/train/kv/rule.h"

/* The keys of a server: values, slots, versions. One thread.
 *
 * A key is a run of rows, along the first axis, of a tensor that several
 * servers may share; a scalar has one row. Its version is the number of pushes
 * that were applied, those without a row for this server too, so all parts of a
 * key count alike. */

typedef struct weir_kv_store weir_kv_store;

/* |pool| is lent. Errors: W6001. */
weir_status weir_kv_store_create(const weir_env *env, weir_pool *pool,
                                 weir_kv_store **out_store, weir_error *err);
void weir_kv_store_release(weir_kv_store *s); /* NULL-safe */

/* Does DECLARE, PUSH, PUSH_PULL or PULL, whose data is a weir_kv_block or NULL,
 * and fills |reply|: version, newer, value_bytes, data, or an error: then
 * nothing was changed. The block's values are used up. */
void weir_kv_store_do(weir_kv_store *s, const weir_kv_message *m,
                      weir_kv_message *reply);

#endif
