/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce/norm_blocks.h"
#include "tests/graph/split_pair.h"

/* Variables cut along their first axis: which, at which rows, and that the bits
 * of a training are those of one process. */

/* A table with a gather, a wide layer, a bias, one row, no rows. */
static const char kNet[] =
    "weir: 1\n"
    "inputs: {word: 'i64[6]', label: 'i64[6]'}\n"
    "nodes:\n"
    "  table: var([23, 8], init=uniform(-1, 1))\n"
    "  w: var([8, 5], init=glorot_uniform())\n"
    "  b: var([5], init=zeros())\n"
    "  one: var([1, 40], init=uniform(-1, 1))\n"
    "  none: var([0, 40], init=zeros())\n"
    "  frozen: state([17], init=uniform(0, 1))\n"
    "  h: tanh(gather(table, word))\n"
    "  y: add(matmul(h, w), b)\n"
    "  more: add(add(mean(square(one)), reduce_sum(none)), mean(frozen))\n"
    "  loss: add(mean(sparse_softmax_xent(y, label)), more)\n"
    "outputs: [y]\n"
    "train:\n"
    "  minimize: loss\n";

static void open_net(split_pair *p, const char *rest,
                     weir_split_options split) {
  char text[2048];
  snprintf(text, sizeof text, "%s%s", kNet, rest);
  split_pair_options options = {.text = text, .split = split};
  pair_open(p, &options);
}

static void check_net(const char *rest, weir_split_options split) {
  split_pair p;
  open_net(&p, rest, split);
  for (int i = 0; i < 5; i++) pair_batch(&p);
  pair_close(&p);
}

/* Pieces of |name|, as "0-8:1 8-23:0"; "" where it is whole. */
static void print_pieces(const weir_split *s, const char *name, char *text,
                         size_t size) {
  size_t n = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < s->var_count; i++) {
    const weir_split_var *v = &s->vars[i];
    if (!weir_sv_is(v->name, name) || v->rows.all == 0) continue;
    n += (size_t)snprintf(text + n, size - n, "%s%d-%d:%u", n > 0 ? " " : "",
                          (int)v->rows.first,
                          (int)(v->rows.first + v->rows.count), v->server);
  }
}

static void expect_pieces(const weir_split *s, const char *name,
                          const char *want) {
  char text[256];
  print_pieces(s, name, text, sizeof text);
  assert_string_equal(text, want);
}

/* ---- Where variables are cut */

static void test_pieces(void **state) {
  (void)state;
  split_pair p;
  open_net(&p, "  optimizer: adam(lr=0.1)\n  ema: {decay: 0.9}\n",
           (weir_split_options){.servers = 3, .split = 64});
  const weir_split *s = p.split;
  expect_pieces(s, "table", "0-3:0 3-15:1 15-23:2");
  expect_pieces(s, "table/adam_m", "0-3:0 3-15:1 15-23:2");
  expect_pieces(s, "table/adam_v", "0-3:0 3-15:1 15-23:2");
  expect_pieces(s, "table/ema", "0-3:0 3-15:1 15-23:2");
  expect_pieces(s, "b", "");
  expect_pieces(s, "one", "");
  expect_pieces(s, "none", "");
  uint32_t labels = 0;
  for (uint32_t i = 0; i < s->var_count; i++) {
    const weir_split_var *v = &s->vars[i];
    labels += weir_sv_is(v->label, "table[3:15]");
    assert_int_equal(v->whole_for, UINT32_MAX);
    if (v->rows.all > 0)
      assert_int_equal(v->rows.offset * (uint64_t)v->rows.count,
                       v->bytes * (uint64_t)v->rows.first);
    if (v->push == UINT32_MAX) continue;
    const weir_split_push *push = &s->pushes[v->push];
    assert_int_equal(push->bytes, v->bytes);
    assert_int_equal(push->rows.first, v->rows.first);
    assert_int_equal(push->rows.all, v->rows.all);
    if (v->rows.all > 0) assert_int_equal(push->server, v->server);
  }
  assert_int_equal(labels, 1);
  uint64_t least = UINT64_MAX, most = 0;
  for (uint32_t k = 0; k < 3; k++) {
    if (s->updates[k].bytes < least) least = s->updates[k].bytes;
    if (s->updates[k].bytes > most) most = s->updates[k].bytes;
  }
  assert_true(most - least <= 4 * 160 + 8); /* the row that cannot be cut */
  pair_close(&p);
}

