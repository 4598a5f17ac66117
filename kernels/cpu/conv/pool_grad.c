/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of poolings of f32, alone or with element-wise followers. dx may be
 * N16 with a dy that is N16 or plain; x has dx's layout. Planes of dx are the
 * units of work; followers run on rows that are still in the first cache.
 *
 * Means over windows side by side are copies: each dx is written once. All
 * other windows may overlap, so the plane is zeroed and windows add to it, row
 * by row from the left: the order of each sum is fixed. The followers run when
 * the plane is complete. */
#include <string.h>

#include "kernels/cpu/conv/n16.h"
#include "kernels/cpu/ew/ew_build.h"
#include "kernels/cpu/ew/ew_run.h"
#include "kernels/cpu/gemm/matmul_shape.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/kernel.h"
#include "kernels/registry.h"
#include "ops/nn/window.h"

typedef struct plan {
  const weir_isa *isa;
  weir_window window;
  bool largest, with_padding;
  bool side_by_side; /* windows of a mean cover dx once */
  bool convert;      /* dy is plain, dx N16 */
  int32_t x_io, dy_io, dx_io;
  int64_t n, c;
  int64_t lanes; /* floats of a pixel */
  int64_t planes, h, w, out_h, out_w;
  int64_t block;            /* planes */
  size_t dy_bytes;          /* of a worker's scratch; the followers' is after */
  const weir_ew *followers; /* or NULL */
} plan;

/* A plane on its way. */
typedef struct work {
  const plan *p;
  void *const *io;
  int64_t at; /* its first element in dx */
  char *scratch;
} work;

typedef struct job {
  const plan *p;
  const weir_args *args;
} job;

/* The input's places under a window along one side. */
typedef struct span {
  int64_t from, to, padded; /* padded: with those of the padding */
} span;

static span span_of(const weir_window *window, int side, int64_t at,
                    int64_t size) {
  int64_t begin = at * window->stride[side] - window->pad[side];
  int64_t end = begin + window->kernel[side];
  int64_t limit = size + window->pad[side + 2];
  span s = {begin < 0 ? 0 : begin, end < size ? end : size,
            (end < limit ? end : limit) - begin};
  return s;
}

/* Elements [from, to) of the plane are done. */
static void follow(const work *w, int64_t from, int64_t to) {
  if (w->p->followers)
    weir_ew_range(w->p->followers, w->io, w->at + from, w->at + to, w->scratch);
}

/* k x k windows that cover the plane: rows of dx are copies of each other. */
static void cover_plane(const work *w, float *dx, const float *dy) {
  const plan *p = w->p;
  int64_t k = p->window.kernel[0], row = p->w * p->lanes;
  float divisor = (float)(k * p->window.kernel[1]);
  for (int64_t i = 0; i < p->out_h; i++, dx += k * row) {
    p->isa->pool_grad->spread(dx, dy + i * p->out_w * p->lanes, p->out_w,
                              (int32_t)p->window.kernel[1], (int32_t)p->lanes,
                              divisor);
    for (int64_t j = 1; j < k; j++)
      memcpy(dx + j * row, dx, (size_t)row * sizeof(float));
    follow(w, i * k * row, (i + 1) * k * row);
  }
}

static void window_at(const plan *p, float *dx, const float *x, const float *dy,
                      const span *h, const span *w) {
  const weir_pool_grad_table *table = p->isa->pool_grad;
  int64_t row = p->w * p->lanes, at = h->from * row + w->from * p->lanes;
  int32_t rows = (int32_t)(h->to - h->from);
  int32_t columns = (int32_t)(w->to - w->from), depth = (int32_t)p->lanes;
  int64_t count =
      p->with_padding ? h->padded * w->padded : (int64_t)rows * columns;
  if (p->largest)
    table->max(dx + at, x + at, dy, row, rows, columns, depth);
  else
    table->add(dx + at, dy, row, rows, columns, depth, (float)count);
}

