/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ops/shape_ctx.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/node.h"
#include "runtime/graph/pass/pass_fuse.h"
#include "runtime/graph/pass/pass_simplify.h"
#include "runtime/graph/pass/pass_specialize.h"
#include "tests/check.h"

/* Graphs of the built-in ops, put together by name. */
typedef struct maker {
  weir_graph_builder *b;
  weir_registry registry;
} maker;

static weir_status toy_pool_shape(weir_shape_ctx *ctx) {
  weir_shape s = *weir_shape_in(ctx, 0);
  s.dims[2].value /= 2;
  s.dims[3].value /= 2;
  return weir_shape_set(ctx, 0, &s);
}

static const weir_op_def kToyPool = {.name = "toy_pool",
                                     .inputs = {{"x", "f32"}},
                                     .outputs = {{"y", "f32"}},
                                     .flags = WEIR_OP_WINDOW,
                                     .shape = toy_pool_shape};

static void begin(maker *m, const weir_allocator *alloc) {
  weir_error err = WEIR_ERROR_INIT;
  m->registry = (weir_registry){.ops = weir_builtin_ops,
                                .op_count = weir_builtin_op_count};
  assert_ok(weir_graph_builder_create(alloc, &m->registry, 7, &m->b, &err),
            &err);
}

static weir_value_id add_spec(maker *m, const char *op_name,
                              weir_node_spec spec) {
  static weir_diag diag;
  weir_node_id node = 0;
  spec.op = weir_registry_find_op(&m->registry, weir_sv_from(op_name));
  if (strcmp(op_name, "toy_pool") == 0) spec.op = &kToyPool;
  assert_non_null(spec.op);
  weir_status s = weir_graph_builder_add(m->b, &spec, &node, &diag);
  if (s != WEIR_OK) fail_msg("%s: %s", diag.error.id, diag.error.message);
  return weir_graph_builder_output(m->b, node, 0);
}

static weir_value_id add(maker *m, const char *name, const char *op,
                         uint32_t count, const weir_value_id *in) {
  return add_spec(
      m, op,
      (weir_node_spec){
          .name = weir_sv_from(name), .inputs = in, .input_count = count});
}

#define ADD1(m, name, op, a) add(m, name, op, 1, (weir_value_id[]){a})
#define ADD2(m, name, op, a, b) add(m, name, op, 2, (weir_value_id[]){a, b})

static weir_value_id input(maker *m, const char *name, uint32_t rank,
                           const weir_dim *dims, weir_value_id fallback) {
  const weir_op_def *op =
      weir_registry_find_op(&m->registry, WEIR_SV_LIT("input"));
  weir_attr attrs[WEIR_OP_ATTRS] = {{.kind = WEIR_ATTR_NONE}};
  attrs[weir_op_attr_index(op, WEIR_SV_LIT("shape"))] =
      (weir_attr){.kind = WEIR_ATTR_INTS, .count = rank, .dims = dims};
  attrs[weir_op_attr_index(op, WEIR_SV_LIT("dtype"))] =
      (weir_attr){.kind = WEIR_ATTR_DTYPE, .dtype = WEIR_F32};
  weir_value_id id = add_spec(
      m, "input",
      (weir_node_spec){.name = weir_sv_from(name),
                       .attrs = attrs,
                       .inputs = &fallback,
                       .input_count = fallback == WEIR_NO_VALUE ? 0 : 1});
  weir_graph_port port = {.name = weir_sv_from(name),
                          .value = id,
                          .has_default = fallback != WEIR_NO_VALUE};
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_graph_builder_add_input(m->b, &port, &err), &err);
  return id;
}

static void output(maker *m, weir_value_id value) {
  weir_graph_port port = {.name = WEIR_SV_LIT("out"), .value = value};
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_graph_builder_add_output(m->b, &port, &err), &err);
}

static weir_graph *finish(maker *m) {
  weir_graph *graph = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_graph_builder_finish(m->b, &graph, &err), &err);
  weir_graph_builder_release(m->b);
  return graph;
}

static const weir_dim k24[] = {{2, 0, 0}, {4, 0, 0}};
static const weir_dim k44[] = {{4, 0, 0}, {4, 0, 0}};

static uint32_t group_of(const weir_graph *g, const char *name) {
  weir_node_id id = weir_graph_find_node(g, weir_sv_from(name));
  assert_int_not_equal(id, UINT32_MAX);
  return g->nodes[id].group;
}

static weir_graph *fused(maker *m) {
  weir_graph *g = finish(m), *out = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_graph_fuse(g, NULL, 0, &out, &err), &err);
  assert_int_equal(out->node_count, g->node_count);
  weir_graph_unref(g);
  return out;
}

