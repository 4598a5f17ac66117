/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/predict/runner.h"

#include "runtime/dist/predict/answer.h"
#include "runtime/dist/predict/service_calls.h"
#include "runtime/exec/session/session_run.h"

/* A runner takes a batch, copies its rows into the tensors of a program, runs
 * it, and answers each request with its rows. Without batches it runs each
 * request by a program of the shapes that it brings. */

static weir_predict_job *job_of(weir_batch_item *item) {
  return (weir_predict_job *)item;
}

static void free_job(weir_predict_service *s, weir_predict_job *job) {
  weir_free(s->env->alloc, job->request);
  weir_free(s->env->alloc, job);
}

/* ---- Answers */

static void note_answer(weir_predict_service *s, const weir_predict_job *job,
                        bool late) {
  int64_t took = weir_predict_now(s) - job->item.arrived_ns;
  pthread_mutex_lock(&s->lock);
  if (late) {
    s->counts.late++;
  } else {
    s->counts.answered++;
    weir_latency_add(&s->times, took);
  }
  pthread_mutex_unlock(&s->lock);
}

static void fail_job(weir_predict_service *s, weir_predict_job *job,
                     weir_status status, const weir_error *err) {
  bool late = status == WEIR_DEADLINE_EXCEEDED || status == WEIR_CANCELLED;
  pthread_mutex_lock(&s->lock);
  ++*(late ? &s->counts.late : &s->counts.failed);
  pthread_mutex_unlock(&s->lock);
  weir_predict_refuse(s, job->call, status, err);
  free_job(s, job);
}

/* Answers |job| with r->values, and frees it. */
static void answer_job(weir_predict_runner *r, weir_predict_job *job) {
  weir_predict_service *s = r->service;
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf_clear(&r->heads);
  weir_status status = weir_predict_answer(&s->model, job->request, r->values,
                                           &r->heads, r->pieces, &err);
  if (status != WEIR_OK) {
    fail_job(s, job, WEIR_RESOURCE_EXHAUSTED, &err);
    return;
  }
  bool late = s->rpc->vt->gone(s->rpc, job->call);
  const weir_rpc_reply reply = {
      .pieces = r->pieces, .count = 2 * (size_t)job->request->output_count};
  note_answer(s, job, late);
  s->rpc->vt->reply(s->rpc, job->call, &reply);
  free_job(s, job);
}

/* ---- Batches */

/* The last moment that somebody waits for; 0: no end. */
static int64_t last_deadline(const weir_batch_item *batch) {
  int64_t last = 0;
  for (const weir_batch_item *i = batch; i != NULL; i = i->next) {
    if (i->deadline_ns == INT64_MAX) return 0;
    if (i->deadline_ns > last) last = i->deadline_ns;
  }
  return last;
}

static void copy_in(const weir_predict_model *m, const weir_predict_slot *slot,
                    weir_batch_item *batch) {
  for (uint32_t i = 0; i < m->input_count; i++) {
    const weir_predict_port *port = &m->inputs[i];
    int64_t row = 0;
    if (!port->batched) continue;
    for (weir_batch_item *item = batch; item != NULL; item = item->next) {
      memcpy(weir_predict_row(port, slot->inputs[i], row),
             job_of(item)->request->feeds[i].data,
             (size_t)item->rows * port->row_bytes);
      row += item->rows;
    }
    for (; row < slot->rows; row++) /* the last one again */
      memcpy(weir_predict_row(port, slot->inputs[i], row),
             weir_predict_row(port, slot->inputs[i], row - 1), port->row_bytes);
  }
}

/* Answers |job|, whose rows begin at |row| of |slot|. */
static void copy_out(weir_predict_runner *r, const weir_predict_slot *slot,
                     weir_predict_job *job, int64_t row) {
  const weir_predict_model *m = &r->service->model;
  for (uint32_t i = 0; i < job->request->output_count; i++) {
    uint32_t k = job->request->outputs[i];
    const weir_predict_port *port = &m->outputs[k];
    r->shapes[i] = weir_predict_shape(port, job->item.rows);
    r->values[i] =
        (weir_predict_value){&r->shapes[i],
                             {weir_predict_row(port, slot->outputs[k], row),
                              (size_t)job->item.rows * port->row_bytes}};
  }
  answer_job(r, job);
}

