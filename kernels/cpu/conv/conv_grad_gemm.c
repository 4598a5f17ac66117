/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of conv2d as products of matrices, for shapes that the direct
 * kernels refuse: all windows, groups and both float types. A chunk of images
 * is unrolled to columns, one row for each place of a filter; filters'
 * gradients are dy times the columns, summed over chunks in order; images'
 * gradients are filters times dy, rolled up again.
 *
 * Invariant: chunks follow from the shape and are joined in order; within one,
 * the product fixes the order (gemm.h). A channel of dx is rolled up by one
 * block, tap after tap.
 * Cost: 2 n oc oh ow taps flop, and scratch for one chunk's columns: taps * oh
 * * ow * images elements, at most 1 GiB, else the call is refused. */
#include <assert.h>
#include <string.h>

#include "kernels/cpu/conv/conv_dims.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_plan.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/kernel.h"
#include "kernels/registry.h"
#include "ops/nn/window.h"
#include "runtime/base/size.h"

enum {
  kDepth = 512,          /* pixels of a chunk of a filters' gradient, wanted */
  kColumnBytes = 4 << 20 /* of a chunk's columns, where a chunk may choose */
};
static const size_t kMostBytes = (size_t)1 << 30;

typedef struct plan {
  const weir_isa *isa;
  weir_conv_dims dims;
  int64_t images;        /* of a chunk */
  weir_gemm whole, rest; /* products of a chunk, of the last one */
  size_t column_bytes, dy_bytes, part_bytes; /* of scratch, in this order */
} plan;

/* One chunk at work. */
typedef struct chunk {
  const plan *p;
  void *const *io;
  int64_t first, images;
  char *columns, *dy, *part;
} chunk;

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Columns of the output that place |j| of a filter's row meets in the image:
 * [from, to). */
static void meet(const plan *p, int side, int64_t j, int64_t *from,
                 int64_t *to) {
  const weir_window *v = &p->dims.window;
  int64_t size = side == 0 ? p->dims.h : p->dims.w,
          out = side == 0 ? p->dims.oh : p->dims.ow;
  int64_t at = j * v->dilation[side] - v->pad[side], step = v->stride[side];
  *from = at >= 0 ? 0 : (-at + step - 1) / step;
  *to = size - at <= 0 ? 0 : least(out, (size - at - 1) / step + 1);
  if (*from > *to) *from = *to;
  assert(*from >= 0 && *to <= out);
}

/* ---- Unrolling */

static void copy_strided(const plan *p, char *dst, const char *src,
                         int64_t count) {
  int64_t step = p->dims.window.stride[1];
  if (step == 1) {
    memcpy(dst, src, (size_t)count * p->dims.size);
  } else if (p->dims.size == 4) {
    uint32_t *d = (uint32_t *)(void *)dst;
    const uint32_t *s = (const uint32_t *)(const void *)src;
    for (int64_t i = 0; i < count; i++) d[i] = s[i * step];
  } else {
    uint64_t *d = (uint64_t *)(void *)dst;
    const uint64_t *s = (const uint64_t *)(const void *)src;
    for (int64_t i = 0; i < count; i++) d[i] = s[i * step];
  }
}

/* The pixels under place (i, j) of the filters, in one plane. */
static void unroll_place(const plan *p, char *dst, const char *plane, int64_t i,
                         int64_t j) {
  const weir_window *v = &p->dims.window;
  int64_t p0, p1, q0, q1;
  size_t row = (size_t)p->dims.ow * p->dims.size;
  meet(p, 0, i, &p0, &p1);
  meet(p, 1, j, &q0, &q1);
  memset(dst, 0, (size_t)p0 * row);
  for (int64_t y = p0; y < p1; y++) {
    char *to = dst + (size_t)y * row;
    int64_t from =
        (y * v->stride[0] + i * v->dilation[0] - v->pad[0]) * p->dims.w +
        q0 * v->stride[1] + j * v->dilation[1] - v->pad[1];
    memset(to, 0, (size_t)q0 * p->dims.size);
    copy_strided(p, to + (size_t)q0 * p->dims.size,
                 plane + from * (int64_t)p->dims.size, q1 - q0);
    memset(to + (size_t)q1 * p->dims.size, 0,
           (size_t)(p->dims.ow - q1) * p->dims.size);
  }
  memset(dst + (size_t)p1 * row, 0, (size_t)(p->dims.oh - p1) * row);
}

