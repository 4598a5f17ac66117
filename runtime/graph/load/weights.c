/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/load/weights.h"

#include <string.h>

#include "runtime/graph/graph_internal.h"
#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/report.h"
#include "runtime/io/array/safetensors.h"

/* `weights: FILE`: first values of variables, from a safetensors file beneath
 * the graph's folder. Every variable must be in it; states may be. A name is
 * searched for in the file's list: variables times tensors comparisons. */

static bool misfit(weir_loader *l, const weir_yaml *at, const weir_graph *g,
                   const weir_node *node, const weir_tensor *t) {
  char want[192], got[128];
  weir_shape_print(&t->shape, NULL, NULL, got, sizeof got);
  weir_report_begin(
      l, WEIR_W5022, &at->mark, "%.*s: variable %.*s is %s, the file has %s%s",
      WEIR_SV(at->text), WEIR_SV(node->name),
      weir_graph_type_text(g, node->first_output, want, sizeof want),
      weir_dtype_name(t->dtype), got);
  return weir_report_send(l);
}

static bool missing(weir_loader *l, const weir_yaml *at,
                    const weir_safetensors *file, weir_sv name) {
  weir_report_begin(l, WEIR_W5022, &at->mark,
                    "%.*s has no tensor for variable %.*s", WEIR_SV(at->text),
                    WEIR_SV(name));
  weir_report_nearest(l, name, weir_safetensors_count(file),
                      weir_safetensors_name, file);
  return weir_report_send(l);
}

static bool take(weir_loader *l, weir_graph_full *full, const weir_yaml *at,
                 weir_safetensors *file, weir_node_id id,
                 weir_graph_weight *out) {
  const weir_graph *g = &full->g;
  const weir_node *node = &g->nodes[id];
  const weir_value *v = &g->values[node->first_output];
  weir_error err = WEIR_ERROR_INIT;
  size_t i = 0, count = weir_safetensors_count(file);
  out->tensor = NULL;
  while (i < count &&
         !weir_sv_equal(weir_safetensors_name(file, i), node->name))
    i++;
  if (i == count)
    return strcmp(node->op->name, "var") != 0 ||
           missing(l, at, file, node->name);
  if (!weir_vec_reserve(l->alloc, &full->tensors, 1))
    return weir_report_memory(l);
  if (weir_safetensors_get(file, i, &out->tensor, &err) != WEIR_OK)
    return weir_report_error(l, &err);
  full->tensors.items[full->tensors.count++] = out->tensor;
  out->name = node->name;
  out->file = weir_safetensors_views(file, out->tensor) ? file : NULL;
  if (out->tensor->dtype == v->dtype &&
      weir_shape_equal(&out->tensor->shape, v->shape))
    return true;
  return misfit(l, at, g, node, out->tensor);
}

static bool take_all(weir_loader *l, const weir_yaml *at,
                     weir_safetensors *file) {
  weir_graph *g = weir_graph_builder_graph(l->builder);
  uint32_t count = 0;
  for (uint32_t i = 0; i < g->node_count; i++)
    count += g->nodes[i].op->instr == WEIR_INSTR_VAR_READ;
  weir_graph_weight *weights =
      weir_arena_array(l->arena, count + 1u, sizeof *weights);
  if (weights == NULL) return weir_report_memory(l);
  g->weights = weights;
  for (uint32_t i = 0; i < g->node_count && weir_loader_going(l); i++) {
    if (g->nodes[i].op->instr != WEIR_INSTR_VAR_READ) continue;
    weir_graph_weight *w = &weights[g->weight_count];
    if (!take(l, (weir_graph_full *)g, at, file, i, w)) continue;
    g->weight_count += w->tensor != NULL;
  }
  return l->errors == 0;
}

bool weir_weights_read(weir_loader *l) {
  const weir_yaml *at = weir_yaml_get(l->main->root, "weights");
  weir_safetensors *file = NULL;
  weir_error err = WEIR_ERROR_INIT;
  char root[4096];
  if (at == NULL) return true;
  if (!weir_want_kind(l, at, WEIR_YAML_SCALAR, "weights")) return false;
  if (memchr(at->text.data, '\0', at->text.size) != NULL)
    return weir_report(l, WEIR_W4002, &at->mark, "a path has no NUL bytes");
  char *path = weir_arena_string(&l->work, at->text.data, at->text.size);
  if (path == NULL) return weir_report_memory(l);
  if (l->root.size >= sizeof root)
    return weir_report(l, WEIR_W4001, &at->mark, "the path is too long");
  memcpy(root, l->root.data, l->root.size);
  root[l->root.size] = '\0';
  weir_status s = weir_safetensors_open(l->env, l->root.size > 0 ? root : ".",
                                        path, SIZE_MAX, &file, &err);
  if (s == WEIR_RESOURCE_EXHAUSTED || strncmp(err.id, "W7", 2) == 0)
    return weir_report_error(l, &err);
  if (s != WEIR_OK) {
    weir_error_id id = strcmp(err.id, "W4005") == 0   ? WEIR_W4005
                       : strcmp(err.id, "W4002") == 0 ? WEIR_W4002
                                                      : WEIR_W4001;
    return weir_report(l, id, &at->mark, "weights '%s': %s", path, err.message);
  }
  bool ok = take_all(l, at, file);
  weir_safetensors_release(file);
  return ok;
}
