/* SPDX-License-Identifier: Apache-2.0 */
/* matmul of f32, alone or with element-wise followers. */
#include "kernels/cpu/matmul.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

typedef struct job {
  const weir_matmul *mm;
  const weir_args *args;
  float *partial;       /* slices: [slice][m][n] */
  atomic_int status;    /* of the first failure */
  size_t worker_offset; /* of the workers' scratch */
  size_t worker_step;
} job;

static char *worker_scratch(const job *j, int worker) {
  return (char *)j->args->scratch + j->worker_offset +
         (size_t)worker * j->worker_step;
}

static void note(job *j, weir_status s) {
  int none = WEIR_OK;
  if (s != WEIR_OK) atomic_compare_exchange_strong(&j->status, &none, (int)s);
}

/* Element offset of matrix |i| of the batch. */
static int64_t matrix_at(const weir_matmul *mm, const int64_t *strides,
                         int64_t i) {
  int64_t at = 0;
  for (int32_t d = mm->batch_rank - 1; d >= 0; d--) {
    at += i % mm->batch_dims[d] * strides[d];
    i /= mm->batch_dims[d];
  }
  return at;
}

/* Columns and rows of one piece of matrix |i|, and its epilogue. */
static void piece(job *j, int64_t i, int64_t pm, int64_t pn, int worker) {
  const weir_matmul *mm = j->mm;
  weir_gemm g = mm->gemm;
  int64_t m0 = pm * mm->piece_m, n0 = pn * mm->piece_n, m = g.m, n = g.n;
  const float *a = (const float *)j->args->io[j->mm->a_io] +
                   matrix_at(mm, mm->a_strides, i) + (g.a_t ? m0 : m0 * g.lda);
  const float *b = (const float *)j->args->io[j->mm->b_io] +
                   matrix_at(mm, mm->b_strides, i) + (g.b_t ? n0 * g.ldb : n0);
  float *c = (float *)j->args->io[mm->out_io] + i * m * n + m0 * n + n0;
  g.m = m - m0 < mm->piece_m ? m - m0 : mm->piece_m;
  g.n = n - n0 < mm->piece_n ? n - n0 : mm->piece_n;
  char *scratch = worker_scratch(j, worker);
  if (mm->packed) {
    weir_onednn_packed *const *pair = mm->packed + 2 * pn;
    note(j,
         weir_onednn_packed_run(pair[g.m != mm->piece_m], a, c, scratch, NULL));
  } else {
    note(j, weir_onednn_sgemm(&g, a, b, c, NULL));
  }
  if (mm->epilogue)
    weir_ew_region(mm->epilogue, j->args->io, i * m + m0, i * m + m0 + g.m, n0,
                   n0 + g.n, scratch + weir_scratch_align(mm->packed_scratch));
}

static void run_block(void *arg, int64_t block, int worker) {
  job *j = arg;
  const weir_matmul *mm = j->mm;
  int64_t pieces = mm->pieces_m * mm->pieces_n;
  if (pieces == 1) {
    int64_t end = (block + 1) * mm->group;
    if (end > mm->batch) end = mm->batch;
    for (int64_t i = block * mm->group; i < end; i++) piece(j, i, 0, 0, worker);
    return;
  }
  int64_t at = block % pieces;
  piece(j, block / pieces, at % mm->pieces_m, at / mm->pieces_m, worker);
}

static void run_slice(void *arg, int64_t slice, int worker) {
  job *j = arg;
  weir_gemm g = j->mm->gemm;
  int64_t k0 = slice * j->mm->slice_k, k = g.k;
  const float *a =
      (const float *)j->args->io[j->mm->a_io] + (g.a_t ? k0 * g.lda : k0);
  const float *b =
      (const float *)j->args->io[j->mm->b_io] + (g.b_t ? k0 : k0 * g.ldb);
  (void)worker;
  g.k = k - k0 < j->mm->slice_k ? k - k0 : j->mm->slice_k;
  note(j, weir_onednn_sgemm(&g, a, b, j->partial + slice * g.m * g.n, NULL));
}

/* Adds the slices in order. */
static void join_slices(job *j) {
  const weir_matmul *mm = j->mm;
  int64_t n = mm->gemm.m * mm->gemm.n;
  float *y = j->args->io[mm->out_io];
  memcpy(y, j->partial, (size_t)n * sizeof(float));
  for (int64_t s = 1; s < mm->slices; s++)
    for (int64_t i = 0; i < n; i++) y[i] += j->partial[s * n + i];
  if (mm->epilogue)
    weir_ew_region(
        mm->epilogue, j->args->io, 0, mm->gemm.m, 0, mm->gemm.n,
        worker_scratch(j, 0) + weir_scratch_align(mm->packed_scratch));
}

static size_t partial_bytes(const weir_matmul *mm) {
  if (mm->slices == 1) return 0;
  return (size_t)(mm->slices * mm->gemm.m * mm->gemm.n) * sizeof(float);
}

/* A sum of nothing. */
static void run_empty(job *j) {
  const weir_matmul *mm = j->mm;
  int64_t rows = mm->batch * mm->gemm.m;
  size_t bytes = (size_t)(rows * mm->gemm.n) * sizeof(float);
  memset(j->args->io[mm->out_io], 0, bytes);
  if (mm->epilogue)
    weir_ew_region(mm->epilogue, j->args->io, 0, rows, 0, mm->gemm.n,
                   worker_scratch(j, 0));
}

