/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d of floats as a product of matrices (kernels/cpu/conv/conv_gemm.h), for
 * shapes that the direct kernels refuse; with element-wise followers or alone.
 *
 * Order of work in a block: copy the input rows with their padding, then for
 * each slice of k pack panels of pixels and run all tiles over them, then add
 * the bias and run the followers. A panel is packed once and used by all output
 * channels of the block.
 * Invariant: an output is one sum in the order of k, cut at multiples of kc,
 * then the bias. Blocks write disjoint outputs.
 * Cost: 2 n oc oh ow taps flop; packing moves each panel value once per
 * block, which pays from few output channels on. */
#include "kernels/cpu/conv/conv_gemm.h"

#include <assert.h>
#include <string.h>

#include "kernels/cpu/conv/conv_gemm_pack.h"
#include "kernels/cpu/conv/conv_gemm_plan.h"
#include "kernels/cpu/ew/ew_build.h"
#include "kernels/cpu/ew/ew_run.h"
#include "kernels/cpu/gemm/matmul_shape.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/registry.h"

/* A block: output rows [row, row + rows) of channels [o0, o1). */
typedef struct block {
  const weir_conv_gemm *p;
  void *const *io;
  int64_t image, group, row, rows;
  int64_t o0, o1; /* output channels of the group */
  char *copy, *panels;
} block;

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* First byte of the group's channels of the image. */
static const char *image_of(const block *b) {
  const weir_conv_gemm *p = b->p;
  int64_t channel = (b->image * p->dims.groups + b->group) * p->dims.c;
  return (const char *)b->io[p->x_io] +
         channel * p->dims.h * p->dims.w * p->dims.size;
}

/* One input row, with zeros where it leaves the image. */
static void copy_row(const weir_conv_gemm *p, const char *x, int64_t y,
                     char *dst) {
  int64_t left = least(p->dims.window.pad[1], p->wp);
  int64_t width = least(p->dims.w, p->wp - left), right = p->wp - left - width;
  if (y < 0 || y >= p->dims.h) {
    memset(dst, 0, (size_t)(p->wp * p->dims.size));
    return;
  }
  memset(dst, 0, (size_t)(left * p->dims.size));
  dst += left * p->dims.size;
  memcpy(dst, x + y * p->dims.w * p->dims.size, (size_t)(width * p->dims.size));
  memset(dst + width * p->dims.size, 0, (size_t)(right * p->dims.size));
}

static void copy_input(const block *b) {
  const weir_conv_gemm *p = b->p;
  int64_t top = b->row * p->dims.window.stride[0] - p->dims.window.pad[0];
  const char *x = image_of(b);
  char *dst = b->copy;
  for (int64_t c = 0; c < p->dims.c;
       c++, x += p->dims.h * p->dims.w * p->dims.size)
    for (int64_t r = 0; r < p->hp; r++, dst += p->wp * p->dims.size)
      copy_row(p, x, top + r, dst);
}

/* Output of channel |o| of the group at the block's first row. */
static char *output_of(const block *b, int64_t o) {
  const weir_conv_gemm *p = b->p;
  int64_t channel = (b->image * p->dims.groups + b->group) * p->dims.oc + o;
  int64_t at = (channel * p->dims.oh + b->row) * p->dims.ow;
  return (char *)b->io[p->y_io] + at * p->dims.size;
}

/* All tiles of |t->n| pixels, from pixel |at| of the block on; |w|: the first
 * weights. The first tile makes a panel of b where the plan says so. */
static void run_panel(const block *b, weir_gemm_tile t, const char *w,
                      int64_t at) {
  const weir_conv_gemm *p = b->p;
  const weir_gemm_table *isa = p->isa;
  if (p->copies) t.copy = b->panels;
  for (int64_t o = b->o0; o < b->o1; o += isa->rows) {
    t.m = least(isa->rows, b->o1 - o);
    t.a = w + o * p->dims.taps * p->dims.size;
    t.c = output_of(b, o) + at * p->dims.size;
    isa->tile(&t);
    weir_gemm_tile_reuse(&t, isa->columns);
  }
}

/* All tiles of up to a tile's rows of channels, from |o| on; |w|: the first
 * weights, |from|: x. */
