/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_QUANTITY_H_
#define WEIR_BASE_QUANTITY_H_

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/sv.h"

/* Sizes, times and rates as people write them: one grammar for graph files,
 * cluster texts and the command's options.
 *
 *   quantity  NUMBER BLANKS UNIT      "16GiB", "1.5 MB", "2e3 ms"
 *   number    digits[.digits][e[-+]digits], without a sign
 *   size      B kB KB MB GB TB (powers of 1000)
 *             KiB MiB GiB TiB K M G T (powers of 1024)
 *   time      ns us ms s m min h d
 *   rate      size/s, or bit/s kbit/s Mbit/s Gbit/s
 *
 * An integer is multiplied exactly; a number with a point or an exponent is a
 * double, of whose product the whole part counts. The functions give false, and
 * leave |*out| alone, for a negative number, a text that is no number, a unit
 * that is not listed and an amount that is 2^63 or more. */

/* A size in bytes; a number without a unit counts bytes. */
bool weir_quantity_bytes(weir_sv text, int64_t *out_bytes);

/* A time in nanoseconds; the unit must be there. */
bool weir_quantity_time(weir_sv text, int64_t *out_ns);

/* The same; a number without a unit counts seconds. For options, where no
 * count of anything else can be meant. */
bool weir_quantity_seconds(weir_sv text, int64_t *out_ns);

/* A rate in bytes per microsecond (millions of bytes per second), at least
 * 1. */
bool weir_quantity_rate(weir_sv text, int64_t *out_bytes_per_us);

/* The number that |text| begins with, and the text after it and its blanks: for
 * a key that takes units of its own ("1 epoch"). False when it begins with
 * none. */
bool weir_quantity_split(weir_sv text, double *out_number, weir_sv *out_unit);

/* ---- Printing */

enum { WEIR_QUANTITY_TEXT = 32 };

/* "950 ns", "18.42 ms": nanoseconds up to 10,000 in full, then two places of
 * the largest of us, ms and s of which there are 10 or more. Returns |text|. */
const char *weir_quantity_print_time(int64_t ns, char text[WEIR_QUANTITY_TEXT]);

/* "512 B", "9.4 MB": the same for bytes, with one place. Returns |text|. */
const char *weir_quantity_print_bytes(int64_t bytes,
                                      char text[WEIR_QUANTITY_TEXT]);

#endif
