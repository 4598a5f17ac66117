/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_RECURRENT_PLAN_H_
#define WEIR_KERNELS_CPU_RECURRENT_PLAN_H_

#include "kernels/kernel.h"

/* The prepared state that gru and lstm share. */

/* Plans a forward call (inputs x, w, r), or, if |back|, one whose input 0 is r
 * and whose input 1 is [b, t, ...]. |keeps_sums|: x w has no output to lie in.
 * Packs constant weights. */
WEIR_MUST_USE weir_status weir_recurrent_prepare(const weir_call *call,
                                                 int64_t gates, bool back,
                                                 bool keeps_sums,
                                                 weir_prepared *out,
                                                 weir_error *err);

void weir_recurrent_release(void *state);

#endif
