/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PREDICT_H_
#define WEIR_TRAIN_PREDICT_H_

#include "runtime/exec/session/session.h"
#include "runtime/train/data/data.h"

/* A graph's outputs over a data set. */

/* The outputs of one batch; all lent for the call. */
typedef struct weir_predict_batch {
  uint64_t first;       /* number of its first example, from 0 */
  int64_t rows;         /* examples of it that are wanted */
  const weir_batch *in; /* as fed; it may hold more rows */
  const weir_dataset *data;
  const weir_tensor *const *outputs; /* one for each graph output */
} weir_predict_batch;

typedef struct weir_predict_options {
  weir_sv data; /* name of the section */
  weir_dataset_options dataset;
  uint64_t take; /* examples; 0: one epoch */
  void *self;
  /* Anything but WEIR_OK ends it and is returned. */
  weir_status (*batch)(void *self, const weir_predict_batch *batch,
                       weir_error *err);
} weir_predict_options;

/* Runs |graph|'s outputs on |session|, which is of that graph, batch by batch.
 * Errors: the data set's, W5021, the runs' own. */
weir_status weir_predict(const weir_env *env, const weir_graph *graph,
                         weir_exec_session *session,
                         const weir_predict_options *options, weir_error *err);

#endif
