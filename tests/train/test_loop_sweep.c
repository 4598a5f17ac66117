/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/load/load.h"
#include "runtime/train/loop/loop_create.h"
#include "runtime/train/loop/loop_eval.h"
#include "runtime/train/loop/loop_save.h"
#include "tests/train/loop_check.h"

/* Memory runs out: the training graph with its gradients, steps, an
 * evaluation, a checkpoint, and going on from one, with the k-th allocation
 * failing, once and from then on. Every failure is reported, nothing is left,
 * and the folder of checkpoints is good afterwards.
 *
 *   test_train_loop_sweep [STRIDE]     every STRIDE-th allocation */

static uint64_t stride = 1;

#define REST                                         \
  "  steps: 3\n"                                     \
  "  clip: {global_norm: 1}\n"                       \
  "  eval: {data: test, every: 2, metrics: [acc]}\n" \
  "  checkpoint: {every: 2, async: false}\n"

static const char kPlain[] = LOOP_ADAM REST;
static const char kSync[] =
    LOOP_ADAM REST "  mode: sync(aggregate=2)\n  average: examples\n";
static const char *text = kPlain;

/* Opens, runs and closes with an allocation failing; the graph's load is not
 * swept here. True when nothing failed any more. */
static bool one(const weir_loop_options *o, uint64_t k, bool for_ever) {
  loop_world w;
  weir_train_end end;
  weir_load_options load = {.registry = weir_builtin_registry(), .seed = 3};
  weir_pool_options pool = {.threads = 1, .spin_ns = -1};
  weir_loop_options options = *o;
  loop_world_init(&w);
  options.calls = &w.calls;
  assert_ok(weir_graph_load_text(&w.env, weir_sv_from(text), "sweep.yaml",
                                 &load, &w.graph, &w.err),
            &w.err);
  assert_ok(weir_pool_create(&w.env, &pool, &w.pool, &w.err), &w.err);
  atomic_store(&w.memory.calls, 0);
  w.memory.fail_at = k;
  w.memory.fail_forever = for_ever;
  weir_status s =
      weir_loop_create(&w.env, w.pool, w.graph, &options, &w.loop, &w.err);
  if (s == WEIR_OK) s = weir_loop_run(w.loop, &end, &w.err);
  bool failed = atomic_load(&w.memory.calls) >= k;
  if (!failed && s != WEIR_OK)
    fail_msg("nothing failed: %s %s", w.err.id, w.err.message);
  if (s != WEIR_OK && strcmp(w.err.id, "W6001") != 0)
    fail_msg("allocation %d: %s %s", (int)k, w.err.id, w.err.message);
  if (s != WEIR_OK) assert_int_equal(s, WEIR_RESOURCE_EXHAUSTED);
  /* With memory again, the loop that was made goes on. */
  w.memory.fail_at = 0;
  w.memory.fail_forever = false;
  if (s != WEIR_OK && w.loop != NULL) {
    weir_train_report r;
    assert_ok(weir_loop_eval(w.loop, NULL, &r, &w.err), &w.err);
    assert_ok(weir_loop_save(w.loop, true, &w.err), &w.err);
  }
  loop_close(&w);
  return !failed;
}

static uint64_t sweep(const weir_loop_options *o, bool for_ever) {
  uint64_t k = 1;
  while (!one(o, k, for_ever)) k += stride;
  return k;
}

static void sweep_training(uint32_t replicas) {
  for (int for_ever = 0; for_ever < 2; for_ever++) {
    char dir[128];
    uint64_t k = 1;
    bool done = false;
    for (; !done; k += replicas > 0 ? 3 * stride : stride) {
      snprintf(dir, sizeof dir, "%s/n%d-%d", loop_folder, for_ever, (int)k);
      weir_loop_options o = {
          .seed = 5, .checkpoint = dir, .replicas = replicas};
      done = one(&o, k, for_ever != 0);
    }
    assert_true(k > 500);
  }
}

static void from_the_start(void **state) {
  (void)state;
  sweep_training(0);
}

static void with_replicas(void **state) {
  (void)state;
  text = kSync;
  sweep_training(2);
  text = kPlain;
}

/* A checkpoint of step 1 is there, and never harmed. */
static void from_a_checkpoint(void **state) {
  (void)state;
  char dir[128];
  snprintf(dir, sizeof dir, "%s/on", loop_folder);
  weir_loop_options o = {.seed = 5, .checkpoint = dir, .steps = 1};
  weir_strbuf params;
  loop_train(text, 1, o, &params);
  weir_strbuf_release(&params);
  o.steps = 1; /* nothing to do: only restoring is swept */
  for (int for_ever = 0; for_ever < 2; for_ever++)
    assert_true(sweep(&o, for_ever != 0) > 150);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {LOOP_TEST(from_the_start),
                                     LOOP_TEST(with_replicas),
                                     LOOP_TEST(from_a_checkpoint)};
  if (argc > 1) stride = (uint64_t)atoll(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
