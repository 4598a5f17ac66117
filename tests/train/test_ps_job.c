/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ps_check.h"

/* What all tasks of a job with parameter servers know: lists, numbers, a hash.
 */

static const weir_split_var *var_of(const ps_world *w, const char *name) {
  const weir_split *s = w->job->split;
  for (uint32_t i = 0; i < s->var_count; i++)
    if (weir_sv_is(s->vars[i].name, name)) return &s->vars[i];
  fail_msg("no variable %s", name);
  return NULL;
}

static bool has(const uint32_t *list, uint32_t count, uint32_t what) {
  uint32_t seen = 0;
  for (uint32_t i = 0; i < count; i++) seen += list[i] == what;
  assert_true(seen <= 1);
  return seen == 1;
}

/* ---- Lists */

/* Each variable is held once, each trained one is pulled, no slot is. */
static void check_vars(const ps_world *w) {
  const weir_split *s = w->job->split;
  for (uint32_t v = 0; v < s->var_count; v++) {
    uint32_t held = 0, pulled = 0;
    for (uint32_t k = 0; k < s->server_count; k++) {
      const weir_ps_lists *l = &w->job->servers[k];
      bool here = has(l->held, l->held_count, v);
      bool sent = has(l->pulls, l->pull_count, v);
      held += here;
      pulled += sent;
      assert_true(here || !sent);
      if (here && s->vars[v].server != WEIR_SPLIT_ALL)
        assert_int_equal(s->vars[v].server, k);
      if (here && s->vars[v].server == WEIR_SPLIT_ALL) assert_int_equal(k, 0);
    }
    assert_int_equal(held, 1);
    if (s->vars[v].push != UINT32_MAX) assert_int_equal(pulled, 1);
    if (s->vars[v].of != UINT32_MAX) assert_int_equal(pulled, 0);
  }
}

/* The pushes of a server are the inputs of its update. */
static void check_pushes(const ps_world *w) {
  const weir_split *s = w->job->split;
  for (uint32_t k = 0; k < s->server_count; k++) {
    const weir_ps_lists *l = &w->job->servers[k];
    assert_int_equal(l->push_count + w->job->given_step,
                     s->updates[k].graph->input_count);
    for (uint32_t i = 0; i < l->push_count; i++) {
      assert_true(s->updates[k].pushes[l->pushes[i]] != WEIR_NO_VALUE);
      assert_true(weir_ps_push_bytes(w->job, l->pushes[i]) > 0);
      assert_true(i == 0 || l->pushes[i] > l->pushes[i - 1]);
    }
  }
}

/* Whether variables are cut, and that pieces make up the whole. */
static void check_cut(const ps_world *w, bool cut) {
  const weir_split *s = w->job->split;
  uint32_t pieces = 0;
  for (uint32_t v = 0; v < s->var_count; v++) {
    const weir_split_rows *rows = &s->vars[v].rows;
    pieces += rows->all > 0;
    if (rows->all == 0) continue;
    bool last = rows->first + rows->count == rows->all;
    assert_true(weir_ps_var_begins(w->job, v) == (rows->first == 0));
    if (!last) {
      assert_int_equal(s->vars[v + 1].node, s->vars[v].node);
      assert_int_equal(s->vars[v + 1].rows.first, rows->first + rows->count);
      assert_int_equal(s->vars[v + 1].rows.offset,
                       rows->offset + s->vars[v].bytes);
    }
  }
  assert_true(cut == (pieces > 0));
}

