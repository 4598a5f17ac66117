/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_SUMMARY_H_
#define WEIR_TRAIN_SUMMARY_H_

#include "runtime/base/strbuf.h"
#include "runtime/graph/train/train.h"
#include "runtime/tensor/tensor.h"

/* Summaries of a run, for people to look at: TensorBoard event files, and the
 * same numbers as CSV and as JSON lines. Events of training go to DIR/train,
 * those of evaluations to DIR/eval, which is made with the first one: readers
 * show the two as runs, and a number of both as two lines of one picture.
 * Failures never end a training: the caller reports the first one as a warning.
 * One thread at a time. */
typedef struct weir_summary weir_summary;

typedef struct weir_summary_options {
  const char *root, *dir; /* as for weir_fs_folders.open */
  int64_t time_ns;        /* wall clock, since 1970, when |clock_ns| was now */
  int64_t clock_ns;
  const char *csv, *jsonl;  /* file names in |dir|; NULL: none */
  const weir_graph *graph;  /* written at once; NULL: not */
  const char *const *names; /* columns of the CSV file */
  uint32_t name_count;
  uint32_t eval_from; /* the first column of evaluations, called eval/...; 0:
                         there is no training */
  const char *eval_folder; /* of their events, beneath |dir|; NULL: "eval" */
} weir_summary_options;

/* |env| must outlive the summary. Errors: W5009, W6001, W6005. */
weir_status weir_summary_create(const weir_env *env,
                                const weir_summary_options *options,
                                weir_summary **out_summary, weir_error *err);
/* NULL-safe. */
void weir_summary_release(weir_summary *summary);

/* A row: one number for each of options.names, NaN for those not known. Writes
 * those that are. */
weir_status weir_summary_row(weir_summary *summary, uint64_t step,
                             const double *values, weir_error *err);
/* A tensor's distribution; f32, others are converted. */
weir_status weir_summary_histogram(weir_summary *summary, uint64_t step,
                                   weir_sv tag, const weir_tensor *tensor,
                                   weir_error *err);
/* Hands all so far to the system. */
weir_status weir_summary_flush(weir_summary *summary, weir_error *err);

#endif
