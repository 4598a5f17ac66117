/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/array_file.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/io/array/idx.h"
#include "runtime/io/checkpoint/convert.h"
#include "runtime/io/format/format.h"
#include "runtime/io/inflate.h"

/* Rows of an array in its file. The head is read and checked when the file is
 * opened; then a row's place is a product, so a plain file is read at that
 * place and a gzip file is unpacked up to there by the caller's stream. The
 * length of plain content is compared at once; that of gzip content is not
 * known before its end, so it is bounded first and compared with the last row.
 */

enum { kHeadBytes = WEIR_FORMAT_HEAD_BYTES, kLoadWindow = 65536 };

static weir_status fail_length(const weir_array_file *f, weir_error_id id,
                               uint64_t want, uint64_t have, weir_error *err) {
  weir_mark at = {.file = f->blob->path};
  return weir_fail(
      err, id, &at, "its shape needs %llu bytes of data, the file %s %llu",
      (unsigned long long)want, f->blob->gzip ? "cannot hold more than" : "has",
      (unsigned long long)have);
}

/* Sizes of rows, and whether the file is as long as its header says. */
static weir_status measure(weir_array_file *f, size_t raw_elem_bytes,
                           weir_error_id id, weir_error *err) {
  weir_mark at = {.file = f->blob->path};
  size_t want = 0;
  if (f->shape.rank == 0)
    return weir_fail(err, id, &at, "the array has no dimension, so no rows");
  f->rows = f->shape.dims[0].value;
  f->row_elements = 1;
  for (int d = 1; d < f->shape.rank; d++)
    if (!weir_size_mul(f->row_elements, (size_t)f->shape.dims[d].value,
                       &f->row_elements))
      return weir_fail(err, id, &at, "its shape is too large");
  if (!weir_size_mul(f->row_elements, raw_elem_bytes, &f->raw_row_bytes) ||
      !weir_size_mul(f->row_elements, weir_dtype_size(f->dtype),
                     &f->row_bytes) ||
      !weir_size_mul(f->raw_row_bytes, (size_t)f->rows, &want))
    return weir_fail(err, id, &at, "its shape is too large");
  uint64_t bytes = f->blob->file.bytes;
  if (f->blob->gzip) {
    uint64_t most = weir_inflate_most((size_t)bytes);
    return want <= most ? WEIR_OK : fail_length(f, id, want, most, err);
  }
  uint64_t have = bytes > f->data_at ? bytes - f->data_at : 0;
  return want == have ? WEIR_OK : fail_length(f, id, want, have, err);
}

static bool has_rows(const weir_format *format) {
  return format->head != NULL;
}

static weir_status read_head(weir_array_file *f, weir_bytes start,
                             weir_error *err) {
  const char *path = f->blob->path;
  const weir_format *format;
  weir_format_head h;
  char names[128];
  weir_mark at = {.file = path};
  for (size_t i = 0; (format = weir_format_at(i)) != NULL; i++)
    if (has_rows(format) && format->sniff(start)) break;
  if (format == NULL)
    return weir_fail(err, WEIR_W4008, &at,
                     "the file is of no format that has rows: %s",
                     weir_format_names(has_rows, names, sizeof names));
  WEIR_TRY(format->head(start, path, &h, err));
  f->dtype = h.dtype;
  f->shape = h.shape;
  f->data_at = h.data_at;
  f->swap = h.swap;
  f->is_bool = h.is_bool;
  f->fortran = h.fortran;
  return measure(f, h.elem_bytes, h.bad, err);
}

weir_status weir_array_file_open(const weir_env *env, const char *root,
                                 const char *path, weir_array_file **out_file,
                                 weir_error *err) {
  weir_stream *stream = NULL;
  weir_bytes head;
  *out_file = NULL;
  weir_array_file *f = weir_alloc_array(env->alloc, 1, sizeof *f);
  if (f == NULL) return weir_fail_memory(err, sizeof *f);
  weir_status s = weir_blob_open(env, root, path, &f->blob, err);
  if (s != WEIR_OK) {
    weir_free(env->alloc, f);
    return s;
  }
  s = weir_stream_create(env, kHeadBytes, &stream, err);
  if (s == WEIR_OK) s = weir_stream_attach(stream, f->blob, 0, err);
  if (s == WEIR_OK) s = weir_stream_peek(stream, kHeadBytes, &head, err);
  if (s == WEIR_OK) s = read_head(f, head, err);
  weir_stream_release(stream);
  if (s == WEIR_OK)
    *out_file = f;
  else
    weir_array_file_release(f);
  return s;
}

void weir_array_file_release(weir_array_file *f) {
  if (f == NULL) return;
  const weir_allocator *alloc = f->blob->env->alloc;
  weir_blob_release(f->blob);
  weir_free(alloc, f);
}

static weir_status check_end(const weir_array_file *f, weir_stream *stream,
                             weir_error *err) {
  weir_bytes rest;
  weir_mark at = {.file = f->blob->path};
  WEIR_TRY(weir_stream_peek(stream, 1, &rest, err));
  if (rest.size == 0) return WEIR_OK;
  return weir_fail(err, WEIR_W4007, &at,
                   "compressed data holds more than was declared");
}

weir_status weir_array_file_read(const weir_array_file *f, weir_stream *stream,
                                 int64_t first, int64_t count, void *dst,
                                 weir_error *err) {
  assert(first >= 0 && count >= 0 && count <= f->rows - first);
  size_t elements = f->row_elements * (size_t)count;
  size_t bytes = f->row_bytes * (size_t)count;
  size_t raw = f->raw_row_bytes * (size_t)count;
  uint64_t at = f->data_at + f->raw_row_bytes * (uint64_t)first;
  /* Narrow elements stand at the end, to be widened in place. */
  uint8_t *to = (uint8_t *)dst + (bytes - raw);
  if (f->blob->gzip) {
    WEIR_TRY(weir_stream_attach(stream, f->blob, at, err));
    WEIR_TRY(weir_stream_read(stream, to, raw, err));
    if (first + count == f->rows) WEIR_TRY(check_end(f, stream, err));
  } else {
    WEIR_TRY(weir_blob_read(f->blob, to, raw, at, err));
  }
  if (raw < bytes)
    weir_idx_widen(dst, to, elements, f->raw_row_bytes / f->row_elements);
  else if (f->swap)
    weir_io_swap(dst, elements, weir_dtype_size(f->dtype));
  if (f->is_bool) weir_io_normalise_bool(dst, elements);
  return WEIR_OK;
}

weir_status weir_array_file_load(const weir_array_file *f,
                                 weir_tensor **out_tensor, weir_error *err) {
  const weir_env *env = f->blob->env;
  weir_stream *stream = NULL;
  weir_tensor *t = NULL, *raw = NULL;
  weir_status s =
      weir_tensor_create_shaped(env->alloc, f->dtype, &f->shape, &t, err);
  if (s == WEIR_OK && f->fortran)
    s = weir_tensor_create_shaped(env->alloc, f->dtype, &f->shape, &raw, err);
  if (s == WEIR_OK) s = weir_stream_create(env, kLoadWindow, &stream, err);
  if (s == WEIR_OK)
    s = weir_array_file_read(f, stream, 0, f->rows,
                             f->fortran ? raw->data : t->data, err);
  if (s == WEIR_OK && f->fortran) weir_io_copy_fortran(t, raw->data);
  weir_stream_release(stream);
  weir_tensor_unref(raw);
  if (s != WEIR_OK) weir_tensor_unref(t);
  *out_tensor = s == WEIR_OK ? t : NULL;
  return s;
}
