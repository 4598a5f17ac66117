/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/format/format.h"
#include "tests/check.h"

/* The list of file formats, and the one to copy, which is not in it. */

extern const weir_format weir_format_null;

static void the_null_format_reads_what_it_writes(void **state) {
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  weir_shape scalar = weir_shape_of(0, NULL);
  weir_tensor *x = NULL, *y = NULL;
  const weir_allocator *alloc = weir_allocator_system();
  (void)state;
  assert_ok(weir_tensor_create_shaped(alloc, WEIR_F32, &scalar, &x, &err),
            &err);
  weir_tensor_set_f64(x, 0, 2.5);
  weir_strbuf_init(&out, alloc);
  assert_ok(weir_format_null.write(NULL, &x, 1, &out, &err), &err);
  weir_format_input in = {.alloc = alloc,
                          .bytes = {(const uint8_t *)out.data, out.size},
                          .name = "x.null"};
  assert_true(weir_format_null.sniff(in.bytes));
  assert_ok(weir_format_null.read(&in, &y, &err), &err);
  assert_true(weir_tensor_get_f64(y, 0) == 2.5);
  weir_tensor_unref(y);
  in.bytes.size--;
  assert_int_not_equal(weir_format_null.read(&in, &y, &err), WEIR_OK);
  assert_null(y);
  weir_tensor_unref(x);
  weir_strbuf_release(&out);
}

/* Each row is whole: a format has one tensor or several, never both. */
static void each_format_is_whole(void **state) {
  size_t count = 0;
  const weir_format *f;
  (void)state;
  for (; (f = weir_format_at(count)) != NULL; count++) {
    assert_true(strlen(f->name) > 0);
    assert_true(strlen(f->summary) > 0);
    assert_non_null(f->sniff);
    assert_non_null(f->endings[0]);
    assert_true((f->read != NULL) != (f->open != NULL));
    assert_true(f->open == NULL || (f->release != NULL && f->count != NULL &&
                                    f->name_at != NULL && f->get != NULL));
    assert_int_equal(f->number > 0, f->write != NULL);
    if (f->number > 0) assert_ptr_equal(weir_format_of_number(f->number), f);
    assert_false(f->sniff((weir_bytes){NULL, 0}));
    for (int k = 0; k < WEIR_FORMAT_ENDINGS && f->endings[k] != NULL; k++)
      assert_ptr_equal(weir_format_of_name(f->endings[k]), f);
  }
  assert_int_equal(count, 5);
  assert_null(weir_format_of_name("x.null"));
  assert_null(weir_format_of_number(weir_format_null.number));
  assert_null(weir_format_of_number(0));
  assert_null(weir_format_of_number(-1));
}

static void names_are_listed(void **state) {
  char text[64];
  (void)state;
  assert_string_equal(weir_format_names(NULL, text, sizeof text),
                      "npz, safetensors, npy, png, idx");
  assert_string_equal(
      weir_format_names(weir_format_is_written, text, sizeof text),
      "npz, safetensors, npy");
  assert_string_equal(
      weir_format_names(weir_format_holds_several, text, sizeof text),
      "npz, safetensors");
  assert_string_equal(weir_format_names(NULL, text, 6), "npz");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_null_format_reads_what_it_writes),
      cmocka_unit_test(each_format_is_whole),
      cmocka_unit_test(names_are_listed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
