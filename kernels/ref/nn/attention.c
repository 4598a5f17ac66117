/* SPDX-License-Identifier: Apache-2.0 */
/* attention and its gradient, row by row.
 *
 * A score is computed again wherever it is needed, so nothing is stored: once
 * for the largest of a row, once for each kChunk columns of the output. In the
 * gradient p = exp(score - lse) and ds = p (dy v^T - sum(dy y)). A hidden key
 * has p = 0 and is not read. Source: Vaswani et al., arXiv 1706.03762. */
#include <math.h>

#include "kernels/ref/ref.h"
#include "ops/nn/heads.h"

enum { kChunk = 64 };

typedef struct job {
  const weir_args *args;
  const weir_call *call;
  weir_heads h;
  weir_dtype t;
  const void *q, *k, *v, *mask, *dy, *y, *lse;
  weir_mask_strides at; /* of the mask */
  weir_dtype mask_type;
  const int64_t *lengths;
  int64_t length_count;
} job;

/* One row of scores. */
typedef struct row {
  int64_t b, head, kv, i; /* batch, head of q, head of k and v, query */
  int64_t begin, end;     /* keys that may be seen */
} row;

static void job_of(const weir_args *args, uint32_t mask, job *out) {
  const weir_call *call = args->state;
  *out = (job){.args = args, .call = call, .t = call->in[0].dtype};
  weir_heads_of(call, &out->h);
  out->q = args->io[0];
  out->k = args->io[1];
  out->v = args->io[2];
  if (mask < call->in_count && call->in[mask].dtype != WEIR_DTYPE_NONE) {
    out->mask = args->io[mask];
    out->mask_type = call->in[mask].dtype;
    out->at = weir_mask_strides_of(&call->in[mask]);
  }
  if (mask + 1 < call->in_count &&
      call->in[mask + 1].dtype != WEIR_DTYPE_NONE) {
    out->lengths = args->io[mask + 1];
    out->length_count = call->in[mask + 1].elements;
  }
}

static row row_of(const job *j, int64_t b, int64_t head, int64_t i) {
  row r = {.b = b, .head = head, .kv = head / j->h.group, .i = i};
  int64_t keys = weir_heads_keys(&j->h, j->lengths, j->length_count, b);
  weir_heads_seen(&j->h, i, keys, &r.begin, &r.end);
  return r;
}

static int64_t token(const weir_head_strides *s, int64_t b, int64_t head,
                     int64_t i) {
  return b * s->batch + head * s->head + i * s->row;
}

static double dot(const job *j, const void *a, int64_t a_at, const void *b,
                  int64_t b_at, int64_t n) {
  double sum = 0;
  for (int64_t c = 0; c < n; c++)
    sum += weir_get_f64(j->t, a, a_at + c) * weir_get_f64(j->t, b, b_at + c);
  return sum;
}

/* The score of key |key|, minus infinity where the mask hides it. */
static double score(const job *j, const row *r, int64_t key) {
  const weir_heads *h = &j->h;
  double added = 0;
  if (j->mask != NULL) {
    int64_t at = r->b * j->at.batch + r->head * j->at.head +
                 r->i * j->at.query + key * j->at.key;
    if (j->mask_type != WEIR_BOOL)
      added = weir_get_f64(j->t, j->mask, at);
    else if (weir_get_i64(WEIR_BOOL, j->mask, at) == 0)
      return -INFINITY;
  }
  return h->scale * dot(j, j->q, token(&h->q, r->b, r->head, r->i), j->k,
                        token(&h->k, r->b, r->kv, key), h->width) +
         added;
}

static double largest(const job *j, const row *r) {
  double most = -INFINITY;
  for (int64_t key = r->begin; key < r->end && !weir_run_over(j->args); key++) {
    double s = score(j, r, key);
    most = isnan(s) || s > most ? s : most;
  }
  return most;
}

/* Columns [from, from + n) of a row of y, not yet divided by the sum of the
 * weights, which is returned. */
static double mix(const job *j, const row *r, double most, int64_t from,
                  int64_t n, double *out) {
  double sum = 0;
  for (int64_t c = 0; c < n; c++) out[c] = 0;
  for (int64_t key = r->begin; key < r->end && !weir_run_over(j->args); key++) {
    double p = exp(score(j, r, key) - most);
    int64_t v = token(&j->h.v, r->b, r->kv, key) + from;
    if (p == 0) continue;
    sum += p;
    for (int64_t c = 0; c < n; c++)
      out[c] += p * weir_get_f64(j->t, j->v, v + c);
  }
  return sum;
}

static void attend(const job *j, const row *r, void *y, void *lse) {
  const weir_heads *h = &j->h;
  double most = largest(j, r), out[kChunk], sum = 0;
  bool hidden = most == -INFINITY;
  int64_t at = token(&h->y, r->b, r->head, r->i);
  for (int64_t from = 0; from < h->depth || from == 0; from += kChunk) {
    int64_t n = h->depth - from < kChunk ? h->depth - from : kChunk;
    sum = hidden ? 1 : mix(j, r, most, from, n, out);
    for (int64_t c = 0; c < n; c++)
      weir_put_f64(j->t, y, at + from + c, hidden ? 0 : out[c] / sum);
  }
  if (lse != NULL)
    weir_put_f64(j->t, lse, (r->b * h->q_heads + r->head) * h->queries + r->i,
                 most + log(sum));
}

