/* SPDX-License-Identifier: Apache-2.0
 * f(h, h): a kernel that may write over its first input must not, while it
 * still reads the same value as another input. Each op with such a kernel runs
 * twice: once so that h may be written over, once with h kept as an output. */
#include "runtime/exec/session/session_run.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/maker.h"

typedef struct shared_case {
  const char *op, *call;
} shared_case;

static const shared_case kCases[] = {
    {"softmax_xent_grad", "softmax_xent_grad(h, h, 0.75)"},
    {"layer_norm", "layer_norm(h, h, h)"},
    {"layer_norm_grad", "layer_norm_grad(h, h, h)"},
};
enum { CASES = sizeof kCases / sizeof kCases[0] };

typedef struct bench {
  exec_world world;
  weir_pool *pool;
  weir_tensor *x;
} bench;

static weir_tensor *run(bench *t, const char *call, bool kept) {
  char text[512];
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *graph = NULL;
  weir_exec_session *session = NULL;
  weir_load_options options = {.registry = weir_builtin_registry()};
  snprintf(text, sizeof text,
           "weir: 1\ninputs: {x: \"f32[9]\"}\nnodes:\n"
           "  h: reduce_max(stack(x, neg(x)), axis=0)\n"
           "  y: %s\n"
           "  z: stack(y, y)\n" /* so that y is scratch memory as h is */
           "outputs: [z%s]\n",
           call, kept ? ", h" : "");
  assert_ok(weir_graph_load_text(&t->world.env, weir_sv_from(text), "shared",
                                 &options, &graph, &err),
            &err);
  assert_ok(weir_exec_session_create(&t->world.env, t->pool, graph, NULL,
                                     &session, &err),
            &err);
  weir_exec_feed feed = {graph->inputs[0].value, t->x};
  weir_exec_fetch fetches[2] = {{.value = graph->outputs[0].value}, {0}};
  if (kept) fetches[1].value = graph->outputs[1].value;
  weir_exec_request request = {.feeds = &feed,
                               .feed_count = 1,
                               .fetches = fetches,
                               .fetch_count = kept ? 2 : 1};
  assert_ok(weir_exec_run(session, &request, &err), &err);
  weir_tensor_unref(fetches[1].tensor);
  weir_exec_session_release(session);
  weir_graph_unref(graph);
  return fetches[0].tensor;
}

static void a_value_read_twice_is_not_written_over(void **state) {
  (void)state;
  bench t;
  int64_t dims[] = {9};
  exec_world_init(&t.world);
  t.pool = exec_pool(&t.world, 1);
  t.x = f32_tensor(&t.world.memory.base, 1, dims, NULL);
  for (int i = 0; i < 9; i++)
    ((float *)t.x->data)[i] = (float)((i * 37) % 11) / 4;
  for (int i = 0; i < CASES; i++) {
    weir_tensor *free_h = run(&t, kCases[i].call, false);
    weir_tensor *kept_h = run(&t, kCases[i].call, true);
    assert_memory_equal(free_h->data, kept_h->data, kept_h->bytes);
    weir_tensor_unref(free_h);
    weir_tensor_unref(kept_h);
  }
  weir_tensor_unref(t.x);
  weir_pool_release(t.pool);
  exec_world_check_empty(&t.world);
}

/* Several inputs, of which two can be one value of h's one dimension: not
 * batch_norm and its like, whose x has more, and sparse_softmax_xent_grad,
 * whose first has more than the others, nor an optimiser, whose first is a
 * variable, which is not scratch memory. */
static bool needs_case(const weir_kernel_def *kernel) {
  if (!kernel->in_place || strncmp(kernel->op, "apply_", 6) == 0 ||
      strncmp(kernel->op, "batch_norm", 10) == 0 ||
      strcmp(kernel->op, "sparse_softmax_xent_grad") == 0)
    return false;
  const weir_op_def *op =
      weir_registry_find_op(weir_builtin_registry(), weir_sv_from(kernel->op));
  assert_non_null(op);
  return (op->flags & WEIR_OP_ELEMENTWISE) == 0 && op->inputs[1].name != NULL;
}

static void every_such_kernel_has_a_case(void **state) {
  (void)state;
  int found = 0;
  for (size_t k = 0; k < weir_builtin_kernel_count; k++) {
    const weir_kernel_def *kernel = weir_builtin_kernels[k];
    bool listed = false;
    if (!needs_case(kernel)) continue;
    for (int i = 0; i < CASES; i++)
      listed = listed || strcmp(kCases[i].op, kernel->op) == 0;
    if (!listed) fail_msg("%s writes in place and has no case", kernel->name);
    found++;
  }
  assert_true(found >= CASES);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_value_read_twice_is_not_written_over),
      cmocka_unit_test(every_such_kernel_has_a_case)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
