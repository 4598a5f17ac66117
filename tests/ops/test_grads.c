/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient rules against central differences, in f64 on reference kernels. */
#include <math.h>
#include <stdlib.h>

#include "kernels/kernel.h"
#include "runtime/graph/grad/gradients.h"
#include "runtime/graph/node.h"
#include "tests/check.h"
#include "tests/ops/graph_eval.h"
#include "tests/ops/shape_case.h"

/* The op on inputs of these types with values in [low, high]; integers count
 * 0, 1, 2, 0, ... The loss is a weighted sum of output |output|. */
typedef struct grad_case {
  const char *op, *in, *attrs;
  double low, high;
  uint32_t output;
} grad_case;

/* A graph of inputs, node, weights and loss, with values for the inputs. */
typedef struct problem {
  const grad_case *c;
  weir_graph *graph;
  weir_value_id in[SHAPE_CASE_INPUTS], loss;
  uint32_t in_count;
  weir_tensor **values;
} problem;

static weir_value_id add_node(weir_graph_builder *b, const char *name,
                              const char *op, uint32_t count,
                              const weir_value_id *in, const weir_attr *attrs) {
  weir_error err = WEIR_ERROR_INIT;
  weir_node_id node;
  weir_node_spec spec = {
      .name = weir_sv_from(name),
      .op = weir_registry_find_op(weir_builtin_registry(), weir_sv_from(op)),
      .attrs = attrs,
      .inputs = in,
      .input_count = count};
  assert_ok(weir_graph_builder_add(b, &spec, &node, NULL), &err);
  return weir_graph_builder_output(b, node, 0);
}

static void build(problem *p) {
  static weir_diag diag;
  const grad_case *c = p->c;
  shape_case shape = {c->op, c->in, c->attrs, NULL, NULL};
  weir_graph_builder *b = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_node_id node;
  assert_ok(weir_graph_builder_create(weir_allocator_system(),
                                      weir_builtin_registry(), 1, &b, &err),
            &err);
  assert_ok(shape_case_add(b, &shape, p->in, &p->in_count, &node, &diag),
            &diag.error);
  weir_value_id y = weir_graph_builder_output(b, node, c->output);
  const weir_shape *of = weir_graph_builder_graph(b)->values[y].shape;
  weir_attr attrs[2] = {
      {.kind = WEIR_ATTR_DTYPE, .dtype = WEIR_F64},
      {.kind = WEIR_ATTR_INTS, .count = (uint32_t)of->rank, .dims = of->dims}};
  weir_value_id product[2] = {y};
  product[1] = add_node(b, "weights", "input", 0, NULL, attrs);
  weir_value_id sum = add_node(b, "product", "mul", 2, product, NULL);
  p->loss = add_node(b, "loss", "reduce_sum", 1, &sum, NULL);
  assert_ok(weir_graph_builder_finish(b, &p->graph, &err), &err);
  weir_graph_builder_release(b);
}

/* Values of every `input`, from a fixed sequence. */
static void fill(problem *p) {
  uint64_t state = 12345;
  weir_error err = WEIR_ERROR_INIT;
  for (uint32_t i = 0; i < p->graph->value_count; i++) {
    const weir_value *v = &p->graph->values[i];
    if (p->graph->nodes[v->node].op->instr != WEIR_INSTR_FEED) continue;
    assert_ok(weir_tensor_create_shaped(weir_allocator_system(), v->dtype,
                                        v->shape, &p->values[i], &err),
              &err);
    for (int64_t k = 0; k < weir_shape_elements(v->shape); k++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      double u = (double)(state >> 33) / 2147483648.0;
      weir_tensor_set_f64(p->values[i], k,
                          v->dtype == WEIR_BOOL ? (double)(k % 2)
                          : weir_dtype_is_float(v->dtype)
                              ? p->c->low + u * (p->c->high - p->c->low)
                              : (double)(k % 3));
    }
  }
}

static double loss_at(problem *p) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(graph_eval(p->graph, p->loss, true, p->values, &err), &err);
  double loss = weir_tensor_get_f64(p->values[p->loss], 0);
  graph_eval_release(p->graph, p->values);
  return loss;
}

