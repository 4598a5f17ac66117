/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of conv2d beside each other on one thread:
 * `build/tests/bench/bench_conv [batch]`. Microseconds of processor time, the
 * least of many runs: the product; oneDNN from and to rows, weights packed in
 * each run and once; oneDNN in blocks of channels on both sides. A dash: the
 * kernel refuses. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/kernel.h"

typedef struct shape {
  int64_t c, oc, k, stride, size, groups;
} shape;

/* Twelve of ResNet-50's, then depthwise ones of MobileNet v3. */
static const shape kShapes[] = {
    {3, 64, 7, 2, 224, 1},   {64, 64, 1, 1, 56, 1},   {64, 64, 3, 1, 56, 1},
    {64, 256, 1, 1, 56, 1},  {256, 64, 1, 1, 56, 1},  {128, 128, 3, 2, 56, 1},
    {256, 512, 1, 2, 56, 1}, {128, 512, 1, 1, 28, 1}, {128, 128, 3, 1, 28, 1},
    {256, 256, 3, 1, 14, 1}, {512, 512, 3, 1, 7, 1},  {2048, 512, 1, 1, 7, 1},
    {16, 16, 3, 1, 112, 16}, {72, 72, 5, 2, 56, 72},  {240, 240, 3, 1, 14, 240},
    {672, 672, 5, 1, 7, 672}};

typedef struct problem {
  weir_dim stride, pad, one;
  weir_attr attrs[5];
  weir_operand in[3], out;
  weir_call call;
  float *data[3]; /* x, w, y */
} problem;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static weir_operand operand(int64_t a, int64_t b, int64_t c, int64_t d) {
  return (weir_operand){.dtype = WEIR_F32,
                        .rank = 4,
                        .dims = {a, b, c, d},
                        .elements = a * b * c * d};
}

static float *numbers(int64_t n) {
  float *p = aligned_alloc(64, ((size_t)n * sizeof *p + 127) / 64 * 64);
  for (int64_t i = 0; i < n; i++) p[i] = (float)(i * 7919 % 201 - 100) / 100;
  return p;
}

static const weir_op_def *conv2d(void) {
  const weir_registry *r = weir_builtin_registry();
  for (size_t i = 0; i < r->op_count; i++)
    if (strcmp(r->ops[i]->name, "conv2d") == 0) return r->ops[i];
  return NULL;
}

static const weir_kernel_def *kernel(const char *name) {
  for (size_t i = 0; i < weir_builtin_kernel_count; i++)
    if (strcmp(weir_builtin_kernels[i]->name, name) == 0)
      return weir_builtin_kernels[i];
  return NULL;
}

static void make(problem *p, const shape *s, int64_t n) {
  int64_t out = (s->size + s->k / 2 * 2 - s->k) / s->stride + 1;
  *p = (problem){.stride = weir_dim_of(s->stride),
                 .pad = weir_dim_of(s->k / 2),
                 .one = weir_dim_of(1)};
  const weir_dim *dims[3] = {&p->stride, &p->pad, &p->one};
  for (int i = 0; i < 3; i++)
    p->attrs[i] =
        (weir_attr){.kind = WEIR_ATTR_INTS, .count = 1, .dims = dims[i]};
  p->attrs[3] = (weir_attr){.kind = WEIR_ATTR_INT, .i = s->groups};
  p->in[0] = operand(n, s->c, s->size, s->size);
  p->in[1] = operand(s->oc, s->c / s->groups, s->k, s->k);
  p->out = operand(n, s->oc, out, out);
  p->data[0] = numbers(p->in[0].elements);
  p->data[1] = numbers(p->in[1].elements);
  p->data[2] = numbers(p->out.elements);
  p->call = (weir_call){.op = conv2d(),
                        .attrs = p->attrs,
                        .in = p->in,
                        .out = &p->out,
                        .in_count = 3,
                        .out_count = 1};
}

static void serial(void *self, int64_t blocks, weir_block_fn fn, void *arg) {
  (void)self;
  for (int64_t b = 0; b < blocks; b++) fn(arg, b, 0);
}

static void show(const problem *p, const char *name) {
  const weir_kernel_def *k = kernel(name);
  weir_arena arena;
  weir_error err = WEIR_ERROR_INIT;
  if (k->accepts != NULL && !k->accepts(&p->call, NULL)) {
    printf(" %10s", "-");
    return;
  }
  weir_arena_init(&arena, weir_allocator_system());
  weir_prepared made = {.arena = &arena, .alloc = weir_allocator_system()};
  if (k->prepare(&p->call, &made, &err) != WEIR_OK) exit(1);
  size_t bytes = weir_scratch_align(made.scratch_bytes) +
                 weir_scratch_align(made.worker_scratch_bytes) + 64;
  void *scratch = aligned_alloc(64, bytes);
  void *io[4] = {p->data[0], p->data[1], NULL, p->data[2]};
  weir_run_ctx ctx = {.parallel_for = serial, .workers = 1};
  weir_args args = {
      .io = io, .state = made.state, .scratch = scratch, .ctx = &ctx};
  double best = 1e18, end = now_us() + 50000;
  for (int i = 0; i < 4 || now_us() < end; i++) {
    double start = now_us();
    if (k->run(&args) != WEIR_OK) exit(1);
    double took = now_us() - start;
    if (took < best) best = took;
  }
  printf(" %10.1f", best);
  free(scratch);
  if (k->release != NULL) k->release(made.state);
  weir_arena_release(&arena);
}

int main(int argc, char **argv) {
  int64_t n = argc > 1 ? atol(argv[1]) : 1;
  if (n < 1) return 2;
  printf("%-26s %10s %10s %10s %10s\n", "shape", "gemm", "rows", "known w",
         "blocks");
  for (size_t i = 0; i < sizeof kShapes / sizeof kShapes[0]; i++) {
    const shape *s = &kShapes[i];
    problem p;
    make(&p, s, n);
    printf("%4" PRId64 ">%-4" PRId64 " k%" PRId64 " s%" PRId64 " %3" PRId64
           " g%-4" PRId64,
           s->c, s->oc, s->k, s->stride, s->size, s->groups);
    show(&p, "cpu.conv2d.gemm");
    show(&p, "cpu.conv2d.blocked");
    p.in[1].value = p.data[1];
    show(&p, "cpu.conv2d.blocked");
    p.out.layout = weir_isa_blocks(0);
    if (s->c > 3) p.in[0].layout = p.out.layout;
    show(&p, "cpu.conv2d.blocked");
    printf("\n");
    fflush(stdout);
    for (int k = 0; k < 3; k++) free(p.data[k]);
  }
  return 0;
}
