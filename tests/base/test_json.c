/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/json/json.h"

#include <math.h>
#include <string.h>

#include "runtime/base/json/json_trace.h"
#include "runtime/base/number.h"
#include "tests/check.h"

/* --- writing --- */

typedef struct sink {
  char text[4096];
  size_t size, limit;
} sink;

static bool sink_write(void *self, const char *data, size_t size) {
  sink *s = self;
  if (s->size + size > s->limit) return false;
  memcpy(s->text + s->size, data, size);
  s->size += size;
  s->text[s->size] = '\0';
  return true;
}

static weir_writer into(sink *s) {
  s->size = 0;
  s->text[0] = '\0';
  if (s->limit == 0) s->limit = sizeof s->text - 1;
  return (weir_writer){s, sink_write};
}

static void write_sample(weir_json_writer *w) {
  weir_json_object_begin(w, false);
  weir_json_key(w, "name");
  weir_json_string(w, WEIR_SV_LIT("a \"b\"\\\n\x01\x7f\xff\xc3\xa9"));
  weir_json_key(w, "shape");
  weir_json_array_begin(w, true);
  weir_json_int(w, INT64_MIN);
  weir_json_uint(w, UINT64_MAX);
  weir_json_array_end(w);
  weir_json_key(w, "none");
  weir_json_array_begin(w, false);
  weir_json_array_end(w);
  weir_json_key(w, "flags");
  weir_json_array_begin(w, false);
  weir_json_bool(w, true);
  weir_json_null(w);
  weir_json_array_end(w);
  weir_json_object_end(w);
}

static void writes_indented(void **state) {
  (void)state;
  sink s = {0};
  weir_json_writer w;
  weir_json_writer_init(&w, into(&s), 2);
  write_sample(&w);
  assert_true(weir_json_finish(&w));
  assert_string_equal(
      s.text,
      "{\n"
      "  \"name\": \"a \\\"b\\\"\\\\\\n\\u0001\\u007f\xef\xbf\xbd\xc3\xa9\",\n"
      "  \"shape\": [-9223372036854775808, 18446744073709551615],\n"
      "  \"none\": [],\n"
      "  \"flags\": [\n"
      "    true,\n"
      "    null\n"
      "  ]\n"
      "}\n");
}

static void writes_lines(void **state) {
  (void)state;
  sink s = {0};
  weir_json_writer w;
  weir_json_writer_init(&w, into(&s), 0);
  weir_json_object_begin(&w, false);
  weir_json_key_sv(&w, WEIR_SV_LIT("a"));
  weir_json_int(&w, 1);
  weir_json_object_end(&w);
  assert_true(weir_json_finish(&w));
  weir_json_array_begin(&w, false);
  weir_json_double(&w, NAN);
  weir_json_double(&w, -INFINITY);
  weir_json_float(&w, 0.1f);
  weir_json_double(&w, 0.1);
  weir_json_array_end(&w);
  assert_true(weir_json_finish(&w));
  assert_string_equal(s.text, "{\"a\":1}\n[\"NaN\",\"-Infinity\",0.1,0.1]\n");
}

static void writes_members(void **state) {
  (void)state;
  sink s = {0};
  weir_json_writer w;
  weir_json_writer_init(&w, into(&s), 1);
  weir_json_object_begin(&w, true);
  weir_json_key_int(&w, "i", -7);
  weir_json_key_uint(&w, "u", UINT64_MAX);
  weir_json_key_double(&w, "d", 0.5);
  weir_json_key_text(&w, "t", WEIR_SV_LIT("a\"b"));
  weir_json_object_end(&w);
  assert_true(weir_json_finish(&w));
  assert_string_equal(s.text,
                      "{\"i\": -7, \"u\": 18446744073709551615, \"d\": 0.5, "
                      "\"t\": \"a\\\"b\"}\n");
}