static void compare(problem *p, uint32_t input, const weir_tensor *gradient) {
  weir_tensor *x = p->values[p->in[input]];
  double *data = x->data;
  assert_true(weir_shape_equal(&gradient->shape, &x->shape));
  for (int64_t k = 0; k < weir_shape_elements(&x->shape); k++) {
    const double step = 1e-5;
    double at = data[k];
    data[k] = at + step;
    double above = loss_at(p);
    data[k] = at - step;
    double want = (above - loss_at(p)) / (2 * step);
    data[k] = at;
    double got = weir_tensor_get_f64(gradient, k);
    /* Central differences err by step^2 and by rounding over step. */
    if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want))))
      fail_msg("%s(%s; %s): gradient %lld of input %u is %.9g, want %.9g",
               p->c->op, p->c->in, p->c->attrs != NULL ? p->c->attrs : "",
               (long long)k, input, got, want);
  }
}

/* All gradients of the graph, evaluated. */
static void check_gradients(problem *p, const weir_value_id *wrt,
                            const uint32_t *which, uint32_t count) {
  weir_value_id grads[SHAPE_CASE_INPUTS];
  weir_graph *with = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s =
      weir_graph_gradients(p->graph, p->loss, wrt, count, grads, &with, &err);
  if (s != WEIR_OK)
    fail_msg("%s(%s): %s %s", p->c->op, p->c->in, err.id, err.message);
  weir_tensor **values = calloc(with->value_count, sizeof *values);
  assert_non_null(values);
  for (uint32_t i = 0; i < p->graph->value_count; i++) values[i] = p->values[i];
  s = graph_eval(with, with->value_count - 1, true, values, &err);
  if (s != WEIR_OK)
    fail_msg("%s(%s): %s %s", p->c->op, p->c->in, err.id, err.message);
  for (uint32_t i = 0; i < count; i++) compare(p, which[i], values[grads[i]]);
  graph_eval_release(with, values);
  free(values);
  weir_graph_unref(with);
}

static void check_case(const grad_case *c) {
  problem p = {.c = c};
  weir_value_id wrt[SHAPE_CASE_INPUTS];
  uint32_t which[SHAPE_CASE_INPUTS], count = 0;
  build(&p);
  p.values = calloc(p.graph->value_count, sizeof *p.values);
  assert_non_null(p.values);
  fill(&p);
  for (uint32_t i = 0; i < p.in_count; i++)
    if (p.graph->values[p.in[i]].dtype == WEIR_F64) {
      wrt[count] = p.in[i];
      which[count++] = i;
    }
  check_gradients(&p, wrt, which, count);
  for (uint32_t i = 0; i < p.graph->value_count; i++)
    weir_tensor_unref(p.values[i]);
  free(p.values);
  weir_graph_unref(p.graph);
}

#define CHECK_ALL(cases)                                      \
  do {                                                        \
    (void)state;                                              \
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) \
      check_case(&cases[i]);                                  \
  } while (0)

static void elementwise(void **state) {
  static const char *const kOps[] = {
      "neg",        "abs",          "sign",      "square",   "relu",
      "exp",        "tanh",         "sigmoid",   "softplus", "erf",
      "sin",        "cos",          "floor",     "ceil",     "round",
      "leaky_relu", "elu",          "gelu",      "identity", "zeros_like",
      "ones_like",  "hard_sigmoid", "hard_swish"};
  static const char *const kAbove[] = {"log", "sqrt", "rsqrt", "reciprocal"};
  (void)state;
  for (size_t i = 0; i < sizeof kOps / sizeof *kOps; i++)
    check_case(&(grad_case){kOps[i], "f64[2,5]", NULL, -2, 2, 0});
  for (size_t i = 0; i < sizeof kAbove / sizeof *kAbove; i++)
    check_case(&(grad_case){kAbove[i], "f64[7]", NULL, 0.5, 3, 0});
  static const grad_case kMore[] = {
      {"gelu", "f64[9]", "approximate=tanh", -2, 2, 0},
      {"clip", "f64[9]", "min=-0.5 max=0.7", -1, 1, 0},
      {"clip", "f64[9]", "max=0.1", -1, 1, 0},
      {"cast", "f64[3]", "dtype=f64", -1, 1, 0},
      {"add", "f64[2,3] f64[3]", NULL, -1, 1, 0},
      {"sub", "f64[2,1] f64[2,3]", NULL, -1, 1, 0},
      {"mul", "f64[2,1,3] f64[4,1]", NULL, -1, 1, 0},
      {"div", "f64[2,3] f64[]", NULL, 0.5, 2, 0},
      {"pow", "f64[2,3] f64[3]", NULL, 0.5, 2, 0},
      {"min", "f64[2,3] f64[3]", NULL, -1, 1, 0},
      {"max", "f64[3,1] f64[1,4]", NULL, -1, 1, 0},
      {"where", "bool[2,1] f64[3] f64[2,3]", NULL, -1, 1, 0},
      {"mse", "f64[2,3] f64[2,3]", NULL, -1, 1, 0},
      {"mse", "f64[2,3] f64[2,3]", "reduction=sum", -1, 1, 0},
      {"mse", "f64[2,3] f64[2,3]", "reduction=none", -1, 1, 0}};
  CHECK_ALL(kMore);
}

