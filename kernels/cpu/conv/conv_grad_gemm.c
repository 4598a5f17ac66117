/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of conv2d as products of matrices, for what the direct kernels do
 * not take: all windows, groups and both float types. A chunk of images is
 * unrolled to columns, one row for each place of a filter; filters' gradients
 * are dy times the columns, summed over chunks in order; images' gradients are
 * filters times dy, rolled up again. */
#include <string.h>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_plan.h"
#include "kernels/cpu/isa/choose.h"
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
  weir_dtype dtype;
  size_t size;
  weir_window window;
  int64_t n, groups, c, oc; /* channels of one group */
  int64_t h, w, oh, ow;
  int64_t taps;          /* of a filter: c * kh * kw */
  int64_t images;        /* of a chunk */
  bool in_place;         /* images' gradient: the product is dx */
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
  const weir_window *v = &p->window;
  int64_t size = side == 0 ? p->h : p->w, out = side == 0 ? p->oh : p->ow;
  int64_t at = j * v->dilation[side] - v->pad[side], step = v->stride[side];
  *from = at >= 0 ? 0 : (-at + step - 1) / step;
  *to = size - at <= 0 ? 0 : least(out, (size - at - 1) / step + 1);
  if (*from > *to) *from = *to;
}

/* ---- Unrolling */

static void copy_strided(const plan *p, char *dst, const char *src,
                         int64_t count) {
  int64_t step = p->window.stride[1];
  if (step == 1) {
    memcpy(dst, src, (size_t)count * p->size);
  } else if (p->size == 4) {
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
  const weir_window *v = &p->window;
  int64_t p0, p1, q0, q1;
  size_t row = (size_t)p->ow * p->size;
  meet(p, 0, i, &p0, &p1);
  meet(p, 1, j, &q0, &q1);
  memset(dst, 0, (size_t)p0 * row);
  for (int64_t y = p0; y < p1; y++) {
    char *to = dst + (size_t)y * row;
    int64_t from = (y * v->stride[0] + i * v->dilation[0] - v->pad[0]) * p->w +
                   q0 * v->stride[1] + j * v->dilation[1] - v->pad[1];
    memset(to, 0, (size_t)q0 * p->size);
    copy_strided(p, to + (size_t)q0 * p->size, plane + from * (int64_t)p->size,
                 q1 - q0);
    memset(to + (size_t)q1 * p->size, 0, (size_t)(p->ow - q1) * p->size);
  }
  memset(dst + (size_t)p1 * row, 0, (size_t)(p->oh - p1) * row);
}

/* A channel of x, or of dy, of one image of the chunk. */
static void unroll_block(void *arg, int64_t index, int worker) {
  const chunk *k = arg;
  const plan *p = k->p;
  int64_t pixels = p->oh * p->ow, all = k->images * pixels;
  int64_t channels = p->groups * p->c, image = index % k->images;
  int64_t channel = index / k->images;
  (void)worker;
  if (channel >= channels) {
    channel -= channels;
    int64_t at = (k->first + image) * p->groups * p->oc + channel;
    memcpy(k->dy + (size_t)(channel * all + image * pixels) * p->size,
           (const char *)k->io[1] + (size_t)(at * pixels) * p->size,
           (size_t)pixels * p->size);
    return;
  }
  const char *plane =
      (const char *)k->io[0] +
      (size_t)(((k->first + image) * channels + channel) * p->h * p->w) *
          p->size;
  int64_t kh = p->window.kernel[0], kw = p->window.kernel[1];
  for (int64_t i = 0; i < kh; i++)
    for (int64_t j = 0; j < kw; j++) {
      int64_t row = (channel * kh + i) * kw + j;
      unroll_place(p,
                   k->columns + (size_t)(row * all + image * pixels) * p->size,
                   plane, i, j);
    }
}

/* ---- Filters */

static void add_part(const plan *p, void *dw, const void *part, bool first) {
  int64_t count = p->groups * p->oc * p->taps;
  if (first) {
    memcpy(dw, part, (size_t)count * p->size);
  } else if (p->dtype == WEIR_F64) {
    double *y = dw;
    const double *x = part;
    for (int64_t i = 0; i < count; i++) y[i] += x[i];
  } else {
    float *y = dw;
    const float *x = part;
    for (int64_t i = 0; i < count; i++) y[i] += x[i];
  }
}

/* Sums of dy by channel: images in order. */
static void sum_bias(void *arg, int64_t o, int worker) {
  const weir_args *args = arg;
  const plan *p = args->state;
  int64_t pixels = p->oh * p->ow, channels = p->groups * p->oc;
  double sum = 0;
  (void)worker;
  for (int64_t n = 0; n < p->n; n++) {
    int64_t at = (n * channels + o) * pixels;
    if (p->dtype == WEIR_F64)
      for (int64_t i = 0; i < pixels; i++)
        sum += ((const double *)args->io[1])[at + i];
    else
      sum +=
          weir_isa_choose()->rows->sum((const float *)args->io[1] + at, pixels);
  }
  if (p->dtype == WEIR_F64)
    ((double *)args->io[3])[o] = sum;
  else
    ((float *)args->io[3])[o] = (float)sum;
}

/* What weir_gemm_run is given: scratch after the plan's own. */
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
  int64_t channels = p->groups * (p->dy_bytes > 0 ? p->c + p->oc : p->c);
  for (k.first = 0; k.first < p->n; k.first += p->images) {
    k.images = least(p->images, p->n - k.first);
    weir_parallel_for(args, k.images * channels, unroll_block, &k);
    int64_t at = k.first * p->groups * p->oc * p->oh * p->ow;
    weir_gemm_io io = {
        .a = p->dy_bytes > 0 ? k.dy
                             : (const char *)args->io[1] + (size_t)at * p->size,
        .b = k.columns,
        .c = k.part};
    WEIR_TRY(weir_gemm_run(k.images == p->images ? &p->whole : &p->rest, &io,
                           &inner));
    add_part(p, args->io[2], k.part, k.first == 0);
  }
  if (args->io[3] != NULL)
    weir_parallel_for(args, p->groups * p->oc, sum_bias,
                      (void *)(uintptr_t)args);
  return WEIR_OK;
}

