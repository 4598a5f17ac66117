/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_RUN_LIMITS_H_
#define WEIR_DIST_RUN_LIMITS_H_

#include "runtime/dist/run/run_internal.h"

/* What requests for variables may take in a session: their number, the
 * variables that they name, and the bytes of values that are on their way. */

enum {
  RUN_VARS_REQUESTS = 1024,
  RUN_VARS_NODES = 1 << 18,   /* named by all of them */
  RUN_VARS_READ_MIB = 256,    /* more wait until others have left */
  RUN_VARS_WRITTEN_MIB = 1024 /* more are refused */
};

/* Once, for an engine. */
void run_vars_init(run_engine *e);
/* Counts a request for |count| variables, until run_vars_leave. Errors: W7031.
 */
weir_status run_vars_admit(run_engine *e, size_t count, weir_error *err);

/* Counts |v->bytes| of values that are read. |*out_waits|: there is no room,
 * and |v->job| comes again when there is. A request that is alone always has
 * room. The engine's own thread. Errors: W7027 (the session ends). */
weir_status run_vars_take(run_engine *e, run_vars *v, bool *out_waits,
                          weir_error *err);
/* The same for values that are written. Errors: W7031. */
weir_status run_vars_take_written(run_engine *e, run_vars *v, weir_error *err);

/* A request for |count| variables is over; |v|, which has its memory no more,
 * may be NULL. */
void run_vars_leave(run_engine *e, size_t count, const run_vars *v);

/* The requests that wait, taken off the engine: the session ends. */
run_vars *run_vars_strand(run_engine *e);

#endif
