/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/kernel.h"
#include "placement/place.h"
#include "placement/replica/replica.h"
#include "runtime/base/env_system.h"
#include "runtime/graph/load/load.h"
#include "tests/check.h"

/* A job between graphs: the plan of one replica is of the two sides, its copies
 * are the pulls and pushes that are printed, and no others. */

#define NET                                            \
  "weir: 1\n"                                          \
  "inputs: {x: 'f32[8, 6]', label: 'i64[8]'}\n"        \
  "nodes:\n"                                           \
  "  u: var([6, 5], init=uniform(-1, 1))\n"            \
  "  w: var([5, 3], init=uniform(-1, 1))\n"            \
  "  frozen: var([5], trainable=false)\n"              \
  "  n: state([])\n"                                   \
  "  count: assign_add(n, 1)\n"                        \
  "  h: tanh(add(matmul(x, u), frozen))\n"             \
  "  y: matmul(h, w)\n"                                \
  "  loss: mean(sparse_softmax_xent(y, label))\n"      \
  "outputs: [y]\n"                                     \
  "placement: [{match: '*', device: '/job:worker'}]\n" \
  "train: {minimize: loss, optimizer: adam(lr=0.1)"

static weir_status place(const weir_allocator *alloc, const char *text,
                         const char *cluster, weir_plan **out,
                         weir_error *err) {
  weir_env env = *weir_env_system();
  env.alloc = alloc;
  weir_load_options load = {.registry = weir_builtin_registry()};
  weir_graph *graph = NULL;
  *out = NULL;
  WEIR_TRY(
      weir_graph_load_text(&env, weir_sv_from(text), "g", &load, &graph, err));
  weir_place_request request = {.graph = graph,
                                .cluster = cluster,
                                .options = {.moves = 10},
                                .replica = true};
  weir_status s = weir_place_graph(alloc, &request, out, err);
  weir_graph_unref(graph);
  return s;
}

static weir_plan *plan_of(const char *text, const char *cluster) {
  weir_error err = WEIR_ERROR_INIT;
  weir_plan *plan = NULL;
  assert_ok(place(weir_allocator_system(), text, cluster, &plan, &err), &err);
  return plan;
}

/* Bytes between the template and server |server|, by the plan's copies. */
static uint64_t copied(const weir_plan *plan, uint32_t server, bool push,
                       uint32_t *count) {
  const weir_cluster *c = plan->placing->cluster;
  uint64_t bytes = 0;
  *count = 0;
  for (uint32_t i = 0; i < plan->view.plan->copy_count; i++) {
    const weir_place_copy *copy = &plan->view.plan->copies[i];
    uint32_t ps = push ? copy->to : copy->from;
    uint32_t worker = push ? copy->from : copy->to;
    const weir_cluster_task *t = &c->tasks[c->devices[ps].task];
    if (!weir_sv_is(t->job, "ps") || t->index != server ||
        c->devices[worker].task != plan->placing->replica->task)
      continue;
    bytes += (uint64_t)plan->view.problem->tensor_bytes[copy->tensor];
    ++*count;
  }
  return bytes;
}

static void edges_are_the_copies(void **state) {
  (void)state;
  static const char *const kModes[] = {
      ", mode: async}\n", ", mode: 'sync(aggregate=2)'}\n",
      ", mode: 'bounded(staleness=3)', clip: {global_norm: 1}}\n",
      ", replicate: between_graph}\n"};
  for (size_t m = 0; m < sizeof kModes / sizeof *kModes; m++) {
    char text[1024];
    snprintf(text, sizeof text, "%s%s", NET, kModes[m]);
    weir_plan *plan = plan_of(text, "ps=2,worker=3");
    const weir_place_replica *r = plan->placing->replica;
    assert_non_null(r);
    assert_int_equal(r->replicas, 3);
    assert_int_equal(r->servers, 2);
    for (uint32_t server = 0; server < 2; server++)
      for (int push = 0; push < 2; push++) {
        uint32_t count = 0, have = 0;
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < r->edge_count; i++) {
          const weir_replica_edge *e = &r->edges[i];
          if (e->server != server || e->push != (push != 0)) continue;
          bytes += e->bytes;
          count++;
        }
        /* A plan copies no constant: assign_add's 1, the frozen variable. */
        uint64_t got = copied(plan, server, push != 0, &have);
        assert_true(got <= bytes && bytes - got <= (push != 0 ? 8 : 20));
        assert_true(have <= count && count - have <= 1);
      }
    weir_plan_unref(plan);
  }
}

