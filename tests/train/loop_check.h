/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_LOOP_CHECK_H_
#define TESTS_TRAIN_LOOP_CHECK_H_

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernel.h"
#include "runtime/base/fs/fs_system.h"
#include "runtime/base/strbuf.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/load/load.h"
#include "runtime/train/loop/loop.h"
#include "runtime/train/loop/loop_create.h"
#include "tests/check.h"

/* Shared by the tests of the loop: a world of counted memory, real files in a
 * fresh folder and a clock that goes on by hand; graphs written as text with
 * data in the file; parameters as bytes. */

static char loop_folder[64];

static inline int loop_setup(void **state) {
  (void)state;
  strcpy(loop_folder, "/tmp/weir-loop-XXXXXX");
  return mkdtemp(loop_folder) == NULL;
}

static inline int loop_teardown(void **state) {
  char command[128];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", loop_folder);
  return system(command) != 0;
}

#define LOOP_TEST(f) \
  cmocka_unit_test_setup_teardown(f, loop_setup, loop_teardown)

/* Counts of callbacks. */
typedef struct loop_seen {
  uint64_t steps, epochs, evals, saves, warnings, resumed;
  double loss, first_loss, metric;
  char warning[600];
  uint64_t staleness[3], staleness_most; /* of the account: 0, 1, 2 and 3 */
} loop_seen;

typedef struct loop_world {
  weir_counted_allocator memory;
  weir_fs fs;
  weir_clock clock;
  weir_env env;
  int64_t now_ns, tick_ns; /* each look at the clock moves it on */
  weir_pool *pool;
  weir_graph *graph;
  weir_loop *loop;
  loop_seen seen;
  weir_train_callbacks calls;
  weir_error err;
} loop_world;

/* Replicas look at it, too. */
static inline int64_t loop_now(void *self) {
  loop_world *w = self;
  return __atomic_add_fetch(&w->now_ns, w->tick_ns, __ATOMIC_RELAXED);
}

static inline void loop_on_step(void *self, const weir_train_progress *p) {
  loop_seen *s = self;
  if (s->steps++ == 0) s->first_loss = p->loss;
  s->loss = p->loss;
}

static inline void loop_on_epoch(void *self, const weir_train_progress *p) {
  (void)p;
  ((loop_seen *)self)->epochs++;
}

static inline void loop_on_eval(void *self, const weir_train_report *r) {
  loop_seen *s = self;
  s->evals++;
  s->metric = r->values[0].value;
}

static inline void loop_on_saved(void *self, uint64_t step, int64_t ns) {
  (void)step;
  (void)ns;
  ((loop_seen *)self)->saves++;
}

static inline void loop_on_resumed(void *self, uint64_t step) {
  ((loop_seen *)self)->resumed = step;
}

static inline void loop_on_warning(void *self, const weir_error *w) {
  loop_seen *s = self;
  s->warnings++;
  snprintf(s->warning, sizeof s->warning, "%s %s", w->id, w->message);
}

static inline void loop_on_account(void *self, const weir_train_account *a) {
  loop_seen *s = self;
  for (size_t i = 0; i < a->staleness_count && i < 3; i++)
    s->staleness[i] = a->staleness[i];
  s->staleness_most = a->staleness_most;
}

static inline void loop_world_init(loop_world *w) {
  memset(w, 0, sizeof *w);
  w->err = (weir_error)WEIR_ERROR_INIT;
  weir_counted_allocator_init(&w->memory, NULL);
  w->fs = weir_system_fs;
  w->fs.self = &w->memory.base;
  w->clock = (weir_clock){w, loop_now};
  w->env = (weir_env){&w->memory.base, &w->fs, &w->clock};
  w->calls = (weir_train_callbacks){.struct_size = sizeof w->calls,
                                    .self = &w->seen,
                                    .step = loop_on_step,
                                    .epoch = loop_on_epoch,
                                    .eval = loop_on_eval,
                                    .saved = loop_on_saved,
                                    .resumed = loop_on_resumed,
                                    .warning = loop_on_warning,
                                    .account = loop_on_account};
}

