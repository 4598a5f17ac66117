/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_JSON_READ_H_
#define WEIR_BASE_JSON_READ_H_

#include "runtime/base/status.h"
#include "runtime/base/sv.h"

/* The reading half of json.h: tokens. json_text.h has their values. */

typedef enum weir_json_token {
  WEIR_JSON_END, /* the text ended after one value */
  WEIR_JSON_OBJECT_BEGIN,
  WEIR_JSON_OBJECT_END,
  WEIR_JSON_ARRAY_BEGIN,
  WEIR_JSON_ARRAY_END,
  WEIR_JSON_KEY, /* of the value that follows */
  WEIR_JSON_STRING,
  WEIR_JSON_NUMBER,
  WEIR_JSON_TRUE,
  WEIR_JSON_FALSE,
  WEIR_JSON_NULL,
  WEIR_JSON_TOKEN_COUNT
} weir_json_token;

enum { WEIR_JSON_READ_DEPTH = 64 };

/* Bounds and places; zero or NULL takes the default. */
typedef struct weir_json_options {
  uint32_t depth;     /* of nested collections, at most (and by default) 64 */
  size_t base_offset; /* of the text's first byte in its file, for messages */
} weir_json_options;

/* |token|, |text| and |token_at| may be read by the caller. */
typedef struct weir_json_reader {
  weir_json_token token;
  weir_sv text;    /* key, string: between the quotes, escaped; number: it */
  bool escaped;    /* |text| holds backslashes */
  size_t token_at; /* byte offset of the token in |input| */
  /* the implementation's */
  weir_sv input;
  const char *file;
  size_t base_offset, at, failed_at;
  uint32_t depth, depth_limit;
  uint64_t is_object; /* one bit per level */
  int state;
  const char *failure; /* NULL while all is well; static text */
} weir_json_reader;

/* Starts reading |input|, all of which must be one JSON value. Borrows |input|
 * and |file| (for messages, may be NULL) until the last call. */
void weir_json_reader_init(weir_json_reader *r, weir_sv input, const char *file,
                           const weir_json_options *options);

/* Reads the next token. Errors: W4013, with line, column and byte offset. */
weir_status weir_json_next(weir_json_reader *r, weir_json_token *out_token,
                           weir_error *err);

/* Reads the next token and refuses any other kind than |want| (W4013). */
weir_status weir_json_expect(weir_json_reader *r, weir_json_token want,
                             weir_error *err);

/* Reads past one value: after a key, or after a token that opened a
 * collection, then to its end; other tokens were read whole already. */
weir_status weir_json_skip(weir_json_reader *r, weir_error *err);

/* Where the current token stands: line and column from 1. Costs a pass over
 * the text before it, so it is for messages only. */
weir_mark weir_json_mark(const weir_json_reader *r);

#endif
