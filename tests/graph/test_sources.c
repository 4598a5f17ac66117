/* SPDX-License-Identifier: Apache-2.0
 * A graph that keeps all that was read for it is loaded again without its
 * files: imports, labels, weights, params, variables of the environment. */
#include "runtime/graph/load/sources.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernel.h"
#include "runtime/base/env_system.h"
#include "runtime/graph/hash.h"
#include "runtime/graph/load/load.h"
#include "runtime/io/array/safetensors_write.h"
#include "runtime/tensor/tensor.h"
#include "tests/check.h"

static const char kMain[] =
    "weir: 1\n"
    "import: {own: blocks.weir.yaml}\n"
    "params: {n: 2}\n"
    "weights: w.safetensors\n"
    "labels: names.txt\n"
    "inputs: {x: 'f32[1, n]'}\n"
    "nodes:\n"
    "  w: var([n, 3], init=zeros())\n"
    "  y: own.twice(matmul(x, w))\n"
    "outputs: [y]\n"
    "data: {train: {format: null, root: '${env:FOLDER:-.}'}}\n";

static const char kBlocks[] =
    "weir: 1\n"
    "blocks:\n"
    "  twice: {in: [v], out: 'add(v, v)'}\n";

static char folder[] = "/tmp/weir-sources-XXXXXX";

static void put(const char *name, const void *data, size_t size) {
  char path[128];
  weir_error err = WEIR_ERROR_INIT;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const weir_fs *fs = weir_env_system()->fs;
  assert_ok(fs->write(fs->self, path, (weir_bytes){data, size}, &err), &err);
}

static const char *look_up(void *self, const char *name) {
  (void)self;
  return strcmp(name, "FOLDER") == 0 ? "elsewhere" : NULL;
}

typedef struct world {
  weir_counted_allocator memory;
  weir_env env;
  weir_load_options options;
  weir_param_value param, override;
  weir_error err;
  char path[128];
} world;

static void open_world(world *w) {
  memset(w, 0, sizeof *w);
  w->err.struct_size = sizeof w->err;
  weir_counted_allocator_init(&w->memory, NULL);
  w->env = *weir_env_system();
  w->env.alloc = &w->memory.base;
  w->param = (weir_param_value){WEIR_SV_LIT("n"), WEIR_SV_LIT("4")};
  w->override = (weir_param_value){
      WEIR_SV_LIT("nodes.y"), WEIR_SV_LIT("own.twice(matmul(x, relu(w)))")};
  w->options = (weir_load_options){.registry = weir_builtin_registry(),
                                   .params = &w->param,
                                   .param_count = 1,
                                   .overrides = &w->override,
                                   .override_count = 1,
                                   .seed = 7,
                                   .getenv = look_up,
                                   .keep_sources = true};
  snprintf(w->path, sizeof w->path, "%s/main.weir.yaml", folder);
}

static void close_world(world *w) {
  assert_int_equal(atomic_load(&w->memory.live_blocks), 0);
}

/* The folder with all files. */
static void fill_folder(void) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  int64_t dims[2] = {4, 3};
  const weir_allocator *a = weir_env_system()->alloc;
  weir_shape shape = weir_shape_of(2, dims);
  assert_ok(weir_tensor_create_shaped(a, WEIR_F32, &shape, &t, &err), &err);
  for (int i = 0; i < 12; i++) ((float *)t->data)[i] = (float)i;
  weir_sv name = WEIR_SV_LIT("w");
  weir_strbuf out;
  weir_strbuf_init(&out, a);
  assert_ok(weir_safetensors_write(&name, &t, 1, &out, &err), &err);
  put("w.safetensors", out.data, out.size);
  put("main.weir.yaml", kMain, strlen(kMain));
  put("blocks.weir.yaml", kBlocks, strlen(kBlocks));
  put("names.txt", "cat\ndog\ncow\n", 12);
  weir_strbuf_release(&out);
  weir_tensor_unref(t);
}