/* A channel of x, or of dy, of one image of the chunk. */
static void unroll_block(void *arg, int64_t index, int worker) {
  const chunk *k = arg;
  const plan *p = k->p;
  int64_t pixels = p->dims.oh * p->dims.ow, all = k->images * pixels;
  int64_t channels = p->dims.groups * p->dims.c, image = index % k->images;
  int64_t channel = index / k->images;
  (void)worker;
  if (channel >= channels) {
    channel -= channels;
    int64_t at = (k->first + image) * p->dims.groups * p->dims.oc + channel;
    memcpy(k->dy + (size_t)(channel * all + image * pixels) * p->dims.size,
           (const char *)k->io[1] + (size_t)(at * pixels) * p->dims.size,
           (size_t)pixels * p->dims.size);
    return;
  }
  const char *plane = (const char *)k->io[0] +
                      (size_t)(((k->first + image) * channels + channel) *
                               p->dims.h * p->dims.w) *
                          p->dims.size;
  int64_t kh = p->dims.window.kernel[0], kw = p->dims.window.kernel[1];
  for (int64_t i = 0; i < kh; i++)
    for (int64_t j = 0; j < kw; j++) {
      int64_t row = (channel * kh + i) * kw + j;
      unroll_place(
          p, k->columns + (size_t)(row * all + image * pixels) * p->dims.size,
          plane, i, j);
    }
}

/* ---- Filters */

static void add_part(const plan *p, void *dw, const void *part, bool first) {
  int64_t count = p->dims.groups * p->dims.oc * p->dims.taps;
  if (first) {
    memcpy(dw, part, (size_t)count * p->dims.size);
  } else if (p->dims.dtype == WEIR_F64) {
    double *y = dw;
    const double *x = part;
    for (int64_t i = 0; i < count; i++) y[i] += x[i];
  } else {
    float *y = dw;
    const float *x = part;
    for (int64_t i = 0; i < count; i++) y[i] += x[i];
  }
}

/* Sums of dy by channel: images in order. Each image's sum is in f64 already
 * (isa.h), so no precision is lost between them. */
static void sum_bias(void *arg, int64_t o, int worker) {
  const weir_args *args = arg;
  const plan *p = args->state;
  int64_t pixels = p->dims.oh * p->dims.ow,
          channels = p->dims.groups * p->dims.oc;
  double sum = 0;
  (void)worker;
  for (int64_t n = 0; n < p->dims.n; n++) {
    int64_t at = (n * channels + o) * pixels;
    if (p->dims.dtype == WEIR_F64)
      for (int64_t i = 0; i < pixels; i++)
        sum += ((const double *)args->io[1])[at + i];
    else
      sum += p->isa->rows->sum((const float *)args->io[1] + at, pixels);
  }
  if (p->dims.dtype == WEIR_F64)
    ((double *)args->io[3])[o] = sum;
  else
    ((float *)args->io[3])[o] = (float)sum;
}

/* The arguments of weir_gemm_run: its scratch lies after the plan's own. */
static weir_args product_args(const plan *p, const weir_args *args) {
  weir_args inner = *args;
  inner.scratch =
      (char *)args->scratch + p->column_bytes + p->dy_bytes + p->part_bytes;
  return inner;
}

static weir_status run_weight(const weir_args *args) {
  const plan *p = args->state;
  weir_args inner = product_args(p, args);
  chunk k = {.p = p, .io = args->io, .columns = args->scratch};
  k.dy = k.columns + p->column_bytes;
  k.part = k.dy + p->dy_bytes;
  int64_t channels =
      p->dims.groups * (p->dy_bytes > 0 ? p->dims.c + p->dims.oc : p->dims.c);
  for (k.first = 0; k.first < p->dims.n; k.first += p->images) {
    k.images = least(p->images, p->dims.n - k.first);
    weir_parallel_for(args, k.images * channels, unroll_block, &k);
    int64_t at =
        k.first * p->dims.groups * p->dims.oc * p->dims.oh * p->dims.ow;
    weir_gemm_io io = {.a = p->dy_bytes > 0 ? k.dy
                                            : (const char *)args->io[1] +
                                                  (size_t)at * p->dims.size,
                       .b = k.columns,
                       .c = k.part};
    WEIR_TRY(weir_gemm_run(k.images == p->images ? &p->whole : &p->rest, &io,
                           &inner));
    add_part(p, args->io[2], k.part, k.first == 0);
  }
  if (args->io[3] != NULL)
    weir_parallel_for(args, p->dims.groups * p->dims.oc, sum_bias,
                      (void *)(uintptr_t)args);
  return WEIR_OK;
}

/* ---- Images */

