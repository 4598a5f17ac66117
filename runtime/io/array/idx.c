/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/idx.h"

#include <string.h>

#include "runtime/base/bytes/reader.h"
#include "runtime/base/size.h"
#include "runtime/io/checkpoint/convert.h"
#include "runtime/io/inflate.h"

enum { kMagicBytes = 4, kDimBytes = 4 };

typedef struct type_row {
  uint8_t code, bytes; /* of one element in the file */
  weir_dtype dtype;
} type_row;

static const type_row kTypes[] = {{0x08, 1, WEIR_U8},  {0x09, 1, WEIR_I32},
                                  {0x0b, 2, WEIR_I32}, {0x0c, 4, WEIR_I32},
                                  {0x0d, 4, WEIR_F32}, {0x0e, 8, WEIR_F64}};

static const type_row *find_type(uint8_t code) {
  for (size_t i = 0; i < sizeof kTypes / sizeof kTypes[0]; i++)
    if (kTypes[i].code == code) return &kTypes[i];
  return NULL;
}

bool weir_idx_is(weir_bytes b) {
  return b.size >= kMagicBytes && b.data[0] == 0 && b.data[1] == 0 &&
         find_type(b.data[2]) != NULL && b.data[3] >= 1;
}

bool weir_gzip_is(weir_bytes b) {
  return b.size >= 2 && b.data[0] == 0x1f && b.data[1] == 0x8b;
}

/* Plain bytes, or bytes that gzip unpacks. */
typedef struct source {
  weir_bytes bytes; /* of the file */
  weir_reader plain;
  weir_inflate *gzip; /* NULL: plain */
  const char *file;
} source;

static weir_status fail(const source *src, const char *what, weir_error *err) {
  weir_mark at = {.file = src->file};
  return weir_fail(err, WEIR_W4006, &at, "%s", what);
}

static weir_status take(source *src, void *dst, size_t bytes, weir_error *err) {
  if (src->gzip != NULL) return weir_inflate_read(src->gzip, dst, bytes, err);
  const uint8_t *p = weir_reader_bytes(&src->plain, bytes);
  if (p == NULL) return fail(src, "the file ends early", err);
  if (bytes > 0) memcpy(dst, p, bytes);
  return WEIR_OK;
}

static weir_status read_head(source *src, const type_row **out_type,
                             weir_shape *out_shape, weir_error *err) {
  uint8_t magic[kMagicBytes], raw[WEIR_MAX_RANK * kDimBytes];
  int64_t dims[WEIR_MAX_RANK];
  weir_mark at = {.file = src->file};
  WEIR_TRY(take(src, magic, sizeof magic, err));
  *out_type = find_type(magic[2]);
  if (magic[0] != 0 || magic[1] != 0 || *out_type == NULL)
    return weir_fail(err, WEIR_W4006, &at,
                     "magic %02x %02x %02x %02x is not that of an IDX file",
                     magic[0], magic[1], magic[2], magic[3]);
  int rank = magic[3];
  if (rank < 1 || rank > WEIR_MAX_RANK)
    return weir_fail(err, WEIR_W4006, &at, "%d dimensions; 1 to 8 are read",
                     rank);
  WEIR_TRY(take(src, raw, (size_t)rank * kDimBytes, err));
  weir_reader r = weir_reader_of(raw, (size_t)rank * kDimBytes);
  for (int d = 0; d < rank; d++) dims[d] = weir_reader_u32be(&r);
  *out_shape = weir_shape_of(rank, dims);
  return weir_io_check_shape(out_shape, (*out_type)->dtype, WEIR_W4006,
                             src->file, err);
}

/* Checks the elements' bytes against those the file has or can have. */
static weir_status check_length(const source *src, size_t want,
                                weir_error *err) {
  weir_mark at = {.file = src->file};
  uint64_t have = weir_reader_left(&src->plain);
  if (src->gzip != NULL) have = weir_inflate_most(src->bytes.size);
  if (src->gzip != NULL ? want <= have : want == have) return WEIR_OK;
  return weir_fail(err, WEIR_W4006, &at,
                   "its shape needs %zu bytes of data, the file %s %llu", want,
                   src->gzip != NULL ? "cannot hold more than" : "has",
                   (unsigned long long)have);
}

/* Element i from |bytes| big-endian bytes at |p|; widens with the sign. */
static int32_t widen(const uint8_t *p, size_t bytes) {
  return bytes == 1 ? (int8_t)p[0] : (int16_t)(p[0] << 8 | p[1]);
}

void weir_idx_widen(int32_t *dst, const uint8_t *src, size_t count,
                    size_t elem_bytes) {
  for (size_t i = 0; i < count; i++)
    dst[i] = widen(src + i * elem_bytes, elem_bytes);
}

weir_status weir_idx_head_read(weir_bytes start, const char *file,
                               weir_idx_head *out_head, weir_error *err) {
  source src = {start, weir_reader_of(start.data, start.size), NULL, file};
  const type_row *type = NULL;
  WEIR_TRY(read_head(&src, &type, &out_head->shape, err));
  out_head->dtype = type->dtype;
  out_head->elem_bytes = type->bytes;
  out_head->data_at = src.plain.at;
  return WEIR_OK;
}

/* The file's elements stand at the end of the data, so that narrow ones are
 * widened in place, from the first on, without being overwritten unread. */
static void convert(weir_tensor *t, const type_row *type, const uint8_t *raw) {
  size_t count = (size_t)weir_shape_elements(&t->shape);
  if (type->bytes == weir_dtype_size(t->dtype)) {
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
      weir_io_swap(t->data, count, type->bytes);
    return;
  }
  weir_idx_widen(t->data, raw, count, type->bytes);
}

static weir_status read_data(const weir_allocator *alloc, source *src,
                             const type_row *type, const weir_shape *shape,
                             weir_tensor **out_tensor, weir_error *err) {
  size_t count = (size_t)weir_shape_elements(shape), want = 0;
  if (!weir_size_mul(count, type->bytes, &want))
    return fail(src, "its shape is too large", err);
  WEIR_TRY(check_length(src, want, err));
  weir_tensor *t = NULL;
  WEIR_TRY(weir_tensor_create_shaped(alloc, type->dtype, shape, &t, err));
  uint8_t *raw = (uint8_t *)t->data + (t->bytes - want);
  weir_status s = take(src, raw, want, err);
  if (s == WEIR_OK && src->gzip != NULL) s = weir_inflate_end(src->gzip, err);
  if (s != WEIR_OK) {
    weir_tensor_unref(t);
    return s;
  }
  convert(t, type, raw);
  *out_tensor = t;
  return WEIR_OK;
}

weir_status weir_idx_read(const weir_allocator *alloc, weir_bytes bytes,
                          const char *file, weir_tensor **out_tensor,
                          weir_error *err) {
  source src = {bytes, weir_reader_of(bytes.data, bytes.size), NULL, file};
  const type_row *type = NULL;
  weir_shape shape;
  weir_status s = WEIR_OK;
  *out_tensor = NULL;
  if (weir_gzip_is(bytes))
    s = weir_inflate_open(alloc, bytes, WEIR_INFLATE_GZIP, file, &src.gzip,
                          err);
  if (s == WEIR_OK) s = read_head(&src, &type, &shape, err);
  if (s == WEIR_OK) s = read_data(alloc, &src, type, &shape, out_tensor, err);
  weir_inflate_close(src.gzip);
  return s;
}
