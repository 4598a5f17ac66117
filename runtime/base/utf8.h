/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_UTF8_H_
#define WEIR_BASE_UTF8_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/sv.h"

/* UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, at most U+10FFFF.
 * All functions are pure; offsets are in bytes, widths in terminal cells. */

/* Decodes the code point that starts |text|. Returns its length, 1 to 4, or 0
 * when |text| is empty or not valid there (|*out_point| is then untouched). */
size_t weir_utf8_decode(weir_sv text, uint32_t *out_point);

/* Writes |point| (a valid code point) to |dst|, which has room for 4 bytes;
 * returns the length. */
size_t weir_utf8_encode(uint32_t point, char *dst);

/* True when all of |text| is valid; else |*bad_offset| (may be NULL) is where
 * the first wrong sequence starts. */
bool weir_utf8_valid(weir_sv text, size_t *bad_offset);

/* Number of code points; each byte of an invalid sequence counts as one. */
size_t weir_utf8_count(weir_sv text);

/* Bytes of the line break that starts |text|, 0 when none does: CR LF, LF, CR,
 * and those that YAML readers count too, U+0085, U+2028, U+2029. */
size_t weir_utf8_line_break(weir_sv text);

/* Terminal cells |point| takes: 0 for combining and zero-width marks, 2 for
 * East Asian wide characters and emoji, else 1. Source: Unicode 15 Annex 11. */
int weir_utf8_width(uint32_t point);

/* True when printing |point| could change how a terminal shows other text:
 * control characters and bidirectional overrides. */
bool weir_utf8_unsafe(uint32_t point);

#endif
