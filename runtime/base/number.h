/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_NUMBER_H_
#define WEIR_BASE_NUMBER_H_

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/sv.h"

/* Numbers to text and back, the same in every locale. */

enum { WEIR_NUMBER_TEXT = 32 }; /* room for any number and its NUL */

/* Reads all of |text| as [-+]digits[.digits][e[-+]digits], with digits on at
 * least one side of the point, to the nearest double (ties to even). Too large
 * a number becomes infinity, too small a one zero, as in C. False, and |*out|
 * untouched, when the text has another form; no words such as "inf". */
bool weir_number_parse(weir_sv text, double *out);

/* The same to the nearest float: a double rounded again may be its neighbour.
 */
bool weir_number_parse_float(weir_sv text, float *out);

/* Reads all of |text| as [-+]digits, base 10. False when it has another form
 * or does not fit. */
bool weir_number_parse_int(weir_sv text, int64_t *out);

/* Writes the shortest of %.15g, %.16g and %.17g that reads back as |value|, or
 * "NaN", "Infinity", "-Infinity". Returns the length without the NUL. */
size_t weir_number_format(char dst[WEIR_NUMBER_TEXT], double value);

/* The same for a float: the shortest of %.6g to %.9g that reads back as it. */
size_t weir_number_format_float(char dst[WEIR_NUMBER_TEXT], float value);

#endif
