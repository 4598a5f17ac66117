/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_JSON_H_
#define WEIR_BASE_JSON_H_

#include "runtime/base/json/json_read.h"
#include "runtime/base/json/json_text.h"
#include "runtime/base/json/json_write.h"

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
 * occur twice are left to the caller, who knows the names. After an error
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

#endif
