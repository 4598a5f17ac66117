/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: from Register to ADDED, on the engine's thread.
 *
 * The bundle's session is made once; then the request's cut, the plan that came
 * for it, the table of edges to other tasks, and the compiled parts. */
#include "runtime/dist/run/run_add.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/tune/tuned.h"
#include "placement/parts/hashes.h"
#include "placement/parts/tasks.h"
#include "runtime/dist/run/run_blobs.h"
#include "runtime/dist/run/run_step.h"
#include "runtime/exec/session/session_first.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/net/wire.h"

/* ---- Bundles */

static void release_bundle(run_engine *e, run_bundle *b) {
  weir_exec_session_release(b->session);
  weir_channel_release(b->channel);
  weir_rebuilt_release(&b->rebuilt);
  weir_unpacked_bundle_release(&b->unpacked);
  weir_run_files_release(b);
  weir_free(e->env.alloc, b->share);
  weir_free(e->env.alloc, b->places);
  weir_free(e->env.alloc, b);
}

/* Which place each task of the cluster has, by its name. One task alone, with a
 * cluster of one, has the whole graph, and the names do not matter: so workers
 * that are dealt the same work have one placing. */
static weir_status find_places(run_engine *e, run_bundle *b, weir_error *err) {
  const weir_cluster *c = b->rebuilt.placing->cluster;
  b->share = weir_alloc_array(e->env.alloc, c->task_count, sizeof *b->share);
  b->places = weir_alloc_array(e->env.alloc, c->task_count, sizeof *b->places);
  if (b->share == NULL || b->places == NULL)
    return weir_fail_memory(err, c->task_count);
  for (uint32_t t = 0; t < c->task_count; t++) {
    char name[WEIR_DEVICE_JOB_BYTES + 16];
    snprintf(name, sizeof name, "%.*s:%" PRIu32, WEIR_SV(c->tasks[t].job),
             c->tasks[t].index);
    bool alone = c->task_count == 1 && e->session.task_count == 1;
    b->places[t] = alone ? 0 : UINT32_MAX;
    for (uint32_t i = 0; i < e->session.task_count; i++)
      if (strcmp(e->session.tasks[i], name) == 0) b->places[t] = i;
    b->share[t] = b->places[t] == e->session.self;
  }
  return WEIR_OK;
}

/* A share's variables are made by the first driver, here and now, in its turn;
 * the others find them. */
static weir_status check_values(const run_program *p, run_bundle *b,
                                weir_error *err) {
  if (p->engine->store == NULL) return WEIR_OK;
  if (p->fresh) return weir_session_vars_init(b->session, err);
  if (weir_session_vars_ready(b->session)) return WEIR_OK;
  return weir_fail(err, WEIR_W7087, NULL,
                   "some variables of the share have no values");
}

static weir_status open_bundle(const run_program *p, run_bundle *b,
                               weir_error *err) {
  run_engine *e = p->engine;
  weir_bytes bytes;
  WEIR_TRY(weir_run_blob(e, b->name, &bytes, err));
  WEIR_TRY(weir_bundle_unpack(e->env.alloc, bytes, &b->unpacked, err));
  WEIR_TRY(weir_run_files_open(e, b, err));
  WEIR_TRY(weir_bundle_rebuild(&e->env, e->registry, &b->unpacked, &b->rebuilt,
                               err));
  WEIR_TRY(find_places(e, b, err));
  WEIR_TRY(
      weir_exchange_channel_create(e->exchange, NULL, 0, &b->channel, err));
  const weir_bundle *o = &b->unpacked.bundle;
  weir_session_share share = {b->share,
                              b->rebuilt.placing->cluster->task_count};
  weir_session_options options = {.no_fusion = o->no_fusion,
                                  .no_fold = o->no_fold,
                                  .ref_kernels = o->ref_kernels,
                                  .no_layout = o->no_layout,
                                  .tf32 = o->tf32,
                                  .memory_limit = o->memory_limit,
                                  .seed = o->session_seed,
                                  .placing = b->rebuilt.placing,
                                  .share = &share,
                                  .channel = b->channel,
                                  .store_fresh = p->fresh};
  if (e->store != NULL) {
    options.store = e->store->vars;
    WEIR_TRY(run_store_check_home(e->store, &e->session, p->home, err));
  }
  WEIR_TRY(weir_exec_session_create(&e->env, e->pool, b->rebuilt.graph,
                                    &options, &b->session, err));
  return check_values(p, b, err);
}

