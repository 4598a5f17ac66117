/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_STORE_H_
#define WEIR_IO_CHECKPOINT_STORE_H_

#include "runtime/io/checkpoint/checkpoint.h"

/* A folder that generations are saved to. */

struct weir_checkpoint_owners;

/* Opens folder |dir|, making it if need be; writes a page there, to find now
 * whether it can be saved to; removes temporary files of runs that are gone.
 * With options->root it is opened beneath that folder without following links,
 * and a folder that weir did not make is refused unless it is empty.
 * One store at a time holds a folder, by a lock that ends with its process.
 * |env| must outlive the store. Errors: W4042 (cannot be used), W4043 (another
 * run holds it), W6001, W6003, W6005 (full, or fails). */
weir_status weir_checkpoint_store_open(const weir_env *env, const char *dir,
                                       const weir_checkpoint_options *options,
                                       weir_checkpoint_store **out_store,
                                       weir_error *err);

/* Waits for a save that is under way. NULL-safe. */
void weir_checkpoint_store_close(weir_checkpoint_store *store);

/* Saves a generation; old ones are removed after. One thread at a time. With
 * async it returns once texts are copied and tensors retained (their
 * data must not change until it is saved), after waiting for a save that is
 * under way; if one has failed since, that failure is returned, once, and the
 * new save has begun all the same. A failed save leaves older generations as
 * they were. Errors: W0004, W5009 (also for names that occur twice), W6001,
 * W6003, W6005. */
weir_status weir_checkpoint_save(weir_checkpoint_store *store,
                                 const weir_checkpoint_info *info,
                                 const weir_checkpoint_entry *entries,
                                 size_t count, weir_error *err);

/* The same for tensors that |owners| hold, each without data: |entries| tell
 * dtype and shape. |owners| is taken over, also by a call that fails. Errors
 * besides: those of the owners. */
weir_status weir_checkpoint_save_owned(weir_checkpoint_store *store,
                                       const weir_checkpoint_info *info,
                                       const weir_checkpoint_entry *entries,
                                       size_t count,
                                       struct weir_checkpoint_owners *owners,
                                       weir_error *err);

/* Waits until no save is under way, whatever became of it. */
void weir_checkpoint_idle(weir_checkpoint_store *store);

/* Waits until all is on disk; the first failure since the last wait. */
weir_status weir_checkpoint_wait(weir_checkpoint_store *store, weir_error *err);

/* Which steps are to stay. */
typedef struct weir_checkpoint_wish {
  bool (*keeps)(void *self, uint64_t step);
  void *self;
} weir_checkpoint_wish;

/* Waits until no save is under way and removes the generations of the other
 * steps; those that cannot be read stay. Errors: W6001, W6003, W6005, those of
 * reading. */
weir_status weir_checkpoint_store_prune(weir_checkpoint_store *store,
                                        const weir_checkpoint_wish *wish,
                                        weir_error *err);

#endif
