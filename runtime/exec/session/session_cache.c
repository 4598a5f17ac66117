/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session_cache.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/exec/compile/compile_cut.h"
#include "runtime/exec/compile/compile_emit.h"
#include "runtime/exec/run/stream.h"
#include "runtime/exec/session/prepare.h"
#include "runtime/exec/session/session_defaults.h"
#include "runtime/exec/session/session_first.h"
#include "runtime/exec/session/session_internal.h"
#include "runtime/exec/session/session_remote.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/pass/pass_specialize.h"

/* Compiled programs, by key: fed inputs with their shapes, fetches, targets.
 *
 * A key is compared with all WEIR_SESSION_PROGRAMS entries, which is cheaper
 * than a table for so few. Compiling happens without the lock: two threads may
 * compile the same program at once; both entries are right, and the one that is
 * not found grows old and goes.
 *
 * Invariant: |refs| counts the cache, runs and bindings, so a program that was
 * pushed out or made stale stays alive until its last run has ended. Buffers
 * compiled in as constants have the program as a user until then. */

static void destroy(weir_exec_session *session, weir_cached *e) {
  const weir_allocator *a = session->env->alloc;
  while (e->free_frames != NULL) {
    weir_frame *next = e->free_frames->next_free;
    weir_frame_release(e->free_frames);
    e->free_frames = next;
  }
  if (e->streams != NULL)
    weir_streams_release(a, e->streams, e->compiled->partition->part_count);
  weir_session_remote_forget(session, e);
  weir_compiled_release(e->compiled);
  weir_session_route_release(session, e->route);
  pthread_mutex_lock(session->vars_lock);
  for (uint32_t v = 0; e->constants != NULL && v < session->var_count; v++)
    if (e->constants[v] != NULL) {
      assert(e->constants[v]->users > 0);
      e->constants[v]->users--;
    }
  pthread_mutex_unlock(session->vars_lock);
  weir_free(a, e->constants);
  weir_free(a, e->vars);
  weir_free(a, e->ids);
  weir_free(a, e->feed_shapes);
  weir_free(a, e->fed_at);
  weir_free(a, e->stays);
  weir_free(a, e);
}

void weir_session_program_release(weir_exec_session *session,
                                  weir_cached *cached) {
  if (cached == NULL) return;
  pthread_mutex_lock(&session->lock);
  assert(cached->refs > 0);
  bool last = --cached->refs == 0;
  pthread_mutex_unlock(&session->lock);
  if (last) destroy(session, cached);
}

/* Planned memory of a GPU is aligned so, and kernels count on no more. */
enum { kWholeAlign = 256 };

static weir_fed_at fed_at(const weir_tensor *t) {
  if (!t->on_gpu) return (weir_fed_at){0};
  return (weir_fed_at){true, (uintptr_t)t->data % kWholeAlign == 0, t->gpu};
}

static bool is_fed_at(const weir_fed_at *at, const weir_tensor *t) {
  const weir_fed_at other = fed_at(t);
  return at->on_gpu == other.on_gpu && at->whole == other.whole &&
         at->gpu == other.gpu;
}

static bool same_stays(const weir_cached *e, const weir_wanted *w) {
  for (uint32_t k = 0; k < w->fetch_count; k++)
    if (e->stays[k] != (w->stays != NULL && w->stays[k])) return false;
  return true;
}

static bool same_key(const weir_cached *e, const weir_wanted *w) {
  if (e->feed_count != w->feed_count || e->fetch_count != w->fetch_count ||
      e->target_count != w->target_count || e->no_fusion != w->no_fusion ||
      e->init != w->init || e->unplaced != w->unplaced)
    return false;
  for (uint32_t i = 0; i < w->feed_count; i++)
    if (e->ids[i] != w->feeds[i].value ||
        !weir_shape_equal(&e->feed_shapes[i], &w->feeds[i].tensor->shape) ||
        !is_fed_at(&e->fed_at[i], w->feeds[i].tensor))
      return false;
  if (!same_stays(e, w)) return false;
  const uint32_t *ids = e->ids + e->feed_count;
  return (w->fetch_count == 0 ||
          memcmp(ids, w->fetches, w->fetch_count * sizeof *ids) == 0) &&
         (w->target_count == 0 || memcmp(ids + w->fetch_count, w->targets,
                                         w->target_count * sizeof *ids) == 0);
}

