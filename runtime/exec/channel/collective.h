/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COLLECTIVE_H_
#define WEIR_EXEC_COLLECTIVE_H_

#include "runtime/exec/channel/channel.h"

/* Checks and computes collectives for channels. */

/* For implementations: adds, gathers or deals |ranks| parts of one step, all
 * present, in rank order. |scratch| holds count elements for the sums. */
void weir_collective_compute(const weir_collective *const *parts,
                             void *scratch);

/* Bytes of that scratch; checks the part. Errors: W0004, W2001. */
weir_status weir_collective_check(const weir_collective *part,
                                  size_t *out_scratch_bytes, weir_error *err);

#endif