static void run_row(const block *b, weir_gemm_tile t, const char *w,
                    const char *from, int64_t o) {
  const weir_conv_gemm *p = b->p;
  int64_t pixels = b->rows * p->dims.ow, size = p->dims.size;
  t.a = w + o * p->dims.taps * size;
  t.m = least(p->isa->rows, b->o1 - o);
  for (int64_t at = 0; at < pixels; at += p->isa->columns) {
    t.n = least(p->isa->columns, pixels - at);
    t.b = from + at * size;
    t.c = output_of(b, o) + at * size;
    p->isa->tile(&t);
  }
}

/* Taps [k0, k0 + depth) of the sum. 1 x 1 windows are read in place: a
 * channel's pixels lie together already. */
static void run_slice(const block *b, int64_t k0, int64_t depth) {
  const weir_conv_gemm *p = b->p;
  int64_t pixels = b->rows * p->dims.ow, size = p->dims.size;
  int64_t columns = p->isa->columns;
  const char *w = (const char *)b->io[p->w_io] +
                  (b->group * p->dims.oc * p->dims.taps + k0) * size;
  const char *from = b->panels;
  int64_t step = columns * depth;
  weir_gemm_tile t = {.a_row = p->dims.taps,
                      .a_k = 1,
                      .b_k = columns,
                      .c_row = p->dims.oh * p->dims.ow,
                      .k = depth,
                      .add = k0 > 0};
  if (p->dims.in_place) {
    from =
        image_of(b) + (k0 * p->dims.h * p->dims.w + b->row * p->dims.w) * size;
    t.b_k = p->dims.h * p->dims.w;
    step = columns;
  } else {
    weir_conv_gemm_pack(p, b->copy, b->panels, k0, depth, pixels);
  }
  assert(depth > 0 && pixels > 0);
  if (p->by_rows) {
    for (int64_t o = b->o0; o < b->o1; o += p->isa->rows)
      run_row(b, t, w, from, o);
    return;
  }
  for (int64_t at = 0; at < pixels; at += columns, from += step * size) {
    t.b = from;
    t.n = least(columns, pixels - at);
    run_panel(b, t, w, at);
  }
}

static void add_bias(const block *b) {
  const weir_conv_gemm *p = b->p;
  const char *bias =
      (const char *)b->io[p->bias_io] + b->group * p->dims.oc * p->dims.size;
  int64_t pixels = b->rows * p->dims.ow;
  for (int64_t o = b->o0; o < b->o1; o++) {
    if (p->dims.dtype == WEIR_F64) {
      double *y = (double *)output_of(b, o), x = ((const double *)bias)[o];
      for (int64_t i = 0; i < pixels; i++) y[i] += x;
    } else {
      float *y = (float *)output_of(b, o), x = ((const float *)bias)[o];
      for (int64_t i = 0; i < pixels; i++) y[i] += x;
    }
  }
}

/* The block's rows of each channel lie together in the output: the followers
 * run on them while they are in the cache. */
static void follow(const block *b, char *scratch) {
  const weir_conv_gemm *p = b->p;
  int64_t channel = (b->image * p->dims.groups + b->group) * p->dims.oc;
  for (int64_t o = channel + b->o0; o < channel + b->o1; o++) {
    int64_t at = (o * p->dims.oh + b->row) * p->dims.ow;
    weir_ew_range(p->epilogue, b->io, at, at + b->rows * p->dims.ow, scratch);
  }
}

static size_t worker_bytes(const weir_conv_gemm *p) {
  return p->copy_bytes + p->panel_bytes +
         (p->epilogue ? weir_scratch_align(p->epilogue->scratch_bytes) : 0);
}

