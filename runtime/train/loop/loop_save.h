/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_LOOP_SAVE_H_
#define WEIR_TRAIN_LOOP_SAVE_H_

#include "runtime/train/loop/loop.h"

/* Saves the loop's state. */

/* Saves the last state, unless it is saved, and waits until it is on disk. */
weir_status weir_loop_finish(weir_loop *loop, weir_error *err);

/* Saves now (W0004 without a folder), and waits when |wait|. */
weir_status weir_loop_save(weir_loop *loop, bool wait, weir_error *err);

/* Opens the folder of checkpoints, if there is to be one. */
weir_status weir_loop_save_open(weir_loop *loop, weir_error *err);

/* Saves; a failure is reported as a warning, and returned. */
weir_status weir_loop_save_now(weir_loop *loop, weir_error *err);

#endif
