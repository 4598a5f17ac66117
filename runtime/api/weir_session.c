/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session.h"
#include "runtime/exec/session/session_vars.h"

#include <string.h>

#include "runtime/api/weir_internal.h"

/* Sessions: handles around runtime/exec's. A session holds its graph and
 * runtime, and each bound run holds the session, so handles may be released in
 * any order; the last reference ends everything. */

weir_status weir_runtime_pool(weir_runtime *runtime, weir_pool **out_pool,
                              weir_error *err) {
  weir_status s = WEIR_OK;
  pthread_mutex_lock(&runtime->lock);
  if (runtime->pool == NULL) {
    weir_pool_options options = {.threads = runtime->threads};
    s = weir_pool_create(&runtime->env, &options, &runtime->pool, err);
  }
  *out_pool = runtime->pool;
  pthread_mutex_unlock(&runtime->lock);
  return s;
}

weir_session_options weir_session_options_of(const weir_runtime *runtime,
                                             const weir_session_opts *opts) {
  size_t limit = (size_t)opts->memory_limit;
  if (limit == 0 || (runtime->memory_limit != 0 &&
                     runtime->memory_limit < opts->memory_limit))
    limit = (size_t)runtime->memory_limit;
  return (weir_session_options){.no_fusion = opts->no_fusion,
                                .no_fold = opts->no_fold,
                                .ref_kernels = opts->ref_kernels,
                                .no_layout = opts->no_layout,
                                .tf32 = opts->tf32,
                                .memory_limit = limit,
                                .seed = opts->seed};
}

static weir_status make_exec(weir_session *session,
                             const weir_session_opts *opts, weir_error *err) {
  weir_runtime *runtime = session->runtime;
  weir_session_options options = weir_session_options_of(runtime, opts);
  weir_pool *pool = NULL;
  WEIR_TRY(weir_runtime_pool(runtime, &pool, err));
  WEIR_TRY(
      weir_placed_create(runtime, session->graph, opts, &session->placed, err));
  weir_placed_use(session->placed, &options);
  WEIR_TRY(weir_placed_open(session->placed, session->graph, session->graph,
                            &options, err));
  return weir_exec_session_create(&runtime->env, pool, session->graph, &options,
                                  &session->exec, err);
}

weir_status weir_session_create(weir_runtime *runtime, const weir_graph *graph,
                                const weir_session_opts *opts,
                                weir_session **out_session, weir_error *err) {
  if (out_session == NULL) return weir_fail_null(err, "out_session");
  *out_session = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (graph == NULL) return weir_fail_null(err, "graph");
  weir_session_opts o;
  WEIR_TRY(WEIR_OPTS_READ(weir_session_opts, &o, opts, err));
  weir_session *session =
      weir_alloc_array(runtime->env.alloc, 1, sizeof *session);
  if (session == NULL)
    return weir_fail_refused(runtime->env.alloc, "opening a session", err);
  atomic_init(&session->refs, 1);
  pthread_mutex_init(&session->lock, NULL);
  session->runs.prev = session->runs.next = &session->runs;
  session->runtime = weir_runtime_ref(runtime);
  session->graph = weir_graph_ref(graph);
  weir_status s = make_exec(session, &o, err);
  session->variables = (weir_variables){session->graph, session->placed, NULL};
  if (s == WEIR_OK) {
    *out_session = session;
    return s;
  }
  s = weir_settle(session->graph->alloc, "compiling the graph", s, err);
  weir_session_unref(session);
  return weir_settle(runtime->env.alloc, "opening a session", s, err);
}

void weir_session_unref(weir_session *session) {
  if (atomic_fetch_sub(&session->refs, 1) != 1) return;
  weir_runtime *runtime = session->runtime;
  weir_exec_session_release(session->exec);
  weir_placed_release(session->placed);
  weir_variables_release(&session->variables);
  weir_graph_unref(session->graph);
  pthread_mutex_destroy(&session->lock);
  weir_free(runtime->env.alloc, session);
  weir_runtime_release(runtime);
}

void weir_session_release(weir_session *session) {
  if (session != NULL) weir_session_unref(session);
}

void weir_session_enter(weir_session *session, weir_run_entry *entry) {
  atomic_init(&entry->cancel, false);
  pthread_mutex_lock(&session->lock);
  entry->prev = session->runs.prev;
  entry->next = &session->runs;
  entry->prev->next = entry;
  session->runs.prev = entry;
  pthread_mutex_unlock(&session->lock);
}

void weir_session_leave(weir_session *session, weir_run_entry *entry) {
  pthread_mutex_lock(&session->lock);
  entry->prev->next = entry->next;
  entry->next->prev = entry->prev;
  pthread_mutex_unlock(&session->lock);
}

void weir_session_cancel(weir_session *session) {
  if (session == NULL) return;
  pthread_mutex_lock(&session->lock);
  for (weir_run_entry *e = session->runs.next; e != &session->runs; e = e->next)
    atomic_store(&e->cancel, true);
  pthread_mutex_unlock(&session->lock);
}

weir_status weir_session_variable_get(weir_session *session, const char *name,
                                      weir_tensor **out_tensor,
                                      weir_error *err) {
  if (out_tensor == NULL) return weir_fail_null(err, "out_tensor");
  *out_tensor = NULL;
  if (session == NULL) return weir_fail_null(err, "session");
  weir_node_id node;
  WEIR_TRY(weir_find_node(session->graph, name, &node, err));
  return weir_exec_variable_get(session->exec, node, out_tensor, err);
}

weir_status weir_session_variable_set(weir_session *session, const char *name,
                                      const weir_tensor *tensor,
                                      weir_error *err) {
  if (session == NULL) return weir_fail_null(err, "session");
  if (tensor == NULL) return weir_fail_null(err, "tensor");
  WEIR_TRY(weir_check_on_host(tensor, name, err));
  weir_node_id node;
  WEIR_TRY(weir_find_node(session->graph, name, &node, err));
  return weir_exec_variable_set(session->exec, node, tensor, err);
}
