/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_FOLLOW_H_
#define WEIR_IO_CHECKPOINT_FOLLOW_H_

#include "runtime/io/checkpoint/checkpoint.h"

/* Follows a folder that another process saves to.
 *
 *   weir_checkpoint_follower_create(env, NULL, "run", sink, &f, &err);
 *   now and then: weir_checkpoint_follow(f, &checkpoint, &err);
 *                 NULL: nothing new
 *   weir_checkpoint_follower_release(f);
 *
 * Nothing is written, no lock is taken: the process that saves does not see its
 * followers, and may remove what one is about to read. */

typedef struct weir_checkpoint_follower weir_checkpoint_follower;

/* Nothing is read yet, and the folder need not be there. |root|, |dir| as of
 * weir_checkpoint_open_newest, copied; |env| and |sink| (may be NULL) must
 * outlive the follower. Errors: W0004, W6001. */
weir_status weir_checkpoint_follower_create(const weir_env *env,
                                            const char *root, const char *dir,
                                            const weir_diag_sink *sink,
                                            weir_checkpoint_follower **out,
                                            weir_error *err);

/* Looks into the folder once: gives the newest sound generation if it is newer
 * than the one given last, or if that is gone from a folder that went back to
 * an older one; else NULL. A damaged generation is reported to the sink once
 * and passed over. Errors: W4044 (a newer format), W4002 (a folder that cannot
 * be opened, though it is there), W6001, W6003. */
weir_status weir_checkpoint_follow(weir_checkpoint_follower *f,
                                   weir_checkpoint **out_checkpoint,
                                   weir_error *err);

/* The `extra` of the newest generation if the last look found it damaged but
 * for its manifest; else empty. Lent until the next look. */
weir_sv weir_checkpoint_follower_lost(const weir_checkpoint_follower *f);

/* NULL-safe. */
void weir_checkpoint_follower_release(weir_checkpoint_follower *f);

#endif
