/* SPDX-License-Identifier: Apache-2.0 */
/* Poolings of f32, plain or N16 on both sides. The rows under a window are
 * joined by vectors, then the columns; in N16 each pixel is 16 images. Output
 * planes are the units of work. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/isa/isa.h"
#include "kernels/kernel.h"
#include "ops/window.h"

typedef struct plan {
  const weir_isa *isa;
  weir_window window;
  bool largest, with_padding;
  int64_t lanes; /* floats of a pixel */
  int64_t planes, h, w, out_h, out_w;
  int64_t block; /* planes */
} plan;

typedef struct job {
  const plan *p;
  const weir_args *args;
} job;

static bool accepts(const weir_call *call, weir_why *why) {
  if (call->in[0].layout != call->out[0].layout)
    return weir_no(why, "layouts differ");
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

static size_t row_bytes(const plan *p) {
  return weir_scratch_align((size_t)(p->w * p->lanes) * sizeof(float));
}

static void block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const plan *p = j->p;
  int64_t end = (b + 1) * p->block < p->planes ? (b + 1) * p->block : p->planes;
  float *row = (float *)(void *)((char *)j->args->scratch +
                                 (size_t)worker * row_bytes(p));
  for (int64_t k = b * p->block; k < end; k++)
    plane(p, (float *)j->args->io[1] + k * p->out_h * p->out_w * p->lanes,
          (const float *)j->args->io[0] + k * p->h * p->w * p->lanes, row);
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  job j = {p, args};
  if (p->planes * p->out_h * p->out_w > 0)
    weir_parallel_for(args, (p->planes + p->block - 1) / p->block, block, &j);
  return WEIR_OK;
}

static weir_status prepare(const weir_call *call, bool largest,
                           weir_prepared *out, weir_error *err) {
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (!p) return weir_fail_memory(err, sizeof *p);
  *p = (plan){.isa = weir_isa_choose(), .largest = largest};
  weir_call_window(call, &p->window);
  p->with_padding = !largest && weir_call_attr(call, "count_include_pad")->b;
  bool images = x->layout == WEIR_LAYOUT_N16;
  p->lanes = images ? 16 : 1;
  p->planes = (images ? (x->dims[0] + 15) / 16 : x->dims[0]) * x->dims[1];
  p->h = x->dims[2];
  p->w = x->dims[3];
  p->out_h = y->dims[2];
  p->out_w = y->dims[3];
  int64_t work = p->h * p->w * p->lanes + 1;
  p->block = 65536 / work + 1;
  if (p->block * 2 > p->planes) p->block = p->planes;
  if (p->block < 1) p->block = 1;
  out->state = p;
  out->worker_scratch_bytes = row_bytes(p);
  out->algorithm = images ? "16 images a vector" : "rows, then columns";
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
