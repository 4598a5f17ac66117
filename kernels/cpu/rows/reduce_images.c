/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of images by channel, from the N16 layout: a bias' gradient. Reading N16
 * in place saves the copy to plain rows; chunks of blocks have a part each, and
 * the parts are added in order. */
#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/conv_grad.h"
#include "kernels/registry.h"

enum { kChunks = 64 }; /* parts of the sum, at most */

typedef struct plan {
  const weir_isa *isa;
  int64_t n, c, pixels;
  int64_t blocks, chunk, chunks; /* blocks of 16 images; blocks of a chunk */
} plan;

typedef struct job {
  const plan *p;
  const weir_args *args;
} job;

static void run_chunk(void *arg, int64_t chunk, int worker) {
  const job *j = arg;
  const plan *p = j->p;
  float *part = (float *)j->args->scratch + chunk * p->c;
  int64_t end = (chunk + 1) * p->chunk;
  (void)worker;
  if (end > p->blocks) end = p->blocks;
  for (int64_t b = chunk * p->chunk; b < end; b++) {
    int64_t images = p->n - b * 16 < 16 ? p->n - b * 16 : 16;
    p->isa->conv_grad->bias(
        part, (const float *)j->args->io[0] + b * p->c * p->pixels * 16, p->c,
        p->pixels, (int32_t)images, b > chunk * p->chunk);
  }
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  job j = {p, args};
  weir_parallel_for(args, p->chunks, run_chunk, &j);
  const float *part = args->scratch;
  float *y = args->io[1];
  for (int64_t c = 0; c < p->c; c++) {
    y[c] = part[c];
    for (int64_t k = 1; k < p->chunks; k++) y[c] += part[k * p->c + c];
  }
  return WEIR_OK;
}

/* Axes 0, 2 and 3 of four. */
static bool accepts(const weir_call *call, weir_why *why) {
  const weir_attr *axis = weir_call_attr(call, "axis");
  unsigned axes = 0;
  if (call->in[0].layout != WEIR_LAYOUT_N16 ||
      call->out[0].layout != WEIR_LAYOUT_PLAIN)
    return weir_no(why, "not from N16 to rows");
  for (uint32_t i = 0; axis->kind == WEIR_ATTR_INTS && i < axis->count; i++) {
    int64_t d = axis->dims[i].value;
    axes |= 1u << (d < 0 ? d + 4 : d);
  }
  return axes == 13 || weir_no(why, "not over images and pixels");
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  const weir_operand *x = &call->in[0];
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (!p) return weir_fail_memory(err, sizeof *p);
  *p = (plan){.isa = weir_isa_of(call),
              .n = x->dims[0],
              .c = x->dims[1],
              .pixels = x->dims[2] * x->dims[3]};
  p->blocks = (p->n + 15) / 16;
  /* Small sums are not worth a second thread. */
  p->chunk = 65536 / (p->c * p->pixels * 16) + 1;
  if (p->blocks / p->chunk > kChunks) p->chunk = p->blocks / kChunks;
  p->chunks = (p->blocks + p->chunk - 1) / p->chunk;
  out->state = p;
  out->scratch_bytes = (size_t)(p->chunks * p->c) * sizeof(float);
  out->algorithm = "16 images a vector";
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_reduce_sum_images = {
    .op = "reduce_sum",
    .name = "cpu.reduce_sum.images",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .accepts = accepts,
    .layouts = true,
    .prepare = prepare,
    .run = run};
