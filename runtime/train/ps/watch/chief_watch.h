/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_CHIEF_WATCH_H_
#define WEIR_TRAIN_PS_CHIEF_WATCH_H_

#include "runtime/train/loop/loop.h"

/* What a chief's summary shows. The loop's thread, at a step whose values have
 * been taken. */

struct weir_chief;
typedef struct weir_chief_watch weir_chief_watch;

/* After weir_chief_values_create. Errors: those of sessions, W6001, W6003. */
weir_status weir_chief_watch_create(struct weir_chief *c, weir_error *err);
void weir_chief_watch_release(struct weir_chief *c);

/* Scalar |i| of the spec; NaN: not known. */
double weir_chief_scalar(const weir_loop *loop, uint32_t i);
/* Computes what histograms show, once for all of a step. Errors: those of the
 * data, the run's. */
weir_status weir_chief_look(weir_loop *loop, weir_error *err);
/* Histogram |i| of those that are of nodes; the caller's. Errors: W6001. */
weir_status weir_chief_histogram(const weir_loop *loop, uint32_t i,
                                 weir_tensor **out, weir_error *err);

#endif
