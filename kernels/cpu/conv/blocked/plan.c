/* SPDX-License-Identifier: Apache-2.0 */
/* Which convolutions are computed in blocked layouts, by own tiles or by
 * oneDNN, and in what pieces.
 *
 * The rule looks at shapes, layouts and the profile alone and never asks
 * oneDNN: asking would fix its instruction set for the process. It keeps to
 * shapes for which oneDNN has vector code: channels that fill vectors but for a
 * few lanes, windows that reach the image at every place.
 * oneDNN's pieces: as many as keep a piece's output in the second cache and
 * give a few blocks to each thread for one image; four vectors of channels at
 * least, which is what oneDNN's register tiles hold. 1 x 1 windows of few
 * output channels are left to the product that reads x in place (conv_gemm.c):
 * turning x takes a fixed share of their work, 1 in oc. */
#include "kernels/cpu/conv/blocked/plan.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/conv/blocked/blocked.h"
#include "kernels/cpu/conv/blocked/tile.h"
#include "kernels/cpu/conv/blocked/tiles.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/registry.h"
#include "runtime/base/size.h"

enum {
  kPieceBytes = 256 * 1024, /* of output */
  kPieceWeights = 1 << 20,  /* with AVX-512; with AVX2 a quarter */
  kTurnBytes = 4 << 20,     /* of x in scratch */
  kJobFloats = 64 * 1024,   /* turned in one job */
  kBlocks = 8,              /* wanted */
  kKernel = 16,             /* rows or columns of a window, at most */
  kReach = 4096,            /* of a window with its dilation, at most */
  kFewOut = 320,            /* for which turning x does not pay */
  kStrip = 24,              /* pixels of a strip, at least */
  kEven = 8,                /* rows of which one more or less is little */
  kFewWeights = 160 * 1024, /* for tiles of AVX2 */
  kBorder = 4096,           /* pixels of a border that do no harm */
  kPoint = 4,               /* pixels for which own tiles pay */
  kFlat = 3                 /* channels that are read as they lie */
};
static const double kBlockFlops = 1e6, kSmallFlops = 2e6;
static const double kBlockBytes = 128e3, kSmallBytes = 256e3; /* of weights */

static bool is_layout(weir_layout layout, int lanes, bool *plain) {
  *plain = layout == WEIR_LAYOUT_PLAIN;
  return *plain || weir_layout_channels(layout) == lanes;
}

static bool window_fits(const weir_window *v, weir_why *why) {
  for (int i = 0; i < 2; i++) {
    int64_t reach = weir_conv_reach(v, i);
    if (v->kernel[i] > kKernel)
      return weir_no(why, "a window larger than %d", kKernel);
    if (v->pad[i] >= reach || v->pad[i + 2] >= reach)
      return weir_no(why, "a border as wide as the window");
    if (reach > kReach)
      return weir_no(why, "a window that reaches over %d pixels", kReach);
  }
  return true;
}

static bool channels_fit(weir_conv_blocked *p, weir_why *why) {
  const weir_conv_dims *d = &p->dims;
  p->depthwise = d->groups > 1 && d->c == 1 && d->oc == 1;
  p->flat = !p->depthwise && d->groups == 1 && d->c <= kFlat;
  p->channels = d->c * d->groups;
  p->out_channels = d->oc * d->groups;
  p->padded = p->flat ? p->channels : weir_layout_padded(p->channels, p->lanes);
  p->out_padded = weir_layout_padded(p->out_channels, p->lanes);
  if (!weir_layout_pays(p->out_channels, p->lanes) ||
      (!p->flat && !weir_layout_pays(p->channels, p->lanes)))
    return weir_no(why, "channels leave most of a block of %d empty", p->lanes);
  if (p->depthwise) return true;
  if (d->groups > 1 && (d->oc % p->lanes != 0 || d->c % p->lanes != 0))
    return weir_no(why, "groups of channels no multiple of %d", p->lanes);
  return !p->flat || p->x_plain || weir_no(why, "few channels in blocks");
}

