/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_OVERRIDES_H_
#define WEIR_GRAPH_OVERRIDES_H_

#include "runtime/graph/load/loader.h"

/* Puts the values of |l->options->overrides| into the tree of the main file:
 * each takes the place of what stands at its path, "train.steps" or
 * "data.train.files.0", or is added to the map there; maps on the way are made.
 * A dot within a key is written "\.". Later ones win. False: reported (W1137,
 * or what is wrong with the YAML of a value). */
bool weir_overrides_apply(weir_loader *l, weir_module *main);

#endif
