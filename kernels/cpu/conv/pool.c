/* SPDX-License-Identifier: Apache-2.0 */
/* Poolings of f32, plain, N16 or in blocks of channels; from N16 the output may
 * be plain too. Empty lanes of the last block of channels are pooled like the
 * others, so they stay 0. The rows
 * under a window are joined by vectors, then the columns; in N16 each pixel is
 * 16 images, and k x k windows side by side are joined at once. Output planes
 * are the units of work.
 *
 * Rows first: the rows under a window are the same for all windows of an output
 * row, so they are joined once, at the full width, and each window then joins
 * its columns only. A window then costs k joins instead of k * k.
 * Invariant: rows from the top, then columns from the left, in every layout. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/conv.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/kernel.h"
#include "kernels/registry.h"
#include "ops/nn/window.h"

typedef struct plan {
  const weir_isa *isa;
  weir_window window;
  bool largest, with_padding;
  bool side_by_side; /* a pixel of 16, k x k windows, k = stride, no padding */
  bool convert;      /* x is N16, y plain */
  int64_t n, c;
  int64_t lanes; /* floats of a pixel */
  int64_t planes, h, w, out_h, out_w;
  int64_t block;                 /* planes */
  size_t row_bytes, plane_bytes; /* of a worker's scratch */
} plan;

typedef struct job {
  const plan *p;
  const weir_args *args;
} job;

static bool accepts(const weir_call *call, weir_why *why) {
  weir_layout x = call->in[0].layout, y = call->out[0].layout;
  if (x == WEIR_LAYOUT_PLAIN && y != WEIR_LAYOUT_PLAIN)
    return weir_no(why, "rows in, another layout out");
  if (x != y && (x != WEIR_LAYOUT_N16 || y != WEIR_LAYOUT_PLAIN))
    return weir_no(why, "blocks of channels in or out alone");
  return true;
}

/* Places [from, to) of the input under the window at |at|; |padded|: with
 * those of the padding. */
static void span(const weir_window *window, int side, int64_t at, int64_t size,
                 int64_t *from, int64_t *to, int64_t *padded) {
  int64_t begin = at * window->stride[side] - window->pad[side];
  int64_t end = begin + window->kernel[side];
  int64_t limit = size + window->pad[side + 2];
  *padded = (end < limit ? end : limit) - begin;
  *from = begin < 0 ? 0 : begin;
  *to = end < size ? end : size;
}

/* Invariant of the loops: padding is never read, it only counts in |padded|. */
static void join(const plan *p, float *acc, const float *x, int64_t n) {
  if (p->largest)
    p->isa->rows->max_to(acc, x, n);
  else
    p->isa->rows->sum_to(acc, x, n);
}

/* One pixel of the output from a row of joined rows. */
static void pixel(const plan *p, float *y, const float *row, int64_t from,
                  int64_t to, double count) {
  if (p->lanes == 1) {
    float v = row[from];
    for (int64_t j = from + 1; j < to; j++)
      v = !p->largest                      ? v + row[j]
          : row[j] > v || row[j] != row[j] ? row[j]
                                           : v;
    *y = p->largest ? v : (float)((double)v / count);
    return;
  }
  memcpy(y, row + from * p->lanes, (size_t)p->lanes * sizeof(float));
  for (int64_t j = from + 1; j < to; j++)
    join(p, y, row + j * p->lanes, p->lanes);
  if (!p->largest)
    for (int64_t i = 0; i < p->lanes; i++) y[i] = (float)((double)y[i] / count);
}

static void plane(const plan *p, float *y, const float *x, float *row) {
  int64_t width = p->w * p->lanes;
  if (p->side_by_side) {
    int32_t k = (int32_t)p->window.kernel[0];
    for (int64_t i = 0; i < p->out_h; i++)
      p->isa->conv->pool(y + i * p->out_w * 16, x + i * k * width, width, k,
                         (int32_t)p->out_w, 16, !p->largest);
    return;
  }
  for (int64_t i = 0; i < p->out_h; i++) {
    int64_t h0, h1, h_padded;
    span(&p->window, 0, i, p->h, &h0, &h1, &h_padded);
    memcpy(row, x + h0 * width, (size_t)width * sizeof(float));
    for (int64_t k = h0 + 1; k < h1; k++) join(p, row, x + k * width, width);
    for (int64_t j = 0; j < p->out_w; j++) {
      int64_t w0, w1, w_padded;
      span(&p->window, 1, j, p->w, &w0, &w1, &w_padded);
      int64_t count =
          p->with_padding ? h_padded * w_padded : (h1 - h0) * (w1 - w0);
      pixel(p, y + (i * p->out_w + j) * p->lanes, row, w0, w1, (double)count);
    }
  }
}

