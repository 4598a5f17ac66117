/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_OUTPUTS_H_
#define WEIR_EXEC_COMPILE_OUTPUTS_H_

#include "runtime/exec/compile/compile_internal.h"

/* Compiles what leaves the program. */

/* Points what is fetched or committed to its external, or copies it there. */
weir_status weir_compile_outputs(weir_compiler *c, weir_error *err);

#endif
