/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/server_engine.h"

#include <math.h>
#include <string.h>

#include "runtime/exec/session/session_first.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/train/loop/loop_eval.h"

static const weir_split_var *var_of(const weir_ps_engine *e, uint32_t var) {
  return &e->job->split->vars[var];
}

bool weir_ps_engine_has(const weir_ps_engine *e, uint32_t var) {
  return e->update->vars[var] != UINT32_MAX;
}

static weir_status make_session(const weir_ps_engine *e,
                                weir_exec_session **out, weir_error *err) {
  weir_session_options options = {
      .seed = e->job->seed, .overwrite = weir_ps_writes_over(&e->job->config)};
  return weir_exec_session_create(e->env, e->pool, e->update->graph, &options,
                                  out, err);
}

static weir_status make_step(const weir_ps_engine *e, weir_tensor **out,
                             weir_error *err) {
  weir_shape scalar = weir_shape_of(0, NULL);
  return weir_tensor_create_shaped(e->env->alloc, WEIR_I64, &scalar, out, err);
}

static weir_status make_value(const weir_ps_engine *e, weir_value_id value,
                              weir_tensor **out, weir_error *err) {
  const weir_value *v = &e->update->graph->values[value];
  return weir_tensor_create_shaped(e->env->alloc, v->dtype, v->shape, out, err);
}

/* A server without gradients reads no norm. */
static weir_status make_norm(weir_ps_engine *e, weir_error *err) {
  const weir_update_graph *u = e->update;
  e->shares =
      weir_arena_array(&e->arena, u->share_count + 1u, sizeof *e->shares);
  if (e->shares == NULL) return weir_fail_memory(err, u->share_count);
  for (uint32_t i = 0; i < u->share_count; i++)
    WEIR_TRY(make_value(e, u->shares[i].value, &e->shares[i], err));
  return make_value(e, u->grad_norm, &e->norm, err);
}

static const weir_ps_watched *watched_of(const weir_ps_engine *e) {
  return &e->job->watched[e->server];
}

static weir_status make_watched(weir_ps_engine *e, weir_error *err) {
  const weir_ps_watched *w = watched_of(e);
  e->watched = weir_arena_array(&e->arena, w->count + 1u, sizeof *e->watched);
  if (e->watched == NULL) return weir_fail_memory(err, w->count);
  for (uint32_t i = 0; i < w->count; i++)
    WEIR_TRY(make_value(e, w->values[i], &e->watched[i], err));
  return WEIR_OK;
}

/* ---- Buffers */

/* A room's tensor has the variable's type, which is the gradient's. */
static weir_status make_push(const weir_ps_engine *e, uint32_t i,
                             weir_tensor **out, weir_error *err) {
  if (e->room_of[i] != UINT32_MAX)
    return weir_exec_variable_room(e->session, e->room_of[i], out, err);
  return make_value(e, e->update->pushes[e->lists->pushes[i]], out, err);
}

weir_status weir_ps_buffer_fill(const weir_ps_engine *e, weir_ps_buffer *b,
                                weir_error *err) {
  for (uint32_t i = 0; i < e->lists->push_count; i++) {
    if (b->tensors[i] == NULL) WEIR_TRY(make_push(e, i, &b->tensors[i], err));
    b->pieces[i] = (weir_ps_piece){b->tensors[i]->data, b->tensors[i]->bytes};
  }
  return WEIR_OK;
}

void weir_ps_buffer_leave(const weir_ps_engine *e, weir_ps_buffer *b) {
  for (uint32_t i = 0; i < e->lists->push_count; i++) {
    if (e->room_of[i] == UINT32_MAX) continue;
    weir_tensor_unref(b->tensors[i]);
    b->tensors[i] = NULL;
  }
}

weir_status weir_ps_buffer_create(const weir_ps_engine *e,
                                  weir_ps_buffer **out_buffer,
                                  weir_error *err) {
  const weir_allocator *alloc = e->env->alloc;
  uint32_t count = e->lists->push_count;
  *out_buffer = NULL;
  weir_ps_buffer *b = weir_alloc_array(alloc, 1, sizeof *b);
  if (b == NULL) return weir_fail_memory(err, sizeof *b);
  b->tensors = weir_alloc_array(alloc, count + 1u, sizeof(void *));
  b->pieces = weir_alloc_array(alloc, count + 1u, sizeof *b->pieces);
  if (b->tensors != NULL && b->pieces != NULL) {
    *out_buffer = b;
    return WEIR_OK;
  }
  weir_ps_buffer_release(e, b);
  return weir_fail_memory(err, count * sizeof *b->pieces);
}

