/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_CONTROL_H_
#define WEIR_EXEC_COMPILE_CONTROL_H_

#include "runtime/exec/compile/compile_internal.h"

/* Compiles nodes with bodies. */

/* The instruction of a node with bodies. */
weir_status weir_compile_control(weir_compiler *c, weir_node_id id,
                                 weir_error *err);

#endif
