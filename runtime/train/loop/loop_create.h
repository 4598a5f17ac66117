/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_LOOP_CREATE_H_
#define WEIR_TRAIN_LOOP_CREATE_H_

#include "runtime/train/data/data.h"
#include "runtime/train/loop/loop.h"

/* Makes a training loop. */

/* |env| and |pool| are borrowed and must outlive the loop; |graph| is retained.
 * Reads the newest checkpoint, so it may take long; nothing is trained yet.
 * Errors: those of the sections and of the training graph, W4040-W4049,
 * W5021-W5025, W6001. */
weir_status weir_loop_create(const weir_env *env, weir_pool *pool,
                             const weir_graph *graph,
                             const weir_loop_options *options,
                             weir_loop **out_loop, weir_error *err);

/* Waits for a checkpoint under way. NULL-safe. */
void weir_loop_release(weir_loop *loop);

/* How |loop| opens data sets. */
weir_dataset_options weir_loop_dataset(const weir_loop *loop);

#endif
