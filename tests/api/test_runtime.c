/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/weir.h"
#include "tests/check.h"

static const char graph_text[] =
    "weir: 1\n"
    "params: {k: 3}\n"
    "dims: {n: null}\n"
    "inputs:\n"
    "  x: f32[n, k]\n"
    "  s: f32[] = 2\n"
    "nodes:\n"
    "  y: mul(x, s)\n"
    "outputs: [y]\n";

static void test_version(void **state) {
  (void)state;
  assert_true(weir_version() < 1000000u * 1000u);
  assert_non_null(strchr(weir_version_text(), '.'));
}

static void test_refuses_bad_options(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = NULL;
  weir_runtime_opts opts = {.struct_size = sizeof opts, .threads = 257};
  assert_error(weir_runtime_create(&opts, &runtime, &err), &err, "W0002");
  assert_null(runtime);
  opts.threads = -1;
  assert_error(weir_runtime_create(&opts, &runtime, &err), &err, "W0002");
  opts = (weir_runtime_opts){.struct_size = sizeof opts, .device_wait_ns = -1};
  assert_error(weir_runtime_create(&opts, &runtime, &err), &err, "W0002");
  opts = (weir_runtime_opts){.struct_size = 4};
  assert_error(weir_runtime_create(&opts, &runtime, &err), &err, "W0004");
  weir_allocator_hook hook = {.struct_size = sizeof hook};
  opts = (weir_runtime_opts){.struct_size = sizeof opts, .allocator = &hook};
  assert_error(weir_runtime_create(&opts, &runtime, &err), &err, "W0004");
  assert_error(weir_runtime_create(NULL, NULL, &err), &err, "W0004");
}

/* A struct from a newer header: fields we do not know must be zero. */
static void test_newer_structs(void **state) {
  (void)state;
  struct {
    weir_runtime_opts base;
    uint64_t newer;
  } opts = {.base = {.struct_size = sizeof opts}};
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = NULL;
  assert_ok(weir_runtime_create(&opts.base, &runtime, &err), &err);
  weir_runtime_release(runtime);
  opts.newer = 1;
  assert_error(weir_runtime_create(&opts.base, &runtime, &err), &err, "W0004");
}

static void test_graph_io(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = NULL;
  weir_graph *graph = NULL;
  weir_io_desc io = {.struct_size = sizeof io};
  assert_ok(weir_runtime_create(NULL, &runtime, &err), &err);
  assert_ok(weir_graph_load_buffer(runtime, graph_text, strlen(graph_text), "g",
                                   NULL, &graph, &err),
            &err);
  weir_runtime_release(runtime); /* the graph lives on */
  assert_int_equal(weir_graph_io_count(graph, WEIR_INPUT), 2);
  assert_int_equal(weir_graph_io_count(graph, WEIR_OUTPUT), 1);
  assert_ok(weir_graph_io(graph, WEIR_INPUT, 0, &io, &err), &err);
  assert_memory_equal(io.name, "x", io.name_size);
  assert_int_equal(io.dtype, WEIR_F32);
  assert_int_equal(io.rank, 2);
  assert_int_equal(io.dims[0], -1);
  assert_int_equal(io.dims[1], 3);
  assert_false(io.has_default);
  assert_string_equal(io.type, "f32[n, 3]");
  assert_ok(weir_graph_io(graph, WEIR_INPUT, 1, &io, &err), &err);
  assert_true(io.has_default);
  assert_ok(weir_graph_io(graph, WEIR_OUTPUT, 0, &io, &err), &err);
  assert_string_equal(io.type, "f32[n, 3]");
  assert_error(weir_graph_io(graph, WEIR_OUTPUT, 1, &io, &err), &err, "W0004");
  weir_graph_release(graph);
}

typedef struct seen {
  int errors, warnings;
  char text[2048];
  size_t size;
} seen;

static bool append(void *self, const char *data, size_t size) {
  seen *s = self;
  if (s->size + size >= sizeof s->text) return false;
  memcpy(s->text + s->size, data, size);
  s->size += size;
  return true;
}

static size_t source(void *self, const char *file, const char **out_text) {
  (void)file;
  *out_text = self;
  return strlen(self);
}

static const char bad_text[] =
    "weir: 1\n"
    "nodes:\n"
    "  a: matmull(b)\n"
    "  c: relu(q)\n"
    "outputs: [a]\n";

