/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_CHIEF_SEED_H_
#define WEIR_TRAIN_PS_CHIEF_SEED_H_

#include "runtime/train/ps/chief_internal.h"

/* First values of a job that the graph does not have: those of `--init`, or of
 * a checkpoint of one process, with its step, slots and states.
 *
 * They are in the loop's session when it starts. The chief keeps them until a
 * generation is on disk, and sends them along with each RESTORE before that, so
 * a server that dies meanwhile begins with them again. A chief that dies reads
 * the file or the newest checkpoint again: either is a state that the job had.
 */

/* Takes the values of the loop's session, if the graph's own would not do, and
 * checks that the loop stands at the end of a step of this job. The loop's
 * thread, before the net starts. Errors: W5025, W6001. */
weir_status weir_chief_seed_create(weir_chief *c, weir_error *err);
/* Any thread, when no other uses it. */
void weir_chief_seed_release(weir_chief *c);
/* Control thread: sends |m|, a RESTORE, with the values, if they are wanted
 * still. */
void weir_chief_seed_send(weir_chief *c, weir_ps_task to,
                          const weir_ps_message *m);
/* Control thread: a generation is complete. */
void weir_chief_seed_saved(weir_chief *c);

#endif
