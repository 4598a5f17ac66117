/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_JSON_WRITE_H_
#define WEIR_BASE_JSON_WRITE_H_

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/sv.h"
#include "runtime/base/writer.h"

/* The writing half of json.h. */

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

/* A name and its value. */
void weir_json_key_int(weir_json_writer *w, const char *key, int64_t value);
void weir_json_key_uint(weir_json_writer *w, const char *key, uint64_t value);
void weir_json_key_double(weir_json_writer *w, const char *key, double value);
void weir_json_key_bool(weir_json_writer *w, const char *key, bool value);
void weir_json_key_text(weir_json_writer *w, const char *key, weir_sv text);

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

#endif
