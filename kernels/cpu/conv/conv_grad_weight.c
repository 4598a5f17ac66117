/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradient of conv2d by its filters, 16 images at a time.
 *
 * Images are summed in at most 64 chunks of whole blocks, each with a part of
 * its own in scratch; the parts are added in the order of chunks. So the order
 * of every sum follows from the shape, and threads need no lock.
 * Cost: 2 n oc taps oh ow flop; scratch chunks * (oc taps + oc) floats. */
#include <assert.h>
#include <string.h>

#include "kernels/cpu/conv/conv_grad.h"
#include "kernels/cpu/conv/conv_grad_plan.h"
#include "kernels/registry.h"

typedef struct job {
  const weir_conv_grad *g;
  const weir_args *args;
} job;

/* All weights' sums over one block, to or onto |part|. */
static void sum_block(const weir_conv_grad *g, const float *x, const float *dy,
                      float *part, int32_t images, bool add) {
  weir_conv_taps t = {.x = x,
                      .dy_channel = g->oh * g->ow * 16,
                      .dw_channel = g->taps,
                      .x_row = g->window.stride[0] * g->box.wp * 16,
                      .x_step = g->window.stride[1] * 16,
                      .rows = (int32_t)g->oh,
                      .columns = (int32_t)g->ow,
                      .images = images,
                      .add = add};
  int64_t oc_tiles = (g->oc + g->table->oc - 1) / g->table->oc;
  int64_t tap_tiles = (g->taps + WEIR_CONV_TAPS - 1) / WEIR_CONV_TAPS;
  assert(g->oc > 0 && g->taps > 0);
  for (int64_t i = 0; i < oc_tiles; i++) {
    int64_t o = g->oc * i / oc_tiles;
    t.oc = (int32_t)(g->oc * (i + 1) / oc_tiles - o);
    t.dy = dy + o * t.dy_channel;
    for (int64_t k = 0; k < tap_tiles; k++) {
      int64_t tap = g->taps * k / tap_tiles;
      t.taps = (int32_t)(g->taps * (k + 1) / tap_tiles - tap);
      t.places = g->places + tap;
      t.dw = part + o * g->taps + tap;
      weir_conv_taps tile = t;
      g->table->weight(&tile);
    }
  }
}

/* Elements of a chunk's part: the weights, then the bias. */
static int64_t part_size(const weir_conv_grad *g) {
  return g->oc * g->taps + g->oc;
}

static void run_chunk(void *arg, int64_t chunk, int worker) {
  const job *j = arg;
  const weir_conv_grad *g = j->g;
  size_t parts =
      weir_scratch_align((size_t)(g->chunks * part_size(g)) * sizeof(float));
  char *own = (char *)j->args->scratch + parts +
              (size_t)worker * (g->x_bytes + g->y_bytes);
  float *part = (float *)j->args->scratch + chunk * part_size(g);
  int64_t end = (chunk + 1) * g->chunk;
  if (end > g->blocks) end = g->blocks;
  for (int64_t b = chunk * g->chunk; b < end; b++) {
    int64_t images = weir_conv_grad_images(g, b);
    const float *x = weir_n16_padded(g->isa, &g->box, j->args->io[0], g->x_n16,
                                     b, images, (float *)(void *)own);
    const float *dy = weir_conv_grad_dy(g, j->args->io[1], b,
                                        (float *)(void *)(own + g->x_bytes));
    bool add = b > chunk * g->chunk;
    if (j->args->io[3] != NULL)
      g->table->bias(part + g->oc * g->taps, dy, g->oc, g->oh * g->ow,
                     (int32_t)images, add);
    sum_block(g, x, dy, part, (int32_t)images, add);
  }
}

/* The chunks' parts, |count| elements from |at| on, in order. */
static void join_parts(const weir_conv_grad *g, float *y, const float *parts,
                       int64_t at, int64_t count) {
  memcpy(y, parts + at, (size_t)count * sizeof *y);
  for (int64_t k = 1; k < g->chunks; k++)
    g->isa->rows->sum_to(y, parts + k * part_size(g) + at, count);
}

static weir_status run(const weir_args *args) {
  const weir_conv_grad *g = args->state;
  job j = {g, args};
  weir_parallel_for(args, g->chunks, run_chunk, &j);
  int64_t weights = g->oc * g->taps;
  join_parts(g, args->io[2], args->scratch, 0, weights);
  if (args->io[3] != NULL)
    join_parts(g, args->io[3], args->scratch, weights, g->oc);
  return WEIR_OK;
}

static bool plan(const weir_call *call, weir_conv_grad *g, weir_why *why) {
  if (call->out[0].layout != WEIR_LAYOUT_PLAIN)
    return weir_no(why, "weights in another layout");
  if (!weir_conv_grad_plan(call, &call->in[0], &call->out[0], &call->in[1], g,
                           why))
    return false;
  int64_t scratch = g->chunks * part_size(g);
  if (scratch > 1 << 24 || g->box.hp * g->box.wp * g->c > 1 << 26)
    return weir_no(why, "the parts of the sum take too much memory");
  return true;
}

static bool accepts(const weir_call *call, weir_why *why) {
  weir_conv_grad g;
  return plan(call, &g, why);
}

/* Where each tap of a window lies, from the window's first element: one list of
 * numbers lets a tile of taps cross rows and channels of the filter. */
static void find_places(const weir_conv_grad *g, int32_t *places) {
  const weir_window *win = &g->window;
  for (int64_t c = 0; c < g->c; c++)
    for (int64_t i = 0; i < win->kernel[0]; i++)
      for (int64_t j = 0; j < win->kernel[1]; j++) {
        int64_t row = c * g->box.hp + i * win->dilation[0];
        *places++ = (int32_t)(row * g->box.wp + j * win->dilation[1]) * 16;
      }
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_conv_grad *g = weir_arena_array(out->arena, 1, sizeof *g);
  if (g == NULL) return weir_fail_memory(err, sizeof *g);
  if (!plan(call, g, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "conv2d_grad_weight: not accepted");
  int32_t *places =
      weir_arena_array(out->arena, (size_t)g->taps, sizeof *places);
  if (places == NULL)
    return weir_fail_memory(err, (size_t)g->taps * sizeof *places);
  find_places(g, places);
  g->places = places;
  out->state = g;
  out->scratch_bytes = (size_t)(g->chunks * part_size(g)) * sizeof(float);
  out->worker_scratch_bytes = g->x_bytes + g->y_bytes;
  out->algorithm = "direct, 16 images";
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_conv2d_grad_weight_direct = {
    .op = "conv2d_grad_weight",
    .name = "cpu.conv2d_grad_weight.direct",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .accepts = accepts,
    .layouts = true,
    .prepare = prepare,
    .run = run};