static weir_cached *find(weir_exec_session *session, const weir_wanted *w) {
  pthread_mutex_lock(&session->lock);
  weir_cached *found = NULL;
  for (int i = 0; i < WEIR_SESSION_PROGRAMS && found == NULL; i++)
    if (session->cache[i] != NULL && !atomic_load(&session->cache[i]->stale) &&
        same_key(session->cache[i], w))
      found = session->cache[i];
  if (found != NULL) {
    found->refs++;
    found->used = ++session->clock;
  }
  pthread_mutex_unlock(&session->lock);
  return found;
}

/* The least recently used place, emptied. */
static void insert(weir_exec_session *session, weir_cached *e) {
  weir_cached *gone = NULL;
  pthread_mutex_lock(&session->lock);
  int at = 0;
  for (int i = 1; i < WEIR_SESSION_PROGRAMS && session->cache[at] != NULL; i++)
    if (session->cache[i] == NULL ||
        session->cache[i]->used < session->cache[at]->used)
      at = i;
  gone = session->cache[at];
  session->cache[at] = e;
  e->refs = 2; /* the cache's and the caller's */
  e->used = ++session->clock;
  pthread_mutex_unlock(&session->lock);
  /* A variable may have been set while this was compiled; one that is set from
   * here on finds it in the cache. */
  pthread_mutex_lock(session->vars_lock);
  for (uint32_t v = 0; v < session->var_count; v++)
    if (e->constants[v] != NULL &&
        e->constants[v] != session->vars[v].cell->current)
      atomic_store(&e->stale, true);
  pthread_mutex_unlock(session->vars_lock);
  weir_session_program_release(session, gone);
}

static weir_status fill_key(weir_exec_session *session, const weir_wanted *w,
                            weir_cached *e, weir_error *err) {
  const weir_allocator *a = session->env->alloc;
  size_t n = (size_t)w->feed_count + w->fetch_count + w->target_count;
  e->ids = weir_alloc_array(a, n, sizeof *e->ids);
  e->feed_shapes = weir_alloc_array(a, w->feed_count, sizeof *e->feed_shapes);
  e->fed_at = weir_alloc_array(a, w->feed_count, sizeof *e->fed_at);
  e->stays = weir_alloc_array(a, w->fetch_count, sizeof *e->stays);
  if (e->ids == NULL || e->feed_shapes == NULL || e->fed_at == NULL ||
      e->stays == NULL)
    return weir_fail_memory(err, n * sizeof *e->ids);
  uint32_t *at = e->ids;
  for (uint32_t i = 0; i < w->feed_count; i++) *at++ = w->feeds[i].value;
  for (uint32_t i = 0; i < w->fetch_count; i++) *at++ = w->fetches[i];
  for (uint32_t i = 0; i < w->target_count; i++) *at++ = w->targets[i];
  for (uint32_t i = 0; i < w->feed_count; i++)
    e->feed_shapes[i] = w->feeds[i].tensor->shape;
  for (uint32_t i = 0; i < w->feed_count; i++)
    e->fed_at[i] = fed_at(w->feeds[i].tensor);
  for (uint32_t k = 0; w->stays != NULL && k < w->fetch_count; k++)
    e->stays[k] = w->stays[k];
  e->feed_count = w->feed_count;
  e->fetch_count = w->fetch_count;
  e->target_count = w->target_count;
  e->no_fusion = w->no_fusion;
  e->init = w->init;
  e->unplaced = w->unplaced;
  return WEIR_OK;
}