/* Plane |k| of N16 to its images' rows; missing images are left out. */
static void to_rows(const plan *p, float *y, const float *from, int64_t k) {
  int64_t size = p->out_h * p->out_w, image = p->c * size, b = k / p->c;
  int64_t count = p->n - b * 16 < 16 ? p->n - b * 16 : 16;
  p->isa->rows->transpose(y + b * 16 * image + k % p->c * size, image, from, 16,
                          size, count);
}

static void block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const plan *p = j->p;
  int64_t end = (b + 1) * p->block < p->planes ? (b + 1) * p->block : p->planes;
  char *own = (char *)j->args->scratch +
              (size_t)worker * (p->row_bytes + p->plane_bytes);
  float *row = (float *)(void *)own;
  float *y = j->args->io[1], *joined = (float *)(void *)(own + p->row_bytes);
  int64_t size = p->out_h * p->out_w * p->lanes;
  for (int64_t k = b * p->block; k < end; k++) {
    plane(p, p->convert ? joined : y + k * size,
          (const float *)j->args->io[0] + k * p->h * p->w * p->lanes, row);
    if (p->convert) to_rows(p, y, joined, k);
  }
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  job j = {p, args};
  if (p->planes * p->out_h * p->out_w > 0)
    weir_parallel_for(args, (p->planes + p->block - 1) / p->block, block, &j);
  return WEIR_OK;
}

static void find_side_by_side(plan *p) {
  const weir_window *v = &p->window;
  int64_t k = v->kernel[0];
  p->side_by_side = p->lanes == 16 && v->kernel[1] == k && v->stride[0] == k &&
                    v->stride[1] == k &&
                    v->pad[0] + v->pad[1] + v->pad[2] + v->pad[3] == 0;
}

static weir_status prepare(const weir_call *call, bool largest,
                           weir_prepared *out, weir_error *err) {
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (!p) return weir_fail_memory(err, sizeof *p);
  *p = (plan){.isa = weir_isa_of(call), .largest = largest};
  weir_call_window(call, &p->window);
  p->with_padding = !largest && weir_call_attr(call, "count_include_pad")->b;
  bool images = x->layout == WEIR_LAYOUT_N16;
  p->convert = images && y->layout == WEIR_LAYOUT_PLAIN;
  int channels = weir_layout_channels(x->layout);
  p->lanes = images ? 16 : channels > 0 ? channels : 1;
  p->n = x->dims[0];
  p->c = channels > 0 ? weir_layout_padded(x->dims[1], channels) / channels
                      : x->dims[1];
  p->planes = (images ? (p->n + 15) / 16 : p->n) * p->c;
  p->h = x->dims[2];
  p->w = x->dims[3];
  p->out_h = y->dims[2];
  p->out_w = y->dims[3];
  int64_t work = p->h * p->w * p->lanes + 1;
  p->block = 65536 / work + 1;
  if (p->block * 2 > p->planes) p->block = p->planes;
  if (p->block < 1) p->block = 1;
  out->state = p;
  find_side_by_side(p);
  p->row_bytes = weir_scratch_align((size_t)(p->w * p->lanes) * sizeof(float));
  if (p->convert)
    p->plane_bytes =
        weir_scratch_align((size_t)(p->out_h * p->out_w) * 16 * sizeof(float));
  out->worker_scratch_bytes = p->row_bytes + p->plane_bytes;
  out->algorithm = images         ? "16 images a vector"
                   : channels > 0 ? "blocks of channels"
                                  : "rows, then columns";
  return WEIR_OK;
}

static weir_status prepare_max(const weir_call *call, weir_prepared *out,
                               weir_error *err) {
  return prepare(call, true, out, err);
}

static weir_status prepare_average(const weir_call *call, weir_prepared *out,
                                   weir_error *err) {
  return prepare(call, false, out, err);
}

const weir_kernel_def weir_kernel_cpu_max_pool = {.op = "max_pool",
                                                  .name = "cpu.max_pool",
                                                  .device = WEIR_CPU,
                                                  .types = WEIR_F32,
                                                  .accepts = accepts,
                                                  .layouts = true,
                                                  .prepare = prepare_max,
                                                  .run = run};

const weir_kernel_def weir_kernel_cpu_avg_pool = {.op = "avg_pool",
                                                  .name = "cpu.avg_pool",
                                                  .device = WEIR_CPU,
                                                  .types = WEIR_F32,
                                                  .accepts = accepts,
                                                  .layouts = true,
                                                  .prepare = prepare_average,
                                                  .run = run};
