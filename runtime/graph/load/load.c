/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/load/load.h"

#include <stdio.h>

#include "runtime/graph/eval/evaluate.h"
#include "runtime/graph/eval/levels.h"
#include "runtime/graph/eval/scope.h"
#include "runtime/graph/grad/gradients_node.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/load/advice.h"
#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/labels.h"
#include "runtime/graph/load/module.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/load/sections.h"
#include "runtime/graph/load/sources.h"
#include "runtime/graph/load/weights.h"
#include "runtime/graph/mesh/mesh_read.h"
#include "runtime/graph/op_info.h"
#include "runtime/graph/parse/blocks.h"
#include "runtime/graph/parse/body.h"
#include "runtime/graph/parse/forms.h"
#include "runtime/graph/parse/inputs.h"
#include "runtime/graph/parse/items.h"
#include "runtime/graph/parse/outputs.h"
#include "runtime/graph/parse/parse_call.h"
#include "runtime/graph/parse/updates.h"

/* The loader's way from text to graph; the parts are in the files that
 * loader.h names. The order of `run` is that of needs: names of ops and
 * signatures of blocks before calls are bound, params and the mesh before
 * anything is evaluated, the whole graph before `train` looks up its nodes. */

enum { WEIR_DEFAULT_NODES = 1000000, WEIR_DEFAULT_ERRORS = 20 };

static bool add_op_name(weir_loader *l, const char *name,
                        const weir_op_info *info) {
  weir_op_names entry = {weir_sv_from(name), info, WEIR_MAP_NONE};
  uint32_t before, index = (uint32_t)l->ops.count;
  if (!weir_map_put(&l->op_names, entry.name, index, &before) ||
      !weir_vec_push(l->alloc, &l->ops, entry))
    return weir_report_memory(l);
  if (before == WEIR_MAP_NONE) return true;
  while (l->ops.items[before].next != WEIR_MAP_NONE)
    before = l->ops.items[before].next;
  if (l->ops.items[before].info != info) l->ops.items[before].next = index;
  return true;
}

/* Canonical names first, so that they win over aliases. */
static bool index_ops(weir_loader *l) {
  const weir_registry *registry = l->options->registry;
  size_t count = weir_registry_op_count(registry);
  for (int aliases = 0; aliases < 2; aliases++) {
    for (size_t i = 0; i < count; i++) {
      const weir_op_def *op = weir_registry_op_at(registry, i);
      const weir_op_info *info = weir_graph_builder_op(l->builder, op);
      if (info == NULL) return weir_report_memory(l);
      if (!aliases && !add_op_name(l, op->name, info)) return false;
      for (int a = 0; aliases && a < 5 && op->aliases[a] != NULL; a++)
        if (!add_op_name(l, op->aliases[a], info)) return false;
    }
  }
  return true;
}

static bool want_map(weir_loader *l, const weir_yaml *y, const char *what) {
  return y == NULL || weir_want_kind(l, y, WEIR_YAML_MAP, what);
}

static bool parse_main(weir_loader *l) {
  const weir_yaml *root = l->main->root;
  const weir_yaml *inputs = weir_yaml_get(root, "inputs");
  const weir_yaml *nodes = weir_yaml_get(root, "nodes");
  const weir_yaml *outputs = weir_yaml_get(root, "outputs");
  const weir_yaml *update = weir_yaml_get(root, "update");
  if (!want_map(l, inputs, "inputs")) inputs = NULL;
  if (!want_map(l, nodes, "nodes")) nodes = NULL;
  uint32_t count = weir_outputs_count(outputs) + weir_updates_count(update);
  if (inputs != NULL) count += inputs->count;
  if (nodes != NULL) count += nodes->count;
  if (count == 0 && l->errors > 0) return false;
  if (count == 0)
    return weir_report(l, WEIR_W1008, &root->mark,
                       "the file has no inputs, nodes or outputs");
  if (!weir_body_begin(l, &l->main_body, count)) return false;
  if (inputs != NULL) weir_inputs_parse(l, l->main, inputs, &l->main_body);
  if (nodes != NULL && weir_loader_going(l))
    weir_body_add_nodes(l, l->main, NULL, nodes, &l->main_body);
  if (weir_loader_going(l))
    weir_updates_parse(l, l->main, NULL, update, &l->main_body);
  if (outputs != NULL && weir_loader_going(l))
    weir_outputs_parse(l, l->main, outputs, &l->main_body);
  return weir_loader_going(l);
}

