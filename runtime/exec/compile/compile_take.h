/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_TAKE_H_
#define WEIR_EXEC_COMPILE_TAKE_H_

#include "runtime/exec/compile/compile_internal.h"

/* Makes the receive of one of |e|'s inputs do |e|'s work, where it can; then
 * |*taken|, and |e| leaves no instruction of its own. Errors: W6001, W2008. */
weir_status weir_compile_take(weir_compiler *c, const weir_emit *e, bool *taken,
                              weir_error *err);

#endif
