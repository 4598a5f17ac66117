/* SPDX-License-Identifier: Apache-2.0 */
/* An operand lies in a buffer of its own, between bytes that must stay. */
#include "tests/cuda/ops/gpu_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/counted.h"

enum {
  kFront = 256, /* keeps the alignment of scratch */
  kBack = 64,
  kMark = 0xC5,
  kInstr = 6, /* as if others stood before it */

  kInvalid = 1, /* CUDA's invalid argument, which loses no GPU */
  kBlocks = CASE_INPUTS + CASE_OUTPUTS + 2
};

typedef struct block {
  weir_device_buffer buffer;
  unsigned char *host; /* as it is in the GPU, guards too; NULL: no operand */
  size_t bytes;
} block;

typedef struct memory {
  gpu_world *w;
  block blocks[kBlocks]; /* inputs, outputs, scratch, the bodies' block */
  void *io[CASE_INPUTS + CASE_OUTPUTS];
  uint32_t in_count, out_count;
} memory;

static block *scratch_of(memory *m) {
  return &m->blocks[m->in_count + m->out_count];
}

static block *lent_of(memory *m) {
  return &m->blocks[m->in_count + m->out_count + 1];
}

static void *address(const block *b) {
  return (char *)b->buffer.handle + kFront;
}

static size_t operand_bytes(const weir_operand *x) {
  return (size_t)x->elements * weir_dtype_size(x->dtype);
}

/* |data| NULL: all of it is kMark. */
static weir_status block_create(memory *m, block *b, const void *data,
                                size_t bytes, weir_error *err) {
  weir_device *d = m->w->device;
  size_t all = kFront + bytes + kBack;
  b->host = malloc(all);
  if (b->host == NULL) return weir_fail_memory(err, all);
  b->bytes = bytes;
  memset(b->host, kMark, all);
  if (data != NULL && bytes > 0) memcpy(b->host + kFront, data, bytes);
  WEIR_TRY(d->vt->alloc(d, all, &b->buffer, err));
  return d->vt->copy_in(d, m->w->queue, (weir_device_place){&b->buffer, 0},
                        b->host, all, err);
}

static weir_body_block lent_at_first(gpu_how how) {
  weir_body_block lent = {.step = CASE_STEP};
  if (how.faulted) lent.fault = (weir_body_fault){kInstr, 5, 7};
  return lent;
}

static weir_status memory_create(memory *m, const weir_call *call,
                                 weir_tensor *const *in, size_t scratch_bytes,
                                 gpu_how how, weir_error *err) {
  const weir_body_block lent = lent_at_first(how);
  uint32_t n = call->in_count;
  m->in_count = n;
  m->out_count = call->out_count;
  for (uint32_t i = 0; i < n; i++) {
    if (in[i] == NULL) continue;
    if (i > 0 && in[i] == in[0]) {
      m->io[i] = m->io[0];
      continue;
    }
    WEIR_TRY(block_create(m, &m->blocks[i], in[i]->data, in[i]->bytes, err));
    m->io[i] = address(&m->blocks[i]);
  }
  for (uint32_t i = 0; i < call->out_count; i++) {
    block *b = &m->blocks[n + i];
    if (call->out[i].dtype == WEIR_DTYPE_NONE) continue;
    WEIR_TRY(block_create(m, b, NULL, operand_bytes(&call->out[i]), err));
    m->io[n + i] = address(b);
  }
  if (how.in_place) m->io[n] = m->io[0];
  WEIR_TRY(block_create(m, scratch_of(m), NULL, scratch_bytes, err));
  return block_create(m, lent_of(m), &lent, sizeof lent, err);
}

static void memory_release(memory *m) {
  for (int i = 0; i < kBlocks; i++) {
    if (m->blocks[i].buffer.handle != NULL)
      m->w->device->vt->free(m->w->device, &m->blocks[i].buffer);
    free(m->blocks[i].host);
  }
}

