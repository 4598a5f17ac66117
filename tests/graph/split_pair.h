/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_GRAPH_SPLIT_PAIR_H_
#define TESTS_GRAPH_SPLIT_PAIR_H_

#include <math.h>
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/base/fs/fs_system.h"
#include "runtime/exec/session/session.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/goal.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/split/split.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"
#include "tests/exec/support.h"

/* One training, twice: as the joined training graph, and as a worker graph and
 * update graphs that are run in turn. Each batch goes to both, and all values
 * of both are compared bit for bit. */

enum { PAIR_SERVERS = 4, PAIR_VALUES = 256 };

typedef struct split_pair {
  exec_world world;
  weir_pool *pool;
  weir_graph *graph;
  weir_train_spec *spec;
  weir_train_graph *joined;
  weir_split *split;
  weir_exec_session *one, *worker, *servers[PAIR_SERVERS];
  uint32_t aggregate;
  bool given_step;
  uint64_t runs;     /* batches so far */
  int64_t staleness; /* of the next push, where it is given */
  weir_tensor *norm; /* of the step, over several servers */
} split_pair;

typedef struct split_pair_options {
  const char *text, *file; /* one of them */
  const weir_param_value *params;
  size_t param_count;
  const weir_param_value *overrides;
  size_t override_count;
  int threads;
  weir_split_options split;
} split_pair_options;

static inline void pair_session(split_pair *p, const weir_graph *graph,
                                weir_exec_session **out) {
  weir_error err = WEIR_ERROR_INIT;
  weir_session_options session = {.seed = 1};
  assert_ok(weir_exec_session_create(&p->world.env, p->pool, graph, &session,
                                     out, &err),
            &err);
}

static inline void pair_load(split_pair *p, const split_pair_options *o) {
  weir_error err = WEIR_ERROR_INIT;
  weir_load_options options = {.registry = weir_builtin_registry(),
                               .params = o->params,
                               .param_count = o->param_count,
                               .overrides = o->overrides,
                               .override_count = o->override_count};
  weir_status s =
      o->file != NULL
          ? weir_graph_load(&p->world.env, o->file, &options, &p->graph, &err)
          : weir_graph_load_text(&p->world.env, weir_sv_from(o->text), "t",
                                 &options, &p->graph, &err);
  assert_ok(s, &err);
  assert_ok(weir_train_spec_read(p->graph, NULL, &p->spec, &err), &err);
}

static inline void pair_open(split_pair *p, const split_pair_options *o) {
  weir_error err = WEIR_ERROR_INIT;
  memset(p, 0, sizeof *p);
  exec_world_init(&p->world);
  p->world.env.fs = &weir_system_fs;
  p->pool = exec_pool(&p->world, o->threads > 0 ? o->threads : 1);
  p->aggregate = o->split.aggregate > 0 ? o->split.aggregate : 1;
  p->given_step = o->split.given_step;
  pair_load(p, o);
  assert_ok(weir_graph_split(p->graph, p->spec, &o->split, &p->split, &err),
            &err);
  p->spec->accumulate = p->aggregate;
  p->spec->shared.given_staleness = o->split.given_staleness;
  assert_ok(weir_graph_train(p->graph, p->spec, &p->joined, &err), &err);
  assert_true(p->split->server_count <= PAIR_SERVERS);
  assert_true(p->split->var_count + p->split->push_count < PAIR_VALUES);
  pair_session(p, p->joined->graph, &p->one);
  pair_session(p, p->split->worker, &p->worker);
  for (uint32_t k = 0; k < p->split->server_count; k++)
    pair_session(p, p->split->updates[k].graph, &p->servers[k]);
}

static inline void pair_close(split_pair *p) {
  weir_tensor_unref(p->norm);
  weir_exec_session_release(p->one);
  weir_exec_session_release(p->worker);
  for (uint32_t k = 0; k < PAIR_SERVERS; k++)
    weir_exec_session_release(p->servers[k]);
  weir_split_release(p->split);
  weir_train_graph_release(p->joined);
  weir_train_spec_release(p->spec);
  weir_graph_unref(p->graph);
  weir_pool_release(p->pool);
  exec_world_check_empty(&p->world);
}

/* ---- Batches */

static inline double pair_element(uint64_t run, int64_t i, const weir_value *v,
                                  int rank) {
  uint64_t x = (uint64_t)i * 7919 + run * 104729 + 13;
  x = (x ^ (x >> 7)) * 2654435761u;
  x ^= x >> 15;
  if (weir_dtype_is_float(v->dtype)) return (double)(x % 2003) / 1001 - 1;
  return (double)(x % (rank == 1   ? 2
                       : rank == 2 ? 7
                                   : 256)); /* labels, words,
                                               pixels */
}