static void lists_have_each_value_once(void **state) {
  (void)state;
  static const char *const kModes[] = {
      "  mode: async\n", "  mode: sync(aggregate=3)\n",
      "  mode: bounded(staleness=2)\n", "  mode: async\n  ps: {split: 20}\n"};
  for (size_t i = 0; i < 4; i++)
    for (uint32_t servers = 1; servers <= 4; servers++) {
      ps_world w;
      assert_ok(ps_world_open(&w, PS_NET, kModes[i], servers, 2), &w.err);
      check_vars(&w);
      check_pushes(&w);
      check_cut(&w, i == 3 && servers > 1);
      assert_int_equal(w.job->given_step, i != 1);
      assert_int_equal(w.job->number_count, 2);
      assert_true(weir_sv_is(w.job->metrics[0].name, "acc"));
      assert_int_equal(w.job->numbers[0], w.job->split->loss);
      assert_int_equal(var_of(&w, "train/global_step")->server, WEIR_SPLIT_ALL);
      ps_world_close(&w);
    }
}

/* A variable that a metric alone reads is pulled too; one that nothing of a
 * worker's run reads is not. */
static void pulls_are_those_of_a_run(void **state) {
  (void)state;
  static const char kText[] =
      "weir: 1\ninputs: {x: 'f32[4]'}\nnodes:\n"
      "  w: var([], init=ones())\n"
      "  v: var([], init=ones())\n"
      "  n: state([], dtype=i64)\n"
      "  count: assign_add(n, 1)\n"
      "  loss: add(mean(mul(x, w)), mul(0.5, mul(v, v)))\n"
      "outputs: [loss]\n"
      "train: {minimize: loss, optimizer: sgd(lr=1), mode: async}\n";
  ps_world w;
  assert_ok(ps_world_open(&w, kText, "", 1, 1), &w.err);
  const weir_ps_lists *l = &w.job->servers[0];
  const weir_split_var *vars = w.job->split->vars;
  assert_true(has(l->pulls, l->pull_count, (uint32_t)(var_of(&w, "w") - vars)));
  assert_true(has(l->pulls, l->pull_count, (uint32_t)(var_of(&w, "v") - vars)));
  assert_false(
      has(l->pulls, l->pull_count, (uint32_t)(var_of(&w, "n") - vars)));
  assert_true(has(l->held, l->held_count, (uint32_t)(var_of(&w, "n") - vars)));
  assert_int_equal(weir_ps_var_bytes(w.job, l->pulls[0]), sizeof(float));
  ps_world_close(&w);
}

/* A scalar of a summary has one who knows it. */
static void summaries_find_who_knows(void **state) {
  (void)state;
  static const char kMore[] =
      "  mode: sync\n"
      "  summary: {dir: s, scalars: [acc, loss, h, train/learning_rate, "
      "train/h/dense/w/apply, train/global_step], histograms: [h, n, "
      "'kind:var']}\n";
  static const weir_ps_scalar kWant[] = {
      {WEIR_PS_SCALAR_RUN, 0, 1}, /* that of the metric */
      {WEIR_PS_SCALAR_RUN, 0, 0},     {WEIR_PS_SCALAR_RUN, 0, 2},
      {WEIR_PS_SCALAR_UPDATE, 0, 0},  {WEIR_PS_SCALAR_UPDATE, 0, 1},
      {WEIR_PS_SCALAR_VARIABLE, 0, 0}};
  ps_world w;
  assert_ok(ps_world_open(&w, PS_NET, kMore, 1, 2), &w.err);
  for (size_t i = 0; i < sizeof kWant / sizeof *kWant; i++) {
    assert_int_equal(w.job->scalars[i].of, kWant[i].of);
    assert_int_equal(w.job->scalars[i].place, kWant[i].place);
  }
  assert_int_equal(w.job->number_count, 3);
  assert_int_equal(w.job->metric_count, 1);
  assert_int_equal(w.job->watched[0].count, 2);
  assert_int_equal(w.job->watched[0].values[0],
                   w.job->split->updates[0].learning_rate);
  assert_int_equal(w.job->shown_count, 2);
  assert_int_equal(w.job->shown[0], w.job->numbers[2]);
  assert_int_equal(w.job->shown[1], WEIR_NO_VALUE);
  ps_world_close(&w);
}

/* ---- Numbers */

