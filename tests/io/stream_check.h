/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_IO_STREAM_CHECK_H_
#define TESTS_IO_STREAM_CHECK_H_

#include <string.h>

#include "runtime/base/strbuf.h"
#include "runtime/io/stream.h"
#include "tests/check.h"

/* Streams over bytes in memory, with an allocator that must end empty. */

typedef struct mem_file {
  const void *data;
  size_t size;
} mem_file;

typedef struct mem_env {
  weir_counted_allocator counted;
  weir_fs fs;
  weir_env env;
} mem_env;

static inline weir_status mem_fs_open(void *self, const char *root,
                                      const char *path, weir_piece_file *out,
                                      weir_error *err) {
  mem_file *m = self;
  (void)root;
  (void)path;
  (void)err;
  *out = (weir_piece_file){m->size, m};
  return WEIR_OK;
}

static inline void mem_fs_close(void *self, weir_piece_file *file) {
  (void)self;
  *file = (weir_piece_file){0};
}

static inline weir_status mem_fs_read(void *self, const weir_piece_file *file,
                                      const char *path, void *dst, size_t bytes,
                                      uint64_t offset, weir_error *err) {
  const mem_file *m = self;
  (void)file;
  if (offset > m->size || bytes > m->size - offset)
    return weir_fail(err, WEIR_W4020, NULL, "'%s' is too short", path);
  if (bytes > 0) memcpy(dst, (const char *)m->data + offset, bytes);
  return WEIR_OK;
}

static inline void mem_env_init(mem_env *e, mem_file *m) {
  static const weir_fs_pieces kPieces = {mem_fs_open, mem_fs_close, mem_fs_read,
                                         NULL};
  weir_counted_allocator_init(&e->counted, NULL);
  e->fs = (weir_fs){.self = m, .pieces = &kPieces};
  e->env = (weir_env){.alloc = &e->counted.base, .fs = &e->fs};
}

static inline weir_blob *mem_open(mem_env *e, mem_file *m) {
  weir_error err = WEIR_ERROR_INIT;
  weir_blob *blob = NULL;
  mem_env_init(e, m);
  assert_ok(weir_blob_open(&e->env, NULL, "f", &blob, &err), &err);
  return blob;
}

static inline weir_stream *mem_stream(mem_env *e, const weir_blob *blob,
                                      size_t window) {
  weir_error err = WEIR_ERROR_INIT;
  weir_stream *stream = NULL;
  assert_ok(weir_stream_create(&e->env, window, &stream, &err), &err);
  assert_ok(weir_stream_attach(stream, blob, 0, &err), &err);
  return stream;
}

static inline void mem_close(mem_env *e, weir_blob *blob) {
  weir_blob_release(blob);
  assert_int_equal(atomic_load(&e->counted.live_blocks), 0);
}

#endif