static inline weir_tensor *pair_input(split_pair *p, const weir_graph_port *in,
                                      const weir_shape *shape) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_value *v = &p->graph->values[in->value];
  weir_tensor *t = NULL;
  assert_ok(
      weir_tensor_create_shaped(p->world.env.alloc, v->dtype, shape, &t, &err),
      &err);
  int64_t n = weir_shape_elements(shape);
  for (int64_t i = 0; i < n; i++) {
    double x = pair_element(p->runs, i, v, shape->rank);
    if (weir_dtype_is_float(v->dtype))
      weir_tensor_set_f64(t, i, x);
    else
      weir_tensor_set_i64(t, i, (int64_t)x);
  }
  return t;
}

static inline weir_tensor *pair_number(split_pair *p, int64_t n) {
  weir_error err = WEIR_ERROR_INIT;
  weir_shape scalar = weir_shape_of(0, NULL);
  weir_tensor *t = NULL;
  assert_ok(weir_tensor_create_shaped(p->world.env.alloc, WEIR_I64, &scalar, &t,
                                      &err),
            &err);
  weir_tensor_set_i64(t, 0, n);
  return t;
}

/* The number of a batch's examples, where batches weigh by them: each has
 * another. */
static inline uint32_t pair_rows(split_pair *p, weir_exec_feed *joined,
                                 weir_exec_feed *worker) {
  if (p->joined->rows == WEIR_NO_VALUE) return 0;
  weir_tensor *t = pair_number(p, 1 + (int64_t)(p->runs * 5 % 7));
  *joined = (weir_exec_feed){p->joined->rows, t};
  *worker = (weir_exec_feed){p->split->rows, t};
  return 1;
}

/* Feeds of the data inputs, in both graphs. */
static inline uint32_t pair_feeds(split_pair *p, weir_exec_feed *joined,
                                  weir_exec_feed *worker) {
  weir_error err = WEIR_ERROR_INIT;
  weir_shape shapes[16];
  uint32_t count = p->graph->input_count;
  assert_true(count <= 16);
  assert_ok(weir_graph_input_shapes(p->graph, NULL, 4, shapes, &err), &err);
  for (uint32_t i = 0; i < count; i++) {
    const weir_graph_port *in = &p->graph->inputs[i];
    weir_tensor *t = pair_input(p, in, &shapes[i]);
    joined[i] = (weir_exec_feed){in->value, t};
    worker[i] = (weir_exec_feed){p->split->worker_values[in->value], t};
  }
  return count + pair_rows(p, joined + count, worker + count);
}

/* ---- One batch */

static inline void pair_same(const weir_tensor *a, const weir_tensor *b,
                             weir_sv name, uint64_t run) {
  if (a->dtype == b->dtype && weir_shape_equal(&a->shape, &b->shape) &&
      memcmp(a->data, b->data, a->bytes) == 0)
    return;
  fail_msg("run %d: %.*s differs", (int)run, WEIR_SV(name));
}

/* ---- Pieces */

/* |bytes| of |whole| as a value of their own: the part that |rows| says. */
static inline weir_tensor *pair_part(split_pair *p, const weir_tensor *whole,
                                     const weir_split_rows *rows,
                                     uint64_t bytes) {
  weir_error err = WEIR_ERROR_INIT;
  weir_shape shape = whole->shape;
  weir_tensor *t = NULL;
  if (rows->all > 0) shape.dims[0].value = rows->count;
  assert_ok(weir_tensor_create_shaped(p->world.env.alloc, whole->dtype, &shape,
                                      &t, &err),
            &err);
  assert_int_equal(t->bytes, bytes);
  assert_true(rows->offset + bytes <= whole->bytes);
  if (bytes > 0) memcpy(t->data, (char *)whole->data + rows->offset, bytes);
  return t;
}

/* The variable whose first piece is |*at|, from the servers that have its
 * pieces; |*at| is then that of its last. */
static inline weir_tensor *pair_whole(split_pair *p, uint32_t *at) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_split *s = p->split;
  const weir_value *like = &s->worker->values[s->vars[*at].worker];
  weir_tensor *whole = NULL;
  int64_t rows = 0;
  assert_ok(weir_tensor_create_shaped(p->world.env.alloc, like->dtype,
                                      like->shape, &whole, &err),
            &err);
  for (;; ++*at) {
    const weir_split_var *v = &s->vars[*at];
    weir_tensor *t = NULL;
    assert_ok(
        weir_exec_variable_snapshot(p->servers[v->server],
                                    s->updates[v->server].vars[*at], &t, &err),
        &err);
    assert_int_equal(v->rows.first, rows);
    assert_int_equal(t->bytes, v->bytes);
    if (v->bytes > 0)
      memcpy((char *)whole->data + v->rows.offset, t->data, v->bytes);
    weir_tensor_unref(t);
    rows += v->rows.count;
    if (rows == v->rows.all) return whole;
  }
}

