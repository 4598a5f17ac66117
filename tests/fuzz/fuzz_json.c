/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/base/json/json.h"
#include "runtime/base/strbuf.h"
#include "tests/fuzz/fuzz.h"

/* Reads the input; JSON is written again and must read the same. */

static void copy_token(const weir_json_reader *r, weir_json_writer *w,
                       weir_arena *arena) {
  weir_sv text = {0};
  double number = 0;
  int64_t whole;
  if (r->token == WEIR_JSON_KEY || r->token == WEIR_JSON_STRING)
    FUZZ_CHECK(weir_json_text(r, arena, &text, NULL) == WEIR_OK);
  if (text.data != NULL && strlen(text.data) == text.size)
    FUZZ_CHECK(weir_json_text_is(r, text.data));
  switch (r->token) {
    case WEIR_JSON_OBJECT_BEGIN:
      weir_json_object_begin(w, false);
      break;
    case WEIR_JSON_OBJECT_END:
      weir_json_object_end(w);
      break;
    case WEIR_JSON_ARRAY_BEGIN:
      weir_json_array_begin(w, true);
      break;
    case WEIR_JSON_ARRAY_END:
      weir_json_array_end(w);
      break;
    case WEIR_JSON_KEY:
      weir_json_key_sv(w, text);
      break;
    case WEIR_JSON_STRING:
      weir_json_string(w, text);
      break;
    case WEIR_JSON_NUMBER:
      if (weir_json_get_int(r, &whole) && whole != 0) /* -0 is a double */
        weir_json_int(w, whole);
      else
        weir_json_double(w, weir_json_get_double(r, &number) ? number : 0);
      break;
    case WEIR_JSON_TRUE:
    case WEIR_JSON_FALSE:
      weir_json_bool(w, r->token == WEIR_JSON_TRUE);
      break;
    case WEIR_JSON_NULL:
      weir_json_null(w);
      break;
    default:
      break;
  }
}

/* True when |text| is JSON; its copy is then in |out|. */
static bool copy_json(weir_sv text, weir_strbuf *out) {
  weir_arena arena;
  weir_json_reader r;
  weir_json_writer w;
  weir_error err = WEIR_ERROR_INIT;
  weir_json_token token = WEIR_JSON_NULL;
  weir_arena_init(&arena, weir_allocator_system());
  weir_json_reader_init(&r, text, "f", NULL);
  weir_json_writer_init(&w, weir_strbuf_writer(out), 1);
  weir_status s = WEIR_OK;
  while (s == WEIR_OK && token != WEIR_JSON_END) {
    s = weir_json_next(&r, &token, &err);
    if (s == WEIR_OK) copy_token(&r, &w, &arena);
  }
  FUZZ_CHECK((s == WEIR_OK) == (err.id[0] == '\0'));
  if (s == WEIR_OK) FUZZ_CHECK(weir_json_finish(&w));
  weir_arena_release(&arena);
  return s == WEIR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir_strbuf once, twice;
  weir_strbuf_init(&once, weir_allocator_system());
  weir_strbuf_init(&twice, weir_allocator_system());
  if (copy_json((weir_sv){(const char *)data, size}, &once)) {
    FUZZ_CHECK(copy_json(weir_strbuf_view(&once), &twice));
    FUZZ_CHECK(
        weir_sv_equal(weir_strbuf_view(&once), weir_strbuf_view(&twice)));
  }
  weir_strbuf_release(&once);
  weir_strbuf_release(&twice);
  return 0;
}
