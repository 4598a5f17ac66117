/* SPDX-License-Identifier: Apache-2.0 */
/* dropout: the mask comes from the counter-based generator, so it needs no
 * memory between runs and any block can start anywhere. keep is compared as 24
 * bits: word >> 8 < ceil(keep 2^24) is the test u < keep of the reference. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/random.h"
#include "kernels/draw.h"

enum { BLOCK = 16384 }; /* elements; a multiple of a philox block's four */

typedef struct plan {
  const weir_isa *isa;
  bool training;
  int64_t elements;
  uint64_t key;
  uint32_t below;
  float scale;
} plan;

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  double keep = weir_call_attr(call, "keep")->f;
  if (!p) return weir_fail_memory(err, sizeof *p);
  *p = (plan){.isa = weir_isa_of(call),
              .training = weir_call_attr(call, "training")->b,
              .elements = call->in[0].elements,
              .key = weir_draw_key(call),
              .below = (uint32_t)ceil(keep * 0x1p24),
              .scale = (float)(1 / keep)};
  out->state = p;
  out->algorithm = p->training ? p->isa->name : "nothing to do";
  return WEIR_OK;
}

static void block(void *arg, int64_t index, int worker) {
  const weir_args *args = arg;
  const plan *p = args->state;
  int64_t at = index * BLOCK, n = p->elements - at;
  uint8_t *mask = args->io[2];
  weir_dropout d = {.x = (const float *)args->io[0] + at,
                    .y = (float *)args->io[1] + at,
                    .mask = mask ? mask + at : NULL,
                    .first = at,
                    .n = n < BLOCK ? n : BLOCK,
                    .key = p->key,
                    .step = args->ctx->step,
                    .below = p->below,
                    .scale = p->scale};
  (void)worker;
  p->isa->random->dropout(&d);
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  size_t n = (size_t)p->elements;
  int64_t blocks = (p->elements + BLOCK - 1) / BLOCK;
  if (n == 0) return WEIR_OK;
  if (p->training) {
    weir_parallel_for(args, blocks, block, (void *)(uintptr_t)args);
    return WEIR_OK;
  }
  if (args->io[1] != args->io[0])
    memcpy(args->io[1], args->io[0], n * sizeof(float));
  if (args->io[2]) memset(args->io[2], 1, n);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_dropout = {.op = "dropout",
                                                 .name = "cpu.dropout",
                                                 .device = WEIR_CPU,
                                                 .types = WEIR_F32,
                                                 .in_place = true,
                                                 .prepare = prepare,
                                                 .run = run};
