/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d of f32 in blocks of channels (kernels/cpu/conv/blocked/blocked.h), by
 * own tiles or by oneDNN's primitives.
 *
 * Order of a run: pack weights that are not constant; then, for some images at
 * a time, turn x if it is plain or wants a border, and compute all pieces of
 * them. Pieces of the same output channels follow each other, so that their
 * weights stay in the cache.
 * Invariant: a piece of a strip is computed by one call on one thread and
 * written nowhere else, so bits depend on shapes and layouts alone.
 * Cost: 2 n oc oh ow taps flop; a plain x or y, or a border, costs one pass. */
#include "kernels/cpu/conv/blocked/blocked.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "kernels/cpu/conv/blocked/plan.h"
#include "kernels/cpu/conv/blocked/tile.h"
#include "kernels/cpu/conv/blocked/tiles.h"
#include "kernels/cpu/conv/conv_plan.h"
#include "kernels/cpu/ew/ew_build.h"
#include "kernels/cpu/ew/ew_run.h"
#include "kernels/cpu/gemm/matmul_shape.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/registry.h"
#include "runtime/base/size.h"

typedef struct job {
  const weir_conv_blocked *p;
  const weir_args *args;
  float *turned; /* images of x in blocks */
  char *own;     /* scratch of the workers */
  char *packed;
  int64_t first, images; /* of this turn */
  atomic_int status;     /* of oneDNN's first failure */
} job;

static void note(job *j, weir_status s) {
  int none = WEIR_OK;
  if (s != WEIR_OK) atomic_compare_exchange_strong(&j->status, &none, (int)s);
}

static size_t own_bytes(const weir_conv_blocked *p) {
  size_t ew = p->epilogue ? weir_scratch_align(p->epilogue->scratch_bytes) : 0;
  return p->own_x_bytes + p->own_y_bytes + p->own_w_bytes + p->own_bytes + ew;
}

static size_t turned_bytes(const weir_conv_blocked *p) {
  return p->turns_x ? p->x_bytes : 0;
}

static size_t packing_bytes(const weir_conv_blocked *p) {
  return p->packed_bytes * (size_t)p->pieces;
}

/* ---- Weights */

/* The filters of a piece from output channel |o| on, those of empty lanes 0:
 * |w|, or a copy in |own|. */
static const float *filters_of(const weir_conv_blocked *p, const float *w,
                               int64_t o, float *own) {
  int64_t taps = p->dims.taps;
  if (p->own_w_bytes == 0) return w + o * taps;
  int64_t row = taps;
  if (!p->depthwise && p->dims.groups == 1) row = taps / p->dims.c * p->padded;
  int64_t there =
      p->out_channels - o < p->piece ? p->out_channels - o : p->piece;
  assert((size_t)(p->piece * row) * sizeof *own <= p->own_w_bytes);
  for (int64_t i = 0; i < p->piece; i++) {
    int64_t copied = i < there ? taps : 0;
    if (copied > 0)
      memcpy(own + i * row, w + (o + i) * taps, (size_t)taps * sizeof *own);
    memset(own + i * row + copied, 0, (size_t)(row - copied) * sizeof *own);
  }
  return own;
}

static weir_status pack(const weir_conv_blocked *p, const float *w, int64_t k,
                        char *packed, char *own, weir_error *err) {
  packed += (size_t)k * p->packed_bytes;
  if (p->tiles) {
    weir_conv_tiles_pack(p, w, k, (float *)(void *)packed,
                         (float *)(void *)own);
    return WEIR_OK;
  }
  w = filters_of(p, w, k * p->piece, (float *)(void *)own);
  return weir_onednn_conv_pack(p->conv, w, packed, own + p->own_w_bytes, err);
}

static void pack_piece(void *arg, int64_t k, int worker) {
  job *j = arg;
  const weir_conv_blocked *p = j->p;
  char *own = j->own + (size_t)worker * own_bytes(p);
  note(j, pack(p, j->args->io[p->w_io], k, j->packed, own, NULL));
}

/* ---- x in blocks */

/* How many of the vector of channels that begins at |c| are there. */
static int64_t lanes_at(const weir_conv_blocked *p, int64_t c,
                        int64_t channels) {
  return channels - c < p->lanes ? channels - c : p->lanes;
}

/* Clears the lanes from |there| on of a vector of channels. */
static void clear_lanes(const weir_conv_blocked *p, float *x, int64_t there,
                        int64_t pixels) {
  int64_t lanes = p->lanes;
  if (there == lanes) return;
  for (int64_t i = 0; i < pixels; i++, x += lanes) {
    if (lanes - there == 8)
      memset(x + there, 0, 8 * sizeof *x);
    else
      for (int64_t k = there; k < lanes; k++) x[k] = 0;
  }
}

