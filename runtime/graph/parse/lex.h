/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_LEX_H_
#define WEIR_GRAPH_LEX_H_

#include "runtime/graph/parse/ast.h"

/* Tokens of call strings. */

/* The token at |offset| or behind the blanks there; END past the text. Pure. */
void weir_lex(weir_sv text, uint32_t offset, weir_token *t);

bool weir_is_name(weir_sv text); /* letters, digits and _, at most 256 */

#endif
