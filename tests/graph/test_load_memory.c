/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/load/load.h"
#include "tests/check.h"

/* Loading with every allocation failing in turn, once and from then on. */

static const char kMain[] =
    "weir: 1\n"
    "params: {n: 2, sizes: [2, 3]}\n"
    "dims: {batch: null}\n"
    "import: {nn: std/nn, my: my.yaml}\n"
    "inputs:\n"
    "  x: f32[batch, 4]\n"
    "  d: f32[2] = 0.5\n"
    "nodes:\n"
    "  h[0]: nn.dense(x, units=4, act=relu)\n"
    "  rounds:\n"
    "    repeat: {i: 0..n}\n"
    "    nodes:\n"
    "      h[i+1]: my.twice(add(h[i], i))\n"
    "  a, b: split(h[n], 2, axis=1) @ gpu:0\n"
    "  v: var(sizes, init=glorot_uniform())\n"
    "  s: {op: assign, in: [v, v], after: [a]}\n"
    "  c: concat(a, b, const([[1, 2]]), axis=0)\n"
    "  infix: (a - b * n) / -(dim(a, 1) + 0.5) + 2 * n\n"
    "  loss: mean(c)\n"
    "outputs: {c: c, d: neg(d)}\n"
    "labels: names.txt\n"
    "data: {train: {source: npy, batch: '${n}'}}\n"
    "train:\n"
    "  minimize: loss\n"
    "  optimizer: 'sgd(lr=0.1, clip_norm=n)'\n"
    "  lr: {schedule: [cosine(steps=9), 'warmup(2)'], scale: {'h*': 2}}\n"
    "  eval: {metrics: [loss, {name: p, perplexity: loss}], every: 2}\n";

static const char kImported[] =
    "weir: 1\n"
    "blocks:\n"
    "  twice:\n"
    "    in: {v: 'f32[b, 4]'}\n"
    "    attrs: {k: int = 2}\n"
    "    nodes: {w: 'var([dim(v, 1)])', z: 'add(mul(v, k), w)'}\n"
    "    out: z\n";

static const char kBad[] =
    "weir: 1\n"
    "inputs: {x: 'f32[2]'}\n"
    "nodes:\n"
    "  a: relu(b)\n"
    "  b: relu(a)\n"
    "  c: matmul(x, zeros([3]))\n"
    "  d: nothing(x)\n"
    "  e: add(x, y)\n"
    "  f: x / 2 + zeros([3])\n"
    "  g: x // 2\n"
    "  i: relu(x ** 2)\n"
    "  j: nn.conv2d(x\n"
    "  k: c/matmul\n"
    "  m: lib.conv(x)\n"
    "  q: x @ x\n";

static const char kNames[] = "ape\nbee\n";

/* The only files there are. */
static weir_status read_imported(void *self, const char *root, const char *path,
                                 size_t limit, bool map, weir_file *out,
                                 weir_error *err) {
  (void)root, (void)limit, (void)map;
  bool names = strcmp(path, "names.txt") == 0;
  const char *text = names ? kNames : kImported;
  size_t size = names ? sizeof kNames : sizeof kImported;
  if (!names && strcmp(path, "my.yaml") != 0)
    return weir_fail(err, WEIR_W4001, NULL, "no such file");
  /* Takes memory, as the real one does. */
  char *copy = weir_alloc(self, size);
  if (copy == NULL) return weir_fail_memory(err, size);
  memcpy(copy, text, size);
  *out = (weir_file){{(const uint8_t *)copy, size - 1}, copy};
  return WEIR_OK;
}

static void close_imported(void *self, weir_file *file) {
  weir_free(self, file->self);
}

static weir_status load(const weir_allocator *alloc, const char *text,
                        weir_error *err) {
  weir_fs fs = {.self = (void *)(uintptr_t)alloc,
                .read = read_imported,
                .close = close_imported};
  weir_env env = {.alloc = alloc, .fs = &fs};
  weir_load_options options = {.registry = weir_builtin_registry()};
  weir_graph *g = NULL;
  weir_status s = weir_graph_load_text(&env, weir_sv_from(text), "main.yaml",
                                       &options, &g, err);
  if (s != WEIR_OK) assert_null(g);
  weir_graph_unref(g);
  return s;
}

static void sweep(const char *text, const char *want) {
  for (int forever = 0; forever < 2; forever++) {
    bool done = false;
    for (uint64_t k = 1; !done; k++) {
      weir_counted_allocator counted;
      weir_counted_allocator_init(&counted, NULL);
      counted.fail_at = k;
      counted.fail_forever = forever != 0;
      weir_error err = WEIR_ERROR_INIT;
      weir_status s = load(&counted.base, text, &err);
      assert_int_equal(atomic_load(&counted.live_blocks), 0);
      done = atomic_load(&counted.calls) < k;
      if (done) {
        assert_string_equal(err.id, want);
      } else {
        assert_int_not_equal(s, WEIR_OK);
        /* A graph that is bad may be found so before memory runs out. */
        if (want[0] == '\0') assert_string_equal(err.id, "W6001");
      }
      assert_true(k < 100000);
    }
  }
}

static void test_good_graph(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(load(weir_allocator_system(), kMain, &err), &err);
  sweep(kMain, "");
}

static void test_bad_graph(void **state) {
  (void)state;
  sweep(kBad, "W1102");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_good_graph),
                                     cmocka_unit_test(test_bad_graph)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