static bool run(weir_loader *l, weir_sv text, const char *path) {
  if (!index_ops(l) || !weir_modules_load(l, text, path)) return false;
  for (weir_module *m = l->modules; m != NULL; m = m->next)
    if (!weir_blocks_parse(l, m)) return false;
  if (!parse_main(l)) return false;
  if (!weir_sections_check(l, l->main)) return false;
  if (!weir_mesh_read(l, l->main)) return false;
  weir_scope *scope = weir_scope_create(l, &l->main_body, l->main, NULL);
  if (scope == NULL || !weir_scope_expand(l, scope)) return false;
  weir_error err = WEIR_ERROR_INIT;
  if (weir_graph_builder_reserve(l->builder, (uint32_t)scope->defs.count,
                                 &err) != WEIR_OK)
    return weir_report_memory(l);
  bool complete = weir_evaluate(l, scope) && weir_outputs_add(l, scope) &&
                  l->errors == 0 && weir_labels_read(l) &&
                  weir_weights_read(l) && weir_mesh_check(l);
  return weir_train_section(l, complete) && complete;
}

static bool keep_source(weir_loader *l, weir_sv text, const char *path) {
  weir_graph *g = weir_graph_builder_graph(l->builder);
  char *file = weir_arena_string(l->arena, path, strlen(path));
  char *source = weir_arena_string(l->arena, text.data, text.size);
  if (file == NULL || source == NULL) return weir_report_memory(l);
  g->file = weir_sv_from(file);
  g->source = (weir_sv){source, text.size};
  return true;
}

static void release_body(weir_loader *l, weir_body *body) {
  weir_map_release(&body->names);
  weir_vec_free(l->alloc, &body->results);
}

static void release(weir_loader *l) {
  for (weir_level *v = l->levels; v != NULL; v = v->next)
    weir_level_release(l, v);
  for (weir_form *f = l->forms; f != NULL; f = f->next) {
    release_body(l, &f->args);
    release_body(l, &f->bodies[0]);
    release_body(l, &f->bodies[1]);
  }
  for (weir_scope *s = l->scopes; s != NULL; s = s->next)
    weir_scope_release(l, s);
  for (weir_module *m = l->modules; m != NULL; m = m->next)
    weir_module_release(l, m);
  for (uint32_t i = 0; i < l->main_body.count; i++)
    weir_item_forget(l, &l->main_body.items[i]);
  release_body(l, &l->main_body);
  weir_map_release(&l->op_names);
  weir_map_release(&l->assigned);
  weir_vec_free(l->alloc, &l->ops);
  weir_vec_free(l->alloc, &l->stack);
  weir_parser_release(l->parser);
  weir_arena_release(&l->work);
  weir_arena_release(&l->trees);
  weir_graph_builder_release(l->main_builder);
}

static bool begin(weir_loader *l, const weir_env *env,
                  const weir_load_options *options, weir_error *err) {
  l->env = env;
  l->options = options;
  l->alloc = env->alloc;
  l->err = err;
  l->max_nodes =
      options->max_nodes > 0 ? options->max_nodes : WEIR_DEFAULT_NODES;
  l->max_errors =
      options->max_errors > 0 ? options->max_errors : WEIR_DEFAULT_ERRORS;
  weir_arena_init(&l->work, l->alloc);
  weir_arena_init(&l->trees, l->alloc);
  weir_map_init(&l->op_names, l->alloc);
  weir_map_init(&l->assigned, l->alloc);
  l->parser = weir_parser_create(l->alloc);
  weir_status s = weir_graph_builder_create(l->alloc, options->registry,
                                            options->seed, &l->builder, err);
  l->main_builder = l->builder;
  if (s != WEIR_OK || l->parser == NULL) return weir_report_memory(l);
  l->arena = weir_graph_builder_arena(l->builder);
  /* Never empty, so that pointers into it are pointers. */
  return weir_vec_reserve(l->alloc, &l->stack, 16) || weir_report_memory(l);
}

/* Hands the graph over, without nodes that only the language knows. */
static weir_status finish(weir_loader *l, weir_graph **out_graph) {
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *graph = weir_graph_builder_graph(l->main_builder);
  if (graph->cluster != NULL || graph->placement != NULL ||
      graph->data != NULL || graph->train != NULL)
    weir_arena_adopt(&graph->arena, &l->trees);
  graph = NULL;
  weir_status s = weir_graph_builder_finish(l->main_builder, &graph, &err);
  if (s == WEIR_OK)
    s = weir_graph_expand_gradients(graph, l->max_nodes, out_graph, &err);
  weir_graph_unref(graph);
  if (s != WEIR_OK) weir_report_error(l, &err);
  if (s == WEIR_OK) weir_load_advise(*out_graph, l->options->sink);
  return s;
}