#define ROLL_UP(type)                                                          \
  static void roll_up_##type(const plan *p, type *plane, const type *from) {   \
    const weir_window *v = &p->dims.window;                                    \
    memset(plane, 0, (size_t)(p->dims.h * p->dims.w) * sizeof(type));          \
    for (int64_t i = 0; i < v->kernel[0]; i++)                                 \
      for (int64_t j = 0; j < v->kernel[1];                                    \
           j++, from += p->dims.oh * p->dims.ow) {                             \
        int64_t p0, p1, q0, q1, step = v->stride[1];                           \
        meet(p, 0, i, &p0, &p1);                                               \
        meet(p, 1, j, &q0, &q1);                                               \
        for (int64_t y = p0; y < p1; y++) {                                    \
          int64_t row = y * v->stride[0] + i * v->dilation[0] - v->pad[0];     \
          type *to = plane + row * p->dims.w + j * v->dilation[1] - v->pad[1]; \
          const type *x = from + y * p->dims.ow;                               \
          if (step == 1)                                                       \
            for (int64_t q = q0; q < q1; q++) to[q] += x[q];                   \
          else                                                                 \
            for (int64_t q = q0; q < q1; q++) to[q * step] += x[q];            \
        }                                                                      \
      }                                                                        \
  }

ROLL_UP(float)
ROLL_UP(double)

/* A channel of dx of one image of the chunk. */
static void roll_up_block(void *arg, int64_t index, int worker) {
  const chunk *k = arg;
  const plan *p = k->p;
  int64_t window = p->dims.window.kernel[0] * p->dims.window.kernel[1];
  size_t plane = (size_t)(k->first * p->dims.groups * p->dims.c + index) *
                 (size_t)(p->dims.h * p->dims.w) * p->dims.size;
  const void *from =
      k->columns +
      (size_t)(index * window * p->dims.oh * p->dims.ow) * p->dims.size;
  void *to = (char *)k->io[2] + plane;
  (void)worker;
  if (p->dims.dtype == WEIR_F64)
    roll_up_double(p, to, from);
  else
    roll_up_float(p, to, from);
}

static weir_status run_input(const weir_args *args) {
  const plan *p = args->state;
  weir_args inner = product_args(p, args);
  chunk k = {.p = p, .io = args->io, .columns = args->scratch};
  for (k.first = 0; k.first < p->dims.n; k.first += p->images) {
    k.images = least(p->images, p->dims.n - k.first);
    int64_t at =
        k.first * p->dims.groups * p->dims.oc * p->dims.oh * p->dims.ow;
    weir_gemm_io io = {
        .a = args->io[0],
        .b = (const char *)args->io[1] + (size_t)at * p->dims.size,
        .c = p->dims.in_place ? args->io[2] : k.columns};
    WEIR_TRY(weir_gemm_run(k.images == p->images ? &p->whole : &p->rest, &io,
                           &inner));
    if (!p->dims.in_place)
      weir_parallel_for(args, k.images * p->dims.groups * p->dims.c,
                        roll_up_block, &k);
  }
  return WEIR_OK;
}

/* ---- Plans */

/* Begins a plan for the operands of |call| that are x, w and y, or their
 * gradients. */
static bool begin_plan(const weir_call *call, const weir_operand *x,
                       const weir_operand *w, const weir_operand *y, plan *p,
                       weir_why *why) {
  *p = (plan){.isa = weir_isa_of(call)};
  if (x->elements == 0 || w->elements == 0 || y->elements == 0)
    return weir_no(why, "no elements");
  p->dims = weir_conv_dims_of(call, x, w, y);
  return true;
}

static bool bytes_of(const plan *p, int64_t a, int64_t b, size_t *out) {
  size_t bytes;
  return weir_size_mul((size_t)a, (size_t)b, &bytes) &&
         weir_size_mul(bytes, p->dims.size, &bytes) && bytes <= kMostBytes &&
         weir_size_align(bytes, 64, out);
}

static void plan_weight_product(const plan *p, int64_t images,
                                weir_gemm *gemm) {
  int64_t depth = images * p->dims.oh * p->dims.ow;
  weir_gemm_shape s = {.dtype = p->dims.dtype,
                       .m = p->dims.oc,
                       .n = p->dims.taps,
                       .k = depth,
                       .a_row = depth,
                       .a_k = 1,
                       .b_k = 1,
                       .b_column = depth,
                       .batch_rank = 1,
                       .batches = p->dims.groups,
                       .batch_dims = {p->dims.groups},
                       .a_batch = {p->dims.oc * depth},
                       .b_batch = {p->dims.taps * depth}};
  weir_gemm_plan(&s, p->isa, false, gemm);
}

