/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/zip.h"

#include <assert.h>
#include <string.h>

enum {
  kEndBytes = 22,
  kEnd64Bytes = 56,
  kEnd64HeadBytes = 12, /* not counted by its size field */
  kLocatorBytes = 20,
  kCommentMost = 65535,
  kExtra64 = 1 /* id of the zip64 extra field */
};

/* An archive is read from its end: end record, directory, then each member's
 * own header. The format lets these disagree and lets other bytes stand between
 * them, so that two programs may see two archives in one file; here they must
 * agree, and the directory must end where the end record starts. Finding the
 * end record looks at 64 KiB at most, the longest comment. */

static uint32_t u32_at(weir_bytes bytes, size_t at) {
  weir_reader r = weir_reader_of(bytes.data, bytes.size);
  weir_reader_seek(&r, at);
  return weir_reader_u32le(&r);
}

/* --- the end records --- */

typedef struct end_record {
  uint32_t disk, directory_disk;
  uint64_t here, count, size, at;
} end_record;

/* The last place where an end record's comment reaches just to the end. */
static bool find_end(weir_bytes bytes, size_t *out_at) {
  if (bytes.size < kEndBytes) return false;
  for (size_t back = 0; back <= kCommentMost; back++) {
    if (back > bytes.size - kEndBytes) return false;
    size_t at = bytes.size - kEndBytes - back;
    if (u32_at(bytes, at) != WEIR_ZIP_END) continue;
    weir_reader r = weir_reader_of(bytes.data, bytes.size);
    weir_reader_seek(&r, at + kEndBytes - 2);
    if (weir_reader_u16le(&r) == back) {
      *out_at = at;
      return true;
    }
  }
  return false;
}

static end_record read_end(weir_bytes bytes, size_t at) {
  weir_reader r = weir_reader_of(bytes.data, bytes.size);
  weir_reader_seek(&r, at + 4);
  end_record end = {0};
  end.disk = weir_reader_u16le(&r);
  end.directory_disk = weir_reader_u16le(&r);
  end.here = weir_reader_u16le(&r);
  end.count = weir_reader_u16le(&r);
  end.size = weir_reader_u32le(&r);
  end.at = weir_reader_u32le(&r);
  return end;
}

/* A field of the short record must say the same or "see the long one". */
static bool agrees(uint64_t brief, uint64_t full, uint64_t elsewhere) {
  return brief == full || brief == elsewhere;
}

/* Reads the zip64 record, found by the locator that stands before the end
 * record; |*end_at| moves to where it starts. */
static const char *read_end64(weir_bytes bytes, size_t *end_at,
                              end_record *end) {
  weir_reader r = weir_reader_of(bytes.data, bytes.size);
  size_t locator = *end_at - kLocatorBytes;
  weir_reader_seek(&r, locator + 4);
  uint32_t disk = weir_reader_u32le(&r);
  uint64_t at = weir_reader_u64le(&r);
  uint32_t disks = weir_reader_u32le(&r);
  if (disk != 0 || disks != 1) return "it is split over several files";
  if (locator < kEnd64Bytes || at > locator - kEnd64Bytes ||
      u32_at(bytes, (size_t)at) != WEIR_ZIP_END64)
    return "its zip64 locator leads nowhere";
  weir_reader_seek(&r, at + 4);
  if (weir_reader_u64le(&r) != locator - at - kEnd64HeadBytes)
    return "its zip64 record does not end at its locator";
  weir_reader_skip(&r, 4); /* versions */
  end_record full = {0};
  full.disk = weir_reader_u32le(&r);
  full.directory_disk = weir_reader_u32le(&r);
  full.here = weir_reader_u64le(&r);
  full.count = weir_reader_u64le(&r);
  full.size = weir_reader_u64le(&r);
  full.at = weir_reader_u64le(&r);
  if (!agrees(end->disk, full.disk, UINT16_MAX) ||
      !agrees(end->count, full.count, UINT16_MAX) ||
      !agrees(end->size, full.size, UINT32_MAX) ||
      !agrees(end->at, full.at, UINT32_MAX))
    return "its zip64 record differs from its end record";
  *end = full;
  *end_at = (size_t)at;
  return NULL;
}

const char *weir_zip_find_directory(weir_bytes bytes,
                                    weir_zip_directory *out_directory) {
  size_t end_at = 0;
  if (!find_end(bytes, &end_at)) return "it has no end record";
  end_record end = read_end(bytes, end_at);
  if (end_at >= kLocatorBytes &&
      u32_at(bytes, end_at - kLocatorBytes) == WEIR_ZIP_LOCATOR64) {
    const char *wrong = read_end64(bytes, &end_at, &end);
    if (wrong != NULL) return wrong;
  }
  if (end.disk != 0 || end.directory_disk != 0 || end.here != end.count)
    return "it is split over several files";
  if (end.at > end_at || end.size != end_at - end.at)
    return "its directory does not end at its end record";
  *out_directory = (weir_zip_directory){end.at, end.size, end.count};
  return NULL;
}

