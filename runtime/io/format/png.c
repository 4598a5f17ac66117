/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/png.h"

#include "runtime/io/format/format.h"

static weir_status read(const weir_format_input *in, weir_tensor **out_tensor,
                        weir_error *err) {
  return weir_png_read(in->alloc, in->bytes, in->name, out_tensor, err);
}

const weir_format weir_format_png = {
    .name = "png",
    .summary = "a picture, as u8[height, width, channels]; read only",
    .endings = {".png"},
    .sniff = weir_png_is,
    .read = read,
};
