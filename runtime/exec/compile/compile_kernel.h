/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_KERNEL_H_
#define WEIR_EXEC_COMPILE_KERNEL_H_

#include "runtime/exec/compile/compile_internal.h"

/* Chooses kernels of nodes and groups. */

/* Emits node |id| alone. */
weir_status weir_compile_node(weir_compiler *c, weir_node_id id,
                              weir_error *err);

/* Emits all members of |group| as one; |*done| is false when no group kernel
 * takes them, then |*reason| says why. */
weir_status weir_compile_group(weir_compiler *c, uint32_t group, bool *done,
                               const char **reason, weir_error *err);

/* The call of node |id| in the arena. */
weir_status weir_compile_call(weir_compiler *c, weir_node_id id,
                              const weir_op_def *op, const weir_attr *attrs,
                              weir_call **out_call, weir_error *err);

/* Chooses a kernel for |emit|'s only call and prepares it. */
weir_status weir_compile_choose(weir_compiler *c, weir_emit *emit,
                                const char *also, weir_error *err);

/* Whether the kernel that node |id|, or its group, would get looks at layouts
 * itself, as c->layouts are now. */
weir_status weir_compile_takes_layouts(weir_compiler *c, weir_node_id id,
                                       bool *out_takes, weir_error *err);

#endif
