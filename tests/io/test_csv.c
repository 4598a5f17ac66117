/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/record/csv.h"

#include "tests/io/stream_check.h"

/* Fields in brackets, records ended by a slash; an error's id and line. */
static void gives(const char *text, const char *want) {
  for (size_t window = 1; window < 70; window += window < 9 ? 1 : 20) {
    mem_file m = {text, strlen(text)};
    mem_env e;
    weir_blob *blob = mem_open(&e, &m);
    weir_stream *stream = mem_stream(&e, blob, window);
    weir_csv_reader r = {.alloc = &e.counted.base, .format = {',', '"'}};
    weir_strbuf out;
    weir_strbuf_init(&out, weir_allocator_system());
    uint64_t line = 1;
    for (;;) {
      weir_error err = WEIR_ERROR_INIT;
      weir_status s = weir_csv_next(&r, stream, "f", &line, &err);
      if (s != WEIR_OK) weir_strbuf_printf(&out, "%s:%u", err.id, err.line);
      if (s != WEIR_OK || r.count == 0) break;
      for (uint32_t i = 0; i < r.count; i++)
        weir_strbuf_printf(&out, "[%.*s]", WEIR_SV(r.fields[i]));
      weir_strbuf_text(&out, "/");
    }
    weir_strbuf_text(&out, "");
    if (!weir_sv_is(weir_strbuf_view(&out), want))
      fail_msg("window %zu gives %s\nwant %s", window, out.data, want);
    weir_strbuf_release(&out);
    weir_csv_reader_release(&r);
    weir_stream_release(stream);
    mem_close(&e, blob);
  }
}

static void plain(void **state) {
  (void)state;
  gives("", "");
  gives("a,b,c\n1,2,3\n", "[a][b][c]/[1][2][3]/");
  gives("a,b\r\n1,2\r\n", "[a][b]/[1][2]/");
  gives("a,b\n1,2", "[a][b]/[1][2]/");
  gives("a,\n,b\n", "[a][]/[][b]/");
  gives("\n\r\na\n\n\n", "[a]/");
  gives(
      "\xef\xbb\xbf"
      "a,b\n",
      "[a][b]/");
  gives(",", "[][]/");
  gives(" a , b \n", "[ a ][ b ]/");
  gives("a\rb,c\n", "[a\rb][c]/");
}

static void quoted(void **state) {
  (void)state;
  gives("\"a\",\"b,c\"\n", "[a][b,c]/");
  gives("\"a\"\"b\",\"\"\"\"\n", "[a\"b][\"]/");
  gives("\"\",x\n\"\"", "[][x]/[]/");
  gives("\"two\nlines\",x\r\n\"y\"\r\n", "[two\nlines][x]/[y]/");
  gives("\"a\"\r", "[a]/");
}

static void wrong(void **state) {
  (void)state;
  gives("a\n\"b", "[a]/W4026:2");
  gives("a\n\"b\nc\n", "[a]/W4026:2");
  gives("\"a\"b\n", "W4026:1");
  gives("a,\"x\ny\"z\n", "W4026:2");
  gives("a\nb\"c\n", "[a]/W4026:2");
  gives("\"a\"\rb", "W4026:1");
}

/* Any window, any bytes: the rows do not depend on the window. */
static void windows_do_not_matter(void **state) {
  (void)state;
  static const char kBytes[] = "a,\"\n\rb";
  uint32_t x = 7;
  for (int round = 0; round < 300; round++) {
    char text[24] = "";
    for (int i = 0; i < 20; i++)
      text[i] = kBytes[((x = x * 1664525 + 1013904223) >> 24) % 6];
    mem_file m = {text, 20};
    char first[1024] = "";
    for (size_t window = 1; window < 40; window += 6) {
      mem_env e;
      weir_blob *blob = mem_open(&e, &m);
      weir_stream *stream = mem_stream(&e, blob, window);
      weir_csv_reader r = {.alloc = &e.counted.base, .format = {',', '"'}};
      char out[1024] = "";
      uint64_t line = 1;
      weir_error err = WEIR_ERROR_INIT;
      weir_status s;
      while ((s = weir_csv_next(&r, stream, "f", &line, &err)) == WEIR_OK &&
             r.count > 0)
        for (uint32_t i = 0; i < r.count; i++)
          snprintf(out + strlen(out), sizeof out - strlen(out), "[%.*s]",
                   WEIR_SV(r.fields[i]));
      snprintf(out + strlen(out), sizeof out - strlen(out), "%s%u", err.id,
               err.line);
      if (window == 1) strcpy(first, out);
      assert_string_equal(out, first);
      weir_csv_reader_release(&r);
      weir_stream_release(stream);
      mem_close(&e, blob);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain),
      cmocka_unit_test(quoted),
      cmocka_unit_test(wrong),
      cmocka_unit_test(windows_do_not_matter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