void weir_ps_buffer_release(const weir_ps_engine *e, weir_ps_buffer *b) {
  if (b == NULL) return;
  for (uint32_t i = 0; b->tensors != NULL && i < e->lists->push_count; i++)
    weir_tensor_unref(b->tensors[i]);
  weir_free(e->env->alloc, b->tensors);
  weir_free(e->env->alloc, b->pieces);
  weir_free(e->env->alloc, b);
}

/* ---- Programs: each is bound once, and fed with the push at hand. */

static weir_status bind(const weir_ps_engine *e, const weir_ps_buffer *b,
                        weir_exec_request *request, weir_binding **out,
                        weir_error *err) {
  const weir_update_graph *u = e->update;
  uint32_t n = 0;
  weir_exec_feed *feeds =
      weir_alloc_array(e->env->alloc, e->lists->push_count + 3u, sizeof *feeds);
  if (feeds == NULL) return weir_fail_memory(err, e->lists->push_count);
  for (; n < e->lists->push_count; n++)
    feeds[n] = (weir_exec_feed){u->pushes[e->lists->pushes[n]], b->tensors[n]};
  if (e->step != NULL) feeds[n++] = (weir_exec_feed){u->global_step, e->step};
  if (e->age != NULL) feeds[n++] = (weir_exec_feed){u->staleness, e->age};
  if (e->norm != NULL) feeds[n++] = (weir_exec_feed){u->grad_norm, e->norm};
  request->feeds = feeds;
  request->feed_count = n;
  weir_status s = weir_exec_bind(e->session, request, out, err);
  weir_free(e->env->alloc, feeds);
  return s;
}

static weir_status bind_update(const weir_ps_engine *e, const weir_ps_buffer *b,
                               bool last, weir_binding **out, weir_error *err) {
  const weir_update_graph *u = e->update;
  const weir_ps_watched *w = watched_of(e);
  weir_exec_fetch *fetches =
      weir_alloc_array(e->env->alloc, w->count + 1u, sizeof *fetches);
  if (fetches == NULL) return weir_fail_memory(err, w->count);
  for (uint32_t i = 0; i < w->count; i++)
    fetches[i] =
        (weir_exec_fetch){.value = w->values[i], .tensor = e->watched[i]};
  weir_exec_request request = {
      .fetches = fetches,
      .fetch_count = last ? w->count : 0,
      .targets = last ? u->targets : u->accumulate_targets,
      .target_count = last ? u->target_count : u->accumulate_target_count};
  weir_status s = WEIR_OK;
  if (request.target_count > 0) s = bind(e, b, &request, out, err);
  weir_free(e->env->alloc, fetches);
  return s;
}

static weir_status bind_shares(weir_ps_engine *e, const weir_ps_buffer *b,
                               weir_error *err) {
  uint32_t count = e->update->share_count;
  if (count == 0) return WEIR_OK;
  weir_exec_fetch *fetches =
      weir_alloc_array(e->env->alloc, count, sizeof *fetches);
  if (fetches == NULL) return weir_fail_memory(err, count * sizeof *fetches);
  for (uint32_t i = 0; i < count; i++)
    fetches[i] = (weir_exec_fetch){.value = e->update->shares[i].value,
                                   .tensor = e->shares[i]};
  weir_exec_request request = {.fetches = fetches, .fetch_count = count};
  weir_status s = bind(e, b, &request, &e->shared, err);
  weir_free(e->env->alloc, fetches);
  return s;
}

/* |b| NULL: nothing, until the next push. */
static void feed(const weir_ps_engine *e, weir_binding *binding,
                 const weir_ps_buffer *b) {
  for (uint32_t i = 0; binding != NULL && i < e->lists->push_count; i++)
    weir_binding_feed(binding, i, b != NULL ? b->tensors[i] : NULL);
}

static weir_status run(const weir_ps_engine *e, weir_binding *binding,
                       const weir_ps_buffer *b, weir_error *err) {
  feed(e, binding, b);
  weir_status s = weir_binding_run(binding, NULL, err);
  feed(e, binding, NULL);
  return s;
}

static weir_status bind_all(weir_ps_engine *e, const weir_ps_buffer *b,
                            weir_error *err) {
  WEIR_TRY(bind_update(e, b, true, &e->last, err));
  if (e->job->config.aggregate > 1)
    WEIR_TRY(bind_update(e, b, false, &e->more, err));
  WEIR_TRY(bind_shares(e, b, err));
  feed(e, e->last, NULL);
  feed(e, e->more, NULL);
  feed(e, e->shared, NULL);
  return WEIR_OK;
}

