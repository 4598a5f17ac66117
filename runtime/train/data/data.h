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

typedef struct weir_batch {
  bool end_of_epoch; /* then there is no data; the next call begins anew */
  int64_t rows;      /* examples in this batch */
  weir_tensor *const *columns; /* lent until the next call */
} weir_batch;

#endif
