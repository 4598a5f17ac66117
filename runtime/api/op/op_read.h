/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_OP_READ_H_
#define WEIR_API_OP_READ_H_

#include "runtime/api/op/op_set.h"

/* Checks the caller's |spec|, read already, and fills |out|, whose text lies in
 * |arena|. Errors: W0002, W0004, W6001. */
weir_status weir_op_read(const weir_op_spec *spec, weir_arena *arena,
                         weir_host_op *out, weir_error *err);

#endif
