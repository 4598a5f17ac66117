/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_BUNDLE_H_
#define WEIR_DIST_BUNDLE_H_

#include "placement/place.h"
#include "runtime/base/strbuf.h"
#include "runtime/dist/bundle/bundle_blobs.h"

/* Bundles: the session of a driver, as bytes.
 *
 * A task gets neither graphs nor programs but what the driver's session was
 * made of: the files that the loader read, the parameters, the options, the
 * placing. It loads and rewrites the graph by the same code, so both have equal
 * graphs, which hashes confirm. Files above WEIR_BUNDLE_INLINE_BYTES are blobs
 * of their own, named by their bytes. A file of weights is many blobs, its
 * pieces, which end where tensors do: a task fetches the header, and then those
 * of the variables that it has or compiles in, once.
 *
 *   driver: weir_bundle_blobs_make(alloc, sources, &blobs, err);
 *           weir_bundle_pack(alloc, &bundle, &blobs, graph, &bytes, err);
 *   task:   weir_bundle_unpack(alloc, bytes, &unpacked, err);
 *           for each of unpacked.missing: weir_bundle_supply(...), or, where it
 *           is in pieces, weir_bundle_supply_later(...)
 *           weir_graph_load_sources(env, &unpacked.sources, ...)
 *
 * What comes is not trusted: it is checked whole. */

/* All is lent. */
typedef struct weir_bundle {
  const weir_sources *sources;
  bool train; /* the graph that runs is weir_graph_train of the loaded one */
  const weir_placing *placing;
  bool no_fusion, no_fold, ref_kernels, no_layout, tf32;
  uint64_t session_seed;
  size_t memory_limit;
  /* Of the driver's sessions: two of the same graph have variables of their
   * own, so they are two bundles. */
  uint64_t number;
} weir_bundle;

/* Appends |bundle|, whose blobs are |blobs|; |run_graph| is the session's own
 * graph (a mesh is lowered). Errors: W6001. */
weir_status weir_bundle_pack(const weir_allocator *alloc,
                             const weir_bundle *bundle,
                             const weir_bundle_blobs *blobs,
                             const weir_graph *run_graph, weir_strbuf *out,
                             weir_error *err);

/* A file that came without its bytes. */
typedef struct weir_bundle_missing {
  uint32_t file; /* in |sources.files| */
  bool in_pieces;
  uint32_t count; /* of names: 1, or of pieces in their order */
  const uint8_t (*names)[WEIR_BLOB_NAME_BYTES];
  uint64_t bytes; /* the file's */
} weir_bundle_missing;

/* A bundle that came. Its memory is its own, but for supplied bytes. */
typedef struct weir_unpacked_bundle {
  weir_arena arena;
  weir_bundle bundle; /* |sources| is the one below; no placing */
  weir_sources sources;
  weir_source_file *files; /* of |sources| */
  /* Ops that the driver's program has registered: names and signatures. */
  const weir_param_value *ops;
  size_t op_count;
  weir_bytes placing; /* for weir_placing_unpack */
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
/* Gives missing file |i|, which is in pieces, memory of its size, and the
 * function that fills parts of it, as weir_file.need. Both stay as long as
 * |bundle| and its graph. */
void weir_bundle_supply_later(weir_unpacked_bundle *bundle, uint32_t i,
                              const void *memory,
                              weir_status (*need)(void *self, uint64_t offset,
                                                  size_t size, weir_error *err),
                              void *self);
void weir_unpacked_bundle_release(weir_unpacked_bundle *bundle);

#endif
