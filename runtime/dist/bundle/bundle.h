/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_BUNDLE_H_
#define WEIR_DIST_BUNDLE_H_

#include "placement/place.h"
#include "runtime/base/strbuf.h"
#include "runtime/dist/engine.h"
#include "runtime/graph/load/sources.h"

/* Bundles: the session of a driver, as bytes.
 *
 * A task gets neither graphs nor programs but what the driver's session was
 * made of: the files that the loader read, the parameters, the options, the
 * placing. It loads and rewrites the graph by the same code, so both have equal
 * graphs, which hashes confirm. Files above WEIR_BUNDLE_INLINE_BYTES are blobs
 * of their own, named by their bytes, so that a task fetches each once.
 *
 *   driver: weir_bundle_pack(alloc, &bundle, graph, &bytes, err);
 *           weir_bundle_blobs(alloc, &bundle, &blobs, &count, err);
 *   task:   weir_bundle_unpack(alloc, bytes, &unpacked, err);
 *           for each of unpacked.missing: weir_bundle_supply(...)
 *           weir_graph_load_sources(env, &unpacked.sources, ...)
 *
 * What comes is not trusted: it is checked whole. */

enum { WEIR_BUNDLE_INLINE_BYTES = 256 << 10 };

/* All is lent. */
typedef struct weir_bundle {
  const weir_sources *sources;
  bool train; /* the graph that runs is weir_graph_train of the loaded one */
  const weir_placing *placing;
  bool no_fusion, no_fold, ref_kernels, no_layout;
  uint64_t session_seed;
  size_t memory_limit;
} weir_bundle;

/* The name of |bytes| as a blob. */
void weir_blob_name(weir_bytes bytes, uint8_t out[WEIR_BLOB_NAME_BYTES]);
/* The number of bytes that |name| tells. */
uint64_t weir_blob_size(const uint8_t name[WEIR_BLOB_NAME_BYTES]);

/* Appends |bundle|; |run_graph| is the session's own graph (a mesh is lowered).
 * Errors: W6001. */
weir_status weir_bundle_pack(const weir_allocator *alloc,
                             const weir_bundle *bundle,
                             const weir_graph *run_graph, weir_strbuf *out,
                             weir_error *err);

typedef struct weir_bundle_blob {
  uint8_t name[WEIR_BLOB_NAME_BYTES];
  weir_bytes bytes; /* lent from the sources */
} weir_bundle_blob;

/* The files that are blobs of their own; the caller frees |*out|. Errors:
 * W6001. */
weir_status weir_bundle_blobs(const weir_allocator *alloc,
                              const weir_bundle *bundle, weir_bundle_blob **out,
                              size_t *out_count, weir_error *err);

/* A file that came without its bytes. */
typedef struct weir_bundle_missing {
  uint8_t name[WEIR_BLOB_NAME_BYTES];
  uint32_t file; /* in |sources.files| */
} weir_bundle_missing;

/* A bundle that came. Its memory is its own, but for supplied bytes. */
typedef struct weir_unpacked_bundle {
  weir_arena arena;
  weir_bundle bundle; /* |sources| is the one below; no placing */
  weir_sources sources;
  weir_source_file *files; /* of |sources| */
  weir_bytes placing;      /* for weir_placing_unpack */
  const weir_bundle_missing *missing;
  uint32_t missing_count;
} weir_unpacked_bundle;

/* Release |out| also after an error. Errors: W7051, W6001. */
weir_status weir_bundle_unpack(const weir_allocator *alloc, weir_bytes bytes,
                               weir_unpacked_bundle *out, weir_error *err);
/* Gives missing file |i| its bytes, which must stay as long as |bundle|.
 * Errors: W7051 where they have another name. */
weir_status weir_bundle_supply(weir_unpacked_bundle *bundle, uint32_t i,
                               weir_bytes bytes, weir_error *err);
void weir_unpacked_bundle_release(weir_unpacked_bundle *bundle);

#endif
