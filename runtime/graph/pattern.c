/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pattern.h"

/* Greedy, with one place to come back to: after a mismatch only the last star
 * needs to take more, since an earlier one could only move the same rest
 * further right. So there is no recursion and no stack. */
bool weir_pattern_fits(weir_sv pattern, weir_sv name) {
  size_t p = 0, n = 0, star = SIZE_MAX, mark = 0;
  while (n < name.size) {
    if (p < pattern.size && pattern.data[p] == '*') {
      star = p++;
      mark = n;
    } else if (p < pattern.size &&
               (pattern.data[p] == '?' || pattern.data[p] == name.data[n])) {
      p++;
      n++;
    } else if (star != SIZE_MAX) { /* the last star takes one more byte */
      p = star + 1;
      n = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size && pattern.data[p] == '*') p++;
  return p == pattern.size;
}

bool weir_pattern_fits_var(weir_sv pattern, const weir_graph *graph,
                           weir_node_id id) {
  const weir_node *node = &graph->nodes[id];
  const weir_shape *shape = graph->values[node->first_output].shape;
  if (weir_sv_is(pattern, "kind:var")) return true;
  if (weir_sv_is(pattern, "kind:bias")) return shape->rank <= 1;
  if (weir_sv_is(pattern, "kind:weight")) return shape->rank > 1;
  return weir_pattern_fits(pattern, node->name);
}

weir_sv weir_segment_of(weir_sv pattern, weir_sv name) {
  for (size_t n = 1; n <= name.size; n++) {
    weir_sv head = {name.data, n};
    if ((n == name.size || name.data[n] == '/') &&
        weir_pattern_fits(pattern, head))
      return head;
  }
  return (weir_sv){name.data, 0};
}
