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

/* zlib behind calls that know how many bytes they want: a stream that has more
 * or fewer is an error, and memory is the window of zlib and nothing else. */

struct weir_inflate {
  z_stream z;
  const weir_allocator *alloc;
  weir_bytes src;
  size_t given;              /* of |src| to zlib so far */
  uint64_t passed;           /* bytes of the stream before |src| */
  weir_inflate_more_fn more; /* NULL: |src| is all */
  void *more_self;
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
  uint64_t byte = in->passed + (in->given - in->z.avail_in);
  if (in->more != NULL)
    return weir_fail(err, WEIR_W4007, &at, "compressed data %s, at byte %llu",
                     what, (unsigned long long)byte);
  return weir_fail(err, WEIR_W4007, &at,
                   "compressed data %s, at byte %llu of %zu", what,
                   (unsigned long long)byte, in->src.size);
}

static weir_status begin(const weir_allocator *alloc, weir_inflate_form form,
                         const char *file, weir_inflate **out_in,
                         weir_error *err) {
  *out_in = NULL;
  weir_inflate *in = weir_alloc_array(alloc, 1, sizeof *in);
  if (in == NULL) return weir_fail_memory(err, sizeof *in);
  in->alloc = alloc;
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

weir_status weir_inflate_open(const weir_allocator *alloc, weir_bytes src,
                              weir_inflate_form form, const char *file,
                              weir_inflate **out_in, weir_error *err) {
  WEIR_TRY(begin(alloc, form, file, out_in, err));
  (*out_in)->src = src;
  return WEIR_OK;
}

weir_status weir_inflate_open_pieces(const weir_allocator *alloc,
                                     weir_inflate_more_fn more, void *self,
                                     weir_inflate_form form, const char *file,
                                     weir_inflate **out_in, weir_error *err) {
  WEIR_TRY(begin(alloc, form, file, out_in, err));
  (*out_in)->more = more;
  (*out_in)->more_self = self;
  return WEIR_OK;
}

void weir_inflate_restart(weir_inflate *in, const char *file) {
  (void)inflateReset(&in->z);
  in->z.avail_in = 0;
  in->src = (weir_bytes){NULL, 0};
  in->given = 0;
  in->passed = 0;
  in->ended = false;
  in->file = file;
}

/* zlib counts in unsigned int: larger inputs are given piece by piece. */
static weir_status feed(weir_inflate *in, weir_error *err) {
  if (in->z.avail_in > 0) return WEIR_OK;
  if (in->given == in->src.size && in->more != NULL) {
    in->passed += in->given;
    in->given = 0;
    in->src = (weir_bytes){NULL, 0};
    WEIR_TRY(in->more(in->more_self, &in->src, err));
  }
  size_t left = in->src.size - in->given;
  if (left == 0) return WEIR_OK;
  in->z.next_in = (Bytef *)in->src.data + in->given;
  in->z.avail_in = left < UINT_MAX ? (uInt)left : UINT_MAX;
  in->given += in->z.avail_in;
  return WEIR_OK;
}

/* Runs zlib once; |*made| gets the bytes it wrote to |dst|. */
static weir_status advance(weir_inflate *in, uint8_t *dst, size_t room,
                           size_t *made, weir_error *err) {
  WEIR_TRY(feed(in, err));
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

weir_status weir_inflate_some(weir_inflate *in, void *dst, size_t room,
                              size_t *out_bytes, weir_error *err) {
  *out_bytes = 0;
  while (!in->ended && *out_bytes == 0 && room > 0)
    WEIR_TRY(advance(in, dst, room, out_bytes, err));
  if (*out_bytes > 0 || room == 0) return WEIR_OK;
  WEIR_TRY(feed(in, err));
  if (in->z.avail_in == 0) return WEIR_OK;
  return damaged(in, "is followed by other bytes", err);
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
