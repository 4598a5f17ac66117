/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/kernel.h"
#include "placement/check.h"
#include "placement/lower/lower.h"
#include "placement/plan_read.h"
#include "placement/report/dump.h"
#include "placement/report/dump_critical.h"
#include "placement/report/dump_diff.h"
#include "placement/report/dump_dot.h"
#include "placement/report/dump_explain.h"
#include "placement/report/dump_json.h"
#include "runtime/base/env_system.h"
#include "runtime/base/strbuf.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/pass/pass_fuse.h"
#include "runtime/graph/pass/pass_simplify.h"
#include "tests/check.h"

/* A graph's text, its outputs' groups. */
static weir_graph *load(const char *text) {
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = NULL, *simple = NULL, *fused = NULL;
  weir_load_options o = {.registry = weir_builtin_registry()};
  assert_ok(weir_graph_load_text(weir_env_system(), weir_sv_from(text),
                                 "g.yaml", &o, &g, &err),
            &err);
  weir_value_id wanted[8];
  for (uint32_t i = 0; i < g->output_count; i++)
    wanted[i] = g->outputs[i].value;
  weir_simplify_options s = {
      .values = wanted, .value_count = g->output_count, .drop_inits = true};
  assert_ok(weir_graph_simplify(g, &s, NULL, NULL, &simple, &err), &err);
  assert_ok(weir_graph_fuse(simple, NULL, 0, &fused, &err), &err);
  weir_graph_unref(simple);
  weir_graph_unref(g);
  return fused;
}

static weir_cluster *cluster_of(const char *text) {
  weir_error err = WEIR_ERROR_INIT;
  weir_cluster *c = NULL;
  assert_ok(weir_cluster_from_text(weir_allocator_system(), weir_sv_from(text),
                                   &c, &err),
            &err);
  return c;
}

static weir_status lower(const char *text, const char *cluster,
                         weir_place_strictness strictness, weir_placement **out,
                         weir_cluster **out_cluster, weir_error *err) {
  weir_graph *g = load(text);
  *out_cluster = cluster_of(cluster);
  weir_lower_options o = {.strictness = strictness};
  weir_status s = weir_placement_create(weir_allocator_system(), g,
                                        *out_cluster, &o, out, err);
  weir_graph_unref(g);
  return s;
}

static uint32_t unit_named(const weir_placement *p, const char *name) {
  weir_node_id id = weir_graph_find_node(p->graph, weir_sv_from(name));
  assert_int_not_equal(id, UINT32_MAX);
  return p->unit_of[id];
}

#define RULES(text)                          \
  "weir: 1\nnodes:\n"                        \
  "  x: fill([64, 64], 1.0)\n"               \
  "  w: var([64, 64], init=ones())\n"        \
  "  v: var([8, 64], init=ones())\n"         \
  "  y: relu(matmul(stop_gradient(w), w))\n" \
  "  z: add(y, reduce_sum(v, axis=0))\noutputs: [z]\nplacement:\n" text

static void variables_go_where_rules_say(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_placement *p = NULL;
  weir_cluster *c = NULL;
  assert_ok(lower(RULES("  - {match: \"kind:var\", device: /job:ps, balance: "
                        "bytes}\n"
                        "  - {match: \"*\", device: /job:worker}\n"),
                  "ps=2,worker=2", WEIR_PLACE_STRICT, &p, &c, &err),
            &err);
  weir_place_result r;
  assert_ok(
      weir_place_solve(weir_allocator_system(), p->problem, NULL, &r, &err),
      &err);
  uint32_t w = r.plan->device[unit_named(p, "w")];
  uint32_t v = r.plan->device[unit_named(p, "v")];
  assert_true(w < 2 && v < 2 && w != v); /* one on each ps */
  assert_true(r.plan->device[unit_named(p, "z")] >= 2);
  /* Nothing assigns w: its reader's device holds it. */
  uint32_t stamp[4];
  int64_t bytes[4];
  assert_int_equal(p->problem->resident_bytes[unit_named(p, "w")], 0);
  weir_place_resident(p->problem, r.plan->device, bytes, stamp);
  assert_int_equal(bytes[w], 0);
  assert_true(bytes[r.plan->device[unit_named(p, "z")]] >= 16384);
  weir_place_plan_release(r.plan);
  weir_placement_release(p);
  weir_cluster_release(c);
}

