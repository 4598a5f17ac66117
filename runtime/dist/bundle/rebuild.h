/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_REBUILD_H_
#define WEIR_DIST_REBUILD_H_

#include "runtime/dist/bundle/bundle.h"
#include "runtime/graph/train/train.h"

/* The graph and the placing of a bundle that is complete. */

typedef struct weir_rebuilt {
  weir_graph *loaded;
  weir_train_spec *spec;   /* NULL: no training */
  weir_train_graph *train; /* likewise */
  const weir_graph *graph; /* the one that runs: lent from the above */
  weir_placing *placing;
} weir_rebuilt;

/* Loads |bundle|'s graph with the ops of |registry|, rewrites it for training
 * if it says so, and reads its placing. |env| and |bundle| are lent for the
 * life of |out|, which is released also after an error; |env->fs| is not used.
 * Blocks. Errors: W7085 (names the first op that the driver has registered and
 * |registry| lacks or has otherwise), those of weir_graph_load,
 * weir_graph_train and weir_placing_unpack. */
weir_status weir_bundle_rebuild(const weir_env *env,
                                const weir_registry *registry,
                                weir_unpacked_bundle *bundle, weir_rebuilt *out,
                                weir_error *err);
void weir_rebuilt_release(weir_rebuilt *rebuilt);

#endif
