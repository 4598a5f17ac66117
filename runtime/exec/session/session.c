/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session.h"

#include "runtime/exec/session/prepare.h"
#include "runtime/exec/session/remote.h"
#include "runtime/exec/session/session_cache.h"
#include "runtime/exec/session/session_internal.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/mesh/mesh_lower.h"

/* A session is made without compiling: programs come with the first run that
 * needs them. Requests are checked here once, so that the rooms below need no
 * checks of ids, types and shapes that come from outside. */

static weir_status check_feed(const weir_graph *g, const weir_exec_feed *feed,
                              weir_error *err) {
  if (feed->value >= g->value_count || feed->tensor == NULL)
    return weir_fail(err, WEIR_W0004, NULL, "a feed names no value or tensor");
  const weir_value *v = &g->values[feed->value];
  const weir_node *node = &g->nodes[v->node];
  if (node->op->instr != WEIR_INSTR_FEED) {
    weir_status s = weir_fail(err, WEIR_W4011, &node->mark, "%.*s is no input",
                              WEIR_SV(node->name));
    weir_error_set_node(err, node->name.data, node->name.size);
    return s;
  }
  const weir_tensor *t = feed->tensor;
  bool fits = t->dtype == v->dtype;
  if (fits && v->shape->rank != WEIR_RANK_UNKNOWN) {
    fits = t->shape.rank == v->shape->rank;
    for (int32_t d = 0; fits && d < t->shape.rank; d++)
      fits = !weir_dim_known(v->shape->dims[d]) ||
             v->shape->dims[d].value == t->shape.dims[d].value;
  }
  if (fits) return WEIR_OK;
  char want[160], got[160];
  weir_shape_print(&t->shape, NULL, NULL, got, sizeof got);
  weir_status s =
      weir_fail(err, WEIR_W4009, &node->mark, "input %.*s is %s, %s%s was fed",
                WEIR_SV(node->name),
                weir_graph_type_text(g, feed->value, want, sizeof want),
                weir_dtype_name(t->dtype), got);
  weir_error_set_node(err, node->name.data, node->name.size);
  return s;
}

static weir_status refuse_feed(const weir_graph *g, const weir_exec_feed *feed,
                               weir_error *err) {
  const weir_node *node = &g->nodes[g->values[feed->value].node];
  weir_status s = weir_fail(err, WEIR_W0004, NULL,
                            "input %.*s is fed a tensor on GPU %d, and other "
                            "tasks run this session",
                            WEIR_SV(node->name), (int)feed->tensor->gpu);
  weir_hint(err, "feed a copy on the host, by weir_tensor_to_host");
  return s;
}

/* Values go between processes by way of the host, and those that are dealt a
 * run make its results there. */
static weir_status check_here(const weir_exec_session *session,
                              const weir_wanted *w, weir_error *err) {
  if (session->options.remote == NULL) return WEIR_OK;
  for (uint32_t i = 0; i < w->feed_count; i++)
    if (w->feeds[i].tensor->on_gpu)
      return refuse_feed(session->graph, &w->feeds[i], err);
  for (uint32_t k = 0; w->stays != NULL && k < w->fetch_count; k++)
    if (w->stays[k])
      return weir_fail(err, WEIR_W0004, NULL,
                       "fetch %u is to stay on its device (on_device), and "
                       "other tasks run this session",
                       k);
  return WEIR_OK;
}

weir_status weir_session_check(const weir_exec_session *session,
                               const weir_wanted *wanted, weir_error *err) {
  const weir_graph *g = session->graph;
  for (uint32_t i = 0; i < wanted->feed_count; i++) {
    WEIR_TRY(check_feed(g, &wanted->feeds[i], err));
    for (uint32_t k = 0; k < i; k++)
      if (wanted->feeds[k].value == wanted->feeds[i].value)
        return weir_fail(err, WEIR_W0004, NULL, "an input is fed twice");
  }
  for (uint32_t i = 0; i < wanted->fetch_count; i++)
    if (wanted->fetches[i] >= g->value_count)
      return weir_fail(err, WEIR_W0004, NULL, "a fetch names no value");
  for (uint32_t i = 0; i < wanted->target_count; i++)
    if (wanted->targets[i] >= g->node_count)
      return weir_fail(err, WEIR_W0004, NULL, "a target names no node");
  return check_here(session, wanted, err);
}

