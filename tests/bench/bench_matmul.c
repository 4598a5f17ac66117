/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel cpu.matmul with two threads beside oneDNN's own sgemm with two, in
 * turn: `build/tests/bench/bench_matmul [seconds per size]`. Prints GFLOP/s of
 * the best repetition of either and the ratio. */
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/cpu/onednn/onednn.h"
#include "kernels/kernel.h"
#include "kernels/registry.h"

extern void omp_set_num_threads(int threads);

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
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

typedef struct problem {
  int64_t m, n, k;
  float *a, *b, *c;
  weir_prepared prepared;
  const weir_kernel_def *kernel;
  pair *threads;
} problem;

static double run_ours(problem *q, void *scratch) {
  void *io[3] = {q->a, q->b, q->c};
  weir_run_ctx ctx = {
      .self = q->threads, .parallel_for = parallel_for, .workers = 2};
  weir_args args = {
      .io = io, .state = q->prepared.state, .scratch = scratch, .ctx = &ctx};
  double t = now_s();
  if (q->kernel->run(&args) != WEIR_OK) exit(1);
  return now_s() - t;
}

static double run_bare(problem *q) {
  double t = now_s();
  dnnl_sgemm('N', 'N', q->m, q->n, q->k, 1, q->a, q->k, q->b, q->n, 0, q->c,
             q->n);
  return now_s() - t;
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

static void measure(int64_t m, int64_t n, int64_t k, double seconds) {
  const weir_registry *r = weir_builtin_registry();
  weir_attr attrs[2] = {{.kind = WEIR_ATTR_BOOL}, {.kind = WEIR_ATTR_BOOL}};
  weir_operand in[2] = {matrix(m, k), matrix(k, n)}, out = matrix(m, n);
  weir_call call = {
      .op = weir_registry_find_op(r, (weir_sv){"matmul", sizeof "matmul" - 1}),
      .attrs = attrs,
      .in = in,
      .out = &out,
      .in_count = 2,
      .out_count = 1};
  weir_arena arena;
  weir_arena_init(&arena, weir_allocator_system());
  pair threads = {0};
  problem q = {.m = m, .n = n, .k = k, .threads = &threads};
  q.a = numbers(m * k);
  q.b = numbers(k * n);
  q.c = numbers(m * n);
  q.prepared.arena = &arena;
  q.prepared.alloc = weir_allocator_system();
  q.kernel = weir_kernel_choose(r, &call, WEIR_CPU, false, NULL, 0);
  weir_error err = WEIR_ERROR_INIT;
  if (q.kernel->prepare(&call, &q.prepared, &err) != WEIR_OK) exit(1);
  size_t bytes = weir_scratch_align(q.prepared.scratch_bytes) +
                 2 * weir_scratch_align(q.prepared.worker_scratch_bytes);
  void *scratch = aligned_alloc(64, bytes + 64);
  double ours = 1e9, bare = 1e9, start = now_s();
  while (now_s() - start < seconds) {
    pthread_t thread;
    atomic_store(&threads.stop, 0);
    atomic_store(&threads.generation, 0);
    atomic_store(&threads.done, 0);
    pthread_create(&thread, NULL, second, &threads);
    for (double t = now_s(); now_s() - t < seconds / 20;) {
      double s = run_ours(&q, scratch);
      if (s < ours) ours = s;
    }
    atomic_store(&threads.stop, 1);
    pthread_join(thread, NULL);
    omp_set_num_threads(2);
    for (double t = now_s(); now_s() - t < seconds / 20;) {
      double s = run_bare(&q);
      if (s < bare) bare = s;
    }
  }
  double flops = 2e-9 * (double)(m * n * k);
  printf("%5ld x %5ld x %5ld  %-30s weir %7.1f  bare sgemm %7.1f  ratio %.3f\n",
         (long)m, (long)n, (long)k, q.prepared.algorithm, flops / ours,
         flops / bare, bare / ours);
  if (q.kernel->release) q.kernel->release(q.prepared.state);
  weir_arena_release(&arena);
  free(scratch);
  free(q.a);
  free(q.b);
  free(q.c);
}

int main(int argc, char **argv) {
  double seconds = argc > 1 ? atof(argv[1]) : 1;
  static const int64_t sizes[] = {64, 256, 1024, 2048};
  for (int i = 0; i < 4; i++) measure(sizes[i], sizes[i], sizes[i], seconds);
  measure(8, 8, 65536, seconds);
  measure(128, 1024, 1024, seconds);
  measure(1024, 3072, 768, seconds);
  measure(64, 120, 400, seconds);
  measure(512, 512, 512, seconds);
  measure(128, 784, 1024, seconds);
  measure(1024, 784, 128, seconds);
  return 0;
}
