/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/kv/block.h"

#include "runtime/base/size.h"

enum { ALIGN = 64 };

static void add_piece(weir_kv_block *b, void *data, size_t bytes) {
  if (bytes > 0) b->pieces[b->count++] = (weir_ps_piece){data, bytes};
}

weir_status weir_kv_block_create(const weir_allocator *alloc,
                                 const weir_kv_message *m, bool with_ids,
                                 weir_kv_block **out_block, weir_error *err) {
  size_t ids = with_ids ? (size_t)weir_kv_id_bytes(m) : 0;
  size_t values = (size_t)m->value_bytes;
  size_t head = (sizeof(weir_kv_block) + ALIGN - 1) / ALIGN * ALIGN;
  size_t room = (ids + ALIGN - 1) / ALIGN * ALIGN, bytes;
  *out_block = NULL;
  if (ids + values == 0) return WEIR_OK;
  if (!weir_size_add(head + room, values, &bytes))
    return weir_fail_memory(err, SIZE_MAX);
  uint8_t *at = weir_alloc_aligned(alloc, bytes, ALIGN);
  if (at == NULL) return weir_fail_memory(err, bytes);
  weir_kv_block *b = (weir_kv_block *)(void *)at;
  *b = (weir_kv_block){.alloc = alloc};
  b->ids = ids > 0 ? (int64_t *)(void *)(at + head) : NULL;
  b->values = values > 0 ? at + head + room : NULL;
  add_piece(b, b->ids, ids);
  add_piece(b, b->values, values);
  *out_block = b;
  return WEIR_OK;
}

void weir_kv_block_release(weir_kv_block *block) {
  if (block != NULL) weir_free(block->alloc, block);
}

static void sent(weir_ps_values *values) {
  weir_kv_block_release(values->owner);
}

weir_ps_values *weir_kv_block_send(weir_kv_block *block) {
  if (block == NULL) return NULL;
  block->out = (weir_ps_values){.pieces = block->pieces,
                                .count = block->count,
                                .sent = sent,
                                .owner = block};
  return &block->out;
}

void weir_kv_net_send(const weir_allocator *alloc, weir_ps_net *net,
                      weir_ps_task to, const weir_kv_message *m,
                      weir_ps_values *values) {
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf note;
  weir_strbuf_init(&note, alloc);
  weir_kv_encode(m, &note);
  weir_ps_message frame = {.kind = WEIR_PS_KV, .note = weir_strbuf_view(&note)};
  if (weir_strbuf_status(&note, &err) != WEIR_OK) {
    weir_ps_net_give_up(net, to, &err);
    if (values != NULL) values->sent(values);
  } else {
    weir_ps_net_send(net, to, &frame, values);
  }
  weir_strbuf_release(&note);
}
