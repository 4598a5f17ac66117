/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/npy.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/bytes/reader.h"
#include "runtime/base/size.h"
#include "runtime/io/array/npy_header.h"
#include "runtime/io/checkpoint/convert.h"

enum { kMagicBytes = 6, kHeadBytes = 10, kDataAlign = 64, kTextBytes = 512 };

static const uint8_t kMagic[kMagicBytes] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

bool weir_npy_is(weir_bytes bytes) {
  return bytes.size >= kMagicBytes &&
         memcmp(bytes.data, kMagic, kMagicBytes) == 0;
}

static bool machine_is_big_endian(void) {
  return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
}

/* Reads magic, version and header; |r| then stands at the elements. */
static weir_status read_head(weir_reader *r, const char *file,
                             weir_npy_header *out_header, weir_error *err) {
  weir_mark at = {.file = file};
  const uint8_t *magic = weir_reader_bytes(r, kMagicBytes);
  if (magic == NULL || memcmp(magic, kMagic, kMagicBytes) != 0)
    return weir_fail(err, WEIR_W4003, &at,
                     "the file does not start with \"\\x93NUMPY\"");
  unsigned major = weir_reader_u8(r), minor = weir_reader_u8(r);
  if (r->failed || major < 1 || major > 3 || minor != 0)
    return weir_fail(err, WEIR_W4003, &at,
                     "version %u.%u of the format; 1.0, 2.0 and 3.0 are read",
                     major, minor);
  uint32_t length = major == 1 ? weir_reader_u16le(r) : weir_reader_u32le(r);
  if (r->failed || length > weir_reader_left(r))
    return weir_fail(err, WEIR_W4003, &at,
                     "the header has %" PRIu32 " bytes, the file ends before",
                     length);
  if (length > WEIR_NPY_HEADER_BYTES)
    return weir_fail(err, WEIR_W4003, &at,
                     "the header has %" PRIu32 " bytes, at most %d are read",
                     length, WEIR_NPY_HEADER_BYTES);
  size_t offset = r->at;
  weir_sv text = {(const char *)weir_reader_bytes(r, length), length};
  return weir_npy_header_parse(text, offset, file, out_header, err);
}

weir_status weir_npy_head_read(weir_bytes start, const char *file,
                               weir_npy_header *out_header, size_t *out_data_at,
                               weir_error *err) {
  weir_reader r = weir_reader_of(start.data, start.size);
  weir_status s = read_head(&r, file, out_header, err);
  *out_data_at = r.at;
  return s;
}

static void fill(weir_tensor *tensor, const weir_npy_header *header,
                 const uint8_t *src) {
  size_t size = weir_dtype_size(tensor->dtype);
  size_t count = (size_t)weir_shape_elements(&tensor->shape);
  if (header->fortran_order)
    weir_io_copy_fortran(tensor, src);
  else if (tensor->bytes > 0)
    memcpy(tensor->data, src, tensor->bytes);
  if (header->big_endian != machine_is_big_endian())
    weir_io_swap(tensor->data, count, size);
  if (tensor->dtype == WEIR_BOOL) weir_io_normalise_bool(tensor->data, count);
}

weir_status weir_npy_read(const weir_allocator *alloc, weir_bytes bytes,
                          const char *file, weir_tensor **out_tensor,
                          weir_error *err) {
  weir_reader r = weir_reader_of(bytes.data, bytes.size);
  weir_npy_header header;
  weir_mark at = {.file = file};
  char shape[128];
  *out_tensor = NULL;
  WEIR_TRY(read_head(&r, file, &header, err));
  size_t want = weir_shape_bytes(&header.shape, header.dtype);
  if (weir_reader_left(&r) != want)
    return weir_fail(
        err, WEIR_W4003, &at, "%s%s needs %zu bytes of data, the file has %zu",
        weir_dtype_name(header.dtype),
        weir_shape_print(&header.shape, NULL, NULL, shape, sizeof shape), want,
        weir_reader_left(&r));
  WEIR_TRY(weir_tensor_create_shaped(alloc, header.dtype, &header.shape,
                                     out_tensor, err));
  fill(*out_tensor, &header, weir_reader_bytes(&r, want));
  return WEIR_OK;
}

/* NumPy's name of |dtype| in this machine's byte order. */
static const char *descr_of(weir_dtype dtype) {
  static const struct {
    weir_dtype dtype;
    const char *little, *big;
  } kNames[] = {{WEIR_F32, "<f4", ">f4"}, {WEIR_F64, "<f8", ">f8"},
                {WEIR_I32, "<i4", ">i4"}, {WEIR_I64, "<i8", ">i8"},
                {WEIR_U8, "|u1", "|u1"},  {WEIR_BOOL, "|b1", "|b1"}};
  for (size_t i = 0; i < sizeof kNames / sizeof kNames[0]; i++)
    if (kNames[i].dtype == dtype)
      return machine_is_big_endian() ? kNames[i].big : kNames[i].little;
  return "?";
}

/* The dict as NumPy prints it, without padding; at most 8 dims of 20 digits. */
static size_t print_dict(const weir_tensor *tensor, char text[kTextBytes]) {
  int n = snprintf(text, kTextBytes,
                   "{'descr': '%s', 'fortran_order': False, 'shape': (",
                   descr_of(tensor->dtype));
  for (int d = 0; d < tensor->shape.rank; d++)
    n += snprintf(text + n, kTextBytes - (size_t)n, "%s%" PRId64,
                  d > 0 ? ", " : "", tensor->shape.dims[d].value);
  n += snprintf(text + n, kTextBytes - (size_t)n, "%s), }",
                tensor->shape.rank == 1 ? "," : "");
  assert(n > 0 && n < kTextBytes);
  return (size_t)n;
}

weir_status weir_npy_write(const weir_tensor *tensor, weir_strbuf *out,
                           weir_error *err) {
  char dict[kTextBytes];
  size_t n = print_dict(tensor, dict);
  size_t pad = (kDataAlign - (kHeadBytes + n + 1) % kDataAlign) % kDataAlign;
  size_t length = n + pad + 1;
  uint8_t head[kHeadBytes] = {
      [6] = 1, [8] = (uint8_t)length, [9] = (uint8_t)(length >> 8)};
  memcpy(head, kMagic, kMagicBytes);
  weir_strbuf_append(out, (const char *)head, sizeof head);
  weir_strbuf_append(out, dict, n);
  weir_strbuf_repeat(out, ' ', pad);
  weir_strbuf_append(out, "\n", 1);
  weir_strbuf_append(out, tensor->data, tensor->bytes);
  return weir_strbuf_status(out, err);
}
