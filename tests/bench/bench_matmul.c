/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel cpu.matmul beside oneDNN's sgemm, and for a constant b beside oneDNN's
 * matmul on packed weights, in turn with as many threads:
 *
 *   bench_matmul [-t THREADS] [-s SECONDS] [-c] [-i SET] [M N K]...
 *
 * -c: b is a constant; SET: generic, avx2 or avx512, for oneDNN too. Prints
 * GFLOP/s of the best repetition of each and the weir's time over the best
 * peer's. With one thread times are the processor's, so that other work on the
 * machine counts less. */
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/cpu/onednn/onednn.h"
#include "kernels/kernel.h"
#include "kernels/profile.h"
#include "kernels/registry.h"
#include "tests/bench/packed_matmul.h"

extern void omp_set_num_threads(int threads);

static double clock_s(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now_s(void) {
  return clock_s(CLOCK_MONOTONIC);
}

/* Two threads that share blocks; the second spins while a size is measured. */
typedef struct pair {
  atomic_int generation, done, stop;
  atomic_long next;
  int64_t blocks;
  weir_block_fn fn;
  void *arg;
} pair;

static void work(pair *p, int worker) {
  long b;
  while ((b = atomic_fetch_add(&p->next, 1)) < p->blocks)
    p->fn(p->arg, b, worker);
}

static void *second(void *arg) {
  pair *p = arg;
  int seen = 0;
  while (!atomic_load(&p->stop)) {
    if (atomic_load_explicit(&p->generation, memory_order_acquire) == seen) {
      __builtin_ia32_pause();
      continue;
    }
    seen++;
    work(p, 1);
    atomic_store_explicit(&p->done, seen, memory_order_release);
  }
  return NULL;
}

static void parallel_for(void *self, int64_t blocks, weir_block_fn fn,
                         void *arg) {
  pair *p = self;
  p->blocks = blocks;
  p->fn = fn;
  p->arg = arg;
  atomic_store(&p->next, 0);
  int g = atomic_fetch_add(&p->generation, 1) + 1;
  work(p, 0);
  while (atomic_load_explicit(&p->done, memory_order_acquire) != g)
    __builtin_ia32_pause();
}

static void serial(void *self, int64_t blocks, weir_block_fn fn, void *arg) {
  (void)self;
  for (int64_t b = 0; b < blocks; b++) fn(arg, b, 0);
}

typedef struct problem {
  int64_t m, n, k;
  int threads;
  bool constant;
  uint64_t profile;
  float *a, *b, *c;
  weir_prepared prepared;
  const weir_kernel_def *kernel;
  void *scratch;
  pair *pair;
  packed_matmul *packed; /* or NULL */
} problem;

static void run_ours(problem *q) {
  void *io[3] = {q->a, q->b, q->c};
  weir_run_ctx ctx = {.self = q->pair,
                      .parallel_for = q->threads > 1 ? parallel_for : serial,
                      .workers = q->threads};
  weir_args args = {
      .io = io, .state = q->prepared.state, .scratch = q->scratch, .ctx = &ctx};
  if (q->kernel->run(&args) != WEIR_OK) exit(1);
}

static void run_bare(problem *q) {
  dnnl_sgemm('N', 'N', q->m, q->n, q->k, 1, q->a, q->k, q->b, q->n, 0, q->c,
             q->n);
}

static void run_packed(problem *q) {
  packed_matmul_run(q->packed);
}

/* Keeps the least time of |seconds| full of repetitions. */
static void burst(problem *q, void (*run)(problem *q), double seconds,
                  double *least) {
  clockid_t clock = q->threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
  double end = now_s() + seconds;
  do {
    double t = clock_s(clock);
    run(q);
    t = clock_s(clock) - t;
    if (t < *least) *least = t;
  } while (now_s() < end);
}

static void burst_ours(problem *q, double seconds, double *least) {
  pthread_t thread;
  if (q->threads == 1) {
    burst(q, run_ours, seconds, least);
    return;
  }
  *q->pair = (pair){0};
  pthread_create(&thread, NULL, second, q->pair);
  burst(q, run_ours, seconds, least);
  atomic_store(&q->pair->stop, 1);
  pthread_join(thread, NULL);
}

static weir_operand matrix(int64_t m, int64_t n) {
  return (weir_operand){
      .dtype = WEIR_F32, .rank = 2, .dims = {m, n}, .elements = m * n};
}

static float *numbers(int64_t n) {
  float *x = aligned_alloc(64, (size_t)(n * 4 + 63) / 64 * 64);
  if (!x) exit(1);
  for (int64_t i = 0; i < n; i++) x[i] = (float)(rand() % 2001 - 1000) / 1000;
  return x;
}

static void prepare(problem *q, weir_arena *arena) {
  const weir_registry *r = weir_builtin_registry();
  weir_attr attrs[2] = {{.kind = WEIR_ATTR_BOOL}, {.kind = WEIR_ATTR_BOOL}};
  weir_operand in[2] = {matrix(q->m, q->k), matrix(q->k, q->n)};
  weir_operand out = matrix(q->m, q->n);
  weir_call call = {
      .op = weir_registry_find_op(r, (weir_sv){"matmul", sizeof "matmul" - 1}),
      .attrs = attrs,
      .in = in,
      .out = &out,
      .in_count = 2,
      .out_count = 1,
      .profile = q->profile};
  if (q->constant) in[1].value = q->b;
  q->prepared.arena = arena;
  q->prepared.alloc = weir_allocator_system();
  q->kernel = weir_kernel_choose(r, &call, WEIR_CPU, false, NULL, 0);
  weir_error err = WEIR_ERROR_INIT;
  if (q->kernel->prepare(&call, &q->prepared, &err) != WEIR_OK) exit(1);
  size_t bytes =
      weir_scratch_align(q->prepared.scratch_bytes) +
      (size_t)q->threads * weir_scratch_align(q->prepared.worker_scratch_bytes);
  q->scratch = aligned_alloc(64, bytes + 64);
}

enum { ROUNDS = 16 };

static void measure(problem q, double seconds) {
  weir_arena arena;
  weir_arena_init(&arena, weir_allocator_system());
  pair threads = {0};
  q.pair = &threads;
  q.a = numbers(q.m * q.k);
  q.b = numbers(q.k * q.n);
  q.c = numbers(q.m * q.n);
  prepare(&q, &arena);
  omp_set_num_threads(q.threads);
  if (q.constant) q.packed = packed_matmul_create(q.m, q.n, q.k, q.a, q.b, q.c);
  double ours = 1e9, bare = 1e9, packed = 1e9;
  for (int i = 0; i < ROUNDS; i++) {
    burst_ours(&q, seconds / ROUNDS, &ours);
    burst(&q, run_bare, seconds / ROUNDS, &bare);
    if (q.packed) burst(&q, run_packed, seconds / ROUNDS, &packed);
  }
  double flops = 2e-9 * (double)(q.m * q.n * q.k);
  printf("%5ld x %5ld x %5ld  %-32s weir %6.1f  sgemm %6.1f", (long)q.m,
         (long)q.n, (long)q.k, q.prepared.algorithm, flops / ours,
         flops / bare);
  if (q.packed) printf("  packed %6.1f", flops / packed);
  printf("  ratio %.3f\n", ours / (bare < packed ? bare : packed));
  fflush(stdout);
  if (q.packed) packed_matmul_release(q.packed);
  if (q.kernel->release) q.kernel->release(q.prepared.state);
  weir_arena_release(&arena);
  free(q.scratch);
  free(q.a);
  free(q.b);
  free(q.c);
}

static const int64_t kSizes[][3] = {
    {64, 64, 64},       {128, 128, 128},    {256, 256, 256},   {512, 512, 512},
    {1024, 1024, 1024}, {2048, 2048, 2048}, {1, 3072, 768},    {8, 3072, 768},
    {128, 3072, 768},   {1, 768, 3072},     {8, 768, 3072},    {128, 768, 3072},
    {8, 8, 65536},      {128, 1024, 1024},  {1024, 3072, 768}, {64, 120, 400},
    {128, 784, 1024},   {1024, 784, 128}};

int main(int argc, char **argv) {
  double seconds = 1;
  problem q = {.threads = 2};
  int i = 1;
  weir_error err = WEIR_ERROR_INIT;
  for (; i < argc && argv[i][0] == '-'; i++) {
    if (argv[i][1] == 'c') q.constant = true;
    if (argv[i][1] == 't' && i + 1 < argc) q.threads = atoi(argv[++i]);
    if (argv[i][1] == 's' && i + 1 < argc) seconds = atof(argv[++i]);
    if (argv[i][1] == 'i' && i + 1 < argc &&
        (weir_profile_named(argv[++i], &q.profile, &err) != WEIR_OK ||
         weir_profile_use(q.profile, &err) != WEIR_OK))
      return 2;
  }
  if (q.threads < 1 || q.threads > 2) return 2;
  bool chosen = i < argc;
  for (; i + 2 < argc; i += 3) {
    q.m = atoll(argv[i]);
    q.n = atoll(argv[i + 1]);
    q.k = atoll(argv[i + 2]);
    measure(q, seconds);
  }
  for (size_t s = 0; !chosen && s < sizeof kSizes / sizeof *kSizes; s++) {
    q.m = kSizes[s][0];
    q.n = kSizes[s][1];
    q.k = kSizes[s][2];
    measure(q, seconds);
  }
  return 0;
}
