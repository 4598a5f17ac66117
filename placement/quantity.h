/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_QUANTITY_H_
#define WEIR_PLACEMENT_QUANTITY_H_

#include <stdint.h>

#include "runtime/base/sv.h"

/* Bytes, times and rates as people write them. */

/* "16GiB", "1.5GB" to bytes. false: not such a text. */
bool weir_quantity_bytes(weir_sv text, int64_t *out_bytes);

/* "50us" to nanoseconds. false: not such a text. */
bool weir_quantity_time(weir_sv text, int64_t *out_ns);

/* "10GB/s" to bytes per microsecond. false: not such a text. */
bool weir_quantity_rate(weir_sv text, int64_t *out_bytes_per_us);

#endif
