/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_NAMES_H_
#define WEIR_IO_CHECKPOINT_NAMES_H_

#include "runtime/io/checkpoint/checkpoint_internal.h"

/* Names of the files of a generation. */

/* Takes |name| apart; kind OTHER when it is none of ours. */
weir_checkpoint_file weir_checkpoint_file_of(const char *name);

/* Writes the name of a manifest. */
void weir_checkpoint_manifest_name(weir_checkpoint_stem stem,
                                   char out[WEIR_CHECKPOINT_NAME_BYTES]);

/* Writes the name of shard |shard| of |shards|. */
void weir_checkpoint_shard_name(weir_checkpoint_stem stem, uint32_t shard,
                                uint32_t shards,
                                char out[WEIR_CHECKPOINT_NAME_BYTES]);

/* |name| with ".tmp" at its end. */
void weir_checkpoint_temporary_name(const char *name,
                                    char out[WEIR_CHECKPOINT_NAME_BYTES]);

/* Lists our files of |folder|: newest generation first, then by name. The
 * caller frees |out_files| with env->alloc, also after a failure. */
weir_status weir_checkpoint_list(const weir_env *env, void *folder,
                                 weir_checkpoint_files *out_files,
                                 weir_error *err);

/* Joins folder and name; false when that is too long. */
bool weir_checkpoint_path(const char *dir, const char *name,
                          char out[WEIR_CHECKPOINT_PATH_BYTES]);

#endif
