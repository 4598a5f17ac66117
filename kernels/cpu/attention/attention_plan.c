/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of attention: how they are cut, their scratch, masks and products.
 *
 * 96 queries are whole register tiles of every instruction set, both where they
 * are a tile's columns (the scores) and where they are its rows (the sums of
 * v); with 192 keys a block of scores is 72 KiB. */
#include "kernels/cpu/attention/attention_plan.h"

#include <math.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/registry.h"
#include "runtime/base/size.h"

enum {
  QUERIES = 96, /* of a block, at most */
  KEYS = 192,
  KEYS_BACK = 96, /* the gradient has two blocks, and more panels */
  WIDEST = 1 << 16
};

static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

static int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

bool weir_attention_accepts(const weir_call *call, weir_why *why) {
  weir_heads h;
  weir_heads_of(call, &h);
  if (h.width <= WIDEST && h.depth <= WIDEST) return true;
  return weir_no(why, "heads wider than %d", (int)WIDEST);
}

/* ---- The plan */

static void cut(weir_attention *p, bool back) {
  int64_t columns = p->tiles->columns;
  int64_t queries = p->h.queries > 0 ? p->h.queries : 1;
  p->query_blocks = ceil_div(queries, QUERIES);
  p->query_block = round_up(ceil_div(queries, p->query_blocks), columns);
  p->query_blocks = ceil_div(queries, p->query_block);
  p->key_block = back ? KEYS_BACK : KEYS;
}

static void place(weir_attention *p, bool back) {
  int64_t columns = p->tiles->columns, lanes = p->query_block;
  int64_t block = p->key_block * lanes;
  int64_t width = round_up(p->h.width, columns);
  int64_t depth = round_up(p->h.depth, columns);
  int64_t widest = back && width > depth ? width : depth;
  int64_t total = 0, *part = p->parts;
  part[WEIR_ATTENTION_S] = block;
  part[WEIR_ATTENTION_MASK] = block;
  part[WEIR_ATTENTION_ROW] = 4 * (lanes > KEYS ? lanes : KEYS);
  part[WEIR_ATTENTION_Q] = width * lanes;
  part[WEIR_ATTENTION_V] = widest * p->key_block;
  part[WEIR_ATTENTION_DP] = back ? block : 0;
  part[WEIR_ATTENTION_DY] = back ? depth * lanes : 0;
  part[WEIR_ATTENTION_Q_PANELS] = back ? width * lanes : 0;
  part[WEIR_ATTENTION_DY_PANELS] = back ? depth * lanes : 0;
  for (int i = 0; i < WEIR_ATTENTION_PARTS; i++) {
    int64_t size = round_up(part[i], 16);
    part[i] = total;
    total += size;
  }
  p->worker_bytes = (size_t)total * sizeof(float);
}

static void read_masks(weir_attention *p, const weir_call *call) {
  uint32_t i = p->mask_in;
  p->mask_type = WEIR_DTYPE_NONE;
  if (i < call->in_count && call->in[i].dtype != WEIR_DTYPE_NONE) {
    p->mask_type = call->in[i].dtype;
    p->mask = weir_mask_strides_of(&call->in[i]);
  }
  if (i + 1 < call->in_count && call->in[i + 1].dtype != WEIR_DTYPE_NONE)
    p->length_count = call->in[i + 1].elements;
}

weir_status weir_attention_prepare(const weir_call *call, uint32_t mask_in,
                                   bool back, weir_prepared *out,
                                   weir_error *err) {
  weir_attention *p = weir_arena_alloc(out->arena, sizeof *p);
  if (!p) return weir_fail_memory(err, sizeof *p);
  *p = (weir_attention){
      .isa = weir_isa_of(call), .in_count = call->in_count, .mask_in = mask_in};
  p->tiles = p->isa->gemm_f32;
  weir_heads_of(call, &p->h);
  read_masks(p, call);
  cut(p, back);
  place(p, back);
  out->state = p;
  out->worker_scratch_bytes = p->worker_bytes;
  return WEIR_OK;
}

float *weir_attention_part(const weir_attention *p, const weir_args *args,
                           int worker, int part) {
  char *own = (char *)args->scratch +
              (size_t)worker * weir_scratch_align(p->worker_bytes);
  return (float *)(void *)own + p->parts[part];
}

