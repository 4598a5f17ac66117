/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/sv.h"

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/bytes/proto.h"
#include "runtime/base/diag/nearest.h"
#include "runtime/base/json/json.h"
#include "runtime/base/number.h"
#include "runtime/base/quantity.h"
#include "runtime/base/strbuf.h"
#include "runtime/base/utf8.h"
#include "runtime/base/yaml/yaml.h"
#include "runtime/base/yaml/yaml_scalar.h"
#include "tests/check.h"

/* The empty text may be {NULL, 0}, and NULL + 0 is undefined: clang's
 * -fsanitize=pointer-overflow sees each of these. */

static const weir_sv kNone = {NULL, 0};

static void compares(void **state) {
  (void)state;
  assert_true(weir_sv_equal(kNone, kNone));
  assert_true(weir_sv_equal(kNone, WEIR_SV_LIT("")));
  assert_true(weir_sv_is(kNone, ""));
  assert_false(weir_sv_is(kNone, "a"));
  assert_true(weir_sv_starts_with(kNone, ""));
}

static void is_no_number(void **state) {
  (void)state;
  double d;
  float f;
  int64_t i;
  weir_sv unit;
  assert_false(weir_number_parse(kNone, &d));
  assert_false(weir_number_parse_float(kNone, &f));
  assert_false(weir_number_parse_int(kNone, &i));
  assert_false(weir_text_int(kNone, &i));
  assert_false(weir_text_float(kNone, &d));
  assert_false(weir_quantity_bytes(kNone, &i));
  assert_false(weir_quantity_time(kNone, &i));
  assert_false(weir_quantity_seconds(kNone, &i));
  assert_false(weir_quantity_rate(kNone, &i));
  assert_false(weir_quantity_split(kNone, &d, &unit));
}

static void is_read(void **state) {
  (void)state;
  uint32_t point;
  weir_json_reader r;
  weir_json_token token;
  weir_error err = WEIR_ERROR_INIT;
  weir_arena arena;
  const weir_yaml *root;
  assert_int_equal(weir_utf8_decode(kNone, &point), 0);
  assert_true(weir_utf8_valid(kNone, NULL));
  assert_int_equal(weir_utf8_count(kNone), 0);
  assert_int_equal(weir_utf8_line_break(kNone), 0);
  assert_int_equal(weir_crc32c(0, NULL, 0), 0);
  weir_json_reader_init(&r, kNone, "f.json", NULL);
  assert_error(weir_json_next(&r, &token, &err), &err, "W4013");
  weir_arena_init(&arena, weir_allocator_system());
  assert_error(
      weir_yaml_parse(kNone, "f.yaml", NULL, &arena, NULL, &root, &err), &err,
      "W1008");
  weir_arena_release(&arena);
}

static void is_written(void **state) {
  (void)state;
  weir_strbuf s;
  weir_json_writer w;
  weir_strbuf_init(&s, weir_allocator_system());
  assert_true(weir_strbuf_sv(&s, kNone));
  weir_json_writer_init(&w, weir_strbuf_writer(&s), 0);
  weir_json_object_begin(&w, true);
  weir_json_key_sv(&w, kNone);
  weir_json_string(&w, kNone);
  weir_json_object_end(&w);
  assert_true(weir_json_finish(&w));
  assert_string_equal(s.data, "{\"\":\"\"}\n");
  weir_strbuf_clear(&s);
  weir_proto_put_bytes(&s, 1, kNone);
  assert_int_equal(s.size, 2);
  weir_strbuf_release(&s);
}

static weir_sv name_at(const void *self, size_t i) {
  (void)self;
  return i == 0 ? kNone : WEIR_SV_LIT("abc");
}

static void is_near_nothing(void **state) {
  (void)state;
  assert_int_equal(weir_nearest_name(kNone, 2, name_at, NULL).size, 0);
  assert_true(weir_sv_is(
      weir_nearest_name(WEIR_SV_LIT("abd"), 2, name_at, NULL), "abc"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(compares),        cmocka_unit_test(is_no_number),
      cmocka_unit_test(is_read),         cmocka_unit_test(is_written),
      cmocka_unit_test(is_near_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