static weir_status get_bundle(const run_program *p, run_bundle **out,
                              weir_error *err) {
  run_engine *e = p->engine;
  const uint8_t *name = p->bundle_name;
  for (run_bundle *b = e->bundles; b != NULL; b = b->next)
    if (memcmp(b->name, name, sizeof b->name) == 0) {
      *out = b;
      return WEIR_OK;
    }
  run_bundle *b = weir_alloc_array(e->env.alloc, 1, sizeof *b);
  if (b == NULL) return weir_fail_memory(err, sizeof *b);
  weir_arena_init(&b->unpacked.arena, e->env.alloc);
  memcpy(b->name, name, sizeof b->name);
  weir_status s = open_bundle(p, b, err);
  if (s != WEIR_OK) {
    release_bundle(e, b);
    return s;
  }
  pthread_mutex_lock(&e->lock);
  b->next = e->bundles;
  e->bundles = b;
  pthread_mutex_unlock(&e->lock);
  *out = b;
  return WEIR_OK;
}

/* ---- Programs */

void run_program_unref(run_program *p) {
  if (p == NULL || atomic_fetch_sub(&p->refs, 1) != 1) return;
  const weir_allocator *a = p->engine->env.alloc;
  for (uint32_t i = 0; p->feeds != NULL && i < p->feed_count; i++)
    weir_tensor_unref(p->feeds[i].tensor);
  weir_plan_unref(p->plan);
  weir_arena_release(&p->arena);
  weir_free(a, p);
}

static void program_read(weir_engine_event *event) {
  run_program_unref(
      (run_program *)((char *)event - offsetof(run_program, added)));
}

run_program *run_program_get(run_engine *e, uint32_t number) {
  pthread_mutex_lock(&e->lock);
  run_program *p = e->programs;
  while (p != NULL && p->number != number) p = p->next;
  if (p != NULL) atomic_fetch_add(&p->refs, 1);
  pthread_mutex_unlock(&e->lock);
  return p;
}

static run_program *unlist(run_engine *e, uint32_t number) {
  pthread_mutex_lock(&e->lock);
  run_program **at = &e->programs;
  while (*at != NULL && (*at)->number != number) at = &(*at)->next;
  run_program *p = *at;
  if (p != NULL) *at = p->next;
  pthread_mutex_unlock(&e->lock);
  return p;
}

static void drop_program(run_program *p) {
  if (p == NULL) return;
  if (p->plan != NULL) weir_session_remove_plan(p->bundle->session, p->plan);
  run_program_unref(p);
}

/* On the engine's thread: no program of the bundle is made meanwhile. */
static void close_bundle(run_engine *e, run_job *job) {
  run_program *p = (run_program *)job;
  pthread_mutex_lock(&e->lock);
  run_bundle **at = &e->bundles;
  while (*at != NULL && *at != p->bundle) at = &(*at)->next;
  run_bundle *b = *at;
  if (b != NULL) *at = b->next;
  pthread_mutex_unlock(&e->lock);
  if (b != NULL) release_bundle(e, b);
  run_program_unref(p);
  run_end_work(e);
}

void run_remove(weir_engine *engine, uint32_t number) {
  run_engine *e = (run_engine *)engine;
  run_program *p = unlist(e, number);
  if (p == NULL || !p->empty) {
    drop_program(p);
    return;
  }
  /* The driver's session is closed; the next one has variables of its own. */
  p->job.run = close_bundle;
  run_begin_work(e);
  run_post_job(e, &p->job);
}

void run_release_session(run_engine *e) {
  while (e->programs != NULL) drop_program(unlist(e, e->programs->number));
  while (e->bundles != NULL) {
    run_bundle *b = e->bundles;
    e->bundles = b->next;
    release_bundle(e, b);
  }
  weir_run_blobs_release(e);
}

/* The table of edges to and from other tasks, and the tasks. */
static weir_status make_edges(run_program *p, const weir_task_cut *cut,
                              weir_exchange_edge *edges, bool *with,
                              weir_error *err) {
  const run_bundle *b = p->bundle;
  for (uint32_t i = 0; i < cut->number_count; i++)
    edges[i] = (weir_exchange_edge){UINT32_MAX, false, 0};
  for (uint32_t i = 0; i < cut->crossing_count; i++) {
    const weir_crossing *x = &cut->crossings[i];
    bool out = b->share[x->from];
    if (out == b->share[x->to]) continue;
    uint32_t peer = b->places[out ? x->to : x->from];
    if (peer == UINT32_MAX)
      return weir_fail(
          err, WEIR_W7051, NULL,
          "the plan uses a task that takes no part: %.*s",
          WEIR_SV(
              b->rebuilt.placing->cluster->tasks[out ? x->to : x->from].job));
    edges[x->number] = (weir_exchange_edge){peer, out, WEIR_EXCHANGE_ANY_BYTES};
    with[peer] = true;
  }
  return WEIR_OK;
}

