/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/ast.h"

#include "runtime/graph/parse/operators.h"

enum {
  WEIR_EXACT_BYTES = 4096 /* longer text in no ASCII is marked as a whole */
};

weir_mark weir_ast_mark(const weir_ast *node) {
  weir_mark mark = node->src->mark;
  uint32_t offset = node->offset, size = node->size;
  if (node->kind == WEIR_AST_BINARY) {
    offset = (uint32_t)node->i;
    size = node->op == WEIR_FLOOR_DIV ? 2 : 1;
  }
  if (node->ascii) {
    mark.col += offset + (node->src->plain ? 0 : 1);
    mark.end_col = mark.col + size;
    return mark;
  }
  if (node->src->text.size > WEIR_EXACT_BYTES) return mark;
  return weir_yaml_mark_within(node->src, offset, size);
}

static char char_at(weir_sv text, size_t i) {
  return i < text.size ? text.data[i] : ' ';
}

bool weir_ast_is_path(const weir_ast *node) {
  weir_sv text = node->src->text;
  size_t from = node->offset, to = from + node->size;
  if (node->kind == WEIR_AST_BINARY)
    return node->op == '/' && char_at(text, (size_t)node->i - 1) != ' ' &&
           char_at(text, (size_t)node->i + 1) != ' ';
  bool before = from > 1 && char_at(text, from - 1) == '/' &&
                char_at(text, from - 2) != ' ' &&
                char_at(text, from - 2) != '/';
  bool behind = char_at(text, to) == '/' && char_at(text, to + 1) != ' ' &&
                char_at(text, to + 1) != '/';
  return before || behind;
}

void weir_ast_set_name(weir_ast *n, weir_sv text) {
  const char *dot = memchr(text.data, '.', text.size);
  n->text = text;
  n->field = (weir_sv){NULL, 0};
  if (dot == NULL) return;
  n->text.size = (size_t)(dot - text.data);
  n->field = (weir_sv){dot + 1, text.size - n->text.size - 1};
}

bool weir_ast_is_ascii(const weir_yaml *src) {
  const weir_mark *mark = &src->mark;
  size_t quotes = src->plain ? 0 : 2;
  if (mark->line != mark->end_line || src->anchor.line != 0 ||
      mark->end_col - mark->col != src->text.size + quotes)
    return false;
  unsigned char all = 0;
  for (size_t i = 0; i < src->text.size; i++)
    all |= (unsigned char)src->text.data[i];
  return all < 0x80;
}
