/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/matmul.h"

enum {
  PIECE_MN = 512 * 1024,    /* outputs of a piece, at most */
  PIECES = 4,               /* at least, while pieces are worth it */
  PIECE_FLOPS = 400 * 1000, /* a piece is worth handing over from here on */
  SLICE_K = 4096,
  SLICE_MN = 64 * 64, /* outputs up to this size are cut along the sum */
  PACK_MIN = 64 * 64
};

/* Operand strides over the output's batch dims, 0 where repeated. */
static void batch_strides(const weir_operand *x, int32_t rank,
                          int64_t *strides) {
  int32_t lead = x->rank > 2 ? x->rank - 2 : 0;
  int64_t stride = 1;
  for (int32_t d = lead; d < x->rank; d++) stride *= x->dims[d];
  for (int32_t d = 0; d < rank; d++) strides[d] = 0;
  for (int32_t d = lead - 1; d >= 0; d--) {
    if (x->dims[d] != 1) strides[d + rank - lead] = stride;
    stride *= x->dims[d];
  }
}

static void geometry(const weir_call *call, weir_matmul *mm) {
  const weir_operand *a = &call->in[0], *b = &call->in[1], *y = &call->out[0];
  weir_gemm *g = &mm->gemm;
  const int64_t *ad = a->dims + a->rank - 2, *bd = b->dims + b->rank - 2;
  g->a_t = a->rank > 1 && weir_call_attr(call, "transpose_a")->b;
  g->b_t = b->rank > 1 && weir_call_attr(call, "transpose_b")->b;
  g->m = a->rank == 1 ? 1 : g->a_t ? ad[1] : ad[0];
  g->k = a->rank == 1 ? a->dims[0] : g->a_t ? ad[0] : ad[1];
  g->n = b->rank == 1 ? 1 : g->b_t ? bd[0] : bd[1];
  g->lda = a->rank == 1 ? g->k : ad[1];
  g->ldb = b->rank == 1 ? 1 : bd[1];
  g->ldc = g->n;
  mm->batch_rank = y->rank - (a->rank > 1) - (b->rank > 1);
  mm->batch = 1;
  for (int32_t d = 0; d < mm->batch_rank; d++) {
    mm->batch_dims[d] = y->dims[d];
    mm->batch *= y->dims[d];
  }
  batch_strides(a, mm->batch_rank, mm->a_strides);
  batch_strides(b, mm->batch_rank, mm->b_strides);
}

/* One b for all: the batch's matrices are rows of one long product. */
static void fold_batch(weir_matmul *mm, const weir_call *call) {
  if (mm->batch == 1 || mm->gemm.a_t || call->in[0].rank < 2) return;
  for (int32_t d = 0; d < mm->batch_rank; d++)
    if (mm->b_strides[d] != 0) return;
  if (call->in[0].elements != mm->batch * mm->gemm.m * mm->gemm.k) return;
  mm->gemm.m *= mm->batch;
  mm->batch = 1;
  mm->batch_rank = 0;
}

static int64_t parts(int64_t n, int64_t size) {
  return n <= size ? 1 : (n + size - 1) / size;
}

/* The largest of equal pieces of |n| that are at most |size|, in steps of 16.
 */
static int64_t even(int64_t n, int64_t size) {
  int64_t count = parts(n, size), piece = (n + count - 1) / count;
  piece = (piece + 15) / 16 * 16;
  return piece < n ? piece : n;
}

/* Halves the longer side until there are enough pieces and none is too large
 * for the caches; measured on two cores, oneDNN likes large pieces. */
