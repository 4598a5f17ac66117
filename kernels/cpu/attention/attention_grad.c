/* SPDX-License-Identifier: Apache-2.0 */
/* attention_grad: q, k, v, dy, y, lse, mask, lengths -> dq, dk, dv, dmask.
 *
 * For a block of queries and one of keys the scores s and dp = v dy^T are made
 * again, then p = exp(s - lse) and ds = p (dp - sum(dy y)), all of them key by
 * key with the queries side by side: dv += p dy, dk += ds q, dq += ds^T k need
 * no further turning. Two ways:
 * - heads: a task is a head of k and v with all queries that it serves. Five
 *   products for each pair of blocks.
 * - two passes, where heads are few: blocks of queries for dq, then blocks of
 *   keys for dk and dv. Seven products, but as many tasks as there are blocks.
 * Either way one task sums an element, in the order of the blocks.
 * Source: Dao, Fu, Ermon, Rudra and Re, FlashAttention, arXiv 2205.14135
 * (2022). Cost: 10 or 14 t s d flop a head; memory is linear in t, dmask aside.
 */
#include <math.h>
#include <string.h>

#include "kernels/cpu/attention/attention_plan.h"

enum { MANY = 8 }; /* heads of all batches, from which on each is a task */

typedef struct job {
  const weir_attention *p;
  const weir_args *args;
  bool of_queries, of_keys; /* which gradients this pass makes */
} job;

static float *out_of(const job *j, uint32_t i) {
  return j->args->io[j->p->in_count + i];
}

static const float *in_at(const job *j, uint32_t i, const weir_head_strides *s,
                          int64_t b, int64_t head, int64_t token) {
  return (const float *)j->args->io[i] +
         weir_attention_token(s, b, head, token);
}

static float *out_at(const job *j, uint32_t i, const weir_head_strides *s,
                     int64_t b, int64_t head, int64_t token) {
  return out_of(j, i) + weir_attention_token(s, b, head, token);
}

static float *part(const job *j, int worker, int which) {
  return weir_attention_part(j->p, j->args, worker, which);
}

static void clear(float *x, int64_t row, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows && width > 0; i++)
    memset(x + i * row, 0, (size_t)width * sizeof *x);
}

/* ---- A block of queries: all that its pairs with blocks of keys share */

/* lse and sum(dy y) of each query. One that saw no key gets infinity, which
 * makes its weights 0, and so do those that are not there. */
static void numbers(const job *j, const weir_attention_rows *r, int worker) {
  const weir_attention *p = j->p;
  const weir_head_strides *s = &p->h.y;
  float *lse = part(j, worker, WEIR_ATTENTION_ROW);
  float *delta = lse + p->query_block;
  const float *given = (const float *)j->args->io[5] +
                       (r->b * p->h.q_heads + r->head) * p->h.queries;
  for (int64_t i = 0; i < r->lanes; i++) {
    int64_t at = r->begin + i;
    delta[i] = 0;
    lse[i] = INFINITY;
    if (at >= r->end) continue;
    if (given[at] != -INFINITY) lse[i] = given[at];
    p->tiles->dots(delta + i, in_at(j, 3, s, r->b, r->head, at),
                   in_at(j, 4, s, r->b, r->head, at), 0, p->h.depth, 1);
  }
}

static void begin(const job *j, const weir_attention_rows *r, int worker) {
  const weir_attention *p = j->p;
  int64_t count = r->end - r->begin;
  const float *q = in_at(j, 0, &p->h.q, r->b, r->head, r->begin);
  const float *dy = in_at(j, 3, &p->h.y, r->b, r->head, r->begin);
  numbers(j, r, worker);
  weir_attention_turn(p, part(j, worker, WEIR_ATTENTION_Q), q, p->h.q.row,
                      count, p->h.width, (float)p->h.scale);
  weir_attention_turn(p, part(j, worker, WEIR_ATTENTION_DY), dy, p->h.y.row,
                      count, p->h.depth, 1);
  if (!j->of_keys) return;
  weir_attention_pack(p, part(j, worker, WEIR_ATTENTION_Q_PANELS), q,
                      p->h.q.row, count, p->h.width);
  weir_attention_pack(p, part(j, worker, WEIR_ATTENTION_DY_PANELS), dy,
                      p->h.y.row, count, p->h.depth);
}

