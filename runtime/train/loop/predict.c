/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/predict.h"

#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/loop/stepper.h"

/* One prediction under way. */
typedef struct predicting {
  const weir_predict_options *options;
  const weir_graph *graph;
  weir_dataset *data;
  weir_data_iter *iter;
  weir_stepper *stepper;
  weir_value_id *ids;
  const weir_tensor **outputs;
} predicting;

static weir_status run(predicting *p, weir_error *err) {
  const weir_predict_options *o = p->options;
  uint64_t done = 0;
  while (o->take == 0 || done < o->take) {
    weir_batch batch;
    WEIR_TRY(weir_data_iter_next(p->iter, &batch, err));
    if (batch.end_of_epoch) break;
    WEIR_TRY(weir_stepper_run(p->stepper, &batch, NULL, err));
    for (uint32_t i = 0; i < p->graph->output_count; i++)
      p->outputs[i] = weir_stepper_output(p->stepper, i);
    weir_predict_batch given = {.first = done,
                                .rows = batch.rows,
                                .in = &batch,
                                .data = p->data,
                                .outputs = p->outputs};
    if (o->take > 0 && (uint64_t)given.rows > o->take - done)
      given.rows = (int64_t)(o->take - done);
    WEIR_TRY(o->batch(o->self, &given, err));
    done += (uint64_t)given.rows;
  }
  return WEIR_OK;
}

static weir_status begin(const weir_env *env, weir_exec_session *session,
                         predicting *p, weir_error *err) {
  const weir_graph *g = p->graph;
  p->ids = weir_alloc_array(env->alloc, g->output_count, sizeof *p->ids);
  p->outputs =
      weir_alloc_array(env->alloc, g->output_count, sizeof *p->outputs);
  if (p->ids == NULL || p->outputs == NULL) return weir_fail_memory(err, 0);
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
  if (s == WEIR_OK) s = run(&p, err);
  weir_data_iter_release(p.iter);
  weir_stepper_release(p.stepper);
  weir_dataset_release(p.data);
  weir_free(env->alloc, p.outputs);
  weir_free(env->alloc, p.ids);
  return s;
}