static void plane(const work *w, float *dx, const float *x, const float *dy) {
  const plan *p = w->p;
  int64_t size = p->h * p->w * p->lanes;
  if (p->side_by_side) {
    cover_plane(w, dx, dy);
    return;
  }
  memset(dx, 0, (size_t)size * sizeof(float));
  for (int64_t i = 0; i < p->out_h; i++) {
    span h = span_of(&p->window, 0, i, p->h);
    for (int64_t j = 0; j < p->out_w; j++, dy += p->lanes) {
      span v = span_of(&p->window, 1, j, p->w);
      window_at(p, dx, x, dy, &h, &v);
    }
  }
  follow(w, 0, size);
}

/* dy of plane |k| in the layout of dx. */
static const float *dy_of(const plan *p, const float *dy, int64_t k,
                          float *buffer) {
  int64_t size = p->out_h * p->out_w;
  if (!p->convert) return dy + k * size * p->lanes;
  int64_t b = k / p->c, image = p->c * size;
  int64_t count = p->n - b * 16 < 16 ? p->n - b * 16 : 16;
  if (count < 16) memset(buffer, 0, (size_t)size * 16 * sizeof(float));
  p->isa->rows->transpose(buffer, 16, dy + b * 16 * image + k % p->c * size,
                          image, count, size);
  return buffer;
}

static size_t worker_bytes(const plan *p) {
  return p->dy_bytes +
         (p->followers ? weir_scratch_align(p->followers->scratch_bytes) : 0);
}

static void block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const plan *p = j->p;
  void *const *io = j->args->io;
  int64_t end = (b + 1) * p->block < p->planes ? (b + 1) * p->block : p->planes;
  char *own = (char *)j->args->scratch + (size_t)worker * worker_bytes(p);
  float *buffer = (float *)(void *)own;
  int64_t size = p->h * p->w * p->lanes;
  for (int64_t k = b * p->block; k < end; k++) {
    work w = {p, io, k * size, own + p->dy_bytes};
    plane(&w, (float *)io[p->dx_io] + k * size,
          p->largest ? (const float *)io[p->x_io] + k * size : NULL,
          dy_of(p, io[p->dy_io], k, buffer));
  }
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  job j = {p, args};
  if (p->followers) WEIR_TRY(weir_ew_check(p->followers, args));
  if (p->planes * p->h * p->w > 0)
    weir_parallel_for(args, (p->planes + p->block - 1) / p->block, block, &j);
  return WEIR_OK;
}

/* |layout|: dx's. */
static bool takes(const weir_call *call, weir_layout layout, weir_why *why) {
  if (weir_layout_channels(layout) > 0 ||
      weir_layout_channels(call->in[call->in_count - 1].layout) > 0)
    return weir_no(why, "blocks of channels");
  if (call->in_count == 2 && call->in[0].layout != layout)
    return weir_no(why, "x and dx in different layouts");
  if (layout == WEIR_LAYOUT_PLAIN &&
      call->in[call->in_count - 1].layout != WEIR_LAYOUT_PLAIN)
    return weir_no(why, "dy N16 and dx plain");
  return true;
}

static bool accepts(const weir_call *call, weir_why *why) {
  return takes(call, call->out[0].layout, why);
}

