/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/stream.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/bytes/reader.h"
#include "runtime/base/size.h"
#include "runtime/io/inflate.h"

/* A window over a file's content.
 *
 * Invariant: at <= fill <= capacity, and window[0, fill) are the bytes of the
 * content that end at byte |fill_end|; so the stream stands at byte
 * fill_end - (fill - at), and a place within the window costs nothing to go to.
 * A plain file is read anywhere. A gzip file is read forward only: to go back
 * is to unpack from the front, which weir_blob_load spares for files that fit
 * into memory.
 *
 * After a jump little is read, then twice as much each time: a caller that
 * jumps from record to record does not read a window for each, and one that
 * reads on soon reads whole windows. */

enum {
  kPackedBytes = 32768, /* of compressed bytes at a time */
  kFirstBytes = 4096    /* read after a jump; then twice as many, and so on */
};

struct weir_stream {
  const weir_env *env;
  const weir_blob *blob;
  uint8_t *window;
  size_t capacity;
  size_t at, fill;   /* window[at, fill) are the bytes that follow */
  uint64_t fill_end; /* byte of the content after window[0, fill) */
  bool ended;        /* nothing follows the window */
  size_t step;       /* most bytes to read from a plain file at once */
  /* gzip only */
  weir_inflate *inflate;
  uint8_t *packed;
  uint64_t packed_at; /* byte of the file after |packed| */
};

/* ---- Blobs */

weir_status weir_blob_open(const weir_env *env, const char *root,
                           const char *path, weir_blob **out_blob,
                           weir_error *err) {
  *out_blob = NULL;
  const weir_fs *fs = env->fs;
  if (fs->pieces == NULL)
    return weir_fail(err, WEIR_W4001, NULL,
                     "this file system cannot read '%.200s' in pieces", path);
  size_t n = strlen(path), bytes = 0;
  if (!weir_size_add(sizeof(weir_blob) + 1, n, &bytes))
    return weir_fail_memory(err, n);
  weir_blob *blob = weir_alloc(env->alloc, bytes);
  if (blob == NULL) return weir_fail_memory(err, bytes);
  memset(blob, 0, sizeof *blob);
  char *copy = memcpy(blob + 1, path, n + 1);
  blob->env = env;
  blob->path = copy;
  uint8_t magic[2];
  weir_status s = fs->pieces->open(fs->self, root, path, &blob->file, err);
  if (s == WEIR_OK && blob->file.bytes >= 2) {
    s = fs->pieces->read(fs->self, &blob->file, path, magic, 2, 0, err);
    blob->gzip = s == WEIR_OK && magic[0] == 0x1f && magic[1] == 0x8b;
  }
  if (s == WEIR_OK)
    *out_blob = blob;
  else
    weir_blob_release(blob);
  return s;
}

/* All |size| bytes of the content into |blob|, unless there are more. */
static weir_status unpack(weir_blob *blob, size_t size, weir_error *err) {
  const weir_env *env = blob->env;
  weir_stream *stream = NULL;
  weir_bytes rest = {NULL, 1};
  uint8_t *content = weir_alloc(env->alloc, size);
  if (content == NULL) return weir_fail_memory(err, size);
  weir_status s = weir_stream_create(env, kPackedBytes, &stream, err);
  if (s == WEIR_OK) s = weir_stream_attach(stream, blob, 0, err);
  if (s == WEIR_OK) s = weir_stream_read(stream, content, size, err);
  if (s == WEIR_OK) s = weir_stream_peek(stream, 1, &rest, err);
  weir_stream_release(stream);
  if (s == WEIR_OK && rest.size == 0) {
    env->fs->pieces->close(env->fs->self, &blob->file);
    blob->file.bytes = size;
    blob->content = content;
    blob->gzip = false;
  } else {
    weir_free(env->alloc, content);
  }
  return s;
}

weir_status weir_blob_load(weir_blob *blob, uint64_t most, weir_error *err) {
  uint8_t tail[4];
  if (!blob->gzip || blob->file.bytes < 18) return WEIR_OK;
  WEIR_TRY(weir_blob_read(blob, tail, 4, blob->file.bytes - 4, err));
  weir_reader r = weir_reader_of(tail, 4);
  /* Modulo 2^32, and written by anyone: a hint, which unpack checks. */
  uint64_t size = weir_reader_u32le(&r);
  bool fits =
      size <= most && size <= weir_inflate_most((size_t)blob->file.bytes);
  return fits ? unpack(blob, (size_t)size, err) : WEIR_OK;
}

