/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/graph/export.h"
#include "runtime/io/array/tensor_file.h"

/* A session's graph and variables as files. Each file is written whole or not
 * at all; the weights come first, so a graph never names weights that are
 * missing. Variables are snapshots: runs under way may go on. */

/* "dir/lenet.weir.yaml" gives "dir/lenet.safetensors". */
static weir_status weights_path(const char *path, weir_strbuf *out,
                                weir_error *err) {
  static const char *const endings[] = {".weir.yaml", ".yaml", ".yml"};
  size_t size = strlen(path);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t n = strlen(endings[i]);
    if (size <= n || strcmp(path + size - n, endings[i]) != 0 ||
        path[size - n - 1] == '/')
      continue;
    weir_strbuf_append(out, path, size - n);
    weir_strbuf_text(out, ".safetensors");
    return weir_strbuf_status(out, err);
  }
  return weir_fail(err, WEIR_W0002, NULL,
                   "%s: an exported graph is called NAME.weir.yaml", path);
}

/* Snapshots of all variables, in the graph's order. */
typedef struct variables {
  weir_sv *names;
  weir_tensor **tensors;
  size_t count;
} variables;

static weir_status collect(weir_session *session, variables *v,
                           weir_error *err) {
  const weir_graph *g = session->graph;
  const weir_allocator *a = session->runtime->env.alloc;
  v->names = weir_alloc_array(a, g->node_count, sizeof *v->names);
  v->tensors = weir_alloc_array(a, g->node_count, sizeof *v->tensors);
  if (v->names == NULL || v->tensors == NULL)
    return weir_fail_memory(err, g->node_count);
  for (weir_node_id i = 0; i < g->node_count; i++) {
    if (g->nodes[i].op->instr != WEIR_INSTR_VAR_READ) continue;
    WEIR_TRY(weir_exec_variable_snapshot(session->exec, i,
                                         &v->tensors[v->count], err));
    v->names[v->count++] = g->nodes[i].name;
  }
  return WEIR_OK;
}

static void drop(const weir_allocator *a, variables *v) {
  for (size_t i = 0; i < v->count; i++) weir_tensor_unref(v->tensors[i]);
  weir_free(a, v->names);
  weir_free(a, v->tensors);
}

/* The graph last: it is there only when its weights are. */
static weir_status write_both(weir_session *session, const char *path,
                              const char *weights, weir_strbuf *text,
                              weir_error *err) {
  const weir_env *env = &session->runtime->env;
  const char *slash = strrchr(weights, '/');
  variables v = {NULL, NULL, 0};
  weir_status s = weir_graph_export_text(
      env, session->graph, path,
      weir_sv_from(slash != NULL ? slash + 1 : weights), text, err);
  if (s == WEIR_OK) s = collect(session, &v, err);
  if (s == WEIR_OK)
    s = weir_tensor_file_write(env, weights, v.names, v.tensors, v.count, err);
  drop(env->alloc, &v);
  if (s != WEIR_OK) return s;
  weir_sv all = weir_strbuf_view(text);
  weir_bytes bytes = {(const uint8_t *)all.data, all.size};
  return env->fs->write(env->fs->self, path, bytes, err);
}

weir_status weir_session_export(weir_session *session, const char *path,
                                weir_error *err) {
  weir_strbuf weights, text;
  if (session == NULL) return weir_fail_null(err, "session");
  if (path == NULL) return weir_fail_null(err, "path");
  weir_strbuf_init(&weights, session->runtime->env.alloc);
  weir_strbuf_init(&text, session->runtime->env.alloc);
  weir_status s = weights_path(path, &weights, err);
  if (s == WEIR_OK) s = write_both(session, path, weights.data, &text, err);
  if (s == WEIR_OK)
    weir_log(session->runtime, WEIR_LOG_INFO,
             "a graph of %u nodes is exported to %.300s",
             session->graph->node_count, path);
  weir_strbuf_release(&weights);
  weir_strbuf_release(&text);
  s = weir_settle(session->runtime->env.alloc, "exporting", s, err);
  return weir_settle(session->graph->alloc, "exporting", s, err);
}
