/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/lower/cost_file.h"
#include "placement/lower/cost_file_fit.h"
#include "placement/lower/cost_file_read.h"
#include "runtime/base/env_system.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/pass/pass_fuse.h"
#include "runtime/graph/pass/pass_simplify.h"

#include <string.h>

#include "kernels/kernel.h"
#include "placement/lower/lower.h"
#include "placement/lower/signature.h"
#include "runtime/base/strbuf.h"
#include "tests/check.h"

/* ---- The file */

static const char kSound[] =
    "weir-costs 1\n"
    "machine build weir 1\n"
    "machine cpu Some CPU @ 2.00GHz\n"
    "step cpu 420 31 15\n"
    "step cpu*4 99 31 15\n"
    "link in-process 0 900 55 5 6 12 31\n"
    "link in-process 65536 0 120 0 0 8 31\n"
    "link cpu->gpu 0 999 62500 0 0 3 126\n"
    "link gpu->gpu 0 7 8 9 10 0 126\n"
    "unit cpu 250 10 31 64 512 add(f32[64], f32[64]) -> f32[64]\n"
    "unit cpu 90000 12 31 2000000 30000 matmul(f32[100,100]) -> f32[100,100]\n"
    "unit cpu*4 30 1 9 64 512 add(f32[64], f32[64]) -> f32[64]\n"
    "unit gpu 7 0 1 0 64 add(f32[64], f32[64]) -> f32[64]\n";

static weir_status read_text(const weir_allocator *a, const char *text,
                             weir_costs **out, weir_error *err) {
  return weir_costs_read(a, weir_sv_from(text), "c.costs", out, err);
}

static void write_text(const weir_costs *c, weir_strbuf *out) {
  weir_strbuf_init(out, weir_allocator_system());
  weir_writer w = weir_strbuf_writer(out);
  assert_true(weir_costs_write(c, &w));
}

static void a_file_reads_and_writes_the_same(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_costs *c = NULL;
  weir_strbuf text;
  assert_ok(read_text(weir_allocator_system(), kSound, &c, &err), &err);
  const weir_cost_entry *e =
      weir_costs_find(c, 0, 1, WEIR_SV_LIT("add(f32[64], f32[64]) -> f32[64]"));
  assert_non_null(e);
  assert_int_equal(e->sample.median_ns, 250);
  assert_int_equal(e->sample.spread_permille, 10);
  assert_int_equal(e->sample.count, 31);
  assert_int_equal(e->bytes, 512);
  e = weir_costs_find(c, 0, 4, WEIR_SV_LIT("add(f32[64], f32[64]) -> f32[64]"));
  assert_int_equal(e->sample.median_ns, 30);
  assert_int_equal(e->threads, 4);
  assert_null(weir_costs_find(c, 0, 2,
                              WEIR_SV_LIT("add(f32[64], f32[64]) -> f32[64]")));
  assert_int_equal(weir_costs_step(c, 0, 4).median_ns, 99);
  assert_int_equal(weir_costs_step(c, 0, 2).count, 0);
  e = weir_costs_find(c, 1, 1, WEIR_SV_LIT("add(f32[64], f32[64]) -> f32[64]"));
  assert_int_equal(e->sample.median_ns, 7);
  assert_null(weir_costs_find(c, 1, 1, WEIR_SV_LIT("add")));
  assert_int_equal(weir_costs_step(c, 0, 1).median_ns, 420);
  assert_int_equal(c->piece_count, 2);
  assert_int_equal(c->pieces[1].fs_per_byte, 120);
  write_text(c, &text);
  assert_string_equal(text.data, kSound);
  weir_strbuf_release(&text);
  weir_costs_release(c);
}

static void order_of_setting_does_not_show(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  static const char *const keys[] = {"b()", "a()", "c()", "ab()"};
  weir_strbuf texts[2];
  for (int turn = 0; turn < 2; turn++) {
    weir_costs *c = NULL;
    assert_ok(weir_costs_create(weir_allocator_system(), &c, &err), &err);
    for (int i = 0; i < 8; i++) { /* each twice: the later one counts */
      int k = turn == 0 ? i % 4 : 3 - i % 4;
      weir_cost_entry e = {.sample = {i < 4 ? 1 : 10 + k, 0, 1}};
      assert_ok(weir_costs_set(c, 0, weir_sv_from(keys[k]), &e, &err), &err);
    }
    assert_ok(weir_costs_set_fact(c, weir_sv_from(turn == 0 ? "x" : "y"),
                                  WEIR_SV_LIT("1"), &err),
              &err);
    assert_ok(weir_costs_set_fact(c, weir_sv_from(turn == 0 ? "y" : "x"),
                                  WEIR_SV_LIT("1"), &err),
              &err);
    write_text(c, &texts[turn]);
    weir_costs_release(c);
  }
  assert_string_equal(texts[0].data, texts[1].data);
  weir_strbuf_release(&texts[0]);
  weir_strbuf_release(&texts[1]);
}