static void writes_trace_events(void **state) {
  (void)state;
  sink s = {0};
  weir_json_writer w;
  weir_json_span span = {.name = WEIR_SV_LIT("y"),
                         .category = "matmul",
                         .process = 1,
                         .lane = 3,
                         .start_ns = 1500,
                         .end_ns = 4000};
  weir_json_writer_init(&w, into(&s), 0);
  weir_json_array_begin(&w, false);
  weir_json_lane(&w, 3, WEIR_SV_LIT("cpu:0"));
  weir_json_span_begin(&w, &span);
  weir_json_object_end(&w);
  weir_json_array_end(&w);
  assert_true(weir_json_finish(&w));
  assert_string_equal(
      s.text,
      "[{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":3,\"args\":{"
      "\"name\":\"cpu:0\"}},{\"name\":\"y\",\"cat\":\"matmul\",\"ph\":\"X\","
      "\"pid\":1,\"tid\":3,\"ts\":1.5,\"dur\":2.5}]\n");
}

static void refuses_misuse(void **state) {
  (void)state;
  sink s = {0};
  weir_json_writer w;
  weir_json_writer_init(&w, into(&s), 0);
  weir_json_object_begin(&w, false);
  weir_json_int(&w, 1); /* no key */
  weir_json_object_end(&w);
  assert_false(weir_json_finish(&w));
  weir_json_writer_init(&w, into(&s), 0);
  weir_json_array_begin(&w, false); /* never closed */
  assert_false(weir_json_finish(&w));
  weir_json_writer_init(&w, into(&s), 0);
  weir_json_array_begin(&w, false);
  weir_json_object_end(&w); /* closed as something else */
  assert_false(weir_json_finish(&w));
  weir_json_writer_init(&w, into(&s), 0);
  for (int i = 0; i < 65; i++) weir_json_array_begin(&w, false);
  for (int i = 0; i < 65; i++) weir_json_array_end(&w);
  assert_false(weir_json_finish(&w));
}

static void tells_write_failure(void **state) {
  (void)state;
  sink s = {.limit = 1000};
  weir_json_writer w;
  weir_json_writer_init(&w, into(&s), 0);
  weir_json_array_begin(&w, false);
  for (int i = 0; i < 1000; i++) weir_json_int(&w, i);
  weir_json_array_end(&w);
  assert_false(weir_json_finish(&w));
  assert_int_equal(s.size, WEIR_JSON_BUFFER);
}

/* --- numbers --- */

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state ^ (*state >> 29);
}

static void numbers_round_trip(void **state) {
  (void)state;
  uint64_t seed = 7;
  for (int i = 0; i < 50000; i++) {
    uint64_t bits = next_random(&seed);
    double d, back;
    memcpy(&d, &bits, sizeof d);
    uint32_t low = (uint32_t)(bits >> 16);
    float f;
    memcpy(&f, &low, sizeof f);
    char text[WEIR_NUMBER_TEXT];
    if (isfinite(d)) {
      size_t n = weir_number_format(text, d);
      assert_true(weir_number_parse((weir_sv){text, n}, &back));
      assert_true(back == d);
    }
    if (isfinite(f)) {
      size_t n = weir_number_format_float(text, f);
      assert_true(weir_number_parse((weir_sv){text, n}, &back));
      assert_true((float)back == f);
    }
  }
}

static void check_parse(const char *text, double want) {
  double got = -1;
  if (!weir_number_parse(weir_sv_from(text), &got))
    fail_msg("'%s' was refused", text);
  if (got != want) fail_msg("'%s' gave %.17g, want %.17g", text, got, want);
}

static void parses_numbers(void **state) {
  (void)state;
  check_parse("0", 0);
  check_parse("-0.0", 0);
  check_parse("+1.5e3", 1500);
  check_parse(".5", 0.5);
  check_parse("5.", 5);
  check_parse("1e-3", 1e-3);
  check_parse("123456789012345678", 123456789012345678.0);
  check_parse("0.000000000000000000000000000000123", 1.23e-31);
  check_parse("2.2250738585072011e-308", 2.2250738585072011e-308);
  check_parse("1.7976931348623157e308", 1.7976931348623157e308);
  check_parse("1e309", INFINITY);
  check_parse("1e-400", 0);
  check_parse("1e99999999999999999999", INFINITY);
  /* halfway between 1 and the next double, and a hair above */
  check_parse("1.00000000000000011102230246251565404236316680908203125", 1);
  char text[1000] = "1.00000000000000011102230246251565404236316680908203125";
  memset(text + strlen(text), '0', 850);
  check_parse(text, 1);
  text[900] = '1';
  check_parse(text, 1.0000000000000002);
  static const char *const kBad[] = {"",    "-",     ".",     "e5",  "1e",
                                     "1e+", "1.2.3", "0x10",  "inf", "nan",
                                     "1 ",  " 1",    "1_000", "--1"};
  for (size_t i = 0; i < sizeof kBad / sizeof kBad[0]; i++) {
    double out = 42;
    assert_false(weir_number_parse(weir_sv_from(kBad[i]), &out));
    assert_true(out == 42);
  }
}

