/* SPDX-License-Identifier: Apache-2.0 */
/* Uniform and normal numbers, and the initialisers made of them: blocks that
 * can start anywhere, as element i needs nothing but its own bits. */
#include "kernels/cpu/isa/random.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/draw.h"

enum { BLOCK = 16384 }; /* elements; a multiple of a philox block's four */

typedef struct plan {
  void (*make)(const weir_numbers *d);
  int64_t elements;
  weir_draw draw;
  float high;
} plan;

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  const weir_isa *isa = weir_isa_of(call);
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (plan){.elements = call->out[0].elements, .draw = weir_draw_make(call)};
  p->make = p->draw.of == WEIR_DRAW_NORMAL ? isa->random->normal
                                           : isa->random->uniform;
  p->high = weir_draw_high_f32(&p->draw);
  out->state = p;
  out->algorithm = isa->name;
  return WEIR_OK;
}

typedef struct work {
  const plan *plan;
  float *y;
  uint64_t step;
} work;

static void block(void *arg, int64_t index, int worker) {
  const work *w = arg;
  const plan *p = w->plan;
  int64_t at = index * BLOCK, n = p->elements - at;
  const weir_numbers numbers = {.y = w->y + at,
                                .first = at,
                                .n = n < BLOCK ? n : BLOCK,
                                .key = p->draw.key,
                                .step = w->step,
                                .offset = p->draw.offset,
                                .scale = p->draw.scale,
                                .high = p->high};
  (void)worker;
  p->make(&numbers);
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  work w = {p, args->io[0], args->ctx->step};
  int64_t blocks = p->elements / BLOCK + (p->elements % BLOCK != 0);
  if (blocks > 0) weir_parallel_for(args, blocks, block, &w);
  return WEIR_OK;
}

#define RANDOM(op_name)                                                       \
  const weir_kernel_def weir_kernel_cpu_##op_name = {.op = #op_name,          \
                                                     .name = "cpu." #op_name, \
                                                     .device = WEIR_CPU,      \
                                                     .types = WEIR_F32,       \
                                                     .prepare = prepare,      \
                                                     .run = run}

RANDOM(uniform);
RANDOM(normal);
RANDOM(glorot_uniform);
RANDOM(glorot_normal);
RANDOM(he_uniform);
RANDOM(he_normal);
RANDOM(lecun_uniform);
RANDOM(lecun_normal);
