/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/predict/service_calls.h"

#include <stdio.h>

#include "runtime/dist/predict/answer.h"
#include "runtime/net/rpc/services.h"

/* Messages as they come: small ones are answered at once, predictions are read,
 * checked and put into the queue. */

enum { PREDICT, DESCRIBE, HEALTH, WATCH };

const weir_rpc_method weir_predict_methods[] = {
    [PREDICT] = {"/weir.v1.Predict/Predict", false, false},
    [DESCRIBE] = {"/weir.v1.Predict/Describe", false, false},
    WEIR_RPC_SERVICE_METHODS};
const uint32_t weir_predict_method_count =
    sizeof weir_predict_methods / sizeof *weir_predict_methods;

void weir_predict_refuse(weir_predict_service *s, weir_rpc_call *call,
                         weir_status status, const weir_error *err) {
  char text[sizeof err->id + sizeof err->node + sizeof err->message + 8];
  snprintf(text, sizeof text, "%s: %s%s%s", err->id, err->node,
           err->node[0] != '\0' ? ": " : "", err->message);
  const weir_rpc_reply reply = {.status = status, .text = text};
  s->rpc->vt->reply(s->rpc, call, &reply);
}

static void count(weir_predict_service *s, uint64_t *counter) {
  pthread_mutex_lock(&s->lock);
  ++*counter;
  pthread_mutex_unlock(&s->lock);
}

/* ---- Predictions */

static void drop_job(weir_predict_service *s, weir_predict_job *job) {
  if (job != NULL) weir_free(s->env->alloc, job->request);
  weir_free(s->env->alloc, job);
}

/* A request of which the caller is to blame for any fault. */
static weir_status read_job(weir_predict_service *s, const weir_rpc_message *m,
                            weir_predict_job *job, weir_error *err) {
  weir_status status =
      weir_predict_request_read(&s->model, m->bytes, job->request, err);
  if (status == WEIR_OK || status == WEIR_RESOURCE_EXHAUSTED) return status;
  return WEIR_INVALID_ARGUMENT;
}

static weir_status make_job(weir_predict_service *s, const weir_rpc_message *m,
                            weir_predict_job **out, weir_error *err) {
  weir_predict_job *job = weir_alloc_array(s->env->alloc, 1, sizeof *job);
  *out = job;
  if (job == NULL) return weir_fail_memory(err, sizeof *job);
  job->call = m->call;
  job->request = weir_predict_request_create(s->env->alloc, &s->model);
  if (job->request == NULL) return weir_fail_memory(err, sizeof *job->request);
  WEIR_TRY(read_job(s, m, job, err));
  job->item =
      (weir_batch_item){.rows = s->model.rows > 0 ? job->request->rows : 1,
                        .bytes = m->bytes.size,
                        .deadline_ns = m->deadline_ns};
  return WEIR_OK;
}

static void predict(weir_predict_service *s, const weir_rpc_message *m) {
  weir_predict_job *job = NULL;
  weir_error err = WEIR_ERROR_INIT;
  uint64_t *counter = &s->counts.wrong;
  weir_status status = make_job(s, m, &job, &err);
  if (status == WEIR_RESOURCE_EXHAUSTED) counter = &s->counts.refused;
  if (status == WEIR_OK) {
    pthread_mutex_lock(&s->lock);
    status =
        weir_batcher_add(&s->batcher, &job->item, weir_predict_now(s), &err);
    pthread_mutex_unlock(&s->lock);
    if (status == WEIR_OK) return; /* a runner's */
    counter =
        status == WEIR_DEADLINE_EXCEEDED ? &s->counts.late : &s->counts.refused;
  }
  count(s, counter);
  weir_predict_refuse(s, m->call, status, &err);
  drop_job(s, job);
}

/* ---- The others */

static weir_status write_answer(weir_predict_service *s,
                                const weir_rpc_message *m, weir_strbuf *answer,
                                weir_error *err) {
  if (m->method == DESCRIBE)
    return weir_predict_describe(&s->model, answer, err);
  if (m->method == HEALTH)
    return weir_rpc_health(m->bytes, !s->stopping, answer, err);
  return weir_rpc_reflect(m->bytes, answer, err);
}

static void watch(weir_predict_service *s, const weir_rpc_message *m) {
  weir_error err = WEIR_ERROR_INIT;
  weir_status status = weir_predict_watchers_message(&s->watchers, m, &err);
  if (status != WEIR_OK) weir_predict_refuse(s, m->call, status, &err);
}

void weir_predict_on_message(void *self, const weir_rpc_message *m) {
  weir_predict_service *s = self;
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf answer;
  if (m->method == PREDICT) {
    predict(s, m);
    return;
  }
  if (m->method == WATCH) {
    watch(s, m);
    return;
  }
  weir_strbuf_init(&answer, s->env->alloc);
  weir_status status = write_answer(s, m, &answer, &err);
  if (status == WEIR_OK) {
    weir_bytes piece = {(const uint8_t *)weir_strbuf_view(&answer).data,
                        answer.size};
    const weir_rpc_reply reply = {.pieces = &piece, .count = 1};
    s->rpc->vt->reply(s->rpc, m->call, &reply);
  } else {
    weir_predict_refuse(s, m->call, status, &err);
  }
  weir_strbuf_release(&answer);
}
