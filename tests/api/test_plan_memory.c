/* SPDX-License-Identifier: Apache-2.0
 * Plans, with every allocation failing: made, changed, listed, written, read
 * again, compared, carried out. */
#include "tests/api/host.h"

static const char kText[] =
    "weir: 1\n"
    "inputs: {x: 'f32[2, 3] = ones([2, 3])'}\n"
    "nodes:\n"
    "  w: var([3, 4], init=ones())\n"
    "  y: relu(matmul(x, w)) @ /job:worker/task:0\n"
    "  z: reduce_sum(y) @ /job:worker/task:1\n"
    "outputs: [z]\n";

typedef struct text {
  weir_plan_text it;
  char bytes[1 << 16];
} text;

static bool append(void *self, const char *data, size_t size) {
  text *t = self;
  if (t->it.size + size > sizeof t->bytes) return false;
  memcpy(t->bytes + t->it.size, data, size);
  t->it.size += size;
  return true;
}

static bool drop(void *self, const char *data, size_t size) {
  (void)self;
  (void)data;
  (void)size;
  return true;
}

static weir_status list(const weir_plan *plan, weir_error *err) {
  weir_plan_node node = {.struct_size = sizeof node};
  weir_plan_part part = {.struct_size = sizeof part};
  weir_plan_edge edge = {.struct_size = sizeof edge};
  weir_plan_alternative other = {.struct_size = sizeof other};
  weir_status s = weir_plan_node_at(plan, 0, &node, err);
  if (s == WEIR_OK) s = weir_plan_part_at(plan, 0, &part, err);
  if (s == WEIR_OK) s = weir_plan_edge_at(plan, 0, &edge, err);
  if (s == WEIR_OK) s = weir_plan_alternative_at(plan, 0, 0, &other, err);
  return s;
}

/* The plan's JSON makes a plan, which is sound and the same. */
static weir_status read_again(weir_runtime *runtime, const weir_graph *graph,
                              const weir_plan_opts *opts, const weir_plan *plan,
                              weir_error *err) {
  text json = {.it = {.struct_size = sizeof json.it}};
  weir_plan *again = NULL;
  bool same = false;
  json.it.json = json.bytes;
  weir_status s =
      weir_plan_write(plan, WEIR_PLAN_JSON, NULL, append, &json, err);
  if (s == WEIR_OK)
    s = weir_plan_from_json(runtime, graph, opts, &json.it, &again, err);
  if (s == WEIR_OK) s = weir_plan_verify(plan, &json.it, err);
  if (s == WEIR_OK) s = weir_plan_compare(plan, again, &same, drop, NULL, err);
  if (s == WEIR_OK) assert_true(same);
  weir_plan_release(again);
  return s;
}

static weir_status write_all(const weir_plan *plan, weir_error *err) {
  static const weir_plan_form forms[] = {
      WEIR_PLAN_SUMMARY,    WEIR_PLAN_DOT,      WEIR_PLAN_TRACE,
      WEIR_PLAN_CRITICAL,   WEIR_PLAN_HTML,     WEIR_PLAN_PARTS_TEXT,
      WEIR_PLAN_PARTS_JSON, WEIR_PLAN_PARTS_DOT};
  weir_status s =
      weir_plan_write(plan, WEIR_PLAN_EXPLAIN, "z", drop, NULL, err);
  for (size_t i = 0; s == WEIR_OK && i < sizeof forms / sizeof *forms; i++)
    s = weir_plan_write(plan, forms[i], NULL, drop, NULL, err);
  return s;
}

static weir_status carry_out(weir_runtime *runtime, const weir_graph *graph,
                             const weir_plan *plan, weir_tensor **out,
                             weir_error *err) {
  weir_session_opts opts = {.struct_size = sizeof opts, .plan = plan};
  weir_fetch z = WEIR_FETCH("z");
  weir_session *session = NULL;
  weir_status s = weir_session_create(runtime, graph, &opts, &session, err);
  if (s == WEIR_OK)
    s = weir_session_run(session,
                         &(weir_run_request)WEIR_RUN_REQUEST(NULL, 0, &z, 1),
                         NULL, err);
  weir_session_release(session);
  *out = z.tensor;
  return s;
}

static weir_status scenario(host *h, uint64_t limit, weir_tensor **out,
                            weir_error *err) {
  weir_allocator_hook hook = {sizeof hook, h, host_alloc, host_free};
  weir_runtime_opts opts = {.struct_size = sizeof opts,
                            .threads = 1,
                            .memory_limit = limit,
                            .allocator = &hook};
  const char *pins[] = {"w=/job:ps"}, *changes[] = {"add worker"};
  weir_plan_opts place = {.struct_size = sizeof place,
                          .cluster = "ps=1,worker=2",
                          .moves = 20,
                          .pins = pins,
                          .pin_count = 1};
  weir_runtime *runtime = NULL;
  weir_graph *graph = NULL;
  weir_plan *plan = NULL, *changed = NULL;
  weir_status s = weir_runtime_create(&opts, &runtime, err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, kText, sizeof kText - 1, "g", NULL,
                               &graph, err);
  if (s == WEIR_OK) s = weir_plan_create(runtime, graph, &place, &plan, err);
  if (s == WEIR_OK) s = list(plan, err);
  if (s == WEIR_OK) s = write_all(plan, err);
  if (s == WEIR_OK) s = read_again(runtime, graph, &place, plan, err);
  if (s == WEIR_OK) s = carry_out(runtime, graph, plan, out, err);
  place.before = plan;
  place.changes = changes;
  place.change_count = 1;
  if (s == WEIR_OK) s = weir_plan_create(runtime, graph, &place, &changed, err);
  weir_runtime_release(runtime);
  weir_plan_release(changed);
  weir_graph_release(graph);
  weir_plan_release(plan);
  return s;
}

static void test_each_allocation_fails_once(void **state) {
  (void)state;
  sweep(scenario, false);
}

static void test_each_allocation_fails_for_ever(void **state) {
  (void)state;
  sweep(scenario, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_allocation_fails_once),
      cmocka_unit_test(test_each_allocation_fails_for_ever)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