static void cut_pieces(weir_matmul *mm) {
  const weir_gemm *g = &mm->gemm;
  for (;;) {
    double area = (double)mm->piece_m * (double)mm->piece_n;
    int64_t count =
        parts(g->m, mm->piece_m) * parts(g->n, mm->piece_n) * mm->batch;
    if (area <= PIECE_MN && count >= PIECES) return;
    if (2 * area * (double)g->k < PIECE_FLOPS) return;
    if (mm->piece_m >= mm->piece_n && mm->piece_m >= 32)
      mm->piece_m = even(g->m, (mm->piece_m + 1) / 2);
    else if (mm->piece_n >= 64)
      mm->piece_n = even(g->n, (mm->piece_n + 1) / 2);
    else
      return;
  }
}

static void cut(weir_matmul *mm) {
  const weir_gemm *g = &mm->gemm;
  double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k;
  mm->piece_m = g->m;
  mm->piece_n = g->n;
  mm->slices = 1;
  mm->slice_k = g->k;
  mm->group = 1;
  if (g->m * g->n <= SLICE_MN && g->k >= 2 * SLICE_K && mm->batch == 1) {
    mm->slices = parts(g->k, SLICE_K);
    mm->slice_k = SLICE_K;
  } else if (flops >= PIECE_FLOPS) {
    cut_pieces(mm);
  } else if (flops > 0) {
    mm->group = (int64_t)(PIECE_FLOPS / flops);
    if (mm->group < 1) mm->group = 1;
  }
  mm->pieces_m = parts(g->m, mm->piece_m);
  mm->pieces_n = parts(g->n, mm->piece_n);
}

void weir_matmul_plan(const weir_call *call, weir_matmul *mm) {
  *mm = (weir_matmul){.b_io = 1, .out_io = (int32_t)call->in_count};
  geometry(call, mm);
  fold_batch(mm, call);
  cut(mm);
}

/* A column of pieces has one packed b, with a second plan for the last rows if
 * they are fewer. */
static weir_status pack_column(weir_matmul *mm, const float *b, int64_t column,
                               weir_error *err) {
  weir_gemm g = mm->gemm;
  int64_t n0 = column * mm->piece_n;
  weir_onednn_packed **pair = mm->packed + 2 * column;
  b += g.b_t ? n0 * g.ldb : n0;
  g.m = mm->piece_m;
  g.n = g.n - n0 < mm->piece_n ? g.n - n0 : mm->piece_n;
  WEIR_TRY(weir_onednn_packed_create(mm->alloc, &g, b, &pair[0], err));
  g.m = mm->gemm.m % mm->piece_m;
  if (g.m != 0)
    WEIR_TRY(weir_onednn_packed_share(mm->alloc, &g, pair[0], &pair[1], err));
  return WEIR_OK;
}

weir_status weir_matmul_pack(weir_matmul *mm, const weir_call *call,
                             weir_prepared *out, weir_error *err) {
  const weir_gemm *g = &mm->gemm;
  const float *b = call->in[1].value;
  mm->alloc = out->alloc;
  if (!b || mm->batch != 1 || mm->slices != 1 || g->m < 16 ||
      g->k * g->n < PACK_MIN || g->a_t)
    return WEIR_OK;
  mm->packed = weir_alloc_array(out->alloc, 2 * (size_t)mm->pieces_n,
                                sizeof *mm->packed);
  if (!mm->packed) return weir_fail_memory(err, 2 * sizeof *mm->packed);
  for (int64_t c = 0; c < mm->pieces_n; c++)
    WEIR_TRY(pack_column(mm, b, c, err));
  for (int64_t c = 0; c < 2 * mm->pieces_n; c++) {
    if (!mm->packed[c]) continue;
    size_t bytes = weir_onednn_packed_scratch_bytes(mm->packed[c]);
    if (bytes > mm->packed_scratch) mm->packed_scratch = bytes;
  }
  return WEIR_OK;
}

void weir_matmul_release(void *state) {
  weir_matmul *mm = state;
  if (!mm || !mm->packed) return;
  for (int64_t c = 2 * mm->pieces_n - 1; c >= 0; c--)
    weir_onednn_packed_release(mm->packed[c]);
  weir_free(mm->alloc, mm->packed);
  mm->packed = NULL;
}