static void modes_have_their_numbers(void **state) {
  (void)state;
  static const struct {
    const char *mode;
    weir_ps_config config; /* servers and workers beside it */
  } kCases[] = {{"async", {.mode = WEIR_PS_ASYNC, .aggregate = 1}},
                {"async(max_staleness=3)",
                 {.mode = WEIR_PS_ASYNC,
                  .aggregate = 1,
                  .limited = true,
                  .max_staleness = 3}},
                {"async(max_staleness=0)",
                 {.mode = WEIR_PS_ASYNC, .aggregate = 1, .limited = true}},
                {"sync", {.mode = WEIR_PS_SYNC, .aggregate = 5}},
                {"sync(aggregate=2, backup=1)",
                 {.mode = WEIR_PS_SYNC, .aggregate = 2, .backup = 1}},
                {"bounded(staleness=4)",
                 {.mode = WEIR_PS_BOUNDED, .aggregate = 1, .staleness = 4}}};
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    char more[64];
    ps_world w;
    const weir_ps_config *want = &kCases[i].config;
    snprintf(more, sizeof more, "  mode: %s\n", kCases[i].mode);
    assert_ok(ps_world_open(&w, PS_NET, more, 2, 5), &w.err);
    const weir_ps_config *have = &w.job->config;
    assert_int_equal(have->mode, want->mode);
    assert_int_equal(have->aggregate, want->aggregate);
    assert_int_equal(have->backup, want->backup);
    assert_int_equal(have->staleness, want->staleness);
    assert_int_equal(have->limited, want->limited);
    assert_int_equal(have->max_staleness, want->max_staleness);
    assert_int_equal(have->servers, 2);
    assert_int_equal(have->workers, 5);
    assert_false(have->norm);
    ps_world_close(&w);
  }
}

static uint64_t hash_of(const char *more, uint32_t servers, uint64_t seed,
                        uint64_t graph_seed) {
  char all[4096];
  ps_world w;
  snprintf(all, sizeof all, "%s%s", PS_NET, more);
  ps_world_load(&w, all, graph_seed);
  assert_ok(ps_world_job(&w, servers, 2, seed), &w.err);
  uint64_t hash = w.job->hash;
  ps_world_close(&w);
  assert_true(hash != 0);
  return hash;
}

/* A section of data, and where its files would lie. */
#define DATA(root, last)                                                     \
  "  mode: async\n"                                                          \
  "data:\n"                                                                  \
  "  root: " root                                                            \
  "\n"                                                                       \
  "  train: {source: memory, values: {x: [[1, 2]], label: [0]}, batch: 8}\n" \
  "  test: {source: memory, values: {x: [[1, " last                          \
  "]], label: [0]}, batch: "                                                 \
  "8}\n"

static void hashes_tell_jobs_apart(void **state) {
  (void)state;
  const uint64_t hashes[] = {
      hash_of("  mode: async\n", 1, 1, 0),
      hash_of("  mode: async\n", 2, 1, 0),
      hash_of("  mode: async\n  ps: {split: 24}\n", 2, 1, 0),
      hash_of("  mode: async\n  ps: {split: 40}\n", 2, 1, 0),
      hash_of("  mode: async\n", 1, 2, 0),
      hash_of("  mode: async\n", 1, 1, 7), /* other first values */
      hash_of("  mode: async(max_staleness=3)\n", 1, 1, 0),
      hash_of("  mode: async(max_staleness=0)\n", 1, 1, 0),
      hash_of("  mode: sync(aggregate=2)\n", 1, 1, 0),
      hash_of("  mode: sync(aggregate=3)\n", 1, 1, 0),
      hash_of("  mode: sync(aggregate=3, backup=1)\n", 1, 1, 0),
      hash_of("  mode: bounded(staleness=1)\n", 1, 1, 0),
      hash_of("  mode: async\n  clip: {value: 1}\n", 1, 1, 0),
      hash_of(DATA("/a", "2"), 1, 1, 0),
      hash_of(DATA("/a", "3"), 1, 1, 0)};
  size_t count = sizeof hashes / sizeof *hashes;
  assert_true(hash_of("  mode: async\n", 1, 1, 0) == hashes[0]);
  assert_true(hash_of(DATA("/b", "2"), 1, 1, 0) == hashes[count - 2]);
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < i; k++) assert_true(hashes[i] != hashes[k]);
}

