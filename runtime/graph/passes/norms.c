/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/pass_def.h"

const weir_pass_def weir_pass_norms = {
    .name = "norms",
    .summary = "convolutions that have taken the batch_norm behind them along",
    .run = weir_pass_norms_folded,
};