static void read_call(const weir_call *call, weir_layout layout, plan *p) {
  const weir_operand *dx = &call->out[0], *dy = &call->in[call->in_count - 1];
  const weir_window *v = &p->window;
  weir_call_window(call, &p->window);
  p->largest = call->in_count == 2;
  p->with_padding = !p->largest && weir_call_attr(call, "count_include_pad")->b;
  p->dy_io = (int32_t)call->in_count - 1;
  p->dx_io = (int32_t)call->in_count;
  bool images = layout == WEIR_LAYOUT_N16;
  p->convert = images && dy->layout == WEIR_LAYOUT_PLAIN;
  p->lanes = images ? 16 : 1;
  p->n = dx->dims[0];
  p->c = dx->dims[1];
  p->planes = (images ? (p->n + 15) / 16 : p->n) * p->c;
  p->h = dx->dims[2];
  p->w = dx->dims[3];
  p->out_h = dy->dims[2];
  p->out_w = dy->dims[3];
  p->side_by_side = !p->largest && v->kernel[0] == v->stride[0] &&
                    v->kernel[1] == v->stride[1] &&
                    v->pad[0] + v->pad[1] + v->pad[2] + v->pad[3] == 0 &&
                    p->out_h * v->kernel[0] == p->h &&
                    p->out_w * v->kernel[1] == p->w;
  if (p->convert)
    p->dy_bytes =
        weir_scratch_align((size_t)(p->out_h * p->out_w) * 16 * sizeof(float));
  p->block = 65536 / (p->h * p->w * p->lanes + 1) + 1;
  if (p->block * 2 > p->planes) p->block = p->planes;
  if (p->block < 1) p->block = 1;
}

/* A plan for |call| whose dx has |layout|; NULL without memory. |followers|,
 * planned already, or NULL. */
static plan *make_plan(const weir_call *call, weir_layout layout,
                       const weir_ew *followers, weir_prepared *out) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (!p) return NULL;
  *p = (plan){.isa = weir_isa_of(call), .followers = followers};
  read_call(call, layout, p);
  out->state = p;
  out->worker_scratch_bytes = worker_bytes(p);
  out->algorithm = p->lanes == 16 ? "16 images a vector" : "window by window";
  return p;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  const plan *p = make_plan(call, call->out[0].layout, NULL, out);
  return p ? WEIR_OK : weir_fail_memory(err, sizeof *p);
}

/* ---- With followers */

static bool plan_group(const weir_group *group, weir_ew_room *room,
                       weir_why *why) {
  const weir_call *call = &group->calls[0];
  int32_t io = weir_anchor_io(group);
  if (strcmp(call->op->name, "avg_pool_grad") != 0 &&
      strcmp(call->op->name, "max_pool_grad") != 0)
    return weir_no(why, "does not start with the gradient of a pooling");
  if (call->out[0].dtype != WEIR_F32) return weir_no(why, "f32 only");
  if (io < 0) return weir_no(why, "no output to write the gradient to");
  return takes(call, group->out[0].layout, why) &&
         weir_ew_build(group, 1, io, false, room, why);
}

static bool group_accepts(const weir_group *group, weir_why *why) {
  weir_ew_room room;
  return plan_group(group, &room, why);
}

static weir_status group_prepare(const weir_group *group, weir_prepared *out,
                                 weir_error *err) {
  const weir_call *call = &group->calls[0];
  const weir_group_ref *refs = group->refs[0];
  weir_ew_room room;
  if (!plan_group(group, &room, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "cpu.pool_grad: not accepted");
  const weir_ew *ew = weir_ew_keep(&room, out->arena);
  if (!ew) return weir_fail_memory(err, sizeof *ew);
  plan *p = make_plan(call, group->out[0].layout, ew, out);
  if (!p) return weir_fail_memory(err, sizeof *p);
  p->x_io = (int32_t)refs[0].index;
  p->dy_io = (int32_t)refs[call->in_count - 1].index;
  p->dx_io = weir_anchor_io(group);
  return WEIR_OK;
}

const weir_group_kernel_def weir_group_cpu_pool_grad = {
    .name = "cpu.pool_grad_fused",
    .device = WEIR_CPU,
    .accepts = group_accepts,
    .layouts = true,
    .prepare = group_prepare,
    .run = run};

const weir_kernel_def weir_kernel_cpu_max_pool_grad = {
    .op = "max_pool_grad",
    .name = "cpu.max_pool_grad",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .accepts = accepts,
    .layouts = true,
    .prepare = prepare,
    .run = run};

const weir_kernel_def weir_kernel_cpu_avg_pool_grad = {
    .op = "avg_pool_grad",
    .name = "cpu.avg_pool_grad",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .accepts = accepts,
    .layouts = true,
    .prepare = prepare,
    .run = run};
