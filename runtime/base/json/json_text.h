/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_JSON_TEXT_H_
#define WEIR_BASE_JSON_TEXT_H_

#include <stdint.h>

#include "runtime/base/sv.h"

/* Inside the JSON reader only. Decodes the escape of |text| at |at|, which
 * points behind the backslash; a surrogate pair counts as one. Returns how many
 * bytes it takes there, or 0 when it is none. Pure. */
size_t weir_json_unescape(weir_sv text, size_t at, uint32_t *out_point);

#endif
