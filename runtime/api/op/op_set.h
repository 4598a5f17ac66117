/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_OP_SET_H_
#define WEIR_API_OP_SET_H_

#include "kernels/kernel.h"
#include "runtime/weir.h"

/* The ops that a host program registered with a runtime: a registry before the
 * built-in one.
 *
 * It is filled first and read afterwards: the first reader seals it, so readers
 * need no lock. It is counted, since graphs outlive their runtime: the runtime
 * holds it, and each graph does through weir_registry.hold. */

/* An op and its kernel; both point to the host's functions through the first
 * member of |def|'s place. */
typedef struct weir_host_op {
  weir_op_def def;
  weir_kernel_def kernel;
  weir_op_spec spec; /* the functions and |self|; its text is not kept */
} weir_host_op;

typedef struct weir_op_set weir_op_set;

/* Of a definition that only a host's op has. */
static inline const weir_host_op *weir_host_op_of(const weir_op_def *def) {
  return (const weir_host_op *)def; /* its first member */
}

/* Drops a reference; NULL-safe. */
void weir_op_set_release(weir_op_set *set);

#endif
