/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradient of conv2d by its images, 16 of them at a time.
 *
 * With a stride of 1 this is a convolution of dy with the filters turned by
 * half a circle. Instead of turning or padding anything, a row of dx walks the
 * filter rows that meet dy and skips the columns outside of it
 * (isa/conv_grad.h). Invariant: a block of 16 images writes its own part of dx
 * only. Cost: 2 n oc taps oh ow flop. */
#include <assert.h>
#include <string.h>

#include "kernels/cpu/conv/conv_grad.h"
#include "kernels/cpu/conv/conv_grad_plan.h"
#include "kernels/registry.h"

enum { kMostWeights = 1 << 22 }; /* packed, elements */

typedef struct job {
  const weir_conv_grad *g;
  const weir_args *args;
} job;

/* Weights [oc][c][kh][kw] as [pairs of channels][oc][kh][kw][2 or 1]: the order
 * in which a tile of two channels reads them. */
static void pack(const weir_conv_grad *g, const float *w, float *packed) {
  int64_t window = g->window.kernel[0] * g->window.kernel[1];
  for (int64_t c = 0; c < g->c; c += 2)
    for (int64_t o = 0; o < g->oc; o++)
      for (int64_t i = 0; i < window; i++)
        for (int64_t k = c; k < c + 2 && k < g->c; k++)
          *packed++ = w[(o * g->c + k) * window + i];
}

/* Row |h| of one or two channels of dx. */
static void back_row(const weir_conv_grad *g, const weir_conv_back *pair,
                     const float *dy, int64_t h) {
  const weir_window *win = &g->window;
  /* Filter row i meets row h + pad - i of dy. */
  int64_t first = h + win->pad[0] - (g->oh - 1), last = h + win->pad[0];
  if (first < 0) first = 0;
  if (last > win->kernel[0] - 1) last = win->kernel[0] - 1;
  weir_conv_back row = *pair;
  row.dx += h * g->w * 16;
  row.kh = last < first ? 0 : (int32_t)(last - first + 1);
  row.w += first * win->kernel[1] * row.channels;
  row.dy = dy;
  assert(row.kh >= 0 && row.kh <= win->kernel[0]);
  if (row.kh > 0) row.dy += (h + win->pad[0] - first) * g->ow * 16;
  g->table->input(&row);
}

static void run_block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const weir_conv_grad *g = j->g;
  const weir_window *win = &g->window;
  size_t packed = weir_scratch_align((size_t)(g->oc * g->taps) * sizeof(float));
  char *own = (char *)j->args->scratch + packed +
              (size_t)worker * (g->x_bytes + g->y_bytes);
  const float *w = j->args->scratch;
  const float *dy = weir_conv_grad_dy(g, j->args->io[1], b,
                                      (float *)(void *)(own + g->x_bytes));
  int64_t image = g->c * g->h * g->w, window = win->kernel[0] * win->kernel[1];
  float *out = (float *)j->args->io[2] + b * 16 * image;
  float *dx = g->x_n16 ? out : (float *)(void *)own;
  for (int64_t c = 0; c < g->c; c += 2) {
    int64_t channels = g->c - c < 2 ? 1 : 2;
    weir_conv_back pair = {
        .w = w + c * g->oc * window,
        .dx = dx + c * g->h * g->w * 16,
        .dy_channel = g->oh * g->ow * 16,
        .dy_row = -g->ow * 16,
        .w_channel = window * channels,
        .dx_channel = g->h * g->w * 16,
        .oc = (int32_t)g->oc,
        .kw = (int32_t)win->kernel[1],
        .channels = (int32_t)channels,
        .columns = (int32_t)g->ow,
        .first = (int32_t)(win->pad[1] - (win->kernel[1] - 1)),
        .count = (int32_t)g->w};
    for (int64_t h = 0; h < g->h; h++) back_row(g, &pair, dy, h);
  }
  if (!g->x_n16)
    weir_n16_scatter(g->isa, out, dx, image, weir_conv_grad_images(g, b));
}

static weir_status run(const weir_args *args) {
  const weir_conv_grad *g = args->state;
  job j = {g, args};
  pack(g, args->io[0], args->scratch);
  weir_parallel_for(args, g->blocks, run_block, &j);
  return WEIR_OK;
}

static bool plan(const weir_call *call, weir_conv_grad *g, weir_why *why) {
  if (call->in[0].layout != WEIR_LAYOUT_PLAIN)
    return weir_no(why, "weights in another layout");
  if (!weir_conv_grad_plan(call, &call->out[0], &call->in[0], &call->in[1], g,
                           why))
    return false;
  const weir_window *win = &g->window;
  if (win->stride[0] != 1 || win->stride[1] != 1 || win->dilation[0] != 1 ||
      win->dilation[1] != 1)
    return weir_no(why, "stride or dilation");
  if (win->kernel[1] > WEIR_CONV_KW)
    return weir_no(why, "a filter wider than %d", WEIR_CONV_KW);
  if (g->oc * g->taps > kMostWeights) return weir_no(why, "too many weights");
  if (g->x_n16) g->x_bytes = 0;
  return true;
}

static bool accepts(const weir_call *call, weir_why *why) {
  weir_conv_grad g;
  return plan(call, &g, why);
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_conv_grad *g = weir_arena_array(out->arena, 1, sizeof *g);
  if (g == NULL) return weir_fail_memory(err, sizeof *g);
  if (!plan(call, g, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "conv2d_grad_input: not accepted");
  out->state = g;
  out->scratch_bytes = (size_t)(g->oc * g->taps) * sizeof(float);
  out->worker_scratch_bytes = g->x_bytes + g->y_bytes;
  out->algorithm = "direct, 16 images";
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_conv2d_grad_input_direct = {
    .op = "conv2d_grad_input",
    .name = "cpu.conv2d_grad_input.direct",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .accepts = accepts,
    .layouts = true,
    .prepare = prepare,
    .run = run};
