/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_INTERNAL_H_
#define WEIR_IO_CHECKPOINT_INTERNAL_H_

#include "runtime/base/strbuf.h"
#include "runtime/base/vec.h"
#include "runtime/io/checkpoint/checkpoint.h"

/* Shared by the files of checkpoints.
 *
 * Names in the folder, beside the lock:
 *   STEM.json                            manifest: the generation exists
 *   STEM-00000-of-00002.safetensors      shard
 *   either with ".tmp"                   on its way in, or out
 * STEM is step-00000123, or step-00000123.2 for the second generation that was
 * saved at that step while an older one was there.
 *
 * A manifest under its temporary name is also the list of files that may be
 * removed: before a shard gets its final name, and before one is removed, such
 * a list is on disk. So no file is ever removed that weir did not write itself.
 */

enum {
  WEIR_CHECKPOINT_FORMAT = 1,
  WEIR_CHECKPOINT_NAME_BYTES = 96, /* of a file's name, with its end */
  WEIR_CHECKPOINT_TAIL_BYTES = 24  /* the manifest's last line */
};

#define WEIR_CHECKPOINT_LOCK ".weir-lock"
#define WEIR_CHECKPOINT_PROBE ".weir-probe.tmp"

/* --- names --- */

typedef struct weir_checkpoint_stem {
  uint64_t step;
  uint32_t attempt;
} weir_checkpoint_stem;

typedef enum weir_checkpoint_kind {
  WEIR_CHECKPOINT_OTHER, /* not ours */
  WEIR_CHECKPOINT_MANIFEST,
  WEIR_CHECKPOINT_SHARD
} weir_checkpoint_kind;

/* A file of the folder, as its name says. */
typedef struct weir_checkpoint_file {
  char name[WEIR_CHECKPOINT_NAME_BYTES];
  weir_checkpoint_kind kind;
  bool temporary;
  weir_checkpoint_stem stem;
  uint32_t shard, shards;
} weir_checkpoint_file;

typedef WEIR_VEC(weir_checkpoint_file) weir_checkpoint_files;

/* --- manifests --- */

typedef struct weir_manifest_shard {
  weir_sv file;
  uint64_t bytes;
  uint32_t crc;
} weir_manifest_shard;

typedef struct weir_manifest_tensor {
  weir_sv name;
  weir_checkpoint_role role;
  weir_dtype dtype;
  weir_shape shape;
  uint32_t shard;
  uint64_t offset, bytes; /* |offset| from the first byte of the shard */
  uint32_t crc;
} weir_manifest_tensor;

typedef struct weir_manifest {
  weir_arena arena; /* holds all texts */
  const weir_allocator *alloc;
  weir_checkpoint_info info;
  WEIR_VEC(weir_manifest_shard) shards;
  WEIR_VEC(weir_manifest_tensor) tensors;
} weir_manifest;

/* Of the path of a file in the folder, at most. */
enum { WEIR_CHECKPOINT_PATH_BYTES = 4096 };

/* --- saving --- */

/* A requested save: copies of texts, references to tensors. */
typedef struct weir_checkpoint_job {
  weir_arena arena;
  weir_checkpoint_info info;
  weir_sv *names;
  weir_checkpoint_role *roles;
  weir_tensor **tensors;
  uint32_t *places; /* of each in the caller's order; those of an owner stand
                       together */
  size_t count;
  struct weir_checkpoint_owners *owners; /* owned; NULL: tensors have data */
} weir_checkpoint_job;

/* Where jobs are written. */
typedef struct weir_checkpoint_place {
  const weir_env *env;
  const char *dir;
  void *folder;
  weir_checkpoint_options options;
} weir_checkpoint_place;

#endif