static void empty_folder(void) {
  static const char *const kFiles[] = {"w.safetensors", "main.weir.yaml",
                                       "blocks.weir.yaml", "names.txt"};
  for (size_t i = 0; i < sizeof kFiles / sizeof *kFiles; i++) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, kFiles[i]);
    assert_int_equal(unlink(path), 0);
  }
}

static void the_same_graph_without_its_files(void **state) {
  (void)state;
  world w;
  weir_graph *graph = NULL, *again = NULL;
  open_world(&w);
  fill_folder();
  assert_ok(weir_graph_load(&w.env, w.path, &w.options, &graph, &w.err),
            &w.err);
  empty_folder();
  assert_non_null(graph->sources);
  assert_int_equal(graph->sources->file_count, 4);
  assert_int_equal(graph->sources->env_count, 1);
  assert_false(graph->sources->is_text);
  weir_sources sources = *graph->sources;
  weir_load_options bare = {.registry = weir_builtin_registry()};
  assert_ok(weir_graph_load_sources(&w.env, &sources, &bare, &again, &w.err),
            &w.err);
  assert_int_equal(weir_graph_hash(graph), weir_graph_hash(again));
  assert_int_equal(again->seed, graph->seed);
  assert_int_equal(again->label_count, 3);
  assert_int_equal(again->weight_count, 1);
  assert_memory_equal(again->weights[0].tensor->data,
                      graph->weights[0].tensor->data, 48);
  weir_graph_unref(again);
  /* A file that is not there. */
  sources.file_count = 1;
  again = NULL;
  assert_int_not_equal(
      weir_graph_load_sources(&w.env, &sources, &bare, &again, &w.err),
      WEIR_OK);
  assert_non_null(strstr(w.err.message, "came with the graph"));
  assert_null(again);
  weir_graph_unref(graph);
  close_world(&w);
}

static void text_is_a_source(void **state) {
  (void)state;
  static const char kText[] =
      "weir: 1\nparams: {n: 2}\ninputs: {x: 'f32[n]'}\n"
      "nodes: {y: neg(x)}\noutputs: [y]\n";
  world w;
  weir_graph *graph = NULL, *again = NULL;
  open_world(&w);
  w.options.override_count = 0;
  assert_ok(weir_graph_load_text(&w.env, weir_sv_from(kText), "some text",
                                 &w.options, &graph, &w.err),
            &w.err);
  assert_true(graph->sources->is_text);
  weir_sources sources = *graph->sources;
  assert_ok(
      weir_graph_load_sources(&w.env, &sources, &w.options, &again, &w.err),
      &w.err);
  assert_int_equal(weir_graph_hash(graph), weir_graph_hash(again));
  weir_graph_unref(again);
  weir_graph_unref(graph);
  close_world(&w);
}

static void memory_runs_out(void **state) {
  (void)state;
  fill_folder();
  for (int for_ever = 0; for_ever <= 1; for_ever++) {
    weir_status s = WEIR_RESOURCE_EXHAUSTED;
    for (uint64_t k = 1; s != WEIR_OK; k++) {
      world w;
      weir_graph *graph = NULL;
      open_world(&w);
      w.memory.fail_at = k;
      w.memory.fail_forever = for_ever == 1;
      s = weir_graph_load(&w.env, w.path, &w.options, &graph, &w.err);
      if (s == WEIR_OK) {
        weir_sources sources = *graph->sources;
        weir_graph *again = NULL;
        s = weir_graph_load_sources(&w.env, &sources, &w.options, &again,
                                    &w.err);
        weir_graph_unref(again);
      }
      weir_graph_unref(graph);
      close_world(&w);
      assert_true(k < 20000);
    }
  }
  empty_folder();
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) == NULL;
}

static int drop_folder(void **state) {
  (void)state;
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_graph_without_its_files),
      cmocka_unit_test(text_is_a_source),
      cmocka_unit_test(memory_runs_out),
  };
  return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
