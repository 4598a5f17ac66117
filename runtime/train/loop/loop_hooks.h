/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_LOOP_HOOKS_H_
#define WEIR_TRAIN_LOOP_HOOKS_H_

#include "runtime/train/loop/loop_internal.h"

/* The work after a step or an epoch: reports, evaluations, checkpoints. */

/* Counts from now, as if it had been due last at or before this moment. */
void weir_loop_due_begin(const weir_loop *loop, weir_due *due);

/* Whether a checkpoint is due before |more| runs from now have ended: then
 * replicas begin no more of them. */
bool weir_loop_save_is_near(const weir_loop *loop, uint32_t more);

/* Does the work due after a step or at the end of an epoch. */
weir_status weir_loop_after(weir_loop *loop, weir_error *err);

#endif
