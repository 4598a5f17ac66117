/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_CUT_H_
#define WEIR_EXEC_COMPILE_CUT_H_

#include "runtime/exec/compile/compile.h"
#include "runtime/graph/pass/cut.h"

/* The part of a graph that a request needs. */

/* The nodes that a program of |request| carries out. |placed|: every input
 * counts as fed, so that the cut does not depend on the defaults that the
 * caller overrode, and equal nodes are merged under all options: plans are made
 * for this cut.
 * Errors: W4012 (|placed|: an input is wanted and not fed), the ops' own,
 * W6001. */
weir_status weir_compile_cut(const weir_env *env,
                             const weir_compile_request *request, bool placed,
                             weir_cut **out_cut, weir_error *err);
/* Whether an `input` node must be fed; the error when it was not: W4012. */
bool weir_compile_lacks_default(const weir_node *node);
weir_status weir_compile_fail_unfed(const weir_node *node, weir_error *err);

#endif
