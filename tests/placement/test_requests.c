/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "kernels/kernel.h"
#include "placement/lower/lower_kernels.h"
#include "placement/lower/lower_rules_read.h"
#include "placement/place.h"
#include "runtime/base/env_system.h"
#include "runtime/base/strbuf.h"
#include "runtime/graph/load/load.h"
#include "tests/check.h"

/* Requests for devices: rules, wishes, preferences, and devices that have no
 * kernels. */

static weir_graph *load(const char *text) {
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = NULL;
  weir_load_options o = {.registry = weir_builtin_registry()};
  assert_ok(weir_graph_load_text(weir_env_system(), weir_sv_from(text),
                                 "g.yaml", &o, &g, &err),
            &err);
  return g;
}

/* ---- Rules by index */

static uint32_t next_random(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 16;
}

/* A short text of few letters, so that many patterns fit many names. */
static void random_text(uint32_t *seed, bool pattern, char *out) {
  static const char *const forms[] = {"op:relu", "op:*", "op:re*", "op:matmul",
                                      "kind:var"};
  size_t n = 1 + next_random(seed) % 4;
  if (pattern && next_random(seed) % 8 == 0) {
    snprintf(out, 16, "%s", forms[next_random(seed) % 5]);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    uint32_t r = next_random(seed) % (pattern ? 12 : 8);
    out[i] = r < 4 ? 'a' : r < 8 ? 'b' : r < 10 ? '*' : r == 10 ? '?' : '/';
  }
  out[n] = '\0';
}

enum { RULES = 40, NODES = 60, ROUNDS = 60 };

static void make_random_graph(uint32_t seed, weir_strbuf *out) {
  char text[16], line[160];
  weir_writer w = weir_strbuf_writer(out);
  const char *head =
      "weir: 1\ninputs: {x: \"f32[4, 4] = 1.0\"}\n"
      "nodes:\n  n: relu(x)\n";
  w.write(w.self, head, strlen(head));
  for (int i = 0; i < NODES; i++) {
    random_text(&seed, false, text);
    int n = snprintf(line, sizeof line, "  %s%d: %s\n", text, i % 7 + 10 * i,
                     i % 3 == 0   ? "relu(x)"
                     : i % 3 == 1 ? "matmul(x, x)"
                                  : "var([4], init=1.0)");
    w.write(w.self, line, (size_t)n);
  }
  const char *tail = "outputs: [n]\nplacement:\n";
  w.write(w.self, tail, strlen(tail));
  for (int i = 0; i < RULES; i++) {
    random_text(&seed, true, text);
    int n = snprintf(line, sizeof line, "  - {match: \"%s\"}\n", text);
    w.write(w.self, line, (size_t)n);
  }
}

static void the_index_finds_the_first_rule(void **state) {
  (void)state;
  uint32_t met = 0;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_strbuf text;
    weir_lower_rules rules;
    weir_strbuf_init(&text, weir_allocator_system());
    make_random_graph(round * 7919 + 1, &text);
    weir_graph *g = load(text.data);
    assert_ok(weir_lower_rules_read(weir_allocator_system(), g->placement,
                                    &rules, &err),
              &err);
    assert_int_equal(rules.count, RULES);
    for (weir_node_id id = 0; id < g->node_count; id++) {
      uint32_t want = 0;
      while (want < rules.count && !weir_place_pattern_matches(
                                       rules.items[want].match, &g->nodes[id]))
        want++;
      uint32_t found = weir_lower_rules_find(&rules, &g->nodes[id]);
      assert_int_equal(found, want < rules.count ? want : WEIR_PLACE_NONE);
      met += want < rules.count && want > 0;
    }
    weir_lower_rules_release(&rules);
    weir_graph_unref(g);
    weir_strbuf_release(&text);
  }
  assert_true(met > 500);
}

/* ---- Wishes */

static const char kTrained[] =
    "weir: 1\ninputs: {x: \"f32[8, 4] = 1.0\", t: \"f32[8, 1] = 0.0\"}\n"
    "nodes:\n  w: var([4, 1], init=0.5)\n  y: matmul(x, w)\n"
    "  loss: mse(y, t)\noutputs: [y]\n"
    "train: {minimize: loss, optimizer: sgd(lr=0.1), epochs: 1}\n";

typedef struct asked {
  uint32_t times;
} asked;

static bool count_asks(void *self) {
  ((asked *)self)->times++;
  return false;
}

