/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/npy.h"

#include "runtime/io/format/format.h"

static weir_status read(const weir_format_input *in, weir_tensor **out_tensor,
                        weir_error *err) {
  return weir_npy_read(in->alloc, in->bytes, in->name, out_tensor, err);
}

static weir_status head(weir_bytes start, const char *file,
                        weir_format_head *out, weir_error *err) {
  bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  weir_npy_header h;
  size_t data_at = 0;
  WEIR_TRY(weir_npy_head_read(start, file, &h, &data_at, err));
  *out = (weir_format_head){.dtype = h.dtype,
                            .shape = h.shape,
                            .elem_bytes = weir_dtype_size(h.dtype),
                            .data_at = data_at,
                            .swap = h.big_endian == little,
                            .is_bool = h.dtype == WEIR_BOOL,
                            .fortran = h.fortran_order && h.shape.rank > 1,
                            .bad = WEIR_W4003};
  return WEIR_OK;
}

static weir_status write(const weir_sv *names, weir_tensor *const *tensors,
                         size_t count, weir_strbuf *out, weir_error *err) {
  (void)names;
  (void)count;
  return weir_npy_write(tensors[0], out, err);
}

const weir_format weir_format_npy = {
    .name = "npy",
    .summary = "NumPy's file of one array",
    .endings = {".npy"},
    .number = 1,
    .sniff = weir_npy_is,
    .read = read,
    .head = head,
    .write = write,
};
