/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/exec/tasks/task_world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placement/parts/parts.h"
#include "runtime/exec/channel/channel_local.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"

enum { kFileBytes = 1 << 16 };

weir_sv task_graph_text(const char *path) {
  char *text = malloc(kFileBytes);
  FILE *file = fopen(path, "rb");
  assert_non_null(text);
  assert_non_null(file);
  size_t size = fread(text, 1, kFileBytes, file);
  assert_true(size < kFileBytes);
  fclose(file);
  return (weir_sv){text, size};
}

/* ---- A channel that counts */

typedef struct counting {
  weir_channel base;
  weir_channel *inner;
  atomic_uint_least64_t values, bytes, taken;
} counting;

static weir_channel *inner(weir_channel *channel) {
  return ((counting *)channel)->inner;
}

static void count_release(weir_channel *channel) {
  weir_channel_release(inner(channel));
  free(channel);
}

static void count_send(weir_channel *channel, uint32_t edge, uint64_t step,
                       const void *src, size_t bytes, weir_channel_done *done) {
  counting *c = (counting *)channel;
  if (bytes > 0) atomic_fetch_add(&c->values, 1);
  atomic_fetch_add(&c->bytes, bytes);
  c->inner->vt->send(c->inner, edge, step, src, bytes, done);
}

static void count_send_error(weir_channel *channel, uint32_t edge,
                             uint64_t step, const weir_error *why) {
  inner(channel)->vt->send_error(inner(channel), edge, step, why);
}

static void count_recv(weir_channel *channel, uint32_t edge, uint64_t step,
                       void *dst, size_t bytes, weir_channel_done *done) {
  inner(channel)->vt->recv(inner(channel), edge, step, dst, bytes, done);
}

/* Collectives between tasks are sends: none comes here. */
static void count_collective(weir_channel *channel, uint64_t step,
                             const weir_collective *part,
                             weir_channel_done *done) {
  (void)channel;
  (void)step;
  (void)part;
  (void)done;
  fail_msg("a collective went over the channel between tasks");
}

static void count_recv_pieces(weir_channel *channel, uint32_t edge,
                              uint64_t step, size_t bytes,
                              const weir_channel_sink *sink,
                              weir_channel_done *done) {
  counting *c = (counting *)channel;
  atomic_fetch_add(&c->taken, 1);
  c->inner->vt->recv_pieces(c->inner, edge, step, bytes, sink, done);
}

static void count_drop(weir_channel *channel, uint64_t step,
                       const weir_error *why) {
  inner(channel)->vt->drop(inner(channel), step, why);
}

static void count_abort(weir_channel *channel, const weir_error *why) {
  inner(channel)->vt->abort(inner(channel), why);
}

static weir_channel *counting_channel(const weir_env *env) {
  static const weir_channel_vtable vt = {.release = count_release,
                                         .send = count_send,
                                         .send_error = count_send_error,
                                         .recv = count_recv,
                                         .recv_pieces = count_recv_pieces,
                                         .collective = count_collective,
                                         .drop = count_drop,
                                         .abort = count_abort};
  weir_error err = WEIR_ERROR_INIT;
  counting *c = calloc(1, sizeof *c);
  assert_non_null(c);
  c->base.vt = &vt;
  assert_ok(weir_channel_local_create(env, WEIR_CHANNEL_MEET, &c->inner, &err),
            &err);
  return &c->base;
}

uint64_t task_world_values(const task_world *world) {
  return atomic_load(&((counting *)world->channel)->values);
}

uint64_t task_world_bytes(const task_world *world) {
  return atomic_load(&((counting *)world->channel)->bytes);
}

uint64_t task_world_taken(const task_world *world) {
  return atomic_load(&((counting *)world->channel)->taken);
}

/* ---- Feeds */

static void fill(weir_tensor *t) {
  uint32_t x = 2654435761u;
  for (int64_t i = 0;
       i < (int64_t)t->bytes / (int64_t)weir_dtype_size(t->dtype); i++) {
    x = x * 1664525u + 1013904223u;
    if (weir_dtype_is_float(t->dtype))
      weir_tensor_set_f64(t, i, (double)(x >> 8) * 0x1p-23 - 1);
    else
      weir_tensor_set_i64(t, i, x >> 31);
  }
}

