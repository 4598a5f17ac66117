/* SPDX-License-Identifier: Apache-2.0 */
/* matmul by the device's library of products (device/gemm.h).
 *
 * The call is read as strides: a transposed operand is one whose other stride
 * is 1, a vector a matrix of one row or column. A product of the library has
 * one step from a matrix to the next, so the batch's dimensions are joined as
 * far as both operands go on by equal steps; for what is left there is a run of
 * the same plan for each of its elements. */
#include "kernels/gpu/nn/matmul.h"

#include <assert.h>

#include "kernels/cpu/gemm/matmul_shape.h"
#include "kernels/registry.h"

enum {
  kAlign = 16, /* of an operand's first byte */
  kMostRuns = 4096
};

static void join_batches(const weir_gemm_shape *s, weir_gpu_batches *out) {
  *out = (weir_gpu_batches){0};
  for (int32_t d = 0; d < s->batch_rank; d++) {
    int64_t dim = s->batch_dims[d];
    int32_t last = out->rank - 1;
    if (dim == 1) continue;
    bool join = last >= 0 && out->a[last] == s->a_batch[d] * dim &&
                out->b[last] == s->b_batch[d] * dim;
    if (!join) last = out->rank++;
    out->dims[last] = join ? out->dims[last] * dim : dim;
    out->a[last] = s->a_batch[d];
    out->b[last] = s->b_batch[d];
  }
}

/* A matrix of |rows| and |columns| by its two strides. */
static void describe(int64_t rows, int64_t columns, int64_t row, int64_t column,
                     bool *transposed, weir_gemm_matrix *out) {
  *transposed = column != 1;
  int64_t ld = *transposed ? column : row;
  int64_t least = *transposed ? rows : columns;
  assert(column == 1 || row == 1);
  out->ld = ld > least ? ld : least; /* one row, or one column, has no step */
}

/* Takes the last of |b| as the library's batch. */
static void take_batch(const weir_gemm_shape *s, weir_gpu_batches *b,
                       weir_gemm_desc *desc) {
  desc->batch = 1;
  if (b->rank == 0) return;
  int32_t last = --b->rank;
  desc->batch = b->dims[last];
  desc->a.stride = b->a[last];
  desc->b.stride = b->b[last];
  desc->d.stride = s->m * s->n;
}

/* The promised alignment: runs begin at whole steps. */
static uint32_t alignment(const weir_gemm_shape *s,
                          const weir_gpu_batches *outer, int64_t d_step) {
  int64_t size = (int64_t)weir_dtype_size(s->dtype);
  bool whole = outer->rank == 0 || d_step * size % kAlign == 0;
  for (int32_t d = 0; d < outer->rank; d++)
    whole = whole && outer->a[d] * size % kAlign == 0 &&
            outer->b[d] * size % kAlign == 0;
  return whole ? kAlign : (uint32_t)size;
}

static weir_gemm_desc describe_call(const weir_call *call,
                                    weir_gpu_batches *outer, int64_t *d_step) {
  weir_gemm_shape s;
  weir_matmul_shape(call, &s);
  weir_gemm_desc desc = {
      .type = s.dtype == WEIR_F64 ? WEIR_GEMM_F64 : WEIR_GEMM_F32,
      .m = s.m,
      .n = s.n,
      .k = s.k,
      .alpha = 1,
      .d = {.ld = s.n > 0 ? s.n : 1}};
  describe(s.m, s.k, s.a_row, s.a_k, &desc.a_transposed, &desc.a);
  describe(s.k, s.n, s.b_k, s.b_column, &desc.b_transposed, &desc.b);
  join_batches(&s, outer);
  take_batch(&s, outer, &desc);
  *d_step = desc.batch * s.m * s.n;
  desc.align_bytes = alignment(&s, outer, *d_step);
  return desc;
}

static int64_t runs_of(const weir_gpu_batches *outer) {
  int64_t runs = 1;
  for (int32_t d = 0; d < outer->rank; d++) runs *= outer->dims[d];
  return runs;
}

bool weir_gpu_matmul_accepts(const weir_call *call, weir_why *why) {
  weir_gpu_batches outer;
  int64_t d_step;
  describe_call(call, &outer, &d_step);
  int64_t runs = runs_of(&outer);
  return runs <= kMostRuns ||
         weir_no(why, "%lld batches that no steps join, at most %d",
                 (long long)runs, kMostRuns);
}

bool weir_gpu_matmul_has_terms(const weir_call *call) {
  weir_gemm_shape s;
  weir_matmul_shape(call, &s);
  return s.k > 0;
}

static size_t bytes_of(const weir_operand *x) {
  return (size_t)x->elements * weir_dtype_size(x->dtype);
}

