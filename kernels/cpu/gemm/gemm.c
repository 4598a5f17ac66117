/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/gemm/gemm.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/gemm/gemm_job.h"
#include "kernels/cpu/gemm/gemm_shared.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/onednn/onednn.h"

/* The loops around a tile, from the outside: batches, blocks of c (shared out
 * to threads), slices of k, panels of b, rows of a. A slice is so deep that a
 * panel of b (columns * kc) stays in the first cache while all rows of the
 * block pass by it, and a block so tall that its part of a stays in the second:
 * the layers of Goto's product. Each element of c is one sum in the order of k,
 * by slices; a plan fixes slices and splits, so threads change nothing in it.
 *
 * Cost: 2 m n k flops; each panel is packed once per block, or once in all
 * where b is constant. */

typedef weir_gemm_job job;
typedef weir_gemm_block block;

static bool is_vector(const weir_gemm *g) {
  return g->way >= WEIR_GEMM_SWEEP_B;
}

void weir_gemm_pack(const weir_gemm *gemm, const void *b, void *packed) {
  for (int64_t s = 0; s < gemm->slices; s++)
    weir_gemm_panels(gemm, b, (char *)packed + weir_gemm_slice_at(gemm, s), 0,
                     gemm->s.n, s);
}

/* ---- Blocks */

/* [j0, j1) of the output vector, or of |m| of them. */
static void run_vector(const job *j, const block *k) {
  const weir_gemm *g = j->g;
  const weir_gemm_shape *s = &g->s;
  const weir_gemm_table *isa = g->isa;
  int64_t size = g->size, k0 = k->s0 * g->kc, n = k->j1 - k->j0;
  int64_t depth = weir_gemm_least(k->s1 * g->kc, s->k) - k0;
  const char *a = k->a + k0 * s->a_k * size, *b = k->b + k0 * s->b_k * size;
  char *c = k->c + k->j0 * size;
  void (*sweep)(void *y, const void *x, const void *matrix, int64_t row,
                int64_t rows, int64_t columns) =
      g->by_rows ? isa->sweep_rows : isa->sweep;
  if (g->way == WEIR_GEMM_SWEEP_B) {
    sweep(c, a, b + k->j0 * size, s->b_k, depth, n);
  } else if (g->way == WEIR_GEMM_SWEEP_A) {
    sweep(c, b, a + k->j0 * size, s->a_k, depth, n);
  } else if (g->way == WEIR_GEMM_DOTS_A) {
    isa->dots(c, b, a + k->j0 * s->a_row * size, s->a_row, depth, n);
  } else {
    const int64_t step = 4; /* columns of b that stay in the first cache */
    b += k->j0 * s->b_column * size;
    for (int64_t at = 0; at < n; at += step)
      for (int64_t i = 0; i < s->m; i++)
        isa->dots(c + (i * s->n + at) * size, a + i * s->a_row * size,
                  b + at * s->b_column * size, s->b_column, depth,
                  weir_gemm_least(step, n - at));
  }
}

static void run_library(job *j, const block *k) {
  const weir_gemm *g = j->g;
  const weir_gemm_shape *s = &g->s;
  bool a_t = s->a_k != 1 && g->turned_row == 0;
  int64_t a_row = g->turned_row > 0 ? g->turned_row : s->a_row;
  weir_sgemm product = {.a_t = a_t,
                        .b_t = s->b_column != 1,
                        .m = k->i1 - k->i0,
                        .n = k->j1 - k->j0,
                        .k = s->k,
                        .lda = a_t ? s->a_k : a_row,
                        .ldb = s->b_column != 1 ? s->b_column : s->b_k,
                        .ldc = s->n};
  weir_status status =
      weir_onednn_sgemm(&product, (const float *)k->a + k->i0 * a_row,
                        (const float *)k->b + k->j0 * s->b_column,
                        (float *)k->c + k->i0 * s->n + k->j0, NULL);
  int none = WEIR_OK;
  if (status != WEIR_OK)
    atomic_compare_exchange_strong(&j->status, &none, (int)status);
}