int64_t weir_attention_keys(const weir_attention *p, const weir_args *args,
                            int64_t b) {
  const int64_t *lengths =
      p->length_count > 0 ? args->io[p->mask_in + 1] : NULL;
  return weir_heads_keys(&p->h, lengths, p->length_count, b);
}

void weir_attention_rows_of(const weir_attention *p, const weir_args *args,
                            int64_t b, int64_t head, int64_t block,
                            weir_attention_rows *out) {
  int64_t keys = weir_attention_keys(p, args, b);
  int64_t end = (block + 1) * p->query_block, ignored;
  *out = (weir_attention_rows){.b = b, .head = head, .kv = head / p->h.group};
  out->begin = block * p->query_block;
  out->end = end < p->h.queries ? end : p->h.queries;
  out->lanes = round_up(out->end - out->begin, p->tiles->columns);
  weir_heads_seen(&p->h, out->begin, keys, &out->key_begin, &ignored);
  weir_heads_seen(&p->h, out->end - 1, keys, &ignored, &out->key_end);
  if (out->key_end > keys) out->key_end = keys;
  if (out->key_end < out->key_begin) out->key_end = out->key_begin;
}

static int64_t key_step(const weir_attention *p, int64_t begin, int64_t end) {
  int64_t blocks = weir_attention_key_blocks(p, begin, end);
  if (blocks == 0) return 1;
  int64_t step = round_up(ceil_div(end - begin, blocks), p->tiles->rows);
  return step < p->key_block ? step : p->key_block;
}

int64_t weir_attention_key_blocks(const weir_attention *p, int64_t begin,
                                  int64_t end) {
  return ceil_div(end - begin, p->key_block);
}

void weir_attention_key_range(const weir_attention *p, int64_t begin,
                              int64_t end, int64_t k, int64_t *from,
                              int64_t *to) {
  int64_t step = key_step(p, begin, end);
  *from = begin + k * step < end ? begin + k * step : end;
  *to = *from + step < end ? *from + step : end;
}

/* ---- Panels and products */

void weir_attention_turn(const weir_attention *p, float *dst, const float *x,
                         int64_t row, int64_t rows, int64_t width,
                         float factor) {
  int64_t columns = p->tiles->columns;
  for (int64_t i = 0; i < rows && width > 0; i += columns) {
    float *panel = dst + i * width;
    int64_t n = rows - i < columns ? rows - i : columns;
    p->tiles->pack(panel, x + i * row, 1, row, width, n);
    if (factor != 1.0f)
      p->isa->rows->affine(panel, panel, columns * width, 0, factor, 0);
  }
}

void weir_attention_pack(const weir_attention *p, float *dst, const float *x,
                         int64_t row, int64_t rows, int64_t width) {
  int64_t columns = p->tiles->columns;
  for (int64_t c = 0; c < width; c += columns)
    p->tiles->pack(dst + c * rows, x + c, row, 1, rows,
                   width - c < columns ? width - c : columns);
}

void weir_attention_multiply(const weir_attention *p,
                             const weir_attention_product *product) {
  weir_attention_product t = *product;
  int64_t rows = p->tiles->rows, columns = p->tiles->columns;
  for (int64_t i = 0; t.k == 0 && !t.add && i < t.m; i++)
    memset(t.c + i * t.c_row, 0, (size_t)t.n * sizeof(float));
  if (t.k == 0) return;
  for (int64_t i = 0; i < t.m; i += rows)
    for (int64_t j = 0; j < t.n; j += columns) {
      weir_gemm_tile tile = {.a = t.a + i * t.a_row,
                             .b = t.plain ? t.b + j : t.b + j * t.k,
                             .c = t.c + i * t.c_row + j,
                             .a_row = t.a_row,
                             .a_k = t.a_k,
                             .b_k = t.plain ? t.b_row : columns,
                             .c_row = t.c_row,
                             .m = t.m - i < rows ? t.m - i : rows,
                             .n = t.n - j < columns ? t.n - j : columns,
                             .k = t.k,
                             .add = t.add};
      p->tiles->tile(&tile);
    }
}

/* ---- Scores and masks */

