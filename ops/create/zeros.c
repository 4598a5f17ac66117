/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/create/random.h"
#include "ops/rules.h"

const weir_op_def weir_op_zeros = {.name = "zeros",
                                   .summary = "Zeros in a shape.",
                                   .example = "zeros([2, 3])",
                                   .outputs = {{"y", "T"}},
                                   .types = {{"T", WEIR_ALL_TYPES, "dtype"}},
                                   .attrs = {WEIR_CREATE_ATTRS},
                                   .refuses = {WEIR_CREATE_REFUSES},
                                   .shape = weir_rule_attr_shape,
                                   .cost = weir_cost_bytes};
