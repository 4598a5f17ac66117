/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/utf8.h"
#include "runtime/io/record/token.h"
#include "runtime/train/source/vocabulary.h"
#include "tests/fuzz/fuzz_blob.h"

/* Reads the input as characters and as words, through a small and a large
 * window, which must find the same; then as a vocabulary's file, which must be
 * written as it is read again. */

static uint64_t digest(const uint8_t *data, size_t size, size_t window,
                       weir_token_format format) {
  fuzz_blob b;
  weir_stream *stream = fuzz_blob_open(&b, data, size, window);
  uint64_t line = 1, sum = 0;
  weir_token_text text = {&format, stream, "f", &line};
  for (;;) {
    weir_error err = WEIR_ERROR_INIT;
    weir_sv token = {"", 0};
    bool end = false;
    weir_status s = weir_token_next(&text, &token, &end, &err);
    FUZZ_CHECK((s == WEIR_OK) == (err.id[0] == '\0'));
    sum = sum * 31 + (uint64_t)s + line;
    if (s != WEIR_OK || end) break;
    FUZZ_CHECK(weir_utf8_valid(token, NULL));
    FUZZ_CHECK(token.size > 0 || format.line_ends);
    for (size_t k = 0; k < token.size; k++)
      sum = sum * 31 + (unsigned char)token.data[k];
    sum = sum * 31 + 256;
  }
  fuzz_blob_close(&b, stream);
  return sum;
}

static void vocabulary(weir_sv content) {
  weir_error err = WEIR_ERROR_INIT;
  weir_vocabulary *v = NULL, *again = NULL;
  weir_strbuf out;
  const weir_allocator *a = weir_allocator_system();
  weir_status s =
      weir_vocabulary_parse(a, content, WEIR_SV_LIT("u"), "f", &v, &err);
  FUZZ_CHECK((s == WEIR_OK) == (v != NULL));
  if (v == NULL) return;
  weir_strbuf_init(&out, a);
  FUZZ_CHECK(weir_vocabulary_write(v, &out, &err) == WEIR_OK);
  FUZZ_CHECK(weir_vocabulary_parse(a, weir_strbuf_view(&out),
                                   (weir_sv){NULL, 0}, "f", &again,
                                   &err) == WEIR_OK);
  FUZZ_CHECK(weir_vocabulary_count(again) == weir_vocabulary_count(v));
  for (int32_t i = 0; i < weir_vocabulary_count(v); i++) {
    FUZZ_CHECK(weir_sv_equal(weir_vocabulary_text(v, i),
                             weir_vocabulary_text(again, i)));
    FUZZ_CHECK(weir_vocabulary_find(v, weir_vocabulary_text(v, i)) == i);
  }
  weir_strbuf_release(&out);
  weir_vocabulary_release(again);
  weir_vocabulary_release(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (int i = 0; i < 3; i++) {
    weir_token_format format = {i > 0, i > 1};
    FUZZ_CHECK(digest(data, size, 1, format) ==
               digest(data, size, 4096, format));
  }
  vocabulary((weir_sv){(const char *)data, size});
  return 0;
}