static void matmul_with_followers(void **state) {
  (void)state;
  maker m;
  begin(&m, weir_allocator_system());
  weir_value_id x = input(&m, "x", 2, k24, WEIR_NO_VALUE);
  weir_value_id w = input(&m, "w", 2, k44, WEIR_NO_VALUE);
  weir_value_id b = input(&m, "b", 1, k44, WEIR_NO_VALUE);
  weir_value_id pre = ADD1(&m, "pre", "relu", x);
  weir_value_id h = ADD2(&m, "h", "matmul", pre, w);
  weir_value_id hb = ADD2(&m, "hb", "add", h, b);
  weir_value_id y = ADD1(&m, "y", "relu", hb);
  output(&m, ADD2(&m, "z", "matmul", y, w));
  weir_graph *g = fused(&m);
  assert_int_equal(g->group_count, 1);
  assert_int_equal(group_of(g, "h"), 0);
  assert_int_equal(group_of(g, "hb"), 0);
  assert_int_equal(group_of(g, "y"), 0);
  assert_int_equal(group_of(g, "pre"), WEIR_NO_GROUP);
  assert_int_equal(group_of(g, "z"), WEIR_NO_GROUP);
  weir_graph_unref(g);
}

static void diamonds_and_leaks(void **state) {
  (void)state;
  maker m;
  begin(&m, weir_allocator_system());
  weir_value_id x = input(&m, "x", 2, k44, WEIR_NO_VALUE);
  /* a diamond: both readers of a are inside */
  weir_value_id a = ADD1(&m, "a", "relu", x);
  weir_value_id b = ADD2(&m, "b", "mul", a, a);
  weir_value_id c = ADD2(&m, "c", "add", a, b);
  /* d is read by e and by a matmul that e reads too: e cannot take it */
  weir_value_id d = ADD1(&m, "d", "relu", c);
  weir_value_id far = ADD2(&m, "far", "matmul", d, x);
  output(&m, ADD2(&m, "e", "add", d, far));
  weir_graph *g = fused(&m);
  assert_int_equal(g->group_count, 2);
  assert_int_equal(group_of(g, "a"), 0);
  assert_int_equal(group_of(g, "b"), 0);
  assert_int_equal(group_of(g, "c"), 0);
  assert_int_equal(group_of(g, "d"), 0);
  assert_int_equal(group_of(g, "far"), 1);
  assert_int_equal(group_of(g, "e"), 1);
  weir_graph_unref(g);
}

static void control_edges_leave_a_group(void **state) {
  (void)state;
  maker m;
  begin(&m, weir_allocator_system());
  weir_value_id x = input(&m, "x", 2, k44, WEIR_NO_VALUE);
  weir_value_id a = ADD1(&m, "a", "relu", x);
  weir_node_id after = weir_graph_builder_graph(m.b)->values[a].node;
  weir_value_id b = add_spec(&m, "relu",
                             (weir_node_spec){.name = WEIR_SV_LIT("b"),
                                              .inputs = &x,
                                              .input_count = 1,
                                              .after = &after,
                                              .after_count = 1});
  output(&m, ADD2(&m, "c", "add", a, b));
  weir_graph *g = fused(&m);
  assert_int_equal(g->group_count, 0);
  weir_graph_unref(g);
}

static void pooling_needs_a_convolution(void **state) {
  (void)state;
  for (int conv = 0; conv < 2; conv++) {
    maker m;
    begin(&m, weir_allocator_system());
    const weir_dim image[] = {{2, 0, 0}, {3, 0, 0}, {8, 0, 0}, {8, 0, 0}};
    const weir_dim filter[] = {{3, 0, 0}, {3, 0, 0}, {1, 0, 0}, {1, 0, 0}};
    weir_value_id x = input(&m, "x", 4, image, WEIR_NO_VALUE);
    weir_value_id w = input(&m, "w", 4, filter, WEIR_NO_VALUE);
    weir_value_id h =
        conv ? ADD2(&m, "h", "conv2d", x, w) : ADD1(&m, "h", "relu", x);
    weir_value_id y = ADD1(&m, "y", "relu", h);
    output(&m, ADD1(&m, "p", "toy_pool", y));
    weir_graph *g = fused(&m);
    assert_int_equal(g->group_count, 1);
    assert_int_equal(group_of(g, "h"), 0);
    assert_int_equal(group_of(g, "y"), 0);
    assert_int_equal(group_of(g, "p"), conv ? 0 : WEIR_NO_GROUP);
    weir_graph_unref(g);
  }
}