static void malformed_lines_are_refused_with_their_place(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint32_t line, col;
  } cases[] = {
      {"", 1, 1},
      {"weir-costs 2\n", 1, 1},
      {"weir-costs 1\nunits cpu\n", 2, 1},
      {"weir-costs 1\n\n# fine\nunit tpu 1 1 1 1 1 k\n", 4, 6},
      {"weir-costs 1\nunit cpu x 1 1 1 1 k\n", 2, 10},
      {"weir-costs 1\nunit cpu nan 1 1 1 1 k\n", 2, 10},
      {"weir-costs 1\nunit cpu 5.5 1 1 1 1 k\n", 2, 10},
      {"weir-costs 1\nunit cpu 5us 1 1 1 1 k\n", 2, 10},
      {"weir-costs 1\nunit cpu* 5 1 1 1 1 k\n", 2, 6},
      {"weir-costs 1\nunit cpu*1 5 1 1 1 1 k\n", 2, 6},
      {"weir-costs 1\nunit cpu*257 5 1 1 1 1 k\n", 2, 6},
      {"weir-costs 1\nunit cpu*x 5 1 1 1 1 k\n", 2, 6},
      {"weir-costs 1\nunit gpu*2 5 1 1 1 1 k\n", 2, 6},
      {"weir-costs 1\nmachine threads 4\n", 2, 17},
      {"weir-costs 1\nunit cpu -5 1 1 1 1 k\n", 2, 10},
      {"weir-costs 1\nunit cpu 99999999999999999999 1 1 1 1 k\n", 2, 10},
      {"weir-costs 1\nunit cpu 5  1 1 1 1 k\n", 2, 12},
      {"weir-costs 1\nunit cpu 5 1 1 1 1\n", 2, 19},
      {"weir-costs 1\nunit cpu 5 1 1 1 1 k\nunit cpu 5 1 1 1 1 k\n", 3, 20},
      {"weir-costs 1\nstep cpu 5 1\n", 2, 13},
      {"weir-costs 1\nstep cpu 5 1 1 1\n", 2, 16},
      {"weir-costs 1\nmachine cpu\n", 2, 12},
      {"weir-costs 1\nlink tcp 0 1 1 1 1 1 1\n", 2, 6},
      {"weir-costs 1\nlink in-process 9 1 1 0 0 1 1\n"
       "link in-process 9 1 1 0 0 1 1\n",
       3, 17},
      {"weir-costs 1\nlink cpu->tpu 0 1 1 1 1 1 1\n", 2, 6},
      {"weir-costs 1\nlink -> 0 1 1 1 1 1 1\n", 2, 6},
      {"weir-costs 1\nlink cpu->gpu 9 1 1 1 1 1 1\n", 2, 15},
      {"weir-costs 1\nlink cpu->gpu 0 1 1 1 1 1\n", 2, 26},
      {"weir-costs 1\nlink cpu->gpu 0 1 1 1 1 1 1\n"
       "link cpu->gpu 0 1 1 1 1 1 1\n",
       3, 6},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_costs *c = NULL;
    assert_error(read_text(weir_allocator_system(), cases[i].text, &c, &err),
                 &err, "W3045");
    assert_null(c);
    if (err.line != cases[i].line || err.col != cases[i].col)
      fail_msg("case %zu: %u:%u %s", i, err.line, err.col, err.message);
    assert_string_equal(err.file, "c.costs");
  }
}

static void reading_survives_every_failed_allocation(void **state) {
  (void)state;
  bool done = false;
  for (uint64_t k = 1; !done; k++)
    for (int for_ever = 0; for_ever < 2; for_ever++) {
      weir_counted_allocator memory;
      weir_error err = WEIR_ERROR_INIT;
      weir_costs *c = NULL;
      weir_counted_allocator_init(&memory, NULL);
      memory.fail_at = k;
      memory.fail_forever = for_ever != 0;
      weir_status s = read_text(&memory.base, kSound, &c, &err);
      done = atomic_load(&memory.calls) < k;
      if (done)
        assert_ok(s, &err);
      else
        assert_error(s, &err, "W6001");
      weir_costs_release(c);
      assert_int_equal(atomic_load(&memory.live_blocks), 0);
    }
}

