/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_JSON_TEXT_H_
#define WEIR_BASE_JSON_TEXT_H_

#include "runtime/base/alloc.h"
#include "runtime/base/json/json_read.h"

/* Values of the reader's tokens. */

/* The text of the current key or string without escapes, NUL-terminated (it
 * may hold NULs of its own), in |arena|. Errors: W6001. */
weir_status weir_json_text(const weir_json_reader *r, weir_arena *arena,
                           weir_sv *out_text, weir_error *err);

/* True when the current key or string, without escapes, is |text|. */
bool weir_json_text_is(const weir_json_reader *r, const char *text);

/* The current number. weir_json_get_int is false for a fraction, an exponent
 * or more than 63 bits; weir_json_get_double for a value past the largest. */
bool weir_json_get_int(const weir_json_reader *r, int64_t *out);
bool weir_json_get_double(const weir_json_reader *r, double *out);

/* "an object", "a string", "the end of the text"; for messages. */
const char *weir_json_token_name(weir_json_token token);

/* Inside the JSON reader only. Decodes the escape of |text| at |at|, which
 * points behind the backslash; a surrogate pair counts as one. Returns how many
 * bytes it takes there, or 0 when it is none. Pure. */
size_t weir_json_unescape(weir_sv text, size_t at, uint32_t *out_point);

#endif