void weir_blob_release(weir_blob *blob) {
  if (blob == NULL) return;
  blob->env->fs->pieces->close(blob->env->fs->self, &blob->file);
  weir_free(blob->env->alloc, blob->content);
  weir_free(blob->env->alloc, blob);
}

weir_status weir_blob_read(const weir_blob *blob, void *dst, size_t bytes,
                           uint64_t offset, weir_error *err) {
  const weir_fs *fs = blob->env->fs;
  if (blob->content != NULL) {
    weir_reader r = weir_reader_of(blob->content, (size_t)blob->file.bytes);
    weir_reader_seek(&r, offset);
    const uint8_t *from = weir_reader_bytes(&r, bytes);
    if (from == NULL)
      return weir_fail(err, WEIR_W4020, NULL, "'%.200s' has no byte %llu",
                       blob->path, (unsigned long long)(offset + bytes));
    if (bytes > 0) memcpy(dst, from, bytes);
    return WEIR_OK;
  }
  return fs->pieces->read(fs->self, &blob->file, blob->path, dst, bytes, offset,
                          err);
}

/* ---- Streams */

weir_status weir_stream_create(const weir_env *env, size_t window_bytes,
                               weir_stream **out_stream, weir_error *err) {
  *out_stream = NULL;
  assert(window_bytes > 0); /* windows grow by doubling */
  weir_stream *st = weir_alloc_array(env->alloc, 1, sizeof *st);
  if (st == NULL) return weir_fail_memory(err, sizeof *st);
  st->env = env;
  st->capacity = window_bytes;
  st->window = weir_alloc(env->alloc, window_bytes);
  if (st->window == NULL) {
    weir_stream_release(st);
    return weir_fail_memory(err, window_bytes);
  }
  *out_stream = st;
  return WEIR_OK;
}

void weir_stream_release(weir_stream *st) {
  if (st == NULL) return;
  weir_inflate_close(st->inflate);
  weir_free(st->env->alloc, st->packed);
  weir_free(st->env->alloc, st->window);
  weir_free(st->env->alloc, st);
}

static weir_status more_packed(void *self, weir_bytes *out, weir_error *err) {
  weir_stream *st = self;
  uint64_t left = st->blob->file.bytes - st->packed_at;
  size_t n = left < kPackedBytes ? (size_t)left : kPackedBytes;
  WEIR_TRY(weir_blob_read(st->blob, st->packed, n, st->packed_at, err));
  st->packed_at += n;
  *out = (weir_bytes){st->packed, n};
  return WEIR_OK;
}

static weir_status begin_gzip(weir_stream *st, weir_error *err) {
  const weir_allocator *alloc = st->env->alloc;
  st->packed_at = 0;
  if (st->packed == NULL) st->packed = weir_alloc(alloc, kPackedBytes);
  if (st->packed == NULL) return weir_fail_memory(err, kPackedBytes);
  if (st->inflate != NULL)
    weir_inflate_restart(st->inflate, st->blob->path);
  else
    WEIR_TRY(weir_inflate_open_pieces(alloc, more_packed, st, WEIR_INFLATE_GZIP,
                                      st->blob->path, &st->inflate, err));
  return WEIR_OK;
}

/* Adds bytes to the window's end, which has room. */
static weir_status fill_more(weir_stream *st, weir_error *err) {
  size_t room = st->capacity - st->fill, made = 0;
  assert(st->at <= st->fill && room > 0);
  if (st->blob->gzip) {
    WEIR_TRY(weir_inflate_some(st->inflate, st->window + st->fill, room, &made,
                               err));
  } else {
    uint64_t left = st->blob->file.bytes - st->fill_end;
    if (room > st->step) room = st->step;
    made = left < room ? (size_t)left : room;
    if (st->step < st->capacity) st->step *= 2;
    WEIR_TRY(weir_blob_read(st->blob, st->window + st->fill, made, st->fill_end,
                            err));
  }
  st->ended = made == 0;
  st->fill += made;
  st->fill_end += made;
  return WEIR_OK;
}