weir_status weir_matmul_run(const weir_args *args) {
  const weir_matmul *mm = args->state;
  job j = {.mm = mm, .args = args, .partial = args->scratch};
  atomic_init(&j.status, WEIR_OK);
  j.worker_offset = weir_scratch_align(partial_bytes(mm));
  j.worker_step =
      weir_scratch_align(weir_scratch_align(mm->packed_scratch) +
                         (mm->epilogue ? mm->epilogue->scratch_bytes : 0));
  if (mm->batch * mm->gemm.m * mm->gemm.n == 0) return WEIR_OK;
  if (mm->gemm.k == 0) {
    run_empty(&j);
  } else if (mm->slices > 1) {
    weir_parallel_for(args, mm->slices, run_slice, &j);
    join_slices(&j);
  } else {
    int64_t pieces = mm->pieces_m * mm->pieces_n;
    int64_t blocks = pieces == 1 ? (mm->batch + mm->group - 1) / mm->group
                                 : mm->batch * pieces;
    weir_parallel_for(args, blocks, run_block, &j);
  }
  weir_status s = (weir_status)atomic_load(&j.status);
  if (s == WEIR_OK) return s;
  return weir_fail(
      args->err, s == WEIR_RESOURCE_EXHAUSTED ? WEIR_W6001 : WEIR_W5001, NULL,
      "oneDNN: a product of %" PRId64 "x%" PRId64 "x%" PRId64 " failed",
      mm->gemm.m, mm->gemm.k, mm->gemm.n);
}

/* |io|: operands of the run for a, b and the product. */
static weir_status prepare_common(const weir_call *call, const weir_ew *ew,
                                  const int32_t io[3], weir_prepared *out,
                                  weir_error *err) {
  weir_matmul *mm = weir_arena_alloc(out->arena, sizeof *mm);
  if (!mm) return weir_fail_memory(err, sizeof *mm);
  weir_matmul_plan(call, mm);
  mm->epilogue = ew;
  mm->a_io = io[0];
  mm->b_io = io[1];
  mm->out_io = io[2];
  weir_status s = weir_matmul_pack(mm, call, out, err);
  if (s != WEIR_OK) {
    weir_matmul_release(mm);
    return s;
  }
  out->state = mm;
  out->scratch_bytes = partial_bytes(mm);
  out->worker_scratch_bytes =
      weir_scratch_align(mm->packed_scratch) + (ew ? ew->scratch_bytes : 0);
  out->algorithm = mm->slices > 1 ? "sums in slices, added in order"
                   : mm->packed   ? "pieces, b packed once"
                                  : "pieces";
  return WEIR_OK;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  const int32_t io[3] = {0, 1, 2};
  return prepare_common(call, NULL, io, out, err);
}

const weir_kernel_def weir_kernel_cpu_matmul = {.op = "matmul",
                                                .name = "cpu.matmul",
                                                .device = WEIR_CPU,
                                                .types = WEIR_F32,
                                                .prepare = prepare,
                                                .release = weir_matmul_release,
                                                .run = weir_matmul_run};

/* ---- With followers: bias, activation, residual ... */

/* Where the product is written: an output of its own if it is one, else the
 * last call's, which then works in place. -1: neither fits. */
static int32_t product_io(const weir_group *group) {
  int32_t last = -1;
  for (uint32_t o = 0; o < group->out_count; o++) {
    if (group->out_calls[o] == 0) return (int32_t)(group->in_count + o);
    if (group->out_calls[o] == group->call_count - 1 &&
        group->out[o].dtype == WEIR_F32)
      last = (int32_t)(group->in_count + o);
  }
  return last;
}

static bool plan_group(const weir_group *group, weir_ew *ew, weir_why *why) {
  const weir_call *call = &group->calls[0];
  if (strcmp(call->op->name, "matmul") != 0)
    return weir_no(why, "does not start with matmul");
  if (call->in[0].dtype != WEIR_F32) return weir_no(why, "not f32");
  if (call->in[0].rank < 2 || call->in[1].rank < 2)
    return weir_no(why, "a vector operand");
  int32_t io = product_io(group);
  if (io < 0) return weir_no(why, "no output to write the product to");
  return weir_ew_build(group, 1, io, true, weir_isa_choose(), ew, why);
}

static bool group_accepts(const weir_group *group, weir_why *why) {
  weir_ew ew;
  return plan_group(group, &ew, why);
}

static weir_status group_prepare(const weir_group *group, weir_prepared *out,
                                 weir_error *err) {
  weir_ew *ew = weir_arena_alloc(out->arena, sizeof *ew);
  if (!ew) return weir_fail_memory(err, sizeof *ew);
  if (!plan_group(group, ew, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "cpu.matmul_fused: not accepted");
  const weir_group_ref *refs = group->refs[0];
  const int32_t io[3] = {(int32_t)refs[0].index, (int32_t)refs[1].index,
                         product_io(group)};
  return prepare_common(&group->calls[0], ew, io, out, err);
}

const weir_group_kernel_def weir_group_cpu_matmul = {
    .name = "cpu.matmul_fused",
    .device = WEIR_CPU,
    .accepts = group_accepts,
    .prepare = group_prepare,
    .release = weir_matmul_release,
    .run = weir_matmul_run};