/* Opens a loop on the graph |text|; options' env and calls are the world's. */
static inline weir_status loop_open(loop_world *w, const char *text,
                                    int threads, weir_loop_options options) {
  weir_load_options load = {.registry = weir_builtin_registry(), .seed = 3};
  weir_pool_options pool = {.threads = threads, .spin_ns = -1};
  loop_world_init(w);
  weir_status s = weir_graph_load_text(
      &w->env, weir_sv_from(text), "loop.weir.yaml", &load, &w->graph, &w->err);
  options.calls = &w->calls;
  if (s == WEIR_OK) s = weir_pool_create(&w->env, &pool, &w->pool, &w->err);
  if (s == WEIR_OK)
    s = weir_loop_create(&w->env, w->pool, w->graph, &options, &w->loop,
                         &w->err);
  return s;
}

static inline void loop_close(loop_world *w) {
  weir_loop_release(w->loop);
  weir_pool_release(w->pool);
  weir_graph_unref(w->graph);
  assert_int_equal(atomic_load(&w->memory.live_blocks), 0);
}

/* All variables, slots and states, in the graph's order. */
static inline void loop_params(loop_world *w, weir_strbuf *out) {
  const weir_graph *g = weir_loop_graph(w->loop);
  for (uint32_t i = 0; i < g->node_count; i++) {
    weir_tensor *t = NULL;
    if (g->nodes[i].op->instr != WEIR_INSTR_VAR_READ) continue;
    assert_ok(
        weir_exec_variable_get(weir_loop_session(w->loop), i, &t, &w->err),
        &w->err);
    assert_true(weir_strbuf_append(out, t->data, t->bytes));
    weir_tensor_unref(t);
  }
}

/* Opens, runs to the end, takes the parameters, closes. */
static inline void loop_train(const char *text, int threads,
                              weir_loop_options options, weir_strbuf *out) {
  loop_world w;
  weir_train_end end;
  weir_status s = loop_open(&w, text, threads, options);
  if (s == WEIR_OK) s = weir_loop_run(w.loop, &end, &w.err);
  if (s != WEIR_OK) fail_msg("%s %s", w.err.id, w.err.message);
  weir_strbuf_init(out, weir_allocator_system());
  loop_params(&w, out);
  loop_close(&w);
}

static inline void loop_same(weir_strbuf *a, weir_strbuf *b, const char *what) {
  if (a->size == 0 || a->size != b->size ||
      memcmp(a->data, b->data, a->size) != 0)
    fail_msg("other bits: %s", what);
}

/* Thirteen points in two classes, the larger x1 + x2 from the smaller. */
#define LOOP_POINTS                                                   \
  "data:\n"                                                           \
  "  train: &d\n"                                                     \
  "    source: memory\n"                                              \
  "    values:\n"                                                     \
  "      x: [[0, 0], [1, 1], [0.2, 0.1], [0.9, 0.8], [0.1, 0.3],\n"   \
  "          [0.7, 0.9], [0.3, 0.2], [0.8, 1], [0, 0.4], [1, 0.6],\n" \
  "          [0.25, 0.05], [0.65, 0.95], [0.15, 0.15]]\n"             \
  "      label: [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]\n"            \
  "    shuffle: {buffer: 6}\n"                                        \
  "    batch: 4\n"                                                    \
  "    prefetch: 0\n"                                                 \
  "  test:\n"                                                         \
  "    <<: *d\n"                                                      \
  "    shuffle: false\n"                                              \
  "    batch: 5\n"

#define LOOP_GRAPH                                                 \
  "weir: 1\n"                                                      \
  "inputs: {x: 'f32[?, 2]', label: 'i32[?]'}\n"                    \
  "nodes:\n"                                                       \
  "  w1: var([2, 8], init=uniform(-1, 1))\n"                       \
  "  b1: var([8], init=zeros())\n"                                 \
  "  w2: var([8, 2], init=uniform(-1, 1))\n"                       \
  "  h: tanh(add(matmul(x, w1), b1))\n"                            \
  "  logits: matmul(h, w2)\n"                                      \
  "  loss: mean(sparse_softmax_xent(logits, label))\n"             \
  "  hit: cast(equal(argmax(logits, axis=-1), cast(label, i64)), " \
  "f32)\n"                                                         \
  "  acc: mean(hit)\n"                                             \
  "outputs: [logits]\n" LOOP_POINTS

#define LOOP_ADAM              \
  LOOP_GRAPH                   \
  "train:\n  minimize: loss\n" \
  "  optimizer: adam(lr=0.05)\n"

#endif