/* No node is on another replica; a server holds what the table says. */
static void sides_are_kept(void **state) {
  (void)state;
  weir_plan *plan = plan_of(NET ", mode: async}\n", "ps=1,worker=2,gpu=1");
  const weir_place_replica *r = plan->placing->replica;
  const weir_cluster *c = plan->placing->cluster;
  uint64_t held = 0;
  assert_true(weir_sv_is(r->mode, "async"));
  for (uint32_t n = 0; n < plan->view.plan->node_count; n++) {
    uint32_t d = plan->view.plan->device[n];
    assert_false(weir_replica_is_hidden(r, c, d));
    const weir_unit *u = &plan->placement->units[n];
    const weir_node *node = &plan->placement->graph->nodes[u->node];
    bool ps = weir_sv_is(c->tasks[c->devices[d].task].job, "ps");
    bool var = node->op->instr == WEIR_INSTR_VAR_READ;
    if (var) assert_true(ps);
    if (strncmp(node->op->name, "apply_", 6) == 0) assert_true(ps);
    if (strcmp(node->op->name, "matmul") == 0) assert_false(ps);
    if (var && ps) held += (uint64_t)plan->view.problem->resident_bytes[n];
  }
  /* Each with a spare buffer; the frozen one is a constant of the plan. */
  assert_int_equal(held, 2 * r->held[0] - 40);
  weir_plan_unref(plan);
}

static void names_of_all(void **state) {
  (void)state;
  char text[160];
  weir_plan *plan = plan_of(NET ", mode: async}\n", "ps=1,worker=2");
  const weir_place_replica *r = plan->placing->replica;
  const weir_cluster *c = plan->placing->cluster;
  assert_true(weir_sv_is(weir_replica_device(r, c, 0, text, sizeof text),
                         "/job:ps/task:0/device:CPU:0"));
  assert_true(weir_sv_is(weir_replica_device(r, c, 1, text, sizeof text),
                         "/job:worker/task:*/device:CPU:0"));
  assert_true(weir_replica_is_hidden(r, c, 2));
  weir_plan_unref(plan);
  plan = plan_of(NET "}\n", "ps=1,worker=2");
  assert_null(plan->placing->replica);
  weir_plan_unref(plan);
}

static void clusters_are_refused(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan *plan;
  const weir_allocator *a = weir_allocator_system();
  assert_error(place(a, NET ", mode: async}\n", "worker=2", &plan, &err), &err,
               "W3020");
  assert_error(place(a, NET ", mode: async}\n", "ps=2", &plan, &err), &err,
               "W3020");
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++) {
    bool done = false;
    for (uint64_t k = 1; !done; k += forever != 0 ? 7 : 3) {
      weir_counted_allocator c;
      weir_counted_allocator_init(&c, NULL);
      c.fail_at = k;
      c.fail_forever = forever != 0;
      weir_error err = WEIR_ERROR_INIT;
      weir_plan *plan = NULL;
      weir_status s =
          place(&c.base, NET ", mode: async}\n", "ps=2,worker=2", &plan, &err);
      weir_plan_unref(plan);
      assert_int_equal(atomic_load(&c.live_blocks), 0);
      done = atomic_load(&c.calls) < k;
      if (done)
        assert_ok(s, &err);
      else if (s != WEIR_OK)
        assert_string_equal(err.id, "W6001");
      assert_true(k < 100000);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(edges_are_the_copies), cmocka_unit_test(sides_are_kept),
      cmocka_unit_test(names_of_all), cmocka_unit_test(clusters_are_refused),
      cmocka_unit_test(every_allocation_may_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