static void test_whole(void **state) {
  (void)state;
  static const char kPlain[] = "  optimizer: sgd(lr=0.1)\n";
  split_pair p;
  open_net(&p, kPlain, (weir_split_options){.servers = 1, .split = 8});
  expect_pieces(p.split, "table", "");
  pair_close(&p);
  open_net(&p, kPlain, (weir_split_options){.servers = 3});
  expect_pieces(p.split, "table", "");
  pair_close(&p);
  open_net(&p, kPlain, (weir_split_options){.servers = 3, .split = 736});
  expect_pieces(p.split, "table", "");
  pair_close(&p);
  /* As many pieces as rows, fewer than servers. */
  open_net(&p, kPlain, (weir_split_options){.servers = 4, .split = 1});
  char text[256];
  print_pieces(p.split, "b", text, sizeof text);
  assert_true(strlen(text) > 0);
  pair_close(&p);
}

/* ---- Nodes that need a variable whole */

static weir_sv reason(const weir_split *s, const char *name) {
  for (uint32_t i = 0; i < s->var_count; i++)
    if (weir_sv_is(s->vars[i].name, name) && s->vars[i].whole_for != UINT32_MAX)
      return s->train->graph->nodes[s->vars[i].whole_for].name;
  return (weir_sv){NULL, 0};
}

static void test_needed_whole(void **state) {
  (void)state;
  static const char kNorm[] =
      "  optimizer: adam(lr=0.1)\n  clip: {norm: 0.05}\n";
  split_pair p;
  open_net(&p, kNorm,
           (weir_split_options){.servers = 3, .aggregate = 2, .split = 64});
  expect_pieces(p.split, "table", "");
  assert_true(weir_sv_is(reason(p.split, "table"), "train/table/grad_norm"));
  assert_null(reason(p.split, "b").data);
  pair_close(&p);
  open_net(&p, kNorm,
           (weir_split_options){.servers = 3,
                                .clip_at_worker = true,
                                .given_step = true,
                                .split = 64});
  expect_pieces(p.split, "table", "0-3:0 3-15:1 15-23:2");
  pair_close(&p);
  /* Too few elements for two blocks of the norm. */
  open_net(&p, "  optimizer: sgd(lr=0.1)\n  clip: {global_norm: 0.05}\n",
           (weir_split_options){.servers = 2, .split = 64});
  expect_pieces(p.split, "table", "");
  assert_true(weir_sv_is(reason(p.split, "table"), "train/grad_norm"));
  pair_close(&p);
}

/* Two variables in one assignment, and one whose first value another reads. */
static void test_ties(void **state) {
  (void)state;
  split_pair p;
  split_pair_options options = {
      .text =
          "weir: 1\ninputs: {x: 'f32[3, 6]'}\nnodes:\n"
          "  a: var([6, 4], init=uniform(-1, 1))\n"
          "  b: state([6, 4], init=mul(a, 2))\n"
          "  c: var([6, 4], init=uniform(-1, 1))\n"
          "  copy: state([6, 4])\n"
          "  keep: assign(copy, c)\n"
          "  turned: state([4, 6])\n"
          "  turn: assign(turned, transpose(b))\n"
          "  loss: mean(square(matmul(x, add(a, c))))\n"
          "outputs: [loss]\n"
          "train: {minimize: loss, optimizer: momentum(lr=0.1), trainable: "
          "[a, c]}\n",
      .split = {.servers = 2, .split = 16}};
  pair_open(&p, &options);
  expect_pieces(p.split, "a", ""); /* b begins with it */
  expect_pieces(p.split, "c", "");
  assert_true(reason(p.split, "c").data != NULL);
  for (int i = 0; i < 4; i++) pair_batch(&p);
  pair_close(&p);
}

/* ---- Bits */