/* --- members --- */

/* Takes from the zip64 field of |extra| each of the values that are set to
 * "see there", in the format's order. */
static bool read_extra64(weir_sv extra, uint64_t *values[], size_t count) {
  weir_reader r = weir_reader_of(extra.data, extra.size);
  size_t wanted = 0;
  for (size_t i = 0; i < count; i++) wanted += *values[i] == UINT32_MAX;
  while (wanted > 0 && weir_reader_left(&r) > 0) {
    unsigned id = weir_reader_u16le(&r), size = weir_reader_u16le(&r);
    const uint8_t *field = weir_reader_bytes(&r, size);
    if (field == NULL) return false;
    if (id != kExtra64) continue;
    weir_reader f = weir_reader_of(field, size);
    for (size_t i = 0; i < count; i++)
      if (*values[i] == UINT32_MAX) *values[i] = weir_reader_u64le(&f);
    return !f.failed;
  }
  return wanted == 0;
}

const char *weir_zip_read_entry(weir_reader *r, weir_zip_entry *out_entry) {
  weir_zip_entry e = {0};
  if (weir_reader_u32le(r) != WEIR_ZIP_CENTRAL)
    return "its directory is damaged";
  weir_reader_skip(r, 4); /* versions */
  e.flags = weir_reader_u16le(r);
  e.method = weir_reader_u16le(r);
  weir_reader_skip(r, 4); /* time and date */
  e.crc = weir_reader_u32le(r);
  e.packed = weir_reader_u32le(r);
  e.size = weir_reader_u32le(r);
  size_t name = weir_reader_u16le(r), extra = weir_reader_u16le(r);
  size_t comment = weir_reader_u16le(r);
  uint64_t disk = weir_reader_u16le(r);
  weir_reader_skip(r, 6); /* attributes */
  e.at = weir_reader_u32le(r);
  e.name = (weir_sv){(const char *)weir_reader_bytes(r, name), name};
  weir_sv more = {(const char *)weir_reader_bytes(r, extra), extra};
  weir_reader_skip(r, comment);
  if (r->failed) return "its directory is cut short";
  if (disk != 0) return "it is split over several files";
  uint64_t *values[] = {&e.size, &e.packed, &e.at};
  if (!read_extra64(more, values, 3)) return "a zip64 field is missing";
  *out_entry = e;
  return NULL;
}

/* The sizes and CRC of a local header; a writer that did not know them yet set
 * the descriptor flag, and then they mean nothing. */
static bool same_sizes(const weir_zip_entry *entry, uint32_t crc,
                       uint64_t packed, uint64_t size) {
  if (entry->flags & WEIR_ZIP_FLAG_DESCRIPTOR) return true;
  return crc == entry->crc && packed == entry->packed && size == entry->size;
}

const char *weir_zip_read_local(weir_bytes bytes, uint64_t limit,
                                weir_zip_entry *entry) {
  assert(limit <= bytes.size); /* the directory's place, which was checked */
  weir_reader r = weir_reader_of(bytes.data, (size_t)limit);
  weir_reader_seek(&r, entry->at);
  if (weir_reader_u32le(&r) != WEIR_ZIP_LOCAL)
    return "there is no member where the directory says";
  weir_reader_skip(&r, 2); /* version */
  unsigned flags = weir_reader_u16le(&r), method = weir_reader_u16le(&r);
  weir_reader_skip(&r, 4); /* time and date */
  uint32_t crc = weir_reader_u32le(&r);
  uint64_t packed = weir_reader_u32le(&r), size = weir_reader_u32le(&r);
  size_t name = weir_reader_u16le(&r), extra = weir_reader_u16le(&r);
  weir_sv own = {(const char *)weir_reader_bytes(&r, name), name};
  weir_sv more = {(const char *)weir_reader_bytes(&r, extra), extra};
  uint64_t *values[] = {&size, &packed};
  if (r.failed) return "a member's header is cut short";
  if (!read_extra64(more, values, 2)) return "a zip64 field is missing";
  if (!weir_sv_equal(own, entry->name) || flags != entry->flags ||
      method != entry->method || !same_sizes(entry, crc, packed, size))
    return "a member's header differs from the directory";
  if (entry->packed > weir_reader_left(&r))
    return "a member reaches into the directory";
  entry->data_at = r.at;
  return NULL;
}
