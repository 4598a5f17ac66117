/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_BLOBS_H_
#define WEIR_DIST_CLUSTER_BLOBS_H_

#include <pthread.h>

#include "runtime/base/env.h"
#include "runtime/dist/engine.h"

/* Bytes that tasks may ask for by their names: bundles, plans, weights. Any
 * thread. */

typedef struct weir_dist_blob weir_dist_blob;

typedef struct weir_dist_blobs {
  const weir_env *env;
  pthread_mutex_t lock;
  pthread_cond_t sent;
  weir_dist_blob *first;
} weir_dist_blobs;

void weir_dist_blobs_init(weir_dist_blobs *blobs, const weir_env *env);
void weir_dist_blobs_release(weir_dist_blobs *blobs);

/* |bytes| are lent until drop. The same name may be added several times; any of
 * them is served. Errors: W6001. */
weir_status weir_dist_blobs_add(weir_dist_blobs *blobs, const uint8_t *name,
                                weir_bytes bytes, weir_dist_blob **out,
                                weir_error *err);
/* Takes it away and waits until it is on no way to a task. NULL-safe. */
void weir_dist_blobs_drop(weir_dist_blobs *blobs, weir_dist_blob *blob);

struct weir_exchange;
/* Sends the blob |name| to |place| as slot (BLOB, number, 0), or W7051 in its
 * place if there is none. Errors: W6001. */
weir_status weir_dist_blobs_send(weir_dist_blobs *blobs,
                                 struct weir_exchange *values, uint32_t place,
                                 const uint8_t *name, uint32_t number,
                                 weir_error *err);

#endif
