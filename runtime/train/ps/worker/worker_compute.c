/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/worker/worker_compute.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>

#include "runtime/train/batch/data_runs.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/loop/loop_eval.h"
#include "runtime/train/loop/stepper.h"

/* Nothing is copied on the way from a link to a link but the batch: values are
 * received into the tensors that a run reads, and a run writes its pushes to
 * the tensors that are sent. A binding is of fixed tensors, so each set has a
 * stepper of its own; the program is the session's, compiled once for a shape
 * of batch. The random numbers of a run follow from its number, as in one
 * process.
 *
 * Invariant: |run| is the thread's from begin to done, all else of the compute
 * is the owner's, but |cancel|. */

struct weir_worker_compute {
  const weir_env *env;
  weir_worker_compute_options options;
  weir_arena arena;
  weir_exec_session *session;
  weir_dataset *data;
  weir_data_runs *runs;
  weir_tensor **vars; /* per variable of the split; NULL: not pulled; the same
                         for all pieces of one */
  weir_ps_piece **pulls; /* per server */
  weir_exec_feed *given;
  uint32_t given_count;
  weir_value_id *fetches; /* the job's numbers, then pushes that are taken */
  uint32_t *fetched;      /* their places in the split's list: first pieces */
  uint32_t push_count;
  atomic_bool cancel;
  bool started, stop, stopped;
  weir_worker_job *run; /* NULL: none is under way */
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
};

/* ---- A run */

static weir_sv bad_variable(const weir_worker_compute *c) {
  const weir_split *split = c->options.job->split;
  for (uint32_t v = 0; v < split->var_count; v++) {
    const weir_tensor *t = c->vars[v];
    if (t == NULL || !weir_dtype_is_float(t->dtype)) continue;
    for (int64_t i = 0; i < weir_shape_elements(&t->shape); i++)
      if (!isfinite(weir_tensor_get_f64(t, i))) return split->vars[v].name;
  }
  return (weir_sv){NULL, 0};
}

static void take_numbers(const weir_worker_compute *c, weir_worker_set *set) {
  const weir_ps_job *job = c->options.job;
  for (uint32_t i = 0; i < job->number_count; i++) {
    double x = weir_loop_mean(weir_stepper_output(set->stepper, i));
    set->numbers[i] = weir_ps_is_perplexity(job, i) ? exp(x) : x;
  }
}

static weir_status compute(weir_worker_compute *c, weir_worker_job *r) {
  const weir_ps_job *job = c->options.job;
  weir_worker_set *set = r->set;
  weir_batch batch;
  weir_run_options run = {.step = r->run, .cancel = &c->cancel};
  WEIR_TRY(weir_data_runs_read(c->runs, r->run, r->ahead, r->ahead_count,
                               &batch, &r->err));
  r->rows = batch.rows;
  WEIR_TRY(weir_stepper_load(set->stepper, &batch, &r->err));
  int64_t begin_ns = c->env->clock->now_ns(c->env->clock->self);
  WEIR_TRY(weir_stepper_go(set->stepper, &run, &r->err));
  if (set->ran) r->ns = c->env->clock->now_ns(c->env->clock->self) - begin_ns;
  set->ran = true;
  take_numbers(c, set);
  if (!job->spec->nan_trap || isfinite(set->numbers[0])) return WEIR_OK;
  (void)weir_fail(&r->err, WEIR_W5020, NULL, "the loss is %g", set->numbers[0]);
  return weir_stepper_blame(set->stepper, r->run, r->step + 1, bad_variable(c),
                            &r->err);
}

static void *thread_main(void *self) {
  weir_worker_compute *c = self;
  pthread_mutex_lock(&c->lock);
  while (!c->stop) {
    weir_worker_job *r = c->run;
    if (r == NULL) {
      pthread_cond_wait(&c->changed, &c->lock);
      continue;
    }
    pthread_mutex_unlock(&c->lock);
    r->status = compute(c, r);
    pthread_mutex_lock(&c->lock);
    c->run = NULL;
    bool tell = !c->stop;
    pthread_mutex_unlock(&c->lock);
    if (tell) c->options.done(c->options.self);
    pthread_mutex_lock(&c->lock);
  }
  pthread_mutex_unlock(&c->lock);
  return NULL;
}

