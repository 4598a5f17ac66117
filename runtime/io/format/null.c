/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/io/format/format.h"

/* A format to copy: "NULL" and the bytes of one f32 on this machine. The
 * library does not hold it; a test keeps it built. To make a format of a copy,
 * name it in the list of runtime/io/meson.build. */

enum { kMagicBytes = 4 };

static bool sniff(weir_bytes start) {
  return start.size >= kMagicBytes &&
         memcmp(start.data, "NULL", kMagicBytes) == 0;
}

static weir_status read(const weir_format_input *in, weir_tensor **out_tensor,
                        weir_error *err) {
  weir_mark at = {.file = in->name};
  weir_shape scalar = weir_shape_of(0, NULL);
  *out_tensor = NULL;
  if (in->bytes.size != kMagicBytes + sizeof(float))
    return weir_fail(err, WEIR_W4003, &at, "the file must have 8 bytes");
  WEIR_TRY(
      weir_tensor_create_shaped(in->alloc, WEIR_F32, &scalar, out_tensor, err));
  memcpy((*out_tensor)->data, in->bytes.data + kMagicBytes, sizeof(float));
  return WEIR_OK;
}

static weir_status write(const weir_sv *names, weir_tensor *const *tensors,
                         size_t count, weir_strbuf *out, weir_error *err) {
  (void)names;
  (void)count;
  if (tensors[0]->dtype != WEIR_F32 || tensors[0]->bytes != sizeof(float))
    return weir_fail(err, WEIR_W5009, NULL, "the tensor must be one f32");
  weir_strbuf_append(out, "NULL", kMagicBytes);
  weir_strbuf_append(out, tensors[0]->data, sizeof(float));
  return weir_strbuf_status(out, err);
}

const weir_format weir_format_null = {
    .name = "null",
    .summary = "one number, to copy",
    .endings = {".null"},
    .number = 1000, /* yours: one more than the largest of the list */
    .sniff = sniff,
    .read = read,
    .write = write,
};
