/* SPDX-License-Identifier: Apache-2.0 */
/* Runs element-wise programs: a region of the space, tile by tile, each tile
 * through all steps.
 *
 * A tile is either several whole short rows or a piece of one long row. An
 * input that lies in step with the tile is read in place; one element serves a
 * whole tile as it is; anything else (a row repeated, a column) is spread into
 * a buffer first, so tile functions know only those two kinds of operands.
 * Invariant: a tile has at most WEIR_EW_TILE elements, the size of a buffer,
 * and never crosses the last dim but one, along which inputs change their
 * strides. Cost: one pass over each input and output; steps cost first-cache
 * traffic. */
#include "kernels/cpu/ew/ew_run.h"

#include <assert.h>
#include <string.h>

#include "kernels/apply.h"
#include "kernels/cpu/ew/ew.h"

/* Where a value lies for the tile at hand. */
typedef struct place {
  char *at;
  bool one; /* one element for the whole tile */
} place;

typedef struct walk {
  const weir_ew *ew;
  void *const *io;
  char *scratch;
  /* The source of each spread buffer, so that a repeated row is spread once. */
  const char *held[WEIR_EW_INPUTS];
  int64_t held_n[WEIR_EW_INPUTS];
} walk;

static char *buffer_at(const walk *w, int32_t buffer) {
  return w->scratch + (size_t)buffer * WEIR_EW_TILE * 8;
}

/* Clears the empty lanes of channels among elements [at, at + n) of |y|. A tile
 * begins and ends anywhere. */
static void clear_lanes(const weir_ew *ew, float *y, int64_t at, int64_t n) {
  int64_t lanes = ew->lanes, end = at + n;
  for (int64_t image = at / ew->image; image * ew->image < end; image++) {
    int64_t from = image * ew->image + ew->tail, to = (image + 1) * ew->image;
    if (from < at) from = at / lanes * lanes;
    if (to > end) to = end;
    for (int64_t pixel = from; pixel < to; pixel += lanes) {
      int64_t first = pixel + ew->there, last = pixel + lanes;
      if (first < at) first = at;
      if (last > to) last = to;
      for (int64_t i = first; i < last; i++) y[i] = 0;
    }
  }
}

/* Runs all steps on |n| elements, the first being element |at| of the space. */
static void run_steps(const walk *w, const place *in, int64_t at, int64_t n) {
  const weir_ew *ew = w->ew;
  char *value[WEIR_EW_STEPS];
  assert(n > 0);
  for (int32_t s = 0; s < ew->step_count; s++) {
    const weir_ew_step *step = &ew->steps[s];
    const void *from[3] = {NULL, NULL, NULL};
    bool one[3] = {false, false, false};
    for (int16_t i = 0; i < step->count; i++) {
      int16_t f = step->from[i];
      from[i] = f < WEIR_EW_INPUTS ? in[f].at : value[f - WEIR_EW_INPUTS];
      one[i] = f < WEIR_EW_INPUTS && in[f].one;
    }
    value[s] = step->io >= 0 ? (char *)w->io[step->io] + at * step->bytes
                             : buffer_at(w, step->buffer);
    weir_tile t = {value[s], from[0], from[1],
                   from[2],  n,       one[0],
                   one[1],   one[2],  {step->p[0], step->p[1]}};
    step->fn(&t);
    if (ew->image > 0 && step->io >= 0) {
      assert(step->bytes == sizeof(float));
      clear_lanes(ew, w->io[step->io], at, n);
    }
  }
}

/* Writes |n| copies of the |bytes| at |src|. */
static void fill(char *dst, const char *src, int64_t n, uint32_t bytes) {
  if (bytes == 4) {
    uint32_t v, *d = (uint32_t *)(void *)dst;
    memcpy(&v, src, 4);
    for (int64_t i = 0; i < n; i++) d[i] = v;
  } else if (bytes == 1) {
    memset(dst, *(const uint8_t *)src, (size_t)n);
  } else {
    uint64_t v, *d = (uint64_t *)(void *)dst;
    memcpy(&v, src, 8);
    for (int64_t i = 0; i < n; i++) d[i] = v;
  }
}

/* Spreads |rows| rows of an input, from |src| on, into its buffer. */
static char *spread(walk *w, int32_t i, const char *src, int64_t rows) {
  const weir_ew *ew = w->ew;
  const weir_ew_input *in = &ew->in[i];
  const int64_t *s = in->strides + ew->rank - 2;
  char *dst = buffer_at(w, in->buffer);
  if (s[0] == 0 && w->held[i] == src && w->held_n[i] >= rows) return dst;
  size_t row_bytes = (size_t)ew->row * in->bytes;
  assert(in->buffer >= 0 && rows * ew->row <= WEIR_EW_TILE);
  for (int64_t r = 0; r < rows; r++) {
    const char *from = src + r * s[0] * in->bytes;
    char *to = dst + (size_t)r * row_bytes;
    if (s[1] == 1)
      memcpy(to, from, row_bytes);
    else
      fill(to, from, ew->row, in->bytes);
  }
  w->held[i] = src;
  w->held_n[i] = rows;
  return dst;
}

