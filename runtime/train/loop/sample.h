/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_SAMPLE_H_
#define WEIR_TRAIN_SAMPLE_H_

#include "runtime/base/writer.h"
#include "runtime/exec/session/session.h"
#include "runtime/train/data/data.h"

/* Text from a language model: a graph whose output is scores of the next token
 * at each place, f32[batch, steps, vocabulary] (or its first two dimensions in
 * one), and whose input of tokens is fed by a column of a text data set.
 *
 * The text so far, its last |steps| tokens where the graph fixes their number,
 * is fed anew for each token, in the first row, and the scores at its last
 * place are drawn from. So the model must not look ahead; states keep their
 * first values. The same seed gives the same text. */
typedef struct weir_sample_options {
  weir_sv data; /* the section with the vocabulary */
  weir_dataset_options dataset;
  weir_sv prompt;
  uint64_t count;     /* tokens to draw */
  double temperature; /* 0: always the best */
  uint64_t seed;
  weir_writer out; /* gets the prompt and each token's text as it is drawn */
} weir_sample_options;

/* Errors: W5027 when graph and data are not of this form or the prompt has no
 * token, W4032 for one that the vocabulary lacks, W5009, the data set's and the
 * runs' own. */
weir_status weir_sample(const weir_env *env, const weir_graph *graph,
                        weir_exec_session *session,
                        const weir_sample_options *options, weir_error *err);

#endif
