/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_LOWER_CARRY_H_
#define WEIR_PLACEMENT_LOWER_CARRY_H_

#include "runtime/base/status.h"

typedef struct weir_lowering weir_lowering;

/* Values that are there without work: variables, inputs, views of them. */

/* Takes kinds of devices where nothing that reads them can run from the sets of
 * such units, unless a request wants them there. Errors: W6001. */
weir_status weir_lower_carry(weir_lowering *l);

#endif
