/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/random.h"

const weir_op_def weir_op_zeros = {.name = "zeros",
                                   .summary = "Zeros in a shape.",
                                   .example = "zeros([2, 3])",
                                   WEIR_CREATE_FIELDS};
