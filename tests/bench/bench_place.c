/* SPDX-License-Identifier: Apache-2.0 */
/* Times the placers alone, the problem being in memory:
 *   build/tests/bench/bench_place scale KIND NODES [DEVICES [ROUNDS]]
 *   build/tests/bench/bench_place planted NODES MOVES [DEVICES]
 *   build/tests/bench/bench_place hand KIND NODES DEVICES LATENCY_NS PS [MOVES]
 *   build/tests/bench/bench_place stg MOVES PROCESSORS FILE...
 * KIND is one of weir generate's, or random3: three inputs among the thousand
 * tasks before. `hand` compares with an expert's plan for cholesky, pipeline or
 * replicas, with as many moves as the size gets by default. Prints one JSON
 * line per case; times are of the solve, bounds included, the checker is run
 * but not timed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "placement/bench/generate.h"
#include "placement/bench/instance.h"
#include "placement/bench/instance_stg.h"
#include "placement/check.h"
#include "placement/solve/search.h"
#include "runtime/base/mix.h"
#include "tests/placement/hand_plan.h"

enum { kNearest = 1000, kMostRounds = 99 };

/* Wall time, or the processor time of this process. */
static int64_t now_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t peak_kib(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return use.ru_maxrss;
}

static void die(const weir_error *err) {
  fprintf(stderr, "%s %s\n", err->id, err->message);
  exit(1);
}

static bool to_problem(void *self, const weir_task *t) {
  weir_place_builder *b = self;
  weir_place_node_spec spec = {
      .name = weir_sv_from(t->name), .cost = &t->cost_ns, .group = UINT32_MAX};
  uint32_t n = weir_place_add_node(b, &spec);
  weir_place_add_tensor(b, n, t->out_bytes);
  for (uint32_t i = 0; i < t->input_count; i++)
    weir_place_add_use(b, n, t->inputs[i]);
  return true;
}

static weir_place_builder *begin(uint32_t devices) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = NULL;
  if (weir_place_builder_create(weir_allocator_system(), 1, &b, &err) !=
      WEIR_OK)
    die(&err);
  for (uint32_t d = 0; d < devices; d++)
    weir_place_add_device(b,
                          &(weir_place_device){WEIR_SV_LIT("d"), 0, INT64_MAX});
  weir_place_connect_all(b, &(weir_place_link){100, 100000, true});
  return b;
}

static void random3(weir_place_builder *b, uint64_t nodes) {
  uint64_t random = 1;
  for (uint64_t n = 0; n < nodes; n++) {
    uint32_t in[3], count = 0;
    uint64_t reach = n < kNearest ? n : kNearest;
    for (int i = 0; i < 3 && reach > 0; i++)
      in[count++] = (uint32_t)(n - 1 - weir_mix_next(&random) % reach);
    weir_task t = {"task", 500 + (int64_t)(weir_mix_next(&random) % 9501),
                   1024 + (int64_t)(weir_mix_next(&random) % 65536), in, count};
    to_problem(b, &t);
  }
}

static weir_place_problem *generate(const char *kind, uint64_t nodes,
                                    uint32_t devices, int64_t *optimum) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = begin(devices);
  weir_place_problem *p = NULL;
  weir_generated made = {0};
  weir_generate_options o = {
      .nodes = nodes, .processors = devices, .fs_per_byte = 200000, .seed = 3};
  weir_task_sink sink = {b, to_problem};
  if (strcmp(kind, "random3") == 0)
    random3(b, nodes);
  else if (weir_generate(weir_allocator_system(), weir_sv_from(kind), &o, &sink,
                         &made, &err) != WEIR_OK)
    die(&err);
  if (weir_place_builder_finish(b, &p, &err) != WEIR_OK) die(&err);
  weir_place_builder_release(b);
  *optimum = made.optimum_ns;
  return p;
}

typedef struct answer {
  int64_t wall_ns, cpu_ns, makespan_ns, bound_ns; /* times: medians */
  char placer[32], bound[32];
} answer;

static int by_value(const void *x, const void *y) {
  int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
  return a < b ? -1 : a > b;
}

static answer solve(const weir_place_problem *p, uint64_t moves, int rounds) {
  weir_error err = WEIR_ERROR_INIT;
  int64_t wall[kMostRounds], cpu[kMostRounds];
  answer a = {0};
  for (int i = 0; i < rounds; i++) {
    weir_place_result r;
    weir_place_options o = {.moves = moves};
    wall[i] = now_ns(CLOCK_MONOTONIC);
    cpu[i] = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (weir_place_solve(weir_allocator_system(), p, &o, &r, &err) != WEIR_OK)
      die(&err);
    cpu[i] = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu[i];
    wall[i] = now_ns(CLOCK_MONOTONIC) - wall[i];
    a.makespan_ns = r.plan->makespan_ns;
    a.bound_ns = r.bounds.best_ns;
    snprintf(a.placer, sizeof a.placer, "%s", r.plan->placer);
    snprintf(a.bound, sizeof a.bound, "%s", r.bounds.best);
    if (i == 0 && weir_place_check(weir_allocator_system(), p, r.plan, NULL,
                                   &err) != WEIR_OK)
      die(&err);
    weir_place_plan_release(r.plan);
  }
  qsort(wall, (size_t)rounds, sizeof *wall, by_value);
  qsort(cpu, (size_t)rounds, sizeof *cpu, by_value);
  a.wall_ns = wall[rounds / 2];
  a.cpu_ns = cpu[rounds / 2];
  return a;
}

