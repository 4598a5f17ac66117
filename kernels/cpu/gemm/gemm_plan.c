/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/gemm/gemm_plan.h"

#include <assert.h>
#include <string.h>

#include "kernels/cpu/caches.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/isa/choose.h"
#include "runtime/base/size.h"

/* Measured with AVX-512, 1 MiB of second cache and two cores; docs/decisions.md
 * has the measurements. */
enum {
  DEPTH = 512,             /* of a slice, at most */
  BLOCK_ROWS = 96,         /* at most, if b needs no packing: a stays cached */
  BLOCK_ROWS_LOCAL = 1024, /* else: packing pays by many rows */
  BLOCK_COLUMNS = 256,
  BLOCK_COLUMNS_LOCAL = 128,
  BLOCKS = 32,     /* wanted of a large product */
  BLOCKS_FAR = 16, /* the same, if b is large */
  FEW_BLOCKS = 4,  /* of a small one, at most */
  SPLITS = 16,     /* at most */
  MIDDLE_ROWS = 96,
  MANY_ROWS = 256,
  FAR_BYTES = 2 << 20, /* of a b worth packing by middling a's, or by rows */
  LIBRARY_AREA = 512 * 1024, /* outputs of a block of oneDNN's, at most */
  LIBRARY_BLOCKS = 4,        /* at least */
  LIBRARY_UNIT = 48,
  TURN_COLUMNS = 1024 /* at least, to transpose a for oneDNN */
};

/* With AVX2 and AVX-512; docs/decisions.md has the measurements. */
enum {
  PANEL_BYTES = 16 << 10,      /* of b, half of the first cache */
  PANEL_BYTES_WIDE = 32 << 10, /* the same with AVX-512 */
  NEAR_COLUMNS = 512, /* of a b that stays in a second cache, at most */
  NEAR_BYTES = 1 << 20,
  WHOLE_BYTES = 4 << 20, /* of a, at most, to be packed all at once */
  SHARED_COLUMNS = 256,  /* at least, for a to be packed */
  SHARED_ROWS = 48,
  SHARED_B_ROWS = 600,    /* from here on making panels of b once pays */
  LONG_ROW = 4096,        /* of a matrix from afar, in one piece */
  LONG_ROW_WIDE = 1536,   /* the same for few rows of a with AVX-512 */
  FAR_ROWS = 3 << 20,     /* bytes from which AVX-512 calls a matrix far */
  ROWS_SWEEP = 256 << 10, /* bytes from which AVX2 sweeps a matrix by rows */
  SWEEP_ROWS = 64,        /* rows that a part of a sum has at least */
  SWEEP_UNIT = 4,         /* rows that isa/gemm/vectors.h sweeps at once */
  FEW_ROWS = 16,          /* rows of a, at most, that read b once */
  FEW_DEPTH = 48,         /* depth of their slices */
  SHARED_PART = 2048 /* rows and columns whose panels stay in the last cache */
};
static const double kSharedFlops = 1.6e7;
static const double kSharedFlopsWide = 6.4e7; /* the same with AVX-512 */
static const double kBlockFlops = 2e6;        /* at least, to be handed over */
static const double kFewFlops = 2.6e5;        /* the same for FEW_BLOCKS */
static const double kLibraryFlops = 1.5e8; /* oneDNN is faster from here on */
static const double kOwnFlops = 5e8; /* with AVX-512 no longer from here on */
static const double kBatchFlops = 6.4e7; /* matrices of a batch are shared
                                            out in turn from here on */

static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

