/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/random.h"

const weir_op_def weir_op_ones = {.name = "ones",
                                  .summary = "Ones in a shape.",
                                  .example = "ones([2, 3])",
                                  WEIR_CREATE_FIELDS};
