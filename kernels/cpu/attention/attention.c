/* SPDX-License-Identifier: Apache-2.0 */
/* attention: q, k, v, mask, lengths -> y, lse.
 *
 * A task is a block of queries of one head. It goes over the keys that they see
 * block by block: scores, weights, and y += weights v, with y and the sums
 * multiplied by a factor when a query's largest score has risen. At the end y
 * is divided by the sums. Up to three queries, as in decoding, take a way of
 * their own: dot products with the keys, rows of v times numbers; there a task
 * is one query, and its lanes are keys.
 * Source: Dao, Fu, Ermon, Rudra and Re, FlashAttention, arXiv 2205.14135
 * (2022). Cost: 4 t s d flop and t s exponentials a head; memory is linear in
 * t. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/attention/attention_plan.h"

enum { FEW = 3 };

typedef struct job {
  const weir_attention *p;
  const weir_args *args;
} job;

static float *lse_of(const job *j, const weir_attention_rows *rows) {
  float *lse = j->args->io[j->p->in_count + 1];
  if (lse == NULL) return NULL;
  return lse + (rows->b * j->p->h.q_heads + rows->head) * j->p->h.queries +
         rows->begin;
}

/* A row of y whose weights are not divided by their sum yet. A query that saw
 * no key has no weights: whatever v holds, its row is 0. */
static void finish(const job *j, float *y, float *lse, float most, float sum) {
  int64_t depth = j->p->h.depth;
  if (lse != NULL) *lse = sum == 0.0f ? -INFINITY : most + logf(sum);
  if (depth == 0) return;
  if (sum == 0.0f)
    memset(y, 0, (size_t)depth * sizeof *y);
  else
    j->p->isa->rows->affine(y, y, depth, 0, 1.0f / sum, 0);
}

/* ---- Blocks of queries */

typedef struct tile {
  weir_attention_rows rows;
  float *most, *sum, *factor;
  float *y;
} tile;

static void rescale(const job *j, const tile *t) {
  int64_t depth = j->p->h.depth, count = t->rows.end - t->rows.begin;
  for (int64_t i = 0; i < count && depth > 0; i++) {
    float *y = t->y + i * j->p->h.y.row;
    if (t->factor[i] != 1.0f)
      j->p->isa->rows->affine(y, y, depth, 0, t->factor[i], 0);
  }
}

/* Keys [from, to). */
static void add_keys(const job *j, const tile *t, int worker, int64_t from,
                     int64_t to, bool first) {
  const weir_attention *p = j->p;
  float *panels = weir_attention_part(p, j->args, worker, WEIR_ATTENTION_V);
  const float *v = (const float *)j->args->io[2] +
                   weir_attention_token(&p->h.v, t->rows.b, t->rows.kv, from);
  weir_attention_block block;
  weir_attention_scores(p, j->args, worker, &t->rows, from, to, &block);
  p->isa->attention->weigh(&block, t->most, t->sum, t->factor);
  if (!first) rescale(j, t);
  /* Rows side by side are read as they lie; of rows far apart, which would
   * share few sets of the first cache, panels are made. */
  bool plain = p->h.v.row == p->h.depth;
  if (!plain)
    weir_attention_pack(p, panels, v, p->h.v.row, to - from, p->h.depth);
  weir_attention_product product = {.a = block.s,
                                    .b = plain ? v : panels,
                                    .c = t->y,
                                    .a_row = 1,
                                    .a_k = block.row,
                                    .c_row = p->h.y.row,
                                    .m = t->rows.end - t->rows.begin,
                                    .n = p->h.depth,
                                    .k = to - from,
                                    .add = !first,
                                    .plain = plain,
                                    .b_row = p->h.v.row};
  weir_attention_multiply(p, &product);
}

static void begin(const job *j, int64_t task, int worker, tile *t) {
  const weir_attention *p = j->p;
  int64_t head = task / p->query_blocks, b = head / p->h.q_heads;
  weir_attention_rows *rows = &t->rows;
  weir_attention_rows_of(p, j->args, b, head % p->h.q_heads,
                         task % p->query_blocks, rows);
  t->most = weir_attention_part(p, j->args, worker, WEIR_ATTENTION_ROW);
  t->sum = t->most + p->query_block;
  t->factor = t->sum + p->query_block;
  t->y = (float *)j->args->io[p->in_count] +
         weir_attention_token(&p->h.y, b, rows->head, rows->begin);
  for (int64_t i = 0; i < rows->lanes; i++) {
    t->most[i] = -INFINITY;
    t->sum[i] = 0;
  }
}