void task_job_open(const weir_env *env, const weir_graph *graph, bool inference,
                   task_job *job) {
  weir_error err = WEIR_ERROR_INIT;
  memset(job, 0, sizeof *job);
  assert_ok(weir_goal_create(graph, inference, &job->goal, &err), &err);
  const weir_graph *g = job->goal->graph;
  for (uint32_t i = 0; i < g->input_count; i++) {
    weir_shape shape = *g->values[g->inputs[i].value].shape;
    if (g->inputs[i].has_default) continue;
    assert_true(job->feed_count < TASK_FEEDS);
    /* 16 images, for layouts of 16; fewer words, for the time. */
    int64_t open = g->values[g->inputs[i].value].dtype == WEIR_I32 ? 4 : 16;
    for (int32_t d = 0; d < shape.rank; d++)
      if (!weir_dim_known(shape.dims[d])) shape.dims[d] = weir_dim_of(open);
    weir_exec_feed *feed = &job->feeds[job->feed_count++];
    feed->value = g->inputs[i].value;
    assert_ok(
        weir_tensor_create_shaped(env->alloc, g->values[feed->value].dtype,
                                  &shape, &feed->tensor, &err),
        &err);
    fill(feed->tensor);
  }
}

void task_job_close(task_job *job) {
  for (uint32_t i = 0; i < job->feed_count; i++)
    weir_tensor_unref(job->feeds[i].tensor);
  weir_goal_release(job->goal);
}

/* ---- Sessions */

static void open_session(task_world *w, uint32_t task,
                         const weir_placing *placing, const weir_plan *plan) {
  weir_error err = WEIR_ERROR_INIT;
  weir_pool_options pool = {.threads = 1, .spin_ns = 1000};
  weir_session_share share = {w->owns[task], w->task_count};
  weir_session_options options = {.placing = placing,
                                  .plan = plan,
                                  .channel = w->channel,
                                  .share = placing != NULL ? &share : NULL};
  for (uint32_t t = task; t < w->task_count; t += w->count)
    w->owns[task][t] = true;
  assert_ok(weir_pool_create(w->env, &pool, &w->pools[task], &err), &err);
  assert_ok(
      weir_exec_session_create(w->env, w->pools[task], w->job->goal->graph,
                               &options, &w->sessions[task], &err),
      &err);
}

void task_world_open(const weir_env *env, const task_job *job,
                     const weir_placing *placing, const weir_plan *plan,
                     uint32_t sessions, task_world *w) {
  memset(w, 0, sizeof *w);
  w->env = env;
  w->job = job;
  w->task_count = placing != NULL ? placing->cluster->task_count : 1;
  w->count = sessions > 0 ? sessions : w->task_count;
  assert_true(w->task_count <= TASK_MOST && w->count <= w->task_count);
  assert_true(job->goal->fetch_count <= TASK_FETCHES);
  if (placing != NULL) w->channel = counting_channel(env);
  for (uint32_t t = 0; t < w->count; t++) open_session(w, t, placing, plan);
}

void task_world_drop_fetches(task_world *w) {
  for (uint32_t t = 0; t < w->count; t++)
    for (uint32_t k = 0; k < TASK_FETCHES; k++) {
      weir_tensor_unref(w->fetches[t][k].tensor);
      w->fetches[t][k].tensor = NULL;
    }
}

void task_world_close(task_world *w) {
  task_world_drop_fetches(w);
  for (uint32_t t = 0; t < w->count; t++) {
    weir_exec_session_release(w->sessions[t]);
    weir_pool_release(w->pools[t]);
  }
  weir_channel_release(w->channel);
}

typedef struct runner {
  task_world *world;
  uint32_t task;
  pthread_t thread;
} runner;