void weir_gemm_batch(const weir_gemm_shape *shape, int64_t index, int64_t *a_at,
                     int64_t *b_at) {
  *a_at = *b_at = 0;
  for (int32_t d = shape->batch_rank - 1; d >= 0; d--) {
    int64_t at = index % shape->batch_dims[d];
    index /= shape->batch_dims[d];
    *a_at += at * shape->a_batch[d];
    *b_at += at * shape->b_batch[d];
  }
}

static void go_to_batch(const weir_gemm *g, int64_t index, const char **a,
                        const char **b) {
  int64_t a_at, b_at;
  weir_gemm_batch(&g->s, index, &a_at, &b_at);
  *a += a_at * g->size;
  *b += b_at * g->size;
}

/* Rows and columns of block (i, j). Vectors have all rows. */
static void bounds(const weir_gemm *g, int64_t i, int64_t j, block *out) {
  out->i0 = is_vector(g) ? 0 : i * g->rows;
  out->i1 = is_vector(g) ? g->s.m : weir_gemm_least(out->i0 + g->rows, g->s.m);
  out->j0 = j * g->columns;
  out->j1 = weir_gemm_least(out->j0 + g->columns,
                            weir_gemm_is_column(g) ? g->s.m : g->s.n);
}

static void run_block(void *arg, int64_t index, int worker) {
  job *j = arg;
  const weir_gemm *g = j->g;
  int64_t per = (g->slices + g->splits - 1) / g->splits;
  int64_t split = index % g->splits, row = j->first_row;
  int64_t at = index / g->splits, matrix = g->s.m * g->s.n;
  block k = {.a = j->a, .b = j->b, .c = j->c};
  bounds(g, at / g->column_blocks % g->row_blocks, at % g->column_blocks, &k);
  at /= g->row_blocks * g->column_blocks;
  if (at > 0) {
    go_to_batch(g, at, &k.a, &k.b);
    k.c += at * matrix * g->size;
    row += at * g->s.m;
  }
  k.s0 = split * per;
  k.s1 = weir_gemm_least(k.s0 + per, g->slices);
  /* An empty split would leave its part of the sums unwritten. */
  assert(k.s0 < k.s1 && k.i0 < k.i1 && k.j0 < k.j1);
  k.local = j->workers + (size_t)worker * j->worker_step;
  if (g->splits > 1) k.c = j->partial + split * matrix * g->size;
  if (is_vector(g))
    run_vector(j, &k);
  else if (g->way == WEIR_GEMM_LIBRARY)
    run_library(j, &k);
  else
    for (int64_t s = k.s0; s < k.s1; s++)
      weir_gemm_tiles(g, &k, s, weir_gemm_plain_a(j, &k, s),
                      weir_gemm_plain_b(j, &k, s));
  if (g->splits == 1) weir_gemm_finish(j, row, &k, k.local);
}

/* ---- The whole */

static void add_to(weir_dtype dtype, char *c, const char *part, int64_t n) {
  if (dtype == WEIR_F64) {
    double *y = (double *)c;
    const double *x = (const double *)part;
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
  } else {
    float *y = (float *)c;
    const float *x = (const float *)part;
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
  }
}

/* All of c, for |done|. */
static block whole(const weir_gemm *g, int64_t rows) {
  block all = {.i1 = rows, .j1 = weir_gemm_is_column(g) ? rows : g->s.n};
  return all;
}

enum { JOINED = 4096 }; /* elements of c that a thread adds up at a time */

static int64_t join_columns(const weir_gemm *g) {
  int64_t columns = JOINED / (weir_gemm_is_column(g) ? 1 : g->s.m);
  return columns < 64 ? 64 : columns / 64 * 64;
}

/* Adds the splits' parts in their order: a result must not depend on which
 * thread is first, nor on how many there are. */
