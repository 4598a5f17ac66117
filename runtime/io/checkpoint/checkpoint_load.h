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

/* ---- Bare ones: without their tensors */

struct weir_checkpoint_common;
struct weir_checkpoint_span;

/* As weir_checkpoint_load, but of each shard the header alone is read: it and
 * the tensors' CRCs in the manifest make together the CRC of the shard. Tensors
 * are read one by one, by this process or others, while |dir| is open, which is
 * lent for the life. Errors: the same; W0004 when files have no pieces. */
weir_status weir_checkpoint_load_bare(const weir_env *env,
                                      const weir_checkpoint_folder *dir,
                                      const char *name,
                                      weir_checkpoint **out_checkpoint,
                                      weir_error *err);

/* Reads and checks tensor |i|. Errors: W4045, W6001, W6003. */
weir_status weir_checkpoint_read(const weir_checkpoint *c, size_t i,
                                 weir_tensor **out_tensor, weir_error *err);

/* Where it stands for other processes; |out|->path is |path|, which has room
 * for |bytes|. false: that is not known. */
bool weir_checkpoint_place_of(const weir_checkpoint *c, char *path,
                              size_t bytes, struct weir_checkpoint_common *out);

/* The bytes of tensor |i|, and its dtype and shape, lent. Of any checkpoint. */
void weir_checkpoint_span_of(const weir_checkpoint *c, size_t i,
                             struct weir_checkpoint_span *out);
weir_dtype weir_checkpoint_dtype(const weir_checkpoint *c, size_t i);
const weir_shape *weir_checkpoint_shape(const weir_checkpoint *c, size_t i);

#endif