static void *run_task(void *self) {
  const runner *r = self;
  task_world *w = r->world;
  const weir_goal *goal = w->job->goal;
  weir_run_options options = {.step = w->step, .channel_step = w->step + 1};
  weir_exec_request request = {.feeds = w->job->feeds,
                               .feed_count = w->job->feed_count,
                               .fetches = w->fetches[r->task],
                               .fetch_count = goal->fetch_count,
                               .targets = goal->targets,
                               .target_count = goal->target_count,
                               .options = &options};
  for (uint32_t k = 0; k < goal->fetch_count; k++)
    w->fetches[r->task][k] = (weir_exec_fetch){.value = goal->fetches[k]};
  w->errors[r->task] = (weir_error)WEIR_ERROR_INIT;
  w->status[r->task] =
      weir_exec_run(w->sessions[r->task], &request, &w->errors[r->task]);
  if (w->status[r->task] != WEIR_OK && w->channel != NULL && !w->may_fail)
    w->channel->vt->abort(w->channel, &w->errors[r->task]);
  return NULL;
}

void task_world_step(task_world *w, const char *what) {
  runner runners[TASK_MOST];
  task_world_drop_fetches(w);
  for (uint32_t t = 0; t < w->count; t++) {
    runners[t] = (runner){.world = w, .task = t};
    assert_int_equal(
        pthread_create(&runners[t].thread, NULL, run_task, &runners[t]), 0);
  }
  for (uint32_t t = 0; t < w->count; t++) pthread_join(runners[t].thread, NULL);
  for (uint32_t t = 0; t < w->count; t++)
    if (w->status[t] != WEIR_OK && !w->may_fail)
      fail_msg("%s: task %u, step %u: %s %s", what, t, (unsigned)w->step,
               w->errors[t].id, w->errors[t].message);
  w->step++;
}

/* ---- The same bits */

static void same_bits(const weir_tensor *a, const weir_tensor *b,
                      const char *what, const char *kind, uint32_t number) {
  if (a->dtype != b->dtype || !weir_shape_equal(&a->shape, &b->shape))
    fail_msg("%s: %s %u has another type", what, kind, number);
  if (a->bytes > 0 && memcmp(a->data, b->data, a->bytes) != 0)
    fail_msg("%s: %s %u differs", what, kind, number);
}

static void compare_fetch(task_world *one, task_world *tasks, uint32_t k,
                          const char *what) {
  const weir_exec_fetch *found = NULL;
  assert_false(one->fetches[0][k].elsewhere);
  for (uint32_t t = 0; t < tasks->count; t++) {
    const weir_exec_fetch *f = &tasks->fetches[t][k];
    assert_int_equal(f->elsewhere, f->tensor == NULL);
    if (f->elsewhere) continue;
    if (found != NULL && tasks->sessions[t]->options.placing == NULL)
      fail_msg("%s: fetch %u is made twice", what, k);
    found = f;
    same_bits(one->fetches[0][k].tensor, f->tensor, what, "fetch", k);
  }
  if (found == NULL) fail_msg("%s: no task makes fetch %u", what, k);
}

static void compare_variable(task_world *one, task_world *tasks, uint32_t v,
                             const char *what) {
  weir_error err = WEIR_ERROR_INIT;
  weir_node_id node = one->sessions[0]->vars[v].node;
  weir_tensor *want = NULL;
  uint32_t homes = 0;
  assert_ok(weir_session_get(one->sessions[0], node, &want, &err), &err);
  for (uint32_t t = 0; t < tasks->count; t++) {
    weir_tensor *got = NULL;
    weir_status s = weir_session_get(tasks->sessions[t], node, &got, &err);
    if (s != WEIR_OK) {
      assert_string_equal(err.id, "W7050");
      continue;
    }
    homes++;
    same_bits(want, got, what, "variable", v);
    weir_tensor_unref(got);
  }
  if (homes != 1) fail_msg("%s: variable %u has %u homes", what, v, homes);
  weir_tensor_unref(want);
}

void task_world_compare(task_world *one, task_world *tasks, const char *what) {
  for (uint32_t k = 0; k < one->job->goal->fetch_count; k++)
    compare_fetch(one, tasks, k, what);
  for (uint32_t v = 0; v < one->sessions[0]->var_count; v++)
    compare_variable(one, tasks, v, what);
}

/* ---- Rows */

typedef struct sums {
  uint32_t nodes, sent, received;
  int64_t sent_bytes, received_bytes;
} sums;

