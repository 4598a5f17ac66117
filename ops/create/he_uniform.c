/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/random.h"

const weir_op_def weir_op_he_uniform = {
    .name = "he_uniform",
    .summary = "Initial weights, uniform within sqrt(6 / fan_in) of 0.",
    .source = "He et al., ICCV 2015, 1026-1034",
    .example = "var([784, 128], init=he_uniform())",
    WEIR_FAN_FIELDS};
