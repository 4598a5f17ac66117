/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_LOAD_H_
#define WEIR_IO_CHECKPOINT_LOAD_H_

#include "runtime/io/checkpoint/checkpoint.h"

typedef struct weir_manifest weir_manifest;

/* One generation, read and checked. */

/* Frees the checkpoint; its tensors live on. */
void weir_checkpoint_release(weir_checkpoint *checkpoint); /* NULL-safe */

/* Its step, epoch and texts, lent. */
const weir_checkpoint_info *weir_checkpoint_about(const weir_checkpoint *c);

/* The manifest's path, lent. */
const char *weir_checkpoint_path_of(const weir_checkpoint *c);

/* Tensors, in the order in which they were saved; names are lent. */
size_t weir_checkpoint_count(const weir_checkpoint *c);

/* The name of tensor |i|, lent. */
weir_sv weir_checkpoint_name(const weir_checkpoint *c, size_t i);

/* The role of tensor |i|. */
weir_checkpoint_role weir_checkpoint_role_of(const weir_checkpoint *c,
                                             size_t i);

/* SIZE_MAX when there is none of that name. */
size_t weir_checkpoint_find(const weir_checkpoint *c, weir_sv name);

/* A reference to tensor |i|, read-only. It stays good after release; each keeps
 * the whole of its shard in memory. */
weir_tensor *weir_checkpoint_tensor(const weir_checkpoint *c, size_t i);

/* Reads and checks the generation whose manifest is file |name| of |dir|; it
 * and its shards are plain files there, not links.
 * Errors: as weir_checkpoint_open's of one generation. */
weir_status weir_checkpoint_load(const weir_env *env,
                                 const weir_checkpoint_folder *dir,
                                 const char *name,
                                 weir_checkpoint **out_checkpoint,
                                 weir_error *err);

/* Its manifest, lent. */
const weir_manifest *weir_checkpoint_manifest(const weir_checkpoint *c);

#endif