void weir_worker_compute_begin(weir_worker_compute *c, weir_worker_job *run) {
  run->err = (weir_error)WEIR_ERROR_INIT;
  run->rows = run->ns = 0;
  atomic_store(&c->cancel, false);
  pthread_mutex_lock(&c->lock);
  assert(c->run == NULL);
  c->run = run;
  pthread_cond_signal(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

void weir_worker_compute_cancel(weir_worker_compute *c) {
  atomic_store(&c->cancel, true);
}

uint32_t weir_worker_compute_ahead(const weir_worker_compute *c) {
  uint32_t n = weir_data_runs_ahead(c->runs);
  return n < WEIR_WORKER_AHEAD ? n : WEIR_WORKER_AHEAD;
}

int64_t weir_worker_compute_wait_ns(const weir_worker_compute *c) {
  return weir_data_runs_wait_ns(c->runs);
}

/* ---- Tensors of values that travel */

/* A tensor for |value| of the worker graph. */
static weir_status make_tensor(const weir_worker_compute *c,
                               weir_value_id value, weir_tensor **out,
                               weir_error *err) {
  const weir_value *v = &c->options.job->split->worker->values[value];
  return weir_tensor_create_shaped(c->env->alloc, v->dtype, v->shape, out, err);
}

/* The tensor of the worker's input that is variable |v| of the split: one for
 * all pieces, which stand beside each other in the split's list. */
static weir_status make_var(weir_worker_compute *c, uint32_t v,
                            weir_error *err) {
  const weir_split *split = c->options.job->split;
  weir_value_id value = split->vars[v].worker;
  uint32_t first = v;
  while (!weir_ps_var_begins(c->options.job, first)) first--;
  if (c->vars[first] == NULL) {
    WEIR_TRY(make_tensor(c, value, &c->vars[first], err));
    c->given[c->given_count++] = (weir_exec_feed){value, c->vars[first]};
  }
  if (v != first) c->vars[v] = weir_tensor_ref(c->vars[first]);
  return WEIR_OK;
}

static weir_status make_pulls(weir_worker_compute *c, uint32_t server,
                              weir_error *err) {
  const weir_ps_job *job = c->options.job;
  const weir_ps_lists *l = &job->servers[server];
  c->pulls[server] =
      weir_arena_array(&c->arena, l->pull_count + 1u, sizeof(weir_ps_piece));
  if (c->pulls[server] == NULL) return weir_fail_memory(err, l->pull_count);
  for (uint32_t i = 0; i < l->pull_count; i++) {
    uint32_t v = l->pulls[i];
    WEIR_TRY(make_var(c, v, err));
    c->pulls[server][i] = weir_ps_var_piece(job, v, c->vars[v]);
  }
  return WEIR_OK;
}

static weir_status make_values(weir_worker_compute *c, weir_error *err) {
  const weir_ps_job *job = c->options.job;
  uint32_t vars = job->split->var_count;
  c->vars = weir_arena_array(&c->arena, vars + 1u, sizeof *c->vars);
  c->given = weir_arena_array(&c->arena, vars + 1u, sizeof *c->given);
  c->pulls = weir_arena_array(&c->arena, job->config.servers, sizeof *c->pulls);
  if (c->vars == NULL || c->given == NULL || c->pulls == NULL)
    return weir_fail_memory(err, vars);
  for (uint32_t s = 0; s < job->config.servers; s++)
    WEIR_TRY(make_pulls(c, s, err));
  return WEIR_OK;
}

const weir_ps_piece *weir_worker_compute_pulls(const weir_worker_compute *c,
                                               uint32_t server,
                                               uint32_t *out_count) {
  *out_count = c->options.job->servers[server].pull_count;
  return c->pulls[server];
}

/* Fetches: the numbers, and each push that some server takes. */
static weir_status list_fetches(weir_worker_compute *c, weir_error *err) {
  const weir_ps_job *job = c->options.job;
  uint32_t pushes = job->split->push_count, numbers = job->number_count;
  c->fetches =
      weir_arena_array(&c->arena, numbers + pushes, sizeof *c->fetches);
  c->fetched = weir_arena_array(&c->arena, pushes + 1u, sizeof *c->fetched);
  bool *taken = weir_arena_array(&c->arena, pushes + 1u, sizeof *taken);
  if (c->fetches == NULL || c->fetched == NULL || taken == NULL)
    return weir_fail_memory(err, pushes);
  for (uint32_t s = 0; s < job->config.servers; s++)
    for (uint32_t i = 0; i < job->servers[s].push_count; i++)
      taken[job->servers[s].pushes[i]] = true;
  for (uint32_t i = 0; i < numbers; i++) c->fetches[i] = job->numbers[i];
  for (uint32_t p = 0; p < pushes; p++) {
    if (!taken[p] || job->split->pushes[p].rows.first > 0) continue;
    c->fetched[c->push_count] = p;
    c->fetches[numbers + c->push_count++] = job->split->pushes[p].worker;
  }
  return WEIR_OK;
}

/* ---- Sets */

static weir_status make_pushes(weir_worker_compute *c, weir_worker_set *set,
                               weir_error *err) {
  const weir_allocator *alloc = c->env->alloc;
  const weir_ps_job *job = c->options.job;
  set->pushes =
      weir_alloc_array(alloc, job->split->push_count + 1u, sizeof *set->pushes);
  set->pieces =
      weir_alloc_array(alloc, job->config.servers, sizeof *set->pieces);
  set->numbers =
      weir_alloc_array(alloc, weir_ps_report_count(job), sizeof *set->numbers);
  if (set->pushes == NULL || set->pieces == NULL || set->numbers == NULL)
    return weir_fail_memory(err, job->split->push_count);
  set->report = (weir_ps_piece){
      set->numbers, weir_ps_report_count(job) * sizeof *set->numbers};
  for (uint32_t i = 0; i < c->push_count; i++) {
    uint32_t p = c->fetched[i];
    WEIR_TRY(
        make_tensor(c, job->split->pushes[p].worker, &set->pushes[p], err));
  }
  for (uint32_t s = 0; s < job->config.servers; s++) {
    const weir_ps_lists *l = &job->servers[s];
    set->pieces[s] =
        weir_alloc_array(alloc, l->push_count, sizeof(weir_ps_piece));
    if (set->pieces[s] == NULL) return weir_fail_memory(err, l->push_count);
    for (uint32_t i = 0; i < l->push_count; i++) {
      uint32_t p = l->pushes[i], first = p;
      const weir_split_rows *rows = &job->split->pushes[p].rows;
      while (job->split->pushes[first].rows.first > 0) first--;
      set->pieces[s][i] = weir_ps_piece_of(set->pushes[first], rows,
                                           weir_ps_push_bytes(job, p));
    }
  }
  return WEIR_OK;
}

static weir_status make_stepper(weir_worker_compute *c, weir_worker_set *set,
                                weir_error *err) {
  const weir_ps_job *job = c->options.job;
  uint32_t count = job->number_count + c->push_count;
  weir_tensor **into = weir_alloc_array(c->env->alloc, count, sizeof *into);
  if (into == NULL) return weir_fail_memory(err, count * sizeof *into);
  for (uint32_t i = 0; i < c->push_count; i++)
    into[job->number_count + i] = set->pushes[c->fetched[i]];
  weir_stepper_options options = {.session = c->session,
                                  .graph = job->split->worker,
                                  .data = c->data,
                                  .section = job->spec->data,
                                  .fetches = c->fetches,
                                  .fetch_count = count,
                                  .given = c->given,
                                  .given_count = c->given_count,
                                  .rows = &job->split->rows,
                                  .into = into};
  weir_status s = weir_stepper_create(c->env, &options, &set->stepper, err);
  weir_free(c->env->alloc, into);
  return s;
}

weir_status weir_worker_set_create(weir_worker_compute *c,
                                   weir_worker_set **out_set, weir_error *err) {
  *out_set = NULL;
  weir_worker_set *set = weir_alloc_array(c->env->alloc, 1, sizeof *set);
  if (set == NULL) return weir_fail_memory(err, sizeof *set);
  weir_status s = make_pushes(c, set, err);
  if (s == WEIR_OK) s = make_stepper(c, set, err);
  if (s == WEIR_OK)
    *out_set = set;
  else
    weir_worker_set_release(c, set);
  return s;
}

void weir_worker_set_release(weir_worker_compute *c, weir_worker_set *set) {
  if (set == NULL) return;
  const weir_allocator *alloc = c->env->alloc;
  const weir_ps_job *job = c->options.job;
  weir_stepper_release(set->stepper);
  for (uint32_t s = 0; set->pieces != NULL && s < job->config.servers; s++)
    weir_free(alloc, set->pieces[s]);
  for (uint32_t p = 0; set->pushes != NULL && p < job->split->push_count; p++)
    weir_tensor_unref(set->pushes[p]);
  weir_free(alloc, set->numbers);
  weir_free(alloc, set->pieces);
  weir_free(alloc, set->pushes);
  weir_free(alloc, set);
}

/* ---- The compute */

static weir_status open_all(weir_worker_compute *c, weir_error *err) {
  const weir_worker_compute_options *o = &c->options;
  weir_dataset_options data = o->data;
  data.pool = o->pool;
  WEIR_TRY(weir_exec_session_create(c->env, o->pool, o->job->split->worker,
                                    &o->session, &c->session, err));
  WEIR_TRY(weir_dataset_open(c->env, o->job->graph, o->job->spec->data, &data,
                             &c->data, err));
  WEIR_TRY(weir_data_runs_create(c->data, &c->runs, err));
  WEIR_TRY(make_values(c, err));
  WEIR_TRY(list_fetches(c, err));
  c->started = pthread_create(&c->thread, NULL, thread_main, c) == 0;
  if (c->started) return WEIR_OK;
  return weir_fail(err, WEIR_W6003, NULL, "a worker's thread did not start");
}

weir_status weir_worker_compute_create(
    const weir_env *env, const weir_worker_compute_options *options,
    weir_worker_compute **out_compute, weir_error *err) {
  *out_compute = NULL;
  weir_worker_compute *c = weir_alloc_array(env->alloc, 1, sizeof *c);
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  c->env = env;
  c->options = *options;
  weir_arena_init(&c->arena, env->alloc);
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->changed, NULL);
  atomic_init(&c->cancel, false);
  weir_status s = open_all(c, err);
  if (s == WEIR_OK)
    *out_compute = c;
  else
    weir_worker_compute_release(c);
  return s;
}

void weir_worker_compute_stop(weir_worker_compute *c) {
  if (!c->started || c->stopped) return;
  weir_worker_compute_cancel(c);
  pthread_mutex_lock(&c->lock);
  c->stop = true;
  pthread_cond_signal(&c->changed);
  pthread_mutex_unlock(&c->lock);
  pthread_join(c->thread, NULL);
  c->stopped = true;
}

void weir_worker_compute_release(weir_worker_compute *c) {
  if (c == NULL) return;
  weir_worker_compute_stop(c);
  for (uint32_t v = 0; c->vars != NULL && v < c->options.job->split->var_count;
       v++)
    weir_tensor_unref(c->vars[v]);
  weir_data_runs_release(c->runs);
  weir_dataset_release(c->data);
  weir_exec_session_release(c->session);
  weir_arena_release(&c->arena);
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->lock);
  weir_free(c->env->alloc, c);
}
