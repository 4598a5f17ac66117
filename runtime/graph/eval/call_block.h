/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_CALL_BLOCK_H_
#define WEIR_GRAPH_CALL_BLOCK_H_

#include "runtime/graph/load/loader.h"

/* Calls of blocks. */

/* A scope for the call, its inputs and attributes set. */
weir_scope *weir_call_block(weir_loader *l, weir_scope *scope, weir_def *def,
                            uint32_t node, const weir_result *results);

#endif
