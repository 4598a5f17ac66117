/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_H_
#define WEIR_IO_CHECKPOINT_H_

#include "runtime/base/diag.h"
#include "runtime/base/env.h"
#include "runtime/base/sv.h"
#include "runtime/tensor/tensor.h"

/* Checkpoints: a folder of generations.
 *
 *   DIR/step-00000123-00000-of-00001.safetensors   shards
 *   DIR/step-00000123.json                         the manifest, written last
 *
 * A generation exists once its manifest does, by rename; a manifest names every
 * shard with its bytes and CRC32C, every tensor with dtype, shape, role and
 * CRC32C, and ends with a CRC32C of itself. Save: shards, fsync, folder fsync,
 * manifest (temporary, fsync, rename), folder fsync, then old generations go:
 * their manifest first. Restore takes the newest generation that is sound. */

typedef struct weir_checkpoint_store weir_checkpoint_store;
typedef struct weir_checkpoint weir_checkpoint;

typedef struct weir_checkpoint_options {
  uint32_t keep;             /* newest generations; 0: all */
  uint64_t keep_every_steps; /* those are never removed; 0: none */
  size_t shard_bytes;        /* a new shard beyond; 0: 1 GiB */
  bool async;                /* a thread of its own writes */
} weir_checkpoint_options;

/* Opens folder |dir|, making it if need be; checks at once that it can be
 * written (F10); removes temporary files of runs that are gone (F14). One store
 * at a time holds a folder. Errors: W4040-W4049, W6001, W6005. */
weir_status weir_checkpoint_store_open(const weir_env *env, const char *dir,
                                       const weir_checkpoint_options *options,
                                       weir_checkpoint_store **out_store,
                                       weir_error *err);
/* Waits for a save that is under way. NULL-safe. */
void weir_checkpoint_store_close(weir_checkpoint_store *store);

typedef enum weir_checkpoint_role {
  WEIR_CHECKPOINT_VARIABLE,
  WEIR_CHECKPOINT_SLOT,
  WEIR_CHECKPOINT_STATE
} weir_checkpoint_role;

typedef struct weir_checkpoint_entry {
  weir_sv name;
  weir_checkpoint_role role;
  const weir_tensor *tensor; /* retained until it is written */
} weir_checkpoint_entry;

/* What a generation says besides tensors. Texts are JSON or plain, copied. */
typedef struct weir_checkpoint_info {
  uint64_t step;       /* finished updates */
  double epoch;        /* finished, with the fraction */
  uint64_t seed;       /* of random ops */
  uint64_t graph_hash; /* of the source graph; 0: not known */
  weir_sv run_id;      /* of the run that began this training */
  weir_sv data;        /* the iterator's state: a JSON object, or empty */
  weir_sv extra;       /* the loop's own: a JSON object, or empty */
  int64_t time_ns;     /* wall clock, since 1970; for show only */
} weir_checkpoint_info;

/* Saves a generation. With async it returns once the tensors are retained (they
 * must not change after) and reports an earlier save's failure; a save that
 * begins while one is under way waits for it. */
weir_status weir_checkpoint_save(weir_checkpoint_store *store,
                                 const weir_checkpoint_info *info,
                                 const weir_checkpoint_entry *entries,
                                 size_t count, weir_error *err);
/* Waits until all is on disk; the first failure since the last wait. */
weir_status weir_checkpoint_wait(weir_checkpoint_store *store, weir_error *err);

/* Opens the newest sound generation beneath |dir| (or, with |step| >= 0, that
 * one; |dir| may also name a manifest). Generations that are damaged are told
 * to |sink| (may be NULL) as warnings and passed over.
 * Errors: W4040 (none), W4041-W4049, W6001. */
weir_status weir_checkpoint_open(const weir_env *env, const char *dir,
                                 int64_t step, const weir_diag_sink *sink,
                                 weir_checkpoint **out_checkpoint,
                                 weir_error *err);
void weir_checkpoint_release(weir_checkpoint *checkpoint); /* NULL-safe */
const weir_checkpoint_info *weir_checkpoint_about(const weir_checkpoint *c);
size_t weir_checkpoint_count(const weir_checkpoint *c);
weir_sv weir_checkpoint_name(const weir_checkpoint *c, size_t i);
weir_checkpoint_role weir_checkpoint_role_of(const weir_checkpoint *c,
                                             size_t i);
/* SIZE_MAX when there is none of that name. */
size_t weir_checkpoint_find(const weir_checkpoint *c, weir_sv name);
/* A reference to tensor |i|; its CRC was checked by open. */
weir_tensor *weir_checkpoint_tensor(const weir_checkpoint *c, size_t i);

#endif
