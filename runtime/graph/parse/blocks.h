/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_BLOCKS_H_
#define WEIR_GRAPH_BLOCKS_H_

#include "runtime/graph/load/loader.h"

/* Blocks of a module. */

/* Makes the blocks of |m| known by name, with their ports and attributes. */
bool weir_blocks_declare(weir_loader *l, weir_module *m);

/* Parses their bodies. */
bool weir_blocks_parse(weir_loader *l, weir_module *m);

/* The keys of a block; NULL ends the list. */
extern const char *const weir_block_keys[];

#endif