/* With the memory of a push that never comes, and is not touched. */
static weir_status make_programs(weir_ps_engine *e, weir_error *err) {
  weir_ps_buffer *b = NULL;
  weir_status s = weir_ps_buffer_create(e, &b, err);
  if (s == WEIR_OK) s = weir_ps_buffer_fill(e, b, err);
  if (s == WEIR_OK) s = bind_all(e, b, err);
  for (uint32_t i = 0; s == WEIR_OK && i < e->lists->push_count; i++) {
    if (e->last != NULL) e->room_of[i] = weir_binding_over(e->last, i);
    if (e->room_of[i] == UINT32_MAX) e->plain_bytes += b->tensors[i]->bytes;
  }
  weir_ps_buffer_release(e, b);
  return s;
}

weir_status weir_ps_engine_shares(weir_ps_engine *e, weir_ps_buffer *b,
                                  weir_error *err) {
  return e->shared != NULL ? run(e, e->shared, b, err) : WEIR_OK;
}

weir_status weir_ps_engine_run(weir_ps_engine *e, weir_ps_buffer *b, bool last,
                               uint64_t step, uint64_t age, weir_error *err) {
  weir_binding *binding = last ? e->last : e->more;
  if (binding == NULL) return WEIR_OK;
  if (e->step != NULL) weir_tensor_set_i64(e->step, 0, (int64_t)step);
  if (e->age != NULL) weir_tensor_set_i64(e->age, 0, (int64_t)age);
  e->touched = e->updated = true;
  return run(e, binding, b, err);
}

/* ---- The engine */

static bool is_summed(const weir_ps_engine *e, weir_node_id node) {
  const weir_update_graph *u = e->update;
  for (uint32_t i = 0; i < u->accumulate_target_count; i++) {
    const weir_node *assign = &u->graph->nodes[u->accumulate_targets[i]];
    if (u->graph->values[assign->inputs[0]].node == node) return true;
  }
  return false;
}

/* Slots have a variable that they belong to. Other states that pushes change
 * one by one (a moving average) are not 0 between updates: they are as if they
 * were lent. */
static weir_status make_tables(weir_ps_engine *e, weir_error *err) {
  uint32_t held = e->lists->held_count, pushes = e->lists->push_count;
  e->own = weir_arena_array(&e->arena, held + 1u, sizeof *e->own);
  e->room_of = weir_arena_array(&e->arena, pushes + 1u, sizeof *e->room_of);
  if (e->own == NULL || e->room_of == NULL)
    return weir_fail_memory(err, held * sizeof *e->own);
  memset(e->room_of, 0xff, pushes * sizeof *e->room_of);
  if (!weir_ps_writes_over(&e->job->config)) return WEIR_OK; /* all are lent */
  for (uint32_t i = 0; i < held; i++) {
    uint32_t var = e->lists->held[i];
    const weir_split_var *v = var_of(e, var);
    if (v->of == UINT32_MAX || v->worker != WEIR_NO_VALUE ||
        !weir_ps_engine_has(e, var))
      continue;
    e->own[i] = is_summed(e, e->update->vars[var]) ? WEIR_PS_SUM : WEIR_PS_SLOT;
  }
  return WEIR_OK;
}

weir_status weir_ps_engine_create(const weir_env *env, weir_pool *pool,
                                  const weir_ps_job *job, uint32_t server,
                                  weir_ps_engine **out_engine,
                                  weir_error *err) {
  *out_engine = NULL;
  weir_ps_engine *e = weir_alloc_array(env->alloc, 1, sizeof *e);
  if (e == NULL) return weir_fail_memory(err, sizeof *e);
  weir_arena_init(&e->arena, env->alloc);
  e->env = env;
  e->job = job;
  e->lists = &job->servers[server];
  e->update = &job->split->updates[server];
  e->server = server;
  e->pool = pool;
  weir_status s = make_session(e, &e->session, err);
  if (s == WEIR_OK && job->given_step) s = make_step(e, &e->step, err);
  if (s == WEIR_OK && e->update->staleness != WEIR_NO_VALUE)
    s = make_step(e, &e->age, err);
  if (s == WEIR_OK && job->split->sum_count > 0) s = make_norm(e, err);
  if (s == WEIR_OK) s = make_watched(e, err);
  if (s == WEIR_OK) s = make_tables(e, err);
  if (s == WEIR_OK) s = make_programs(e, err);
  if (s == WEIR_OK)
    *out_engine = e;
  else
    weir_ps_engine_release(e);
  return s;
}

