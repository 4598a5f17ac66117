/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/registry.h"
#include "tests/counted.h"
#include "tests/ops/case.h"

enum { GUARD_BYTES = 64 };

/* ---- Memory and workers lent to a run */

static void serial(void *self, int64_t blocks, weir_block_fn fn, void *arg) {
  (void)self;
  for (int64_t b = 0; b < blocks; b++) fn(arg, b, 0);
}

/* Every block once, odd ones backwards first, on alternating workers; |self|
 * is their number. */
static void scramble(void *self, int64_t blocks, weir_block_fn fn, void *arg) {
  int workers = ((const op_how *)self)->workers;
  for (int64_t b = blocks - 1; b >= 0; b--)
    if (b % 2 == 1) fn(arg, b, (int)(b % workers));
  for (int64_t b = 0; b < blocks; b += 2) fn(arg, b, (int)((b + 1) % workers));
}

static void hold(void *self, int64_t ns, bool spin) {
  (void)self;
  (void)ns;
  (void)spin;
}

static bool over(void *self) {
  ++*((op_how *)self)->looks;
  return true;
}

static weir_run_ctx context(op_how *how) {
  return (weir_run_ctx){.self = how,
                        .parallel_for = how->workers > 1 ? scramble : serial,
                        .workers = how->workers,
                        .step = CASE_STEP,
                        .hold = hold,
                        .over = how->looks != NULL ? over : NULL};
}

/* ---- Kernels and group kernels alike */

const char *op_runner_name(const op_runner *runner) {
  return runner->kernel != NULL ? runner->kernel->name : runner->group->name;
}

/* A group of one call; all its inputs come from outside. */
typedef struct single {
  weir_group group;
  weir_group_ref refs[CASE_INPUTS];
  const weir_group_ref *ref_lists[1];
  uint32_t out_calls[1];
} single;

static void single_init(single *s, const weir_call *call) {
  for (uint32_t i = 0; i < call->in_count; i++)
    s->refs[i] = (weir_group_ref){.member = false, .index = i};
  s->ref_lists[0] = s->refs;
  s->out_calls[0] = 0;
  s->group = (weir_group){.call_count = 1,
                          .in_count = call->in_count,
                          .out_count = 1,
                          .calls = call,
                          .refs = s->ref_lists,
                          .in = call->in,
                          .out = call->out,
                          .out_calls = s->out_calls};
}

static bool has_missing_input(const weir_call *call) {
  for (uint32_t i = 0; i < call->in_count; i++)
    if (call->in[i].dtype == WEIR_DTYPE_NONE) return true;
  return false;
}

bool op_runner_accepts(const op_runner *runner, const weir_call *call) {
  single s;
  if (runner->kernel != NULL) {
    weir_registry alone = {.kernels = &runner->kernel, .kernel_count = 1};
    return weir_kernel_choose(&alone, call, WEIR_CPU, false, NULL, 0) != NULL;
  }
  unsigned members = WEIR_OP_ELEMENTWISE | WEIR_OP_ANCHOR;
  if ((call->op->flags & members) == 0 || runner->group->device != WEIR_CPU)
    return false;
  if (has_missing_input(call) || call->out_count != 1) return false;
  single_init(&s, call);
  return runner->group->accepts == NULL ||
         runner->group->accepts(&s.group, NULL);
}

static weir_status prepare(const op_runner *runner, const weir_call *call,
                           weir_prepared *out, weir_error *err) {
  single s;
  single_init(&s, call);
  if (runner->group != NULL) return runner->group->prepare(&s.group, out, err);
  if (runner->kernel->prepare != NULL)
    return runner->kernel->prepare(call, out, err);
  out->state = (void *)call;
  return WEIR_OK;
}

static void release(const op_runner *runner, void *state) {
  void (*fn)(void *) =
      runner->kernel != NULL ? runner->kernel->release : runner->group->release;
  if (fn != NULL && state != NULL) fn(state);
}

/* ---- Memory. Every block has a guard behind it. */

typedef struct block {
  char *data;
  size_t bytes;
} block;

static bool block_create(block *b, size_t bytes) {
  void *data = NULL;
  if (posix_memalign(&data, 64, bytes + GUARD_BYTES) != 0) return false;
  memset(data, 0xC5, bytes + GUARD_BYTES);
  *b = (block){data, bytes};
  return true;
}

static bool block_is_whole(const block *b) {
  for (int i = 0; i < GUARD_BYTES; i++)
    if ((unsigned char)b->data[b->bytes + (size_t)i] != 0xC5) return false;
  return true;
}

typedef struct memory {
  block blocks[CASE_INPUTS + CASE_OUTPUTS + 1]; /* inputs, outputs, scratch */
  void *io[CASE_INPUTS + CASE_OUTPUTS];
  uint32_t in_count, out_count;
} memory;

static size_t operand_bytes(const weir_operand *x) {
  return (size_t)x->elements * weir_dtype_size(x->dtype);
}