static weir_status plan_gemm(weir_gpu_matmul *p, const weir_gemm_desc *desc,
                             weir_prepared *out, weir_error *err) {
  weir_device *d = out->device;
  out->algorithm = "the device's library";
  if (d == NULL) { /* that it never asks for more is all that is known */
    out->scratch_bytes = WEIR_GEMM_WORKSPACE_BYTES;
    return WEIR_OK;
  }
  if (d->vt->gemm == NULL)
    return weir_fail(err, WEIR_W6004, NULL,
                     "the device has no library of products");
  p->device = d;
  WEIR_TRY(d->vt->gemm->plan(d, desc, &p->gemm, &p->workspace_bytes, err));
  out->scratch_bytes = p->workspace_bytes;
  return WEIR_OK;
}

weir_status weir_gpu_matmul_plan(const weir_call *call,
                                 weir_gemm_epilogue epilogue,
                                 weir_gpu_matmul *mm, weir_prepared *out,
                                 weir_error *err) {
  const weir_operand *y = &call->out[0];
  *mm = (weir_gpu_matmul){.size = weir_dtype_size(y->dtype),
                          .a_bytes = bytes_of(&call->in[0]),
                          .b_bytes = bytes_of(&call->in[1]),
                          .d_bytes = bytes_of(y)};
  weir_gemm_desc desc = describe_call(call, &mm->outer, &mm->d_step);
  desc.epilogue = epilogue;
  mm->bias_bytes = (size_t)desc.n * mm->size;
  mm->runs = runs_of(&mm->outer);
  if (desc.k == 0)
    mm->zeros = (weir_fill_args){.n = y->elements, .size = (int32_t)mm->size};
  else if (y->elements > 0)
    return plan_gemm(mm, &desc, out, err);
  return WEIR_OK;
}

void weir_gpu_matmul_release(weir_gpu_matmul *mm) {
  if (mm->gemm != NULL) mm->device->vt->gemm->release(mm->device, mm->gemm);
}

/* Elements before run |r| of a and b. */
static void offsets(const weir_gpu_batches *outer, int64_t r, int64_t *a,
                    int64_t *b) {
  *a = *b = 0;
  for (int32_t d = outer->rank - 1; d >= 0; d--) {
    int64_t here = r % outer->dims[d];
    r /= outer->dims[d];
    *a += here * outer->a[d];
    *b += here * outer->b[d];
  }
}

weir_status weir_gpu_matmul_run(const weir_gpu_matmul *mm,
                                const weir_args *args,
                                const weir_gpu_matmul_io *io) {
  const weir_gpu_run *to = args->ctx->gpu;
  weir_fill_args zeros = mm->zeros;
  zeros.y = io->d;
  if (mm->gemm == NULL)
    return weir_gpu_launch(args, WEIR_GPU_fill, weir_gpu_blocks(zeros.n),
                           &zeros, sizeof zeros);
  const weir_device_buffer a = {io->a, NULL, mm->a_bytes};
  const weir_device_buffer b = {io->b, NULL, mm->b_bytes};
  const weir_device_buffer d = {io->d, NULL, mm->d_bytes};
  const weir_device_buffer bias = {io->bias, NULL, mm->bias_bytes};
  const weir_device_buffer scratch = {args->scratch, NULL, mm->workspace_bytes};
  weir_gemm_operands o = {.a = {&a, 0}, .b = {&b, 0}, .d = {&d, 0}};
  if (io->bias != NULL) o.bias.buffer = &bias;
  if (mm->workspace_bytes > 0) o.workspace.buffer = &scratch;
  for (int64_t r = 0; r < mm->runs; r++) {
    int64_t a_at, b_at;
    offsets(&mm->outer, r, &a_at, &b_at);
    o.a.offset = (size_t)a_at * mm->size;
    o.b.offset = (size_t)b_at * mm->size;
    o.d.offset = (size_t)(r * mm->d_step) * mm->size;
    WEIR_TRY(mm->device->vt->gemm->run(mm->device, mm->gemm, to->queue, &o,
                                       args->err));
  }
  return WEIR_OK;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_gpu_matmul *mm = weir_arena_alloc(out->arena, sizeof *mm);
  if (mm == NULL) return weir_fail_memory(err, sizeof *mm);
  WEIR_TRY(weir_gpu_matmul_plan(call, WEIR_GEMM_NONE, mm, out, err));
  out->state = mm;
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  const weir_gpu_matmul_io io = {
      .a = args->io[0], .b = args->io[1], .d = args->io[2]};
  return weir_gpu_matmul_run(args->state, args, &io);
}

static void release(void *state) {
  weir_gpu_matmul_release(state);
}

const weir_kernel_def weir_kernel_gpu_matmul = {
    .op = "matmul",
    .name = "gpu.matmul",
    .device = WEIR_GPU,
    .types = WEIR_FLOATS,
    .accepts = weir_gpu_matmul_accepts,
    .prepare = prepare,
    .release = release,
    .run = run};
