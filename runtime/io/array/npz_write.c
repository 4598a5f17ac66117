/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/npz_write.h"

#include <string.h>

#include "runtime/io/array/npy.h"
#include "runtime/io/array/npz.h"
#include "runtime/io/array/zip.h"
#include "runtime/io/inflate.h"
#include "runtime/io/names.h"

enum {
  kVersion = 20,  /* of the format that is needed to read it: 2.0 */
  kDate = 0x0021, /* 1980-01-01, the first a zip can say */
  kLocalCrcAt = 14,
  kNameBytes = 1024,
  kDirectoryMost = 16 << 20 /* bytes of 4096 entries with such names */
};

/* The fields of a member that the directory repeats. */
typedef struct member {
  uint32_t crc, size, at;
} member;

/* Appends |bytes| low bytes of |v|, least significant first. */
static void put(weir_strbuf *out, uint64_t v, unsigned bytes) {
  char raw[8];
  for (unsigned i = 0; i < bytes; i++) raw[i] = (char)(v >> (8 * i));
  weir_strbuf_append(out, raw, bytes);
}

/* The part that a local header and the directory have in common. */
static void put_common(weir_strbuf *out, const member *m, weir_sv name) {
  put(out, kVersion, 2);
  put(out, WEIR_ZIP_FLAG_UTF8, 2);
  put(out, WEIR_ZIP_STORED, 2);
  put(out, 0, 2); /* midnight */
  put(out, kDate, 2);
  put(out, m->crc, 4);
  put(out, m->size, 4);
  put(out, m->size, 4);
  put(out, name.size + 4, 2);
  put(out, 0, 2); /* no extra field */
}

static void put_name(weir_strbuf *out, weir_sv name) {
  weir_strbuf_sv(out, name);
  weir_strbuf_text(out, ".npy");
}

static weir_status too_large(weir_error *err) {
  weir_status s =
      weir_fail(err, WEIR_W5009, NULL, "the .npz file would pass 4 GiB");
  weir_hint(err, "write a .safetensors file");
  return s;
}

/* Writes the header with zeros, then the file, then CRC and sizes into the
 * header: they are known only then, and a second pass over the tensor is
 * spared. */
static weir_status put_member(weir_strbuf *out, size_t start, weir_sv name,
                              const weir_tensor *tensor, member *m,
                              weir_error *err) {
  size_t head = out->size;
  put(out, WEIR_ZIP_LOCAL, 4);
  put_common(out, m, name);
  put_name(out, name);
  WEIR_TRY(weir_strbuf_status(out, err));
  size_t data = out->size;
  WEIR_TRY(weir_npy_write(tensor, out, err));
  if (out->size - start > UINT32_MAX - kDirectoryMost) return too_large(err);
  m->at = (uint32_t)(head - start);
  m->size = (uint32_t)(out->size - data);
  m->crc = weir_crc32((weir_bytes){(const uint8_t *)out->data + data, m->size});
  for (unsigned i = 0; i < 4; i++) {
    char *field = out->data + head + kLocalCrcAt + i;
    field[0] = (char)(m->crc >> (8 * i));
    field[4] = field[8] = (char)(m->size >> (8 * i));
  }
  return WEIR_OK;
}

static void put_directory(weir_strbuf *out, size_t start, const weir_sv *names,
                          const member *members, size_t count) {
  size_t at = out->size - start;
  for (size_t i = 0; i < count; i++) {
    put(out, WEIR_ZIP_CENTRAL, 4);
    put(out, kVersion, 2);
    put_common(out, &members[i], names[i]);
    put(out, 0, 8); /* comment, disk, attributes */
    put(out, 0, 2);
    put(out, members[i].at, 4);
    put_name(out, names[i]);
  }
  size_t size = out->size - start - at;
  put(out, WEIR_ZIP_END, 4);
  put(out, 0, 4); /* disks */
  put(out, count, 2);
  put(out, count, 2);
  put(out, size, 4);
  put(out, at, 4);
  put(out, 0, 2); /* comment */
}

static bool is_sound(weir_sv name) {
  char full[kNameBytes + 4];
  if (name.size == 0 || name.size > kNameBytes) return false;
  memcpy(full, name.data, name.size);
  memcpy(full + name.size, ".npy", 4);
  return weir_npz_name_is_sound((weir_sv){full, name.size + 4});
}

weir_status weir_npz_write(const weir_sv *names, weir_tensor *const *tensors,
                           size_t count, weir_strbuf *out, weir_error *err) {
  size_t start = out->size;
  member *members = NULL;
  if (count > WEIR_NPZ_MEMBERS)
    return weir_fail(err, WEIR_W5009, NULL,
                     "%zu members; an .npz file may have 4096", count);
  weir_names given = {.count = count,
                      .self = names,
                      .name_at = weir_names_at,
                      .is_sound = is_sound,
                      .one = "an .npz member",
                      .several = "members"};
  WEIR_TRY(weir_names_check(out->alloc, &given, err));
  members = weir_alloc_array(out->alloc, count + 1, sizeof *members);
  if (members == NULL) return weir_fail_memory(err, count);
  weir_status s = WEIR_OK;
  for (size_t i = 0; s == WEIR_OK && i < count; i++)
    s = put_member(out, start, names[i], tensors[i], &members[i], err);
  if (s == WEIR_OK) put_directory(out, start, names, members, count);
  if (s == WEIR_OK) s = weir_strbuf_status(out, err);
  weir_free(out->alloc, members);
  return s;
}
