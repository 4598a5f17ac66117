/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_RUN_STEP_H_
#define WEIR_DIST_RUN_STEP_H_

#include "runtime/dist/run/run_internal.h"

/* Steps: engine.h's start, commit and abort. */

weir_status run_start(weir_engine *engine, const weir_engine_step *step,
                      weir_error *err);
void run_commit(weir_engine *engine, uint64_t step);
void run_abort(weir_engine *engine, uint64_t step, const weir_error *why);
/* Gives up all steps. */
void run_abort_all(run_engine *e, const weir_error *why);

/* |p| for the session, with |feeds| and |options|, which are lent; its fetches
 * lie in |arena|. Errors: W6001. */
weir_status run_program_request(const run_program *p, weir_arena *arena,
                                const weir_exec_feed *feeds,
                                const weir_run_options *options,
                                weir_exec_request *out, weir_error *err);

#endif