/* The session's graph with the fed shapes in it. */
static weir_status specialize(weir_exec_session *session, const weir_cached *e,
                              const weir_graph **out, weir_error *err) {
  const weir_graph *g = session->graph;
  weir_shape *shapes =
      weir_alloc_array(session->env->alloc, g->input_count, sizeof *shapes);
  *out = NULL;
  if (shapes == NULL) return weir_fail_memory(err, sizeof *shapes);
  for (uint32_t i = 0; i < g->input_count; i++) {
    shapes[i] = (weir_shape){.rank = WEIR_RANK_UNKNOWN};
    for (uint32_t k = 0; k < e->feed_count; k++)
      if (e->ids[k] == g->inputs[i].value) shapes[i] = e->feed_shapes[k];
  }
  weir_status s = weir_graph_fix_shapes(g, shapes, out, err);
  weir_free(session->env->alloc, shapes);
  return s;
}

/* Whether a node that |w| needs reads a variable. |mark|: per node, zeroed. */
static bool reads_vars(const weir_graph *g, const weir_wanted *w,
                       uint8_t *mark) {
  for (uint32_t i = 0; i < w->fetch_count; i++)
    mark[g->values[w->fetches[i]].node] = 1;
  for (uint32_t i = 0; i < w->target_count; i++) mark[w->targets[i]] = 1;
  for (weir_node_id id = g->node_count; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    if (!mark[id]) continue;
    if (node->op->instr == WEIR_INSTR_VAR_READ) return true;
    for (uint32_t i = 0; i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE)
        mark[g->values[node->inputs[i]].node] = 1;
    for (uint32_t i = 0; i < node->after_count; i++) mark[node->after[i]] = 1;
  }
  return false;
}

/* Variables have values before a program that may take them for constants is
 * compiled. */
static weir_status init_vars(weir_exec_session *session, const weir_wanted *w,
                             weir_error *err) {
  const weir_allocator *a = session->env->alloc;
  if (w->init || session->var_count == 0) return WEIR_OK;
  uint8_t *mark = weir_alloc_array(a, session->graph->node_count, sizeof *mark);
  if (mark == NULL) return weir_fail_memory(err, session->graph->node_count);
  bool needed = reads_vars(session->graph, w, mark);
  weir_free(a, mark);
  if (!needed) return WEIR_OK;
  if (session->options.remote != NULL && !weir_session_places(session, w))
    return weir_fail(err, WEIR_W4012, NULL,
                     "an input was not fed whose default reads a variable, and "
                     "variables live in another process");
  return weir_session_vars_init(session, err);
}

typedef struct constant_source {
  weir_exec_session *session;
  weir_cached *cached;
  weir_status status; /* of making the first value of another task's */
  weir_error err;
} constant_source;

static const void *constant_var(void *self, weir_sv name, bool bytes) {
  constant_source *source = self;
  if (!bytes)
    return weir_session_is_constant(source->session, name)
               ? weir_compile_no_bytes
               : NULL;
  if (source->status == WEIR_OK)
    source->status =
        weir_session_vars_want(source->session, name, &source->err);
  return weir_session_constant(source->session, source->cached, name);
}

/* The given plan or an earlier one, if it was made for a cut of |hash|. Hashes
 * are compared, because a plan may come from a file. */
static weir_plan *known_plan(weir_exec_session *session, uint64_t hash) {
  const weir_plan *given = session->options.plan;
  weir_plan *found = NULL;
  if (given != NULL && weir_plan_hash(given) == hash)
    return weir_plan_ref(given);
  pthread_mutex_lock(&session->lock);
  for (int i = 0; i < WEIR_SESSION_PROGRAMS && found == NULL; i++)
    if (session->plans[i] != NULL && weir_plan_hash(session->plans[i]) == hash)
      found = weir_plan_ref(session->plans[i]);
  pthread_mutex_unlock(&session->lock);
  return found;
}

static void keep_plan(weir_exec_session *session, const weir_plan *plan) {
  pthread_mutex_lock(&session->lock);
  weir_plan **place =
      &session->plans[session->plan_count++ % WEIR_SESSION_PROGRAMS];
  weir_plan *old = *place;
  *place = weir_plan_ref(plan);
  pthread_mutex_unlock(&session->lock);
  weir_plan_unref(old);
}

