/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_optim.h"

#include <stddef.h>

#include "runtime/graph/train/train_rules.h"

/* The optimizers, one row each. The rest follows from the names of the op's
 * inputs and attributes; see weir_optimizer_def. */

static const weir_optimizer_def kOptimizers[] = {
    {"sgd", {NULL}, "apply_sgd", {{NULL}}},
    {"momentum", {NULL}, "apply_momentum", {{"accum"}}},
    {"adagrad",
     {NULL},
     "apply_adagrad",
     {{"accum", .initial = "initial", .fallback = 0.1}}},
    {"proximal_sgd", {NULL}, "apply_proximal_sgd", {{NULL}}},
    {"proximal_adagrad",
     {NULL},
     "apply_proximal_adagrad",
     {{"accum", .initial = "initial", .fallback = 0.1}}},
    {"rms_prop",
     {"rmsprop"},
     "apply_rms_prop",
     {{"ms"},
      {"mom", .only_if_attr = "momentum"},
      {"mg", .only_if_attr = "centered"}}},
    {"adam", {NULL}, "apply_adam", {{"m"}, {"v"}}},
    {"adamw", {NULL}, "apply_adamw", {{"m"}, {"v"}}},
};

const weir_optimizer_def *weir_optimizer_at(size_t i) {
  return i < sizeof kOptimizers / sizeof kOptimizers[0] ? &kOptimizers[i]
                                                        : NULL;
}
