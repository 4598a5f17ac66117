/* SPDX-License-Identifier: Apache-2.0 */

/* Training steps of a language model: embedding of 10,000 words, two LSTMs of
 * 650 units, 10,000 classes; batches of 20 times 35 words; gradient descent,
 * clipped by the norm of all gradients.
 *
 *   bench_lm [--threads N] [--seconds S] [--profile] [--serve]
 *
 * Prints the median and the least time of a step; --profile: the least time of
 * each node. --serve prints READY and answers each line "SECONDS" with the
 * median in nanoseconds, for compare.py. */

#include <stdlib.h>

#include "runtime/exec/run/trace.h"
#include "runtime/exec/session/binding.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/train/train.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"
#include "tests/exec/maker.h"
#include "tests/profiles.h"

enum { kMostSteps = 20000, kMostNodes = 1024, kRuns = 7 };

static const char kModel[] =
    "weir: 1\n"
    "import: {nn: std/nn}\n"
    "inputs:\n"
    "  words: i64[20, 35]\n"
    "  next: i64[20, 35]\n"
    "nodes:\n"
    "  x: nn.embedding(words, vocab=10000, units=650)\n"
    "  y: nn.lstm(nn.lstm(x, units=650), units=650)\n"
    "  scores: nn.dense(reshape(y, [700, 650]), units=10000)\n"
    "  loss: mean(sparse_softmax_xent(scores, reshape(next, [700])))\n"
    "outputs: [loss]\n"
    "train: {minimize: loss, optimizer: 'sgd(lr=1.0, clip_global_norm=5)'}\n";

typedef struct bench {
  exec_world world;
  weir_pool *pool;
  weir_graph *graph;
  weir_train_spec *spec;
  weir_train_graph *train;
  weir_exec_session *session;
  weir_binding *binding;
  weir_exec_feed feeds[2];
  weir_exec_fetch fetch;
} bench;

/* Words below 10,000. */
static weir_tensor *some_words(uint32_t state) {
  weir_error err = WEIR_ERROR_INIT;
  const int64_t dims[] = {20, 35};
  weir_shape shape = weir_shape_of(2, dims);
  weir_tensor *t = NULL;
  assert_ok(weir_tensor_create_shaped(weir_allocator_system(), WEIR_I64, &shape,
                                      &t, &err),
            &err);
  for (int i = 0; i < 700; i++) {
    state = state * 1664525u + 1013904223u;
    ((int64_t *)t->data)[i] = (state >> 8) % 10000;
  }
  return t;
}

static void start(bench *b, int threads) {
  weir_error err = WEIR_ERROR_INIT;
  weir_load_options options = {.registry = weir_builtin_registry()};
  exec_world_init(&b->world);
  if (!test_profile_capped(&b->world.env.profile)) exit(2);
  b->world.env.alloc = weir_allocator_system();
  b->pool = exec_pool(&b->world, threads);
  assert_ok(weir_graph_load_text(&b->world.env, weir_sv_from(kModel), "lm",
                                 &options, &b->graph, &err),
            &err);
  assert_ok(weir_train_spec_read(b->graph, NULL, &b->spec, &err), &err);
  assert_ok(weir_graph_train(b->graph, b->spec, &b->train, &err), &err);
  const weir_graph *g = b->train->graph;
  for (uint32_t i = 0; i < 2; i++)
    b->feeds[i] =
        (weir_exec_feed){g->inputs[i].value, some_words(17 * (i + 1))};
  b->fetch = (weir_exec_fetch){.value = b->train->loss};
  assert_ok(weir_exec_session_create(&b->world.env, b->pool, g, NULL,
                                     &b->session, &err),
            &err);
  weir_exec_request request = {.feeds = b->feeds,
                               .feed_count = 2,
                               .fetches = &b->fetch,
                               .fetch_count = 1,
                               .targets = b->train->targets,
                               .target_count = b->train->target_count};
  assert_ok(weir_exec_bind(b->session, &request, &b->binding, &err), &err);
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t times[kMostSteps];

/* Steps for |seconds|; returns their number, sorted in |times|. */
static size_t burst(bench *b, double seconds) {
  weir_error err = WEIR_ERROR_INIT;
  int64_t end = exec_now_ns(NULL) + (int64_t)(seconds * 1e9);
  size_t n = 0;
  while (n < kMostSteps && (n < 3 || exec_now_ns(NULL) < end)) {
    int64_t from = exec_now_ns(NULL);
    assert_ok(weir_binding_run(b->binding, NULL, &err), &err);
    times[n++] = exec_now_ns(NULL) - from;
  }
  qsort(times, n, sizeof *times, by_value);
  return n;
}

static void profile(bench *b) {
  weir_error err = WEIR_ERROR_INIT;
  static weir_trace_event seen[kMostNodes];
  static int64_t least[kMostNodes];
  size_t count = 0;
  for (int r = 0; r < kRuns; r++) {
    weir_trace *trace = NULL;
    assert_ok(weir_exec_trace_create(&b->world.env, kMostNodes, &trace, &err),
              &err);
    weir_run_options options = {.trace = trace};
    assert_ok(weir_binding_run(b->binding, &options, &err), &err);
    for (size_t i = 0; i < weir_trace_count(trace); i++) {
      weir_trace_event e = weir_trace_event_at(trace, i);
      int64_t took = e.end_ns - e.start_ns;
      size_t k = 0;
      while (k < count && !weir_sv_equal(seen[k].name, e.name)) k++;
      if (k == count && count < kMostNodes) {
        seen[k] = e;
        least[count++] = took;
      } else if (k < count && took < least[k]) {
        least[k] = took;
      }
    }
  } /* traces stay: the names lie in them */
  for (size_t k = 0; k < count; k++)
    printf("%9.2f ms  %-30s %.*s\n", (double)least[k] / 1e6,
           seen[k].kernel ? seen[k].kernel : "", WEIR_SV(seen[k].name));
}

static void serve(bench *b) {
  char line[64];
  (void)burst(b, 0.2);
  printf("READY\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    size_t n = burst(b, atof(line));
    printf("%lld\n", (long long)times[n / 2]);
    fflush(stdout);
  }
}

int main(int argc, char **argv) {
  static bench b;
  int threads = 2;
  double seconds = 5;
  bool wants_profile = false, serves = false;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
      threads = atoi(argv[++i]);
    else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
      seconds = atof(argv[++i]);
    else if (strcmp(argv[i], "--profile") == 0)
      wants_profile = true;
    else if (strcmp(argv[i], "--serve") == 0)
      serves = true;
    else
      return fprintf(stderr, "bench_lm: what is %s?\n", argv[i]), 2;
  }
  start(&b, threads);
  if (serves) {
    serve(&b);
    return 0;
  }
  (void)burst(&b, 0.2);
  size_t n = burst(&b, seconds);
  printf("lm, %d threads: median %.1f ms, least %.1f (%zu steps), loss %.6f\n",
         threads, (double)times[n / 2] / 1e6, (double)times[0] / 1e6, n,
         (double)*(float *)b.fetch.tensor->data);
  if (wants_profile) profile(&b);
  return 0;
}