static void groups_are_bounded(void **state) {
  (void)state;
  maker m;
  begin(&m, weir_allocator_system());
  weir_value_id v = input(&m, "x", 2, k44, WEIR_NO_VALUE);
  static char names[100][16];
  for (int i = 0; i < 100; i++) {
    snprintf(names[i], sizeof names[i], "n%d", i);
    v = ADD1(&m, names[i], "relu", v);
  }
  output(&m, v);
  weir_graph *g = fused(&m);
  uint32_t size[8] = {0};
  for (uint32_t i = 0; i < g->node_count; i++)
    if (g->nodes[i].group != WEIR_NO_GROUP) size[g->nodes[i].group]++;
  assert_int_equal(g->group_count, 4);
  assert_int_equal(size[0] + size[1] + size[2] + size[3], 100);
  for (int i = 0; i < 4; i++) assert_true(size[i] >= 2 && size[i] <= 32);
  weir_graph_unref(g);
}

static void simplify_prunes_and_merges(void **state) {
  (void)state;
  maker m;
  begin(&m, weir_allocator_system());
  weir_value_id x = input(&m, "x", 2, k44, WEIR_NO_VALUE);
  weir_value_id a = ADD1(&m, "a", "relu", x);
  weir_value_id same = ADD1(&m, "same", "relu", x);
  weir_value_id id = ADD1(&m, "id", "identity", same);
  weir_value_id sum = ADD2(&m, "sum", "add", a, id);
  weir_value_id unused = ADD2(&m, "unused", "mul", a, a);
  output(&m, sum);
  weir_graph *g = finish(&m), *out = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_value_id values[16];
  weir_node_id nodes[16];
  weir_simplify_options o = {.values = &sum, .value_count = 1};
  assert_ok(weir_graph_simplify(g, &o, values, nodes, &out, &err), &err);
  assert_int_equal(out->node_count, 3);
  assert_int_equal(values[same], values[a]);
  assert_int_equal(values[id], values[a]);
  assert_int_equal(values[unused], WEIR_NO_VALUE);
  assert_int_equal(weir_graph_find_value(out, WEIR_SV_LIT("id")), values[a]);
  assert_int_equal(weir_graph_find_value(out, WEIR_SV_LIT("same")), values[a]);
  assert_int_equal(out->outputs[0].value, values[sum]);
  weir_graph_unref(out);
  o.keep_equal = true;
  assert_ok(weir_graph_simplify(g, &o, NULL, NULL, &out, &err), &err);
  assert_int_equal(out->node_count, 4);
  weir_graph_unref(out);
  weir_graph_unref(g);
}

static void simplify_knows_what_is_fed(void **state) {
  (void)state;
  maker m;
  begin(&m, weir_allocator_system());
  weir_value_id x = input(&m, "x", 2, k44, WEIR_NO_VALUE);
  weir_value_id fallback = ADD1(&m, "fallback", "relu", x);
  weir_value_id y = input(&m, "y", 2, k44, fallback);
  weir_value_id z = ADD1(&m, "z", "relu", y);
  output(&m, z);
  weir_graph *g = finish(&m), *out = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_value_id values[16];
  bool fed[2] = {true, true};
  weir_simplify_options o = {.values = &z, .value_count = 1, .fed = fed};
  assert_ok(weir_graph_simplify(g, &o, values, NULL, &out, &err), &err);
  assert_int_equal(out->node_count, 2); /* y and z */
  assert_int_equal(out->input_count, 1);
  weir_graph_unref(out);
  fed[1] = false;
  assert_ok(weir_graph_simplify(g, &o, values, NULL, &out, &err), &err);
  assert_int_equal(out->node_count, 3); /* x, fallback, z */
  assert_int_equal(values[y], values[fallback]);
  weir_graph_unref(out);
  weir_graph_unref(g);
}

static void simplify_forgets_initial_values(void **state) {
  (void)state;
  maker m;
  begin(&m, weir_allocator_system());
  weir_value_id x = input(&m, "x", 2, k44, WEIR_NO_VALUE);
  weir_value_id init = ADD1(&m, "init", "relu", x);
  weir_attr attrs[WEIR_OP_ATTRS] = {
      {.kind = WEIR_ATTR_INTS, .count = 2, .dims = k44}};
  weir_value_id v = add_spec(&m, "var",
                             (weir_node_spec){.name = WEIR_SV_LIT("v"),
                                              .attrs = attrs,
                                              .inputs = &init,
                                              .input_count = 1});
  output(&m, v);
  weir_graph *g = finish(&m), *out = NULL;
  weir_error err = WEIR_ERROR_INIT;
  for (int drop = 0; drop < 2; drop++) {
    weir_simplify_options o = {
        .values = &v, .value_count = 1, .drop_inits = drop};
    assert_ok(weir_graph_simplify(g, &o, NULL, NULL, &out, &err), &err);
    assert_int_equal(out->node_count, drop ? 1 : 3);
    weir_graph_unref(out);
  }
  weir_graph_unref(g);
}

