/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_INFLATE_H_
#define WEIR_IO_INFLATE_H_

#include "runtime/base/env.h"

/* Compressed bytes, read in pieces of sizes that the caller knows beforehand,
 * so that no number in a stream makes us allocate. The one door to zlib, which
 * allocates through the allocator given here.
 *
 *   WEIR_TRY(weir_inflate_open(alloc, src, WEIR_INFLATE_GZIP, file, &in, err));
 *   s = weir_inflate_read(in, header, sizeof header, err);
 *   if (s == WEIR_OK) s = weir_inflate_end(in, err);
 *   weir_inflate_close(in); */
typedef struct weir_inflate weir_inflate;

typedef enum weir_inflate_form {
  WEIR_INFLATE_RAW, /* a member of a zip archive */
  WEIR_INFLATE_GZIP /* one gzip member, its CRC and length checked */
} weir_inflate_form;

/* Most bytes that |compressed| bytes of deflate can stand for. */
uint64_t weir_inflate_most(size_t compressed);

/* Starts reading |src|, which is borrowed until close, as is |file| (for
 * messages, may be NULL). Errors: W6001, W4007. */
weir_status weir_inflate_open(const weir_allocator *alloc, weir_bytes src,
                              weir_inflate_form form, const char *file,
                              weir_inflate **out_in, weir_error *err);

/* Gives the next bytes of a compressed stream, lent until the next call; none
 * at its end. */
typedef weir_status (*weir_inflate_more_fn)(void *self, weir_bytes *out_bytes,
                                            weir_error *err);
/* The same for a source that comes in pieces. |more| is called while reading.
 */
weir_status weir_inflate_open_pieces(const weir_allocator *alloc,
                                     weir_inflate_more_fn more, void *self,
                                     weir_inflate_form form, const char *file,
                                     weir_inflate **out_in, weir_error *err);
/* Begins anew with a source in pieces, without allocating; |more| must then
 * give |file|'s first bytes. */
void weir_inflate_restart(weir_inflate *in, const char *file);

/* Gives from 1 to |room| bytes; 0 only at the end of the stream, when nothing
 * follows it. Errors: W4007, W6001, those of |more|. */
weir_status weir_inflate_some(weir_inflate *in, void *dst, size_t room,
                              size_t *out_bytes, weir_error *err);

/* Gives the next |bytes| bytes, all of them. Errors: W4007, W6001. */
weir_status weir_inflate_read(weir_inflate *in, void *dst, size_t bytes,
                              weir_error *err);

/* Checks that stream and |src| end here. Errors: W4007, W6001. */
weir_status weir_inflate_end(weir_inflate *in, weir_error *err);

void weir_inflate_close(weir_inflate *in); /* NULL-safe */

/* CRC-32 as in zip and gzip. */
uint32_t weir_crc32(weir_bytes bytes);

#endif
