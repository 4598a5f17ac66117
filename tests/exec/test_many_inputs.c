/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "runtime/exec/session/session_run.h"
#include "tests/exec/maker.h"

/* Ops with hundreds of inputs: as many as a model has variables. */

enum { INPUTS = 400 };

static float number(int i, int k) {
  return (float)(i - 50 * k);
}

/* [i % 3 + 1] numbers for each i. */
static void add_inputs(maker *m, char (*names)[16], weir_value_id *in) {
  for (int i = 0; i < INPUTS; i++) {
    weir_dim dims[1] = {weir_dim_of(1 + i % 3)};
    float numbers[3];
    for (int k = 0; k < 3; k++) numbers[k] = number(i, k);
    snprintf(names[i], sizeof names[i], "c%d", i);
    in[i] = constant(m, names[i], 1, dims, numbers);
  }
}

static void check(const weir_tensor *norm, const weir_tensor *all) {
  const float *joined = all->data;
  double sum = 0;
  int64_t at = 0;
  for (int i = 0; i < INPUTS; i++)
    for (int k = 0; k <= i % 3; k++) {
      assert_true(joined[at++] == number(i, k));
      sum += (double)number(i, k) * (double)number(i, k);
    }
  assert_int_equal(weir_shape_elements(&all->shape), at);
  assert_true(*(const float *)norm->data == (float)sqrt(sum));
}

static void hundreds_of_inputs(void **state) {
  (void)state;
  exec_world world;
  weir_error err = WEIR_ERROR_INIT;
  maker m;
  char names[INPUTS][16];
  weir_value_id in[INPUTS];
  weir_exec_session *session = NULL;
  exec_world_init(&world);
  begin(&m, &world.memory.base);
  add_inputs(&m, names, in);
  /* One input that is no constant: nothing can be computed beforehand. */
  weir_value_id x = input(&m, "x", WEIR_F32, 0, NULL, WEIR_NO_VALUE);
  in[7] = NODE(&m, "fed", "mul", in[7], x);
  weir_exec_fetch fetch[] = {
      {.value = add_attrs(&m, "norm", "global_norm", INPUTS, in, NULL)},
      {.value = add_attrs(&m, "all", "concat", INPUTS, in, NULL)}};
  weir_graph *graph = finish(&m);
  weir_pool *pool = exec_pool(&world, 2);
  weir_tensor *one = f32_scalar(&world.memory.base, 1);
  weir_exec_feed feed[] = {{x, one}};
  assert_ok(
      weir_exec_session_create(&world.env, pool, graph, NULL, &session, &err),
      &err);
  weir_exec_request request = {
      .feeds = feed, .feed_count = 1, .fetches = fetch, .fetch_count = 2};
  assert_ok(weir_exec_run(session, &request, &err), &err);
  check(fetch[0].tensor, fetch[1].tensor);
  weir_tensor_unref(one);
  weir_tensor_unref(fetch[0].tensor);
  weir_tensor_unref(fetch[1].tensor);
  weir_exec_session_release(session);
  weir_graph_unref(graph);
  weir_pool_release(pool);
  exec_world_check_empty(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(hundreds_of_inputs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