static weir_status run(const weir_args *args) {
  job j;
  job_of(args, 3, &j);
  uint32_t n = j.call->in_count;
  void *lse = j.call->out_count > 1 ? args->io[n + 1] : NULL;
  for (int64_t b = 0; b < j.h.batch; b++)
    for (int64_t head = 0; head < j.h.q_heads; head++)
      for (int64_t i = 0; i < j.h.queries && !weir_run_over(args); i++) {
        row r = row_of(&j, b, head, i);
        attend(&j, &r, args->io[n], lse);
      }
  return WEIR_OK;
}

WEIR_REF_KERNEL(attention, WEIR_FLOATS, run);

/* ---- The gradient */

/* The weight of |key| and the gradient of its score, without the scale. */
static double weight(const job *j, const row *r, int64_t key, double *ds) {
  const weir_heads *h = &j->h;
  int64_t y = token(&h->y, r->b, r->head, r->i);
  double lse = weir_get_f64(j->t, j->lse,
                            (r->b * h->q_heads + r->head) * h->queries + r->i);
  double p = lse == -INFINITY ? 0 : exp(score(j, r, key) - lse);
  *ds = p == 0 ? 0
               : p * (dot(j, j->dy, y, j->v, token(&h->v, r->b, r->kv, key),
                          h->depth) -
                      dot(j, j->dy, y, j->y, y, h->depth));
  return p;
}

/* acc[c] += factor * x[at + c] */
static void add(const job *j, double *acc, double factor, const void *x,
                int64_t at, int64_t n) {
  if (factor == 0) return;
  for (int64_t c = 0; c < n; c++)
    acc[c] += factor * weir_get_f64(j->t, x, at + c);
}

static void put(const job *j, void *x, int64_t at, const double *acc,
                int64_t n) {
  for (int64_t c = 0; c < n; c++) weir_put_f64(j->t, x, at + c, acc[c]);
}

static int64_t chunk(int64_t n, int64_t from) {
  return n - from < kChunk ? n - from : kChunk;
}

static void grad_query(const job *j, const row *r, void *dq, void *dmask) {
  const weir_heads *h = &j->h;
  double ds;
  int64_t at = (r->b * h->q_heads + r->head) * h->queries + r->i;
  for (int64_t from = 0; from < h->width; from += kChunk) {
    double acc[kChunk] = {0};
    int64_t n = chunk(h->width, from);
    for (int64_t key = r->begin; key < r->end; key++) {
      weight(j, r, key, &ds);
      add(j, acc, h->scale * ds, j->k, token(&h->k, r->b, r->kv, key) + from,
          n);
    }
    put(j, dq, token(&h->q, r->b, r->head, r->i) + from, acc, n);
  }
  for (int64_t key = 0; dmask != NULL && key < h->keys; key++) {
    ds = 0;
    if (key >= r->begin && key < r->end) weight(j, r, key, &ds);
    weir_put_f64(j->t, dmask, at * h->keys + key, ds);
  }
}

/* Columns from |from| on of dk (|of_v| false) or dv of one key: sums over the
 * heads and queries that it serves. */
static void grad_key(const job *j, int64_t b, int64_t kv, int64_t key,
                     int64_t from, bool of_v, void *out) {
  const weir_heads *h = &j->h;
  const weir_head_strides *s = of_v ? &h->v : &h->k;
  double acc[kChunk] = {0};
  int64_t n = chunk(of_v ? h->depth : h->width, from);
  for (int64_t head = kv * h->group; head < (kv + 1) * h->group; head++)
    for (int64_t i = 0; i < h->queries && !weir_run_over(j->args); i++) {
      row r = row_of(j, b, head, i);
      if (key < r.begin || key >= r.end) continue;
      double ds, p = weight(j, &r, key, &ds);
      if (of_v)
        add(j, acc, p, j->dy, token(&h->y, b, head, i) + from, n);
      else
        add(j, acc, h->scale * ds, j->q, token(&h->q, b, head, i) + from, n);
    }
  put(j, out, token(s, b, kv, key) + from, acc, n);
}

static weir_status run_grad(const weir_args *args) {
  job j;
  job_of(args, 6, &j);
  uint32_t n = j.call->in_count;
  void *dmask = j.call->out_count > 3 ? args->io[n + 3] : NULL;
  j.dy = args->io[3];
  j.y = args->io[4];
  j.lse = args->io[5];
  for (int64_t b = 0; b < j.h.batch; b++)
    for (int64_t head = 0; head < j.h.q_heads; head++)
      for (int64_t i = 0; i < j.h.queries && !weir_run_over(args); i++) {
        row r = row_of(&j, b, head, i);
        grad_query(&j, &r, args->io[n], dmask);
      }
  for (int64_t b = 0; b < j.h.batch; b++)
    for (int64_t kv = 0; kv < j.h.kv_heads; kv++)
      for (int64_t key = 0; key < j.h.keys && !weir_run_over(args); key++) {
        for (int64_t c = 0; c < j.h.width; c += kChunk)
          grad_key(&j, b, kv, key, c, false, args->io[n + 1]);
        for (int64_t c = 0; c < j.h.depth; c += kChunk)
          grad_key(&j, b, kv, key, c, true, args->io[n + 2]);
      }
  return WEIR_OK;
}

WEIR_REF_KERNEL(attention_grad, WEIR_FLOATS, run_grad);