/* The values of variables, for the worker's inputs of their names. */
static inline uint32_t pair_pull(split_pair *p, weir_exec_feed *feeds) {
  const weir_split *s = p->split;
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->var_count; i++) {
    weir_value_id worker = s->vars[i].worker;
    if (worker == WEIR_NO_VALUE) continue;
    feeds[n++] = (weir_exec_feed){worker, pair_whole(p, &i)};
  }
  return n;
}

/* A worker's run: |out| gets the loss, then all pushes. */
static inline void pair_compute(split_pair *p, weir_exec_feed *feeds,
                                uint32_t feed_count, weir_exec_fetch *out) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_split *s = p->split;
  for (uint32_t i = 0; i <= s->push_count; i++)
    out[i] =
        (weir_exec_fetch){.value = i == 0 ? s->loss : s->pushes[i - 1].worker};
  uint32_t pulled = pair_pull(p, feeds + feed_count);
  weir_run_options options = {.step = p->runs};
  weir_exec_request request = {.feeds = feeds,
                               .feed_count = feed_count + pulled,
                               .fetches = out,
                               .fetch_count = s->push_count + 1,
                               .options = &options};
  assert_ok(weir_exec_run(p->worker, &request, &err), &err);
  for (uint32_t i = 0; i < pulled; i++)
    weir_tensor_unref(feeds[feed_count + i].tensor);
}

/* The number of finished updates, for graphs that are given it. */
static inline weir_tensor *pair_step(split_pair *p) {
  return pair_number(p, (int64_t)(p->runs / p->aggregate));
}

/* What workers have computed, for server |server|; the caller's to release. */
static inline uint32_t pair_take(split_pair *p, uint32_t server,
                                 const weir_exec_fetch *computed,
                                 weir_exec_feed *feeds) {
  const weir_update_graph *u = &p->split->updates[server];
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->split->push_count; i++) {
    const weir_split_push *push = &p->split->pushes[i];
    if (u->pushes[i] == WEIR_NO_VALUE) continue;
    weir_tensor *t =
        pair_part(p, computed[i + 1].tensor, &push->rows, push->bytes);
    feeds[n++] = (weir_exec_feed){u->pushes[i], t};
  }
  return n;
}

static inline void pair_give(weir_exec_feed *feeds, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) weir_tensor_unref(feeds[i].tensor);
}

/* The norm over all servers, before the first of them takes the last push. */
static inline void pair_norm(split_pair *p, const weir_exec_fetch *computed) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_split *s = p->split;
  double sums[PAIR_VALUES];
  assert_true(s->sum_count <= PAIR_VALUES);
  for (uint32_t k = 0; k < s->server_count; k++) {
    const weir_update_graph *u = &s->updates[k];
    weir_exec_feed feeds[PAIR_VALUES];
    weir_exec_fetch shares[PAIR_VALUES] = {{0}};
    for (uint32_t i = 0; i < u->share_count; i++)
      shares[i].value = u->shares[i].value;
    weir_exec_request request = {.feeds = feeds,
                                 .feed_count = pair_take(p, k, computed, feeds),
                                 .fetches = shares,
                                 .fetch_count = u->share_count};
    assert_ok(weir_exec_run(p->servers[k], &request, &err), &err);
    pair_give(feeds, (uint32_t)request.feed_count);
    for (uint32_t i = 0; i < u->share_count; i++) {
      assert_int_equal(shares[i].tensor->bytes, u->shares[i].count * 8);
      memcpy(sums + u->shares[i].first, shares[i].tensor->data,
             shares[i].tensor->bytes);
      weir_tensor_unref(shares[i].tensor);
    }
  }
  const weir_update_graph *u = &s->updates[0];
  const weir_value *v = &u->graph->values[u->grad_norm];
  weir_tensor_unref(p->norm);
  p->norm = NULL;
  assert_ok(weir_tensor_create_shaped(p->world.env.alloc, v->dtype, v->shape,
                                      &p->norm, &err),
            &err);
  weir_tensor_set_f64(p->norm, 0, weir_split_norm(s, sums));
}

