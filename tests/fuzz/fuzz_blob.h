/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_FUZZ_BLOB_H_
#define TESTS_FUZZ_FUZZ_BLOB_H_

#include <string.h>

#include "runtime/io/stream.h"
#include "tests/fuzz/fuzz.h"

/* A file whose content is the input, and a stream at its start. */
typedef struct fuzz_blob {
  const uint8_t *data;
  size_t size;
  weir_fs fs;
  weir_env env;
  weir_blob *blob;
} fuzz_blob;

static inline weir_status fuzz_open(void *self, const char *root,
                                    const char *path, weir_piece_file *out,
                                    weir_error *err) {
  fuzz_blob *b = self;
  (void)root;
  (void)path;
  (void)err;
  *out = (weir_piece_file){b->size, b};
  return WEIR_OK;
}

static inline void fuzz_close(void *self, weir_piece_file *file) {
  (void)self;
  *file = (weir_piece_file){0};
}

static inline weir_status fuzz_read(void *self, const weir_piece_file *file,
                                    const char *path, void *dst, size_t bytes,
                                    uint64_t offset, weir_error *err) {
  const fuzz_blob *b = self;
  (void)file;
  (void)path;
  (void)err;
  FUZZ_CHECK(offset <= b->size && bytes <= b->size - offset);
  if (bytes > 0) memcpy(dst, b->data + offset, bytes);
  return WEIR_OK;
}

static const weir_fs_pieces kFuzzPieces = {fuzz_open, fuzz_close, fuzz_read,
                                           NULL};

static inline weir_stream *fuzz_blob_open(fuzz_blob *b, const uint8_t *data,
                                          size_t size, size_t window) {
  weir_stream *stream = NULL;
  weir_error err = WEIR_ERROR_INIT;
  *b = (fuzz_blob){.data = data, .size = size};
  b->fs = (weir_fs){.self = b, .pieces = &kFuzzPieces};
  b->env = (weir_env){.alloc = weir_allocator_system(), .fs = &b->fs};
  FUZZ_CHECK(weir_blob_open(&b->env, NULL, "f", &b->blob, &err) == WEIR_OK);
  FUZZ_CHECK(weir_stream_create(&b->env, window, &stream, &err) == WEIR_OK);
  FUZZ_CHECK(weir_stream_attach(stream, b->blob, 0, &err) == WEIR_OK);
  return stream;
}

static inline void fuzz_blob_close(fuzz_blob *b, weir_stream *stream) {
  weir_stream_release(stream);
  weir_blob_release(b->blob);
}

#endif
