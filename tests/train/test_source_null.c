/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/env_system.h"
#include "tests/train/data_check.h"

/* The source to copy keeps the contract of sources, and is in no list. */

extern const weir_source_def weir_source_null;

static void gives_examples_in_order(void **state) {
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = NULL;
  weir_source *source = NULL;
  weir_source_cursor *cursor = NULL;
  const weir_env *env = weir_env_system();
  (void)state;
  assert_ok(data_load_any(env,
                          "inputs: {x: 'f32[4]'}\noutputs: [x]\n"
                          "data: {t: {source: 'null', examples: 7}}\n",
                          NULL, &g, &err),
            &err);
  weir_data_spec spec = {.section = weir_yaml_get(g->data, "t"),
                         .source = &weir_source_null};
  weir_source_context context = {.env = env, .graph = g, .spec = &spec};
  assert_ok(weir_source_null.open(&context, &source, &err), &err);
  assert_int_equal(source->examples, 7);
  assert_int_equal(source->column_count, 1);
  assert_int_equal(source->columns[0].bytes, sizeof(float));
  assert_ok(source->vtable->cursor_create(source, &cursor, &err), &err);
  float x[3] = {0};
  void *dst[] = {x}, *nothing[] = {NULL};
  assert_ok(source->vtable->read(source, cursor, 4, 3, dst, &err), &err);
  assert_ok(source->vtable->read(source, cursor, 0, 7, nothing, &err), &err);
  for (int i = 0; i < 3; i++) assert_true(x[i] == (float)(4 + i));
  source->vtable->cursor_release(source, cursor);
  weir_source_release(source);
  weir_graph_unref(g);
}

static void the_list_has_each_source_once(void **state) {
  size_t count = 0;
  (void)state;
  for (const weir_source_def *d; (d = weir_source_at(count)) != NULL; count++) {
    assert_ptr_equal(weir_source_form(count), &d->form);
    assert_non_null(d->open);
    assert_true(strlen(d->summary) > 0);
    for (size_t i = 0; i < count; i++)
      assert_string_not_equal(weir_source_at(i)->form.name, d->form.name);
  }
  assert_int_equal(count, 7);
  assert_null(weir_source_form(count));
}

/* A key of another source has no effect here, so it is refused. */
static void keys_belong_to_their_source(void **state) {
  (void)state;
#define GRAPH "inputs: {x: 'f32[?]'}\noutputs: [x]\n"
  data_refuses(GRAPH "data: {t: {source: npy, files: {x: a.npy}, header: no}}",
               "W1009", "unknown key 'header' in a data set of source npy");
  data_refuses(GRAPH "data: {t: {source: memory, files: a, values: {x: [1]}}}",
               "W1009", "unknown key 'files' in a data set of source memory");
  data_refuses(GRAPH "data: {t: {source: 'null', examples: 7}}", "W1010",
               "source 'null' is none of memory, npy, npz, idx, csv, "
               "tfrecord, text");
  data_refuses(GRAPH "data: {t: {source: npz, files: {x: a.npz}}}", "W4024",
               "files of npz are a path");
  data_refuses(GRAPH "data: {t: {source: csv, files: a.csv, delimiter: '\"'}}",
               "W4024", "quote and delimiter are the same character");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_examples_in_order),
      cmocka_unit_test(the_list_has_each_source_once),
      DATA_TEST(keys_belong_to_their_source),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