/* Around a run, whose clients the service watches meanwhile. */
static void set_waiting(weir_predict_runner *r, weir_batch_item *batch) {
  pthread_mutex_lock(&r->service->lock);
  r->waiting = batch;
  atomic_store(&r->cancel, false);
  pthread_mutex_unlock(&r->service->lock);
}

/* Runs the items of |batch|, and answers them if that succeeds. */
static weir_status run_rows(weir_predict_runner *r, weir_batch_item *batch,
                            weir_error *err) {
  const weir_run_options options = {.deadline_ns = last_deadline(batch),
                                    .cancel = &r->cancel,
                                    .alone = r->alone};
  int64_t rows = 0, row = 0;
  for (weir_batch_item *i = batch; i != NULL; i = i->next) rows += i->rows;
  weir_predict_slot *slot = weir_predict_slot_for(&r->slots, rows);
  copy_in(&r->service->model, slot, batch);
  set_waiting(r, batch);
  weir_status s = weir_binding_run(slot->binding, &options, err);
  set_waiting(r, NULL);
  if (s != WEIR_OK) return s;
  for (weir_batch_item *i = batch, *next; i != NULL; i = next) {
    next = i->next;
    int64_t after = row + i->rows;
    copy_out(r, slot, job_of(i), row); /* |i| is gone */
    row = after;
  }
  return WEIR_OK;
}

/* ---- Requests by themselves */

static weir_status copy_feeds(weir_predict_runner *r,
                              const weir_predict_job *job, size_t *out_count,
                              weir_error *err) {
  const weir_predict_model *m = &r->service->model;
  *out_count = 0;
  for (uint32_t i = 0; i < m->input_count; i++) {
    const weir_predict_feed *feed = &job->request->feeds[i];
    weir_tensor *t;
    if (!feed->given) continue;
    WEIR_TRY(weir_tensor_create_shaped(
        r->service->env->alloc, m->inputs[i].dtype, &feed->shape, &t, err));
    if (t->bytes > 0) memcpy(t->data, feed->data, t->bytes);
    r->feeds[(*out_count)++] = (weir_exec_feed){m->inputs[i].value, t};
  }
  return WEIR_OK;
}

/* Runs |job|, and answers it if that succeeds. */
static weir_status run_alone(weir_predict_runner *r, weir_predict_job *job,
                             weir_error *err) {
  const weir_predict_model *m = &r->service->model;
  const weir_run_options options = {.deadline_ns = last_deadline(&job->item),
                                    .cancel = &r->cancel,
                                    .alone = r->alone};
  weir_exec_request request = {.feeds = r->feeds,
                               .fetches = r->fetches,
                               .fetch_count = job->request->output_count,
                               .options = &options};
  for (uint32_t i = 0; i < request.fetch_count; i++)
    r->fetches[i] =
        (weir_exec_fetch){.value = m->outputs[job->request->outputs[i]].value};
  weir_status s = copy_feeds(r, job, &request.feed_count, err);
  set_waiting(r, &job->item);
  if (s == WEIR_OK)
    s = weir_exec_run(r->service->options.session, &request, err);
  set_waiting(r, NULL);
  for (size_t i = 0; i < request.feed_count; i++)
    weir_tensor_unref(r->feeds[i].tensor);
  for (uint32_t i = 0; s == WEIR_OK && i < request.fetch_count; i++) {
    const weir_tensor *t = r->fetches[i].tensor;
    r->values[i] = (weir_predict_value){&t->shape, {t->data, t->bytes}};
  }
  if (s == WEIR_OK) answer_job(r, job);
  for (uint32_t i = 0; i < request.fetch_count; i++)
    weir_tensor_unref(r->fetches[i].tensor);
  return s;
}

/* ---- The thread */

static weir_status run_items(weir_predict_runner *r, weir_batch_item *batch,
                             weir_error *err) {
  return r->service->model.rows > 0 ? run_rows(r, batch, err)
                                    : run_alone(r, job_of(batch), err);
}

