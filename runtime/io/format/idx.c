/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/idx.h"

#include "runtime/io/format/format.h"

/* The content of gzip is taken for IDX until it is unpacked. */
static bool sniff(weir_bytes start) {
  return weir_idx_is(start) || weir_gzip_is(start);
}

static weir_status read(const weir_format_input *in, weir_tensor **out_tensor,
                        weir_error *err) {
  return weir_idx_read(in->alloc, in->bytes, in->name, out_tensor, err);
}

static weir_status head(weir_bytes start, const char *file,
                        weir_format_head *out, weir_error *err) {
  bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  weir_idx_head h;
  WEIR_TRY(weir_idx_head_read(start, file, &h, err));
  *out = (weir_format_head){
      .dtype = h.dtype,
      .shape = h.shape,
      .elem_bytes = h.elem_bytes,
      .data_at = h.data_at,
      .swap = little && h.elem_bytes == weir_dtype_size(h.dtype),
      .bad = WEIR_W4006};
  return WEIR_OK;
}

const weir_format weir_format_idx = {
    .name = "idx",
    .summary = "the files of MNIST, plain or in gzip; read only",
    .endings = {"ubyte", ".gz"},
    .sniff = sniff,
    .read = read,
    .head = head,
};
