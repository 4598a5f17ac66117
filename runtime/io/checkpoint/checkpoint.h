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
  /* The folder is opened beneath this one, without following links, and must be
   * new, empty or one of checkpoints: a graph named it. NULL: the command line
   * did. */
  const char *root;
} weir_checkpoint_options;

/* A folder held open, and its path for messages; both lent. */
typedef struct weir_checkpoint_folder {
  void *folder;
  const char *path;
} weir_checkpoint_folder;

typedef enum weir_checkpoint_role {
  WEIR_CHECKPOINT_VARIABLE,
  WEIR_CHECKPOINT_SLOT,
  WEIR_CHECKPOINT_STATE,
  WEIR_CHECKPOINT_ROLE_COUNT
} weir_checkpoint_role;

typedef struct weir_checkpoint_entry {
  weir_sv name;
  weir_checkpoint_role role;
  const weir_tensor *tensor; /* retained until it is written */
} weir_checkpoint_entry;

/* The facts of a generation beside its tensors. Texts are JSON or plain,
 * copied. */
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

/* A generation of a folder, lent for the call. */
typedef struct weir_checkpoint_found {
  const char *name; /* of its manifest */
  uint64_t step;
  const weir_checkpoint *checkpoint; /* NULL: it is not sound */
  const weir_error *err;             /* then why */
} weir_checkpoint_found;

#endif
