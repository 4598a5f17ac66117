/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/pass/pass_fuse.h"
#include "runtime/graph/pass/pass_simplify.h"
#include "runtime/graph/train/train.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"
#include "tests/fuzz/fuzz.h"

/* Loads the input as a graph. A graph that loads must keep the promises of
 * weir_graph and survive the passes; a refusal must have a reason and a place.
 */

enum { kNodes = 3000 };

static weir_status read_nothing(void *self, const char *root, const char *path,
                                size_t limit, bool map, weir_file *out,
                                weir_error *err) {
  (void)self, (void)root, (void)limit, (void)map, (void)out;
  return weir_fail(err, WEIR_W4001, NULL, "cannot open '%s'", path);
}

static void close_nothing(void *self, weir_file *file) {
  (void)self, (void)file;
}

static void count(void *self, const weir_diag *diag) {
  uint32_t *errors = self;
  FUZZ_CHECK(diag->error.id[0] == 'W' && diag->error.message[0] != '\0');
  FUZZ_CHECK(strcmp(diag->error.id, "W9001") != 0);
  if (diag->severity == WEIR_SEVERITY_ERROR) (*errors)++;
}

static void check_node(const weir_graph *g, weir_node_id id) {
  const weir_node *n = &g->nodes[id];
  FUZZ_CHECK(weir_graph_find_node(g, n->name) == id);
  for (uint32_t i = 0; i < n->input_count; i++)
    FUZZ_CHECK(
        n->inputs[i] == WEIR_NO_VALUE ||
        (n->inputs[i] < g->value_count && g->values[n->inputs[i]].node < id));
  for (uint32_t i = 0; i < n->after_count; i++) FUZZ_CHECK(n->after[i] < id);
  for (uint32_t i = 0; i < n->output_count; i++) {
    const weir_value *v = &g->values[n->first_output + i];
    weir_error err = WEIR_ERROR_INIT;
    FUZZ_CHECK(v->node == id && v->port == i && v->dtype != WEIR_DTYPE_NONE);
    FUZZ_CHECK(weir_shape_check(v->shape, v->dtype, &err) == WEIR_OK);
    if (v->known == NULL) continue;
    FUZZ_CHECK(v->known->dtype == v->dtype);
    FUZZ_CHECK(weir_shape_known(v->shape));
    FUZZ_CHECK(weir_shape_equal(&v->known->shape, v->shape));
  }
}

static void check_graph(const weir_graph *g) {
  FUZZ_CHECK(g->node_count <= kNodes);
  for (weir_node_id i = 0; i < g->node_count; i++) check_node(g, i);
  for (uint32_t i = 0; i < g->output_count; i++)
    FUZZ_CHECK(g->outputs[i].value < g->value_count);
  for (uint32_t i = 0; i < g->input_count; i++)
    FUZZ_CHECK(g->inputs[i].value < g->value_count);
}

static void check_passes(const weir_graph *g) {
  weir_value_id targets[64];
  uint32_t n = g->output_count < 64 ? g->output_count : 64;
  weir_graph *simple = NULL, *fused = NULL;
  weir_error err = WEIR_ERROR_INIT;
  for (uint32_t i = 0; i < n; i++) targets[i] = g->outputs[i].value;
  weir_simplify_options options = {.values = targets, .value_count = n};
  FUZZ_CHECK(weir_graph_simplify(g, &options, NULL, NULL, &simple, &err) ==
             WEIR_OK);
  check_graph(simple);
  FUZZ_CHECK(weir_graph_fuse(simple, NULL, 0, &fused, &err) == WEIR_OK);
  check_graph(fused);
  weir_graph_unref(simple);
  weir_graph_unref(fused);
}

/* A graph with `train` can be rewritten, or is refused with a reason. */
static void check_train(const weir_graph *g) {
  weir_error err = WEIR_ERROR_INIT;
  weir_train_spec *spec = NULL;
  weir_train_graph *train = NULL;
  if (g->train == NULL) return;
  FUZZ_CHECK(weir_train_spec_read(g, NULL, &spec, &err) == WEIR_OK);
  weir_status s = weir_graph_train(g, spec, &train, &err);
  FUZZ_CHECK((s == WEIR_OK) == (train != NULL));
  FUZZ_CHECK(s == WEIR_OK || (err.id[0] == 'W' && strcmp(err.id, "W9001")));
  for (uint32_t i = 0; train != NULL && i < train->graph->node_count; i++)
    check_node(train->graph, i);
  weir_train_graph_release(train);
  weir_train_spec_release(spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir_fs fs = {.read = read_nothing, .close = close_nothing};
  weir_env env = {.alloc = weir_allocator_system(), .fs = &fs};
  uint32_t errors = 0;
  weir_diag_sink sink = {&errors, count};
  weir_load_options options = {
      .registry = weir_builtin_registry(), .sink = &sink, .max_nodes = kNodes};
  weir_graph *g = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s =
      weir_graph_load_text(&env, (weir_sv){(const char *)data, size},
                           "fuzz.weir.yaml", &options, &g, &err);
  FUZZ_CHECK((s == WEIR_OK) == (g != NULL));
  if (s != WEIR_OK) {
    FUZZ_CHECK(errors > 0 && err.id[0] == 'W');
    return 0;
  }
  FUZZ_CHECK(errors == 0);
  check_graph(g);
  check_passes(g);
  check_train(g);
  weir_graph_unref(g);
  return 0;
}
