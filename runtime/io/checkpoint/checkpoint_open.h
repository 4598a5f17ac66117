/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_OPEN_H_
#define WEIR_IO_CHECKPOINT_OPEN_H_

#include "runtime/io/checkpoint/checkpoint.h"

/* Finds a sound generation in a folder. */

/* Opens the newest sound generation beneath |dir| (or, with |step| >= 0, that
 * of the step; |dir| may also name a manifest: it ends in .json). All bytes are
 * read and checked. Damaged generations are reported to |sink| (may be
 * NULL) as warnings and passed over; manifests and shards that are links or
 * no plain files are damaged. So are tensors with NaN or infinite
 * elements (W4047). One of a newer format is not passed over: W4044. |env| must
 * outlive the checkpoint and its tensors. Errors: W4040 (none), W4048 (none of
 * that step); of the generation asked for, or as warnings, W4041 (manifest),
 * W4045 (shard), W4046 (shard of another run); W6001, W6003. */
weir_status weir_checkpoint_open(const weir_env *env, const char *dir,
                                 int64_t step, const weir_diag_sink *sink,
                                 weir_checkpoint **out_checkpoint,
                                 weir_error *err);

/* The same for the newest of folder |dir| that a graph names: it is opened
 * beneath |root| without following links (weir_fs_folders.open); with |root|
 * NULL like weir_checkpoint_open. */
weir_status weir_checkpoint_open_newest(const weir_env *env, const char *root,
                                        const char *dir,
                                        const weir_diag_sink *sink,
                                        weir_checkpoint **out_checkpoint,
                                        weir_error *err);

/* Reads and checks every generation of |dir|, the newest first, until |each|
 * returns false; also those of a newer format. Errors: W4040 when the folder
 * cannot be read, W6001, W6003. */
weir_status weir_checkpoint_each(
    const weir_env *env, const char *dir, void *self,
    bool (*each)(void *self, const weir_checkpoint_found *found),
    weir_error *err);

#endif
