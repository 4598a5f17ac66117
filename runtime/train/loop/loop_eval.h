/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_LOOP_EVAL_H_
#define WEIR_TRAIN_LOOP_EVAL_H_

#include "runtime/train/loop/loop.h"

typedef struct weir_loop_eval_on weir_loop_eval_on;

/* Evaluates between steps. */

/* Evaluates on section |data| (NULL: the spec's). |*out_report| is lent until
 * the next call. */
weir_status weir_loop_eval(weir_loop *loop, const char *data,
                           weir_train_report *out_report, weir_error *err);

/* The evaluation called |name|, opened when it is new. Errors: W0004 past
 * WEIR_LOOP_EVALS, those of data sets and sessions. */
weir_status weir_loop_find_eval(weir_loop *loop, const char *name,
                                weir_loop_eval_on **out_on, weir_error *err);

/* Runs it over its data set. */
weir_status weir_loop_eval_on_run(weir_loop *loop, weir_loop_eval_on *on,
                                  weir_train_report *out, weir_error *err);

/* Frees all evaluations. */
void weir_loop_evals_release(weir_loop *loop);

/* The mean of a tensor's elements. */
double weir_loop_mean(const weir_tensor *tensor);

#endif