static void parses_integers(void **state) {
  (void)state;
  int64_t v = 0;
  assert_true(weir_number_parse_int(WEIR_SV_LIT("9223372036854775807"), &v));
  assert_true(v == INT64_MAX);
  assert_true(weir_number_parse_int(WEIR_SV_LIT("-9223372036854775808"), &v));
  assert_true(v == INT64_MIN);
  assert_true(weir_number_parse_int(WEIR_SV_LIT("+12"), &v));
  assert_int_equal(v, 12);
  assert_false(weir_number_parse_int(WEIR_SV_LIT("9223372036854775808"), &v));
  assert_false(weir_number_parse_int(WEIR_SV_LIT("-9223372036854775809"), &v));
  assert_false(weir_number_parse_int(WEIR_SV_LIT(""), &v));
  assert_false(weir_number_parse_int(WEIR_SV_LIT("-"), &v));
  assert_false(weir_number_parse_int(WEIR_SV_LIT("1.0"), &v));
}

/* --- reading --- */

static void reads_tokens(void **state) {
  (void)state;
  static const weir_json_token kWant[] = {
      WEIR_JSON_OBJECT_BEGIN, WEIR_JSON_KEY,          WEIR_JSON_ARRAY_BEGIN,
      WEIR_JSON_NUMBER,       WEIR_JSON_TRUE,         WEIR_JSON_FALSE,
      WEIR_JSON_NULL,         WEIR_JSON_OBJECT_BEGIN, WEIR_JSON_OBJECT_END,
      WEIR_JSON_ARRAY_END,    WEIR_JSON_KEY,          WEIR_JSON_STRING,
      WEIR_JSON_OBJECT_END,   WEIR_JSON_END};
  weir_json_reader r;
  weir_error err = WEIR_ERROR_INIT;
  weir_json_reader_init(
      &r,
      WEIR_SV_LIT(" {\"a\": [-1.5e+2,true ,false, null,{}],\n \"b\":\"\"} "),
      NULL, NULL);
  for (size_t i = 0; i < sizeof kWant / sizeof kWant[0]; i++) {
    weir_json_token token;
    assert_ok(weir_json_next(&r, &token, &err), &err);
    assert_int_equal(token, kWant[i]);
    double d = 0;
    if (token == WEIR_JSON_NUMBER) assert_true(weir_json_get_double(&r, &d));
    if (token == WEIR_JSON_NUMBER) assert_true(d == -150);
    if (i == 10) assert_int_equal(weir_json_mark(&r).line, 2);
    if (i == 10) assert_int_equal(weir_json_mark(&r).col, 2);
  }
}

static void decodes_strings(void **state) {
  (void)state;
  weir_arena arena;
  weir_arena_init(&arena, weir_allocator_system());
  weir_json_reader r;
  weir_error err = WEIR_ERROR_INIT;
  weir_sv text;
  weir_json_reader_init(
      &r, WEIR_SV_LIT("\"\\u00e9\\ud83d\\ude00\\n\\/\\u0000 x\""), NULL, NULL);
  assert_ok(weir_json_expect(&r, WEIR_JSON_STRING, &err), &err);
  assert_ok(weir_json_text(&r, &arena, &text, &err), &err);
  assert_true(
      weir_sv_equal(text, WEIR_SV_LIT("\xc3\xa9\xf0\x9f\x98\x80\n/\0 x")));
  weir_json_reader_init(&r, WEIR_SV_LIT("\"sh\\u0061pe\""), NULL, NULL);
  assert_ok(weir_json_expect(&r, WEIR_JSON_STRING, &err), &err);
  assert_true(weir_json_text_is(&r, "shape"));
  assert_false(weir_json_text_is(&r, "shap"));
  assert_false(weir_json_text_is(&r, "shapes"));
  weir_json_reader_init(&r, WEIR_SV_LIT("\"plain\""), NULL, NULL);
  assert_ok(weir_json_expect(&r, WEIR_JSON_STRING, &err), &err);
  assert_true(weir_json_text_is(&r, "plain"));
  weir_arena_release(&arena);
}