static void print(const char *name, const weir_place_problem *p,
                  const answer *a, int64_t optimum) {
  printf(
      "{\"case\": \"%s\", \"nodes\": %u, \"uses\": %u, \"devices\": %u, "
      "\"wall_ns\": %" PRId64 ", \"cpu_ns\": %" PRId64
      ", \"makespan_ns\": %" PRId64 ", \"lower_bound_ns\": %" PRId64
      ", \"lower_bound\": \"%s\", "
      "\"placer\": \"%s\", \"optimum_ns\": %" PRId64 ", \"peak_kib\": %" PRId64
      "}\n",
      name, p->node_count, p->use_count, p->device_count, a->wall_ns, a->cpu_ns,
      a->makespan_ns, a->bound_ns, a->bound, a->placer, optimum, peak_kib());
  fflush(stdout);
}

static int run_generated(const char *kind, uint64_t nodes, uint64_t moves,
                         uint32_t devices, int rounds) {
  int64_t optimum = 0;
  weir_place_problem *p = generate(kind, nodes, devices, &optimum);
  answer a = solve(p, moves, rounds);
  print(kind, p, &a, optimum);
  weir_place_problem_release(p);
  return 0;
}

static char *read_all(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  char *text = NULL;
  *size = 0;
  while (f != NULL) {
    text = realloc(text, *size + 65536);
    if (text == NULL) break;
    size_t got = fread(text + *size, 1, 65536, f);
    *size += got;
    if (got == 0) break;
  }
  if (f != NULL) fclose(f);
  return text;
}

static void run_stg(const char *path, uint32_t processors, uint64_t moves) {
  weir_error err = WEIR_ERROR_INIT;
  weir_instance_options o = {processors};
  weir_place_problem *p = NULL;
  size_t size;
  char *text = read_all(path, &size);
  if (text == NULL) return;
  if (weir_instance_read_stg(weir_allocator_system(), (weir_sv){text, size},
                             path, &o, &p, &err) != WEIR_OK)
    die(&err);
  answer a = solve(p, moves, 1);
  const char *name = strrchr(path, '/');
  print(name == NULL ? path : name + 1, p, &a, 0);
  weir_place_problem_release(p);
  free(text);
}

/* A plan beside the one that an expert makes. */
static int run_hand(const char *kind, uint64_t nodes, uint32_t devices,
                    const weir_place_link *link, const char *moves) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  int64_t hand_ns = 0;
  if (hand_plan_problem(weir_allocator_system(), kind, nodes, devices, link, &p,
                        &err) != WEIR_OK ||
      hand_plan_step(weir_allocator_system(), kind, p, &hand_ns, &err) !=
          WEIR_OK)
    die(&err);
  uint64_t count =
      moves == NULL ? weir_place_default_moves(p) : strtoull(moves, NULL, 10);
  answer a = solve(p, count, 1);
  printf("{\"hand_ns\": %" PRId64 ", \"ratio\": %.4f}\n", hand_ns,
         (double)a.makespan_ns / (double)hand_ns);
  print(kind, p, &a, 0);
  weir_place_problem_release(p);
  return 0;
}

int main(int argc, char **argv) {
  uint64_t third = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
  uint32_t fourth = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 4;
  if (argc > 3 && strcmp(argv[1], "scale") == 0) {
    int rounds = argc > 5 ? atoi(argv[5]) : 5;
    if (rounds < 1 || rounds > kMostRounds) rounds = 5;
    return run_generated(argv[2], third, 0, fourth, rounds);
  }
  if (argc > 3 && strcmp(argv[1], "planted") == 0)
    return run_generated("planted", strtoull(argv[2], NULL, 10), third, fourth,
                         1);
  if (argc > 6 && strcmp(argv[1], "hand") == 0) {
    weir_place_link link = {.latency_ns = atoll(argv[5]),
                            .fs_per_byte = 1000 * atoll(argv[6]),
                            .exclusive = true};
    return run_hand(argv[2], third, fourth, &link, argc > 7 ? argv[7] : NULL);
  }
  if (argc > 4 && strcmp(argv[1], "stg") == 0) {
    uint32_t processors = (uint32_t)strtoul(argv[3], NULL, 10);
    for (int i = 4; i < argc; i++)
      run_stg(argv[i], processors, strtoull(argv[2], NULL, 10));
    return 0;
  }
  fprintf(stderr, "see the head of bench_place.c\n");
  return 2;
}