static void on_diag(void *self, const weir_diag *diag) {
  seen *s = self;
  if (weir_diag_is_warning(diag))
    s->warnings++;
  else
    s->errors++;
  assert_int_equal(weir_diag_error(diag)->line != 0, 1);
  assert_true(weir_diag_write(diag, WEIR_DIAG_FORM_HUMAN, false, source,
                              (void *)bad_text, append, s));
}

static void test_diagnostics(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = NULL;
  weir_graph *graph = NULL;
  seen s = {0};
  weir_load_opts opts = {
      .struct_size = sizeof opts, .on_diag = on_diag, .on_diag_self = &s};
  assert_ok(weir_runtime_create(NULL, &runtime, &err), &err);
  assert_error(weir_graph_load_buffer(runtime, bad_text, strlen(bad_text),
                                      "bad.yaml", &opts, &graph, &err),
               &err, "W1102");
  assert_null(graph);
  assert_true(s.errors >= 2);
  assert_int_equal(s.warnings, 0);
  assert_non_null(strstr(s.text, "error[W1102]"));
  assert_non_null(strstr(s.text, "--> bad.yaml:3:6"));
  assert_non_null(strstr(s.text, "  a: matmull(b)"));
  assert_non_null(strstr(s.text, "error[W1103]"));
  weir_runtime_release(runtime);
}

static void test_labels(void **state) {
  (void)state;
  const char *text =
      "weir: 1\ninputs: {x: \"f32[1, 2]\"}\nnodes: {p: softmax(x)}\n"
      "outputs: [p]\nlabels: [cat, dog]\n";
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = NULL;
  weir_graph *graph = NULL;
  assert_ok(weir_runtime_create(NULL, &runtime, &err), &err);
  assert_ok(weir_graph_load_buffer(runtime, text, strlen(text), "g", NULL,
                                   &graph, &err),
            &err);
  assert_int_equal(weir_graph_label_count(graph), 2);
  assert_string_equal(weir_graph_label_at(graph, 1), "dog");
  assert_null(weir_graph_label_at(graph, 2));
  assert_int_equal(weir_graph_label_count(NULL), 0);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
}

static void test_params(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = NULL;
  weir_graph *graph = NULL;
  weir_param params[] = {{sizeof params[0], "k", "5"}};
  weir_load_opts opts = {
      .struct_size = sizeof opts, .params = params, .param_count = 1};
  weir_io_desc io = {.struct_size = sizeof io};
  assert_ok(weir_runtime_create(NULL, &runtime, &err), &err);
  assert_ok(weir_graph_load_buffer(runtime, graph_text, strlen(graph_text), "g",
                                   &opts, &graph, &err),
            &err);
  assert_ok(weir_graph_io(graph, WEIR_INPUT, 0, &io, &err), &err);
  assert_int_equal(io.dims[1], 5);
  weir_graph_release(graph);
  params[0].name = "q";
  assert_error(weir_graph_load_buffer(runtime, graph_text, strlen(graph_text),
                                      "g", &opts, &graph, &err),
               &err, "W1114");
  params[0].name = NULL;
  assert_error(weir_graph_load_buffer(runtime, graph_text, strlen(graph_text),
                                      "g", &opts, &graph, &err),
               &err, "W0004");
  weir_runtime_release(runtime);
}

static void test_null_arguments(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *graph = (weir_graph *)&err;
  assert_error(weir_graph_load_file(NULL, "x", NULL, &graph, &err), &err,
               "W0004");
  assert_null(graph);
  assert_error(weir_graph_load_file(NULL, "x", NULL, NULL, &err), &err,
               "W0004");
  weir_graph_release(NULL);
  weir_runtime_release(NULL);
  weir_session_release(NULL);
  weir_bound_release(NULL);
  weir_session_cancel(NULL);
  weir_tensor_release(NULL);
  assert_int_equal(weir_graph_io_count(NULL, WEIR_INPUT), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_version),
                                     cmocka_unit_test(test_refuses_bad_options),
                                     cmocka_unit_test(test_newer_structs),
                                     cmocka_unit_test(test_graph_io),
                                     cmocka_unit_test(test_diagnostics),
                                     cmocka_unit_test(test_labels),
                                     cmocka_unit_test(test_params),
                                     cmocka_unit_test(test_null_arguments)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