/* How many pieces |channels| are cut into: the first number from |wanted| on
 * that leaves whole vectors, not above |most|; else the last below it. */
static int64_t pieces_of(int64_t channels, int lanes, int64_t wanted,
                         int64_t most) {
  if (most < 1) most = 1;
  if (wanted > most) wanted = most;
  for (int64_t k = wanted; k <= most; k++)
    if (channels % k == 0 && channels / k % lanes == 0) return k;
  while (wanted > 1 &&
         (channels % wanted != 0 || channels / wanted % lanes != 0))
    wanted--;
  return wanted;
}

static void cut(weir_conv_blocked *p) {
  const weir_conv_dims *d = &p->dims;
  int64_t groups = p->depthwise ? 1 : d->groups;
  int64_t channels = p->out_padded / groups;
  double flops =
      2.0 * (double)(p->out_channels * d->oh * d->ow) * (double)d->taps;
  double bytes = 4.0 * (double)channels * (double)p->out_pixels;
  int64_t wanted = 1 + (int64_t)(bytes / kPieceBytes);
  int64_t blocks = (kBlocks + d->n * groups - 1) / (d->n * groups);
  /* A few pixels wait for their weights more than they compute. */
  double weights = 4.0 * (double)p->out_channels * (double)d->taps;
  double work = fmax(flops / kBlockFlops, weights / kBlockBytes);
  int64_t worth = (int64_t)(work / (double)groups);
  if (blocks > worth) blocks = worth;
  if (blocks > wanted) wanted = blocks;
  int64_t most = channels / (p->depthwise ? p->lanes : 4 * p->lanes);
  if ((most < 2 || p->out_pixels < kPoint) && d->n * groups == 1)
    most = channels / (2 * p->lanes);
  int64_t pieces = pieces_of(channels, p->lanes, wanted, most);
  p->piece = channels / pieces;
  p->pieces = pieces * groups;
  p->small = flops * (double)d->n < kSmallFlops && weights < kSmallBytes;
  p->strip = p->out_pixels;
  p->strips = 1;
  assert(p->piece % p->lanes == 0 && p->piece * p->pieces == p->out_padded);
}

/* Whether twice as many strips are long enough, and nearly even. */
static bool halves(const weir_conv_blocked *p, int64_t strips) {
  int64_t rows = p->border_rows > 0 ? p->dims.oh : p->out_pixels;
  if (p->out_pixels / (2 * strips) < kStrip) return false;
  return rows % (2 * strips) == 0 || rows / (2 * strips) >= kEven;
}

/* How many pieces and strips for own tiles. The weights of a piece stay in the
 * second cache for all strips, and what a strip reads and writes does for its
 * panels. More blocks are cut from pixels where values are more than weights,
 * else from channels, so that the larger of the two is read once. */
static void cut_tiles(weir_conv_blocked *p) {
  const weir_conv_dims *d = &p->dims;
  int64_t panel = p->isa->conv_tiles->vectors * p->lanes;
  int64_t panels = (p->out_padded + panel - 1) / panel;
  double weights = (double)p->out_channels * (double)d->taps;
  double pixels = (double)p->out_pixels;
  double values = (double)(p->padded + p->out_padded) * pixels;
  int64_t blocks = (kBlocks + d->n - 1) / d->n;
  int64_t worth = (int64_t)(2 * weights * pixels / kBlockFlops);
  double most = p->lanes == 16 ? kPieceWeights : kPieceWeights / 4;
  int64_t pieces = (int64_t)ceil(4 * weights / most);
  if (blocks > worth) blocks = worth;
  if (values * (double)d->n <= weights && pieces < blocks) pieces = blocks;
  if (pieces > panels) pieces = panels;
  double strip = (double)p->padded + (double)p->out_padded / (double)pieces;
  int64_t wanted = 1 + (int64_t)(4 * strip * pixels / kPieceBytes);
  p->strips = 1;
  while ((p->strips < wanted || p->strips * pieces < blocks) && !p->y_plain &&
         halves(p, p->strips))
    p->strips *= 2;
  if (p->strips * pieces < blocks)
    pieces = (blocks + p->strips - 1) / p->strips;
  if (pieces > panels) pieces = panels;
  p->piece = (panels + pieces - 1) / pieces * panel;
  p->pieces = (p->out_padded + p->piece - 1) / p->piece;
  p->strip = (p->out_pixels + p->strips - 1) / p->strips;
  if (p->border_rows > 0) p->strip = (p->strip + p->row - 1) / p->row * p->row;
  p->strips = (p->out_pixels + p->strip - 1) / p->strip;
  p->small = 2 * weights * pixels * (double)d->n < kSmallFlops;
  if (p->border_rows > 0 && p->pieces == 1) weir_conv_tiles_by_strip(p);
}