static void test_bits(void **state) {
  (void)state;
  static const char *const kOptimizers[] = {
      "sgd(lr=0.1)",
      "momentum(lr=0.1, momentum=0.9, nesterov=true)",
      "adagrad(lr=0.1, initial=0.2)",
      "proximal_sgd(lr=0.1, l1=1e-3)",
      "proximal_adagrad(lr=0.1, l1=1e-3)",
      "rms_prop(lr=0.01, momentum=0.9, centered=true)",
      "adam(lr=0.01, l2=0.01)",
      "adamw(lr=0.01, weight_decay=0.1)"};
  for (size_t i = 0; i < sizeof kOptimizers / sizeof *kOptimizers; i++) {
    char rest[160];
    snprintf(rest, sizeof rest,
             "  optimizer: %s\n  ema: {decay: 0.9}\n  clip: {value: 0.05}\n"
             "  schedule: cosine(steps=9)\n",
             kOptimizers[i]);
    check_net(rest, (weir_split_options){.servers = 2 + (uint32_t)i % 3,
                                         .aggregate = 1 + (uint32_t)i % 2,
                                         .split = 16 << i % 4});
    check_net(rest, (weir_split_options){.servers = 3,
                                         .clip_at_worker = true,
                                         .given_step = true,
                                         .split = 40});
  }
}

/* Blocks of the norm: rows begin at them after 5 elements, or never. */
static void test_norm(void **state) {
  (void)state;
  static const struct {
    int before, row;
    bool cut;
  } kSizes[] = {{4, 12, true}, {5, 3, true}, {1, 2, false}, {32768, 128, true}};
  for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; i++)
    for (uint32_t n = 1; n <= 2; n++) {
      char text[1024];
      split_pair p;
      int rows = 3 * WEIR_NORM_BLOCK / kSizes[i].row + 7;
      snprintf(text, sizeof text,
               "weir: 1\ninputs: {x: 'f32[2, %d]'}\nnodes:\n"
               "  a: var([%d], init=uniform(-1, 1))\n"
               "  w: var([%d, %d], init=uniform(-1, 1))\n"
               "  loss: add(mean(square(matmul(x, w))), mean(square(a)))\n"
               "outputs: [loss]\n"
               "train:\n  minimize: loss\n  optimizer: momentum(lr=0.5)\n"
               "  clip: {global_norm: 0.01}\n",
               rows, kSizes[i].before, rows, kSizes[i].row);
      split_pair_options options = {
          .text = text,
          .split = {.servers = 3, .aggregate = n, .split = 40000}};
      pair_open(&p, &options);
      char pieces[256];
      print_pieces(p.split, "w", pieces, sizeof pieces);
      assert_int_equal(strlen(pieces) > 0, kSizes[i].cut);
      for (int k = 0; k < 3; k++) pair_batch(&p);
      pair_close(&p);
    }
}

/* ---- Memory */

static weir_status try_split(const weir_allocator *alloc, weir_error *err) {
  char text[2048];
  weir_env env = {.alloc = alloc};
  weir_load_options load = {.registry = weir_builtin_registry()};
  weir_split_options options = {.servers = 3, .aggregate = 2, .split = 64};
  weir_graph *graph = NULL;
  weir_train_spec *spec = NULL;
  weir_split *split = NULL;
  snprintf(text, sizeof text, "%s  optimizer: adam(lr=0.1)\n", kNet);
  weir_status s =
      weir_graph_load_text(&env, weir_sv_from(text), "t", &load, &graph, err);
  if (s == WEIR_OK) s = weir_train_spec_read(graph, NULL, &spec, err);
  if (s == WEIR_OK) s = weir_graph_split(graph, spec, &options, &split, err);
  weir_split_release(split);
  weir_train_spec_release(spec);
  weir_graph_unref(graph);
  return s;
}

static void test_memory(void **state) {
  (void)state;
  for (uint64_t k = 1, done = 0; !done; k++) {
    weir_counted_allocator c;
    weir_counted_allocator_init(&c, NULL);
    c.fail_at = k;
    weir_error err = WEIR_ERROR_INIT;
    weir_status s = try_split(&c.base, &err);
    assert_int_equal(atomic_load(&c.live_blocks), 0);
    done = atomic_load(&c.calls) < k;
    if (done)
      assert_ok(s, &err);
    else
      assert_error(s, &err, "W6001");
    assert_true(k < 100000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pieces),       cmocka_unit_test(test_whole),
      cmocka_unit_test(test_needed_whole), cmocka_unit_test(test_ties),
      cmocka_unit_test(test_bits),         cmocka_unit_test(test_norm),
      cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
