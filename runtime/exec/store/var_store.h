/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_VAR_STORE_H_
#define WEIR_EXEC_VAR_STORE_H_

#include <pthread.h>
#include <stdbool.h>

#include "runtime/base/sv.h"
#include "runtime/device/device.h"
#include "runtime/tensor/tensor.h"

/* Variables that several sessions of one process have in common.
 *
 * A store has a row for each variable: name, dtype, shape, whether a node
 * assigns it, and a cell with its values. The first session makes the rows
 * (fresh) and gives them first values; each later one must have the same rows
 * and finds their values. Sessions come and go; the store is counted.
 *
 * Steps of different sessions that assign variables do not run at the same
 * time: their owners see to that. One that does not assign may run beside one
 * that does, and sees the last commit. Any thread; calls do not block. */

typedef struct weir_var_store weir_var_store;

/* One value that a variable has or had. Runs hold references; a commit gives
 * the variable another buffer, so readers under way keep theirs. */
typedef struct weir_var_buffer {
  /* The value is in |data|, in the GPU's |memory|, or in both. A commit leaves
   * it where the run wrote it; a run or caller that wants it elsewhere copies
   * it (var_memory.h). */
  bool on_host, on_gpu;
  struct weir_exec_gpu *gpu; /* that has |memory|; NULL: none */
  weir_device_buffer memory;
  struct weir_var_buffer *next; /* of the variable's list */
  int users;                    /* runs that read or write it */
  /* Of sessions that overwrite: the variable's cell; whether its bytes count
   * among those that lie idle (weir_exec_session.idle_bytes). */
  struct weir_var_cell *cell;
  size_t bytes;
  bool idle;
  _Alignas(64) char data[];
} weir_var_buffer;

/* The values of a variable; all under a lock. */
typedef struct weir_var_cell {
  int refs; /* of a store's: its row, and sessions */
  bool ready;
  bool rooms; /* feeds have been written into buffers of it */
  weir_var_buffer *buffers, *current;
} weir_var_cell;

/* A variable of a session that joins, lent for the call; |cell| is set. */
typedef struct weir_var_store_entry {
  weir_sv name;
  weir_dtype dtype;
  const weir_shape *shape; /* no dimension is open */
  bool assigned;
  weir_var_cell *cell;
} weir_var_store_entry;

/* |alloc| must be that of the sessions. Errors: W6001. */
weir_status weir_var_store_create(const weir_allocator *alloc,
                                  weir_var_store **out_store, weir_error *err);
void weir_var_store_ref(weir_var_store *store);
void weir_var_store_unref(weir_var_store *store); /* NULL-safe */

/* Guards the cells. */
pthread_mutex_t *weir_var_store_lock(weir_var_store *store);

/* A session with |count| variables takes part: each entry gets its cell, with a
 * reference. |fresh|: rows that are there belong to nobody any more and are
 * replaced. Errors: W7086 (names the first difference), W7087 (there are no
 * values), W6001. */
weir_status weir_var_store_join(weir_var_store *store, bool fresh,
                                weir_var_store_entry *entries, uint32_t count,
                                weir_error *err);
/* Gives back the reference. */
void weir_var_store_leave(weir_var_store *store, weir_var_cell *cell);

/* Frees one that hangs on no cell, and its memory on a GPU. */
void weir_var_buffer_free(const weir_allocator *alloc, weir_var_buffer *buffer);

/* Frees the buffers, which have no users. */
void weir_var_cell_clear(const weir_allocator *alloc, weir_var_cell *cell);

#endif
