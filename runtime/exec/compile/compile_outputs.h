/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_OUTPUTS_H_
#define WEIR_EXEC_COMPILE_OUTPUTS_H_

#include "runtime/exec/compile/compile_internal.h"

/* Compiles the outputs of a program. */

/* Points fetched and committed values to their externals, or copies them. */
weir_status weir_compile_outputs(weir_compiler *c, weir_error *err);

#endif
