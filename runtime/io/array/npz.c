/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/npz.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/map.h"
#include "runtime/base/utf8.h"
#include "runtime/io/array/npy.h"
#include "runtime/io/array/zip.h"
#include "runtime/io/checkpoint/convert.h"
#include "runtime/io/inflate.h"

enum {
  kRatio = 1000,         /* size to packed, at most, ... */
  kFreeBytes = 1 << 20,  /* ... of members larger than this */
  kEntryBytesLeast = 46, /* of the directory */
  kSuffixBytes = 4,      /* ".npy" */
  kLabelBytes = 256
};

/* All members are looked at when the archive is opened: directory, local
 * headers, names, ranges. Reading one then needs no more trust than its CRC.
 * Members may not overlap: one range of packed bytes that many members share is
 * the way to an archive that unpacks to far more than its length times 1000
 * (D. Fifield, A better zip bomb, WOOT 2019). Opening costs n log n for the
 * sort of the ranges. */

struct weir_npz {
  const weir_allocator *alloc;
  weir_bytes bytes;
  const char *file;
  weir_zip_entry *entries;
  size_t count;
};

bool weir_npz_is(weir_bytes bytes) {
  static const uint8_t kFirst[2][4] = {{'P', 'K', 3, 4}, {'P', 'K', 5, 6}};
  return bytes.size >= 4 && (memcmp(bytes.data, kFirst[0], 4) == 0 ||
                             memcmp(bytes.data, kFirst[1], 4) == 0);
}

static weir_status bad(const weir_npz *npz, const char *what, weir_error *err) {
  weir_mark at = {.file = npz->file};
  return weir_fail(err, WEIR_W4004, &at, "not a sound archive: %s", what);
}

static weir_status bad_member(const weir_npz *npz, weir_sv name,
                              const char *what, weir_error *err) {
  weir_mark at = {.file = npz->file};
  return weir_fail(err, WEIR_W4004, &at, "member '%.*s': %s",
                   (int)(name.size < 200 ? name.size : 200), name.data, what);
}

/* --- opening --- */

/* No part of |name| between slashes is empty, "." or "..". */
static bool parts_are_sound(weir_sv name) {
  for (size_t i = 0, start = 0; i <= name.size; i++) {
    if (i < name.size && name.data[i] != '/') continue;
    weir_sv part = {name.data + start, i - start};
    if (part.size == 0 || weir_sv_is(part, ".") || weir_sv_is(part, ".."))
      return false;
    start = i + 1;
  }
  return true;
}

bool weir_npz_name_is_sound(weir_sv name) {
  if (name.size <= kSuffixBytes || !weir_utf8_valid(name, NULL)) return false;
  for (size_t i = 0; i < name.size; i++) {
    unsigned char c = (unsigned char)name.data[i];
    if (c < 0x20 || c == 0x7f || c == '\\') return false;
  }
  return parts_are_sound(name);
}

static bool ends_with_npy(weir_sv name) {
  return name.size > kSuffixBytes &&
         memcmp(name.data + name.size - kSuffixBytes, ".npy", kSuffixBytes) ==
             0;
}

/* The fault in a member's entry, its data aside; or NULL. */
static const char *check_entry(const weir_zip_entry *e) {
  if (!weir_npz_name_is_sound(e->name))
    return "the name could lead out of a folder";
  if (!ends_with_npy(e->name)) return "the name does not end with .npy";
  if (e->flags &
      (WEIR_ZIP_FLAG_ENCRYPTED | WEIR_ZIP_FLAG_STRONG | WEIR_ZIP_FLAG_MASKED))
    return "it is encrypted";
  if (e->flags & WEIR_ZIP_FLAG_PATCH) return "it is a patch";
  if (e->method != WEIR_ZIP_STORED && e->method != WEIR_ZIP_DEFLATED)
    return "its compression is neither stored nor deflate";
  if (e->method == WEIR_ZIP_STORED && e->packed != e->size)
    return "it is stored but its two sizes differ";
  if (e->size > kFreeBytes && e->size / kRatio > e->packed)
    return "it claims to expand more than 1000 times";
  return NULL;
}

static weir_status read_entries(weir_npz *npz, const weir_zip_directory *where,
                                weir_error *err) {
  weir_map names;
  weir_reader r =
      weir_reader_of(npz->bytes.data + where->at, (size_t)where->size);
  weir_status s = WEIR_OK;
  weir_map_init(&names, npz->alloc);
  for (size_t i = 0; s == WEIR_OK && i < npz->count; i++) {
    weir_zip_entry *e = &npz->entries[i];
    uint32_t other = WEIR_MAP_NONE;
    const char *wrong = weir_zip_read_entry(&r, e);
    if (wrong != NULL)
      s = bad(npz, wrong, err);
    else if ((wrong = check_entry(e)) != NULL ||
             (wrong = weir_zip_read_local(npz->bytes, where->at, e)) != NULL)
      s = bad_member(npz, e->name, wrong, err);
    else if (!weir_map_put(&names, e->name, (uint32_t)i, &other))
      s = weir_fail_memory(err, sizeof *e);
    else if (other != WEIR_MAP_NONE)
      s = bad_member(npz, e->name, "the name occurs twice", err);
  }
  if (s == WEIR_OK && weir_reader_left(&r) > 0)
    s = bad(npz, "its directory holds more than its count", err);
  weir_map_release(&names);
  return s;
}

