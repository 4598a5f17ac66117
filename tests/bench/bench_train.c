/* SPDX-License-Identifier: Apache-2.0 */

/* Training steps, timed: loss, gradients and the optimizer of the graph's
 * `train` section.
 *
 *   bench_train mlp|GRAPH BATCH [--threads N] [--describe]
 *   bench_train mlp|GRAPH BATCH [--threads N] --serve
 *
 * Run it in the source folder (it reads graphs/GRAPH.weir.yaml). Prints the
 * median and the least time of a step, with one thread its least processor
 * time too. Where a step goes: weir train GRAPH --profile.
 * --serve prints READY and answers each line "SECONDS" with the median in
 * nanoseconds, for compare.py. */

#include <stdlib.h>

#include "runtime/base/env_system.h"
#include "runtime/exec/session/binding.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/train/train.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"
#include "tests/exec/maker.h"
#include "tests/profiles.h"

enum { kMostSteps = 200000, kMostFeeds = 8 };

static const char kMlp[] =
    "weir: 1\n"
    "params: {batch: 128}\n"
    "import: {nn: std/nn}\n"
    "inputs:\n"
    "  image: f32[batch, 784]\n"
    "  label: u8[batch]\n"
    "nodes:\n"
    "  h1: nn.dense(image, units=1024, act=relu)\n"
    "  h2: nn.dense(h1, units=1024, act=relu)\n"
    "  logits: nn.dense(h2, units=10)\n"
    "  loss: mean(sparse_softmax_xent(logits, label))\n"
    "outputs: [loss]\n"
    "train: {minimize: loss, optimizer: sgd(lr=0.01), steps: 1000000}\n";

typedef struct bench {
  exec_world world;
  weir_pool *pool;
  weir_train_graph *train;
  const weir_graph *graph; /* of |train| */
  weir_exec_session *session;
  weir_binding *binding;
  weir_exec_feed feeds[kMostFeeds];
  uint32_t feed_count;
  weir_exec_fetch fetch;
} bench;

static weir_graph *load(const char *name, const char *batch) {
  weir_error err = WEIR_ERROR_INIT;
  weir_param_value param = {WEIR_SV_LIT("batch"), weir_sv_from(batch)};
  weir_load_options options = {
      .registry = weir_builtin_registry(), .params = &param, .param_count = 1};
  weir_graph *g = NULL;
  char path[256];
  const weir_env *env = weir_env_system();
  snprintf(path, sizeof path, "graphs/%s.weir.yaml", name);
  if (strcmp(name, "mlp") == 0)
    assert_ok(weir_graph_load_text(env, weir_sv_from(kMlp), "mlp", &options, &g,
                                   &err),
              &err);
  else
    assert_ok(weir_graph_load(env, path, &options, &g, &err), &err);
  return g;
}

/* The graph of a training step, as its `train` section says. */
static void make_step(bench *b, const weir_graph *g) {
  weir_error err = WEIR_ERROR_INIT;
  weir_train_spec *spec = NULL;
  assert_ok(weir_train_spec_read(g, NULL, &spec, &err), &err);
  assert_ok(weir_graph_train(g, spec, &b->train, &err), &err);
  weir_train_spec_release(spec);
  b->graph = b->train->graph;
}

/* Random content; labels below 10, tokens below 256, and classes of an i64 0 or
 * 1. */
static weir_tensor *random_tensor(const weir_value *value, bool label) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  assert_ok(weir_tensor_create_shaped(weir_allocator_system(), value->dtype,
                                      value->shape, &t, &err),
            &err);
  uint32_t state = 1;
  int64_t n = weir_shape_elements(value->shape);
  for (int64_t i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    if (value->dtype == WEIR_F32)
      ((float *)t->data)[i] = (float)(state >> 8) / (float)(1 << 24);
    else if (value->dtype == WEIR_I64)
      ((int64_t *)t->data)[i] = (state >> 16) % (label ? 2 : 256);
    else
      ((uint8_t *)t->data)[i] = (uint8_t)((state >> 16) % (label ? 10 : 256));
  }
  return t;
}

static void start(bench *b, const char *name, const char *batch, int threads) {
  weir_error err = WEIR_ERROR_INIT;
  exec_world_init(&b->world);
  if (!test_profile_capped(&b->world.env.profile)) exit(2);
  b->world.env.alloc = weir_allocator_system();
  b->pool = exec_pool(&b->world, threads);
  weir_graph *g = load(name, batch);
  make_step(b, g);
  weir_graph_unref(g);
  for (uint32_t i = 0; i < b->graph->input_count; i++) {
    weir_value_id id = b->graph->inputs[i].value;
    if (b->graph->inputs[i].has_default) continue;
    b->feeds[b->feed_count++] = (weir_exec_feed){
        id, random_tensor(&b->graph->values[id],
                          weir_sv_is(b->graph->inputs[i].name, "label"))};
  }
  weir_session_options options = {.no_layout = getenv("NO_LAYOUT") != NULL};
  b->fetch = (weir_exec_fetch){.value = b->train->loss};
  assert_ok(weir_exec_session_create(&b->world.env, b->pool, b->graph, &options,
                                     &b->session, &err),
            &err);
  weir_exec_request request = {.feeds = b->feeds,
                               .feed_count = b->feed_count,
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

static int64_t times[kMostSteps], least_cpu_ns = INT64_MAX;

static int64_t cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Steps for |seconds|; returns their number, sorted in |times|. */
static size_t burst(bench *b, double seconds) {
  weir_error err = WEIR_ERROR_INIT;
  int64_t end = exec_now_ns(NULL) + (int64_t)(seconds * 1e9);
  size_t n = 0;
  while (n < kMostSteps && (n < 5 || exec_now_ns(NULL) < end)) {
    int64_t from = exec_now_ns(NULL), cpu = cpu_ns();
    assert_ok(weir_binding_run(b->binding, NULL, &err), &err);
    times[n++] = exec_now_ns(NULL) - from;
    cpu = cpu_ns() - cpu;
    if (cpu < least_cpu_ns) least_cpu_ns = cpu;
  }
  qsort(times, n, sizeof *times, by_value);
  return n;
}

static bool to_stdout(void *self, const char *data, size_t size) {
  (void)self;
  return fwrite(data, 1, size, stdout) == size;
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
  bool describe = false, serves = false;
  if (argc < 3) {
    fprintf(stderr,
            "bench_train mlp|GRAPH BATCH [--threads N] "
            "[--describe] [--serve]\n");
    return 2;
  }
  for (int i = 3; i < argc; i++) {
    if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
      threads = atoi(argv[++i]);
    describe |= strcmp(argv[i], "--describe") == 0;
    serves |= strcmp(argv[i], "--serve") == 0;
  }
  start(&b, argv[1], argv[2], threads);
  weir_writer out = {NULL, to_stdout};
  if (describe) (void)weir_binding_describe(b.binding, &out);
  if (serves) {
    serve(&b);
    return 0;
  }
  (void)burst(&b, 0.2);
  size_t n = burst(&b, 2);
  printf(
      "%s batch %s, %d threads: median %.1f us, least %.1f (%zu steps), "
      "loss %.6f\n",
      argv[1], argv[2], threads, (double)times[n / 2] / 1e3,
      (double)times[0] / 1e3, n, (double)*(float *)b.fetch.tensor->data);
  if (threads == 1)
    printf("least processor time %.1f us\n", (double)least_cpu_ns / 1e3);
  return 0;
}
