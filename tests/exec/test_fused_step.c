/* SPDX-License-Identifier: Apache-2.0
 * apply_sgd in the group of the product that makes its gradient: the same bits
 * as one after the other, and a bad learning rate is refused before anything
 * is computed. */
#include <math.h>

#include "runtime/exec/session/binding.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/maker.h"

static const char kText[] =
    "weir: 1\n"
    "inputs:\n"
    "  x: f32[9, 40]\n"
    "  y: f32[9, 30]\n"
    "  rate: f32[]\n"
    "nodes:\n"
    "  w: var([40, 30], init=uniform(-1, 1))\n"
    "  step: apply_sgd(w, matmul(x, y, transpose_a=true), rate, l2=0.25)\n"
    "outputs: [step]\n";

typedef struct sink {
  char text[8192];
  size_t used;
} sink;

static bool keep(void *self, const char *data, size_t size) {
  sink *s = self;
  if (s->used + size >= sizeof s->text) return false;
  memcpy(s->text + s->used, data, size);
  s->used += size;
  return true;
}

typedef struct step {
  exec_world world;
  weir_pool *pool;
  weir_graph *graph;
  weir_tensor *in[3];
} step;

static weir_tensor *numbers(step *s, int64_t rows, int64_t columns) {
  int64_t dims[] = {rows, columns};
  weir_tensor *t = f32_tensor(&s->world.memory.base, 2, dims, NULL);
  for (int64_t i = 0; i < rows * columns; i++)
    ((float *)t->data)[i] = (float)((i * 7919) % 201 - 100) / 100;
  return t;
}

static void begin_step(step *s) {
  weir_error err = WEIR_ERROR_INIT;
  weir_load_options options = {.registry = weir_builtin_registry()};
  exec_world_init(&s->world);
  s->pool = exec_pool(&s->world, 2);
  assert_ok(weir_graph_load_text(&s->world.env, weir_sv_from(kText), "step",
                                 &options, &s->graph, &err),
            &err);
  s->in[0] = numbers(s, 9, 40);
  s->in[1] = numbers(s, 9, 30);
  s->in[2] = f32_scalar(&s->world.memory.base, 0.1f);
}

static void end_step(step *s) {
  for (int i = 0; i < 3; i++) weir_tensor_unref(s->in[i]);
  weir_graph_unref(s->graph);
  weir_pool_release(s->pool);
  exec_world_check_empty(&s->world);
}

/* |out|: the new variable; |kernels|: those that compute it. */
static weir_status run(step *s, bool fused, weir_tensor **out, sink *kernels,
                       weir_error *err) {
  weir_exec_session *session = NULL;
  weir_binding *binding = NULL;
  weir_session_options options = {.no_fusion = !fused};
  weir_exec_feed feeds[3];
  for (int i = 0; i < 3; i++)
    feeds[i] = (weir_exec_feed){s->graph->inputs[i].value, s->in[i]};
  weir_exec_fetch fetch = {.value = s->graph->outputs[0].value};
  assert_ok(weir_exec_session_create(&s->world.env, s->pool, s->graph, &options,
                                     &session, err),
            err);
  weir_exec_request request = {
      .feeds = feeds, .feed_count = 3, .fetches = &fetch, .fetch_count = 1};
  assert_ok(weir_exec_bind(session, &request, &binding, err), err);
  weir_writer writer = {kernels, keep};
  assert_true(weir_binding_describe(binding, &writer));
  weir_status status = weir_binding_run(binding, NULL, err);
  weir_binding_release(binding);
  weir_exec_session_release(session);
  *out = fetch.tensor;
  return status;
}

static void test_same_bits(void **state) {
  (void)state;
  step s;
  static sink fused, single;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *a = NULL, *b = NULL;
  begin_step(&s);
  assert_ok(run(&s, true, &a, &fused, &err), &err);
  assert_ok(run(&s, false, &b, &single, &err), &err);
  assert_non_null(strstr(fused.text, "cpu.matmul_fused"));
  assert_null(strstr(fused.text, "cpu.matmul "));
  assert_null(strstr(single.text, "cpu.matmul_fused"));
  assert_int_equal(a->bytes, b->bytes);
  assert_memory_equal(a->data, b->data, a->bytes);
  weir_tensor_unref(a);
  weir_tensor_unref(b);
  end_step(&s);
}

static void test_bad_rate(void **state) {
  (void)state;
  static const float kBad[] = {-1, NAN, INFINITY};
  step s;
  begin_step(&s);
  for (int i = 0; i < 6; i++) {
    static sink kernels;
    weir_error err = WEIR_ERROR_INIT;
    weir_tensor *out = NULL;
    *(float *)s.in[2]->data = kBad[i / 2];
    assert_int_not_equal(run(&s, i % 2 == 0, &out, &kernels, &err), WEIR_OK);
    assert_string_equal(err.id, "W5008");
    weir_tensor_unref(out);
  }
  end_step(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits),
                                     cmocka_unit_test(test_bad_rate)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
