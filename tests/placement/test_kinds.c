/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/kind.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernel.h"
#include "placement/lower/cost_file_fit.h"
#include "placement/lower/cost_file_read.h"
#include "placement/lower/lower.h"
#include "placement/what_if.h"
#include "runtime/base/env_system.h"
#include "runtime/base/strbuf.h"
#include "runtime/graph/load/load.h"
#include "tests/check.h"

/* Every kind of the list does all that a kind does, without a driver. */

extern const weir_device_kind_def weir_device_kind_null;

static weir_cluster *cluster_of(const char *text) {
  weir_error err = WEIR_ERROR_INIT;
  weir_cluster *c = NULL;
  assert_ok(weir_cluster_from_text(weir_allocator_system(), weir_sv_from(text),
                                   &c, &err),
            &err);
  return c;
}

static void check_row(const weir_device_kind_def *k) {
  size_t name = strlen(k->name), spelling = strlen(k->spelling);
  assert_in_range(name, 1, WEIR_DEVICE_KIND_BYTES - 1);
  assert_in_range(spelling, 1, WEIR_DEVICE_KIND_BYTES - 1);
  for (size_t i = 0; i < name; i++)
    assert_true(islower((unsigned char)k->name[i]));
  for (size_t i = 0; i < spelling; i++)
    assert_int_equal(tolower((unsigned char)k->spelling[i]), k->name[i]);
  assert_true(strlen(k->summary) > 0);
  assert_true(k->model.memory_bytes > 0 && k->model.mflops > 0);
  assert_true(k->model.bytes_per_us > 0 && k->model.overhead_ns >= 0);
  assert_true(k->way.latency_ns >= 0 && k->way.fs_per_byte >= 0);
}

static void rows_are_sound(void **state) {
  (void)state;
  char text[64], expected[64] = "";
  check_row(&weir_device_kind_null);
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
    check_row(weir_device_kinds[k]);
    assert_int_equal(
        weir_device_kind_find(weir_sv_from(weir_device_kinds[k]->name)), k);
  }
  assert_int_equal(weir_device_kind_find(WEIR_SV_LIT("null")), WEIR_DEVICE_ANY);
  assert_int_equal(weir_device_kind_find(WEIR_SV_LIT("")), WEIR_DEVICE_ANY);
  assert_int_equal(weir_device_kind_host(), WEIR_CPU);
  assert_true(weir_device_kinds[weir_device_kind_host()]->every_op);
  snprintf(expected, sizeof expected, "%s%s", weir_device_kinds[0]->name,
           WEIR_DEVICE_KINDS == 2 ? " or " : ", ");
  assert_memory_equal(weir_device_kind_names(text, sizeof text), expected,
                      strlen(expected));
  assert_string_equal(weir_device_kind_names(text, 3), "cp");
}

static void work_is_the_slower_of_both(void **state) {
  (void)state;
  weir_device_model m = {.mflops = 1000, .bytes_per_us = 100};
  assert_int_equal(weir_device_work_ns(&m, 5000, 100), 5000);
  assert_int_equal(weir_device_work_ns(&m, 5000, 1000), 10000);
  assert_int_equal(weir_device_work_ns(&m, 0, 0), 0);
  assert_int_equal(weir_device_work_ns(&m, INT64_MAX, 0),
                   INT64_C(4000000000000000000));
  /* The null kind takes no time for any work of this world. */
  assert_int_equal(
      weir_device_work_ns(&weir_device_kind_null.model, 1 << 30, 1 << 30), 0);
}

static void clusters_have_every_kind(void **state) {
  (void)state;
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
    const weir_device_kind_def *kind = weir_device_kinds[k];
    char text[64], name[128];
    weir_error err = WEIR_ERROR_INIT;
    weir_device_name wanted;
    snprintf(text, sizeof text, "ps=1,worker=2,%s=3", kind->name);
    weir_cluster *c = cluster_of(text);
    assert_int_equal(c->kind_count[k], kind->workers_only ? 6 : 9);
    snprintf(text, sizeof text, "/job:worker/task:1/%s:2", kind->name);
    assert_ok(weir_device_name_parse(weir_sv_from(text), &wanted, NULL, &err),
              &err);
    uint32_t d = 0;
    while (d < c->device_count &&
           !weir_device_name_matches(&wanted, &c->devices[d].name))
      d++;
    assert_true(d < c->device_count);
    snprintf(text, sizeof text, "/job:worker/task:1/device:%s:2",
             kind->spelling);
    weir_device_name_print(&c->devices[d].name, name, sizeof name);
    assert_string_equal(name, text);
    assert_int_equal(c->devices[d].memory_bytes, kind->model.memory_bytes);
    weir_what_if change;
    weir_cluster *more = NULL;
    snprintf(text, sizeof text, "add %s:worker", kind->name);
    assert_ok(weir_what_if_parse(weir_sv_from(text), &change, &err), &err);
    assert_ok(
        weir_cluster_change(weir_allocator_system(), c, &change, &more, &err),
        &err);
    assert_int_equal(more->kind_count[k], c->kind_count[k] + 2);
    weir_cluster_release(more);
    weir_cluster_release(c);
  }
}

