/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_APART_H_
#define WEIR_EXEC_APART_H_

#include "runtime/base/env.h"
#include "runtime/tensor/tensor.h"

/* Whether outputs lie apart from inputs and from each other: they are written
 * while inputs are still read. NULL: another task's. Errors: W0004, W6001. */
weir_status weir_run_check_apart(const weir_allocator *alloc,
                                 weir_tensor *const *inputs,
                                 uint32_t input_count,
                                 weir_tensor *const *outputs,
                                 uint32_t output_count, weir_error *err);

#endif