/* |there| rows of |pixels| to a vector of channels. */
static void turn(const weir_conv_blocked *p, float *to, const float *x,
                 int64_t there, int64_t pixels) {
  p->isa->rows->transpose(to, p->lanes, x, pixels, there, pixels);
  clear_lanes(p, to, there, pixels);
}

static int64_t parts_of(const weir_conv_blocked *p) {
  int64_t vectors = p->padded / p->lanes;
  return (vectors + p->part - 1) / p->part;
}

static void turn_part(void *arg, int64_t k, int worker) {
  job *j = arg;
  const weir_conv_blocked *p = j->p;
  int64_t parts = parts_of(p), image = k / parts;
  int64_t vectors = p->padded / p->lanes, from = k % parts * p->part;
  int64_t to = from + p->part < vectors ? from + p->part : vectors;
  int64_t plane = p->dims.h * p->dims.w;
  int64_t channels = p->x_plain ? p->channels : p->padded;
  (void)worker;
  for (int64_t v = from; v < to; v++) {
    int64_t c = v * p->lanes;
    const float *x = (const float *)j->args->io[p->x_io] +
                     ((j->first + image) * channels + c) * plane;
    float *dst = j->turned + (image * p->padded + c) * p->pixels;
    int64_t there = lanes_at(p, c, channels);
    if (p->border_rows == 0) {
      turn(p, dst, x, there, plane);
      continue;
    }
    weir_conv_tiles_turn(p, dst, x, there, 0);
    if (!p->tiles) clear_lanes(p, dst, there, p->pixels);
  }
}

/* ---- Pieces */

/* A block of work, or a part of it: some output channels of some pixels of an
 * image. */
typedef struct place {
  int64_t image, k, o;  /* within this turn; piece; the first output channel */
  int64_t from, pixels; /* of y */
  int64_t channels;     /* of y, lanes included */
} place;

static place place_of(const job *j, int64_t index) {
  const weir_conv_blocked *p = j->p;
  place at = {.from = index % p->strips * p->strip, .pixels = p->strip};
  index /= p->strips;
  at.image = index % j->images;
  at.k = index / j->images;
  at.o = at.k * p->piece;
  at.channels = p->out_padded - at.o;
  if (at.channels > p->piece) at.channels = p->piece;
  if (at.pixels > p->out_pixels - at.from) at.pixels = p->out_pixels - at.from;
  assert(j->first + at.image < p->dims.n && at.k < p->pieces);
  return at;
}

/* A strip's x with its border. */
static const float *border_strip(const job *j, const place *at, const float *x,
                                 float *own) {
  const weir_conv_blocked *p = j->p;
  int64_t plane = p->dims.h * p->dims.w;
  for (int64_t c = 0; c < p->padded; c += p->lanes)
    weir_conv_tiles_turn(p, own + c * p->pixels, x + c * plane,
                         lanes_at(p, c, p->channels), at->from / p->row);
  return own;
}

/* The input of a piece. */
static const float *input_of(const job *j, const place *at, float *own) {
  const weir_conv_blocked *p = j->p;
  int64_t c = p->depthwise ? at->o : at->o / p->dims.oc * p->dims.c;
  const float *x = j->args->io[p->x_io];
  if (p->turns_x) return j->turned + (at->image * p->padded + c) * p->pixels;
  int64_t channels = p->x_plain ? p->channels : p->padded;
  int64_t pixels = p->by_strip ? p->dims.h * p->dims.w : p->pixels;
  x += ((j->first + at->image) * channels + c) * pixels;
  if (p->by_strip) return border_strip(j, at, x, own);
  if (!p->x_plain || p->flat) return x;
  for (int64_t v = 0; v < p->piece; v += p->lanes)
    turn(p, own + v * p->pixels, x + v * p->pixels,
         lanes_at(p, c + v, channels), p->pixels);
  return own;
}

/* The bias of a piece, or a copy with 0 for empty lanes. */
static const float *bias_at(const job *j, const place *at, float *own) {
  const weir_conv_blocked *p = j->p;
  if (p->bias_io < 0) return NULL;
  const float *bias = (const float *)j->args->io[p->bias_io] + at->o;
  int64_t there = p->out_channels - at->o;
  if (there >= at->channels) return bias;
  memcpy(own, bias, (size_t)there * sizeof *own);
  memset(own + there, 0, (size_t)(at->channels - there) * sizeof *own);
  return own;
}

