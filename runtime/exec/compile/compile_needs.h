/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_NEEDS_H_
#define WEIR_EXEC_COMPILE_NEEDS_H_

#include "placement/lower/lower.h"
#include "runtime/base/env.h"

/* The memory that compiled nodes take, for the placer: kernels, layouts, views
 * and folding are chosen as weir_compile chooses them, but nothing is packed,
 * computed or run. */

/* A weir_lower_ask; |self|: the weir_env. Errors: those of weir_compile. */
weir_status weir_compile_needs(const void *self, const weir_graph *graph,
                               uint32_t threads, weir_lower_needs *out,
                               weir_error *err);

#endif
