/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_CHIEF_VALUES_H_
#define WEIR_TRAIN_PS_CHIEF_VALUES_H_

#include "runtime/train/ps/chief_internal.h"

/* What the servers have, in the loop's session. The loop's thread. */

/* Buffers for the servers' values, and where they belong. Errors: W6001. */
weir_status weir_chief_values_create(weir_chief *c, weir_error *err);
void weir_chief_values_release(weir_chief *c);
/* Puts what was fetched into the loop's session. */
weir_status weir_chief_values_take(weir_chief *c, weir_error *err);
/* The number of updates, in the loop's session, and their learning rate. */
weir_status weir_chief_set_step(weir_chief *c, uint64_t step, weir_error *err);
/* The numbers of the last run below |runs| that is known, as the loop's. With
 * the lock. */
void weir_chief_take_report(weir_chief *c, uint64_t runs);

#endif
