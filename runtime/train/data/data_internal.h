/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_INTERNAL_H_
#define WEIR_TRAIN_DATA_INTERNAL_H_

#include <pthread.h>

#include "runtime/train/batch/data_order.h"
#include "runtime/train/batch/data_transform.h"
#include "runtime/train/data/data.h"
#include "runtime/train/data/data_map.h"
#include "runtime/train/data/data_source.h"

/* Shared by the files of data sets and iterators. */

struct weir_dataset {
  atomic_int refs;
  const weir_env *env;
  weir_graph *graph;
  weir_arena arena;
  weir_data_spec *spec;
  const char *root;
  weir_source *source;
  /* One for each column that is read: the source's column and its transform;
   * |columns| are those that come out, after a map its outputs. */
  uint32_t read_count;
  const uint32_t *read_from;
  const weir_transform *transforms;
  weir_data_column *read_columns;
  uint32_t column_count;
  weir_data_column *columns;
  weir_data_map *map;             /* NULL: none */
  weir_vocabulary **vocabularies; /* by source column; NULL: none */
  weir_order_spec order;
  int64_t batch, repeat; /* repeat 0: for ever */
  int64_t round;         /* examples of a round */
  int64_t epoch;         /* examples given in an epoch; INT64_MAX: no end */
  bool pad;
  bool fixed_batch; /* by the graph */
};

/* A batch with its memory. The tail tensors are the last batch's, smaller ones
 * on the same memory; NULL when there is none such. */
typedef struct weir_data_slot {
  weir_tensor **full, **tail; /* one for each column */
  /* One for each read column; without a map the very same. */
  weir_tensor **read_full, **read_tail;
  weir_binding *map_full, *map_tail; /* of a map of batches */
  weir_batch batch;
  uint64_t epoch; /* where the iterator stands after this batch */
  int64_t at;
  weir_status status;
  weir_error error;
} weir_data_slot;

/* Makes batches one after the other; used by one thread at a time. */
typedef struct weir_data_maker {
  const weir_dataset *set;
  weir_source_cursor *cursor;
  weir_order *order;
  int64_t *indices;  /* of a batch */
  uint8_t **scratch; /* by read column, NULL: read straight into the batch */
  int64_t *scratch_rows;
  void **dst;              /* by source column */
  weir_map_rows *map_rows; /* of a map of examples */
  uint64_t epoch, round;
  int64_t at; /* examples of the epoch that were given */
} weir_data_maker;

struct weir_data_iter {
  weir_dataset *set;
  weir_data_maker maker;
  weir_data_slot *slots;
  uint32_t slot_count;
  /* Where it stands after the batch given last. */
  uint64_t epoch;
  int64_t at;
  int64_t wait_ns;
  /* prefetch: slots [first, first + filled) modulo |slot_count| are ready, the
   * one before them is lent. */
  bool threaded, running, stop, lent;
  uint32_t first, filled;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
};

#endif
