/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/graph/grad/gradients.h"
#include "tests/ops/case.h"
#include "tests/ops/graph_eval.h"

/* Central differences of step h are off by about h^2 f''' and 1e-16 f / h. */
#define STEP 1e-5
#define RTOL 1e-6
#define ATOL 1e-7

/* A graph with room for its values; those of inputs are given. */
typedef struct evaluation {
  const weir_graph *graph;
  weir_tensor **values;
} evaluation;

static bool evaluation_create(evaluation *e, const weir_graph *graph,
                              const op_case *c, const weir_value_id *in) {
  *e = (evaluation){graph, calloc(graph->value_count + 1, sizeof *e->values)};
  for (uint32_t i = 0; i < c->in_count && e->values != NULL; i++)
    if (c->in[i] != NULL) e->values[in[i]] = c->in[i]; /* lent */
  return e->values != NULL;
}

static void evaluation_release(evaluation *e) {
  if (e->values != NULL) graph_eval_release(e->graph, e->values);
  free(e->values);
}

/* The case with its float inputs of |dtype|. */
static bool convert(const op_case *c, weir_dtype dtype, op_case *out) {
  *out = *c;
  for (uint32_t i = 0; i < CASE_INPUTS; i++) {
    weir_error err = WEIR_ERROR_INIT;
    const weir_tensor *x = c->in[i];
    out->in[i] = NULL;
    if (x == NULL) continue;
    if (weir_tensor_create_shaped(
            weir_allocator_system(),
            weir_dtype_is_float(x->dtype) ? dtype : x->dtype, &x->shape,
            &out->in[i], &err) != WEIR_OK)
      return false;
    for (int64_t k = 0; k < weir_shape_elements(&x->shape); k++)
      if (weir_dtype_is_float(x->dtype))
        weir_tensor_set_f64(out->in[i], k, weir_tensor_get_f64(x, k));
      else
        weir_tensor_set_i64(out->in[i], k, weir_tensor_get_i64(x, k));
  }
  return true;
}

static void convert_release(op_case *c) {
  for (uint32_t i = 0; i < CASE_INPUTS; i++) weir_tensor_unref(c->in[i]);
}

/* Which inputs have a gradient, and where it stands in |wrt|. */
static uint32_t wanted(const op_case *c, const weir_value_id *in,
                       weir_value_id *wrt, uint32_t *which) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->in_count; i++) {
    if (c->in[i] == NULL || !weir_dtype_is_float(c->in[i]->dtype)) continue;
    which[count] = i;
    wrt[count++] = in[i];
  }
  return count;
}

/* |out[i]|: the gradient of input |i|, a reference; NULL where it has none.
 * |ref|: on the reference kernels. */
static weir_status gradients(const op_case *c, bool ref, weir_tensor **out,
                             weir_diag *diag) {
  weir_graph *graph = NULL, *derived = NULL;
  weir_value_id in[CASE_INPUTS], wrt[CASE_INPUTS], grads[CASE_INPUTS], loss = 0;
  uint32_t which[CASE_INPUTS], count = 0;
  evaluation e = {0};
  weir_status s = op_case_build_loss(c, &graph, in, &loss, diag);
  if (s == WEIR_OK) {
    count = wanted(c, in, wrt, which);
    s = weir_graph_gradients(graph, loss, wrt, count, grads, &derived,
                             &diag->error);
  }
  if (s == WEIR_OK && !evaluation_create(&e, derived, c, in))
    s = WEIR_RESOURCE_EXHAUSTED;
  if (s == WEIR_OK)
    s = graph_eval(derived, derived->value_count - 1, ref, e.values,
                   &diag->error);
  for (uint32_t i = 0; i < count && s == WEIR_OK; i++)
    out[which[i]] = weir_tensor_ref(e.values[grads[i]]);
  evaluation_release(&e);
  weir_graph_unref(derived);
  weir_graph_unref(graph);
  return s;
}

