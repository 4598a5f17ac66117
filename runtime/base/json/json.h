/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_JSON_H_
#define WEIR_BASE_JSON_H_

#include "runtime/base/alloc.h"
#include "runtime/base/status.h"
#include "runtime/base/sv.h"
#include "runtime/base/writer.h"

/* JSON (RFC 8259), written as a stream and read token by token.
 *
 * Neither side builds a tree, recurses or allocates; both are plain structs on
 * the caller's stack, for one thread at a time.
 *
 * Writing. Calls follow the text: inside an object each value is preceded by
 * weir_json_key. The first failure (a write that fails, nesting past 64, a
 * value without its key) is kept, later calls do nothing, and weir_json_finish
 * tells:
 *
 *   weir_json_writer w;
 *   weir_json_writer_init(&w, out, 2);
 *   weir_json_object_begin(&w, false);
 *   weir_json_key(&w, "shape");
 *   weir_json_array_begin(&w, true);
 *   for (int i = 0; i < rank; i++) weir_json_int(&w, dims[i]);
 *   weir_json_array_end(&w);
 *   weir_json_object_end(&w);
 *   if (!weir_json_finish(&w)) ...
 *
 * Reading. weir_json_next gives tokens until WEIR_JSON_END. Grammar, UTF-8,
 * escapes, surrogate pairs and depth are checked by the reader, names that
 * occur twice are left to whoever knows which names there are. After an error
 * every call fails with the same one:
 *
 *   weir_json_token token;
 *   weir_json_reader r;
 *   weir_json_reader_init(&r, text, "model.safetensors", NULL);
 *   WEIR_TRY(weir_json_expect(&r, WEIR_JSON_OBJECT_BEGIN, err));
 *   for (;;) {
 *     WEIR_TRY(weir_json_next(&r, &token, err));
 *     if (token == WEIR_JSON_OBJECT_END) break;
 *     if (weir_json_text_is(&r, "dtype")) ... read its value ...
 *     else WEIR_TRY(weir_json_skip(&r, err));
 *   }
 *   WEIR_TRY(weir_json_expect(&r, WEIR_JSON_END, err)); */

/* --- writing --- */

enum { WEIR_JSON_WRITE_DEPTH = 64, WEIR_JSON_BUFFER = 512 };

/* Fields are the implementation's. */
typedef struct weir_json_writer {
  weir_writer out;
  uint32_t indent, depth, row_depth; /* |row_depth|: on one line from here */
  uint64_t is_object, has_items;     /* one bit per level */
  bool after_key, failed;
  size_t used;
  char buffer[WEIR_JSON_BUFFER];
} weir_json_writer;

/* Starts a text that goes to |out| (copied). |indent| spaces per level; 0 puts
 * all on one line. Any number of texts may follow each other (JSON lines). */
void weir_json_writer_init(weir_json_writer *w, weir_writer out,
                           uint32_t indent);

/* Open and close a collection; with |one_line| all inside stays on the line. */
void weir_json_object_begin(weir_json_writer *w, bool one_line);
void weir_json_object_end(weir_json_writer *w);
void weir_json_array_begin(weir_json_writer *w, bool one_line);
void weir_json_array_end(weir_json_writer *w);

/* The name of the value that follows; _sv for text that is not a literal. */
void weir_json_key(weir_json_writer *w, const char *key);
void weir_json_key_sv(weir_json_writer *w, weir_sv key);

/* Values. Bytes that are not UTF-8 are written as U+FFFD. */
void weir_json_string(weir_json_writer *w, weir_sv text);
void weir_json_int(weir_json_writer *w, int64_t value);
void weir_json_uint(weir_json_writer *w, uint64_t value);
void weir_json_bool(weir_json_writer *w, bool value);
void weir_json_null(weir_json_writer *w);

/* The shortest digits that read back as |value|. JSON has no NaN and no
 * infinity: they are written as the strings "NaN", "Infinity", "-Infinity". */
void weir_json_double(weir_json_writer *w, double value);
void weir_json_float(weir_json_writer *w, float value);

/* Ends the line and hands all to the writer. True when everything was written
 * and every collection is closed. */
bool weir_json_finish(weir_json_writer *w);

/* --- reading --- */

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
  WEIR_JSON_NULL
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

/* Where the current token stands: line and column from 1. Costs a pass over
 * the text before it, so it is for messages only. */
weir_mark weir_json_mark(const weir_json_reader *r);

/* "an object", "a string", "the end of the text"; for messages. */
const char *weir_json_token_name(weir_json_token token);

#endif