/* |x|: the piece's; |y|: where |at|'s channels begin. */
static void compute(job *j, const place *at, const float *x, float *y,
                    char *own) {
  const weir_conv_blocked *p = j->p;
  char *own_w = own + p->own_x_bytes + p->own_y_bytes;
  const float *bias = bias_at(j, at, (float *)(void *)own_w);
  char *packed = j->packed + (size_t)at->k * p->packed_bytes;
  if (p->tiles) {
    int64_t skipped = (at->o - at->k * p->piece) * p->channels * p->tap_count;
    weir_conv_tiles_io io = {.x = x,
                             .w = (const float *)(const void *)packed + skipped,
                             .bias = bias,
                             .y = y,
                             .at = at->from,
                             .pixels = at->pixels,
                             .vectors = (int)(at->channels / p->lanes),
                             .last = at->o + at->channels == p->out_padded};
    weir_conv_tiles_run(p, &io);
    return;
  }
  weir_onednn_conv_io io = {.x = x,
                            .packed = packed,
                            .bias = bias,
                            .y = y,
                            .scratch = own_w + p->own_w_bytes};
  note(j, weir_onednn_conv_run(p->conv, &io, NULL));
}

/* Goes to rows, or empty lanes are cleared. |y|: where |at|'s channels begin.
 */
static void place_piece(const weir_conv_blocked *p, const place *at, float *y,
                        const float *own_y) {
  for (int64_t v = 0; v < at->channels; v += p->lanes) {
    int64_t there = lanes_at(p, at->o + v, p->out_channels);
    float *to = y + v * p->out_pixels;
    if (p->y_plain)
      p->isa->rows->transpose(to, p->out_pixels, own_y + v * p->out_pixels,
                              p->lanes, p->out_pixels, there);
    else
      clear_lanes(p, to + at->from * p->lanes, there, at->pixels);
  }
}

/* Followers on |at|'s elements; |first|: of its first channel. */
static void follow(const job *j, const place *at, int64_t first,
                   char *scratch) {
  const weir_conv_blocked *p = j->p;
  int64_t channels = at->channels, lanes = p->lanes;
  if (p->y_plain && channels > p->out_channels - at->o)
    channels = p->out_channels - at->o;
  int64_t parts = p->strips == 1 ? 1 : channels / lanes;
  int64_t size = channels / parts * p->out_pixels, skip = at->from * lanes;
  int64_t count = p->strips == 1 ? size : at->pixels * lanes;
  for (int64_t i = 0; i < parts; i++, first += size)
    weir_ew_range(p->epilogue, j->args->io, first + skip, first + skip + count,
                  scratch);
}

/* |at|: of a piece what is computed at once, whose followers then find it in
 * the cache: a panel of tiles, or all. */
static void run_part(job *j, const place *at, const float *x, char *own) {
  const weir_conv_blocked *p = j->p;
  int64_t channels = p->y_plain ? p->out_channels : p->out_padded;
  int64_t first = ((j->first + at->image) * channels + at->o) * p->out_pixels;
  float *own_y = (float *)(void *)(own + p->own_x_bytes);
  float *y = (float *)j->args->io[p->y_io] + first;
  compute(j, at, x, p->y_plain ? own_y : y, own);
  place_piece(p, at, y, own_y);
  if (p->epilogue)
    follow(j, at, first,
           own + own_bytes(p) - weir_scratch_align(p->epilogue->scratch_bytes));
}

static void run_piece(void *arg, int64_t index, int worker) {
  job *j = arg;
  const weir_conv_blocked *p = j->p;
  place at = place_of(j, index);
  char *own = j->own + (size_t)worker * own_bytes(p);
  const float *x = input_of(j, &at, (float *)(void *)own);
  int64_t left = at.channels, part = left;
  if (p->tiles) part = p->isa->conv_tiles->vectors * p->lanes;
  for (; left > 0; left -= part, at.o += part) {
    at.channels = left < part ? left : part;
    run_part(j, &at, x, own);
  }
}

static void blocks(job *j, int64_t count, weir_block_fn fn) {
  if (j->p->small)
    for (int64_t b = 0; b < count; b++) fn(j, b, 0);
  else
    weir_parallel_for(j->args, count, fn, j);
}

weir_status weir_conv_blocked_run(const weir_args *args) {
  const weir_conv_blocked *p = args->state;
  char *scratch = args->scratch;
  job j = {.p = p, .args = args, .packed = p->packed};
  atomic_init(&j.status, WEIR_OK);
  if (p->epilogue) WEIR_TRY(weir_ew_check(p->epilogue, args));
  j.turned = (float *)(void *)scratch;
  scratch += turned_bytes(p);
  if (p->packed == NULL) {
    j.packed = scratch;
    scratch += packing_bytes(p);
  }
  j.own = scratch;
  if (p->packed == NULL) blocks(&j, p->pieces, pack_piece);
  for (j.first = 0; j.first < p->dims.n; j.first += p->images) {
    j.images = p->dims.n - j.first;
    if (j.images > p->images) j.images = p->images;
    if (p->turns_x) blocks(&j, j.images * parts_of(p), turn_part);
    blocks(&j, j.images * p->pieces * p->strips, run_piece);
  }
  weir_status s = (weir_status)atomic_load(&j.status);
  if (s == WEIR_OK) return WEIR_OK;
  return weir_fail(args->err,
                   s == WEIR_RESOURCE_EXHAUSTED ? WEIR_W6001 : WEIR_W5001, NULL,
                   "oneDNN: a convolution failed");
}

