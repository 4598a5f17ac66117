/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/ast.h"

enum {
  WEIR_EXACT_BYTES = 4096 /* longer text in no ASCII is marked as a whole */
};

weir_mark weir_ast_mark(const weir_ast *node) {
  weir_mark mark = node->src->mark;
  if (node->ascii) {
    mark.col += node->offset + (node->src->plain ? 0 : 1);
    mark.end_col = mark.col + node->size;
    return mark;
  }
  if (node->src->text.size > WEIR_EXACT_BYTES) return mark;
  return weir_yaml_mark_within(node->src, node->offset, node->size);
}