/* ---- Forms that are refused */

static void refused(void **state) {
  (void)state;
#define LOSS "  loss: reduce_sum(mul(w, reduce_sum(x, axis=[0])))\n"
  static const struct {
    const char *nodes, *rest, *says;
  } kBad[] = {{"  s: state([2])\n  next: assign(s, w)\n"
               "  loss: reduce_sum(mul(add(w, s), reduce_sum(x, axis=[0])))\n",
               "mode: async", "s: a state that goes from batch to batch"},
              {LOSS, "mode: all_reduce", "mode all_reduce"},
              {LOSS, "accumulate: 2", "mode (none)"},
              {LOSS, "mode: async, reset_state: epoch", "reset_state"},
              {LOSS, "mode: async, summary: {histograms: [train/w/apply]}",
               "train/w/apply on parameter servers: the servers compute it"}};
  for (size_t i = 0; i < sizeof kBad / sizeof *kBad; i++) {
    char text[2048];
    ps_world w;
    snprintf(text, sizeof text,
             "weir: 1\ninputs: {x: 'f32[3, 2]'}\nnodes:\n"
             "  w: var([2])\n%soutputs: [loss]\n"
             "train: {minimize: loss, optimizer: sgd(lr=1), %s}\n",
             kBad[i].nodes, kBad[i].rest);
    assert_error(ps_world_open(&w, text, "", 2, 2), &w.err, "W1122");
    if (strstr(w.err.message, kBad[i].says) == NULL)
      fail_msg("'%s' does not say '%s'", w.err.message, kBad[i].says);
    assert_null(w.job);
    ps_world_close(&w);
  }
}

static void numbers_out_of_range(void **state) {
  (void)state;
  static const uint32_t kBad[][2] = {{0, 1}, {65, 1}, {1, 0}, {1, 1025}};
  for (size_t i = 0; i < sizeof kBad / sizeof *kBad; i++) {
    ps_world w;
    assert_error(
        ps_world_open(&w, PS_NET, "  mode: async\n", kBad[i][0], kBad[i][1]),
        &w.err, "W7090");
    ps_world_close(&w);
  }
}

/* The k-th allocation fails, for each k. */
static void out_of_memory_is_clean(void **state) {
  (void)state;
  ps_world w;
  ps_world_load(&w,
                PS_NET
                "  mode: sync(aggregate=2)\n"
                "  summary: {scalars: [h, train/learning_rate]}\n",
                0);
  int64_t live = atomic_load(&w.world.memory.live_blocks);
  for (uint64_t k = 1;; k++) {
    w.world.memory.fail_at = atomic_load(&w.world.memory.calls) + k;
    weir_status s = ps_world_job(&w, 2, 2, 1);
    bool reached = atomic_load(&w.world.memory.calls) >= w.world.memory.fail_at;
    w.world.memory.fail_at = 0;
    if (!reached) {
      assert_ok(s, &w.err);
      break;
    }
    assert_true(s != WEIR_OK);
    assert_string_equal(w.err.id, "W6001");
    assert_null(w.job);
    assert_int_equal(atomic_load(&w.world.memory.live_blocks), live);
  }
  ps_world_close(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lists_have_each_value_once),
      cmocka_unit_test(pulls_are_those_of_a_run),
      cmocka_unit_test(summaries_find_who_knows),
      cmocka_unit_test(modes_have_their_numbers),
      cmocka_unit_test(hashes_tell_jobs_apart),
      cmocka_unit_test(refused),
      cmocka_unit_test(numbers_out_of_range),
      cmocka_unit_test(out_of_memory_is_clean)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
