/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/pass_def.h"

#include <string.h>

#include "runtime/base/diag/nearest.h"
#include "runtime/base/join.h"
#include "runtime/graph/pass/pass_attention.h"
#include "runtime/graph/pass/pass_norm.h"
#include "runtime/graph/pass/pass_simplify.h"

static weir_sv name_at(const void *self, size_t i) {
  (void)self;
  return weir_sv_from(weir_pass_at(i)->name);
}

static weir_status fail_unknown(const char *name, weir_error *err) {
  char names[256] = "";
  size_t count = 0;
  for (const weir_pass_def *p; (p = weir_pass_at(count)) != NULL; count++)
    weir_join_name(names, sizeof names, p->name);
  weir_status s = weir_fail(err, WEIR_W0002, NULL,
                            "unknown pass %s, expected %s", name, names);
  weir_sv near = weir_nearest_name(weir_sv_from(name), count, name_at, NULL);
  if (near.size > 0) weir_hint(err, "did you mean %.*s?", WEIR_SV(near));
  return s;
}

static bool has_section(const weir_graph *graph, const char *name) {
  if (strcmp(name, "mesh") == 0) return graph->mesh != NULL;
  return strcmp(name, "train") == 0 && graph->train != NULL;
}

/* The row called |name|, if |graph| may go through it. */
static weir_status find(const weir_graph *graph, const char *name,
                        const weir_pass_def **out, weir_error *err) {
  const weir_pass_def *pass = NULL;
  for (size_t i = 0; (pass = weir_pass_at(i)) != NULL; i++)
    if (strcmp(pass->name, name) == 0) break;
  if (pass == NULL) return fail_unknown(name, err);
  if (pass->needs != NULL && !has_section(graph, pass->needs))
    return weir_fail(err, WEIR_W0002, NULL,
                     "pass %s: the graph has no `%s` section", name,
                     pass->needs);
  *out = pass;
  return WEIR_OK;
}

weir_status weir_pass_run(const weir_graph *graph, const char *name,
                          weir_graph **out_graph, weir_error *err) {
  const weir_pass_def *pass = NULL;
  *out_graph = NULL;
  WEIR_TRY(find(graph, name, &pass, err));
  return pass->run(graph, out_graph, err);
}

weir_status weir_pass_note(const weir_graph *graph, const char *name,
                           weir_strbuf *text, weir_error *err) {
  const weir_pass_def *pass = NULL;
  WEIR_TRY(find(graph, name, &pass, err));
  return pass->note != NULL ? pass->note(graph, text, err) : WEIR_OK;
}

static weir_status simplify(const weir_graph *graph, weir_value_id *map,
                            weir_graph **out_graph, weir_error *err) {
  *out_graph = NULL;
  weir_value_id *targets =
      weir_alloc_array(graph->alloc, graph->output_count + 1, sizeof *targets);
  if (targets == NULL)
    return weir_fail_memory(err, graph->output_count * sizeof *targets);
  for (uint32_t i = 0; i < graph->output_count; i++)
    targets[i] = graph->outputs[i].value;
  weir_simplify_options options = {.values = targets,
                                   .value_count = graph->output_count};
  weir_status s =
      weir_graph_simplify(graph, &options, map, NULL, out_graph, err);
  weir_free(graph->alloc, targets);
  return s;
}

weir_status weir_pass_outputs(const weir_graph *graph, weir_graph **out_graph,
                              weir_error *err) {
  return simplify(graph, NULL, out_graph, err);
}

/* |map| takes the new ids of |graph|'s values. */
static weir_status attend(const weir_graph *graph, weir_value_id *map,
                          weir_graph **out_graph, weir_error *err) {
  const weir_allocator *a = graph->alloc;
  weir_graph *simple = NULL;
  *out_graph = NULL;
  WEIR_TRY(simplify(graph, map, &simple, err));
  weir_value_id *values =
      weir_alloc_array(a, simple->value_count + 1u, sizeof *values);
  weir_node_id *nodes =
      weir_alloc_array(a, simple->node_count + 1u, sizeof *nodes);
  weir_status s =
      values == NULL || nodes == NULL
          ? weir_fail_memory(err, simple->value_count)
          : weir_graph_attend(simple, NULL, 0, values, nodes, out_graph, err);
  for (weir_value_id v = 0; s == WEIR_OK && v < graph->value_count; v++)
    if (map[v] != WEIR_NO_VALUE) map[v] = values[map[v]];
  weir_free(a, nodes);
  weir_free(a, values);
  weir_graph_unref(simple);
  return s;
}

weir_status weir_pass_attended(const weir_graph *graph, weir_graph **out_graph,
                               weir_error *err) {
  *out_graph = NULL;
  weir_value_id *map =
      weir_alloc_array(graph->alloc, graph->value_count + 1u, sizeof *map);
  if (map == NULL) return weir_fail_memory(err, graph->value_count);
  weir_status s = attend(graph, map, out_graph, err);
  weir_free(graph->alloc, map);
  return s;
}

weir_status weir_pass_norms_folded(const weir_graph *graph,
                                   weir_graph **out_graph, weir_error *err) {
  const weir_allocator *a = graph->alloc;
  weir_graph *simple = NULL;
  bool *held = NULL;
  *out_graph = NULL;
  weir_value_id *map = weir_alloc_array(a, graph->value_count, sizeof *map);
  if (map == NULL)
    return weir_fail_memory(err, graph->value_count * sizeof *map);
  weir_status s = attend(graph, map, &simple, err);
  if (s == WEIR_OK) {
    held = weir_alloc_array(a, simple->value_count, sizeof *held);
    if (held == NULL) s = weir_fail_memory(err, simple->value_count);
  }
  if (s == WEIR_OK) {
    weir_graph_mark_assigned(graph, map, held);
    s = weir_graph_fold_norms(simple, held, NULL, NULL, out_graph, err);
  }
  weir_free(a, held);
  weir_free(a, map);
  weir_graph_unref(simple);
  return s;
}
