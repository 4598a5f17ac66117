/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_FOLLOW_H_
#define WEIR_TRAIN_FOLLOW_H_

#include "runtime/train/loop/loop.h"

/* An evaluator: evaluates each checkpoint of a training that another process
 * runs, as it appears, until that training is over.
 *
 * |loop| was made to follow (weir_loop_options.follow). |data|: the section to
 * evaluate on; NULL: that of `eval:`. Blocks; weir_loop_stop ends it. It reads,
 * and takes no lock, so the training does not see it. Falls it behind, it goes
 * on with the newest checkpoint.
 *
 * The training is over when its newest checkpoint says so
 * (runtime/train/ended.h): by its steps, epochs, time or an evaluation. One
 * that was stopped by a signal, or died, may be taken up again, and is waited
 * for. So is one that had ended before, when |loop|'s own steps or epochs ask
 * for more, and one that had ended at weir_loop_options.follow_after or before,
 * for whatever reason, unless those are reached.
 *
 * |*out| is filled also by a call that fails. Errors: W5023 (no `eval:`), those
 * of weir_checkpoint_follow, W5022 (of another graph), of evaluations. */
weir_status weir_loop_follow(weir_loop *loop, const char *data,
                             weir_train_followed *out, weir_error *err);

#endif
