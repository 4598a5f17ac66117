/* SPDX-License-Identifier: Apache-2.0 */
/* Programs by the request and plan of another process. */
#include "runtime/exec/session/prepare.h"

#include <assert.h>

#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/session/session_cache.h"

const weir_graph *weir_session_graph(const weir_exec_session *session) {
  return session->graph;
}

/* ---- Plans and channels */

weir_route *weir_session_route_find(weir_exec_session *session, uint64_t hash) {
  pthread_mutex_lock(&session->lock);
  weir_route *found = NULL, *r = session->routes;
  for (; r != NULL; r = r->next) /* the oldest is the last */
    if (weir_plan_hash(r->plan) == hash) found = r;
  if (found != NULL) found->refs++;
  pthread_mutex_unlock(&session->lock);
  return found;
}

void weir_session_route_release(weir_exec_session *session, weir_route *route) {
  if (route == NULL) return;
  pthread_mutex_lock(&session->lock);
  assert(route->refs > 0);
  bool last = --route->refs == 0;
  pthread_mutex_unlock(&session->lock);
  if (!last) return;
  weir_channel_release(route->channel);
  weir_plan_unref(route->plan);
  weir_free(session->env->alloc, route);
}

weir_status weir_session_add_plan(weir_exec_session *session,
                                  const weir_plan *plan, weir_channel *channel,
                                  weir_error *err) {
  weir_route *r = weir_alloc_array(session->env->alloc, 1, sizeof *r);
  if (r == NULL) return weir_fail_memory(err, sizeof *r);
  r->refs = 1;
  r->plan = weir_plan_ref(plan);
  r->channel = channel;
  (void)weir_plan_hash(plan); /* made now, not under the lock */
  pthread_mutex_lock(&session->lock);
  r->next = session->routes;
  session->routes = r;
  pthread_mutex_unlock(&session->lock);
  return WEIR_OK;
}

void weir_session_remove_plan(weir_exec_session *session,
                              const weir_plan *plan) {
  pthread_mutex_lock(&session->lock);
  weir_route **at = &session->routes;
  while (*at != NULL && (*at)->plan != plan) at = &(*at)->next;
  weir_route *gone = *at;
  if (gone != NULL) *at = gone->next;
  pthread_mutex_unlock(&session->lock);
  weir_session_route_release(session, gone);
}

void weir_session_routes_release(weir_exec_session *session) {
  while (session->routes != NULL)
    weir_session_remove_plan(session, session->routes->plan);
}

/* ---- Programs */

/* |request| as the session's cache wants it; |*out_ids| is the caller's. */
static weir_status wanted_of(const weir_exec_session *session,
                             const weir_exec_request *request,
                             weir_wanted *wanted, weir_value_id **out_ids,
                             weir_error *err) {
  weir_value_id *ids =
      weir_alloc_array(session->env->alloc, request->fetch_count, sizeof *ids);
  *out_ids = ids;
  if (ids == NULL)
    return weir_fail_memory(err, request->fetch_count * sizeof *ids);
  for (size_t k = 0; k < request->fetch_count; k++)
    ids[k] = request->fetches[k].value;
  *wanted = (weir_wanted){
      .feeds = request->feeds,
      .fetches = ids,
      .targets = request->targets,
      .feed_count = (uint32_t)request->feed_count,
      .fetch_count = (uint32_t)request->fetch_count,
      .target_count = (uint32_t)request->target_count,
      .no_fusion = request->options != NULL && request->options->trap_nan};
  return weir_session_check(session, wanted, err);
}

weir_status weir_session_cut_of(weir_exec_session *session,
                                const weir_exec_request *request,
                                weir_cut **out_cut, weir_error *err) {
  weir_wanted wanted;
  weir_value_id *ids = NULL;
  *out_cut = NULL;
  weir_status s = wanted_of(session, request, &wanted, &ids, err);
  if (s == WEIR_OK) s = weir_session_cut(session, &wanted, out_cut, err);
  weir_free(session->env->alloc, ids);
  return s;
}

static uint64_t memory_of(const weir_compiled *compiled) {
  uint64_t bytes = 0;
  for (const weir_program *p = compiled->program; p != NULL; p = p->next_part)
    bytes += p->memory_bytes;
  return bytes;
}

weir_status weir_session_prepare(weir_exec_session *session,
                                 const weir_exec_request *request,
                                 weir_program_facts *out, weir_error *err) {
  weir_wanted wanted;
  weir_value_id *ids = NULL;
  weir_cached *cached = NULL;
  weir_status s = wanted_of(session, request, &wanted, &ids, err);
  if (s == WEIR_OK) s = weir_session_program(session, &wanted, &cached, err);
  if (s == WEIR_OK)
    *out = (weir_program_facts){cached->compiled->writes,
                                memory_of(cached->compiled)};
  weir_session_program_release(session, cached);
  weir_free(session->env->alloc, ids);
  return s;
}
