/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_RUN_BLOBS_H_
#define WEIR_DIST_RUN_BLOBS_H_

#include "runtime/dist/run/run_internal.h"

/* Bytes that the driver has, by their names. All of it waits, so it is called
 * on the engine's thread. */

/* The blob of that name, fetched at most once in a session; lent until it ends.
 * Errors: W7051 (no such blob, another hash), W7012, W6001, the loss of the
 * driver. */
weir_status weir_run_blob(run_engine *e, const uint8_t *name, weir_bytes *out,
                          weir_error *err);
void weir_run_blobs_release(run_engine *e);

/* The files that |bundle| came without: whole, or, in pieces, as memory that is
 * filled where the graph and its session read it. Errors: as above. */
weir_status weir_run_files_open(run_engine *e, run_bundle *bundle,
                                weir_error *err);
/* After the bundle's graph. */
void weir_run_files_release(run_bundle *bundle);

#endif
