/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_MAP_BLOCK_H_
#define WEIR_TRAIN_DATA_MAP_BLOCK_H_

#include "runtime/train/data/data.h"

/* The graph of a block that `map` names. */

/* Appends the text of a graph that calls the block which `map` names. Errors:
 * W4034, those of YAML, W6001. */
weir_status weir_data_map_block_text(const weir_dataset *set,
                                     weir_strbuf *out_text, weir_error *err);

#endif