static const weir_compiled *compiled_of(const weir_exec_session *session) {
  const weir_compiled *found = NULL;
  for (int i = 0; i < WEIR_SESSION_PROGRAMS; i++)
    if (session->cache[i] != NULL &&
        session->cache[i]->compiled->tasks != NULL) {
      assert_null(found);
      found = session->cache[i]->compiled;
    }
  return found;
}

/* Each task has one device: all that its part sends goes to other tasks. */
static sums of_program(const weir_program *p) {
  sums s = {0};
  assert_null(p->next_part);
  for (uint32_t i = 0; i < p->instr_count; i++) {
    const weir_instr_spec *spec = &p->instrs[i].spec;
    bool send = spec->kind == WEIR_INSTR_SEND;
    if (!send && spec->kind != WEIR_INSTR_RECV) continue;
    *(send ? &s.sent : &s.received) += 1;
    *(send ? &s.sent_bytes : &s.received_bytes) += spec->bytes;
  }
  return s;
}

static sums of_table(const weir_task_cut *cut, uint32_t task) {
  const weir_task_row *row = &cut->tasks[task];
  sums s = {.nodes = row->node_count};
  for (uint32_t i = 0; i < cut->crossing_count; i++) {
    const weir_crossing *x = &cut->crossings[i];
    if (x->at_start || (x->from != task && x->to != task)) continue;
    bool send = x->from == task;
    *(send ? &s.sent : &s.received) += 1;
    *(send ? &s.sent_bytes : &s.received_bytes) += x->bytes;
  }
  assert_int_equal(s.sent, row->sent_count);
  assert_int_equal(s.received, row->received_count);
  assert_int_equal(s.sent_bytes, row->sent_bytes);
  assert_int_equal(s.received_bytes, row->received_bytes);
  return s;
}

static sums of_rows(const weir_place_parts *parts, uint32_t task) {
  sums s = {0};
  for (uint32_t p = 0; p < parts->part_count; p++)
    if (parts->parts[p].task == task) s.nodes += parts->parts[p].node_count;
  for (uint32_t e = 0; e < parts->edge_count; e++) {
    const weir_parts_edge *x = &parts->edges[e];
    if (x->at_start || !x->between_tasks) continue;
    if (parts->parts[x->from].task == task) {
      s.sent++;
      s.sent_bytes += x->bytes;
    }
    if (parts->parts[x->to].task == task) {
      s.received++;
      s.received_bytes += x->bytes;
    }
  }
  return s;
}

static void same_sums(const sums *a, const sums *b, uint32_t task,
                      const char *kind, const char *what) {
  if (a->sent != b->sent || a->received != b->received ||
      a->sent_bytes != b->sent_bytes || a->received_bytes != b->received_bytes)
    fail_msg(
        "%s, task %u: %u sends of %d bytes and %u receives of %d, %s say "
        "%u of %d and %u of %d",
        what, task, a->sent, (int)a->sent_bytes, a->received,
        (int)a->received_bytes, kind, b->sent, (int)b->sent_bytes, b->received,
        (int)b->received_bytes);
}

void task_world_check_rows(const task_world *w, const char *what) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_compiled *first = compiled_of(w->sessions[0]);
  weir_place_parts *parts = NULL;
  if (first == NULL) return; /* constants alone: no parts */
  assert_ok(weir_place_parts_create(w->env->alloc, first->plan->placement,
                                    first->partition, &parts, &err),
            &err);
  for (uint32_t t = 0; t < w->count; t++) {
    const weir_compiled *c = compiled_of(w->sessions[t]);
    sums made = of_program(c->program), table = of_table(c->tasks, t);
    sums rows = of_rows(parts, t);
    assert_int_equal(weir_task_cut_hash(c->tasks),
                     weir_task_cut_hash(first->tasks));
    same_sums(&made, &table, t, "the table", what);
    same_sums(&made, &rows, t, "the rows", what);
    assert_int_equal(table.nodes, rows.nodes);
  }
  weir_place_parts_release(parts);
}

uint32_t task_world_far_ranks(const task_world *w) {
  return compiled_of(w->sessions[0])->tasks->far_rank_count;
}