static weir_status check_overlap(const weir_npz *npz, weir_error *err) {
  weir_io_span *spans =
      weir_alloc_array(npz->alloc, npz->count + 1, sizeof *spans);
  weir_status s = WEIR_OK;
  if (spans == NULL) return weir_fail_memory(err, npz->count);
  for (size_t i = 0; i < npz->count; i++) {
    const weir_zip_entry *e = &npz->entries[i];
    spans[i] = (weir_io_span){e->at, e->data_at + e->packed, (uint32_t)i};
  }
  weir_io_sort_spans(spans, npz->count);
  for (size_t i = 1; s == WEIR_OK && i < npz->count; i++)
    if (spans[i].begin < spans[i - 1].end)
      s = bad_member(npz, npz->entries[spans[i].index].name,
                     "it overlaps another member", err);
  weir_free(npz->alloc, spans);
  return s;
}

static weir_status open_entries(weir_npz *npz, weir_error *err) {
  weir_zip_directory where = {0};
  const char *wrong = weir_zip_find_directory(npz->bytes, &where);
  if (wrong == NULL && where.count > WEIR_NPZ_MEMBERS)
    wrong = "it has more than 4096 members";
  if (wrong == NULL && where.count > where.size / kEntryBytesLeast)
    wrong = "its directory is too short for its count";
  if (wrong != NULL) return bad(npz, wrong, err);
  npz->entries =
      weir_alloc_array(npz->alloc, where.count + 1, sizeof *npz->entries);
  if (npz->entries == NULL) return weir_fail_memory(err, where.count);
  npz->count = where.count;
  WEIR_TRY(read_entries(npz, &where, err));
  return check_overlap(npz, err);
}

weir_status weir_npz_open(const weir_allocator *alloc, weir_bytes bytes,
                          const char *file, weir_npz **out_npz,
                          weir_error *err) {
  *out_npz = NULL;
  weir_npz *npz = weir_alloc_array(alloc, 1, sizeof *npz);
  if (npz == NULL) return weir_fail_memory(err, sizeof *npz);
  npz->alloc = alloc;
  npz->bytes = bytes;
  npz->file = file;
  weir_status s = open_entries(npz, err);
  if (s == WEIR_OK)
    *out_npz = npz;
  else
    weir_npz_release(npz);
  return s;
}

void weir_npz_release(weir_npz *npz) {
  if (npz == NULL) return;
  weir_free(npz->alloc, npz->entries);
  weir_free(npz->alloc, npz);
}

size_t weir_npz_count(const weir_npz *npz) {
  return npz->count;
}

weir_sv weir_npz_name(const void *self, size_t i) {
  weir_sv name = ((const weir_npz *)self)->entries[i].name;
  return (weir_sv){name.data, name.size - kSuffixBytes};
}

/* --- reading a member --- */

/* Inflates member |e| to its whole size; |*out_data| is the caller's. */
static weir_status unpack(const weir_npz *npz, const weir_zip_entry *e,
                          const char *label, uint8_t **out_data,
                          weir_error *err) {
  weir_bytes packed = {npz->bytes.data + e->data_at, (size_t)e->packed};
  weir_inflate *in = NULL;
  *out_data = weir_alloc(npz->alloc, (size_t)e->size);
  if (*out_data == NULL) return weir_fail_memory(err, (size_t)e->size);
  weir_status s =
      weir_inflate_open(npz->alloc, packed, WEIR_INFLATE_RAW, label, &in, err);
  if (s == WEIR_OK) s = weir_inflate_read(in, *out_data, (size_t)e->size, err);
  if (s == WEIR_OK) s = weir_inflate_end(in, err);
  weir_inflate_close(in);
  return s;
}

weir_status weir_npz_read(const weir_npz *npz, size_t i,
                          weir_tensor **out_tensor, weir_error *err) {
  assert(i < npz->count);
  const weir_zip_entry *e = &npz->entries[i];
  weir_bytes content = {npz->bytes.data + e->data_at, (size_t)e->size};
  uint8_t *unpacked = NULL;
  char label[kLabelBytes];
  weir_status s = WEIR_OK;
  *out_tensor = NULL;
  snprintf(label, sizeof label, "%s#%.*s", npz->file != NULL ? npz->file : "",
           WEIR_SV(weir_npz_name(npz, i)));
  if (e->method == WEIR_ZIP_DEFLATED) {
    s = unpack(npz, e, label, &unpacked, err);
    content.data = unpacked;
  }
  if (s == WEIR_OK && weir_crc32(content) != e->crc)
    s = bad_member(npz, e->name, "its data does not have its CRC", err);
  if (s == WEIR_OK)
    s = weir_npy_read(npz->alloc, content, label, out_tensor, err);
  weir_free(npz->alloc, unpacked);
  return s;
}