/* ---- Preparing */

static const char *text_of(const weir_conv_blocked *p) {
  if (p->depthwise) return "oneDNN, depthwise";
  bool plain = p->x_plain && !p->flat;
  if (p->tiles)
    return plain && p->y_plain ? "tiles in blocks, from and to rows"
           : plain             ? "tiles in blocks, from rows"
           : p->y_plain        ? "tiles in blocks, to rows"
                               : "tiles in blocks";
  return plain && p->y_plain ? "oneDNN in blocks, from and to rows"
         : plain             ? "oneDNN in blocks, from rows"
         : p->y_plain        ? "oneDNN in blocks, to rows"
                             : "oneDNN in blocks";
}

static weir_status pack_all(weir_conv_blocked *p, const float *w,
                            weir_error *err) {
  size_t scratch_bytes = p->own_w_bytes + p->own_bytes;
  p->packed = weir_alloc_aligned(p->alloc, packing_bytes(p), 64);
  void *scratch = weir_alloc_aligned(p->alloc, scratch_bytes, 64);
  weir_status s = p->packed == NULL || scratch == NULL
                      ? weir_fail_memory(err, packing_bytes(p))
                      : WEIR_OK;
  for (int64_t k = 0; k < p->pieces && s == WEIR_OK; k++)
    s = pack(p, w, k, p->packed, scratch, err);
  weir_free(p->alloc, scratch);
  return s;
}

void weir_conv_blocked_release(void *state) {
  weir_conv_blocked *p = state;
  if (p == NULL) return;
  weir_onednn_conv_release(p->conv);
  weir_free(p->alloc, p->packed);
}

/* The primitive, and the weights if they are constant. Where only sizes are
 * wanted oneDNN is not asked: its scratch is nothing for these shapes, and its
 * weights take what they take in rows. */
static weir_status make(weir_conv_blocked *p, const float *w,
                        const weir_prepared *out, weir_error *err) {
  weir_onednn_conv_spec spec;
  if (out->sizes_only) return WEIR_OK;
  if (p->tiles) {
    p->fetches = weir_conv_tiles_fetch(p);
    return w != NULL ? pack_all(p, w, err) : WEIR_OK;
  }
  weir_conv_blocked_spec(p, &spec);
  WEIR_TRY(weir_onednn_conv_create(&spec, p->alloc, &p->conv, err));
  size_t packed = weir_onednn_conv_packed_bytes(p->conv), all = 0;
  size_t own = weir_onednn_conv_scratch_bytes(p->conv);
  if (packed > p->packed_bytes) p->packed_bytes = weir_scratch_align(packed);
  if (own > p->own_bytes) p->own_bytes = weir_scratch_align(own);
  if (!weir_size_mul(p->packed_bytes, (size_t)p->pieces, &all))
    return weir_fail_memory(err, SIZE_MAX);
  return w != NULL ? pack_all(p, w, err) : WEIR_OK;
}

weir_status weir_conv_blocked_prepare(weir_conv_blocked *p, const float *w,
                                      weir_prepared *out, weir_error *err) {
  p->alloc = out->alloc;
  weir_status s = make(p, w, out, err);
  if (s != WEIR_OK) {
    weir_conv_blocked_release(p);
    return s;
  }
  out->state = p;
  out->kept_bytes = w != NULL ? packing_bytes(p) : 0;
  out->scratch_bytes = turned_bytes(p) + (w != NULL ? 0 : packing_bytes(p));
  out->worker_scratch_bytes = own_bytes(p);
  out->algorithm = text_of(p);
  return WEIR_OK;
}

static bool accepts(const weir_call *call, weir_why *why) {
  weir_conv_blocked plan;
  return weir_conv_blocked_plan(call, call->out[0].layout, &plan, why);
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_conv_blocked *p = weir_arena_alloc(out->arena, sizeof *p);
  if (!p) return weir_fail_memory(err, sizeof *p);
  if (!weir_conv_blocked_plan(call, call->out[0].layout, p, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "cpu.conv2d.blocked: not accepted");
  return weir_conv_blocked_prepare(p, call->in[1].value, out, err);
}

const weir_kernel_def weir_kernel_cpu_conv2d_blocked = {
    .op = "conv2d",
    .name = "cpu.conv2d.blocked",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .accepts = accepts,
    .layouts = true,
    .prepare = prepare,
    .release = weir_conv_blocked_release,
    .run = weir_conv_blocked_run};
