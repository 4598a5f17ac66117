/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_BUNDLE_BLOBS_H_
#define WEIR_DIST_BUNDLE_BLOBS_H_

#include "runtime/base/vec.h"
#include "runtime/dist/engine.h"
#include "runtime/graph/load/sources.h"

/* Bytes by their names: the files of a graph that do not travel inside its
 * bundle. */

enum {
  WEIR_BUNDLE_INLINE_BYTES = 256 << 10,
  WEIR_BUNDLE_PIECE_BYTES = 4 << 20, /* at most, of weights */
  WEIR_BUNDLE_SMALL_BYTES = 64 << 10 /* smaller tensors share a piece */
};

/* The name of |bytes| as a blob. */
void weir_blob_name(weir_bytes bytes, uint8_t out[WEIR_BLOB_NAME_BYTES]);
/* The number of bytes that |name| tells. */
uint64_t weir_blob_size(const uint8_t name[WEIR_BLOB_NAME_BYTES]);

typedef struct weir_bundle_blob {
  uint8_t name[WEIR_BLOB_NAME_BYTES];
  weir_bytes bytes; /* lent from the sources */
  uint32_t file;    /* in the sources */
} weir_bundle_blob;

typedef struct weir_bundle_blobs {
  const weir_allocator *alloc;
  WEIR_VEC(weir_bundle_blob) rows; /* by file, then by place in it */
} weir_bundle_blobs;

/* The files that are blobs of their own, or pieces. Release |out| also after an
 * error. Cost: a pass over their bytes. Errors: W6001. */
weir_status weir_bundle_blobs_make(const weir_allocator *alloc,
                                   const weir_sources *sources,
                                   weir_bundle_blobs *out, weir_error *err);
void weir_bundle_blobs_release(weir_bundle_blobs *blobs);

#endif