/* ---- A pair of blocks */

/* dmask is ds, turned. */
static void store_mask(const job *j, const weir_attention_rows *r,
                       const weir_attention_block *block, const float *ds,
                       int64_t from) {
  const weir_heads *h = &j->p->h;
  float *to = out_of(j, 3);
  if (to == NULL || !j->of_queries) return;
  to += ((r->b * h->q_heads + r->head) * h->queries + r->begin) * h->keys;
  for (int64_t i = 0; i < r->end - r->begin; i++)
    for (int64_t k = 0; k < block->keys; k++)
      to[i * h->keys + from + k] = ds[k * block->row + i];
}

static void add_to_keys(const job *j, const weir_attention_rows *r, int worker,
                        const weir_attention_block *block, const float *ds,
                        int64_t from) {
  const weir_heads *h = &j->p->h;
  weir_attention_product product = {
      .a = block->s,
      .b = part(j, worker, WEIR_ATTENTION_DY_PANELS),
      .c = out_at(j, 2, &h->v, r->b, r->kv, from),
      .a_row = block->row,
      .a_k = 1,
      .c_row = h->v.row,
      .m = block->keys,
      .n = h->depth,
      .k = r->end - r->begin,
      .add = true};
  weir_attention_multiply(j->p, &product);
  product.a = ds;
  product.b = part(j, worker, WEIR_ATTENTION_Q_PANELS);
  product.c = out_at(j, 1, &h->k, r->b, r->kv, from);
  product.c_row = h->k.row;
  product.n = h->width;
  weir_attention_multiply(j->p, &product);
}

static void add_to_queries(const job *j, const weir_attention_rows *r,
                           int worker, const weir_attention_block *block,
                           const float *ds, int64_t from) {
  const weir_heads *h = &j->p->h;
  float *panels = part(j, worker, WEIR_ATTENTION_V);
  weir_attention_pack(j->p, panels, in_at(j, 1, &h->k, r->b, r->kv, from),
                      h->k.row, block->keys, h->width);
  weir_attention_product product = {
      .a = ds,
      .b = panels,
      .c = out_at(j, 0, &h->q, r->b, r->head, r->begin),
      .a_row = 1,
      .a_k = block->row,
      .c_row = h->q.row,
      .m = r->end - r->begin,
      .n = h->width,
      .k = block->keys,
      .add = true};
  weir_attention_multiply(j->p, &product);
}

/* Queries |r| and keys [from, to). */
static void pair(const job *j, const weir_attention_rows *r, int worker,
                 int64_t from, int64_t to) {
  const weir_attention *p = j->p;
  const float *lse = part(j, worker, WEIR_ATTENTION_ROW);
  float *ds = part(j, worker, WEIR_ATTENTION_DP);
  float scale = (float)p->h.scale;
  weir_attention_block block;
  weir_attention_scores(p, j->args, worker, r, from, to, &block);
  weir_attention_product product = {
      .a = in_at(j, 2, &p->h.v, r->b, r->kv, from),
      .b = part(j, worker, WEIR_ATTENTION_DY),
      .c = ds,
      .a_row = p->h.v.row,
      .a_k = 1,
      .c_row = block.row,
      .m = block.keys,
      .n = r->lanes,
      .k = p->h.depth};
  weir_attention_multiply(p, &product);
  p->isa->attention->back(&block, ds, lse, lse + p->query_block);
  store_mask(j, r, &block, ds, from);
  if (scale != 1.0f)
    p->isa->rows->affine(ds, ds, block.keys * block.row, 0, scale, 0);
  if (j->of_keys) add_to_keys(j, r, worker, &block, ds, from);
  if (j->of_queries) add_to_queries(j, r, worker, &block, ds, from);
}

/* A block of queries with the keys of [low, high) that they see. */
static void pairs(const job *j, const weir_attention_rows *r, int worker,
                  int64_t low, int64_t high) {
  int64_t from = r->key_begin > low ? r->key_begin : low;
  int64_t to = r->key_end < high ? r->key_end : high;
  if (from >= to) return;
  begin(j, r, worker);
  int64_t blocks = weir_attention_key_blocks(j->p, from, to);
  for (int64_t k = 0; k < blocks; k++) {
    int64_t first, last;
    weir_attention_key_range(j->p, from, to, k, &first, &last);
    if (first < last) pair(j, r, worker, first, last);
  }
}