/* The element of input |i| where row |r| of the space starts. */
static const char *row_start(const walk *w, int32_t i, int64_t r) {
  const weir_ew *ew = w->ew;
  const weir_ew_input *in = &ew->in[i];
  int64_t at = 0;
  for (int32_t d = ew->rank - 2; d > 0; d--) {
    at += r % ew->dims[d] * in->strides[d];
    r /= ew->dims[d];
  }
  at += r * in->strides[0];
  return (const char *)w->io[in->io] + at * in->bytes;
}

/* Several whole rows in a tile; they do not cross the last but one dim, so each
 * input has one stride from row to row. */
static void run_rows(walk *w, int64_t r, int64_t rows) {
  const weir_ew *ew = w->ew;
  place in[WEIR_EW_INPUTS];
  for (int32_t i = 0; i < ew->in_count; i++) {
    const int64_t *s = ew->in[i].strides + ew->rank - 2;
    const char *src = row_start(w, i, r);
    bool whole = s[1] == 1 && (s[0] == ew->row || rows == 1);
    in[i].one = s[1] == 0 && (s[0] == 0 || rows == 1);
    in[i].at =
        whole || in[i].one ? (char *)(uintptr_t)src : spread(w, i, src, rows);
  }
  run_steps(w, in, r * ew->row, rows * ew->row);
}

/* Part of one row, tile after tile: every input is in step or one element. */
static void run_cols(walk *w, int64_t r, int64_t c0, int64_t c1) {
  const weir_ew *ew = w->ew;
  place in[WEIR_EW_INPUTS];
  for (int32_t i = 0; i < ew->in_count; i++) {
    int64_t s = ew->in[i].strides[ew->rank - 1];
    in[i].one = s == 0;
    in[i].at = (char *)(uintptr_t)row_start(w, i, r) + c0 * s * ew->in[i].bytes;
  }
  for (int64_t c = c0; c < c1; c += WEIR_EW_TILE) {
    int64_t n = c1 - c < WEIR_EW_TILE ? c1 - c : WEIR_EW_TILE;
    run_steps(w, in, r * ew->row + c, n);
    for (int32_t i = 0; i < ew->in_count; i++)
      if (!in[i].one) in[i].at += n * ew->in[i].bytes;
  }
}

void weir_ew_region(const weir_ew *ew, void *const *io, int64_t r0, int64_t r1,
                    int64_t c0, int64_t c1, char *scratch) {
  walk w;
  w.ew = ew;
  w.io = io;
  w.scratch = scratch;
  for (int32_t i = 0; i < ew->in_count; i++) w.held[i] = NULL;
  bool many = c0 == 0 && c1 == ew->row && ew->row <= WEIR_EW_TILE / 2;
  int64_t fit = many ? WEIR_EW_TILE / ew->row : 1;
  int64_t group = ew->dims[ew->rank - 2];
  for (int64_t r = r0; r < r1;) {
    int64_t rows = 1;
    if (many) {
      rows = group - r % group;
      if (rows > fit) rows = fit;
      if (rows > r1 - r) rows = r1 - r;
      run_rows(&w, r, rows);
    } else {
      run_cols(&w, r, c0, c1);
    }
    r += rows;
  }
}

/* Cut into a partial row, whole rows and a partial row. */
void weir_ew_range(const weir_ew *ew, void *const *io, int64_t at, int64_t end,
                   char *scratch) {
  while (at < end) {
    int64_t row = at / ew->row, column = at % ew->row;
    int64_t whole = (end - at) / ew->row, length = ew->row - column;
    if (column == 0 && whole > 0) {
      weir_ew_region(ew, io, row, row + whole, 0, ew->row, scratch);
      at += whole * ew->row;
      continue;
    }
    if (length > end - at) length = end - at;
    weir_ew_region(ew, io, row, row + 1, column, column + length, scratch);
    at += length;
  }
}

weir_status weir_ew_check(const weir_ew *ew, const weir_args *args) {
  for (int32_t i = 0; i < ew->rate_count; i++) {
    weir_apply_numbers numbers;
    void *io[4] = {NULL, NULL, args->io[ew->rates[i].io], NULL};
    weir_args own = *args;
    own.io = io;
    WEIR_TRY(weir_apply_read(ew->rates[i].call, &own, 0, false, &numbers));
  }
  return WEIR_OK;
}

typedef struct job {
  const weir_ew *ew;
  const weir_args *args;
} job;

static void run_block(void *arg, int64_t block, int worker) {
  const job *j = arg;
  const weir_ew *ew = j->ew;
  int64_t r0 = block / ew->col_blocks * ew->block_rows;
  int64_t c0 = block % ew->col_blocks * ew->block_cols;
  int64_t r1 = r0 + ew->block_rows, c1 = c0 + ew->block_cols;
  size_t step = weir_scratch_align(ew->scratch_bytes);
  weir_ew_region(ew, j->args->io, r0, r1 < ew->rows ? r1 : ew->rows, c0,
                 c1 < ew->row ? c1 : ew->row,
                 (char *)j->args->scratch + (size_t)worker * step);
}

void weir_ew_run(const weir_ew *ew, const weir_args *args) {
  if (ew->rows == 0 || ew->row == 0) return;
  job j = {ew, args};
  weir_parallel_for(args, ew->row_blocks * ew->col_blocks, run_block, &j);
}
