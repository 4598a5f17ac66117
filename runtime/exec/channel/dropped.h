/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_DROPPED_H_
#define WEIR_EXEC_DROPPED_H_

#include <stdbool.h>

#include "runtime/base/error.h"

/* The steps of a channel that were dropped, and why. For implementations; under
 * the channel's lock. */

enum { WEIR_DROPPED_STEPS = 64, WEIR_DROPPED_REASONS = 4 };

/* Zero at the beginning. */
typedef struct weir_dropped {
  uint32_t count; /* ever dropped, one after the other */
  uint64_t below; /* all steps below this one count as dropped */
  uint64_t steps[WEIR_DROPPED_STEPS];
  weir_error why[WEIR_DROPPED_REASONS]; /* of the last ones */
} weir_dropped;

/* Notes that |step| was dropped. */
void weir_dropped_add(weir_dropped *dropped, uint64_t step,
                      const weir_error *why);

/* Whether |step| was dropped; then |*why| is the reason, as far as kept. */
bool weir_dropped_find(const weir_dropped *dropped, uint64_t step,
                       weir_error *why);

#endif