static void another_machine_is_told(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_costs *c = NULL, *other = NULL;
  weir_sv theirs;
  assert_ok(read_text(weir_allocator_system(), kSound, &c, &err), &err);
  assert_ok(read_text(weir_allocator_system(),
                      "weir-costs 1\nmachine build weir 1\n"
                      "machine cpu Another\n",
                      &other, &err),
            &err);
  const weir_cost_fact *f = weir_costs_differ(c, other, &theirs);
  assert_non_null(f);
  assert_true(weir_sv_is(f->name, "cpu") && weir_sv_is(theirs, "Another"));
  assert_null(weir_costs_differ(c, c, &theirs));
  weir_costs_release(c);
  weir_costs_release(other);
}

/* ---- Estimates */

static void estimates_lie_between_what_was_measured(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_costs *c = NULL;
  const weir_cluster_class cpu = {.threads = 1,
                                  .model = {INT64_MAX, 100000, 10000, 500}};
  static const char text[] =
      "weir-costs 1\n"
      "unit cpu 1000 0 9 0 20000 add(f32[1000])\n"
      "unit cpu 4000 0 9 0 80000 add(f32[4000])\n"
      "unit cpu 50000 0 9 0 100000 gather(f32[5000])\n";
  assert_ok(read_text(weir_allocator_system(), text, &c, &err), &err);
  weir_cost_fit fit = weir_costs_fit(c, &cpu);
  assert_true(fit.fitted);
  int64_t same =
      weir_costs_estimate(&fit, WEIR_SV_LIT("add(f32[4000]!)"), 0, 80000);
  int64_t between =
      weir_costs_estimate(&fit, WEIR_SV_LIT("{add(f32[2000])}"), 0, 40000);
  int64_t dear =
      weir_costs_estimate(&fit, WEIR_SV_LIT("gather(f32[2000])"), 0, 40000);
  assert_in_range(same, 3990, 4010);
  assert_in_range(between, 1001, 3999);
  assert_true(dear > 2 * between);
  /* Without costs: the model's own roofline. */
  fit = weir_costs_fit(NULL, &cpu);
  assert_int_equal(weir_costs_estimate(&fit, WEIR_SV_LIT("add()"), 0, 80000),
                   8500);
  weir_costs_release(c);
}

/* ---- Signatures and looking up */

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

static const char kGraph[] =
    "weir: 1\n"
    "inputs: {x: \"f32[8, 16]\"}\n"
    "nodes:\n"
    "  w: var([16, 4], init=ones())\n"
    "  v: var([4], init=ones())\n"
    "  h: relu(add(matmul(x, w), v))\n"
    "  s: reduce_sum(h, axis=0)\n"
    "  a: assign(v, s)\n"
    "outputs: [h, a]\n";

static weir_placement *lowered(const weir_graph *g, const weir_cluster *cluster,
                               const weir_costs *costs) {
  weir_error err = WEIR_ERROR_INIT;
  weir_placement *p = NULL;
  weir_lower_options o = {.costs = costs};
  assert_ok(
      weir_placement_create(weir_allocator_system(), g, cluster, &o, &p, &err),
      &err);
  return p;
}

static void key_of(const weir_placement *p, const char *node,
                   weir_strbuf *out) {
  weir_error err = WEIR_ERROR_INIT;
  weir_signer signer;
  const weir_unit *u =
      &p->units[p->unit_of[weir_graph_find_node(p->graph, weir_sv_from(node))]];
  assert_ok(
      weir_signer_create(weir_allocator_system(), p->graph, &signer, &err),
      &err);
  weir_strbuf_init(out, weir_allocator_system());
  assert_ok(weir_sign(&signer, p->members + u->first_member, u->member_count,
                      out, &err),
            &err);
  weir_signer_release(&signer);
}

