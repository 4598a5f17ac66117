/* SPDX-License-Identifier: Apache-2.0 */
/* The sums that global_norm adds (ops/reduce/norm_blocks.h), one a block. */
#include "kernels/cpu/isa/apply.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/kernel.h"
#include "ops/reduce/norm_blocks.h"

typedef struct plan {
  double (*squares)(const float *x, int64_t n);
  int64_t at, elements;
} plan;

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (plan){.squares = weir_isa_of(call)->apply->squares,
              .at = weir_call_attr(call, "at")->i,
              .elements = call->in[0].elements};
  out->state = p;
  out->algorithm = weir_isa_of(call)->name;
  return WEIR_OK;
}

static void run_block(void *arg, int64_t k, int worker) {
  const weir_args *args = arg;
  const plan *p = args->state;
  int64_t begin = weir_norm_stretch(p->at, p->elements, k);
  int64_t end = weir_norm_stretch(p->at, p->elements, k + 1);
  (void)worker;
  ((double *)args->io[1])[k] =
      p->squares((const float *)args->io[0] + begin, end - begin);
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  int64_t n = weir_norm_stretches(p->at, p->elements);
  weir_args mine = *args;
  if (n > 0) weir_parallel_for(args, n, run_block, &mine);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_block_squares = {
    .op = "block_squares",
    .name = "cpu.block_squares",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .prepare = prepare,
    .run = run};
