/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of the direct convolution: which groups it takes, which form it uses,
 * and the sizes of all buffers.
 *
 * A group is a chain: convolution, at most one bias (as an input of conv2d or
 * as an addition before any function), up to eight unary functions, at most one
 * pooling, which is last. The first condition that fails gives the
 * reason.
 * Invariant: a plan depends on shapes, dtypes and layouts alone; accepts and
 * prepare make the same one.
 * The limits on sizes keep a block of work in the second cache. Beyond them the
 * product with panels (conv_gemm.c) is faster, as it reads b by slices. */
#include "kernels/cpu/conv/conv_plan.h"

#include <assert.h>

#include <string.h>

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/ew/ew_build.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/registry.h"
#include "runtime/base/size.h"

enum {
  kBlockBytes = 1 << 20,     /* of a block's input: it should stay in L2 */
  kSmallWeights = 64 * 1024, /* elements; more: a packed gemm is better */
  kSmallMacs = 8 << 20,      /* of one image */
  kBlockMacs = 400 * 1000    /* worth handing to another thread */
};

static int64_t round_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

bool weir_conv_is_channel_bias(const weir_operand *b, int64_t oc) {
  if (b->rank < 3 || b->rank > 4 || b->elements != oc) return false;
  return b->dims[b->rank - 3] == oc;
}

/* The rows start from the bias, so it must be added before any function. The
 * operand that is no member is the bias. */
static bool add_bias(weir_conv_plan *plan, const weir_group *group, uint32_t c,
                     weir_why *why) {
  for (uint32_t i = 0; i < 2; i++) {
    weir_group_ref ref = group->refs[c][i];
    if (ref.member) continue;
    if (plan->bias_io >= 0) return weir_no(why, "a second bias");
    if (plan->step_count > 0) return weir_no(why, "an addition after others");
    if (!weir_conv_is_channel_bias(&group->calls[c].in[i], plan->oc) ||
        group->calls[c].in[i].layout != WEIR_LAYOUT_PLAIN)
      return weir_no(why, "adds more than one number per channel");
    plan->bias_io = (int32_t)ref.index;
    return true;
  }
  return weir_no(why, "adds a value to itself");
}

static bool add_unary(weir_conv_plan *plan, const weir_call *call,
                      weir_why *why) {
  if (plan->step_count == WEIR_CONV_STEPS) return weir_no(why, "9 functions");
  weir_conv_step *step = &plan->steps[plan->step_count];
  if (!weir_ew_unary(call, plan->isa, &step->fn, step->p))
    return weir_no(why, "no tile function for %s", call->op->name);
  plan->step_count++;
  return true;
}

/* Windows side by side need each row of the convolution only once, so a row of
 * the pooling is made of rows that are still in the first cache. */
static bool add_pool(weir_conv_plan *plan, const weir_call *call,
                     weir_why *why) {
  weir_window win;
  weir_call_window(call, &win);
  int64_t k = win.kernel[0];
  if (k != win.kernel[1] || k != win.stride[0] || k != win.stride[1] ||
      win.pad[0] + win.pad[1] + win.pad[2] + win.pad[3] > 0 || k < 2 || k > 4)
    return weir_no(why, "pooling other than k x k side by side, k 2 to 4");
  plan->pool = (int32_t)k;
  plan->average = strcmp(call->op->name, "avg_pool") == 0;
  plan->ph = plan->oh / k;
  plan->pw = plan->ow / k;
  return true;
}

/* Each member must read the one before, exactly once. */
static bool add_members(weir_conv_plan *plan, const weir_group *group,
                        weir_why *why) {
  for (uint32_t c = 1; c < group->call_count; c++) {
    const weir_call *call = &group->calls[c];
    bool last = c + 1 == group->call_count, ok;
    uint32_t members = 0;
    for (uint32_t i = 0; i < call->in_count; i++)
      if (group->refs[c][i].member && group->refs[c][i].index == c - 1)
        members++;
    if (members != 1) return weir_no(why, "%s is no chain", call->op->name);
    if (strcmp(call->op->name, "add") == 0)
      ok = add_bias(plan, group, c, why);
    else if ((call->op->flags & WEIR_OP_WINDOW) != 0 && last)
      ok = add_pool(plan, call, why);
    else if (call->in_count == 1)
      ok = add_unary(plan, call, why);
    else
      ok = weir_no(why, "%s after the convolution", call->op->name);
    if (!ok) return false;
  }
  return true;
}