static weir_status make_channel(run_engine *e, run_program *p,
                                const weir_task_cut *cut, weir_error *err) {
  weir_channel *channel = NULL;
  uint32_t tasks = e->session.task_count;
  weir_exchange_edge *edges = weir_alloc_array(
      e->env.alloc, (size_t)cut->number_count + 1, sizeof *edges);
  bool *with = weir_alloc_array(e->env.alloc, tasks, sizeof *with);
  weir_status s = edges == NULL || with == NULL
                      ? weir_fail_memory(err, cut->number_count)
                      : make_edges(p, cut, edges, with, err);
  for (uint32_t i = 0; s == WEIR_OK && i < tasks; i++)
    if (with[i]) p->peers[p->added.peer_count++] = i;
  p->added.peers = p->peers;
  if (s == WEIR_OK)
    s = weir_exchange_channel_create(e->exchange, edges, cut->number_count,
                                     &channel, err);
  if (s == WEIR_OK) {
    s = weir_session_add_plan(p->bundle->session, p->plan, channel, err);
    if (s != WEIR_OK) weir_channel_release(channel);
  }
  weir_free(e->env.alloc, edges);
  weir_free(e->env.alloc, with);
  return s;
}

/* Which feeds are taken here. A feed that the cut has not is taken nowhere. */
static void find_feeds(run_program *p, const weir_cut *cut,
                       const weir_task_cut *tasks) {
  for (uint32_t i = 0; i < p->feed_count; i++) {
    weir_value_id id = cut->values[p->feeds[i].value];
    p->own_feed[i] =
        id != WEIR_NO_VALUE && p->bundle->share[weir_task_of_value(tasks, id)];
  }
}

static weir_status check_request(const run_program *p, weir_error *err) {
  const weir_graph *g = weir_session_graph(p->bundle->session);
  for (uint32_t i = 0; i < p->feed_count; i++)
    if (p->feeds[i].value >= g->value_count)
      return weir_fail(err, WEIR_W7051, NULL, "a feed names no value");
  return WEIR_OK;
}

static weir_status place_program(run_engine *e, run_program *p,
                                 const weir_exec_request *request,
                                 weir_error *err) {
  weir_cut *cut = NULL;
  weir_task_cut *tasks = NULL;
  const weir_partition *partition = NULL;
  weir_plan_hashes hashes = {0};
  weir_bytes bytes;
  WEIR_TRY(weir_run_blob(e, p->plan_name, &bytes, err));
  WEIR_TRY(weir_session_cut_of(p->bundle->session, request, &cut, err));
  weir_status s = weir_plan_unpack(p->bundle->rebuilt.placing, cut->graph,
                                   bytes, &p->plan, err);
  if (s == WEIR_OK) s = weir_plan_hashes_get(p->plan, &hashes, err);
  if (s == WEIR_OK) s = weir_plan_partition(p->plan, &partition, err);
  if (s == WEIR_OK)
    s = weir_task_cut_create(e->env.alloc, p->plan->placement, partition,
                             &tasks, err);
  if (s == WEIR_OK) find_feeds(p, cut, tasks);
  if (s == WEIR_OK) s = make_channel(e, p, tasks, err);
  p->added.graph_hash = hashes.graph;
  p->added.plan_hash = hashes.plan + weir_tuned_hash(e->env.tuned);
  p->added.partition_hash = hashes.partition;
  weir_task_cut_release(tasks);
  weir_cut_release(cut);
  return s;
}

static weir_status make_program(run_engine *e, run_program *p,
                                weir_error *err) {
  weir_program_facts facts;
  weir_exec_request request;
  WEIR_TRY(get_bundle(p, &p->bundle, err));
  if (p->empty) return WEIR_OK; /* the session alone was wanted */
  WEIR_TRY(check_request(p, err));
  p->trap_nan = p->trap_nan && !p->bundle->unpacked.bundle.no_fusion;
  weir_run_options options = {.trap_nan = p->trap_nan};
  WEIR_TRY(
      run_program_request(p, &p->arena, p->feeds, &options, &request, err));
  WEIR_TRY(place_program(e, p, &request, err));
  WEIR_TRY(weir_session_prepare(p->bundle->session, &request, &facts, err));
  p->added.writes = facts.writes;
  p->added.memory_bytes = facts.memory_bytes;
  return WEIR_OK;
}

/* The event is posted last: after it the program may be gone. */
static void add_program(run_engine *e, run_job *job) {
  run_program *p = (run_program *)job;
  weir_status s = make_program(e, p, &p->added.error);
  atomic_fetch_add(&p->refs, 1); /* the event's */
  if (s == WEIR_OK) {
    pthread_mutex_lock(&e->lock);
    p->next = e->programs;
    e->programs = p;
    pthread_mutex_unlock(&e->lock);
  } else {
    p->added.peer_count = 0;
    if (p->bundle != NULL && p->plan != NULL)
      weir_session_remove_plan(p->bundle->session, p->plan);
    run_program_unref(p);
  }
  run_post_event(e, &p->added);
  run_end_work(e);
}