static bool plan_weight(const weir_call *call, plan *p, weir_why *why) {
  if (!begin_plan(call, &call->in[0], &call->out[0], &call->in[1], p, why))
    return false;
  int64_t pixels = p->dims.oh * p->dims.ow,
          channels = p->dims.groups * p->dims.taps;
  p->images = least((kDepth + pixels - 1) / pixels, p->dims.n);
  int64_t depth = p->images * pixels;
  if (!bytes_of(p, channels, depth, &p->column_bytes) ||
      !bytes_of(p, p->dims.groups * p->dims.oc, depth, &p->dy_bytes) ||
      !bytes_of(p, p->dims.groups * p->dims.oc, p->dims.taps, &p->part_bytes))
    return weir_no(why, "the columns take too much memory");
  if (p->images == 1) p->dy_bytes = 0;
  plan_weight_product(p, p->images, &p->whole);
  if (p->dims.n % p->images > 0)
    plan_weight_product(p, p->dims.n % p->images, &p->rest);
  return true;
}

static void plan_input_product(const plan *p, int64_t images, weir_gemm *gemm) {
  int64_t pixels = p->dims.oh * p->dims.ow;
  weir_gemm_shape s = {
      .dtype = p->dims.dtype,
      .m = p->dims.taps,
      .n = pixels,
      .k = p->dims.oc,
      .a_row = 1,
      .a_k = p->dims.taps,
      .b_k = pixels,
      .b_column = 1,
      .batch_rank = 2,
      .batches = images * p->dims.groups,
      .batch_dims = {images, p->dims.groups},
      .a_batch = {0, p->dims.oc * p->dims.taps},
      .b_batch = {p->dims.groups * p->dims.oc * pixels, p->dims.oc * pixels}};
  weir_gemm_plan(&s, p->isa, false, gemm);
}

static bool plan_input(const weir_call *call, plan *p, weir_why *why) {
  if (!begin_plan(call, &call->out[0], &call->in[0], &call->in[1], p, why))
    return false;
  size_t image;
  if (!bytes_of(p, p->dims.groups * p->dims.taps, p->dims.oh * p->dims.ow,
                &image))
    return weir_no(why, "the columns take too much memory");
  p->images = p->dims.in_place
                  ? p->dims.n
                  : least(kColumnBytes / (int64_t)image, p->dims.n);
  if (p->images < 1) p->images = 1;
  if (!p->dims.in_place) p->column_bytes = image * (size_t)p->images;
  plan_input_product(p, p->images, &p->whole);
  if (p->dims.n % p->images > 0)
    plan_input_product(p, p->dims.n % p->images, &p->rest);
  return true;
}

static bool accepts_weight(const weir_call *call, weir_why *why) {
  plan p;
  return plan_weight(call, &p, why);
}

static bool accepts_input(const weir_call *call, weir_why *why) {
  plan p;
  return plan_input(call, &p, why);
}

static weir_status prepare(const weir_call *call,
                           bool (*make)(const weir_call *, plan *, weir_why *),
                           weir_prepared *out, weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (!p) return weir_fail_memory(err, sizeof *p);
  if (!make(call, p, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "%s: call not accepted",
                     call->op->name);
  size_t shared = p->whole.scratch_bytes, worker = p->whole.worker_bytes;
  if (p->dims.n % p->images > 0) {
    if (shared < p->rest.scratch_bytes) shared = p->rest.scratch_bytes;
    if (worker < p->rest.worker_bytes) worker = p->rest.worker_bytes;
  }
  out->state = p;
  out->scratch_bytes = p->column_bytes + p->dy_bytes + p->part_bytes + shared;
  out->worker_scratch_bytes = worker;
  out->algorithm = p->whole.text;
  return WEIR_OK;
}

static weir_status prepare_weight(const weir_call *call, weir_prepared *out,
                                  weir_error *err) {
  return prepare(call, plan_weight, out, err);
}

static weir_status prepare_input(const weir_call *call, weir_prepared *out,
                                 weir_error *err) {
  return prepare(call, plan_input, out, err);
}

const weir_kernel_def weir_kernel_cpu_conv2d_grad_weight_gemm = {
    .op = "conv2d_grad_weight",
    .name = "cpu.conv2d_grad_weight.gemm",
    .device = WEIR_CPU,
    .types = WEIR_FLOATS,
    .accepts = accepts_weight,
    .prepare = prepare_weight,
    .run = run_weight};

const weir_kernel_def weir_kernel_cpu_conv2d_grad_input_gemm = {
    .op = "conv2d_grad_input",
    .name = "cpu.conv2d_grad_input.gemm",
    .device = WEIR_CPU,
    .types = WEIR_FLOATS,
    .accepts = accepts_input,
    .prepare = prepare_input,
    .run = run_input};