/* |file|, which holds |text|, is closed once the text is copied; or NULL. */
static weir_status load(const weir_env *env, weir_sv text, const char *name,
                        weir_file *file, const weir_load_options *options,
                        weir_graph **out_graph, weir_error *err) {
  *out_graph = NULL;
  weir_loader *l = weir_alloc_array(env->alloc, 1, sizeof *l);
  if (l == NULL) return weir_fail_memory(err, sizeof *l);
  bool ok = begin(l, env, options, err) && keep_source(l, text, name);
  if (ok && file != NULL) {
    env->fs->close(env->fs->self, file);
    *file = (weir_file){0};
  }
  ok = ok && run(l, weir_graph_builder_graph(l->builder)->source, name);
  weir_status s = ok ? WEIR_OK : l->status;
  if (ok) s = finish(l, out_graph);
  if (!ok && s == WEIR_OK) /* a failure without a report */
    s = weir_fail(err, WEIR_W9001, NULL, "loading failed without a reason");
  release(l);
  weir_free(env->alloc, l);
  return s;
}

/* The keeper goes to the first graph of the chain, which goes last. */
static weir_status keep(weir_source_keeper *keeper, const char *name,
                        weir_sv text, weir_graph *graph, weir_error *err) {
  weir_graph_full *first = (weir_graph_full *)(uintptr_t)graph;
  while (first->parent != NULL)
    first = (weir_graph_full *)(uintptr_t)first->parent;
  first->keeper = keeper;
  return weir_source_keeper_end(keeper, name, text, &graph->sources, err);
}

static weir_status load_file(const weir_env *env, const char *path,
                             const weir_load_options *options,
                             weir_graph **out_graph, weir_error *err);

/* |text.data| NULL: |name| is a file. */
static weir_status load_keeping(const weir_env *env, weir_sv text,
                                const char *name,
                                const weir_load_options *options,
                                weir_graph **out_graph, weir_error *err) {
  weir_source_keeper *keeper = weir_source_keeper_create(env, options);
  *out_graph = NULL;
  if (keeper == NULL) return weir_fail_memory(err, 0);
  const weir_env *own = weir_source_keeper_env(keeper);
  const weir_load_options *o = weir_source_keeper_options(keeper);
  weir_graph *graph = NULL;
  weir_status s = text.data != NULL
                      ? load(own, text, name, NULL, o, &graph, err)
                      : load_file(own, name, o, &graph, err);
  if (s != WEIR_OK) {
    weir_source_keeper_release(keeper);
    return s;
  }
  s = keep(keeper, name, text, graph, err);
  if (s == WEIR_OK)
    *out_graph = graph;
  else
    weir_graph_unref(graph);
  return s;
}

weir_status weir_graph_load_text(const weir_env *env, weir_sv text,
                                 const char *name,
                                 const weir_load_options *options,
                                 weir_graph **out_graph, weir_error *err) {
  if (options->keep_sources)
    return load_keeping(env, text, name, options, out_graph, err);
  return load(env, text, name, NULL, options, out_graph, err);
}

/* A file that is too large says which option takes it. */
static weir_status hint_limit(weir_status s, size_t limit, weir_error *err) {
  if (err != NULL && strcmp(err->id, "W4015") == 0)
    weir_hint(err, "if that is meant, allow more: --limit bytes=%zuMiB",
              (limit >> 20) * 4 + 1);
  return s;
}

static weir_status load_file(const weir_env *env, const char *path,
                             const weir_load_options *options,
                             weir_graph **out_graph, weir_error *err) {
  weir_file file = {0};
  *out_graph = NULL;
  size_t limit =
      options->limits.bytes > 0 ? options->limits.bytes : (size_t)64 << 20;
  weir_status s =
      env->fs->read(env->fs->self, NULL, path, limit, false, &file, err);
  if (s != WEIR_OK) return hint_limit(s, limit, err);
  weir_sv text = {(const char *)file.bytes.data, file.bytes.size};
  s = load(env, text, path, &file, options, out_graph, err);
  env->fs->close(env->fs->self, &file);
  return s;
}

weir_status weir_graph_load(const weir_env *env, const char *path,
                            const weir_load_options *options,
                            weir_graph **out_graph, weir_error *err) {
  if (options->keep_sources)
    return load_keeping(env, (weir_sv){NULL, 0}, path, options, out_graph, err);
  return load_file(env, path, options, out_graph, err);
}
