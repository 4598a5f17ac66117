/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_SCOPE_H_
#define WEIR_GRAPH_SCOPE_H_

#include "runtime/graph/load/loader.h"

/* Scopes: one for the main graph and one for each call of a block. */

/* A scope in the work arena, without definitions; NULL: no memory, reported. */
weir_scope *weir_scope_create(weir_loader *l, const weir_body *body,
                              weir_module *m, const weir_block *block);

/* Makes the definitions. The scope's attributes must be set. */
bool weir_scope_expand(weir_loader *l, weir_scope *scope);

void weir_scope_release(weir_loader *l, weir_scope *scope);

#endif