static void join_block(void *arg, int64_t index, int worker) {
  const job *j = arg;
  const weir_gemm *g = j->g;
  block k = whole(g, g->s.m);
  int64_t length = k.j1, rows = g->s.m * g->s.n / length;
  k.j0 = index * join_columns(g);
  k.j1 = weir_gemm_least(k.j0 + join_columns(g), length);
  for (int64_t i = 0; i < rows; i++) {
    int64_t at = (i * length + k.j0) * g->size, n = k.j1 - k.j0;
    memcpy(j->c + at, j->partial + at, (size_t)(n * g->size));
    for (int64_t p = 1; p < g->splits; p++)
      add_to(g->s.dtype, j->c + at,
             j->partial + p * rows * length * g->size + at, n);
  }
  weir_gemm_finish(j, j->first_row, &k,
                   j->workers + (size_t)worker * j->worker_step);
}

static void join(job *j, const weir_args *args) {
  const weir_gemm *g = j->g;
  int64_t columns = join_columns(g);
  assert(g->s.batches == 1 && g->splits > 1);
  weir_parallel_for(args, (whole(g, g->s.m).j1 + columns - 1) / columns,
                    join_block, j);
}

static void run_blocks(job *j, int64_t batches, const weir_args *args) {
  const weir_gemm *g = j->g;
  if (g->tall > 0) {
    weir_gemm_run_shared(j, args);
    return;
  }
  int64_t blocks = batches * g->row_blocks * g->column_blocks * g->splits;
  weir_parallel_for(args, blocks, run_block, j);
  if (g->splits > 1) join(j, args);
}

enum { TURN_ROWS = 48 }; /* of a block of a's transposition */

static void turn_block(void *arg, int64_t index, int worker) {
  const job *j = arg;
  const weir_gemm *g = j->g;
  int64_t row = index * TURN_ROWS;
  (void)worker;
  g->row_table->transpose((float *)j->partial + row * g->turned_row,
                          g->turned_row, (const float *)j->io->a + row,
                          g->s.a_k, g->s.k,
                          weir_gemm_least(TURN_ROWS, g->s.m - row));
}

static void turn_a(job *j, const weir_args *args) {
  weir_parallel_for(args, (j->g->s.m + TURN_ROWS - 1) / TURN_ROWS, turn_block,
                    j);
  j->a = j->partial;
}

static void run_empty_sum(job *j) {
  block all = whole(j->g, j->g->s.m * j->g->s.batches);
  memset(j->c, 0, (size_t)(all.i1 * j->g->s.n * j->g->size));
  weir_gemm_finish(j, 0, &all, j->workers);
}

static weir_status result(const job *j, weir_error *err) {
  weir_status s = (weir_status)atomic_load(&j->status);
  if (s == WEIR_OK) return s;
  return weir_fail(
      err, s == WEIR_RESOURCE_EXHAUSTED ? WEIR_W6001 : WEIR_W5001, NULL,
      "oneDNN: a product of %" PRId64 "x%" PRId64 "x%" PRId64 " failed",
      j->g->s.m, j->g->s.k, j->g->s.n);
}

weir_status weir_gemm_run(const weir_gemm *gemm, const weir_gemm_io *io,
                          const weir_args *args) {
  const weir_gemm_shape *s = &gemm->s;
  job j = {.g = gemm, .io = io, .a = io->a, .b = io->b, .c = io->c};
  atomic_init(&j.status, WEIR_OK);
  j.partial = args->scratch;
  j.workers = j.partial + weir_scratch_align(gemm->scratch_bytes);
  j.worker_step = weir_scratch_align(gemm->worker_bytes) +
                  weir_scratch_align(io->done_bytes);
  if (s->m == 0 || s->n == 0 || s->batches == 0) return WEIR_OK;
  if (s->k == 0) {
    run_empty_sum(&j);
  } else if (s->batches == 1 || gemm->batch_blocks) {
    if (gemm->turned_row > 0) turn_a(&j, args);
    run_blocks(&j, s->batches, args);
  } else {
    for (int64_t b = 0; b < s->batches; b++) {
      j.a = io->a;
      j.b = io->b;
      go_to_batch(gemm, b, &j.a, &j.b);
      j.c = (char *)io->c + b * s->m * s->n * gemm->size;
      j.first_row = b * s->m;
      run_blocks(&j, 1, args);
    }
  }
  return result(&j, args->err);
}
