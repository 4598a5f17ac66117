/* SPDX-License-Identifier: Apache-2.0 */
/* Products whose panels are made once for all blocks.
 *
 * Idea: the whole of Goto's product (Goto and van de Geijn, ACM TOMS 34 (2008),
 * article 12) with threads inside its loops: columns that fit in the third
 * cache, slices of k, rows; for each of these first all threads make panels of
 * a and b, then all share the blocks out. A panel is made once, however many
 * blocks read it, and tiles read nothing but panels, in the order in which they
 * lie. Where only a has such panels and is small, those of all slices are made
 * first, and a block is done for the whole sum.
 * Invariant: as in gemm.c, an element is one sum in the order of k, by slices;
 * the size of the parts, rows and columns changes nothing in it.
 * Cost: 2 m n k flops; for each part 2 |slices| loops over threads, or 2. */
#include "kernels/cpu/gemm/gemm_shared.h"

#include <assert.h>

/* Of one block of packing: a's tiles of rows, b's tiles of columns, and the
 * steps of k after which it goes on to the next tile of b: neighbours in a row
 * of b are read together. */
enum { PACK_ROWS = 8, PACK_COLUMNS = 8, PACK_DEPTH = 16 };

/* Slices [s0, s1) of rows [i0, i1), columns [j0, j1). b has panels of its own
 * only where that is one slice. */
typedef struct part {
  weir_gemm_job *j;
  int64_t s0, s1, i0, i1, j0, j1;
  int64_t a_units, b_units; /* blocks of packing; a's of one slice */
  int64_t column_blocks;
  char *a, *b; /* panels */
} part;

static int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/* ---- Panels */

static char *panels_a(const part *p, int64_t slice) {
  const weir_gemm *g = p->j->g;
  int64_t tiles = ceil_div(p->i1 - p->i0, g->isa->rows);
  return p->a + (slice - p->s0) * g->kc * tiles * g->isa->rows * g->size;
}

static void pack_a(const part *p, int64_t slice, int64_t unit) {
  const weir_gemm *g = p->j->g;
  const weir_gemm_shape *s = &g->s;
  int64_t rows = g->isa->rows, depth = weir_gemm_depth(g, slice);
  int64_t r = p->i0 + unit * PACK_ROWS * rows;
  int64_t end = weir_gemm_least(r + PACK_ROWS * rows, p->i1);
  const char *a = p->j->a + slice * g->kc * s->a_k * g->size;
  char *panels = panels_a(p, slice);
  for (; r < end; r += rows)
    g->isa->pack_a(panels + (r - p->i0) * depth * g->size,
                   a + r * s->a_row * g->size, s->a_row, s->a_k, depth,
                   weir_gemm_least(rows, end - r));
}

/* Rows of b lie far apart: a few rows of several tiles at a time read whole
 * lines and few pages. Where b is stored along k each tile is read in whole. */
static void pack_b(const part *p, int64_t unit) {
  const weir_gemm *g = p->j->g;
  const weir_gemm_shape *s = &g->s;
  int64_t columns = g->isa->columns, depth = weir_gemm_depth(g, p->s0);
  int64_t step = s->b_column == 1 ? PACK_DEPTH : depth;
  int64_t first = p->j0 + unit * PACK_COLUMNS * columns;
  int64_t end = weir_gemm_least(first + PACK_COLUMNS * columns, p->j1);
  const char *b = p->j->b + p->s0 * g->kc * s->b_k * g->size;
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
  if (index < p->b_units) {
    pack_b(p, index);
    return;
  }
  index -= p->b_units;
  pack_a(p, p->s0 + index / p->a_units, index % p->a_units);
}

/* ---- Blocks */

static weir_gemm_source source_a(const part *p, const weir_gemm_block *k,
                                 int64_t slice) {
  const weir_gemm *g = p->j->g;
  int64_t rows = g->isa->rows, depth = weir_gemm_depth(g, slice);
  if (!g->copy_a) return weir_gemm_plain_a(p->j, k, slice);
  return (weir_gemm_source){
      .at = panels_a(p, slice) + (k->i0 - p->i0) * depth * g->size,
      .k = rows,
      .tile = rows * depth,
      .row = 1};
}

static weir_gemm_source source_b(const part *p, const weir_gemm_block *k,
                                 int64_t slice) {
  const weir_gemm *g = p->j->g;
  int64_t columns = g->isa->columns, depth = weir_gemm_depth(g, slice);
  if (g->copy_b != WEIR_GEMM_SHARED) return weir_gemm_plain_b(p->j, k, slice);
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
  for (int64_t s = p->s0; s < p->s1; s++) {
    weir_gemm_source b = source_b(p, &k, s);
    if (s + 1 < p->s1) b.next = source_b(p, &k, s + 1).at;
    weir_gemm_tiles(g, &k, s, source_a(p, &k, s), b);
  }
  if (p->s1 == g->slices) weir_gemm_finish(j, j->first_row, &k, k.local);
}

/* Rows [i0, i0 + tall) of some slices of a column part; b's panels are made
 * with the first of them. */
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
  int64_t units = p->b_units + p->a_units * (p->s1 - p->s0);
  if (units > 0) weir_parallel_for(args, units, pack_unit, p);
  p->column_blocks = ceil_div(p->j1 - p->j0, g->columns);
  weir_parallel_for(args, ceil_div(p->i1 - i0, g->rows) * p->column_blocks,
                    run_block, p);
}

void weir_gemm_run_shared(weir_gemm_job *j, const weir_args *args) {
  const weir_gemm *g = j->g;
  part p = {.j = j, .a = j->partial, .b = j->partial + g->panels_at};
  int64_t slices = g->whole_a ? g->slices : 1;
  assert(g->splits == 1 && g->tall > 0 && g->wide > 0);
  assert(!g->whole_a || (g->copy_b != WEIR_GEMM_SHARED && g->tall >= g->s.m));
  for (p.j0 = 0; p.j0 < g->s.n; p.j0 += g->wide) {
    p.j1 = weir_gemm_least(p.j0 + g->wide, g->s.n);
    for (p.s0 = 0; p.s0 < g->slices; p.s0 += slices) {
      p.s1 = p.s0 + slices;
      for (int64_t i = 0; i < g->s.m; i += g->tall) run_rows(&p, i, args);
    }
  }
}
