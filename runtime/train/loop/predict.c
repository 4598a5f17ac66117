/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/predict.h"

#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/loop/flight.h"

/* One prediction under way. */
typedef struct predicting {
  const weir_predict_options *options;
  const weir_graph *graph;
  weir_dataset *data;
  weir_data_iter *iter;
  weir_stepper *stepper;
  weir_value_id *ids;
  uint64_t taken, done; /* examples read; given */
} predicting;

/* A flight's reading. */
static weir_status take(void *self, weir_batch *batch, bool *more,
                        weir_error *err) {
  predicting *p = self;
  const weir_predict_options *o = p->options;
  *more = o->take == 0 || p->taken < o->take;
  if (!*more) return WEIR_OK;
  WEIR_TRY(weir_data_iter_next(p->iter, batch, err));
  *more = !batch->end_of_epoch;
  if (*more) p->taken += (uint64_t)batch->rows;
  return WEIR_OK;
}

/* Its results, in order. */
static weir_status give(void *self, const weir_flight_result *r,
                        weir_error *err) {
  predicting *p = self;
  const weir_predict_options *o = p->options;
  weir_predict_batch given = {.first = p->done,
                              .rows = r->in->rows,
                              .in = r->in,
                              .data = p->data,
                              .outputs = r->outputs};
  if (o->take > 0 && (uint64_t)given.rows > o->take - p->done)
    given.rows = (int64_t)(o->take - p->done);
  p->done += (uint64_t)given.rows;
  return o->batch(o->self, &given, err);
}

static weir_status run(const weir_env *env, weir_exec_session *session,
                       predicting *p, weir_error *err) {
  weir_flight_options flight = {.session = session,
                                .stepper = p->stepper,
                                .columns = weir_dataset_column_count(p->data),
                                .outputs = p->graph->output_count,
                                .self = p,
                                .take = take,
                                .give = give};
  return weir_flight_run(env, &flight, err);
}

static weir_status begin(const weir_env *env, weir_exec_session *session,
                         predicting *p, weir_error *err) {
  const weir_graph *g = p->graph;
  p->ids = weir_alloc_array(env->alloc, g->output_count, sizeof *p->ids);
  if (p->ids == NULL) return weir_fail_memory(err, 0);
  for (uint32_t i = 0; i < g->output_count; i++)
    p->ids[i] = g->outputs[i].value;
  WEIR_TRY(weir_dataset_open(env, g, p->options->data, &p->options->dataset,
                             &p->data, err));
  weir_stepper_options step = {.session = session,
                               .graph = g,
                               .data = p->data,
                               .section = p->options->data,
                               .fetches = p->ids,
                               .fetch_count = g->output_count};
  WEIR_TRY(weir_stepper_create(env, &step, &p->stepper, err));
  return weir_data_iter_create(p->data, &p->iter, err);
}

weir_status weir_predict(const weir_env *env, const weir_graph *graph,
                         weir_exec_session *session,
                         const weir_predict_options *options, weir_error *err) {
  predicting p = {.options = options, .graph = graph};
  weir_status s = begin(env, session, &p, err);
  if (s == WEIR_OK) s = run(env, session, &p, err);
  weir_data_iter_release(p.iter);
  weir_stepper_release(p.stepper);
  weir_dataset_release(p.data);
  weir_free(env->alloc, p.ids);
  return s;
}