static void products(void **state) {
  static const grad_case kCases[] = {
      {"matmul", "f64[2,3] f64[3,4]", NULL, -1, 1, 0},
      {"matmul", "f64[3,2] f64[3,4]", "transpose_a=true", -1, 1, 0},
      {"matmul", "f64[2,3] f64[4,3]", "transpose_b=true", -1, 1, 0},
      {"matmul", "f64[3,2] f64[4,3]", "transpose_a=true transpose_b=true", -1,
       1, 0},
      {"matmul", "f64[2,1,2,3] f64[2,3,2]", NULL, -1, 1, 0},
      {"matmul", "f64[3] f64[3]", NULL, -1, 1, 0},
      {"matmul", "f64[3] f64[2,3,4]", NULL, -1, 1, 0},
      {"matmul", "f64[2,4,3] f64[3]", NULL, -1, 1, 0},
      {"matmul", "f64[3] f64[4,3]", "transpose_b=true", -1, 1, 0},
      {"einsum", "f64[2,3] f64[3,4]", "equation=mk,kn->mn", -1, 1, 0},
      {"einsum", "f64[2,3] f64[2,4]", "equation=bi,bj->bij", -1, 1, 0},
      {"einsum", "f64[2,3,4]", "equation=abc->ca", -1, 1, 0},
      {"einsum", "f64[2,3] f64[4]", "equation=ij,k->k", -1, 1, 0},
      {"conv2d", "f64[2,2,4,5] f64[3,2,3,2] f64[3]", "pad=[1,0,2,1]", -1, 1, 0},
      {"conv2d", "f64[1,4,5,5] f64[4,2,2,2]", "stride=[2,1] groups=2", -1, 1,
       0},
      {"conv2d", "f64[1,1,6,6] f64[2,1,2,3]", "dilation=[3,2] pad=[1]", -1, 1,
       0}};
  CHECK_ALL(kCases);
}

static void reductions(void **state) {
  static const grad_case kCases[] = {
      {"reduce_sum", "f64[2,3,2]", "axis=[0,-1]", -1, 1, 0},
      {"reduce_sum", "f64[2,3]", NULL, -1, 1, 0},
      {"reduce_mean", "f64[2,3,2]", "axis=[1]", -1, 1, 0},
      {"reduce_mean", "f64[2,3]", "keepdims=true", -1, 1, 0},
      {"reduce_max", "f64[2,3]", "axis=[1]", -1, 1, 0},
      {"reduce_max", "f64[2,3]", NULL, -1, 1, 0},
      {"reduce_min", "f64[2,3]", "axis=[0] keepdims=true", -1, 1, 0},
      {"reduce_prod", "f64[2,3]", "axis=[1]", -1, 1, 0},
      {"reduce_prod", "f64[4]", NULL, -1, 1, 0},
      {"softmax", "f64[2,3,2]", "axis=1", -1, 1, 0},
      {"log_softmax", "f64[2,3]", NULL, -1, 1, 0},
      {"layer_norm", "f64[3,2,4] f64[2,4] f64[2,4]", "axis=1", -1, 1, 0},
      {"layer_norm", "f64[3,5] f64[5] f64[5]", NULL, -1, 1, 0},
      {"batch_norm", "f64[2,3,2,2] f64[3] f64[3] f64[3] f64[3]", NULL, 0.5, 2,
       0},
      {"batch_norm", "f64[2,3] f64[3] f64[3] f64[3] f64[3]", NULL, 0.5, 2, 0},
      {"sparse_softmax_xent", "f64[2,4,3] i32[2,4]", NULL, -1, 1, 0},
      {"max_pool", "f64[1,2,5,5]", "kernel=[3] stride=[2] pad=[1]", -1, 1, 0},
      {"max_pool", "f64[1,1,4,4]", "kernel=[2]", -1, 1, 0},
      {"avg_pool", "f64[1,2,5,5]", "kernel=[3] stride=[2] pad=[1]", -1, 1, 0},
      {"avg_pool", "f64[1,1,5,4]",
       "kernel=[3,2] stride=[2] pad=[2,1,0,1] count_include_pad=true", -1, 1,
       0}};
  CHECK_ALL(kCases);
}

