/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_UPDATES_H_
#define WEIR_GRAPH_UPDATES_H_

#include "runtime/graph/load/loader.h"

/* Section `update` as items. */

/* How many items `update` makes. */
uint32_t weir_updates_count(const weir_yaml *updates);

/* Appends them. */
bool weir_updates_parse(weir_loader *l, weir_module *m, const weir_block *block,
                        const weir_yaml *updates, weir_body *body);

#endif