static void run_block(void *arg, int64_t index, int worker) {
  const weir_args *args = arg;
  const weir_conv_gemm *p = args->state;
  block b = {.p = p, .io = args->io};
  b.o0 = index % p->parts * p->part;
  b.o1 = least(b.o0 + p->part, p->dims.oc);
  index /= p->parts;
  b.row = index % p->bands * p->band;
  b.rows = least(p->band, p->dims.oh - b.row);
  b.group = index / p->bands % p->dims.groups;
  b.image = index / p->bands / p->dims.groups;
  assert(b.o0 < b.o1 && b.rows > 0 && b.image < p->dims.n);
  b.copy = (char *)args->scratch + (size_t)worker * worker_bytes(p);
  b.panels = b.copy + p->copy_bytes;
  if (!p->dims.in_place) copy_input(&b);
  for (int64_t k0 = 0; k0 < p->dims.taps; k0 += p->kc)
    run_slice(&b, k0, least(p->kc, p->dims.taps - k0));
  if (p->bias_io >= 0) add_bias(&b);
  if (p->epilogue) follow(&b, b.panels + p->panel_bytes);
}

static weir_status run(const weir_args *args) {
  const weir_conv_gemm *p = args->state;
  int64_t blocks = p->dims.n * p->dims.groups * p->bands * p->parts;
  void *arg = (void *)(uintptr_t)args;
  if (p->epilogue) WEIR_TRY(weir_ew_check(p->epilogue, args));
  if (p->small)
    for (int64_t b = 0; b < blocks; b++) run_block(arg, b, 0);
  else
    weir_parallel_for(args, blocks, run_block, arg);
  return WEIR_OK;
}

static const char *text_of(const weir_conv_gemm *p) {
  return p->dims.in_place ? "product, x in place"
                          : "product with panels of pixels";
}

static bool accepts(const weir_call *call, weir_why *why) {
  weir_conv_gemm plan;
  return weir_conv_gemm_plan(call, &plan, why);
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_conv_gemm *p = weir_arena_alloc(out->arena, sizeof *p);
  if (!p) return weir_fail_memory(err, sizeof *p);
  if (!weir_conv_gemm_plan(call, p, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "cpu.conv2d.gemm: not accepted");
  out->state = p;
  out->worker_scratch_bytes = worker_bytes(p);
  out->algorithm = text_of(p);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_conv2d_gemm = {.op = "conv2d",
                                                     .name = "cpu.conv2d.gemm",
                                                     .device = WEIR_CPU,
                                                     .types = WEIR_FLOATS,
                                                     .accepts = accepts,
                                                     .prepare = prepare,
                                                     .run = run};

/* ---- With followers */

static bool plan_group(const weir_group *group, weir_conv_gemm *p,
                       weir_ew_room *room, weir_why *why) {
  const weir_call *call = &group->calls[0];
  int32_t io = weir_anchor_io(group);
  if (strcmp(call->op->name, "conv2d") != 0)
    return weir_no(why, "does not start with conv2d");
  if ((call->in[0].dtype & WEIR_FLOATS) == 0) return weir_no(why, "not floats");
  if (io < 0) return weir_no(why, "no output to write the product to");
  if (!weir_conv_gemm_plan(call, p, why)) return false;
  p->x_io = (int32_t)group->refs[0][0].index;
  p->w_io = (int32_t)group->refs[0][1].index;
  if (p->bias_io >= 0) p->bias_io = (int32_t)group->refs[0][2].index;
  p->y_io = io;
  return weir_ew_build(group, 1, io, false, room, why);
}

static bool group_accepts(const weir_group *group, weir_why *why) {
  weir_conv_gemm plan;
  weir_ew_room room;
  return plan_group(group, &plan, &room, why);
}

static weir_status group_prepare(const weir_group *group, weir_prepared *out,
                                 weir_error *err) {
  weir_conv_gemm *p = weir_arena_alloc(out->arena, sizeof *p);
  weir_ew_room room;
  if (!p) return weir_fail_memory(err, sizeof *p);
  if (!plan_group(group, p, &room, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "cpu.conv2d.gemm: not accepted");
  p->epilogue = weir_ew_keep(&room, out->arena);
  if (!p->epilogue) return weir_fail_memory(err, sizeof(weir_ew));
  out->state = p;
  out->worker_scratch_bytes = worker_bytes(p);
  out->algorithm = text_of(p);
  return WEIR_OK;
}

const weir_group_kernel_def weir_group_cpu_conv2d_gemm = {
    .name = "cpu.conv2d_gemm_fused",
    .device = WEIR_CPU,
    .accepts = group_accepts,
    .prepare = group_prepare,
    .run = run};