static void skips_values(void **state) {
  (void)state;
  weir_json_reader r;
  weir_error err = WEIR_ERROR_INIT;
  weir_json_token token;
  weir_json_reader_init(
      &r, WEIR_SV_LIT("{\"a\": {\"x\": [1, {\"y\": []}]}, \"b\": 7}"), NULL,
      NULL);
  assert_ok(weir_json_expect(&r, WEIR_JSON_OBJECT_BEGIN, &err), &err);
  assert_ok(weir_json_next(&r, &token, &err), &err);
  assert_ok(weir_json_skip(&r, &err), &err);
  assert_ok(weir_json_next(&r, &token, &err), &err);
  assert_true(weir_json_text_is(&r, "b"));
  assert_ok(weir_json_skip(&r, &err), &err);
  assert_ok(weir_json_expect(&r, WEIR_JSON_OBJECT_END, &err), &err);
  assert_ok(weir_json_expect(&r, WEIR_JSON_END, &err), &err);
}

static weir_status read_all(weir_sv text, weir_error *err) {
  weir_json_reader r;
  weir_json_token token = WEIR_JSON_NULL;
  weir_json_reader_init(&r, text, "f.json", NULL);
  weir_status s = WEIR_OK;
  while (s == WEIR_OK && token != WEIR_JSON_END)
    s = weir_json_next(&r, &token, err);
  if (s == WEIR_OK) return s;
  weir_error again = WEIR_ERROR_INIT;
  assert_int_equal(weir_json_next(&r, &token, &again), s);
  assert_string_equal(again.message, err->message);
  return s;
}

typedef struct bad_json {
  const char *text, *says;
  uint32_t line, col;
} bad_json;

static void refuses_bad_json(void **state) {
  (void)state;
  static const bad_json kBad[] = {
      {"", "byte 0: the text ends", 1, 1},
      {"{", "byte 1: the text ends", 1, 2},
      {"[1,]", "byte 3: expected a value", 1, 4},
      {"[,1]", "byte 1: expected a value", 1, 2},
      {"{\"a\":1,}", "byte 7: expected a name", 1, 8},
      {"{a:1}", "byte 1: expected a name", 1, 2},
      {"{\"a\" 1}", "byte 5: expected ':'", 1, 6},
      {"{\"a\":}", "byte 5: expected a value", 1, 6},
      {"[1 2]", "byte 3: expected ',' or ']'", 1, 4},
      {"[1}", "byte 2: expected ',' or ']'", 1, 3},
      {"1 2", "byte 2: more text", 1, 3},
      {"01", "byte 0: a number does not start", 1, 1},
      {"-", "byte 1: the text ends", 1, 2},
      {"1.", "byte 2: the text ends", 1, 3},
      {"1.x", "byte 2: expected a digit", 1, 3},
      {"1ex", "byte 2: expected a digit", 1, 3},
      {"+1", "byte 0: expected a value", 1, 1},
      {"NaN", "byte 0: expected a value", 1, 1},
      {"nul", "byte 0: expected a value", 1, 1},
      {"\"\t\"", "byte 1: control", 1, 2},
      {"\"\\x41\"", "byte 1: not a JSON escape", 1, 2},
      {"\"\\ud800\"", "byte 1: not a JSON escape", 1, 2},
      {"\"\\ud800\\u0041\"", "byte 1: not a JSON escape", 1, 2},
      {"\"\\udc00\"", "byte 1: not a JSON escape", 1, 2},
      {"\"\\u12\"", "byte 1: not a JSON escape", 1, 2},
      {"\"\xc0\x80\"", "byte 1: the text is not UTF-8", 1, 2},
      {"\"\xed\xa0\x80\"", "byte 1: the text is not UTF-8", 1, 2},
      {"\"abc", "byte 4: the text ends", 1, 5},
      {"[\n  1,\n  \"\xc3\xa9\" !]", "byte 14: expected ','", 3, 7},
      {"\xef\xbb\xbf{}", "byte 0: expected a value", 1, 1},
  };
  for (size_t i = 0; i < sizeof kBad / sizeof kBad[0]; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_status s = read_all(weir_sv_from(kBad[i].text), &err);
    if (s == WEIR_OK || strstr(err.message, kBad[i].says) == NULL ||
        strcmp(err.id, "W4013") != 0 || err.line != kBad[i].line ||
        err.col != kBad[i].col)
      fail_msg("%s: %s %u:%u %s", kBad[i].text, err.id, err.line, err.col,
               err.message);
  }
}