static bool read_conv(weir_conv_plan *plan, const weir_group *group,
                      weir_why *why) {
  const weir_call *call = &group->calls[0];
  const weir_operand *x = &call->in[0], *w = &call->in[1];
  const weir_operand *y = &call->out[0];
  if (x->dtype != WEIR_F32) return weir_no(why, "f32 only");
  weir_call_window(call, &plan->window);
  if (plan->window.groups != 1) return weir_no(why, "groups");
  if (x->elements == 0 || y->elements == 0 || w->elements == 0)
    return weir_no(why, "no elements");
  for (uint32_t i = 0; i < call->in_count; i++) {
    if (group->refs[0][i].member) return weir_no(why, "not the first");
    if (i > 0 && call->in[i].layout != WEIR_LAYOUT_PLAIN)
      return weir_no(why, "weights in another layout");
  }
  if (weir_layout_channels(x->layout) > 0 ||
      weir_layout_channels(group->out[0].layout) > 0)
    return weir_no(why, "blocks of channels");
  plan->x_io = (int32_t)group->refs[0][0].index;
  plan->w_io = (int32_t)group->refs[0][1].index;
  plan->bias_io = -1;
  if (call->in_count > 2 && call->in[2].dtype != WEIR_DTYPE_NONE)
    plan->bias_io = (int32_t)group->refs[0][2].index;
  plan->y_io = (int32_t)group->in_count;
  plan->n = x->dims[0];
  plan->c = x->dims[1];
  plan->h = x->dims[2];
  plan->w = x->dims[3];
  plan->oc = y->dims[1];
  plan->oh = plan->ph = y->dims[2];
  plan->ow = plan->pw = y->dims[3];
  plan->pool = 1;
  return true;
}

/* 16 images fill all lanes at any width. Below that the form whose lanes are
 * filled more (counted in 1/1000) wins; the width form computes pairs of rows
 * and knows strides of 1 only. */
static bool choose_form(weir_conv_plan *plan, const weir_group *group,
                        weir_why *why) {
  const weir_window *win = &plan->window;
  plan->x_n16 = group->calls[0].in[0].layout == WEIR_LAYOUT_N16;
  plan->y_n16 = group->out[0].layout == WEIR_LAYOUT_N16;
  if (plan->n >= 16) {
    plan->form = WEIR_CONV_IMAGES;
    return true;
  }
  if (plan->x_n16 || plan->y_n16) return weir_no(why, "N16 below 16 images");
  int64_t macs = plan->c * win->kernel[0] * win->kernel[1] * plan->oc;
  if (macs > kSmallWeights || macs * plan->oh * plan->ow > kSmallMacs)
    return weir_no(why, "too much work for the forms below 16 images");
  int64_t fill_w = 1000 * plan->ow / round_up(plan->ow, plan->lanes);
  int64_t fill_c = 1000 * plan->oc / round_up(plan->oc, plan->lanes);
  bool width = win->stride[0] == 1 && win->stride[1] == 1 && plan->pool <= 2;
  plan->form = width && fill_w > fill_c ? WEIR_CONV_WIDTH : WEIR_CONV_CHANNELS;
  return true;
}

static int64_t reach(const weir_window *win, int side) {
  return win->dilation[side] * (win->kernel[side] - 1) + 1;
}

/* Sizes of the padded copy and of the rows that are computed. */
static void size_input(weir_conv_plan *plan) {
  const weir_window *win = &plan->window;
  bool padded = win->pad[0] + win->pad[1] + win->pad[2] + win->pad[3] > 0;
  plan->hp = plan->h + win->pad[0] + win->pad[2];
  plan->wp = plan->w + win->pad[1] + win->pad[3];
  plan->row = plan->ow;
  plan->depth = 16;
  plan->in_place = !padded && plan->x_n16;
  if (plan->form == WEIR_CONV_IMAGES) return;
  plan->in_place = !padded && plan->form == WEIR_CONV_CHANNELS;
  plan->depth = plan->form == WEIR_CONV_WIDTH ? 1 : plan->lanes;
  if (plan->form == WEIR_CONV_CHANNELS) return;
  /* whole vectors and pairs of rows are computed: make room for their reads */
  plan->row = round_up(plan->ow, plan->lanes);
  int64_t rows = round_up(plan->oh, 2) - 1 + reach(win, 0);
  int64_t columns = plan->row - 1 + reach(win, 1);
  if (plan->hp < rows) plan->hp = rows;
  if (plan->wp < columns) plan->wp = columns;
}

/* Tiles of output channels, and how many images one block has: at least so many
 * that handing it to a thread pays. */
