/* SPDX-License-Identifier: Apache-2.0 */
/* zeros, ones, fill, zeros_like, ones_like: one element, repeated. A pattern of
 * 64 bytes is written instead of elements, so one loop
 * serves all dtypes and works with whole vectors. */
#include <assert.h>
#include <string.h>

#include "kernels/make.h"

enum { BLOCK_BYTES = 256 * 1024, PATTERN = 64 };

typedef struct plan {
  uint32_t out; /* operand */
  size_t bytes;
  bool zero;                    /* every byte is */
  int64_t pattern[PATTERN / 8]; /* elements, side by side */
} plan;

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  const weir_operand *y = &call->out[0];
  const weir_attr value = weir_make_value(call);
  size_t size = weir_dtype_size(y->dtype);
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (!p) return weir_fail_memory(err, sizeof *p);
  *p = (plan){.out = call->in_count, .bytes = (size_t)y->elements * size};
  for (size_t i = 0; i < PATTERN / size; i++)
    weir_put_attr(y->dtype, p->pattern, (int64_t)i, &value);
  p->zero = true;
  for (int i = 0; i < PATTERN / 8; i++) p->zero = p->zero && p->pattern[i] == 0;
  out->state = p;
  return WEIR_OK;
}

static void block(void *arg, int64_t index, int worker) {
  const weir_args *args = arg;
  const plan *p = args->state;
  size_t begin = (size_t)index * BLOCK_BYTES, end = begin + BLOCK_BYTES;
  assert(begin < p->bytes);
  char *y = args->io[p->out];
  (void)worker;
  if (end > p->bytes) end = p->bytes;
  if (p->zero) {
    memset(y + begin, 0, end - begin);
    return;
  }
  for (; begin + PATTERN <= end; begin += PATTERN)
    memcpy(y + begin, p->pattern, PATTERN);
  memcpy(y + begin, p->pattern, end - begin);
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  size_t blocks = (p->bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
  if (blocks > 0)
    weir_parallel_for(args, (int64_t)blocks, block, (void *)(uintptr_t)args);
  return WEIR_OK;
}

#define MAKER(op_name)                                                        \
  const weir_kernel_def weir_kernel_cpu_##op_name = {.op = #op_name,          \
                                                     .name = "cpu." #op_name, \
                                                     .types = WEIR_ALL_TYPES, \
                                                     .prepare = prepare,      \
                                                     .over_inputs = true,     \
                                                     .run = run}

MAKER(zeros);
MAKER(zeros_like);
MAKER(ones);
MAKER(ones_like);
MAKER(fill);
