/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_ZIP_H_
#define WEIR_IO_ZIP_H_

#include "runtime/base/bytes/reader.h"
#include "runtime/base/env.h"
#include "runtime/base/sv.h"

/* The records of a zip archive, shared by the files of npz. */

enum {
  WEIR_ZIP_LOCAL = 0x04034b50,
  WEIR_ZIP_CENTRAL = 0x02014b50,
  WEIR_ZIP_END = 0x06054b50,
  WEIR_ZIP_END64 = 0x06064b50,
  WEIR_ZIP_LOCATOR64 = 0x07064b50,
  WEIR_ZIP_STORED = 0,
  WEIR_ZIP_DEFLATED = 8,
  WEIR_ZIP_FLAG_ENCRYPTED = 1 << 0,
  WEIR_ZIP_FLAG_DESCRIPTOR = 1 << 3, /* sizes stand behind the data */
  WEIR_ZIP_FLAG_PATCH = 1 << 5,
  WEIR_ZIP_FLAG_STRONG = 1 << 6,
  WEIR_ZIP_FLAG_UTF8 = 1 << 11,
  WEIR_ZIP_FLAG_MASKED = 1 << 13
};

/* Where the central directory stands. */
typedef struct weir_zip_directory {
  uint64_t at, size, count;
} weir_zip_directory;

/* One member, as the central directory has it. */
typedef struct weir_zip_entry {
  weir_sv name; /* in the archive's bytes */
  uint16_t flags, method;
  uint32_t crc;
  uint64_t packed, size; /* bytes in the archive, bytes of the member */
  uint64_t at;           /* of its local header */
  uint64_t data_at;      /* of its data: set by weir_zip_read_local */
} weir_zip_entry;

/* Each returns NULL, or the fault in static words. */

/* Finds the directory from the end of the archive. */
const char *weir_zip_find_directory(weir_bytes bytes,
                                    weir_zip_directory *out_directory);

/* Reads the entry at |r|, which reads the directory only. */
const char *weir_zip_read_entry(weir_reader *r, weir_zip_entry *out_entry);

/* Checks the local header of |entry| against it and finds its data, which must
 * end before byte |limit|. */
const char *weir_zip_read_local(weir_bytes bytes, uint64_t limit,
                                weir_zip_entry *entry);

#endif