static weir_graph *symbolic(void) {
  static maker m; /* its registry is read for as long as the graph lives */
  begin(&m, weir_allocator_system());
  uint32_t batch = weir_graph_builder_symbol(m.b, WEIR_SV_LIT("batch"));
  const weir_dim xd[] = {{0, batch, 0}, {4, 0, 0}};
  const weir_dim yd[] = {{1, batch, 0}, {4, 0, 0}};
  weir_value_id x = input(&m, "x", 2, xd, WEIR_NO_VALUE);
  input(&m, "y", 2, yd, WEIR_NO_VALUE);
  const weir_op_def *op =
      weir_registry_find_op(&m.registry, WEIR_SV_LIT("reshape"));
  const weir_dim to[] = {{4, 0, 0}, {0, batch, 0}};
  weir_attr attrs[WEIR_OP_ATTRS] = {{.kind = WEIR_ATTR_NONE}};
  attrs[weir_op_attr_index(op, WEIR_SV_LIT("shape"))] =
      (weir_attr){.kind = WEIR_ATTR_INTS, .count = 2, .dims = to};
  output(&m, add_spec(&m, "reshape",
                      (weir_node_spec){.name = WEIR_SV_LIT("r"),
                                       .attrs = attrs,
                                       .inputs = &x,
                                       .input_count = 1}));
  return finish(&m);
}

static void specialize_binds_symbols(void **state) {
  (void)state;
  weir_graph *g = symbolic(), *out = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_shape shapes[2] = {weir_shape_of(2, (int64_t[]){3, 4}),
                          {.rank = WEIR_RANK_UNKNOWN}};
  char text[64];
  assert_ok(weir_graph_specialize(g, shapes, &out, &err), &err);
  assert_string_equal(
      weir_graph_type_text(out, out->outputs[0].value, text, sizeof text),
      "f32[4, 3]");
  assert_string_equal(
      weir_graph_type_text(out, out->inputs[1].value, text, sizeof text),
      "f32[4, 4]");
  weir_graph_unref(out);
  static const struct {
    int rank;
    int64_t x[3];
    int64_t y[2];
  } kBad[] = {{2, {3, 5}, {4, 4}},    /* a number differs */
              {2, {3, 4}, {5, 4}},    /* batch is 3 and 4 */
              {3, {3, 4, 1}, {4, 4}}, /* rank */
              {2, {3, 4}, {0, 4}}};   /* batch would be -1 */
  for (size_t i = 0; i < sizeof kBad / sizeof kBad[0]; i++) {
    shapes[0] = weir_shape_of(kBad[i].rank, kBad[i].x);
    shapes[1] = weir_shape_of(2, kBad[i].y);
    assert_error(weir_graph_specialize(g, shapes, &out, &err), &err, "W4009");
    assert_null(out);
  }
  weir_graph_unref(g);
}

/* All three passes with every allocation failing in turn. */
static void no_memory(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++) {
    weir_status s = WEIR_UNKNOWN;
    weir_counted_allocator c;
    for (uint64_t k = 1; s != WEIR_OK; k++) {
      weir_counted_allocator_init(&c, NULL);
      maker m;
      begin(&m, &c.base);
      weir_value_id x = input(&m, "x", 2, k44, WEIR_NO_VALUE);
      weir_value_id a = ADD1(&m, "a", "relu", x);
      weir_value_id b = ADD1(&m, "b", "relu", x);
      weir_value_id y = ADD2(&m, "y", "add", a, b);
      output(&m, y);
      weir_graph *g = finish(&m), *g1 = NULL, *g2 = NULL, *g3 = NULL;
      weir_error err = WEIR_ERROR_INIT;
      weir_shape shape = weir_shape_of(2, (int64_t[]){4, 4});
      weir_simplify_options o = {.values = &y, .value_count = 1};
      c.fail_at = atomic_load(&c.calls) + k;
      c.fail_forever = forever;
      s = weir_graph_specialize(g, &shape, &g1, &err);
      if (s == WEIR_OK) s = weir_graph_simplify(g1, &o, NULL, NULL, &g2, &err);
      if (s == WEIR_OK) s = weir_graph_fuse(g2, NULL, 0, &g3, &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      weir_graph_unref(g);
      weir_graph_unref(g1);
      weir_graph_unref(g2);
      weir_graph_unref(g3);
      assert_int_equal(atomic_load(&c.live_blocks), 0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matmul_with_followers),
      cmocka_unit_test(diamonds_and_leaks),
      cmocka_unit_test(control_edges_leave_a_group),
      cmocka_unit_test(pooling_needs_a_convolution),
      cmocka_unit_test(groups_are_bounded),
      cmocka_unit_test(simplify_prunes_and_merges),
      cmocka_unit_test(simplify_knows_what_is_fed),
      cmocka_unit_test(simplify_forgets_initial_values),
      cmocka_unit_test(specialize_binds_symbols),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
