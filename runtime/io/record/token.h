/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_TOKEN_H_
#define WEIR_IO_TOKEN_H_

#include "runtime/base/sv.h"
#include "runtime/io/stream.h"

/* Tokens of a UTF-8 text, read from a stream: characters (code points), or
 * words: the texts between blanks (space, tab, line ends, form feed). With
 * |line_ends| the end of each line is a word of its own, an empty text. A byte
 * order mark at the file's start is passed over. */
typedef struct weir_token_format {
  bool words, line_ends;
} weir_token_format;

/* A text that is being read; all is borrowed. */
typedef struct weir_token_text {
  const weir_token_format *format;
  weir_stream *stream;
  const char *file; /* for errors */
  uint64_t *line;   /* of |stream|: counts line ends */
} weir_token_text;

/* The token at which |text| stands, or after it, lent until the stream is used
 * again; moves on. |*out_end|: none follows. Errors: W4030 with line and byte;
 * W4036, those of weir_stream_peek. */
weir_status weir_token_next(const weir_token_text *text, weir_sv *out_token,
                            bool *out_end, weir_error *err);

#endif
