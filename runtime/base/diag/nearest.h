/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_NEAREST_H_
#define WEIR_BASE_NEAREST_H_

#include "runtime/base/sv.h"

/* Finds the name that was probably meant. */

/* The known name nearest to |name| within a third of its length, or an empty
 * text. Used for "did you mean". |name_at| returns the i-th of |count| names.
 */
weir_sv weir_nearest_name(weir_sv name, size_t count,
                          weir_sv (*name_at)(const void *self, size_t i),
                          const void *self);

#endif