static void a_wish_for_no_node_is_refused_at_once(void **state) {
  (void)state;
  weir_graph *g = load(kTrained);
  asked a = {0};
  weir_place_wish wish = {.node = WEIR_SV_LIT("nobody"),
                          .device = weir_device_name_any()};
  weir_place_request r = {.graph = g,
                          .cluster = "worker=2",
                          .wishes = &wish,
                          .wish_count = 1,
                          .options = {.moves = 100000},
                          .stop = count_asks,
                          .stop_self = &a};
  for (int inference = 0; inference < 2; inference++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_placing *placing = NULL;
    weir_plan *plan = NULL;
    r.inference = inference == 1;
    assert_error(
        weir_placing_create(weir_allocator_system(), &r, &placing, &plan, &err),
        &err, "W0002");
    assert_error(weir_place_graph(weir_allocator_system(), &r, &plan, &err),
                 &err, "W0002");
  }
  assert_int_equal(a.times, 0);
  /* One that is in the training step alone is a session's. */
  wish.node = WEIR_SV_LIT("train/w/apply");
  weir_error err = WEIR_ERROR_INIT;
  weir_placing *placing = NULL;
  weir_plan *plan = NULL;
  assert_ok(
      weir_placing_create(weir_allocator_system(), &r, &placing, &plan, &err),
      &err);
  weir_plan_unref(plan);
  weir_placing_unref(placing);
  weir_graph_unref(g);
}

/* ---- Devices without kernels */

/* No GPU has kernels for layers of so many steps. */
static const char kRuled[] =
    "weir: 1\ninputs: {x: \"f32[1, 65537, 1] = 1\"}\n"
    "nodes:\n  w: var([1, 1], init=2)\n  v: var([4], init=0.5)\n"
    "  y, h: rnn(x, w, w)\n  z, g: rnn(y, w, w)\noutputs: [z, v]\n"
    "placement:\n  - {match: \"none*\", device: \"/cpu\"}\n"
    "  - {match: \"z\", prefer: [gpu, cpu]}\n"
    "  - {match: \"none\", prefer: [gpu, cpu]}\n"
    "  - {match: \"y/*\", with: nobody}\n  - {match: \"v\", with: w}\n";

typedef struct told {
  uint32_t fallbacks, unmet;
} told;

static void note(void *self, const weir_diag *diag) {
  told *t = self;
  const char *id = diag->error.id;
  t->fallbacks += strcmp(id, "W3002") == 0;
  t->unmet += strcmp(id, "W3003") == 0;
}

static weir_status place(const weir_allocator *a, const weir_graph *g,
                         const weir_diag_sink *sink, uint32_t assumed,
                         weir_plan **out, weir_error *err) {
  weir_place_request r = {.graph = g,
                          .cluster = "worker=1,gpu=1",
                          .sink = sink,
                          .options = {.portfolio_only = true,
                                      .strictness = WEIR_PLACE_WARN,
                                      .assumed_kinds = assumed}};
  return weir_place_graph(a, &r, out, err);
}

static void what_takes_no_time_is_with_its_readers(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = load(kRuled);
  told t = {0};
  weir_diag_sink sink = {&t, note};
  weir_plan *plan = NULL;
  assert_ok(place(weir_allocator_system(), g, &sink, 0, &plan, &err), &err);
  const weir_placement *p = plan->placement;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    assert_int_equal(plan->result.plan->device[u], 0);
    bool work = p->units[u].lacks != 0;
    assert_true(work != p->units[u].with_readers);
    assert_int_equal(p->problem->cost[u * p->problem->class_count + WEIR_GPU] ==
                         WEIR_PLACE_NO_KERNEL,
                     work);
  }
  assert_int_equal(t.fallbacks, 1);
  assert_int_equal(t.unmet,
                   3); /* two rules match nothing, one is with nobody */
  assert_int_equal(weir_lower_fallen_back(p), 1);
  assert_int_equal(weir_lower_lacks(p), 1u << WEIR_GPU);
  assert_false(weir_lower_has_use(p, WEIR_GPU));
  weir_plan_unref(plan);
  /* With kernels assumed nothing falls back and nothing is kept away. */
  t = (told){0};
  assert_ok(
      place(weir_allocator_system(), g, &sink, 1u << WEIR_GPU, &plan, &err),
      &err);
  p = plan->placement;
  assert_int_equal(t.fallbacks, 0);
  assert_int_equal(weir_lower_lacks(p), 0);
  for (uint32_t u = 0; u < p->unit_count; u++)
    assert_false(p->units[u].with_readers);
  weir_plan_unref(plan);
  weir_graph_unref(g);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  weir_graph *g = load(kRuled);
  told t = {0};
  weir_diag_sink sink = {&t, note};
  bool done = false;
  for (uint64_t k = 1; !done; k++)
    for (int for_ever = 0; for_ever < 2; for_ever++) {
      weir_counted_allocator memory;
      weir_error err = WEIR_ERROR_INIT;
      weir_plan *plan = NULL;
      weir_counted_allocator_init(&memory, NULL);
      memory.fail_at = k;
      memory.fail_forever = for_ever != 0;
      weir_status s = place(&memory.base, g, &sink, 0, &plan, &err);
      done = atomic_load(&memory.calls) < k;
      if (done)
        assert_ok(s, &err);
      else
        assert_true(s == WEIR_OK || strcmp(err.id, "W6001") == 0);
      weir_plan_unref(plan);
      assert_int_equal(atomic_load(&memory.live_blocks), 0);
    }
  weir_graph_unref(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_index_finds_the_first_rule),
      cmocka_unit_test(a_wish_for_no_node_is_refused_at_once),
      cmocka_unit_test(what_takes_no_time_is_with_its_readers),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