static void movements(void **state) {
  static const grad_case kCases[] = {
      {"reshape", "f64[2,6]", "shape=[3,-1]", -1, 1, 0},
      {"flatten", "f64[2,3,2]", NULL, -1, 1, 0},
      {"transpose", "f64[2,3,4]", "perm=[1,-1,0]", -1, 1, 0},
      {"transpose", "f64[2,3]", NULL, -1, 1, 0},
      {"squeeze", "f64[2,1,3]", NULL, -1, 1, 0},
      {"unsqueeze", "f64[2,3]", "axis=[0,-1]", -1, 1, 0},
      {"concat", "f64[2,3] f64[2,1] f64[2,2]", "axis=-1", -1, 1, 0},
      {"concat", "f64[2]", NULL, -1, 1, 0},
      {"stack", "f64[2,3] f64[2,3]", "axis=-1", -1, 1, 0},
      {"split", "f64[6,2]", "parts=3", -1, 1, 1},
      {"split", "f64[2,6]", "sizes=[1,0,5] axis=1", -1, 1, 2},
      {"slice", "f64[5,4]", "start=[1,-1] stop=[4,-100] step=[2,-2]", -1, 1, 0},
      {"slice", "f64[5,4]", "start=[1] stop=[3] axis=[1]", -1, 1, 0},
      {"pad", "f64[2,3]", "pads=[1,0,0,2] value=3", -1, 1, 0},
      {"pad", "f64[4]", "pads=[2,3] mode=reflect", -1, 1, 0},
      {"pad", "f64[2,2]", "pads=[2,0,1,1] mode=edge", -1, 1, 0},
      {"gather", "f64[3,2] i32[2,4]", NULL, -1, 1, 0},
      {"gather", "f64[2,3,2] i64[5]", "axis=-2", -1, 1, 0},
      {"expand", "f64[2,1]", "shape=[3,2,4]", -1, 1, 0},
      {"tile", "f64[2,3]", "repeats=[3,2]", -1, 1, 0}};
  CHECK_ALL(kCases);
}

/* A zero among the factors, and equal elements, are where the plain rules
 * divide by zero or count twice. */
static void products_with_zeros(void **state) {
  static const grad_case kCases[] = {
      {"reduce_prod", "f64[3]", NULL, 0, 0, 0},
      {"pow", "f64[3] f64[3]", NULL, 2, 2, 0},
      {"reduce_sum", "f64[0,3]", "axis=[0]", -1, 1, 0},
      {"reduce_mean", "f64[0,3]", "axis=[1]", -1, 1, 0},
      {"matmul", "f64[2,0] f64[0,3]", NULL, -1, 1, 0},
      {"softmax", "f64[0,3]", NULL, -1, 1, 0},
      {"concat", "f64[0,2] f64[3,2]", NULL, -1, 1, 0}};
  CHECK_ALL(kCases);
}

