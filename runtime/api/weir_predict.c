/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/weir_internal.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/loop/predict.h"

/* Predictions over data sets. */

static const weir_tensor *labels_of(const weir_predict_batch *b) {
  for (uint32_t i = 0; i < weir_dataset_column_count(b->data); i++) {
    const weir_tensor *t = b->in->columns[i];
    if (weir_sv_is(weir_dataset_column(b->data, i)->name, "label") &&
        !weir_dtype_is_float(t->dtype) && t->shape.rank == 1)
      return t;
  }
  return NULL;
}

static weir_status on_batch(void *self, const weir_predict_batch *b,
                            weir_error *err) {
  const weir_predict_opts *o = self;
  weir_prediction p = {.struct_size = sizeof p,
                       .first = b->first,
                       .rows = b->rows,
                       .outputs = b->outputs,
                       .labels = labels_of(b)};
  if (o->batch(o->self, &p)) return WEIR_OK;
  return weir_fail(err, WEIR_W5009, NULL, "predictions cannot be written");
}

weir_status weir_session_predict(weir_session *session,
                                 const weir_predict_opts *opts,
                                 weir_error *err) {
  weir_predict_opts o;
  if (session == NULL) return weir_fail_null(err, "session");
  if (opts == NULL) return weir_fail_null(err, "opts");
  WEIR_TRY(WEIR_OPTS_READ(weir_predict_opts, &o, opts, err));
  if (o.batch == NULL || o.data == NULL)
    return weir_fail_null(err, "weir_predict_opts: data or batch");
  weir_pool *pool = NULL;
  WEIR_TRY(weir_runtime_pool(session->runtime, &pool, err));
  weir_predict_options options = {.data = weir_sv_from(o.data),
                                  .dataset = {.root = o.data_root,
                                              .seed = o.seed,
                                              .getenv = o.getenv,
                                              .getenv_self = o.getenv_self,
                                              .pool = pool},
                                  .take = o.take,
                                  .self = &o,
                                  .batch = on_batch};
  weir_status s = weir_predict(&session->runtime->env, session->graph,
                               session->exec, &options, err);
  s = weir_settle(session->graph->alloc, "compiling the graph", s, err);
  return weir_settle(session->runtime->env.alloc, "predicting", s, err);
}
