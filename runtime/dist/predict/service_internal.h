/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PREDICT_SERVICE_INTERNAL_H_
#define WEIR_DIST_PREDICT_SERVICE_INTERNAL_H_

#include <pthread.h>

#include "runtime/dist/predict/answer.h"
#include "runtime/dist/predict/batcher.h"
#include "runtime/dist/predict/latency.h"
#include "runtime/dist/predict/service.h"
#include "runtime/dist/predict/slots.h"
#include "runtime/dist/predict/watchers.h"

/* The inside of service.c: what its thread and the runners share. */

/* A request on its way. */
typedef struct weir_predict_job {
  weir_batch_item item; /* first: a list of items is one of jobs */
  weir_rpc_call *call;
  weir_predict_request *request;
} weir_predict_job;

typedef struct weir_predict_runner {
  weir_predict_service *service;
  pthread_t thread;
  bool runs;  /* |thread| is to be joined */
  bool alone; /* its batch is run by one thread */
  weir_predict_slots slots;
  weir_strbuf heads; /* of the answer being written */
  weir_bytes *pieces;
  weir_predict_value *values;
  weir_shape *shapes;       /* of |values|, with batches */
  weir_exec_feed *feeds;    /* without */
  weir_exec_fetch *fetches; /* without */
  atomic_bool cancel;       /* nobody waits for the run any more */
  weir_batch_item *waiting; /* for the run under way; the service's lock */
} weir_predict_runner;

struct weir_predict_service {
  const weir_env *env;
  weir_predict_service_options options;
  weir_predict_model model;
  weir_rpc_server *rpc;
  char address[256];
  weir_predict_runner *runners;
  uint32_t runner_count;
  int64_t next_log_ns; /* thread of run */
  uint64_t logged;
  weir_predict_watchers watchers; /* thread of run */
  atomic_bool stop;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Under the lock: */
  weir_batcher batcher;
  weir_predict_counts counts; /* but the times */
  weir_latency times;
  uint32_t idle;    /* runners that sleep */
  uint32_t running; /* batches under way */
  bool stopping;    /* nothing more is accepted */
  bool unwatched;   /* the poll left a batch to the runners, all at work */
  bool ending;      /* runners go */
};

static inline int64_t weir_predict_now(const weir_predict_service *s) {
  return s->env->clock->now_ns(s->env->clock->self);
}

#endif
