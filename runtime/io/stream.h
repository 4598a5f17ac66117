/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_STREAM_H_
#define WEIR_IO_STREAM_H_

#include "runtime/base/env.h"

/* Files through a window: any size of file in a fixed amount of memory.
 *
 * A blob is a file held open, plain or gzip; many threads may share it. A
 * stream is one reader's window over a blob: it stands at a byte of the
 * uncompressed content, gives the bytes there and moves on. Going back in a
 * gzip file starts it from the front again. The window grows when a caller
 * wants more bytes at once than it has; else nothing is allocated after
 * create.
 *
 *   WEIR_TRY(weir_blob_open(env, root, "a.csv.gz", &blob, err));
 *   WEIR_TRY(weir_stream_create(env, 65536, &stream, err));
 *   WEIR_TRY(weir_stream_attach(stream, blob, 0, err));
 *   WEIR_TRY(weir_stream_peek(stream, 100, &bytes, err));
 *   weir_stream_skip(stream, n);  */

typedef struct weir_blob {
  const weir_env *env;
  weir_piece_file file;
  const char *path; /* the blob's own */
  bool gzip;        /* by the first two bytes */
  uint8_t *content; /* once it was loaded, else NULL */
} weir_blob;

/* Opens |path| beneath |root| (weir_fs_pieces.open). Errors: its, W6001. */
weir_status weir_blob_open(const weir_env *env, const char *root,
                           const char *path, weir_blob **out_blob,
                           weir_error *err);
void weir_blob_release(weir_blob *blob); /* NULL-safe */
/* Unpacks a gzip file into memory if its content is at most |most| bytes; it is
 * a plain one then. Others stay as they are. Errors: W4007, those of
 * weir_fs_pieces.read, W6001. */
weir_status weir_blob_load(weir_blob *blob, uint64_t most, weir_error *err);
/* Reads |bytes| bytes of the file itself from byte |offset| on.
 * Errors: those of weir_fs_pieces.read. */
weir_status weir_blob_read(const weir_blob *blob, void *dst, size_t bytes,
                           uint64_t offset, weir_error *err);

typedef struct weir_stream weir_stream;

/* A stream at no file. */
weir_status weir_stream_create(const weir_env *env, size_t window_bytes,
                               weir_stream **out_stream, weir_error *err);
void weir_stream_release(weir_stream *stream); /* NULL-safe */

/* Goes to byte |at| of |blob|'s content; |blob| is borrowed until the stream
 * goes elsewhere. At the place where it stands already, or within its window,
 * this costs nothing. Past the end of the content it stands at the end.
 * Errors: those of weir_fs_pieces.read, W4007, W6001. */
weir_status weir_stream_attach(weir_stream *stream, const weir_blob *blob,
                               uint64_t at, weir_error *err);

/* The byte of the content at which the stream stands. */
uint64_t weir_stream_at(const weir_stream *stream);

/* The bytes that follow, lent until the next call: |want| of them or more, or
 * fewer where the content ends. |want| is at most WEIR_STREAM_MOST; W4036.
 * Errors: as attach. */
weir_status weir_stream_peek(weir_stream *stream, size_t want,
                             weir_bytes *out_bytes, weir_error *err);
enum { WEIR_STREAM_MOST = 64 << 20 };

/* Moves on by |bytes|, at most as many as peek gave. */
void weir_stream_skip(weir_stream *stream, size_t bytes);

/* Copies the next |bytes| bytes to |dst|; W4020 when fewer follow. Large plain
 * reads go straight to |dst|. */
weir_status weir_stream_read(weir_stream *stream, void *dst, size_t bytes,
                             weir_error *err);

#endif
