/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_H_
#define WEIR_TRAIN_DATA_H_

#include "runtime/base/strbuf.h"
#include "runtime/exec/pool.h"
#include "runtime/graph/graph.h"
#include "runtime/train/source/vocabulary.h"

/* Data sets: a section of `data:` as a stream of batches.
 *
 *   weir_dataset_open(graph, "train") -> dataset    files opened and checked
 *   weir_data_iter_create(dataset)    -> iter
 *   weir_data_iter_next(iter)         -> batch, batch, ..., end of the epoch,
 *                                        batch, ...
 *
 * A dataset is immutable and may have several iterators. An iterator is used
 * by one thread at a time; with prefetch it has a thread of its own. The order
 * of examples follows from (seed, epoch) alone. */

typedef struct weir_dataset weir_dataset;
typedef struct weir_data_iter weir_data_iter;

typedef struct weir_dataset_options {
  const char *root;       /* --data-root; NULL: the section's, or the graph's
                             folder */
  uint64_t seed;          /* of shuffles that give none */
  uint32_t shard, shards; /* this one of so many; 0 of 0: all */
  const weir_diag_sink *sink;                          /* may be NULL */
  const char *(*getenv)(void *self, const char *name); /* may be NULL */
  void *getenv_self;
  weir_pool *pool; /* for `map` graphs; may be NULL when there is none */
} weir_dataset_options;

/* A column of the batches, fed to the input of the same name. */
typedef struct weir_data_column {
  weir_sv name;
  weir_dtype dtype;
  int32_t rank;                /* of one batch */
  int64_t dims[WEIR_MAX_RANK]; /* dims[0]: the batch size, or -1 if it varies */
} weir_data_column;

/* Opens section |name|. Errors: W1001-W1009, W4001-W4039, W6001. */
weir_status weir_dataset_open(const weir_env *env, const weir_graph *graph,
                              weir_sv name, const weir_dataset_options *options,
                              weir_dataset **out_dataset, weir_error *err);
weir_dataset *weir_dataset_ref(weir_dataset *dataset);
void weir_dataset_release(weir_dataset *dataset); /* NULL-safe */
uint32_t weir_dataset_column_count(const weir_dataset *dataset);
const weir_data_column *weir_dataset_column(const weir_dataset *dataset,
                                            uint32_t i);
/* Examples and batches of one epoch; -1 when not known before it is read. */
int64_t weir_dataset_examples(const weir_dataset *dataset);
int64_t weir_dataset_batches(const weir_dataset *dataset);

/* The vocabulary of a column, lent; NULL when it has none. Texts and indices
 * are looked up in it; weir_vocabulary_write saves it. */
weir_vocabulary *weir_dataset_vocabulary(const weir_dataset *dataset,
                                         weir_sv column);

typedef struct weir_batch {
  bool end_of_epoch; /* then there is no data; the next call begins anew */
  int64_t rows;      /* examples in this batch */
  weir_tensor *const *columns; /* lent until the next call */
} weir_batch;

/* An iterator at the start of epoch 0. Errors: W4002, W6001. */
weir_status weir_data_iter_create(weir_dataset *dataset,
                                  weir_data_iter **out_iter, weir_error *err);
void weir_data_iter_release(weir_data_iter *iter); /* NULL-safe */
/* The next batch. Blocks; no allocation in the steady state. */
weir_status weir_data_iter_next(weir_data_iter *iter, weir_batch *out_batch,
                                weir_error *err);
/* Where the iterator stands after the batch it gave last, as one JSON object
 * (epoch, example, shuffle state, file positions); and goes there again: the
 * batches that follow are then bit-equal. Errors: W4037, W6001. */
weir_status weir_data_iter_state(const weir_data_iter *iter,
                                 weir_strbuf *out_json, weir_error *err);
weir_status weir_data_iter_restore(weir_data_iter *iter, weir_sv json,
                                   weir_error *err);
/* Time that _next spent waiting for data so far. */
int64_t weir_data_iter_wait_ns(const weir_data_iter *iter);

#endif
