/* SPDX-License-Identifier: Apache-2.0 */
/* Products whose panels are made once for all blocks.
 *
 * Idea: the whole of Goto's product (Goto and van de Geijn, ACM TOMS 34 (2008),
 * article 12) with threads inside its loops: columns that fit in the third
 * cache, slices of k, rows; for each of these first all threads make panels of
 * a and b, then all share the blocks out. A panel is made once, however many
 * blocks read it, and tiles read nothing but panels, in the order in which they
 * lie.
 * Invariant: as in gemm.c, an element is one sum in the order of k, by slices;
 * the size of the parts, rows and columns changes nothing in it.
 * Cost: 2 m n k flops and 2 |slices| loops over threads for each part. */
#include "kernels/cpu/gemm/gemm_shared.h"

#include <assert.h>

/* Of one block of packing: a's tiles of rows, b's tiles of columns, and the
 * steps of k after which it goes on to the next tile of b: neighbours in a row
 * of b are read together. */
enum { PACK_ROWS = 8, PACK_COLUMNS = 8, PACK_DEPTH = 16 };

/* One slice of a part: rows [i0, i1), columns [j0, j1). */
typedef struct part {
  weir_gemm_job *j;
  int64_t slice, i0, i1, j0, j1;
  int64_t a_units, b_units; /* blocks of packing */
  int64_t column_blocks;
  char *a, *b; /* panels */
} part;

static int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/* ---- Panels */

static void pack_a(const part *p, int64_t unit) {
  const weir_gemm *g = p->j->g;
  const weir_gemm_shape *s = &g->s;
  int64_t rows = g->isa->rows, depth = weir_gemm_depth(g, p->slice);
  int64_t r = p->i0 + unit * PACK_ROWS * rows;
  int64_t end = weir_gemm_least(r + PACK_ROWS * rows, p->i1);
  const char *a = p->j->a + p->slice * g->kc * s->a_k * g->size;
  for (; r < end; r += rows)
    g->isa->pack_a(p->a + (r - p->i0) * depth * g->size,
                   a + r * s->a_row * g->size, s->a_row, s->a_k, depth,
                   weir_gemm_least(rows, end - r));
}

/* Rows of b lie far apart: a few rows of several tiles at a time read whole
 * lines and few pages. Where b is stored along k each tile is read in whole. */
static void pack_b(const part *p, int64_t unit) {
  const weir_gemm *g = p->j->g;
  const weir_gemm_shape *s = &g->s;
  int64_t columns = g->isa->columns, depth = weir_gemm_depth(g, p->slice);
  int64_t step = s->b_column == 1 ? PACK_DEPTH : depth;
  int64_t first = p->j0 + unit * PACK_COLUMNS * columns;
  int64_t end = weir_gemm_least(first + PACK_COLUMNS * columns, p->j1);
  const char *b = p->j->b + p->slice * g->kc * s->b_k * g->size;
  for (int64_t k = 0; k < depth; k += step)
    for (int64_t c = first; c < end; c += columns)
      g->isa->pack(p->b + ((c - p->j0) * depth + k * columns) * g->size,
                   b + (k * s->b_k + c * s->b_column) * g->size, s->b_k,
                   s->b_column, weir_gemm_least(step, depth - k),
                   weir_gemm_least(columns, end - c));
}

static void pack_unit(void *arg, int64_t index, int worker) {
  const part *p = arg;
  (void)worker;
  if (index < p->b_units)
    pack_b(p, index);
  else
    pack_a(p, index - p->b_units);
}

/* ---- Blocks */

static weir_gemm_source source_a(const part *p, const weir_gemm_block *k) {
  const weir_gemm *g = p->j->g;
  int64_t rows = g->isa->rows, depth = weir_gemm_depth(g, p->slice);
  if (!g->copy_a) return weir_gemm_plain_a(p->j, k, p->slice);
  return (weir_gemm_source){.at = p->a + (k->i0 - p->i0) * depth * g->size,
                            .k = rows,
                            .tile = rows * depth,
                            .row = 1};
}

static weir_gemm_source source_b(const part *p, const weir_gemm_block *k) {
  const weir_gemm *g = p->j->g;
  int64_t columns = g->isa->columns, depth = weir_gemm_depth(g, p->slice);
  if (g->copy_b != WEIR_GEMM_SHARED)
    return weir_gemm_plain_b(p->j, k, p->slice);
  return (weir_gemm_source){.at = p->b + (k->j0 - p->j0) * depth * g->size,
                            .k = columns,
                            .tile = columns * depth};
}

/* Blocks of the same rows come one after the other. */
static void run_block(void *arg, int64_t index, int worker) {
  const part *p = arg;
  const weir_gemm_job *j = p->j;
  const weir_gemm *g = j->g;
  weir_gemm_block k = {.a = j->a, .b = j->b, .c = j->c};
  k.local = j->workers + (size_t)worker * j->worker_step;
  k.i0 = p->i0 + index / p->column_blocks * g->rows;
  k.i1 = weir_gemm_least(k.i0 + g->rows, p->i1);
  k.j0 = p->j0 + index % p->column_blocks * g->columns;
  k.j1 = weir_gemm_least(k.j0 + g->columns, p->j1);
  assert(k.i0 < k.i1 && k.j0 < k.j1);
  weir_gemm_tiles(g, &k, p->slice, source_a(p, &k), source_b(p, &k));
  if (p->slice == g->slices - 1) weir_gemm_finish(j, j->first_row, &k, k.local);
}

/* Rows [i0, i0 + tall) of a slice of a column part; b's panels are made with
 * the first of them. */
static void run_rows(part *p, int64_t i0, const weir_args *args) {
  const weir_gemm *g = p->j->g;
  int64_t rows = PACK_ROWS * g->isa->rows;
  int64_t columns = PACK_COLUMNS * g->isa->columns;
  p->i0 = i0;
  p->i1 = weir_gemm_least(i0 + g->tall, g->s.m);
  p->a_units = g->copy_a ? ceil_div(p->i1 - i0, rows) : 0;
  p->b_units = i0 == 0 && g->copy_b == WEIR_GEMM_SHARED
                   ? ceil_div(p->j1 - p->j0, columns)
                   : 0;
  if (p->a_units + p->b_units > 0)
    weir_parallel_for(args, p->a_units + p->b_units, pack_unit, p);
  p->column_blocks = ceil_div(p->j1 - p->j0, g->columns);
  weir_parallel_for(args, ceil_div(p->i1 - i0, g->rows) * p->column_blocks,
                    run_block, p);
}

void weir_gemm_run_shared(weir_gemm_job *j, const weir_args *args) {
  const weir_gemm *g = j->g;
  part p = {.j = j, .a = j->partial, .b = j->partial + g->panels_at};
  assert(g->splits == 1 && g->tall > 0 && g->wide > 0);
  for (p.j0 = 0; p.j0 < g->s.n; p.j0 += g->wide) {
    p.j1 = weir_gemm_least(p.j0 + g->wide, g->s.n);
    for (p.slice = 0; p.slice < g->slices; p.slice++)
      for (int64_t i = 0; i < g->s.m; i += g->tall) run_rows(&p, i, args);
  }
}