static bool floats(int64_t a, int64_t b, int64_t c, size_t *out) {
  size_t bytes;
  if (!weir_size_mul((size_t)a, (size_t)b, &bytes) ||
      !weir_size_mul(bytes, (size_t)c, &bytes) ||
      !weir_size_mul(bytes, sizeof(float), &bytes) || bytes > SIZE_MAX / 2)
    return false;
  *out = weir_scratch_align(bytes);
  return true;
}

static bool size_memory(weir_conv_blocked *p, weir_why *why) {
  const weir_conv_dims *d = &p->dims;
  size_t image = 0;
  int64_t window = d->window.kernel[0] * d->window.kernel[1];
  int64_t channels = p->tiles ? p->channels : p->padded;
  int64_t taps = d->groups > 1 ? d->taps : channels * window;
  bool ok = floats(p->piece, taps, 1, &p->packed_bytes) &&
            floats(p->padded, p->pixels, 1, &image);
  int64_t own = p->tiles ? weir_conv_tiles_own(p) : 0;
  if (p->tiles)
    ok = ok && floats(own > p->piece ? own : p->piece, 1, 1, &p->own_w_bytes);
  else if (p->padded != p->channels || p->out_padded != p->out_channels)
    p->own_w_bytes = p->packed_bytes;
  p->images = d->n;
  if (ok && p->turns_x && image > 0) {
    int64_t fit = (int64_t)(kTurnBytes / image);
    if (p->images > fit) p->images = fit > 0 ? fit : 1;
    ok = floats(p->padded, p->pixels, p->images, &p->x_bytes);
  }
  if (ok && ((p->x_plain && p->depthwise) || p->by_strip))
    ok = floats(p->depthwise ? p->piece : p->padded, p->pixels, 1,
                &p->own_x_bytes);
  if (ok && p->y_plain)
    ok = floats(p->piece, p->out_pixels, 1, &p->own_y_bytes);
  size_t all = 0;
  ok = ok && weir_size_mul(p->packed_bytes, (size_t)p->pieces, &all);
  return ok || weir_no(why, "memory beyond all sizes");
}

/* Whether x with its border is much larger than without. */
static bool is_mostly_border(const weir_conv_dims *d) {
  const int64_t *pad = d->window.pad;
  double all =
      (double)(d->h + pad[0] + pad[2]) * (double)(d->w + pad[1] + pad[3]);
  return all > 4 * ((double)d->h * (double)d->w + kBorder);
}

/* Whether own tiles take it, and what they read. With AVX2 a tile has too few
 * pixels to use many weights as fast as they come: those are oneDNN's. */
static bool by_tiles(weir_conv_blocked *p) {
  const weir_conv_dims *d = &p->dims;
  int64_t taps = d->window.kernel[0] * d->window.kernel[1];
  bool wide = p->lanes == 16;
  if (d->groups != 1 || p->flat || p->out_pixels < kPoint) return false;
  if (taps > 1 ? !wide || taps > WEIR_CONV_TAPS
               : !wide && p->channels * p->out_channels > kFewWeights)
    return false;
  if (taps > 1) {
    if (is_mostly_border(d)) return false;
    weir_conv_tiles_border(p);
    p->turns_x = true;
  } else if (!p->thin) {
    p->tap_count = 1;
    p->row = p->out_pixels;
  }
  return true;
}