/* Restarts at the front of a gzip file, or anywhere in a plain one. */
static weir_status restart(weir_stream *st, const weir_blob *blob, uint64_t at,
                           weir_error *err) {
  st->blob = blob;
  st->at = st->fill = 0;
  st->ended = false;
  st->step = kFirstBytes;
  st->fill_end = 0;
  if (!blob->gzip) {
    st->fill_end = at < blob->file.bytes ? at : blob->file.bytes;
    return WEIR_OK;
  }
  weir_status s = begin_gzip(st, err);
  if (s != WEIR_OK) st->blob = NULL;
  return s;
}

weir_status weir_stream_attach(weir_stream *st, const weir_blob *blob,
                               uint64_t at, weir_error *err) {
  bool behind = st->blob != blob || at < st->fill_end - st->fill;
  if (behind || (!blob->gzip && at > st->fill_end))
    WEIR_TRY(restart(st, blob, at, err));
  while (at > st->fill_end && !st->ended) { /* gzip: read up to there */
    st->at = st->fill = 0;
    weir_status s = fill_more(st, err);
    if (s != WEIR_OK) st->blob = NULL;
    if (s != WEIR_OK) return s;
  }
  uint64_t back = at < st->fill_end ? st->fill_end - at : 0;
  st->at = st->fill - (size_t)back;
  return WEIR_OK;
}

uint64_t weir_stream_at(const weir_stream *st) {
  return st->fill_end - (st->fill - st->at);
}

/* Room for |want| bytes from |at| on, and for one byte at least: by moving the
 * bytes that follow to the front, or by a larger window. */
static weir_status make_room(weir_stream *st, size_t want, weir_error *err) {
  if (st->capacity - st->at >= want && st->fill < st->capacity) return WEIR_OK;
  size_t have = st->fill - st->at;
  if (want <= st->capacity) {
    memmove(st->window, st->window + st->at, have);
  } else {
    size_t bytes = st->capacity;
    while (bytes < want) bytes *= 2; /* want is bounded */
    uint8_t *window = weir_alloc(st->env->alloc, bytes);
    if (window == NULL) return weir_fail_memory(err, bytes);
    memcpy(window, st->window + st->at, have);
    weir_free(st->env->alloc, st->window);
    st->window = window;
    st->capacity = bytes;
  }
  st->at = 0;
  st->fill = have;
  return WEIR_OK;
}

weir_status weir_stream_peek(weir_stream *st, size_t want,
                             weir_bytes *out_bytes, weir_error *err) {
  weir_mark at = {.file = st->blob->path};
  if (want > WEIR_STREAM_MOST)
    return weir_fail(
        err, WEIR_W4036, &at, "a record is longer than %d bytes, at byte %llu",
        (int)WEIR_STREAM_MOST, (unsigned long long)weir_stream_at(st));
  while (st->fill - st->at < want && !st->ended) {
    WEIR_TRY(make_room(st, want, err));
    WEIR_TRY(fill_more(st, err));
  }
  *out_bytes = (weir_bytes){st->window + st->at, st->fill - st->at};
  return WEIR_OK;
}

void weir_stream_skip(weir_stream *st, size_t bytes) {
  assert(bytes <= st->fill - st->at);
  st->at += bytes;
}

weir_status weir_stream_read(weir_stream *st, void *dst, size_t bytes,
                             weir_error *err) {
  uint8_t *to = dst;
  weir_bytes some;
  while (bytes > 0) {
    size_t have = st->fill - st->at;
    if (have == 0 && !st->blob->gzip && bytes >= st->capacity) {
      uint64_t from = st->fill_end;
      st->at = st->fill = 0;
      WEIR_TRY(weir_blob_read(st->blob, to, bytes, from, err));
      st->fill_end = from + bytes;
      return WEIR_OK;
    }
    WEIR_TRY(weir_stream_peek(st, 1, &some, err));
    weir_mark at = {.file = st->blob->path};
    if (some.size == 0)
      return weir_fail(err, WEIR_W4020, &at, "'%.200s' ends before byte %llu",
                       st->blob->path,
                       (unsigned long long)(weir_stream_at(st) + bytes));
    size_t n = some.size < bytes ? some.size : bytes;
    memcpy(to, some.data, n);
    weir_stream_skip(st, n);
    to += n;
    bytes -= n;
  }
  return WEIR_OK;
}
