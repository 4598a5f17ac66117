/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_H_
#define WEIR_IO_CHECKPOINT_H_

#include "runtime/base/diag/diag.h"
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
 * CRC32C, and ends with a CRC32C of itself. Whenever the machine stops, the
 * generations that were there before are sound, and a new one is whole or not
 * there. A step that is saved again, because training went back, makes
 * step-00000123.1 and so on; the older one goes when the newer is on disk.
 * Files of other names are never touched. docs/checkpoints.md has the format.
 *
 *   weir_checkpoint_store_open(env, "run", &options, &store, &err);
 *   every so many steps: weir_checkpoint_save(store, &info, entries, n, &err);
 *   weir_checkpoint_wait(store, &err);
 *   weir_checkpoint_store_close(store);
 *
 *   weir_checkpoint_open(env, "run", -1, sink, &checkpoint, &err);
 *   i = weir_checkpoint_find(checkpoint, name);
 *   tensor = weir_checkpoint_tensor(checkpoint, i); */

typedef struct weir_checkpoint_store weir_checkpoint_store;
typedef struct weir_checkpoint weir_checkpoint;

typedef struct weir_checkpoint_options {
  uint32_t keep;             /* newest steps; 0: all */
  uint64_t keep_every_steps; /* those are never removed; 0: none */
  size_t shard_bytes;        /* a new shard beyond; 0: 1 GiB */
  uint64_t expected_bytes;   /* of one generation, to look for room; or 0 */
  bool async;                /* a thread of its own writes */
} weir_checkpoint_options;

/* Opens folder |dir|, making it if need be; writes a page there, to find now
 * what would forbid saving; removes temporary files of runs that are gone. One
 * store at a time holds a folder, by a lock that ends with its process. |env|
 * must outlive the store. Errors: W4042 (cannot be used), W4043 (another run
 * holds it), W6001, W6003, W6005 (full, or fails). */
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

/* Saves a generation; what is no longer kept is removed after. One thread at a
 * time. With async it returns once texts are copied and tensors retained (their
 * data must not change until it is saved), after waiting for a save that is
 * under way; if one has failed since, that failure is returned, once, and the
 * new save has begun all the same. A failed save leaves older generations as
 * they were. Errors: W0004, W5009 (also for names that occur twice), W6001,
 * W6003, W6005. */
weir_status weir_checkpoint_save(weir_checkpoint_store *store,
                                 const weir_checkpoint_info *info,
                                 const weir_checkpoint_entry *entries,
                                 size_t count, weir_error *err);
/* Whether a save is under way, so that another would wait. */
bool weir_checkpoint_is_saving(weir_checkpoint_store *store);
/* Waits until all is on disk; the first failure since the last wait. */
weir_status weir_checkpoint_wait(weir_checkpoint_store *store, weir_error *err);

/* Opens the newest sound generation beneath |dir| (or, with |step| >= 0, that
 * of the step; |dir| may also name a manifest: it ends in .json). All bytes are
 * read and checked. Generations that are damaged are told to |sink| (may be
 * NULL) as warnings and passed over, and so are tensors with NaN or infinite
 * elements (W4047). One of a newer format is not passed over: W4044. |env| must
 * outlive the checkpoint and its tensors. Errors: W4040 (none), W4048 (none of
 * that step); of the generation asked for, or as warnings, W4041 (manifest),
 * W4045 (shard), W4046 (shard of another run); W6001, W6003. */
weir_status weir_checkpoint_open(const weir_env *env, const char *dir,
                                 int64_t step, const weir_diag_sink *sink,
                                 weir_checkpoint **out_checkpoint,
                                 weir_error *err);
void weir_checkpoint_release(weir_checkpoint *checkpoint); /* NULL-safe */
/* What was saved, lent, and the manifest's path. */
const weir_checkpoint_info *weir_checkpoint_about(const weir_checkpoint *c);
const char *weir_checkpoint_path_of(const weir_checkpoint *c);
/* Tensors, in the order in which they were saved; names are lent. */
size_t weir_checkpoint_count(const weir_checkpoint *c);
weir_sv weir_checkpoint_name(const weir_checkpoint *c, size_t i);
weir_checkpoint_role weir_checkpoint_role_of(const weir_checkpoint *c,
                                             size_t i);
/* SIZE_MAX when there is none of that name. */
size_t weir_checkpoint_find(const weir_checkpoint *c, weir_sv name);
/* A reference to tensor |i|, read-only. It stays good after release; each keeps
 * the whole of its shard in memory. */
weir_tensor *weir_checkpoint_tensor(const weir_checkpoint *c, size_t i);

/* A generation of a folder, lent for the call. */
typedef struct weir_checkpoint_found {
  const char *name; /* of its manifest */
  uint64_t step;
  const weir_checkpoint *checkpoint; /* NULL: it is not sound */
  const weir_error *err;             /* then why */
} weir_checkpoint_found;

/* Reads and checks every generation of |dir|, the newest first, until |each|
 * returns false; also those of a newer format. Errors: W4040 when the folder
 * cannot be read, W6001, W6003. */
weir_status weir_checkpoint_each(
    const weir_env *env, const char *dir, void *self,
    bool (*each)(void *self, const weir_checkpoint_found *found),
    weir_error *err);

#endif
