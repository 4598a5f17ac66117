/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_RUN_ADD_H_
#define WEIR_DIST_RUN_ADD_H_

#include "runtime/dist/run/run_internal.h"

/* Programs and their bundles: engine.h's add and remove. */

weir_status run_add(weir_engine *engine,
                    const struct Weir__V1__Register *request, weir_error *err);
void run_remove(weir_engine *engine, uint32_t program);
run_program *run_program_get(run_engine *e, uint32_t number); /* a reference */
void run_program_unref(run_program *p);                       /* NULL-safe */
/* Programs, bundles and blobs. The pool has ended. */
void run_release_session(run_engine *e);

#endif