void weir_attention_mask_row(const weir_attention *p, const weir_args *args,
                             const weir_attention_rows *rows, int64_t i,
                             int64_t from, int64_t count, float *to) {
  const weir_mask_strides *s = &p->mask;
  int64_t at =
      rows->b * s->batch + rows->head * s->head + i * s->query + from * s->key;
  if (p->mask_type == WEIR_BOOL) {
    const uint8_t *mask = (const uint8_t *)args->io[p->mask_in] + at;
    for (int64_t j = 0; j < count; j++)
      to[j] = mask[j * s->key] != 0 ? 0.0f : -INFINITY;
  } else {
    const float *mask = (const float *)args->io[p->mask_in] + at;
    for (int64_t j = 0; j < count; j++) to[j] = mask[j * s->key];
  }
}

/* The mask's block, turned: to[j * lanes + i]. Queries that are not there keep
 * what lay there, which may be anything but must be numbers. */
static void mask_block(const weir_attention *p, const weir_args *args,
                       const weir_attention_rows *rows, int64_t from,
                       int64_t count, float *to) {
  int64_t queries = rows->end - rows->begin;
  if (p->mask_type == WEIR_F32 && p->mask.key == 1) {
    const float *mask = (const float *)args->io[p->mask_in] +
                        rows->b * p->mask.batch + rows->head * p->mask.head +
                        rows->begin * p->mask.query + from;
    p->isa->rows->transpose(to, rows->lanes, mask, p->mask.query, queries,
                            count);
  } else {
    float row[KEYS];
    for (int64_t i = 0; i < queries; i++) {
      weir_attention_mask_row(p, args, rows, rows->begin + i, from, count, row);
      for (int64_t j = 0; j < count; j++) to[j * rows->lanes + i] = row[j];
    }
  }
  for (int64_t j = 0; j < count && queries < rows->lanes; j++)
    memset(to + j * rows->lanes + queries, 0,
           (size_t)(rows->lanes - queries) * sizeof(float));
}

/* Whether every query sees every key of [from, to). */
static bool all_seen(const weir_attention *p, const weir_attention_rows *rows,
                     int64_t from, int64_t to) {
  bool causal = p->h.causal && to - 1 > rows->begin;
  bool before = p->h.window > 0 && rows->end - 1 - from >= p->h.window;
  bool behind = p->h.window > 0 && to - 1 - rows->begin >= p->h.window;
  return !causal && !before && !behind;
}

void weir_attention_scores(const weir_attention *p, const weir_args *args,
                           int worker, const weir_attention_rows *rows,
                           int64_t from, int64_t to,
                           weir_attention_block *out) {
  const int64_t far = INT64_MAX / 4;
  int64_t window = p->h.window > 0 && p->h.window < far ? p->h.window : far;
  float *s = weir_attention_part(p, args, worker, WEIR_ATTENTION_S);
  float *masks = weir_attention_part(p, args, worker, WEIR_ATTENTION_MASK);
  const float *k = (const float *)args->io[1] +
                   weir_attention_token(&p->h.k, rows->b, rows->kv, from);
  weir_attention_product product = {
      .a = k,
      .b = weir_attention_part(p, args, worker, WEIR_ATTENTION_Q),
      .c = s,
      .a_row = p->h.k.row,
      .a_k = 1,
      .c_row = rows->lanes,
      .m = to - from,
      .n = rows->lanes,
      .k = p->h.width};
  weir_attention_multiply(p, &product);
  *out = (weir_attention_block){.s = s,
                                .row = rows->lanes,
                                .keys = to - from,
                                .queries = rows->lanes,
                                .bounded = !all_seen(p, rows, from, to),
                                .shift = from - rows->begin,
                                .low = 1 - window,
                                .high = p->h.causal ? 0 : window - 1};
  if (p->mask_type != WEIR_DTYPE_NONE && p->mask.query == 0) {
    weir_attention_mask_row(p, args, rows, rows->begin, from, to - from, masks);
    out->per_key = masks;
  } else if (p->mask_type != WEIR_DTYPE_NONE) {
    mask_block(p, args, rows, from, to - from, masks);
    out->full = masks;
  }
  if (out->bounded || p->mask_type != WEIR_DTYPE_NONE)
    p->isa->attention->mask(out);
}