static weir_status copy_feed(run_program *p, uint32_t i,
                             const Weir__V1__Feed *feed, weir_error *err) {
  weir_shape shape = {.rank = 0};
  size_t rank = feed->shape != NULL ? feed->shape->n_dims : 0;
  if (rank > WEIR_MAX_RANK || feed->dtype == 0 ||
      (feed->dtype & ~(uint32_t)WEIR_ALL_TYPES) != 0 ||
      (feed->dtype & (feed->dtype - 1)) != 0)
    return weir_fail(err, WEIR_W7051, NULL, "feed %u has no such type", i);
  shape.rank = (int32_t)rank;
  for (size_t d = 0; d < rank; d++) {
    if (feed->shape->dims[d] < 0)
      return weir_fail(err, WEIR_W7051, NULL, "feed %u has an open shape", i);
    shape.dims[d] = weir_dim_of(feed->shape->dims[d]);
  }
  weir_tensor_memory none = {
      .dtype = (weir_dtype)feed->dtype, .shape = &shape, .data = p};
  p->feeds[i].value = feed->value;
  WEIR_TRY(
      weir_tensor_wrap(p->engine->env.alloc, &none, &p->feeds[i].tensor, err));
  p->feeds[i].tensor->data = NULL; /* never read: session.h */
  return WEIR_OK;
}

static weir_status copy_request(run_program *p, const Weir__V1__Register *r,
                                weir_error *err) {
  weir_arena *a = &p->arena;
  p->empty = r->plan.len == 0;
  if (r->bundle.len != WEIR_BLOB_NAME_BYTES ||
      (!p->empty && r->plan.len != WEIR_BLOB_NAME_BYTES))
    return weir_fail(err, WEIR_W7011, NULL,
                     "a program without the names of its bundle and plan");
  memcpy(p->bundle_name, r->bundle.data, WEIR_BLOB_NAME_BYTES);
  if (!p->empty) memcpy(p->plan_name, r->plan.data, WEIR_BLOB_NAME_BYTES);
  p->number = r->program;
  p->trap_nan = (r->flags & WEIR_REGISTER_TRAP_NAN) != 0;
  p->fresh = (r->flags & WEIR_WIRE_REGISTER_FRESH) != 0;
  p->home = r->home;
  p->feeds = weir_arena_array(a, r->n_feeds + 1, sizeof *p->feeds);
  p->own_feed = weir_arena_array(a, r->n_feeds + 1, sizeof *p->own_feed);
  p->fetches = weir_arena_array(a, r->n_fetches + 1, sizeof *p->fetches);
  p->targets = weir_arena_array(a, r->n_targets + 1, sizeof *p->targets);
  p->peers = weir_arena_array(a, (size_t)p->engine->session.task_count + 1,
                              sizeof *p->peers);
  if (p->feeds == NULL || p->own_feed == NULL || p->fetches == NULL ||
      p->targets == NULL || p->peers == NULL)
    return weir_fail_memory(err, r->n_feeds * sizeof *p->feeds);
  p->feed_count = (uint32_t)r->n_feeds;
  p->fetch_count = (uint32_t)r->n_fetches;
  p->target_count = (uint32_t)r->n_targets;
  for (uint32_t i = 0; i < p->fetch_count; i++) p->fetches[i] = r->fetches[i];
  for (uint32_t i = 0; i < p->target_count; i++) p->targets[i] = r->targets[i];
  for (uint32_t i = 0; i < p->feed_count; i++)
    WEIR_TRY(copy_feed(p, i, r->feeds[i], err));
  return WEIR_OK;
}

weir_status run_add(weir_engine *engine, const Weir__V1__Register *request,
                    weir_error *err) {
  run_engine *e = (run_engine *)engine;
  run_program *p = weir_alloc_array(e->env.alloc, 1, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  p->engine = e;
  p->job.run = add_program;
  atomic_init(&p->refs, 1);
  weir_arena_init(&p->arena, e->env.alloc);
  weir_status s = copy_request(p, request, err);
  if (s != WEIR_OK) {
    run_program_unref(p);
    return s;
  }
  p->added = (weir_engine_event){.kind = WEIR_ENGINE_ADDED,
                                 .release = program_read,
                                 .program = p->number,
                                 .error = WEIR_ERROR_INIT};
  drop_program(unlist(e, p->number));
  run_begin_work(e);
  run_post_job(e, &p->job);
  return WEIR_OK;
}