/* Brings all operands back; inputs must be as they were. */
static weir_status memory_fetch(memory *m, weir_error *err) {
  weir_device *d = m->w->device;
  for (int i = 0; i < kBlocks; i++) {
    block *b = &m->blocks[i];
    if (b->host == NULL) continue;
    WEIR_TRY(d->vt->copy_out(d, m->w->queue, b->host,
                             (weir_device_place){&b->buffer, 0},
                             kFront + b->bytes + kBack, err));
  }
  return gpu_world_wait(m->w, err);
}

static bool block_is_whole(const block *b) {
  for (size_t i = 0; i < kFront; i++)
    if (b->host[i] != kMark) return false;
  for (size_t i = 0; i < kBack; i++)
    if (b->host[kFront + b->bytes + i] != kMark) return false;
  return true;
}

static bool memory_check(const memory *m, weir_tensor *const *in, bool in_place,
                         char *why, size_t capacity) {
  for (uint32_t i = 0; i < m->in_count + m->out_count + 2; i++) {
    const block *b = &m->blocks[i];
    if (b->host == NULL) continue;
    if (!block_is_whole(b)) {
      snprintf(why, capacity, "wrote around operand %u", i);
      return false;
    }
    if (i >= m->in_count || (in_place && i == 0) || b->bytes == 0) continue;
    if (memcmp(b->host + kFront, in[i]->data, b->bytes) != 0) {
      snprintf(why, capacity, "changed input %u", i);
      return false;
    }
  }
  return true;
}

static weir_status take_results(const memory *m, const weir_call *call,
                                bool in_place, op_results *out,
                                weir_error *err) {
  for (uint32_t i = 0; i < call->out_count; i++) {
    const weir_operand *y = &call->out[i];
    const block *b = &m->blocks[in_place && i == 0 ? 0 : m->in_count + i];
    out->count = i + 1;
    if (y->dtype == WEIR_DTYPE_NONE) continue;
    weir_shape shape = weir_shape_of(y->rank, y->dims);
    WEIR_TRY(weir_tensor_create_shaped(weir_allocator_system(), y->dtype,
                                       &shape, &out->out[i], err));
    size_t bytes = out->out[i]->bytes;
    if (bytes > 0) memcpy(out->out[i]->data, b->host + kFront, bytes);
  }
  return WEIR_OK;
}

/* What the bodies refused, in the kernel's words. */
static weir_status tell_fault(memory *m, const weir_kernel_def *kernel,
                              const void *state, gpu_how how, weir_error *err) {
  const weir_body_block first = lent_at_first(how);
  weir_body_block lent;
  memcpy(&lent, lent_of(m)->host + kFront, sizeof lent);
  if (how.faulted && memcmp(&lent, &first, sizeof lent) == 0) return WEIR_OK;
  if (lent.fault.instr == 0) return WEIR_OK;
  if (lent.fault.instr != kInstr + 1)
    return weir_fail(err, WEIR_W9001, NULL, "a fault of instruction %d",
                     (int)lent.fault.instr - 1);
  if (kernel->fault == NULL)
    return weir_fail(err, WEIR_W9001, NULL, "a fault that has no words");
  weir_status s = kernel->fault(state, &lent.fault, err);
  return s != WEIR_OK
             ? s
             : weir_fail(err, WEIR_W9001, NULL, "a fault that is no failure");
}

static weir_status run_in(memory *m, const weir_kernel_def *kernel,
                          const void *state, weir_error *err) {
  weir_body_block *lent = address(lent_of(m));
  const weir_gpu_run run = {.gpu = &m->w->gpu,
                            .queue = m->w->queue,
                            .block = lent,
                            .step = &lent->step,
                            .instr = kInstr};
  const weir_run_ctx ctx = {.gpu = &run, .step = UINT64_MAX};
  const weir_args args = {.io = m->io,
                          .state = state,
                          .scratch = address(scratch_of(m)),
                          .ctx = &ctx,
                          .err = err};
  return kernel->run(&args);
}