static void bounds_depth(void **state) {
  (void)state;
  char text[200];
  weir_error err = WEIR_ERROR_INIT;
  memset(text, '[', 100);
  memset(text + 100, ']', 100);
  assert_ok(read_all((weir_sv){text + 36, 128}, &err), &err);
  assert_error(read_all((weir_sv){text + 35, 130}, &err), &err, "W4013");
  assert_non_null(strstr(err.message, "byte 64: nested too deeply"));
  weir_json_reader r;
  weir_json_token token;
  weir_json_options options = {.depth = 1, .base_offset = 8};
  weir_json_reader_init(&r, WEIR_SV_LIT("[[]]"), NULL, &options);
  assert_ok(weir_json_next(&r, &token, &err), &err);
  assert_error(weir_json_next(&r, &token, &err), &err, "W4013");
  assert_non_null(strstr(err.message, "byte 9: nested"));
  assert_int_equal(err.line, 0);
}

static void expects_kinds(void **state) {
  (void)state;
  weir_json_reader r;
  weir_json_token token;
  weir_error err = WEIR_ERROR_INIT;
  weir_json_reader_init(&r, WEIR_SV_LIT("[\"x\"]"), "f", NULL);
  assert_error(weir_json_expect(&r, WEIR_JSON_OBJECT_BEGIN, &err), &err,
               "W4013");
  assert_string_equal(err.message,
                      "at byte 0: found an array, expected an object");
  assert_error(weir_json_next(&r, &token, &err), &err, "W4013");
  int64_t v = 0;
  double d = 0;
  static const char *const kNotInts[] = {"1.0", "1e2", "9223372036854775808"};
  for (size_t i = 0; i < 3; i++) {
    weir_json_reader_init(&r, weir_sv_from(kNotInts[i]), NULL, NULL);
    assert_ok(weir_json_expect(&r, WEIR_JSON_NUMBER, &err), &err);
    assert_false(weir_json_get_int(&r, &v));
    assert_true(weir_json_get_double(&r, &d));
  }
  weir_json_reader_init(&r, WEIR_SV_LIT("1e400"), NULL, NULL);
  assert_ok(weir_json_expect(&r, WEIR_JSON_NUMBER, &err), &err);
  assert_false(weir_json_get_double(&r, &d));
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  c.fail_at = 1;
  weir_arena arena;
  weir_arena_init(&arena, &c.base);
  weir_json_reader r;
  weir_error err = WEIR_ERROR_INIT;
  weir_sv text;
  weir_json_reader_init(&r, WEIR_SV_LIT("\"a\\nb\""), NULL, NULL);
  assert_ok(weir_json_expect(&r, WEIR_JSON_STRING, &err), &err);
  assert_error(weir_json_text(&r, &arena, &text, &err), &err, "W6001");
  assert_ok(weir_json_text(&r, &arena, &text, &err), &err);
  assert_true(weir_sv_is(text, "a\nb"));
  weir_arena_release(&arena);
  assert_int_equal(atomic_load(&c.live_bytes), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writes_indented),
      cmocka_unit_test(writes_lines),
      cmocka_unit_test(writes_members),
      cmocka_unit_test(writes_trace_events),
      cmocka_unit_test(refuses_misuse),
      cmocka_unit_test(tells_write_failure),
      cmocka_unit_test(numbers_round_trip),
      cmocka_unit_test(parses_numbers),
      cmocka_unit_test(parses_integers),
      cmocka_unit_test(reads_tokens),
      cmocka_unit_test(decodes_strings),
      cmocka_unit_test(skips_values),
      cmocka_unit_test(refuses_bad_json),
      cmocka_unit_test(bounds_depth),
      cmocka_unit_test(expects_kinds),
      cmocka_unit_test(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
