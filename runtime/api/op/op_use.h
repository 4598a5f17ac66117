/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_OP_USE_H_
#define WEIR_API_OP_USE_H_

#include "kernels/kernel.h"

/* A host's functions in the forms of ops/op.h and kernels/kernel.h. */

/* Errors: W2022 with the host's words, those of setting a shape. */
weir_status weir_host_op_shape(weir_shape_ctx *ctx);
void weir_host_op_cost(const weir_call *call, weir_cost *out);
/* Errors: W6001. */
weir_status weir_host_op_prepare(const weir_call *call, weir_prepared *out,
                                 weir_error *err);
/* Errors: W5001 with the host's words. */
weir_status weir_host_op_run(const weir_args *args);

#endif
