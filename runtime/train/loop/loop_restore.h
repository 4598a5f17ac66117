/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_LOOP_RESTORE_H_
#define WEIR_TRAIN_LOOP_RESTORE_H_

#include "runtime/train/loop/loop_internal.h"

/* Goes on from a checkpoint. */

/* Goes on from the newest checkpoint, or takes --init. */
weir_status weir_loop_restore(weir_loop *loop, weir_error *err);

/* Variables only, for evaluation: of the newest checkpoint, which must be
 * there, or of --init. */
weir_status weir_loop_restore_only(weir_loop *loop, weir_error *err);

#endif
