/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_COMM_H_
#define WEIR_EXEC_COMPILE_COMM_H_

#include "runtime/exec/compile/compile_internal.h"

/* Compiles collectives. */

/* One rank's part, over the frame's channel. */
weir_status weir_compile_collective(weir_compiler *c, weir_node_id id,
                                    weir_error *err);

#endif