static void cost_files_have_every_kind(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_costs *c = NULL, *again = NULL;
  weir_strbuf text;
  assert_ok(weir_costs_create(weir_allocator_system(), &c, &err), &err);
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
    weir_cost_entry e = {.sample = {100 + k, 1, 3}, .flops = 5, .bytes = 6};
    assert_true(weir_costs_set_step(c, &(weir_cost_step){k, 1, e.sample}));
    assert_ok(weir_costs_set(c, k, WEIR_SV_LIT("add(f32[2])"), &e, &err), &err);
  }
  weir_strbuf_init(&text, weir_allocator_system());
  weir_writer w = weir_strbuf_writer(&text);
  assert_true(weir_costs_write(c, &w));
  assert_ok(weir_costs_read(weir_allocator_system(), weir_strbuf_view(&text),
                            "c.costs", &again, &err),
            &err);
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
    const weir_cost_entry *e =
        weir_costs_find(again, k, 1, WEIR_SV_LIT("add(f32[2])"));
    assert_non_null(e);
    assert_int_equal(e->cls, k);
    assert_int_equal(e->sample.median_ns, 100 + k);
    assert_int_equal(weir_costs_step(again, k, 1).median_ns, 100 + k);
    assert_true(weir_sv_is(e->key, "add(f32[2])"));
  }
  weir_strbuf_release(&text);
  weir_costs_release(again);
  weir_costs_release(c);
}

/* Between devices of a task the slower way holds; `local` replaces all. */
static void ways_are_the_kinds(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_cluster *c = cluster_of("worker=1,cpu=2,gpu=1");
  c->local[WEIR_GPU] = (weir_place_link){9000, 50000, true};
  for (int round = 0; round < 2; round++) {
    weir_place_builder *b = NULL;
    weir_place_problem *p = NULL;
    int64_t cost[WEIR_DEVICE_KINDS] = {0};
    weir_place_node_spec spec = {.cost = cost, .group = WEIR_PLACE_NONE};
    assert_ok(weir_place_builder_create(weir_allocator_system(),
                                        WEIR_DEVICE_KINDS, &b, &err),
              &err);
    weir_cluster_add_to(c, b);
    weir_place_add_node(b, &spec);
    assert_ok(weir_place_builder_finish(b, &p, &err), &err);
    const weir_place_link *near = &p->links[p->link_of[0 * 3 + 1]];
    const weir_place_link *far = &p->links[p->link_of[0 * 3 + 2]];
    assert_int_equal(near->latency_ns, round == 0 ? 2000 : 70);
    assert_int_equal(near->fs_per_byte, round == 0 ? 100000 : 7000);
    assert_int_equal(far->latency_ns, round == 0 ? 9000 : 70);
    assert_int_equal(far->fs_per_byte, round == 0 ? 100000 : 7000);
    weir_place_problem_release(p);
    weir_place_builder_release(b);
    weir_cluster_set_local(c, &(weir_place_link){70, 7000, true});
  }
  weir_cluster_release(c);
}

/* A kind that the cluster does not have changes no plan: it costs nothing to
 * the ranks, and the list may grow. */
static void absent_kinds_have_no_costs(void **state) {
  (void)state;
  static const char text[] =
      "weir: 1\nnodes:\n  x: fill([64, 64], 1.0)\n  y: matmul(x, x)\n"
      "outputs: [y]\n";
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = NULL;
  weir_placement *p = NULL;
  weir_load_options load = {.registry = weir_builtin_registry()};
  assert_ok(weir_graph_load_text(weir_env_system(), WEIR_SV_LIT(text), "g.yaml",
                                 &load, &g, &err),
            &err);
  weir_cluster *c = cluster_of("worker=2");
  assert_ok(
      weir_placement_create(weir_allocator_system(), g, c, NULL, &p, &err),
      &err);
  uint32_t y = p->unit_of[weir_graph_find_node(g, WEIR_SV_LIT("y"))];
  const int64_t *cost = p->problem->cost + (size_t)y * WEIR_DEVICE_KINDS;
  const weir_device_model *model = &weir_device_kinds[WEIR_CPU]->model;
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
    if (k != WEIR_CPU) assert_int_equal(cost[k], WEIR_PLACE_NO_KERNEL);
  assert_int_equal(cost[WEIR_CPU],
                   weir_roofline_ns(model, 2 * 64 * 64 * 64, 3 * 64 * 64 * 4));
  weir_placement_release(p);
  weir_cluster_release(c);
  weir_graph_unref(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_sound),
      cmocka_unit_test(work_is_the_slower_of_both),
      cmocka_unit_test(clusters_have_every_kind),
      cmocka_unit_test(cost_files_have_every_kind),
      cmocka_unit_test(ways_are_the_kinds),
      cmocka_unit_test(absent_kinds_have_no_costs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