/* ---- Images */

#define ROLL_UP(type)                                                        \
  static void roll_up_##type(const plan *p, type *plane, const type *from) { \
    const weir_window *v = &p->window;                                       \
    memset(plane, 0, (size_t)(p->h * p->w) * sizeof(type));                  \
    for (int64_t i = 0; i < v->kernel[0]; i++)                               \
      for (int64_t j = 0; j < v->kernel[1]; j++, from += p->oh * p->ow) {    \
        int64_t p0, p1, q0, q1, step = v->stride[1];                         \
        meet(p, 0, i, &p0, &p1);                                             \
        meet(p, 1, j, &q0, &q1);                                             \
        for (int64_t y = p0; y < p1; y++) {                                  \
          int64_t row = y * v->stride[0] + i * v->dilation[0] - v->pad[0];   \
          type *to = plane + row * p->w + j * v->dilation[1] - v->pad[1];    \
          const type *x = from + y * p->ow;                                  \
          if (step == 1)                                                     \
            for (int64_t q = q0; q < q1; q++) to[q] += x[q];                 \
          else                                                               \
            for (int64_t q = q0; q < q1; q++) to[q * step] += x[q];          \
        }                                                                    \
      }                                                                      \
  }

ROLL_UP(float)
ROLL_UP(double)

/* A channel of dx of one image of the chunk. */
static void roll_up_block(void *arg, int64_t index, int worker) {
  const chunk *k = arg;
  const plan *p = k->p;
  int64_t window = p->window.kernel[0] * p->window.kernel[1];
  size_t plane = (size_t)(k->first * p->groups * p->c + index) *
                 (size_t)(p->h * p->w) * p->size;
  const void *from =
      k->columns + (size_t)(index * window * p->oh * p->ow) * p->size;
  void *to = (char *)k->io[2] + plane;
  (void)worker;
  if (p->dtype == WEIR_F64)
    roll_up_double(p, to, from);
  else
    roll_up_float(p, to, from);
}

static weir_status run_input(const weir_args *args) {
  const plan *p = args->state;
  weir_args inner = product_args(p, args);
  chunk k = {.p = p, .io = args->io, .columns = args->scratch};
  for (k.first = 0; k.first < p->n; k.first += p->images) {
    k.images = least(p->images, p->n - k.first);
    int64_t at = k.first * p->groups * p->oc * p->oh * p->ow;
    weir_gemm_io io = {.a = args->io[0],
                       .b = (const char *)args->io[1] + (size_t)at * p->size,
                       .c = p->in_place ? args->io[2] : k.columns};
    WEIR_TRY(weir_gemm_run(k.images == p->images ? &p->whole : &p->rest, &io,
                           &inner));
    if (!p->in_place)
      weir_parallel_for(args, k.images * p->groups * p->c, roll_up_block, &k);
  }
  return WEIR_OK;
}

