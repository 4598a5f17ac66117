/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/inflate.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

enum {
  kRawWindow = -15, /* zlib's way to say: no header */
  kGzipWindow = 15 + 16,
  kMostRatio = 1032, /* of deflate: 258 bytes from 2 bits */
  kMostSlack = 1024
};

struct weir_inflate {
  z_stream z;
  const weir_allocator *alloc;
  weir_bytes src;
  size_t given; /* of |src| to zlib so far */
  const char *file;
  bool ended;
};

static void *z_alloc(void *self, uInt count, uInt bytes) {
  return weir_alloc_array((const weir_allocator *)self, count, bytes);
}

static void z_free(void *self, void *ptr) {
  weir_free((const weir_allocator *)self, ptr);
}

uint64_t weir_inflate_most(size_t compressed) {
  uint64_t most;
  if (__builtin_mul_overflow((uint64_t)compressed, kMostRatio, &most))
    return UINT64_MAX;
  return most > UINT64_MAX - kMostSlack ? UINT64_MAX : most + kMostSlack;
}

static weir_status damaged(const weir_inflate *in, const char *what,
                           weir_error *err) {
  weir_mark at = {.file = in->file};
  return weir_fail(err, WEIR_W4007, &at,
                   "compressed data %s, at byte %zu of %zu", what,
                   in->given - in->z.avail_in, in->src.size);
}

weir_status weir_inflate_open(const weir_allocator *alloc, weir_bytes src,
                              weir_inflate_form form, const char *file,
                              weir_inflate **out_in, weir_error *err) {
  *out_in = NULL;
  weir_inflate *in = weir_alloc_array(alloc, 1, sizeof *in);
  if (in == NULL) return weir_fail_memory(err, sizeof *in);
  in->alloc = alloc;
  in->src = src;
  in->file = file;
  in->z.zalloc = z_alloc;
  in->z.zfree = z_free;
  in->z.opaque = (void *)alloc;
  int window = form == WEIR_INFLATE_GZIP ? kGzipWindow : kRawWindow;
  if (inflateInit2(&in->z, window) != Z_OK) {
    weir_free(alloc, in);
    return weir_fail_memory(err, sizeof(z_stream));
  }
  *out_in = in;
  return WEIR_OK;
}

/* zlib counts in unsigned int: larger inputs are given piece by piece. */
static void feed(weir_inflate *in) {
  size_t left = in->src.size - in->given;
  if (in->z.avail_in > 0 || left == 0) return;
  in->z.next_in = (Bytef *)in->src.data + in->given;
  in->z.avail_in = left < UINT_MAX ? (uInt)left : UINT_MAX;
  in->given += in->z.avail_in;
}

/* Runs zlib once; |*made| gets the bytes it wrote to |dst|. */
static weir_status advance(weir_inflate *in, uint8_t *dst, size_t room,
                           size_t *made, weir_error *err) {
  feed(in);
  uInt piece = room < UINT_MAX ? (uInt)room : UINT_MAX;
  in->z.next_out = dst;
  in->z.avail_out = piece;
  int code = inflate(&in->z, Z_NO_FLUSH);
  *made = piece - in->z.avail_out;
  if (code == Z_STREAM_END) in->ended = true;
  if (code == Z_OK || code == Z_STREAM_END) return WEIR_OK;
  if (code == Z_MEM_ERROR) return weir_fail_memory(err, 1 << 15);
  if (code == Z_BUF_ERROR) return damaged(in, "ends early", err);
  return damaged(in, in->z.msg != NULL ? in->z.msg : "is damaged", err);
}

weir_status weir_inflate_read(weir_inflate *in, void *dst, size_t bytes,
                              weir_error *err) {
  for (size_t done = 0, made = 0; done < bytes; done += made) {
    if (in->ended) return damaged(in, "ends early", err);
    WEIR_TRY(advance(in, (uint8_t *)dst + done, bytes - done, &made, err));
  }
  return WEIR_OK;
}

weir_status weir_inflate_end(weir_inflate *in, weir_error *err) {
  uint8_t extra;
  size_t made = 0;
  while (!in->ended && made == 0) WEIR_TRY(advance(in, &extra, 1, &made, err));
  if (made > 0) return damaged(in, "holds more than was declared", err);
  if (in->z.avail_in > 0 || in->given < in->src.size)
    return damaged(in, "is followed by other bytes", err);
  return WEIR_OK;
}

void weir_inflate_close(weir_inflate *in) {
  if (in == NULL) return;
  inflateEnd(&in->z);
  weir_free(in->alloc, in);
}

uint32_t weir_crc32(weir_bytes bytes) {
  uLong crc = crc32(0, NULL, 0);
  for (size_t done = 0; done < bytes.size;) {
    size_t left = bytes.size - done;
    uInt piece = left < UINT_MAX ? (uInt)left : UINT_MAX;
    crc = crc32(crc, bytes.data + done, piece);
    done += piece;
  }
  return (uint32_t)crc;
}