/* A batch that fails is run item by item: only those to blame fail. */
static void run_batch(weir_predict_runner *r, weir_batch_item *batch) {
  weir_error err = WEIR_ERROR_INIT;
  bool one = batch->next == NULL;
  weir_status s = run_items(r, batch, &err);
  for (weir_batch_item *next; s != WEIR_OK && batch != NULL; batch = next) {
    next = batch->next;
    batch->next = NULL;
    weir_status own = one ? s : run_items(r, batch, &err);
    if (own != WEIR_OK) fail_job(r->service, job_of(batch), own, &err);
  }
}

static void refuse_late(weir_predict_service *s, weir_batch_item *late) {
  weir_error err = WEIR_ERROR_INIT;
  weir_status status =
      weir_fail(&err, WEIR_W5006, NULL, "the deadline passed while it waited");
  for (weir_batch_item *next; late != NULL; late = next) {
    next = late->next;
    fail_job(s, job_of(late), status, &err);
  }
}

static void note_batch(weir_predict_service *s, const weir_batch_item *batch) {
  int64_t requests = 0;
  for (const weir_batch_item *i = batch; i != NULL; i = i->next, requests++)
    s->counts.rows += (uint64_t)i->rows;
  s->counts.batches++;
  if (requests > s->counts.largest) s->counts.largest = requests;
  s->running++;
}

/* One turn, with the lock, which it gives up while it works. False: nothing is
 * to be done now. */
static bool turn(weir_predict_runner *r) {
  weir_predict_service *s = r->service;
  weir_batch_item *batch, *late;
  int64_t next, begun = weir_predict_now(s);
  bool ready = weir_batcher_take(&s->batcher, begun, &batch, &late, &next);
  if (!ready && late == NULL) return false;
  if (ready) note_batch(s, batch);
  /* Threads that help each other wait for each other, too: with other work at
   * hand each batch has one. */
  r->alone = s->running > 1 || s->batcher.count > 0;
  pthread_mutex_unlock(&s->lock);
  refuse_late(s, late);
  if (ready) run_batch(r, batch);
  pthread_mutex_lock(&s->lock);
  if (!ready) return true;
  s->running--;
  weir_batcher_ran(&s->batcher, weir_predict_now(s) - begun);
  if (s->stopping) s->rpc->vt->wake(s->rpc);
  return true;
}

void *weir_predict_runner_main(void *self) {
  weir_predict_runner *r = self;
  weir_predict_service *s = r->service;
  pthread_mutex_lock(&s->lock);
  while (!s->ending) {
    if (turn(r)) continue;
    if (s->unwatched && s->batcher.count > 0) s->rpc->vt->wake(s->rpc);
    s->unwatched = false;
    s->idle++;
    pthread_cond_wait(&s->changed, &s->lock);
    s->idle--;
  }
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

weir_status weir_predict_runner_init(weir_predict_service *s,
                                     weir_predict_runner *r, weir_error *err) {
  const weir_allocator *a = s->env->alloc;
  size_t in = s->model.input_count, out = s->model.output_count;
  r->service = s;
  weir_strbuf_init(&r->heads, a);
  r->pieces = weir_alloc_array(a, 2 * out, sizeof *r->pieces);
  r->values = weir_alloc_array(a, out, sizeof *r->values);
  r->shapes = weir_alloc_array(a, out, sizeof *r->shapes);
  r->fetches = weir_alloc_array(a, out, sizeof *r->fetches);
  r->feeds = weir_alloc_array(a, in, sizeof *r->feeds);
  if (r->pieces == NULL || r->values == NULL || r->shapes == NULL ||
      r->fetches == NULL || r->feeds == NULL)
    return weir_fail_memory(err, out * sizeof *r->fetches);
  if (s->model.rows == 0) return WEIR_OK;
  return weir_predict_slots_init(a, s->options.session, &s->model, &r->slots,
                                 err);
}

void weir_predict_runner_release(weir_predict_runner *r) {
  if (r->service == NULL) return;
  const weir_allocator *a = r->service->env->alloc;
  weir_predict_slots_release(&r->slots);
  weir_strbuf_release(&r->heads);
  weir_free(a, r->pieces);
  weir_free(a, r->values);
  weir_free(a, r->shapes);
  weir_free(a, r->fetches);
  weir_free(a, r->feeds);
}
