/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_COMMON_H_
#define WEIR_IO_CHECKPOINT_COMMON_H_

#include "runtime/io/checkpoint/checkpoint.h"
#include "runtime/io/checkpoint/checkpoint_owners.h"

/* The side of an owner: a folder that another process saves to. Nothing but
 * shards is read or written, and nothing that is there is replaced. */

/* The hash of a manifest, all of it. Not against forgery: the tensors have
 * checksums of their own. */
void weir_checkpoint_manifest_hash(weir_bytes manifest,
                                   uint8_t out[WEIR_CHECKPOINT_NONCE_BYTES]);

/* Opens the folder of |place| if it is |root| or beneath it, without following
 * links, and holds the nonce, or the manifest. |*out_folder| NULL: it does not,
 * or is not there, or |root| is NULL. weir_fs_folders.close gives it back.
 * Errors: W6001. */
weir_status weir_checkpoint_common_open(const weir_env *env, const char *root,
                                        const weir_checkpoint_common *place,
                                        void **out_folder, weir_error *err);

/* Whether |name| is one that a shard has before it is committed, or after. */
bool weir_checkpoint_is_new_shard(const char *name);
bool weir_checkpoint_is_shard(const char *name);

/* The bytes of a tensor in a shard. */
typedef struct weir_checkpoint_span {
  const char *file; /* in the folder */
  uint64_t offset;
  uint32_t crc;
  /* Asked between pieces of 8 MiB: an error ends the work. NULL: nobody is. */
  weir_status (*stop)(void *self, weir_error *err);
  void *stop_self;
} weir_checkpoint_span;

/* Fills |tensor| and compares its CRC. Blocks. Errors: W4045 (other bytes, too
 * few, or a file that cannot be read), W6001, W6003, those of stop. */
weir_status weir_checkpoint_span_read(const weir_env *env,
                                      const weir_checkpoint_folder *dir,
                                      const weir_checkpoint_span *span,
                                      weir_sv name, weir_tensor *tensor,
                                      weir_error *err);

/* Whether some element of |tensor| is no finite number; then |out| is a W4047
 * that says so of |name| in |file|. */
bool weir_checkpoint_odd_values(const weir_tensor *tensor, weir_sv name,
                                const char *file, weir_error *out);

#endif