static weir_status find_plan(weir_exec_session *session, weir_cached *e,
                             const weir_cut *cut, weir_plan **out,
                             weir_error *err) {
  const weir_session_options *o = &session->options;
  uint64_t hash = weir_cut_hash(cut->graph);
  e->route = weir_session_route_find(session, hash);
  *out = e->route != NULL ? weir_plan_ref(e->route->plan)
                          : known_plan(session, hash);
  if (*out == NULL) {
    if (o->plan_only)
      return weir_fail(err, WEIR_W3016, NULL,
                       "the plan is of another graph than the one that is run");
    WEIR_TRY(weir_placing_plan(o->placing, cut->graph, out, err));
    keep_plan(session, *out);
  }
  if (o->on_plan != NULL) o->on_plan(o->on_plan_self, *out);
  return WEIR_OK;
}

static weir_status compile_placed(weir_exec_session *session, weir_cached *e,
                                  weir_compile_request *request,
                                  weir_error *err) {
  weir_cut *cut = NULL;
  weir_plan *plan = NULL;
  WEIR_TRY(weir_compile_cut(session->env, request, true, &cut, err));
  weir_status s = find_plan(session, e, cut, &plan, err);
  request->cut = cut;
  request->plan = plan;
  request->tasks = session->share.tasks;
  if (s == WEIR_OK)
    s = session->options.remote != NULL
            ? weir_session_remote_compile(session, e, request, request->graph,
                                          err)
            : weir_compile(session->env, request, &e->compiled, err);
  weir_plan_unref(plan);
  weir_cut_release(cut);
  return s;
}

static bool has_gpus(const weir_placing *placing) {
  return placing != NULL && placing->cluster->kind_count[WEIR_GPU] > 0;
}

/* The request that |e|'s key stands for, but for its graph. */
static weir_compile_request request_of(const weir_exec_session *session,
                                       const weir_cached *e) {
  const weir_session_options *o = &session->options;
  return (weir_compile_request){
      .feeds = e->ids,
      .fed_at = e->fed_at,
      .stays = e->stays,
      .fetches = e->ids + e->feed_count,
      .targets = e->ids + e->feed_count + e->fetch_count,
      .feed_count = e->feed_count,
      .fetch_count = e->fetch_count,
      .target_count = e->target_count,
      .no_updates = e->init,
      .options = {.no_fusion = o->no_fusion || e->no_fusion,
                  .no_fold = o->no_fold,
                  .ref_kernels = o->ref_kernels,
                  .no_layout = o->no_layout,
                  .tf32 = o->tf32,
                  .with_gpus = has_gpus(o->placing),
                  .one_task = o->one_task,
                  .overwrite = o->overwrite && !e->init,
                  .memory_limit = o->memory_limit,
                  .threads = weir_pool_threads(session->pool),
                  .seed = o->seed}};
}

weir_status weir_session_cut(weir_exec_session *session, const weir_wanted *w,
                             weir_cut **out_cut, weir_error *err) {
  *out_cut = NULL;
  weir_cached *e = weir_alloc_array(session->env->alloc, 1, sizeof *e);
  if (e == NULL) return weir_fail_memory(err, sizeof *e);
  const weir_graph *special = NULL;
  weir_status s = fill_key(session, w, e, err);
  if (s == WEIR_OK) s = specialize(session, e, &special, err);
  if (s == WEIR_OK) {
    weir_compile_request request = request_of(session, e);
    request.graph = special;
    s = weir_compile_cut(session->env, &request, true, out_cut, err);
  }
  weir_graph_unref(special);
  destroy(session, e);
  return s;
}

static weir_status compile_graph(weir_exec_session *session,
                                 const weir_wanted *w, weir_cached *e,
                                 weir_error *err) {
  constant_source source = {session, e, WEIR_OK, WEIR_ERROR_INIT};
  const weir_graph *special = NULL;
  weir_compile_request request = request_of(session, e);
  request.constant_var = e->init ? NULL : constant_var;
  request.constant_self = &source;
  WEIR_TRY(specialize(session, e, &special, err));
  request.graph = special;
  weir_status s = weir_session_places(session, w)
                      ? compile_placed(session, e, &request, err)
                      : weir_compile(session->env, &request, &e->compiled, err);
  weir_graph_unref(special);
  if (source.status == WEIR_OK) return s;
  weir_error_copy(err, &source.err);
  return source.status;
}

