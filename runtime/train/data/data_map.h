/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_MAP_H_
#define WEIR_TRAIN_DATA_MAP_H_

#include "runtime/exec/session/session.h"
#include "runtime/train/data/data.h"

/* `map`: a graph file of its own, or a block of the graph's file, run on each
 * batch, or on each example. Its inputs take the columns of the same name, its
 * outputs are columns; columns that it does not take pass by, unless an output
 * has their name. Random ops draw anew for each batch (example): their step is
 * its number since the start of training, so a restored iterator draws the
 * same. */

typedef struct weir_data_map weir_data_map;

/* Opens the map of |set|, whose batch and read columns are known, and makes the
 * set's columns; nothing without `map`. |pool| NULL: a thread of its own.
 * Errors: W4034, those of loading and compiling. */
weir_status weir_data_map_open(weir_dataset *set, weir_pool *pool,
                               weir_error *err);
void weir_data_map_release(weir_data_map *map); /* NULL-safe */
bool weir_data_map_per_example(const weir_data_map *map);
/* The read column that passes by as |column|, or UINT32_MAX. */
uint32_t weir_data_map_pass(const weir_data_map *map, uint32_t column);

/* Binds the graph to tensors: one for each read column, and for each column of
 * the set. */
weir_status weir_data_map_bind(const weir_data_map *map,
                               weir_tensor *const *read,
                               weir_tensor *const *out,
                               weir_binding **out_binding, weir_error *err);

/* Examples one at a time, by way of tensors of their own. Zero it to begin. */
typedef struct weir_map_rows {
  const weir_dataset *set;
  weir_tensor **in, **out;
  weir_binding *binding;
} weir_map_rows;
weir_status weir_map_rows_init(weir_map_rows *rows, const weir_dataset *set,
                               weir_error *err);
void weir_map_rows_release(weir_map_rows *rows);
/* Rows 0 to |count| of |read| become those of |out|; the first has |step|. */
weir_status weir_map_rows_run(weir_map_rows *rows, weir_tensor *const *read,
                              weir_tensor *const *out, int64_t count,
                              uint64_t step, weir_error *err);

#endif