/* With symbols nothing can be run, but a gradient has its input's type. */
static void check_types(const grad_case *c) {
  problem p = {.c = c};
  weir_value_id grads[SHAPE_CASE_INPUTS];
  weir_graph *with = NULL;
  weir_error err = WEIR_ERROR_INIT;
  char got[64], want[64];
  build(&p);
  weir_status s = weir_graph_gradients(p.graph, p.loss, p.in, p.in_count, grads,
                                       &with, &err);
  if (s != WEIR_OK)
    fail_msg("%s(%s): %s %s", c->op, c->in, err.id, err.message);
  for (uint32_t i = 0; i < p.in_count; i++) {
    weir_graph_type_text(with, p.in[i], want, sizeof want);
    weir_graph_type_text(with, grads[i], got, sizeof got);
    if (strcmp(got, want) != 0)
      fail_msg("%s(%s; %s): gradient %u is %s, want %s", c->op, c->in,
               c->attrs != NULL ? c->attrs : "", i, got, want);
  }
  weir_graph_unref(with);
  weir_graph_unref(p.graph);
}

static void symbols(void **state) {
  static const grad_case kCases[] = {
      {"add", "f64[n,3] f64[3]", NULL, 0, 0, 0},
      {"mul", "f64[n,1] f64[n,m]", NULL, 0, 0, 0},
      {"matmul", "f64[n,3] f64[3,4]", NULL, 0, 0, 0},
      {"matmul", "f64[b,n,3] f64[3]", NULL, 0, 0, 0},
      {"einsum", "f64[b,n,3] f64[b,3,m]", "equation=bnk,bkm->bnm", 0, 0, 0},
      {"conv2d", "f64[n,3,8,8] f64[4,3,3,3] f64[4]", "stride=[2]", 0, 0, 0},
      {"max_pool", "f64[n,3,8,8]", "kernel=[2]", 0, 0, 0},
      {"avg_pool", "f64[n,3,h,8]", "kernel=[3] stride=[1]", 0, 0, 0},
      {"reduce_mean", "f64[n,3]", "axis=[0]", 0, 0, 0},
      {"reduce_max", "f64[n,3]", NULL, 0, 0, 0},
      {"reduce_prod", "f64[n,3]", "axis=[1]", 0, 0, 0},
      {"softmax", "f64[n,3]", NULL, 0, 0, 0},
      {"layer_norm", "f64[n,3] f64[3] f64[3]", NULL, 0, 0, 0},
      {"batch_norm", "f64[n,3,2] f64[3] f64[3] f64[3] f64[3]", NULL, 0, 0, 0},
      {"mse", "f64[n,3] f64[n,3]", NULL, 0, 0, 0},
      {"reshape", "f64[n,3,4]", "shape=[n,-1]", 0, 0, 0},
      {"flatten", "f64[n,m,4]", NULL, 0, 0, 0},
      {"transpose", "f64[n,3]", NULL, 0, 0, 0},
      {"concat", "f64[3,2] f64[n,2] f64[4,2]", NULL, 0, 0, 0},
      {"concat", "f64[n,2] f64[n,5]", "axis=1", 0, 0, 0},
      {"split", "f64[n,6]", "parts=2 axis=1", 0, 0, 1},
      {"slice", "f64[n,6]", "start=[1] stop=[-1]", 0, 0, 0},
      {"pad", "f64[n,6]", "pads=[1,0,2,0]", 0, 0, 0},
      {"expand", "f64[n,1]", "shape=[n,4]", 0, 0, 0},
      {"tile", "f64[n,2]", "repeats=[1,3]", 0, 0, 0},
      {"stack", "f64[n] f64[n]", NULL, 0, 0, 0},
      {"stop_gradient", "f64[n]", NULL, 0, 0, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++)
    check_types(&kCases[i]);
}

/* Two parts of unknown size: nobody can say where the second starts. */
static void refusals(void **state) {
  (void)state;
  problem p = {
      .c = &(grad_case){"concat", "f64[n] f64[m] f64[k]", NULL, 0, 0, 0}};
  weir_value_id grads[SHAPE_CASE_INPUTS];
  weir_graph *with = NULL;
  weir_error err = WEIR_ERROR_INIT;
  build(&p);
  assert_error(weir_graph_gradients(p.graph, p.loss, p.in, p.in_count, grads,
                                    &with, &err),
               &err, "W2008");
  assert_string_equal(err.message,
                      "gradient of concat: where input 0 starts along axis 0");
  assert_null(with);
  weir_graph_unref(p.graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(elementwise),
                                     cmocka_unit_test(products),
                                     cmocka_unit_test(reductions),
                                     cmocka_unit_test(movements),
                                     cmocka_unit_test(products_with_zeros),
                                     cmocka_unit_test(symbols),
                                     cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