static void what_lasts_is_counted_where_it_is(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_placement *p = NULL;
  weir_cluster *c = NULL;
  assert_ok(lower("weir: 1\ninputs: {x: \"f32[100]\"}\nnodes:\n"
                  "  v: var([100], init=ones())\n"
                  "  w: var([100], init=ones())\n"
                  "  h: neg(reduce_sum(add(x, w)))\n"
                  "  s: softmax(add(x, v))\n"
                  "  a: assign(v, s)\n"
                  "  y: reshape(softmax(x), [10, 10])\n"
                  "outputs: [h, a, y]\n",
                  "worker=2", WEIR_PLACE_STRICT, &p, &c, &err),
            &err);
  const int64_t *lasts = p->problem->resident_bytes;
  assert_int_equal(lasts[unit_named(p, "x")], 400); /* fed */
  assert_int_equal(lasts[unit_named(p, "w")], 0);   /* h's, which reads it */
  assert_int_equal(p->problem->constant_count, 1);
  assert_int_equal(p->problem->constant_bytes[0], 400);
  assert_int_equal(p->problem->constant_home[0], unit_named(p, "w"));
  assert_int_equal(p->problem->reader_first[1], 1);
  assert_true(p->problem->reader_node[0] < unit_named(p, "h"));
  assert_int_equal(lasts[unit_named(p, "v")], 800); /* before and after */
  assert_int_equal(lasts[unit_named(p, "h")], 4);   /* an output */
  assert_int_equal(lasts[unit_named(p, "y")],
                   0); /* the bytes of the viewed tensor */
  weir_placement_release(p);
  weir_cluster_release(c);
}

static void a_group_is_one_unit(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_placement *p = NULL;
  weir_cluster *c = NULL;
  assert_ok(lower("weir: 1\ninputs: {a: \"f32[8, 8]\", b: \"f32[8, 8]\"}\n"
                  "nodes:\n  y: relu(add(matmul(a, b), 1.0))\n"
                  "outputs: [y]\n",
                  "auto", WEIR_PLACE_WARN, &p, &c, &err),
            &err);
  assert_int_equal(p->unit_count, 3); /* a, b, the group */
  assert_int_equal(p->units[2].member_count, 3);
  assert_string_equal(p->graph->nodes[p->units[2].anchor].op->name, "matmul");
  weir_placement_release(p);
  weir_cluster_release(c);
}

static void count_warnings(void *self, const weir_diag *diag) {
  assert_int_equal(diag->severity, WEIR_SEVERITY_WARNING);
  ++*(int *)self;
}

static void requests_are_refused_or_dropped(void **state) {
  (void)state;
  static const char hard[] =
      "weir: 1\ninputs: {a: \"f32[8]\"}\n"
      "nodes:\n  y: relu(a) @ /job:ps\noutputs: [y]\n";
  weir_error err = WEIR_ERROR_INIT;
  weir_placement *p = NULL;
  weir_cluster *c = NULL;
  assert_error(lower(hard, "worker=2", WEIR_PLACE_WARN, &p, &c, &err), &err,
               "W3002");
  assert_int_equal(err.line, 4);
  assert_non_null(strstr(err.hint, "/job:worker/task:1"));
  weir_cluster_release(c);
  assert_null(p);
  weir_graph *g = load(hard);
  c = cluster_of("worker=2");
  int warnings = 0;
  weir_diag_sink sink = {&warnings, count_warnings};
  weir_lower_options o = {.strictness = WEIR_PLACE_SOFT, .sink = &sink};
  assert_ok(weir_placement_create(weir_allocator_system(), g, c, &o, &p, &err),
            &err);
  assert_int_equal(warnings, 1);
  assert_true(p->units[unit_named(p, "y")].relaxed);
  weir_placement_release(p);
  weir_cluster_release(c);
  weir_graph_unref(g);
}

static void a_conflict_names_its_core(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_placement *p = NULL;
  weir_cluster *c = NULL;
  assert_error(lower("weir: 1\nnodes:\n"
                     "  w: var([8], init=ones()) @ /job:ps\n"
                     "  n: assign(w, mul(w, 2.0)) @ /job:worker\n"
                     "outputs: [n]\n",
                     "ps=1,worker=1", WEIR_PLACE_WARN, &p, &c, &err),
               &err, "W3012");
  assert_non_null(strstr(err.message, "w (line 3"));
  assert_non_null(strstr(err.message, "n (line 4"));
  weir_cluster_release(c);
}

static void clusters_are_read(void **state) {
  (void)state;
  weir_cluster *c = cluster_of("ps=1,worker=2,gpu=2,cpu=1");
  assert_int_equal(c->device_count, 1 + 2 * 3);
  assert_int_equal(c->task_count, 3);
  assert_true(
      weir_sv_is(c->devices[2].text, "/job:worker/task:0/device:GPU:0"));
  weir_cluster_release(c);
  static const char *const bad[] = {"",      "ps",        "ps=0",  "ps=x",
                                    "PS=1",  "ps=1,ps=2", "gpu=1", "ps=9999",
                                    "a=1,,", "cpu=0,a=1"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    weir_error err = WEIR_ERROR_INIT;
    assert_error(weir_cluster_from_text(weir_allocator_system(),
                                        weir_sv_from(bad[i]), &c, &err),
                 &err, "W3020");
    assert_int_equal(weir_error_exit_code(err.id), 2);
  }
}

