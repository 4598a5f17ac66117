/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_dot.h"

#include "placement/report/dump_internal.h"

/* Names inside quotes: `"` and `\` are escaped. */
static const char *quoted(const weir_place_problem *p, uint32_t n, char *text) {
  char name[300];
  size_t used = 0;
  weir_place_node_text(p, n, name);
  for (const char *c = name; *c != 0 && used < 590; c++) {
    if (*c == '"' || *c == '\\') text[used++] = '\\';
    text[used++] = *c;
  }
  text[used] = 0;
  return text;
}

static bool write_device(const weir_place_view *v, const weir_writer *out,
                         uint32_t d) {
  char name[600], ns[32];
  const weir_place_plan *plan = v->plan;
  bool ok =
      weir_place_print(out, "  subgraph cluster_%u {\n    label=\"%.*s\";\n", d,
                       WEIR_SV(v->problem->devices[d].name));
  for (uint32_t n = 0; n < plan->node_count && ok; n++)
    if (plan->device[n] == d)
      ok = weir_place_print(
          out, "    n%u [label=\"%s\\n%s %s\"];\n", n,
          quoted(v->problem, n, name), weir_place_op_text(v, n),
          weir_quantity_print_time(plan->end_ns[n] - plan->start_ns[n], ns));
  return ok && weir_place_print(out, "  }\n");
}

bool weir_place_write_dot(const weir_place_view *v, const weir_writer *out) {
  const weir_place_problem *p = v->problem;
  char bytes[32];
  bool ok = weir_place_print(
      out, "digraph plan {\n  node [shape=box, fontsize=10];\n");
  for (uint32_t d = 0; d < p->device_count && ok; d++)
    ok = write_device(v, out, d);
  for (uint32_t n = 0; n < p->node_count && ok; n++)
    for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1] && ok; i++) {
      uint32_t t = p->in_tensor[i], from = p->tensor_node[t];
      bool cut = v->plan->device[from] != v->plan->device[n];
      ok =
          weir_place_print(out, "  n%u -> n%u [label=\"%s\"%s];\n", from, n,
                           weir_quantity_print_bytes(p->tensor_bytes[t], bytes),
                           cut ? ", color=red" : "");
    }
  return ok && weir_place_print(out, "}\n");
}