static bool memory_create(memory *m, const weir_call *call,
                          weir_tensor *const *in, size_t scratch_bytes,
                          bool in_place) {
  uint32_t n = call->in_count;
  m->in_count = n;
  m->out_count = call->out_count;
  for (uint32_t i = 0; i < n; i++) {
    if (in[i] == NULL) continue;
    if (i > 0 && in[i] == in[0]) {
      m->io[i] = m->io[0];
      continue;
    }
    if (!block_create(&m->blocks[i], in[i]->bytes)) return false;
    memcpy(m->blocks[i].data, in[i]->data, in[i]->bytes);
    m->io[i] = m->blocks[i].data;
  }
  for (uint32_t i = 0; i < call->out_count; i++) {
    if (call->out[i].dtype == WEIR_DTYPE_NONE) continue;
    if (!block_create(&m->blocks[n + i], operand_bytes(&call->out[i])))
      return false;
    m->io[n + i] = m->blocks[n + i].data;
  }
  if (in_place) m->io[n] = m->io[0];
  return block_create(&m->blocks[n + call->out_count], scratch_bytes);
}

static void memory_release(memory *m) {
  for (size_t i = 0; i < sizeof m->blocks / sizeof m->blocks[0]; i++)
    free(m->blocks[i].data);
}

/* Nothing was written past an end, and inputs are unchanged. */
static bool memory_check(const memory *m, weir_tensor *const *in, bool in_place,
                         char *why, size_t capacity) {
  for (uint32_t i = 0; i <= m->in_count + m->out_count; i++) {
    const block *b = &m->blocks[i];
    if (b->data == NULL) continue;
    if (!block_is_whole(b)) {
      snprintf(why, capacity, "wrote past the end of operand %u", i);
      return false;
    }
    if (i >= m->in_count || (in_place && i == 0)) continue;
    if (memcmp(b->data, in[i]->data, b->bytes) != 0) {
      snprintf(why, capacity, "changed input %u", i);
      return false;
    }
  }
  return true;
}

static weir_status take_results(const memory *m, const weir_call *call,
                                op_results *out, weir_error *err) {
  for (uint32_t i = 0; i < call->out_count; i++) {
    const weir_operand *y = &call->out[i];
    out->count = i + 1;
    if (y->dtype == WEIR_DTYPE_NONE) continue;
    weir_shape shape = weir_shape_of(y->rank, y->dims);
    WEIR_TRY(weir_tensor_create_shaped(weir_allocator_system(), y->dtype,
                                       &shape, &out->out[i], err));
    memcpy(out->out[i]->data, m->io[m->in_count + i], out->out[i]->bytes);
  }
  return WEIR_OK;
}

void op_results_release(op_results *results) {
  for (uint32_t i = 0; i < CASE_OUTPUTS; i++)
    weir_tensor_unref(results->out[i]);
  *results = (op_results){0};
}

/* ---- Running */

static weir_status run_prepared(const op_runner *runner, const weir_call *call,
                                const weir_prepared *prepared,
                                weir_tensor *const *in, op_how how,
                                op_results *out, weir_error *err, char *why,
                                size_t capacity) {
  memory m = {0};
  weir_run_ctx ctx = context(&how);
  size_t scratch =
      weir_scratch_align(prepared->scratch_bytes) +
      (size_t)ctx.workers * weir_scratch_align(prepared->worker_scratch_bytes);
  weir_status s = WEIR_RESOURCE_EXHAUSTED;
  if (memory_create(&m, call, in, scratch, how.in_place)) {
    weir_args args = {.io = m.io,
                      .state = prepared->state,
                      .scratch = m.blocks[m.in_count + m.out_count].data,
                      .ctx = &ctx,
                      .err = err};
    s = runner->kernel != NULL ? runner->kernel->run(&args)
                               : runner->group->run(&args);
    if (!memory_check(&m, in, how.in_place, why, capacity)) s = WEIR_INTERNAL;
    if (s == WEIR_OK) s = take_results(&m, call, out, err);
  }
  memory_release(&m);
  return s;
}

weir_status op_run(const op_runner *runner, const weir_call *call,
                   weir_tensor *const *in, op_how how, op_results *out,
                   weir_error *err, char *why, size_t capacity) {
  weir_arena arena;
  weir_arena_init(&arena, weir_allocator_system());
  weir_prepared prepared = {.arena = &arena, .alloc = weir_allocator_system()};
  *out = (op_results){0};
  weir_status s = prepare(runner, call, &prepared, err);
  if (s == WEIR_OK)
    s = run_prepared(runner, call, &prepared, in, how, out, err, why, capacity);
  release(runner, prepared.state);
  weir_arena_release(&arena);
  return s;
}

int64_t op_run_late(const op_runner *runner, const weir_call *call,
                    weir_tensor *const *in, char *why, size_t capacity) {
  int64_t looks = 0;
  weir_error err = WEIR_ERROR_INIT;
  op_results out;
  op_how how = {.workers = 1, .looks = &looks};
  weir_status s = op_run(runner, call, in, how, &out, &err, why, capacity);
  op_results_release(&out);
  if (s == WEIR_OK) return looks;
  if (why[0] == 0) snprintf(why, capacity, "out of time: %s", err.message);
  return -1;
}

bool op_run_sweep(const op_runner *runner, const weir_call *call, char *why,
                  size_t capacity) {
  weir_status s = WEIR_RESOURCE_EXHAUSTED;
  for (uint64_t k = 1; s != WEIR_OK; k++) {
    weir_counted_allocator counted;
    weir_arena arena;
    weir_error err = WEIR_ERROR_INIT;
    weir_counted_allocator_init(&counted, NULL);
    counted.fail_at = k;
    weir_arena_init(&arena, &counted.base);
    weir_prepared prepared = {.arena = &arena, .alloc = &counted.base};
    s = prepare(runner, call, &prepared, &err);
    if (s == WEIR_OK) release(runner, prepared.state);
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