/* ---- Tasks */

static void clear_queries(const job *j, const weir_attention_rows *r) {
  const weir_heads *h = &j->p->h;
  clear(out_at(j, 0, &h->q, r->b, r->head, r->begin), h->q.row,
        r->end - r->begin, h->width);
  if (out_of(j, 3) == NULL) return;
  int64_t row = (r->b * h->q_heads + r->head) * h->queries + r->begin;
  clear(out_of(j, 3) + row * h->keys, h->keys, r->end - r->begin, h->keys);
}

static void clear_keys(const job *j, int64_t b, int64_t kv, int64_t from,
                       int64_t to) {
  const weir_heads *h = &j->p->h;
  clear(out_at(j, 1, &h->k, b, kv, from), h->k.row, to - from, h->width);
  clear(out_at(j, 2, &h->v, b, kv, from), h->v.row, to - from, h->depth);
}

/* Keys [from, to) of a head of k and v, with all queries that it serves. */
static void serve(const job *j, int64_t b, int64_t kv, int worker, int64_t from,
                  int64_t to) {
  const weir_heads *h = &j->p->h;
  clear_keys(j, b, kv, from, to);
  for (int64_t head = kv * h->group; head < (kv + 1) * h->group; head++)
    for (int64_t i = 0; i < j->p->query_blocks && h->queries > 0; i++) {
      weir_attention_rows r;
      weir_attention_rows_of(j->p, j->args, b, head, i, &r);
      if (j->of_queries) clear_queries(j, &r);
      pairs(j, &r, worker, from, to);
    }
}

static void head_task(void *arg, int64_t task, int worker) {
  const job *j = arg;
  const weir_heads *h = &j->p->h;
  serve(j, task / h->kv_heads, task % h->kv_heads, worker, 0, h->keys);
}

static void query_task(void *arg, int64_t task, int worker) {
  const job *j = arg;
  const weir_attention *p = j->p;
  int64_t head = task / p->query_blocks;
  weir_attention_rows r;
  weir_attention_rows_of(p, j->args, head / p->h.q_heads, head % p->h.q_heads,
                         task % p->query_blocks, &r);
  clear_queries(j, &r);
  pairs(j, &r, worker, 0, p->h.keys);
}

static int64_t key_tasks(const weir_attention *p) {
  return (p->h.keys + p->key_block - 1) / p->key_block;
}

static void key_task(void *arg, int64_t task, int worker) {
  const job *j = arg;
  const weir_heads *h = &j->p->h;
  int64_t blocks = key_tasks(j->p), head = task / blocks;
  int64_t from = task % blocks * j->p->key_block, to = from + j->p->key_block;
  serve(j, head / h->kv_heads, head % h->kv_heads, worker, from,
        to < h->keys ? to : h->keys);
}

static weir_status run(const weir_args *args) {
  const weir_attention *p = args->state;
  int64_t heads = p->h.batch * p->h.kv_heads;
  job both = {p, args, true, true};
  job queries = {p, args, true, false}, keys = {p, args, false, true};
  if (heads == 0) return WEIR_OK;
  if (heads >= MANY) {
    weir_parallel_for(args, heads, head_task, &both);
    return WEIR_OK;
  }
  if (p->h.queries > 0)
    weir_parallel_for(args, heads * p->h.group * p->query_blocks, query_task,
                      &queries);
  if (p->h.keys > 0)
    weir_parallel_for(args, heads * key_tasks(p), key_task, &keys);
  return WEIR_OK;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_heads h;
  weir_heads_of(call, &h);
  out->algorithm = h.batch * h.kv_heads >= MANY ? "heads" : "two passes";
  return weir_attention_prepare(call, 6, true, out, err);
}

const weir_kernel_def weir_kernel_cpu_attention_grad = {
    .op = "attention_grad",
    .name = "cpu.attention_grad",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .accepts = weir_attention_accepts,
    .prepare = prepare,
    .run = run};