static bool bytes_of(int64_t a, int64_t b, int64_t size, size_t *out) {
  size_t bytes;
  return weir_size_mul((size_t)a, (size_t)b, &bytes) &&
         weir_size_mul(bytes, (size_t)size, &bytes) &&
         weir_size_align(bytes, 64, out);
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static double flops_of(const weir_gemm_shape *s) {
  return 2.0 * (double)s->m * (double)s->n * (double)s->k;
}

/* So many rows that panels of a large b pay, and so few that oneDNN's blocks do
 * not. */
static bool is_middling(const weir_gemm_shape *s) {
  return s->m >= MIDDLE_ROWS && s->m < MANY_ROWS;
}

/* oneDNN packs whole products well; own tiles are as fast with AVX2, and with
 * AVX-512 for few rows and very large products (docs/decisions.md). */
static bool suits_library(const weir_gemm_shape *s, int level) {
  double flops = flops_of(s);
  if (level == 2 || s->dtype != WEIR_F32 || flops < kLibraryFlops ||
      s->n < 64 || (double)s->m * (double)s->n < 65536)
    return false;
  if (level >= 3) return s->m >= MANY_ROWS && flops < kOwnFlops;
  return s->m >= 64 && !is_middling(s);
}

/* Vectors first: a tile of one row would waste all but one of its sums. */
static void choose_way(weir_gemm *g, int level, bool constant_b) {
  const weir_gemm_shape *s = &g->s;
  g->way = WEIR_GEMM_TILES;
  if (s->n == 1 && s->a_k == 1)
    g->way = WEIR_GEMM_DOTS_A;
  else if (s->n == 1)
    g->way = WEIR_GEMM_SWEEP_A;
  else if (s->m == 1 && s->b_column == 1)
    g->way = WEIR_GEMM_SWEEP_B;
  else if (s->m <= 4 && s->b_column != 1 && s->a_k == 1)
    g->way = WEIR_GEMM_DOTS_B;
  else if (!constant_b && suits_library(s, level))
    g->way = WEIR_GEMM_LIBRARY;
}

static bool packs(const weir_gemm *g) {
  return g->way == WEIR_GEMM_TILES;
}

/* Rows far apart are worth a copy once they are read often. */
static void choose_copy(weir_gemm *g, bool constant_b) {
  const weir_gemm_shape *s = &g->s;
  g->copy_b = WEIR_GEMM_DIRECT;
  if (!packs(g)) return;
  if (constant_b && (s->b_column != 1 || s->m >= 8))
    g->copy_b = WEIR_GEMM_GIVEN;
  else if (s->b_column != 1 ||
           (is_middling(s) && s->k * s->n * g->size > FAR_BYTES) ||
           (s->m >= 16 * g->isa->rows && s->k * s->b_k * g->size > 4 << 20))
    g->copy_b = WEIR_GEMM_LOCAL;
}

/* Rows of a share few sets of the first cache. */
static bool is_aliased(const weir_gemm *g) {
  return g->s.m > g->isa->rows && g->s.a_row * g->size % 4096 == 0;
}

/* Few columns of a b that stays in a second cache. */
static bool is_near(const weir_gemm *g) {
  const weir_gemm_shape *s = &g->s;
  return s->b_column == 1 && s->n <= NEAR_COLUMNS && !is_aliased(g) &&
         s->k * s->n * g->size <= NEAR_BYTES;
}

/* With AVX-512 tiles are done so soon that panels pay later: not for small
 * products, nor for a near b. */
static bool is_too_small(const weir_gemm *g, int level) {
  return level >= 3 && (flops_of(&g->s) < kSharedFlopsWide || is_near(g));
}

/* The first tile of a panel makes it while it computes. It pays from the second
 * tile on, and rows of b then need not share cache sets. */
static void choose_made_by_tile(weir_gemm *g, int level) {
  const weir_gemm_shape *s = &g->s;
  if (is_too_small(g, level)) return;
  if (g->way == WEIR_GEMM_TILES && g->copy_b == WEIR_GEMM_DIRECT &&
      s->m > g->isa->rows && s->n >= 2 * g->isa->columns && s->k >= 64)
    g->copy_b = WEIR_GEMM_LOCAL;
}

/* Whether a's panels are made for all blocks, and b's too: where a is large or
 * its rows share few cache sets, and b is not near. Packing an element of a
 * takes about as long as 30 columns' work on it, hence SHARED_COLUMNS. Where
 * b's panels are not made with a's, a small a is packed for the whole sum at
 * once: threads then wait for each other once, not in each slice. */
static void choose_shared(weir_gemm *g, int level) {
  const weir_gemm_shape *s = &g->s;
  if (g->way != WEIR_GEMM_TILES || g->batch_blocks || s->n < SHARED_COLUMNS ||
      (s->m < SHARED_ROWS && !is_aliased(g)) || flops_of(s) < kSharedFlops ||
      is_too_small(g, level) || is_near(g))
    return;
  if (g->copy_b != WEIR_GEMM_GIVEN &&
      (s->b_column != 1 || s->m >= SHARED_B_ROWS))
    g->copy_b = WEIR_GEMM_SHARED;
  g->copy_a = true;
  g->tall = SHARED_PART / g->isa->rows * g->isa->rows;
  g->wide = SHARED_PART / g->isa->columns * g->isa->columns;
  g->whole_a = g->copy_b != WEIR_GEMM_SHARED && s->m <= g->tall &&
               s->m * s->k * g->size <= WHOLE_BYTES;
  if (g->whole_a) g->wide = s->n;
}

/* Rows of b whose distance is a multiple of 4096 bytes share few sets of the
 * second cache: slices are half as deep then. With AVX2 a panel that is made in
 * the run takes half of a first cache of 32 KiB (the rule of BLIS: Low et al.,
 * ACM TOMS 43 (2016), article 12), which every processor with that set has: the
 * depth decides about rounding, so it must not follow the machine. With AVX-512
 * a panel is twice as wide and may fill 32 KiB: it comes from the second cache
 * as fast as it is needed, and c is touched half as often. */
static void choose_slices(weir_gemm *g, int level) {
  int64_t k = g->s.k, depth = DEPTH;
  bool made = g->copy_b == WEIR_GEMM_LOCAL || g->copy_b == WEIR_GEMM_SHARED;
  if (g->way == WEIR_GEMM_TILES && g->copy_b == WEIR_GEMM_DIRECT &&
      g->s.b_k * g->size % 4096 == 0)
    depth = DEPTH / 2;
  if (level >= 2 && made)
    depth = (level >= 3 ? PANEL_BYTES_WIDE : PANEL_BYTES) /
            (g->isa->columns * g->size);
  g->slices = ceil_div(k, depth);
  g->kc = g->slices > 0 ? ceil_div(k, g->slices) : 1;
  g->slices = ceil_div(k, g->kc);
  assert(g->kc > 0 && g->kc <= depth);
}

/* Blocks of equal size, at most |limit|, in units of |unit|. */
static int64_t even_block(int64_t size, int64_t limit, int64_t unit) {
  int64_t units = ceil_div(size, unit), most = limit / unit;
  if (most < 1) most = 1;
  if (units == 0) return unit;
  return ceil_div(units, ceil_div(units, most)) * unit;
}

static void cut(weir_gemm *g, int64_t rows, int64_t columns, int64_t row_unit,
                int64_t column_unit) {
  g->rows = even_block(g->s.m, rows, row_unit);
  g->columns = even_block(g->s.n, columns, column_unit);
  assert(g->rows > 0 && g->rows % row_unit == 0);
  assert(g->columns > 0 && g->columns % column_unit == 0);
  g->row_blocks = ceil_div(g->s.m, g->rows);
  g->column_blocks = ceil_div(g->s.n, g->columns);
}

/* Whether b overflows the second cache, so that each block reads it anew from
 * afar; blocks then want many rows. */
static bool b_is_far(const weir_gemm *g) {
  return g->copy_b != WEIR_GEMM_LOCAL && g->s.k * g->s.n * g->size > 1 << 20;
}

/* How many blocks one matrix should have. */
static int64_t wanted_blocks(const weir_gemm *g) {
  double flops = flops_of(&g->s), blocks, few;
  double most = b_is_far(g) ? BLOCKS_FAR : BLOCKS;
  if (g->batch_blocks) flops *= (double)g->s.batches;
  blocks = flops / kBlockFlops;
  few = flops / kFewFlops < FEW_BLOCKS ? flops / kFewFlops : FEW_BLOCKS;
  if (blocks < few) blocks = few;
  if (blocks > most) blocks = most;
  if (g->batch_blocks) blocks /= (double)g->s.batches;
  return blocks < 2 ? 1 : (int64_t)blocks;
}

/* Takes columns away first where packing or reading b costs most. */
static void choose_tile_blocks(weir_gemm *g) {
  int64_t a = g->isa->rows, b = g->isa->columns, wanted = wanted_blocks(g);
  bool local = g->copy_b == WEIR_GEMM_LOCAL, tall = local || b_is_far(g);
  int64_t few_columns = tall ? 2 * b : 4 * b;
  int64_t few_rows = tall ? 16 * a : 4 * a;
  cut(g,
      local  ? BLOCK_ROWS_LOCAL
      : tall ? 2 * BLOCK_ROWS
             : BLOCK_ROWS,
      wanted == 1 ? g->s.n + b
      : local     ? BLOCK_COLUMNS_LOCAL
                  : BLOCK_COLUMNS,
      a, b);
  while (wanted > 1 && g->row_blocks * g->column_blocks < wanted) {
    if (g->columns > few_columns || (g->rows <= few_rows && g->columns > b))
      cut(g, g->rows, g->columns - b, a, b);
    else if (g->rows > (local ? few_rows : a))
      cut(g, g->rows - a, g->columns, a, b);
    else
      return;
  }
}

/* a's part of a block takes three eighths of the second cache, beside b's panel
 * and c. Blocks are cut for the threads: rows first, as a panel of b is read
 * once per block, then columns. Where all of a is packed each block reads it
 * from afar: one block for each processor, if columns go even. Their size
 * changes no bits, so it may follow the machine; the panels' memory must not,
 * since plans are exchanged. */
static void choose_shared_blocks(weir_gemm *g) {
  int64_t a = g->isa->rows, b = g->isa->columns;
  int64_t most = weir_second_cache_bytes() / 8 * 3 / (g->kc * g->size);
  int64_t wanted = g->s.m < SHARED_B_ROWS ? BLOCKS / 2 : BLOCKS;
  size_t a_bytes = 0, b_bytes = 0;
  double worth = flops_of(&g->s) / kBlockFlops;
  if (worth < (double)wanted) wanted = (int64_t)worth;
  int64_t each = ceil_div(g->s.n, b) / weir_processors();
  bool wide =
      g->whole_a && each >= 4 && ceil_div(g->s.n, b) % weir_processors() == 0;
  if (wide) wanted = weir_processors();
  cut(g, most < 16 * a ? 16 * a : most, wide ? each * b : g->wide, a, b);
  while (g->row_blocks * g->column_blocks < wanted) {
    if (g->rows > 16 * a)
      cut(g, g->rows - a, g->columns, a, b);
    else if (g->columns > 4 * b)
      cut(g, g->rows, g->columns - b, a, b);
    else
      break;
  }
  g->tall = least(g->tall, ceil_div(g->s.m, a) * a);
  g->wide = least(g->wide, ceil_div(g->s.n, b) * b);
  (void)bytes_of(g->tall, g->whole_a ? g->slices * g->kc : g->kc, g->size,
                 &a_bytes);
  if (g->copy_b == WEIR_GEMM_SHARED)
    (void)bytes_of(g->wide, g->kc, g->size, &b_bytes);
  g->panels_at = a_bytes;
  g->scratch_bytes = a_bytes + b_bytes;
}

static void choose_library_blocks(weir_gemm *g) {
  int64_t rows = g->s.m + LIBRARY_UNIT, columns = g->s.n + LIBRARY_UNIT;
  cut(g, rows, columns, LIBRARY_UNIT, LIBRARY_UNIT);
  while (g->row_blocks * g->column_blocks < LIBRARY_BLOCKS ||
         (double)g->rows * (double)g->columns > LIBRARY_AREA) {
    if (g->rows >= g->columns)
      cut(g, g->rows / 2 + LIBRARY_UNIT - 1, g->columns, LIBRARY_UNIT,
          LIBRARY_UNIT);
    else
      cut(g, g->rows, g->columns / 2 + LIBRARY_UNIT - 1, LIBRARY_UNIT,
          LIBRARY_UNIT);
  }
}

/* oneDNN reads a transposed a a sixth slower than it need be; transposing it
 * costs little where each element is used often. Rows whose distance is a
 * multiple of 4096 bytes share few cache sets. */
static void choose_turn(weir_gemm *g) {
  const weir_gemm_shape *s = &g->s;
  size_t bytes;
  if (s->a_k == 1 || s->batches != 1 || s->n < TURN_COLUMNS) return;
  int64_t row = s->k % 1024 == 0 ? s->k + 16 : s->k;
  if (!bytes_of(s->m, row, g->size, &bytes)) return;
  g->turned_row = row;
  g->scratch_bytes = bytes;
}

/* The length of an output vector, or of a row of b. */
static int64_t row_length(const weir_gemm *g) {
  return g->s.n == 1 ? g->s.m : g->s.n;
}

/* Vectors are limited by memory: blocks of whole lines, as many as the work is
 * worth, at most 16. */
static void choose_vector_blocks(weir_gemm *g) {
  int64_t length = row_length(g);
  int64_t unit = 8 * g->isa->columns;
  double work = (double)length * (double)g->s.k * (double)g->s.m;
  int64_t blocks = work < 4e5 ? 1 : work > 4e6 ? 16 : (int64_t)(work / 2e5);
  g->rows = 1;
  g->row_blocks = 1;
  g->columns = even_block(length, ceil_div(length, blocks), unit);
  g->column_blocks = ceil_div(length, g->columns);
}

/* Long sums of few elements are cut along the sum: blocks of c alone would not
 * occupy the threads. The second quotient makes parts of equal length, so that
 * none is empty. */
static void choose_splits(weir_gemm *g) {
  int64_t blocks = g->row_blocks * g->column_blocks;
  double parts = 2 * flops_of(&g->s) / kBlockFlops;
  g->splits = 1;
  if (g->s.batches != 1 || blocks < 1 || blocks >= 8 || g->slices < 8 ||
      g->way == WEIR_GEMM_LIBRARY || g->tall > 0)
    return;
  if (parts > (double)(SPLITS / blocks)) parts = (double)(SPLITS / blocks);
  if (parts > (double)(g->slices / 4)) parts = (double)(g->slices / 4);
  if (parts >= 2)
    g->splits = ceil_div(g->slices, ceil_div(g->slices, (int64_t)parts));
  assert(g->splits >= 1 && g->splits <= SPLITS);
}

/* Bytes of the matrix that a vector, or a few rows of a, read once. */
static double matrix_bytes(const weir_gemm *g) {
  return (double)row_length(g) * (double)g->s.k * (double)g->size;
}

/* Such a matrix from afar arrives fastest in the order in which it lies: blocks
 * are rows of their whole length, and the sum is cut. */
static bool is_far(const weir_gemm *g, int level) {
  return matrix_bytes(g) > (level < 3 ? FAR_BYTES : FAR_ROWS) &&
         g->s.batches == 1;
}

static void choose_sweep(weir_gemm *g, int level) {
  int64_t length = row_length(g), blocks = 1, parts;
  bool far = is_far(g, level);
  if (g->way != WEIR_GEMM_SWEEP_A && g->way != WEIR_GEMM_SWEEP_B) return;
  g->by_rows = far || (level < 3 && matrix_bytes(g) > ROWS_SWEEP);
  if (!far) return;
  while (blocks < SPLITS && blocks * LONG_ROW < length) blocks *= 2;
  parts = least(SPLITS / blocks, ceil_div(g->s.k, SWEEP_ROWS));
  g->columns =
      even_block(length, ceil_div(length, blocks), 2 * g->isa->columns);
  g->column_blocks = ceil_div(length, g->columns);
  g->kc = ceil_div(ceil_div(g->s.k, parts), SWEEP_UNIT) * SWEEP_UNIT;
  g->slices = g->splits = ceil_div(g->s.k, g->kc);
}

static bool has_few_rows(const weir_gemm *g, int level) {
  return level >= 2 && g->way == WEIR_GEMM_TILES &&
         g->copy_b == WEIR_GEMM_DIRECT && g->s.m <= FEW_ROWS &&
         g->s.n >= g->s.m && g->s.n <= (level < 3 ? LONG_ROW : LONG_ROW_WIDE) &&
         is_far(g, level);
}

static void choose_few_rows(weir_gemm *g) {
  int64_t a = g->isa->rows, b = g->isa->columns;
  cut(g, g->s.m + a, g->s.n + b, a, b);
  g->kc = FEW_DEPTH;
  g->slices = ceil_div(g->s.k, g->kc);
  g->splits = ceil_div(g->slices, ceil_div(g->slices, SPLITS / 2));
  assert(g->row_blocks == 1 && g->column_blocks == 1);
}

static const char *text_of(const weir_gemm *g) {
  if (g->splits > 1) return "sum in parts, added in order";
  switch (g->way) {
    case WEIR_GEMM_TILES:
      if (g->tall > 0 && g->copy_b == WEIR_GEMM_GIVEN)
        return g->whole_a ? "tiles, a packed, b once"
                          : "tiles, a packed by slice, b once";
      if (g->tall > 0)
        return g->copy_b == WEIR_GEMM_SHARED ? "tiles, a and b packed by slice"
               : g->whole_a                  ? "tiles, a packed, b by block"
                            : "tiles, a packed by slice, b by block";
      return g->copy_b == WEIR_GEMM_GIVEN   ? "tiles, b packed once"
             : g->copy_b == WEIR_GEMM_LOCAL ? "tiles, b packed by block"
                                            : "tiles";
    case WEIR_GEMM_LIBRARY:
      return g->turned_row > 0 ? "a transposed, blocks by oneDNN"
                               : "blocks by oneDNN";
    case WEIR_GEMM_DOTS_A:
    case WEIR_GEMM_DOTS_B:
      return "dot products";
    default:
      return "rows times numbers";
  }
}

void weir_gemm_plan(const weir_gemm_shape *shape, const weir_isa *isa,
                    bool constant_b, weir_gemm *out) {
  int level = weir_isa_level(isa);
  memset(out, 0, sizeof *out);
  out->s = *shape;
  out->isa = shape->dtype == WEIR_F64 ? isa->gemm_f64 : isa->gemm_f32;
  out->row_table = isa->rows;
  out->size = shape->dtype == WEIR_F64 ? 8 : 4;
  out->batch_blocks = shape->batches > 1 && flops_of(shape) < kBatchFlops;
  constant_b = constant_b && shape->batch_rank == 0;
  choose_way(out, level, constant_b);
  choose_copy(out, constant_b);
  bool few = has_few_rows(out, level);
  if (level >= 2 && !few) choose_made_by_tile(out, level);
  if (level >= 2 && !few) choose_shared(out, level);
  choose_slices(out, level);
  if (few)
    choose_few_rows(out);
  else if (out->tall > 0)
    choose_shared_blocks(out);
  else if (out->way == WEIR_GEMM_TILES)
    choose_tile_blocks(out);
  else if (out->way == WEIR_GEMM_LIBRARY)
    choose_library_blocks(out);
  else
    choose_vector_blocks(out);
  if (!few) choose_splits(out);
  choose_sweep(out, level);
  if (out->way == WEIR_GEMM_LIBRARY) choose_turn(out);
  if (out->splits > 1)
    (void)bytes_of(out->s.m * out->s.n, out->splits, out->size,
                   &out->scratch_bytes);
  if (out->copy_b == WEIR_GEMM_LOCAL) /* tiles make one panel at a time */
    (void)bytes_of(out->s.b_column == 1 ? out->isa->columns : out->columns,
                   out->kc, out->size, &out->worker_bytes);
  out->text = text_of(out);
}

size_t weir_gemm_packed_bytes(const weir_gemm *gemm) {
  int64_t columns = gemm->isa->columns;
  size_t bytes;
  columns *= ceil_div(gemm->s.n, columns);
  return bytes_of(columns, gemm->s.k, gemm->size, &bytes) ? bytes : SIZE_MAX;
}
