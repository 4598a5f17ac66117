/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_OPERATORS_H_
#define WEIR_GRAPH_OPERATORS_H_

#include "runtime/base/sv.h"

/* The operators of expressions: a table of spelling, strength and op. An
 * operator is a char: itself, or WEIR_FLOOR_DIV for the one of two. */

#define WEIR_FLOOR_DIV 'f' /* // */

enum { WEIR_SIGN_STRENGTH = 3 }; /* of a minus before its operand */

/* How tightly |op| binds its operands: 1 + and -, 2 * / and //; 0: it is no
 * operator. Equal ones are read from the left. */
int weir_operator_strength(char op);

/* The op whose call |op| is an abbreviation of; NULL: only constants have it.
 */
const char *weir_operator_name(char op);

/* What to write for an operator of other languages that stands at |at| of
 * |text| or ends right before it (x ** 2 is refused at its second star); NULL:
 * none stands there. Static text. */
const char *weir_operator_hint(weir_sv text, size_t at);

#endif
