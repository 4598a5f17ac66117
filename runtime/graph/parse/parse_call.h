/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_PARSE_CALL_H_
#define WEIR_GRAPH_PARSE_CALL_H_

#include "runtime/graph/parse/ast.h"

/* Parses call strings. */

/* Empty; NULL when out of memory. |alloc| must outlive it. */
weir_parser *weir_parser_create(const weir_allocator *alloc);

void weir_parser_release(weir_parser *parser); /* NULL-safe */

/* Parses one expression of |src|'s text from |*offset| on; stops before `@`,
 * `=` or the end of text and sets |*offset| there. Appends the nodes to the
 * parser's array; the root is the last. */
weir_parse_result weir_parse_expr(weir_parser *parser, const weir_yaml *src,
                                  uint32_t *offset, weir_parse_error *error);

/* The nodes so far, for long forms that put calls together by hand. */
weir_ast_vec *weir_parser_nodes(weir_parser *parser);

/* Appends a node whose |count| operands are the given roots. */
bool weir_parser_emit(weir_parser *parser, const weir_ast *node,
                      const uint32_t *roots, uint32_t count);

/* Copies the nodes to |arena| and empties the parser's array. */
bool weir_parser_take(weir_parser *parser, weir_arena *arena, weir_expr *out);

#endif