void weir_ps_engine_release(weir_ps_engine *e) {
  if (e == NULL) return;
  weir_binding_release(e->last);
  weir_binding_release(e->more);
  weir_binding_release(e->shared);
  for (uint32_t i = 0; e->shares != NULL && i < e->update->share_count; i++)
    weir_tensor_unref(e->shares[i]);
  for (uint32_t i = 0; e->watched != NULL && i < watched_of(e)->count; i++)
    weir_tensor_unref(e->watched[i]);
  weir_tensor_unref(e->norm);
  weir_tensor_unref(e->step);
  weir_tensor_unref(e->age);
  weir_exec_session_release(e->session);
  weir_arena_release(&e->arena);
  weir_free(e->env->alloc, e);
}

/* ---- Variables */

weir_status weir_ps_engine_set(weir_ps_engine *e, uint32_t var,
                               const weir_tensor *tensor, weir_error *err) {
  if (!weir_ps_engine_has(e, var)) return WEIR_OK;
  e->touched = true;
  e->updated = false;
  return weir_exec_variable_set(e->session, e->update->vars[var], tensor, err);
}

weir_status weir_ps_engine_first(weir_ps_engine *e, weir_error *err) {
  if (!e->touched) return WEIR_OK;
  WEIR_TRY(weir_exec_variables_first(e->session, err));
  e->touched = false;
  return WEIR_OK;
}

weir_status weir_ps_engine_hold(weir_ps_engine *e, uint32_t place, bool zero,
                                weir_tensor **out, weir_error *err) {
  weir_node_id node = e->update->vars[e->lists->held[place]];
  if (!zero || e->own[place] != WEIR_PS_SUM)
    return weir_exec_variable_snapshot(e->session, node, out, err);
  const weir_graph *g = e->update->graph;
  WEIR_TRY(make_value(e, g->nodes[node].first_output, out, err));
  memset((*out)->data, 0, (*out)->bytes);
  return WEIR_OK;
}

/* ---- Sets */

weir_status weir_ps_set_init(weir_ps_engine *e, weir_ps_set *set,
                             weir_error *err) {
  set->count = 0;
  set->watched = NULL;
  set->tensors =
      weir_arena_array(&e->arena, e->lists->held_count + 1u, sizeof(void *));
  return set->tensors != NULL
             ? WEIR_OK
             : weir_fail_memory(err, e->lists->held_count * sizeof(void *));
}

/* The means of what is watched; NaN before the first update. */
static weir_status take_watched(const weir_ps_engine *e, weir_ps_set *set,
                                weir_error *err) {
  const weir_ps_watched *w = watched_of(e);
  weir_shape shape = weir_shape_of(1, (int64_t[]){w->count});
  if (w->count == 0) return WEIR_OK;
  WEIR_TRY(weir_tensor_create_shaped(e->env->alloc, WEIR_F64, &shape,
                                     &set->watched, err));
  for (uint32_t i = 0; i < w->count; i++)
    ((double *)set->watched->data)[i] =
        e->updated ? weir_loop_mean(e->watched[i]) : NAN;
  return WEIR_OK;
}

weir_status weir_ps_engine_values(weir_ps_engine *e, weir_ps_set *set,
                                  weir_error *err) {
  weir_ps_set_clear(set);
  for (uint32_t i = 0; i < e->lists->held_count; i++) {
    uint32_t var = e->lists->held[i];
    weir_tensor **out = &set->tensors[i];
    weir_status s = WEIR_OK;
    *out = NULL;
    if (!weir_ps_engine_has(e, var))
      s = make_step(e, out, err);
    else if (e->own[i] == WEIR_PS_LENT)
      s = weir_exec_variable_snapshot(e->session, e->update->vars[var], out,
                                      err);
    if (s != WEIR_OK) {
      weir_ps_set_clear(set);
      return s;
    }
    set->count = i + 1;
  }
  weir_status s = take_watched(e, set, err);
  if (s != WEIR_OK) weir_ps_set_clear(set);
  return s;
}

void weir_ps_set_clear(weir_ps_set *set) {
  for (uint32_t i = 0; i < set->count; i++) weir_tensor_unref(set->tensors[i]);
  weir_tensor_unref(set->watched);
  set->watched = NULL;
  set->count = 0;
}

void weir_ps_set_version(const weir_ps_engine *e, weir_ps_set *set,
                         uint64_t version) {
  for (uint32_t i = 0; i < set->count; i++)
    if (var_of(e, e->lists->held[i])->server == WEIR_SPLIT_ALL &&
        !weir_ps_engine_has(e, e->lists->held[i]))
      weir_tensor_set_i64(set->tensors[i], 0, (int64_t)version);
}