static inline void pair_push(split_pair *p, uint32_t server,
                             const weir_exec_fetch *computed) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_update_graph *u = &p->split->updates[server];
  weir_exec_feed feeds[PAIR_VALUES];
  bool last = p->runs % p->aggregate == p->aggregate - 1;
  uint32_t n = pair_take(p, server, computed, feeds), own = n;
  bool norm = p->split->sum_count > 0;
  if (norm && last && server == 0) pair_norm(p, computed);
  if (norm && last) feeds[n++] = (weir_exec_feed){u->grad_norm, p->norm};
  weir_tensor *step = p->given_step ? pair_step(p) : NULL;
  if (step != NULL) feeds[n++] = (weir_exec_feed){u->global_step, step};
  weir_tensor *age = pair_number(p, p->staleness);
  if (u->staleness != WEIR_NO_VALUE)
    feeds[n++] = (weir_exec_feed){u->staleness, age};
  weir_exec_request request = {
      .feeds = feeds,
      .feed_count = n,
      .targets = last ? u->targets : u->accumulate_targets,
      .target_count = last ? u->target_count : u->accumulate_target_count};
  if (request.target_count > 0)
    assert_ok(weir_exec_run(p->servers[server], &request, &err), &err);
  pair_give(feeds, own);
  weir_tensor_unref(step);
  weir_tensor_unref(age);
}

/* The same batch in one process. |feeds| has room for one more. */
static inline weir_tensor *pair_run_joined(split_pair *p, weir_exec_feed *feeds,
                                           uint32_t count) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_train_graph *t = p->joined;
  weir_tensor *age = pair_number(p, p->staleness);
  if (t->staleness != WEIR_NO_VALUE)
    feeds[count++] = (weir_exec_feed){t->staleness, age};
  bool last = p->runs % p->aggregate == p->aggregate - 1;
  weir_exec_fetch loss = {.value = t->loss};
  weir_run_options options = {.step = p->runs};
  weir_exec_request request = {
      .feeds = feeds,
      .feed_count = count,
      .fetches = &loss,
      .fetch_count = 1,
      .targets = last ? t->targets : t->accumulate_targets,
      .target_count = last ? t->target_count : t->accumulate_target_count,
      .options = &options};
  assert_ok(weir_exec_run(p->one, &request, &err), &err);
  weir_tensor_unref(age);
  return loss.tensor;
}

/* All variables of both, but the counter where it is given. */
static inline void pair_compare(split_pair *p) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_split *s = p->split;
  for (uint32_t i = 0; i < s->var_count; i++) {
    const weir_split_var *v = &s->vars[i];
    weir_tensor *want = NULL;
    weir_node_id id = weir_graph_find_node(p->joined->graph, v->name);
    assert_ok(weir_exec_variable_get(p->one, id, &want, &err), &err);
    weir_tensor *part = pair_part(p, want, &v->rows, v->bytes);
    weir_tensor_unref(want);
    for (uint32_t k = 0; k < s->server_count; k++) {
      weir_tensor *have = NULL;
      bool here = v->server == k || v->server == WEIR_SPLIT_ALL;
      if (v->server == WEIR_SPLIT_ALL && p->given_step) continue;
      assert_int_equal(here, s->updates[k].vars[i] != UINT32_MAX);
      if (!here) continue;
      assert_ok(weir_exec_variable_get(p->servers[k], s->updates[k].vars[i],
                                       &have, &err),
                &err);
      pair_same(have, part, v->label, p->runs);
      weir_tensor_unref(have);
    }
    weir_tensor_unref(part);
  }
}

static inline void pair_batch(split_pair *p) {
  weir_exec_feed joined[18], worker[18 + PAIR_VALUES];
  weir_exec_fetch out[PAIR_VALUES];
  uint32_t count = pair_feeds(p, joined, worker);
  weir_tensor *loss = pair_run_joined(p, joined, count);
  pair_compute(p, worker, count, out);
  pair_same(out[0].tensor, loss, WEIR_SV_LIT("the loss"), p->runs);
  assert_true(isfinite(weir_tensor_get_f64(loss, 0)));
  for (uint32_t k = 0; k < p->split->server_count; k++) pair_push(p, k, out);
  for (uint32_t i = 0; i <= p->split->push_count; i++)
    weir_tensor_unref(out[i].tensor);
  for (uint32_t i = 0; i < count; i++) weir_tensor_unref(joined[i].tensor);
  weir_tensor_unref(loss);
  p->runs++;
  pair_compare(p);
}

/* Opens, trains on |batches| and closes. */
static inline void pair_check(const split_pair_options *options, int batches) {
  split_pair p;
  pair_open(&p, options);
  for (int i = 0; i < batches; i++) pair_batch(&p);
  pair_close(&p);
}

#endif
