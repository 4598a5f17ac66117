/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/gemm/gemm_job.h"

#include <assert.h>

/* ---- Panels of b */

void weir_gemm_panels(const weir_gemm *g, const char *b, char *dst, int64_t j0,
                      int64_t j1, int64_t slice) {
  const weir_gemm_shape *s = &g->s;
  int64_t depth = weir_gemm_depth(g, slice), columns = g->isa->columns;
  assert(slice >= 0 && slice < g->slices);
  assert(j0 % columns == 0 && j0 <= j1 && j1 <= s->n);
  b += slice * g->kc * s->b_k * g->size;
  for (int64_t j = j0; j < j1; j += columns) {
    g->isa->pack(dst, b + j * s->b_column * g->size, s->b_k, s->b_column, depth,
                 weir_gemm_least(columns, s->n - j));
    dst += columns * depth * g->size;
  }
}

int64_t weir_gemm_slice_at(const weir_gemm *g, int64_t slice) {
  int64_t panels = (g->s.n + g->isa->columns - 1) / g->isa->columns;
  return slice * g->kc * panels * g->isa->columns * g->size;
}

static const char *given(const weir_gemm_job *j, int64_t slice, int64_t j0) {
  return (const char *)j->io->packed + weir_gemm_slice_at(j->g, slice) +
         j0 * weir_gemm_depth(j->g, slice) * j->g->size;
}

/* ---- Blocks */

weir_gemm_source weir_gemm_plain_a(const weir_gemm_job *j,
                                   const weir_gemm_block *k, int64_t slice) {
  const weir_gemm *g = j->g;
  const weir_gemm_shape *s = &g->s;
  return (weir_gemm_source){
      .at = k->a + (k->i0 * s->a_row + slice * g->kc * s->a_k) * g->size,
      .k = s->a_k,
      .tile = g->isa->rows * s->a_row,
      .row = s->a_row};
}

weir_gemm_source weir_gemm_plain_b(const weir_gemm_job *j,
                                   const weir_gemm_block *k, int64_t slice) {
  const weir_gemm *g = j->g;
  int64_t columns = g->isa->columns;
  weir_gemm_source out = {.k = columns,
                          .tile = columns * weir_gemm_depth(g, slice)};
  if (g->copy_b == WEIR_GEMM_LOCAL && g->s.b_column != 1) {
    weir_gemm_panels(g, k->b, k->local, k->j0, k->j1, slice);
    out.at = k->local;
  } else if (g->copy_b == WEIR_GEMM_GIVEN) {
    out.at = given(j, slice, k->j0);
  } else {
    out.at = k->b + (slice * g->kc * g->s.b_k + k->j0) * g->size;
    out.k = g->s.b_k;
    out.tile = columns;
    out.copy = g->copy_b == WEIR_GEMM_LOCAL ? k->local : NULL;
  }
  return out;
}

void weir_gemm_tiles(const weir_gemm *g, const weir_gemm_block *k,
                     int64_t slice, weir_gemm_source a, weir_gemm_source b) {
  const weir_gemm_table *isa = g->isa;
  weir_gemm_tile t = {.b = b.at,
                      .a_row = a.row,
                      .a_k = a.k,
                      .b_k = b.k,
                      .c_row = g->s.n,
                      .k = weir_gemm_depth(g, slice),
                      .add = slice > k->s0};
  for (int64_t c = k->j0; c < k->j1; c += isa->columns) {
    t.n = weir_gemm_least(isa->columns, k->j1 - c);
    t.a = a.at;
    t.b_k = b.k;
    t.copy = b.copy;
    const char *b_at = t.b;
    const char *next = (const char *)t.b + b.tile * g->size;
    if (b.next && c + isa->columns >= k->j1) next = b.next;
    int64_t fetched = 0;
    t.ahead_step = b.k * g->size;
    for (int64_t r = k->i0; r < k->i1; r += isa->rows) {
      t.m = weir_gemm_least(isa->rows, k->i1 - r);
      t.c = k->c + (r * g->s.n + c) * g->size;
      t.ahead = fetched < t.k ? next + fetched * t.ahead_step
                              : (const char *)t.a + a.tile * g->size;
      if (!t.copy) fetched += (t.k + WEIR_GEMM_AHEAD - 1) / WEIR_GEMM_AHEAD;
      isa->tile(&t);
      t.a = (const char *)t.a + a.tile * g->size;
      weir_gemm_tile_reuse(&t, isa->columns);
    }
    t.b = b_at + b.tile * g->size;
  }
}

void weir_gemm_finish(const weir_gemm_job *j, int64_t row,
                      const weir_gemm_block *k, char *local) {
  const weir_gemm *g = j->g;
  char *scratch = local + weir_scratch_align(g->worker_bytes);
  if (j->io->done == NULL) return;
  if (weir_gemm_is_column(g))
    j->io->done(j->io->arg, row + k->j0, row + k->j1, 0, 1, scratch);
  else
    j->io->done(j->io->arg, row + k->i0, row + k->i1, k->j0, k->j1, scratch);
}