/* ---- Plans */

static bool read_dims(const weir_call *call, const weir_operand *x,
                      const weir_operand *w, const weir_operand *y, plan *p,
                      weir_why *why) {
  const weir_window *v = &p->window;
  if (x->elements == 0 || w->elements == 0 || y->elements == 0)
    return weir_no(why, "no elements");
  weir_call_window(call, &p->window);
  p->dtype = x->dtype;
  p->size = weir_dtype_size(x->dtype);
  p->groups = v->groups;
  p->n = x->dims[0];
  p->c = w->dims[1];
  p->oc = w->dims[0] / p->groups;
  p->h = x->dims[2];
  p->w = x->dims[3];
  p->oh = y->dims[2];
  p->ow = y->dims[3];
  p->taps = p->c * v->kernel[0] * v->kernel[1];
  p->in_place = v->kernel[0] == 1 && v->kernel[1] == 1 && v->stride[0] == 1 &&
                v->stride[1] == 1 &&
                v->pad[0] + v->pad[1] + v->pad[2] + v->pad[3] == 0;
  return true;
}

static bool bytes_of(const plan *p, int64_t a, int64_t b, size_t *out) {
  size_t bytes;
  return weir_size_mul((size_t)a, (size_t)b, &bytes) &&
         weir_size_mul(bytes, p->size, &bytes) && bytes <= kMostBytes &&
         weir_size_align(bytes, 64, out);
}

static void plan_weight_product(const plan *p, int64_t images,
                                weir_gemm *gemm) {
  int64_t depth = images * p->oh * p->ow;
  weir_gemm_shape s = {.dtype = p->dtype,
                       .m = p->oc,
                       .n = p->taps,
                       .k = depth,
                       .a_row = depth,
                       .a_k = 1,
                       .b_k = 1,
                       .b_column = depth,
                       .batch_rank = 1,
                       .batches = p->groups,
                       .batch_dims = {p->groups},
                       .a_batch = {p->oc * depth},
                       .b_batch = {p->taps * depth}};
  weir_gemm_plan(&s, false, gemm);
}

static bool plan_weight(const weir_call *call, plan *p, weir_why *why) {
  *p = (plan){.n = 0};
  if (!read_dims(call, &call->in[0], &call->out[0], &call->in[1], p, why))
    return false;
  int64_t pixels = p->oh * p->ow, channels = p->groups * p->taps;
  p->images = least((kDepth + pixels - 1) / pixels, p->n);
  int64_t depth = p->images * pixels;
  if (!bytes_of(p, channels, depth, &p->column_bytes) ||
      !bytes_of(p, p->groups * p->oc, depth, &p->dy_bytes) ||
      !bytes_of(p, p->groups * p->oc, p->taps, &p->part_bytes))
    return weir_no(why, "the columns take too much memory");
  if (p->images == 1) p->dy_bytes = 0;
  plan_weight_product(p, p->images, &p->whole);
  if (p->n % p->images > 0) plan_weight_product(p, p->n % p->images, &p->rest);
  return true;
}

static void plan_input_product(const plan *p, int64_t images, weir_gemm *gemm) {
  int64_t pixels = p->oh * p->ow;
  weir_gemm_shape s = {.dtype = p->dtype,
                       .m = p->taps,
                       .n = pixels,
                       .k = p->oc,
                       .a_row = 1,
                       .a_k = p->taps,
                       .b_k = pixels,
                       .b_column = 1,
                       .batch_rank = 2,
                       .batches = images * p->groups,
                       .batch_dims = {images, p->groups},
                       .a_batch = {0, p->oc * p->taps},
                       .b_batch = {p->groups * p->oc * pixels, p->oc * pixels}};
  weir_gemm_plan(&s, false, gemm);
}

static bool plan_input(const weir_call *call, plan *p, weir_why *why) {
  *p = (plan){.n = 0};
  if (!read_dims(call, &call->out[0], &call->in[0], &call->in[1], p, why))
    return false;
  size_t image;
  if (!bytes_of(p, p->groups * p->taps, p->oh * p->ow, &image))
    return weir_no(why, "the columns take too much memory");
  p->images = p->in_place ? p->n : least(kColumnBytes / (int64_t)image, p->n);
  if (p->images < 1) p->images = 1;
  if (!p->in_place) p->column_bytes = image * (size_t)p->images;
  plan_input_product(p, p->images, &p->whole);
  if (p->n % p->images > 0) plan_input_product(p, p->n % p->images, &p->rest);
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
  if (p->n % p->images > 0) {
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