bool weir_conv_blocked_plan(const weir_call *call, weir_layout y_layout,
                            weir_conv_blocked *p, weir_why *why) {
  bool has_bias = call->in_count > 2 && call->in[2].dtype != WEIR_DTYPE_NONE;
  memset(p, 0, sizeof *p);
  p->isa = weir_isa_of(call);
  p->lanes = weir_layout_channels(weir_isa_blocks(call->profile));
  if (!weir_onednn_has_conv())
    return weir_no(why, "oneDNN has no convolutions here");
  if (p->lanes == 0) return weir_no(why, "wants AVX2");
  if (call->out[0].elements == 0 || call->in[1].elements == 0)
    return weir_no(why, "no elements");
  if (!is_layout(call->in[0].layout, p->lanes, &p->x_plain) ||
      !is_layout(y_layout, p->lanes, &p->y_plain))
    return weir_no(why, "not rows nor blocks of %d channels", p->lanes);
  for (uint32_t i = 1; i < call->in_count; i++)
    if (call->in[i].layout != WEIR_LAYOUT_PLAIN)
      return weir_no(why, "weights in another layout");
  p->dims = weir_conv_dims_of(call, &call->in[0], &call->in[1], &call->out[0]);
  const weir_conv_dims *d = &p->dims;
  if (!window_fits(&d->window, why) || !channels_fit(p, why)) return false;
  p->w_io = 1;
  p->bias_io = has_bias ? 2 : -1;
  p->y_io = (int32_t)call->in_count;
  p->out_pixels = d->oh * d->ow;
  p->thin = !p->depthwise && !p->flat && d->window.kernel[0] == 1 &&
            d->window.kernel[1] == 1 &&
            (d->window.stride[0] > 1 || d->window.stride[1] > 1);
  p->pixels = d->h * d->w;
  if (p->thin) weir_conv_tiles_border(p);
  /* One pixel's channels that fill their blocks lie alike in every layout. */
  bool one_in = d->h * d->w == 1, one_out = p->out_pixels == 1;
  if (one_in && !p->flat && p->padded == p->channels) p->x_plain = false;
  if (one_out && p->out_padded == p->out_channels) p->y_plain = false;
  p->turns_x = p->thin || (p->x_plain && !p->flat && !p->depthwise);
  if (d->in_place && p->x_plain && p->y_plain && d->oc < kFewOut && !one_in)
    return weir_no(why, "1 x 1 to fewer than %d channels, from and to rows",
                   (int)kFewOut);
  p->tiles = by_tiles(p);
  p->part = 1 + kJobFloats / (p->lanes * p->pixels);
  if (p->tiles)
    cut_tiles(p);
  else
    cut(p);
  return size_memory(p, why);
}

void weir_conv_blocked_spec(const weir_conv_blocked *p,
                            weir_onednn_conv_spec *out) {
  const weir_conv_dims *d = &p->dims;
  const weir_window *v = &d->window;
  *out = (weir_onednn_conv_spec){.depthwise = p->depthwise,
                                 .plain_x = p->flat,
                                 .bias = p->bias_io >= 0,
                                 .lanes = p->lanes,
                                 .c = p->depthwise    ? p->piece
                                      : d->groups > 1 ? d->c
                                                      : p->padded,
                                 .oc = p->piece,
                                 .h = p->thin ? d->oh : d->h,
                                 .w = p->thin ? d->ow : d->w,
                                 .oh = d->oh,
                                 .ow = d->ow};
  for (int i = 0; i < 2; i++) {
    out->kernel[i] = v->kernel[i];
    out->stride[i] = p->thin ? 1 : v->stride[i];
    out->dilation[i] = v->dilation[i];
    out->pad[i] = v->pad[i];
    /* What the last window reaches: rows past it would not count. */
    int64_t reach = weir_conv_reach(v, i);
    int64_t size = i == 0 ? out->h : out->w, count = i == 0 ? d->oh : d->ow;
    int64_t below = (count - 1) * out->stride[i] + reach - size - v->pad[i];
    out->pad[i + 2] = below > 0 ? below : 0;
  }
}
