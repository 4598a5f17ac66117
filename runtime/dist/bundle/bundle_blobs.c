/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of a bundle are blobs, and the pieces of weights.
 *
 * A piece never crosses the end of the header, and hardly the end of a tensor:
 * a task that reads one tensor fetches its pieces and no others. Tensors below
 * WEIR_BUNDLE_SMALL_BYTES that stand side by side share a piece, or there would
 * be more names than values; none is longer than WEIR_BUNDLE_PIECE_BYTES, which
 * bounds what is under way, and what is thrown away when a hash is wrong. A
 * file of another form is cut by length alone. */
#include "runtime/dist/bundle/bundle_blobs.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/bytes/proto.h"
#include "runtime/base/bytes/reader.h"
#include "runtime/base/map.h"
#include "runtime/io/array/safetensors.h"

void weir_blob_name(weir_bytes bytes, uint8_t out[WEIR_BLOB_NAME_BYTES]) {
  uint64_t first = weir_hash_bytes(bytes.data, bytes.size, 0);
  uint64_t second =
      weir_hash_bytes(bytes.data, bytes.size, UINT64_C(0x9e3779b97f4a7c15));
  (void)weir_proto_write_fixed(out, first, 8);
  (void)weir_proto_write_fixed(out + 8, second, 8);
  (void)weir_proto_write_fixed(out + 16, bytes.size, 8);
}

uint64_t weir_blob_size(const uint8_t name[WEIR_BLOB_NAME_BYTES]) {
  weir_reader r = weir_reader_of(name + 16, 8);
  return weir_reader_u64le(&r);
}

static weir_status add(weir_bundle_blobs *b, uint32_t file, weir_bytes bytes,
                       weir_error *err) {
  weir_bundle_blob blob = {.bytes = bytes, .file = file};
  weir_blob_name(bytes, blob.name);
  if (weir_vec_push(b->alloc, &b->rows, blob)) return WEIR_OK;
  return weir_fail_memory(err, sizeof blob);
}

/* [from, to) in pieces. */
static weir_status add_pieces(weir_bundle_blobs *b, uint32_t file,
                              weir_bytes all, uint64_t from, uint64_t to,
                              weir_error *err) {
  while (from < to) {
    uint64_t size = to - from < WEIR_BUNDLE_PIECE_BYTES
                        ? to - from
                        : WEIR_BUNDLE_PIECE_BYTES;
    WEIR_TRY(add(b, file, (weir_bytes){all.data + from, (size_t)size}, err));
    from += size;
  }
  return WEIR_OK;
}

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Places where tensors begin, ascending, and the end of the file. None: it is
 * no file of tensors. */
static weir_status find_ends(const weir_allocator *alloc, weir_bytes all,
                             uint64_t **out, size_t *out_count,
                             weir_error *err) {
  weir_safetensors *st = NULL;
  weir_error why = WEIR_ERROR_INIT;
  *out = NULL;
  *out_count = 0;
  if (weir_safetensors_from(alloc, all, "", NULL, NULL, &st, &why) != WEIR_OK) {
    if (why.code != WEIR_RESOURCE_EXHAUSTED) return WEIR_OK;
    *err = why;
    return why.code;
  }
  size_t count = weir_safetensors_count(st);
  *out = weir_alloc_array(alloc, count + 1, sizeof **out);
  for (size_t i = 0; *out != NULL && i < count; i++)
    (*out)[i] = weir_safetensors_offset(st, i);
  weir_safetensors_release(st);
  if (*out == NULL) return weir_fail_memory(err, count * sizeof **out);
  qsort(*out, count, sizeof **out, by_value);
  (*out)[count] = all.size;
  *out_count = count + 1;
  return WEIR_OK;
}

static weir_status cut(weir_bundle_blobs *b, uint32_t file, weir_bytes all,
                       weir_error *err) {
  uint64_t *ends = NULL, at = 0;
  size_t count = 0;
  weir_status s = find_ends(b->alloc, all, &ends, &count, err);
  for (size_t i = 0; s == WEIR_OK && i < count; i++) {
    bool small = ends[i] - at < WEIR_BUNDLE_SMALL_BYTES && i + 1 < count &&
                 ends[i + 1] - ends[i] < WEIR_BUNDLE_SMALL_BYTES;
    if (small && i > 0) continue; /* the first end is that of the header */
    s = add_pieces(b, file, all, at, ends[i], err);
    at = ends[i];
  }
  if (s == WEIR_OK) s = add_pieces(b, file, all, at, all.size, err);
  weir_free(b->alloc, ends);
  return s;
}

weir_status weir_bundle_blobs_make(const weir_allocator *alloc,
                                   const weir_sources *s,
                                   weir_bundle_blobs *out, weir_error *err) {
  *out = (weir_bundle_blobs){.alloc = alloc};
  for (uint32_t i = 0; i < (uint32_t)s->file_count; i++) {
    const weir_source_file *f = &s->files[i];
    if (f->bytes.size <= WEIR_BUNDLE_INLINE_BYTES) continue;
    WEIR_TRY(f->mapped ? cut(out, i, f->bytes, err)
                       : add(out, i, f->bytes, err));
  }
  return WEIR_OK;
}

void weir_bundle_blobs_release(weir_bundle_blobs *b) {
  if (b->alloc != NULL) weir_vec_free(b->alloc, &b->rows);
}
