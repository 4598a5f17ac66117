/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_RUN_VARS_H_
#define WEIR_DIST_RUN_VARS_H_

#include "runtime/dist/run/run_internal.h"

/* Variables, and the waits of running steps: engine.h's get, set, pending. */

weir_status run_get(weir_engine *engine, uint32_t program, uint64_t request,
                    const uint32_t *nodes, size_t count, weir_error *err);
weir_status run_set(weir_engine *engine, uint32_t program, uint64_t request,
                    const uint32_t *nodes, size_t count, weir_error *err);
/* Ends the requests that wait for room: the session ends. */
void run_vars_end(run_engine *e, const weir_error *why);
size_t run_pending(weir_engine *engine, weir_engine_wait *waits,
                   size_t capacity, uint32_t *out_running);

#endif