static void block(void *arg, int64_t task, int worker) {
  const job *j = arg;
  const weir_attention *p = j->p;
  tile t;
  begin(j, task, worker, &t);
  const float *q =
      (const float *)j->args->io[0] +
      weir_attention_token(&p->h.q, t.rows.b, t.rows.head, t.rows.begin);
  int64_t count = t.rows.end - t.rows.begin;
  int64_t from = t.rows.key_begin, to = t.rows.key_end;
  weir_attention_turn(p,
                      weir_attention_part(p, j->args, worker, WEIR_ATTENTION_Q),
                      q, p->h.q.row, count, p->h.width, (float)p->h.scale);
  int64_t blocks = weir_attention_key_blocks(p, from, to);
  for (int64_t k = 0; k < blocks; k++) {
    int64_t first, last;
    weir_attention_key_range(p, from, to, k, &first, &last);
    if (first < last) add_keys(j, &t, worker, first, last, k == 0);
  }
  float *lse = lse_of(j, &t.rows);
  for (int64_t i = 0; i < count; i++)
    finish(j, t.y + i * p->h.y.row, lse ? lse + i : NULL, t.most[i], t.sum[i]);
}

/* ---- Few queries */

/* Scores of one query with |count| keys from |from| on. */
static void few_scores(const job *j, const weir_attention_rows *rows,
                       const float *q, int64_t from, int64_t count, float *s,
                       float *masks) {
  const weir_attention *p = j->p;
  const float *k = (const float *)j->args->io[1] +
                   weir_attention_token(&p->h.k, rows->b, rows->kv, from);
  p->tiles->dots(s, q, k, p->h.k.row, p->h.width, count);
  p->isa->rows->affine(s, s, count, 0, (float)p->h.scale, 0);
  if (p->mask_type == WEIR_DTYPE_NONE) return;
  weir_attention_mask_row(p, j->args, rows, rows->begin, from, count, masks);
  p->isa->rows->sum_to(s, masks, count);
}

static void few_block(void *arg, int64_t task, int worker) {
  const job *j = arg;
  const weir_attention *p = j->p;
  int64_t i = task % p->h.queries, head = task / p->h.queries, from, to;
  weir_attention_rows rows = {.b = head / p->h.q_heads,
                              .head = head % p->h.q_heads,
                              .kv = head % p->h.q_heads / p->h.group,
                              .begin = i};
  weir_heads_seen(&p->h, i, weir_attention_keys(p, j->args, rows.b), &from,
                  &to);
  const float *q = (const float *)j->args->io[0] +
                   weir_attention_token(&p->h.q, rows.b, rows.head, i);
  float *y = (float *)j->args->io[p->in_count] +
             weir_attention_token(&p->h.y, rows.b, rows.head, i);
  float *s = weir_attention_part(p, j->args, worker, WEIR_ATTENTION_S);
  float *masks = weir_attention_part(p, j->args, worker, WEIR_ATTENTION_MASK);
  float *mixed = weir_attention_part(p, j->args, worker, WEIR_ATTENTION_V);
  float most = -INFINITY, sum = 0, *lse = lse_of(j, &rows);
  int64_t depth = p->h.depth;
  for (int64_t at = from; at < to; at += p->key_block) {
    int64_t count = to - at < p->key_block ? to - at : p->key_block;
    const float *v = (const float *)j->args->io[2] +
                     weir_attention_token(&p->h.v, rows.b, rows.kv, at);
    few_scores(j, &rows, q, at, count, s, masks);
    float factor = p->isa->attention->weigh_row(s, count, &most, &sum);
    if (depth == 0) continue;
    p->tiles->sweep(at == from ? y : mixed, s, v, p->h.v.row, count, depth);
    if (at == from) continue;
    p->isa->rows->affine(y, y, depth, 0, factor, 0);
    p->isa->rows->sum_to(y, mixed, depth);
  }
  finish(j, y, lse, most, sum);
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_heads h;
  weir_heads_of(call, &h);
  out->algorithm = h.queries <= FEW ? "rows of keys" : "blocks";
  return weir_attention_prepare(call, 3, false, out, err);
}

static weir_status run(const weir_args *args) {
  const weir_attention *p = args->state;
  job j = {p, args};
  int64_t heads = p->h.batch * p->h.q_heads;
  if (heads == 0 || p->h.queries == 0) return WEIR_OK;
  if (p->h.queries <= FEW)
    weir_parallel_for(args, heads * p->h.queries, few_block, &j);
  else
    weir_parallel_for(args, heads * p->query_blocks, block, &j);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_attention = {
    .op = "attention",
    .name = "cpu.attention",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .accepts = weir_attention_accepts,
    .prepare = prepare,
    .run = run};