static weir_status run_prepared(gpu_world *w, const weir_kernel_def *kernel,
                                const weir_call *call,
                                const weir_prepared *prepared,
                                weir_tensor *const *in, gpu_how how,
                                op_results *out, weir_error *err, char *why,
                                size_t capacity) {
  memory m = {.w = w};
  weir_status s =
      memory_create(&m, call, in, prepared->scratch_bytes, how, err);
  if (s == WEIR_OK && w->standin != NULL && how.fail_at > 0)
    w->standin->fail_at(how.fail_at, kInvalid);
  if (s == WEIR_OK) s = run_in(&m, kernel, prepared->state, err);
  if (w->standin != NULL) w->standin->fail_at(0, 0);
  weir_error late = WEIR_ERROR_INIT;
  weir_status fetched = memory_fetch(&m, s == WEIR_OK ? err : &late);
  if (fetched != WEIR_OK && w->standin != NULL)
    snprintf(why, capacity, "%s", w->standin->fault());
  if (s == WEIR_OK) s = fetched;
  if (fetched == WEIR_OK && !memory_check(&m, in, how.in_place, why, capacity))
    s = WEIR_INTERNAL;
  if (s == WEIR_OK) s = tell_fault(&m, kernel, prepared->state, how, err);
  if (s == WEIR_OK) s = take_results(&m, call, how.in_place, out, err);
  memory_release(&m);
  return s;
}

static weir_status prepare(const weir_kernel_def *kernel, const weir_call *call,
                           weir_prepared *out, weir_error *err) {
  if (kernel->prepare != NULL) return kernel->prepare(call, out, err);
  out->state = (void *)(uintptr_t)call;
  return WEIR_OK;
}

static void release(const weir_kernel_def *kernel, void *state) {
  if (kernel->release != NULL && state != NULL) kernel->release(state);
}

/* Prepares; |*left| is the number of the call that is to fail, counted from
 * the end of prepare; 0: it came. */
static weir_status prepare_failing(gpu_world *w, const weir_kernel_def *kernel,
                                   const weir_call *call, weir_prepared *out,
                                   uint64_t *left, weir_error *err) {
  if (w->standin == NULL || *left == 0) return prepare(kernel, call, out, err);
  uint64_t before = w->standin->counts().calls;
  w->standin->fail_at(*left, kInvalid);
  weir_status s = prepare(kernel, call, out, err);
  w->standin->fail_at(0, 0);
  uint64_t calls = w->standin->counts().calls - before;
  *left = calls < *left ? *left - calls : 0;
  return s;
}

weir_status gpu_run(gpu_world *w, const weir_kernel_def *kernel,
                    const weir_call *call, weir_tensor *const *in, gpu_how how,
                    op_results *out, weir_error *err, char *why,
                    size_t capacity) {
  weir_arena arena;
  weir_arena_init(&arena, weir_allocator_system());
  weir_prepared prepared = {
      .arena = &arena, .alloc = weir_allocator_system(), .device = w->device};
  *out = (op_results){0};
  weir_status s =
      prepare_failing(w, kernel, call, &prepared, &how.fail_at, err);
  if (s == WEIR_OK)
    s = run_prepared(w, kernel, call, &prepared, in, how, out, err, why,
                     capacity);
  release(kernel, prepared.state);
  weir_arena_release(&arena);
  return s;
}

bool gpu_prepare_sweep(const weir_kernel_def *kernel, const weir_call *call,
                       weir_device *device, char *why, size_t capacity) {
  weir_status s = WEIR_RESOURCE_EXHAUSTED;
  for (uint64_t k = 1; s != WEIR_OK; k++) {
    weir_counted_allocator counted;
    weir_arena arena;
    weir_error err = WEIR_ERROR_INIT;
    weir_counted_allocator_init(&counted, NULL);
    counted.fail_at = k;
    weir_arena_init(&arena, &counted.base);
    weir_prepared prepared = {.arena = &arena,
                              .alloc = &counted.base,
                              .device = device,
                              .sizes_only = device == NULL};
    s = prepare(kernel, call, &prepared, &err);
    if (s == WEIR_OK) release(kernel, prepared.state);
    weir_arena_release(&arena);
    bool lost = atomic_load(&counted.live_blocks) != 0;
    if (!lost && (s == WEIR_OK || s == WEIR_RESOURCE_EXHAUSTED)) continue;
    snprintf(why, capacity, "prepare without allocation %llu: %s%s",
             (unsigned long long)k, weir_status_name(s),
             lost ? ", memory lost" : "");
    return false;
  }
  return true;
}
