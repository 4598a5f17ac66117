/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/kernel.h"
#include "runtime/base/env_system.h"
#include "runtime/base/strbuf.h"
#include "runtime/graph/grad/gradients.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/train/train.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"

/* How long the gradient graph of N nodes takes, and the whole rewrite:
 *   bench_gradients [NODES]
 * A stack of layers h = relu(h w + b) with a skip every fourth, four nodes a
 * layer with the variable; the median of five runs. Exit 1 when gradients of
 * 100,000 nodes take more than a second. */

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int fail(const weir_error *err) {
  fprintf(stderr, "%s: %s\n", err->id, err->message);
  return 2;
}

static bool write_graph(weir_strbuf *text, int layers) {
  weir_strbuf_text(text,
                   "weir: 1\ninputs: {x: 'f32[4, 4]'}\nnodes:\n  h0: relu(x)\n"
                   "  b: var([4])\n");
  for (int i = 0; i < layers; i++) {
    weir_strbuf_printf(text, "  w%d: var([4, 4])\n", i);
    if (i % 4 == 3)
      weir_strbuf_printf(text, "  h%d: add(relu(matmul(h%d, w%d)), h%d)\n",
                         i + 1, i, i, i - 3);
    else
      weir_strbuf_printf(text, "  h%d: relu(add(matmul(h%d, w%d), b))\n", i + 1,
                         i, i);
  }
  weir_strbuf_printf(text,
                     "  loss: mean(h%d)\noutputs: [loss]\n"
                     "train: {minimize: loss, optimizer: adam(lr=0.1)}\n",
                     layers);
  return weir_strbuf_status(text, NULL) == WEIR_OK;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static weir_status gradients(const weir_graph *g, double *s, uint32_t *nodes,
                             weir_error *err) {
  weir_value_id *wrt = calloc(g->node_count, sizeof *wrt), count = 0;
  weir_value_id *out = calloc(g->node_count, sizeof *out);
  weir_graph *made = NULL;
  for (uint32_t i = 0; i < g->node_count; i++)
    if (strcmp(g->nodes[i].op->name, "var") == 0)
      wrt[count++] = g->nodes[i].first_output;
  double start = now_s();
  weir_status status =
      weir_graph_gradients(g, weir_graph_find_value(g, WEIR_SV_LIT("loss")),
                           wrt, count, out, &made, err);
  *s = now_s() - start;
  *nodes = made != NULL ? made->node_count : 0;
  weir_graph_unref(made);
  free(wrt);
  free(out);
  return status;
}

static weir_status train(const weir_graph *g, double *s, uint32_t *nodes,
                         weir_error *err) {
  weir_train_spec *spec = NULL;
  weir_train_graph *made = NULL;
  weir_status status = weir_train_spec_read(g, NULL, &spec, err);
  if (status != WEIR_OK) return status;
  double start = now_s();
  status = weir_graph_train(g, spec, &made, err);
  *s = now_s() - start;
  *nodes = made != NULL ? made->graph->node_count : 0;
  weir_train_graph_release(made);
  weir_train_spec_release(spec);
  return status;
}

int main(int argc, char **argv) {
  int nodes = argc > 1 ? atoi(argv[1]) : 100000;
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf text;
  weir_strbuf_init(&text, weir_allocator_system());
  if (nodes < 8 || !write_graph(&text, nodes / 4)) return 2;
  weir_load_options options = {.registry = weir_builtin_registry()};
  weir_graph *g = NULL;
  if (weir_graph_load_text(weir_env_system(), weir_strbuf_view(&text), "bench",
                           &options, &g, &err) != WEIR_OK)
    return fail(&err);
  double forward[5], whole[5];
  uint32_t made = 0, all = 0;
  for (int i = 0; i < 5; i++)
    if (gradients(g, &forward[i], &made, &err) != WEIR_OK ||
        train(g, &whole[i], &all, &err) != WEIR_OK)
      return fail(&err);
  qsort(forward, 5, sizeof *forward, compare);
  qsort(whole, 5, sizeof *whole, compare);
  printf("gradients: %u nodes to %u in %.0f ms\n", g->node_count, made,
         forward[2] * 1e3);
  printf("train:     %u nodes to %u in %.0f ms\n", g->node_count, all,
         whole[2] * 1e3);
  bool slow = forward[2] > 1e-5 * g->node_count;
  weir_graph_unref(g);
  weir_strbuf_release(&text);
  return slow;
}