/* The loss with element |k| of |x|, one of the inputs, moved by |by|. */
static double loss_at(evaluation *e, weir_value_id loss, weir_tensor *x,
                      int64_t k, double by) {
  weir_error err = WEIR_ERROR_INIT;
  double was = weir_tensor_get_f64(x, k), result = NAN;
  weir_tensor_set_f64(x, k, was + by);
  if (graph_eval(e->graph, loss, true, e->values, &err) == WEIR_OK)
    result = weir_tensor_get_f64(e->values[loss], 0);
  graph_eval_release(e->graph, e->values);
  weir_tensor_set_f64(x, k, was);
  return result;
}

static bool is_near(double got, double want, double rtol, double atol) {
  return fabs(got - want) <= atol + rtol * fabs(want);
}

/* All elements of input |i|'s gradient. */
static bool check_input(evaluation *e, const op_case *c, weir_value_id loss,
                        uint32_t i, const weir_tensor *got, char *why,
                        size_t capacity) {
  if (!weir_shape_equal(&got->shape, &c->in[i]->shape)) {
    snprintf(why, capacity, "gradient of input %u has another shape", i);
    return false;
  }
  for (int64_t k = 0; k < weir_shape_elements(&got->shape); k++) {
    double up = loss_at(e, loss, c->in[i], k, STEP);
    double down = loss_at(e, loss, c->in[i], k, -STEP);
    double want = (up - down) / (2 * STEP), g = weir_tensor_get_f64(got, k);
    if (is_near(g, want, RTOL, ATOL)) continue;
    snprintf(why, capacity,
             "gradient of input %u, element %lld: %.9g, by differences %.9g", i,
             (long long)k, g, want);
    return false;
  }
  return true;
}

static bool check_differences(const op_case *c, weir_tensor *const *got,
                              char *why, size_t capacity) {
  weir_graph *graph = NULL;
  weir_value_id in[CASE_INPUTS], loss = 0;
  weir_diag diag = {.error = WEIR_ERROR_INIT};
  evaluation e = {0};
  bool same = op_case_build_loss(c, &graph, in, &loss, &diag) == WEIR_OK &&
              evaluation_create(&e, graph, c, in);
  for (uint32_t i = 0; i < c->in_count && same; i++)
    if (got[i] != NULL)
      same = check_input(&e, c, loss, i, got[i], why, capacity);
  evaluation_release(&e);
  weir_graph_unref(graph);
  return same;
}

/* The gradients in f32 are those in f64, rounded along the way. */
static bool check_single(const op_case *c, bool ref, weir_tensor *const *want,
                         char *why, size_t capacity) {
  weir_tensor *got[CASE_INPUTS] = {NULL};
  weir_diag diag = {.error = WEIR_ERROR_INIT};
  op_case single;
  bool same = convert(c, WEIR_F32, &single);
  if (same && gradients(&single, ref, got, &diag) != WEIR_OK) {
    snprintf(why, capacity, "gradient in f32: %s %s", diag.error.id,
             diag.error.message);
    same = false;
  }
  for (uint32_t i = 0; i < CASE_INPUTS && same; i++)
    if (got[i] != NULL)
      same = op_compare(got[i], want[i], 1e-3, 1e-3, why, capacity);
  for (uint32_t i = 0; i < CASE_INPUTS; i++) weir_tensor_unref(got[i]);
  convert_release(&single);
  return same;
}

static bool check_on(const op_case *c, bool ref, char *why, size_t capacity) {
  weir_tensor *got[CASE_INPUTS] = {NULL};
  weir_diag diag = {.error = WEIR_ERROR_INIT};
  op_case wide;
  bool same = convert(c, WEIR_F64, &wide);
  snprintf(why, capacity, "gradient: cannot be computed");
  if (same && gradients(&wide, ref, got, &diag) != WEIR_OK) {
    snprintf(why, capacity, "gradient: %s %s", diag.error.id,
             diag.error.message);
    same = false;
  }
  if (same) same = check_differences(&wide, got, why, capacity);
  if (same) same = check_single(&wide, ref, got, why, capacity);
  for (uint32_t i = 0; i < CASE_INPUTS; i++) weir_tensor_unref(got[i]);
  convert_release(&wide);
  return same;
}

bool op_case_check_grad(const op_case *c, char *why, size_t capacity) {
  char text[512];
  if (!check_on(c, true, why, capacity)) return false;
  if (check_on(c, false, text, sizeof text)) return true;
  snprintf(why, capacity, "on the kernels of first choice: %s", text);
  return false;
}