static void a_unit_is_found_by_its_signature(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = load(kGraph);
  weir_cluster *cluster = NULL;
  weir_costs *c = NULL;
  weir_strbuf key;
  assert_ok(weir_cluster_from_text(weir_allocator_system(),
                                   WEIR_SV_LIT("worker=2"), &cluster, &err),
            &err);
  weir_placement *p = lowered(g, cluster, NULL);
  key_of(p, "h", &key);
  /* w is never assigned, so it is packed before the run; v is assigned. */
  assert_string_equal(key.data,
                      "{matmul(0, 1); add(%0, 2); relu(%1)}(f32[8,16], "
                      "f32[16,4]!, f32[4]) -> f32[8,4]");
  assert_ok(weir_costs_create(weir_allocator_system(), &c, &err), &err);
  weir_cost_entry e = {.sample = {4321, 5, 9}, .flops = 1, .bytes = 1};
  assert_ok(weir_costs_set(c, 0, weir_strbuf_view(&key), &e, &err), &err);
  weir_placement_release(p);
  p = lowered(g, cluster, c);
  uint32_t u = p->unit_of[weir_graph_find_node(p->graph, WEIR_SV_LIT("h"))];
  uint32_t r = p->unit_of[weir_graph_find_node(p->graph, WEIR_SV_LIT("s"))];
  assert_int_equal(p->problem->cost[u * WEIR_DEVICE_KINDS], 4321);
  assert_int_equal(p->units[u].source, WEIR_COST_MEASURED);
  assert_non_null(p->units[u].measured[0]);
  assert_int_equal(p->units[r].source, WEIR_COST_ESTIMATED);
  assert_true(p->problem->cost[r * WEIR_DEVICE_KINDS] > 0);
  weir_strbuf_release(&key);
  weir_placement_release(p);
  weir_costs_release(c);
  weir_cluster_release(cluster);
  weir_graph_unref(g);
}

static void loops_differ_by_their_bodies(void **state) {
  (void)state;
  static const char text[] =
      "weir: 1\n"
      "inputs: {x: \"f32[6]\", y: \"f32[6]\"}\n"
      "nodes:\n"
      "  a: {scan: {over: {e: x}, carry: {s: 0}, next: {s: 'add(s, e)'}}}\n"
      "  b: {scan: {over: {e: y}, carry: {s: 0}, next: {s: 'add(s, e)'}}}\n"
      "  c: {scan: {over: {e: y}, carry: {s: 0}, next: {s: 'mul(s, e)'}}}\n"
      "outputs: {a: a.s, b: b.s, c: c.s}\n";
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = load(text);
  weir_cluster *cluster = NULL;
  assert_ok(weir_cluster_from_text(weir_allocator_system(), WEIR_SV_LIT("auto"),
                                   &cluster, &err),
            &err);
  weir_placement *p = lowered(g, cluster, NULL);
  weir_strbuf a, b, c;
  key_of(p, "a", &a);
  key_of(p, "b", &b);
  key_of(p, "c", &c);
  assert_string_equal(a.data, b.data);
  assert_string_not_equal(b.data, c.data);
  weir_strbuf_release(&a);
  weir_strbuf_release(&b);
  weir_strbuf_release(&c);
  weir_placement_release(p);
  weir_cluster_release(cluster);
  weir_graph_unref(g);
}

static void lowering_with_costs_survives_failed_allocations(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = load(kGraph);
  weir_cluster *cluster = NULL;
  weir_costs *c = NULL;
  assert_ok(weir_cluster_from_text(weir_allocator_system(),
                                   WEIR_SV_LIT("worker=2"), &cluster, &err),
            &err);
  assert_ok(read_text(weir_allocator_system(), kSound, &c, &err), &err);
  bool done = false;
  for (uint64_t k = 1; !done; k++) {
    weir_counted_allocator memory;
    weir_placement *p = NULL;
    weir_lower_options o = {.costs = c};
    weir_counted_allocator_init(&memory, NULL);
    memory.fail_at = k;
    weir_status s =
        weir_placement_create(&memory.base, g, cluster, &o, &p, &err);
    done = atomic_load(&memory.calls) < k;
    if (done)
      assert_ok(s, &err);
    else
      assert_error(s, &err, "W6001");
    weir_placement_release(p);
    assert_int_equal(atomic_load(&memory.live_blocks), 0);
  }
  weir_costs_release(c);
  weir_cluster_release(cluster);
  weir_graph_unref(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_reads_and_writes_the_same),
      cmocka_unit_test(order_of_setting_does_not_show),
      cmocka_unit_test(malformed_lines_are_refused_with_their_place),
      cmocka_unit_test(reading_survives_every_failed_allocation),
      cmocka_unit_test(another_machine_is_told),
      cmocka_unit_test(estimates_lie_between_what_was_measured),
      cmocka_unit_test(a_unit_is_found_by_its_signature),
      cmocka_unit_test(loops_differ_by_their_bodies),
      cmocka_unit_test(lowering_with_costs_survives_failed_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
