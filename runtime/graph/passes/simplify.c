/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/pass_def.h"

const weir_pass_def weir_pass_simplify = {
    .name = "simplify",
    .summary = "the nodes that the outputs need, equal ones merged",
    .run = weir_pass_outputs,
};