static void size_tiles(weir_conv_plan *plan) {
  int64_t most = plan->form == WEIR_CONV_IMAGES  ? plan->table->images_oc
                 : plan->form == WEIR_CONV_WIDTH ? plan->table->width_oc
                                                 : plan->lanes;
  plan->oc_tiles = (plan->oc + most - 1) / most;
  plan->oc_pad = plan->oc;
  if (plan->form == WEIR_CONV_CHANNELS) plan->oc_pad = plan->oc_tiles * most;
  int64_t taps = plan->window.kernel[0] * plan->window.kernel[1];
  int64_t macs = taps * plan->c * plan->oc * plan->oh * plan->ow;
  plan->images = 16;
  if (plan->form != WEIR_CONV_IMAGES) {
    plan->images = 1 + kBlockMacs / (macs + 1);
    if (plan->images > plan->n) plan->images = plan->n;
  }
  plan->blocks = (plan->n + plan->images - 1) / plan->images;
  assert(plan->oc_tiles > 0 && plan->images > 0 && plan->blocks > 0);
}

/* All products go through the checked multiplication. */
static bool floats(size_t *out, int count, const int64_t *factors) {
  size_t n = sizeof(float);
  for (int i = 0; i < count; i++)
    if (!weir_size_mul(n, (size_t)factors[i], &n)) return false;
  *out = weir_scratch_align(n);
  return true;
}

static bool size_memory(weir_conv_plan *plan, weir_why *why) {
  int64_t lanes = plan->form == WEIR_CONV_IMAGES ? 16 : 1;
  int64_t rows = plan->form == WEIR_CONV_WIDTH ? 2 : plan->pool;
  int64_t tile = plan->form == WEIR_CONV_CHANNELS ? 1 : WEIR_CONV_OC;
  const int64_t *k = plan->window.kernel;
  size_t weights, bias;
  bool ok =
      floats(&plan->pad_bytes, 4,
             (int64_t[]){plan->c, plan->hp, plan->wp, lanes}) &&
      floats(&plan->row_bytes, 4,
             (int64_t[]){tile, rows, plan->row, plan->depth}) &&
      floats(&plan->out_bytes, 4,
             (int64_t[]){plan->oc, plan->ph, plan->pw, lanes}) &&
      floats(&weights, 4, (int64_t[]){plan->c, k[0], k[1], plan->oc_pad}) &&
      floats(&bias, 1, (int64_t[]){plan->oc_pad});
  if (!ok || plan->pad_bytes > kBlockBytes || plan->out_bytes > 4 * kBlockBytes)
    return weir_no(why, "a block of images larger than the cache");
  plan->packed_floats = (weights + bias) / sizeof(float);
  if (plan->in_place) plan->pad_bytes = 0;
  if (plan->form != WEIR_CONV_IMAGES || plan->y_n16) plan->out_bytes = 0;
  return true;
}

bool weir_conv_plan_make(const weir_group *group, weir_conv_plan *plan,
                         weir_why *why) {
  *plan = (weir_conv_plan){.isa = weir_isa_of(&group->calls[0])};
  plan->table = plan->isa->conv;
  plan->lanes = plan->isa->lanes;
  if (strcmp(group->calls[0].op->name, "conv2d") != 0)
    return weir_no(why, "begins with %s", group->calls[0].op->name);
  if (group->out_count != 1) return weir_no(why, "several outputs");
  if (!read_conv(plan, group, why) || !add_members(plan, group, why))
    return false;
  if (plan->ph == 0 || plan->pw == 0) return weir_no(why, "no elements");
  if (!choose_form(plan, group, why)) return false;
  size_input(plan);
  size_tiles(plan);
  return size_memory(plan, why);
}

/* In the order in which a tile reads them: [tile][c][kh][kw][channels of the
 * tile]. Lanes without a channel get weights of 0. */
void weir_conv_pack(const weir_conv_plan *plan, const float *w,
                    const float *bias, float *packed) {
  int64_t taps = plan->window.kernel[0] * plan->window.kernel[1];
  int64_t channel = plan->c * taps; /* of one output channel */
  bool lanes = plan->form == WEIR_CONV_CHANNELS;
  float *to = packed;
  for (int64_t t = 0; t < plan->oc_tiles; t++) {
    int64_t o0 = lanes ? t * plan->lanes : weir_conv_tile_start(plan, t);
    int64_t o1 = lanes ? o0 + plan->lanes : weir_conv_tile_start(plan, t + 1);
    for (int64_t i = 0; i < channel; i++)
      for (int64_t o = o0; o < o1; o++)
        *to++ = o < plan->oc ? w[o * channel + i] : 0.0f;
  }
  assert((size_t)(to - packed) <= weir_conv_bias_at(plan));
  to = packed + weir_conv_bias_at(plan);
  for (int64_t o = 0; o < plan->oc_pad; o++)
    to[o] = bias != NULL && o < plan->oc ? bias[o] : 0.0f;
}

void weir_conv_steps(const weir_conv_plan *plan, float *y, int64_t count) {
  for (int32_t i = 0; i < plan->step_count; i++) {
    const weir_conv_step *step = &plan->steps[i];
    weir_tile tile = {
        .y = y, .a = y, .n = count, .p = {step->p[0], step->p[1]}};
    step->fn(&tile);
  }
}