static void a_cluster_section_is_read(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = load(
      "weir: 1\nnodes: {a: \"fill([2], 1.0)\"}\noutputs: [a]\ncluster:\n"
      "  ps: [\"h:1\"]\n  worker: 2\n"
      "  devices: {cpu: {memory: 2GiB, gflops: 0.5, overhead: 3us}}\n"
      "  network: {latency: 7us, bandwidth: 1GB/s, send_overhead: 2us,\n"
      "            send_bandwidth: 4GB/s}\n");
  weir_cluster *c = NULL;
  assert_ok(
      weir_cluster_from_yaml(weir_allocator_system(), g->cluster, &c, &err),
      &err);
  assert_int_equal(c->task_count, 3);
  assert_true(weir_sv_is(c->tasks[0].address, "h:1"));
  assert_int_equal(c->classes[0].model.memory_bytes, INT64_C(2) << 30);
  assert_int_equal(c->classes[0].model.mflops, 500);
  assert_int_equal(c->network.latency_ns, 7000);
  assert_int_equal(c->network.fs_per_byte, 1000000);
  assert_int_equal(c->network.send_ns, 2000);
  assert_int_equal(c->network.send_fs_per_byte, 250000);
  weir_cluster_release(c);
  weir_graph_unref(g);
}

/* ---- Dumps */

static void a_plan_is_written_and_read_again(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_placement *p = NULL;
  weir_cluster *c = NULL;
  const weir_allocator *a = weir_allocator_system();
  assert_ok(lower(RULES("  - {match: \"kind:var\", device: /job:ps}\n"
                        "  - {match: \"*\", device: /job:worker}\n"),
                  "ps=1,worker=2", WEIR_PLACE_WARN, &p, &c, &err),
            &err);
  weir_place_result r;
  int64_t peaks[3];
  assert_ok(weir_place_solve(a, p->problem, NULL, &r, &err), &err);
  assert_ok(weir_place_check(a, p->problem, r.plan, peaks, &err), &err);
  weir_place_view view = {a, p->problem, r.plan, &r.bounds, p, peaks};
  weir_strbuf one, two, text;
  weir_strbuf_init(&one, a);
  weir_strbuf_init(&two, a);
  weir_strbuf_init(&text, a);
  weir_writer w1 = weir_strbuf_writer(&one), w2 = weir_strbuf_writer(&two),
              w3 = weir_strbuf_writer(&text);
  assert_true(weir_place_write_json(&view, &w1));
  weir_place_plan *again = NULL;
  assert_ok(weir_place_plan_read(a, p->problem, weir_strbuf_view(&one), "p",
                                 &again, &err),
            &err);
  assert_ok(weir_place_check(a, p->problem, again, NULL, &err), &err);
  assert_memory_equal(again->start_ns, r.plan->start_ns,
                      p->unit_count * sizeof(int64_t));
  bool same = false;
  weir_place_view other = view;
  other.plan = again;
  assert_true(weir_place_write_diff(&other, &view, &w2, &same));
  assert_true(same);
  assert_true(weir_place_write_summary(&view, &w3));
  assert_true(weir_place_write_table(&view, &w3));
  assert_true(weir_place_write_dot(&view, &w3));
  assert_true(weir_place_write_trace(&view, &w3));
  assert_ok(weir_place_write_critical(&view, &w3, &err), &err);
  assert_ok(weir_place_write_memory(&view, 0, &w3, &err), &err);
  for (uint32_t u = 0; u < p->unit_count; u++)
    assert_ok(weir_place_write_explain(&view, u, &w3, &err), &err);
  assert_non_null(strstr(text.data, "rule 1 of placement, g.yaml:"));
  assert_non_null(strstr(text.data, "a request forbids it"));
  /* Any cut of the JSON is refused. */
  for (size_t cut = 0; cut + 2 < one.size; cut += 7) {
    weir_place_plan *bad = NULL;
    assert_int_not_equal(
        weir_place_plan_read(a, p->problem, (weir_sv){one.data, cut}, "p", &bad,
                             &err),
        WEIR_OK);
    assert_null(bad);
  }
  weir_strbuf_release(&one);
  weir_strbuf_release(&two);
  weir_strbuf_release(&text);
  weir_place_plan_release(again);
  weir_place_plan_release(r.plan);
  weir_placement_release(p);
  weir_cluster_release(c);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  weir_graph *g =
      load(RULES("  - {match: \"kind:var\", device: /job:ps, "
                 "balance: bytes}\n"));
  weir_counted_allocator m;
  for (uint64_t k = 1;; k++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_cluster *c = NULL;
    weir_placement *p = NULL;
    weir_counted_allocator_init(&m, NULL);
    m.fail_at = k;
    weir_status s =
        weir_cluster_from_text(&m.base, WEIR_SV_LIT("ps=2,worker=2"), &c, &err);
    if (s == WEIR_OK) s = weir_placement_create(&m.base, g, c, NULL, &p, &err);
    weir_placement_release(p);
    weir_cluster_release(c);
    assert_int_equal(atomic_load(&m.live_bytes), 0);
    if (s == WEIR_OK) break;
    assert_string_equal(err.id, "W6001");
  }
  weir_graph_unref(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(variables_go_where_rules_say),
      cmocka_unit_test(what_lasts_is_counted_where_it_is),
      cmocka_unit_test(a_group_is_one_unit),
      cmocka_unit_test(requests_are_refused_or_dropped),
      cmocka_unit_test(a_conflict_names_its_core),
      cmocka_unit_test(clusters_are_read),
      cmocka_unit_test(a_cluster_section_is_read),
      cmocka_unit_test(a_plan_is_written_and_read_again),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