static weir_status compile(weir_exec_session *session, const weir_wanted *w,
                           weir_cached *e, weir_error *err) {
  e->constants = weir_alloc_array(session->env->alloc, session->var_count,
                                  sizeof *e->constants);
  if (e->constants == NULL) return weir_fail_memory(err, 0);
  WEIR_TRY(compile_graph(session, w, e, err));
  if (e->compiled->partition != NULL) {
    e->streams = weir_streams_create(session->env->alloc,
                                     e->compiled->partition->part_count);
    if (e->streams == NULL) return weir_fail_memory(err, sizeof *e->streams);
  }
  uint32_t n = e->compiled->var_count;
  e->vars = weir_alloc_array(session->env->alloc, n, sizeof *e->vars);
  if (e->vars == NULL) return weir_fail_memory(err, n * sizeof *e->vars);
  for (uint32_t i = 0; i < n; i++) {
    weir_sv name = e->compiled->vars[i].name;
    e->vars[i] = weir_map_get(&session->var_names, name);
    if (e->vars[i] == WEIR_MAP_NONE)
      return weir_fail(err, WEIR_W9001, NULL, "variable %.*s is not known",
                       WEIR_SV(name));
  }
  return WEIR_OK;
}

weir_cached *weir_session_program_known(weir_exec_session *session,
                                        const weir_wanted *wanted) {
  return find(session, wanted);
}

weir_status weir_session_program(weir_exec_session *session,
                                 const weir_wanted *wanted,
                                 weir_cached **out_cached, weir_error *err) {
  *out_cached = find(session, wanted);
  if (*out_cached != NULL) return WEIR_OK;
  weir_cached *e = weir_alloc_array(session->env->alloc, 1, sizeof *e);
  if (e == NULL) return weir_fail_memory(err, sizeof *e);
  weir_status s = fill_key(session, wanted, e, err);
  if (s == WEIR_OK) s = init_vars(session, wanted, err);
  if (s == WEIR_OK) s = compile(session, wanted, e, err);
  if (s != WEIR_OK) {
    destroy(session, e);
    return s;
  }
  insert(session, e);
  *out_cached = e;
  return WEIR_OK;
}

void weir_session_make_stale(weir_exec_session *session, uint32_t var) {
  weir_cached *gone[WEIR_SESSION_PROGRAMS];
  int count = 0;
  pthread_mutex_lock(&session->lock);
  for (int i = 0; i < WEIR_SESSION_PROGRAMS; i++) {
    weir_cached *e = session->cache[i];
    if (e == NULL || e->constants[var] == NULL) continue;
    atomic_store(&e->stale, true);
    session->cache[i] = NULL;
    gone[count++] = e;
  }
  pthread_mutex_unlock(&session->lock);
  for (int i = 0; i < count; i++)
    weir_session_program_release(session, gone[i]);
}

weir_status weir_session_frame(weir_exec_session *session, weir_cached *cached,
                               weir_frame **out_frame, weir_error *err) {
  pthread_mutex_lock(&session->lock);
  weir_frame *frame = cached->free_frames;
  if (frame != NULL) cached->free_frames = frame->next_free;
  pthread_mutex_unlock(&session->lock);
  *out_frame = frame;
  if (frame != NULL) return WEIR_OK;
  WEIR_TRY(weir_frame_create(cached->compiled->program, out_frame, err));
  if (cached->streams != NULL) weir_frame_share(*out_frame, cached->streams);
  weir_frame_set_channel(*out_frame, cached->route != NULL
                                         ? cached->route->channel
                                         : session->options.channel);
  return WEIR_OK;
}

void weir_session_frame_return(weir_exec_session *session, weir_cached *cached,
                               weir_frame *frame) {
  if (frame == NULL) return;
  pthread_mutex_lock(&session->lock);
  frame->next_free = cached->free_frames;
  cached->free_frames = frame;
  pthread_mutex_unlock(&session->lock);
}
