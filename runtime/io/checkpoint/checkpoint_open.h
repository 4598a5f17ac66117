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

/* Who takes the values of a generation. */
typedef struct weir_checkpoint_taker {
  void *self;
  weir_status (*take)(void *self, const weir_checkpoint *checkpoint,
                      weir_error *err);
} weir_checkpoint_taker;

/* As weir_checkpoint_open_newest, but a bare checkpoint (checkpoint_load.h),
 * whose tensors |taker| reads, or has others read: a generation for which it
 * reports damage is passed over as well. What is given back has no tensors to
 * be read. Errors besides: those of take. */
weir_status weir_checkpoint_take_newest(const weir_env *env, const char *root,
                                        const char *dir,
                                        const weir_diag_sink *sink,
                                        const weir_checkpoint_taker *taker,
                                        weir_checkpoint **out_checkpoint,
                                        weir_error *err);

/* Whether files of |env| can be read so. */
bool weir_checkpoint_can_take(const weir_env *env);

/* Whether |err| says that a generation is damaged, or not there; else it is
 * this process's, or a newer format's. */
bool weir_checkpoint_is_damage(const weir_error *err);

/* Reports elements of |c| that are not finite (W4047). */
void weir_checkpoint_warn_of_values(const weir_checkpoint *c,
                                    const weir_diag_sink *sink);

/* Reads and checks every generation of |dir|, the newest first, until |each|
 * returns false; also those of a newer format. Errors: W4040 when the folder
 * cannot be read, W6001, W6003. */
weir_status weir_checkpoint_each(
    const weir_env *env, const char *dir, void *self,
    bool (*each)(void *self, const weir_checkpoint_found *found),
    weir_error *err);

#endif