static weir_status take_options(weir_exec_session *session,
                                const weir_session_options *given,
                                weir_error *err) {
  weir_session_options *o = &session->options;
  if (given != NULL) *o = *given;
  if (o->plan != NULL && o->placing == NULL) o->placing = o->plan->placing;
  if (o->plan != NULL) o->plan = weir_plan_ref(o->plan);
  if (o->placing != NULL) o->placing = weir_placing_ref(o->placing);
  if (o->store != NULL) weir_var_store_ref(o->store);
  if (o->share != NULL) {
    if (o->placing == NULL ||
        o->share->task_count != o->placing->cluster->task_count)
      return weir_fail(err, WEIR_W0004, NULL,
                       "a share is of a cluster that the session has not");
    if (o->channel == NULL)
      return weir_fail(err, WEIR_W0004, NULL,
                       "a session of some tasks needs a channel to the others");
    session->share = *o->share;
    o->share = NULL;
  }
  if (o->placing == NULL) return WEIR_OK;
  session->defaults =
      weir_alloc_array(session->env->alloc, session->given->input_count,
                       sizeof *session->defaults);
  return session->defaults != NULL ? WEIR_OK : weir_fail_memory(err, 0);
}

/* The cells of a store, for variables whose home is here. */
static weir_status join_store(weir_exec_session *session, weir_error *err) {
  weir_var_store *store = session->options.store;
  if (store == NULL) return WEIR_OK;
  session->vars_lock = weir_var_store_lock(store);
  weir_var_store_entry *entries = weir_alloc_array(
      session->env->alloc, (size_t)session->var_count + 1, sizeof *entries);
  if (entries == NULL)
    return weir_fail_memory(err, session->var_count * sizeof *entries);
  uint32_t count = 0;
  for (uint32_t v = 0; v < session->var_count; v++) {
    const weir_variable *var = &session->vars[v];
    if (!var->elsewhere)
      entries[count++] = (weir_var_store_entry){
          var->name, var->dtype, var->shape, var->assigned, NULL};
  }
  weir_status s = weir_var_store_join(store, session->options.store_fresh,
                                      entries, count, err);
  for (uint32_t v = 0, i = 0; s == WEIR_OK && v < session->var_count; v++)
    if (!session->vars[v].elsewhere) session->vars[v].cell = entries[i++].cell;
  weir_free(session->env->alloc, entries);
  return s;
}

weir_status weir_exec_session_create(const weir_env *env, weir_pool *pool,
                                     const weir_graph *graph,
                                     const weir_session_options *options,
                                     weir_exec_session **out_session,
                                     weir_error *err) {
  *out_session = NULL;
  weir_exec_session *session = weir_alloc_array(env->alloc, 1, sizeof *session);
  if (session == NULL) return weir_fail_memory(err, sizeof *session);
  session->env = env;
  session->pool = pool;
  session->vars_lock = &session->lock;
  session->given = weir_graph_ref(graph);
  weir_status s = take_options(session, options, err);
  pthread_mutex_init(&session->lock, NULL);
  weir_turn_init(&session->turn);
  weir_turn_init(&session->opening);
  pthread_mutex_init(&session->init_lock, NULL);
  weir_map_init(&session->var_names, env->alloc);
  if (s == WEIR_OK && graph->mesh != NULL)
    s = weir_graph_mesh(graph, &session->mesh, err);
  if (s == WEIR_OK) {
    session->graph =
        weir_graph_ref(session->mesh != NULL ? session->mesh->graph : graph);
    s = weir_session_vars_create(session, err);
  }
  if (s == WEIR_OK) s = join_store(session, err);
  if (s == WEIR_OK)
    *out_session = session;
  else
    weir_exec_session_release(session);
  return s;
}

void weir_exec_session_release(weir_exec_session *session) {
  if (session == NULL) return;
  for (int i = 0; i < WEIR_SESSION_PROGRAMS; i++)
    if (session->cache[i] != NULL)
      weir_session_program_release(session, session->cache[i]);
  weir_session_routes_release(session);
  for (uint32_t i = 0;
       session->defaults != NULL && i < session->given->input_count; i++)
    weir_tensor_unref(session->defaults[i].tensor);
  weir_free(session->env->alloc, session->defaults);
  weir_plan_unref(session->options.plan);
  for (int i = 0; i < WEIR_SESSION_PROGRAMS; i++)
    weir_plan_unref(session->plans[i]);
  weir_placing_unref(session->options.placing);
  weir_session_vars_release(session);
  weir_map_release(&session->var_names);
  weir_graph_unref(session->graph);
  weir_graph_unref(session->given);
  weir_mesh_graph_release(session->mesh);
  pthread_mutex_destroy(&session->lock);
  weir_turn_destroy(&session->turn);
  weir_turn_destroy(&session->opening);
  pthread_mutex_destroy(&session->init_lock);
  weir_free(session->env->alloc, session);
}

uint32_t weir_exec_session_width(const weir_exec_session *session) {
  weir_remote *remote = session->options.remote;
  uint32_t width = 1;
  if (remote != NULL && remote->vt->width != NULL)
    width = remote->vt->width(remote);
  return width > 0 ? width : 1;
}
