/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_KV_BLOCK_H_
#define WEIR_TRAIN_KV_BLOCK_H_

#include "runtime/dist/kv/kv.h"
#include "runtime/dist/psnet/psnet.h"

/* Memory for what travels beside a message: ids, then values. */

typedef struct weir_kv_block {
  const weir_allocator *alloc;
  int64_t *ids; /* NULL: none */
  void *values; /* NULL: none */
  weir_ps_piece pieces[2];
  uint32_t count;
  weir_ps_values out; /* while it is sent */
} weir_kv_block;

/* Of the sizes that |m| says, with ids if |with_ids|; not cleared. NULL for
 * |*out_block|: nothing travels. Errors: W6001. */
weir_status weir_kv_block_create(const weir_allocator *alloc,
                                 const weir_kv_message *m, bool with_ids,
                                 weir_kv_block **out_block, weir_error *err);
void weir_kv_block_release(weir_kv_block *block); /* NULL-safe */
/* |block| as values on their way out; it is released when they are sent. */
weir_ps_values *weir_kv_block_send(weir_kv_block *block);

/* Sends |m| over |net|, with |values| (NULL: none). Control thread. Without
 * memory for it the link ends. */
void weir_kv_net_send(const weir_allocator *alloc, weir_ps_net *net,
                      weir_ps_task to, const weir_kv_message *m,
                      weir_ps_values *values);

#endif
