/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_SHARD_H_
#define WEIR_IO_CHECKPOINT_SHARD_H_

#include "runtime/base/env.h"
#include "runtime/base/sv.h"
#include "runtime/tensor/tensor.h"

/* One shard of a generation, on its way into a folder. */

enum { WEIR_CHECKPOINT_PIECE_BYTES = 8 << 20 /* of a value that travels */ };

/* A shard: all is lent for the calls. Tensors give dtype and shape; where the
 * bytes come from |piece|, they need no data. */
typedef struct weir_checkpoint_shard {
  const weir_env *env;
  void *folder;
  const char *dir;  /* its path, for messages */
  const char *name; /* of the file, which must be new */
  weir_sv run_id;
  const weir_sv *names;
  weir_tensor *const *tensors;
  size_t count;
  /* Gives some bytes of tensor |i| from byte |offset| on, one at least, lent
   * until the next call. NULL: those of the tensors. */
  weir_status (*piece)(void *self, size_t i, uint64_t offset, weir_bytes *out,
                       weir_error *err);
  void *self;
  /* Filled: of the file; of each tensor, where its bytes begin in the file and
   * their CRC32C. |offsets| and |crcs| have room for |count|. */
  bool made; /* the file is there, perhaps not whole */
  uint64_t bytes;
  uint32_t crc;
  uint64_t *offsets;
  uint32_t *crcs;
} weir_checkpoint_shard;

/* Writes the file and syncs it. Blocks. After a failure the file is the
 * caller's to remove, if it was made. Errors: W5009 (the name is taken, a
 * name of a tensor twice), W6001, W6003, W6005, those of piece. */
weir_status weir_checkpoint_shard_write(weir_checkpoint_shard *shard,
                                        weir_error *err);

/* Fills all but |crcs|, which are given: what the file of another process is
 * to be. Errors: W5009, W6001. */
weir_status weir_checkpoint_shard_expect(weir_checkpoint_shard *shard,
                                         weir_error *err);

#endif
