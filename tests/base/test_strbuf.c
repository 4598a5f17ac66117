/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/strbuf.h"

#include "tests/check.h"

static void appends(void **state) {
  (void)state;
  weir_strbuf s;
  weir_strbuf_init(&s, weir_allocator_system());
  assert_int_equal(weir_strbuf_view(&s).size, 0);
  assert_non_null(weir_strbuf_view(&s).data);
  assert_true(weir_strbuf_text(&s, "ab"));
  assert_true(weir_strbuf_sv(&s, WEIR_SV_LIT("cd")));
  assert_true(weir_strbuf_append(&s, NULL, 0));
  assert_true(weir_strbuf_repeat(&s, '-', 3));
  assert_true(weir_strbuf_printf(&s, "%d %s", 7, "x"));
  assert_string_equal(s.data, "abcd---7 x");
  assert_int_equal(s.size, 10);
  weir_strbuf_clear(&s);
  assert_true(weir_strbuf_printf(&s, "%*d|", 1000, 5)); /* past the stack */
  assert_int_equal(s.size, 1001);
  assert_string_equal(s.data + 999, "5|");
  weir_writer w = weir_strbuf_writer(&s);
  assert_true(w.write(w.self, "end", 3));
  assert_string_equal(s.data + 1001, "end");
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_strbuf_status(&s, &err), &err);
  weir_strbuf_release(&s);
}

static void grows(void **state) {
  (void)state;
  weir_strbuf s;
  weir_strbuf_init(&s, weir_allocator_system());
  for (int i = 0; i < 10000; i++)
    assert_true(weir_strbuf_printf(&s, "%04d", i));
  assert_int_equal(s.size, 40000);
  assert_memory_equal(s.data + 4 * 1234, "1234", 4);
  weir_strbuf_release(&s);
}

/* Three appends that allocate; the k-th allocation fails. */
static bool write_some(weir_strbuf *s) {
  weir_strbuf_text(s, "0123456789");
  weir_strbuf_repeat(s, 'x', 100);
  weir_strbuf_printf(s, "%300d", 1);
  weir_error err = WEIR_ERROR_INIT;
  weir_status status = weir_strbuf_status(s, &err);
  if (status != WEIR_OK) assert_string_equal(err.id, "W6001");
  return status == WEIR_OK;
}

static void keeps_the_first_failure(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++) {
    uint64_t k = 1;
    for (bool ok = false; !ok; k++) {
      weir_counted_allocator c;
      weir_counted_allocator_init(&c, NULL);
      c.fail_at = k;
      c.fail_forever = forever != 0;
      weir_strbuf s;
      weir_strbuf_init(&s, &c.base);
      ok = write_some(&s);
      assert_int_equal(ok, atomic_load(&c.calls) < k);
      if (!ok) assert_false(weir_strbuf_text(&s, "more"));
      if (!ok && s.data != NULL) assert_int_equal(s.data[s.size], '\0');
      c.fail_at = 0;
      weir_strbuf_clear(&s);
      assert_true(write_some(&s));
      assert_int_equal(s.size, 410);
      weir_strbuf_release(&s);
      assert_int_equal(atomic_load(&c.live_bytes), 0);
    }
    assert_int_equal(k, 5); /* three allocations were failed, one run was not */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(appends),
      cmocka_unit_test(grows),
      cmocka_unit_test(keeps_the_first_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
