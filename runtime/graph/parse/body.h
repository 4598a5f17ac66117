/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_BODY_H_
#define WEIR_GRAPH_BODY_H_

#include "runtime/graph/load/loader.h"

/* A map of nodes as items. */

/* Makes room for |capacity| items. */
bool weir_body_begin(weir_loader *l, weir_body *body, uint32_t capacity);

/* Parses a `nodes` map and appends its items; |block| is the block it is in or
 * NULL. */
bool weir_body_add_nodes(weir_loader *l, weir_module *m,
                         const weir_block *block, const weir_yaml *nodes,
                         weir_body *body);

/* Declares the plain names of the last item; W1104 when one is taken. */
bool weir_body_declare(weir_loader *l, const weir_module *m,
                       const weir_block *block, weir_body *body);

/* A name of a body. */
typedef struct weir_body_name {
  weir_sv name;
  const weir_mark *mark;
  uint32_t code; /* its meaning, WEIR_BIND_* */
} weir_body_name;

/* Gives |name| its meaning; W1104 when it is taken. */
bool weir_body_bind(weir_loader *l, const weir_module *m,
                    const weir_block *block, weir_body *body,
                    const weir_body_name *name);

#endif
