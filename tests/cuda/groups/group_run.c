/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/groups/group_run.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/registry.h"
#include "tests/counted.h"
#include "tests/cuda/groups/group_make.h"

enum {
  kFront = 256, /* keeps the alignment of scratch */
  kBack = 64,
  kMark = 0xC5,
  kInvalid = 1, /* CUDA's invalid argument, which loses no GPU */
  kBlocks = GROUP_INPUTS + 8
};

typedef struct block {
  weir_device_buffer buffer;
  unsigned char *host; /* as it was put there, guards too */
  size_t front, bytes;
} block;

typedef struct memory {
  gpu_world *w;
  block blocks[kBlocks];
  void *io[kBlocks];
  uint32_t count;
} memory;

static size_t bytes_of(const weir_operand *x) {
  return (size_t)x->elements * weir_dtype_size(x->dtype);
}

/* One more block; |data| NULL: all of it is kMark. */
static void *add_block(memory *m, const void *data, size_t bytes,
                       size_t shift) {
  weir_device *d = m->w->device;
  weir_error err = WEIR_ERROR_INIT;
  assert_true(m->count < kBlocks);
  block *b = &m->blocks[m->count++];
  *b = (block){.front = kFront + shift, .bytes = bytes};
  size_t all = b->front + bytes + kBack;
  b->host = malloc(all);
  assert_non_null(b->host);
  memset(b->host, kMark, all);
  if (data != NULL && bytes > 0) memcpy(b->host + b->front, data, bytes);
  assert_ok(d->vt->alloc(d, all, &b->buffer, &err), &err);
  assert_ok(d->vt->copy_in(d, m->w->queue, (weir_device_place){&b->buffer, 0},
                           b->host, all, &err),
            &err);
  return (char *)b->buffer.handle + b->front;
}

/* Block |i| as it is now, to be freed; its guards must be whole, and with
 * |same| all of it as it was. */
static unsigned char *fetch(memory *m, uint32_t i, bool same) {
  weir_device *d = m->w->device;
  weir_error err = WEIR_ERROR_INIT;
  block *b = &m->blocks[i];
  size_t all = b->front + b->bytes + kBack;
  unsigned char *now = malloc(all);
  assert_non_null(now);
  assert_ok(d->vt->copy_out(d, m->w->queue, now,
                            (weir_device_place){&b->buffer, 0}, all, &err),
            &err);
  weir_status s = gpu_world_wait(m->w, &err);
  if (s != WEIR_OK)
    fail_msg("%s %s", err.message,
             m->w->standin != NULL ? m->w->standin->fault() : "");
  assert_memory_equal(now, b->host, b->front);
  assert_memory_equal(now + b->front + b->bytes, b->host + b->front + b->bytes,
                      kBack);
  if (same) assert_memory_equal(now, b->host, all);
  memmove(now, now + b->front, b->bytes);
  return now;
}

static void close_memory(memory *m) {
  for (uint32_t i = 0; i < m->count; i++) {
    m->w->device->vt->free(m->w->device, &m->blocks[i].buffer);
    free(m->blocks[i].host);
  }
}

static weir_status run_in(memory *m, weir_run_fn fn, const void *state,
                          void *scratch, weir_error *err) {
  const weir_gpu_run run = {.gpu = &m->w->gpu, .queue = m->w->queue};
  const weir_run_ctx ctx = {.gpu = &run};
  const weir_args args = {
      .io = m->io, .state = state, .scratch = scratch, .ctx = &ctx, .err = err};
  return fn(&args);
}

/* ---- Members */

static void *run_member(gpu_world *w, const weir_call *call, void *const *in) {
  memory m = {.w = w};
  weir_error err = WEIR_ERROR_INIT;
  weir_arena arena;
  weir_arena_init(&arena, weir_allocator_system());
  weir_prepared p = {
      .arena = &arena, .alloc = weir_allocator_system(), .device = w->device};
  const weir_kernel_def *kernel = weir_kernel_choose(
      weir_builtin_registry(), call, WEIR_GPU, false, NULL, 0);
  if (kernel == NULL) fail_msg("no kernel for %s", call->op->name);
  p.state = (void *)(uintptr_t)call;
  if (kernel->prepare != NULL) assert_ok(kernel->prepare(call, &p, &err), &err);
  for (uint32_t i = 0; i < call->in_count; i++)
    m.io[i] = add_block(&m, in[i], bytes_of(&call->in[i]), 0);
  m.io[call->in_count] = add_block(&m, NULL, bytes_of(&call->out[0]), 0);
  void *scratch = add_block(&m, NULL, p.scratch_bytes, 0);
  assert_ok(run_in(&m, kernel->run, p.state, scratch, &err), &err);
  void *y = fetch(&m, call->in_count, false);
  close_memory(&m);
  if (kernel->release != NULL) kernel->release(p.state);
  weir_arena_release(&arena);
  return y;
}

static void *draw(const weir_operand *x, uint32_t *state) {
  unsigned char *bytes = malloc(bytes_of(x) + 1);
  assert_non_null(bytes);
  for (int64_t i = 0; i < x->elements; i++) {
    uint32_t u = group_next(state);
    float f = (float)((int)(u % 1025) - 512) / 128;
    if (x->dtype == WEIR_F32)
      memcpy(bytes + 4 * i, &f, 4);
    else
      bytes[i] = (unsigned char)(x->dtype == WEIR_BOOL ? u & 1 : u);
  }
  return bytes;
}

void group_data_make(gpu_world *w, const weir_group *group, uint32_t seed,
                     group_data *out) {
  uint32_t state = seed + 1;
  *out = (group_data){.group = group};
  assert_true(group->in_count <= GROUP_INPUTS);
  assert_true(group->call_count <= GROUP_MEMBERS);
  for (uint32_t i = 0; i < group->in_count; i++)
    out->in[i] = draw(&group->in[i], &state);
  for (uint32_t c = 0; c < group->call_count; c++) {
    void *in[8];
    for (uint32_t i = 0; i < group->calls[c].in_count; i++) {
      weir_group_ref ref = group->refs[c][i];
      in[i] = ref.member ? out->member[ref.index] : out->in[ref.index];
    }
    out->member[c] = run_member(w, &group->calls[c], in);
  }
}

void group_data_free(group_data *data) {
  for (int i = 0; i < GROUP_INPUTS; i++) free(data->in[i]);
  for (int i = 0; i < GROUP_MEMBERS; i++) free(data->member[i]);
}

/* ---- The group */

static void put_operands(memory *m, const group_data *data, group_how how) {
  const weir_group *g = data->group;
  for (uint32_t i = 0; i < g->in_count; i++)
    m->io[i] = add_block(m, data->in[i], bytes_of(&g->in[i]), how.shift);
  for (uint32_t o = 0; o < g->out_count; o++)
    m->io[g->in_count + o] =
        add_block(m, NULL, bytes_of(&g->out[o]), how.shift);
  if (how.in_place >= 0) m->io[g->in_count] = m->io[how.in_place];
}

void group_run(gpu_world *w, const weir_group_kernel_def *kernel,
               const group_data *data, group_how how, void **out) {
  const weir_group *g = data->group;
  memory m = {.w = w};
  weir_error err = WEIR_ERROR_INIT;
  weir_arena arena;
  weir_arena_init(&arena, weir_allocator_system());
  weir_prepared p = {
      .arena = &arena, .alloc = weir_allocator_system(), .device = w->device};
  assert_ok(kernel->prepare(g, &p, &err), &err);
  put_operands(&m, data, how);
  void *scratch = add_block(&m, NULL, p.scratch_bytes, 0);
  assert_ok(run_in(&m, kernel->run, p.state, scratch, &err), &err);
  for (uint32_t i = 0; i < g->in_count; i++) {
    unsigned char *now = fetch(&m, i, (int32_t)i != how.in_place);
    if ((int32_t)i == how.in_place)
      out[0] = now;
    else
      free(now);
  }
  for (uint32_t o = how.in_place >= 0; o < g->out_count; o++)
    out[o] = fetch(&m, g->in_count + o, false);
  close_memory(&m);
  if (kernel->release != NULL) kernel->release(p.state);
  weir_arena_release(&arena);
}

/* What a run needs, for tries in which prepare may fail. */
static size_t scratch_of(gpu_world *w, const weir_group_kernel_def *kernel,
                         const weir_group *group) {
  weir_arena arena;
  weir_error err = WEIR_ERROR_INIT;
  weir_arena_init(&arena, weir_allocator_system());
  weir_prepared p = {
      .arena = &arena, .alloc = weir_allocator_system(), .device = w->device};
  assert_ok(kernel->prepare(group, &p, &err), &err);
  if (kernel->release != NULL) kernel->release(p.state);
  weir_arena_release(&arena);
  return p.scratch_bytes;
}

/* One try with the |k|-th call of CUDA failing; whether it came that far. */
static bool fail_call(gpu_world *w, const weir_group_kernel_def *kernel,
                      const group_data *data, size_t scratch_bytes,
                      uint64_t k) {
  memory m = {.w = w};
  weir_error err = WEIR_ERROR_INIT;
  weir_arena arena;
  weir_arena_init(&arena, weir_allocator_system());
  weir_prepared p = {
      .arena = &arena, .alloc = weir_allocator_system(), .device = w->device};
  put_operands(&m, data, (group_how){.in_place = -1});
  void *scratch = add_block(&m, NULL, scratch_bytes, 0);
  assert_ok(gpu_world_wait(w, &err), &err);
  w->standin->fail_at(k, kInvalid);
  weir_status s = kernel->prepare(data->group, &p, &err);
  bool prepared = s == WEIR_OK;
  if (prepared) s = run_in(&m, kernel->run, p.state, scratch, &err);
  w->standin->fail_at(0, 0);
  weir_error late = WEIR_ERROR_INIT;
  (void)gpu_world_wait(w, &late);
  close_memory(&m);
  if (s != WEIR_OK) assert_string_equal(err.id, "W5001");
  if (prepared && kernel->release != NULL) kernel->release(p.state);
  weir_arena_release(&arena);
  return s != WEIR_OK;
}

/* The same with the |k|-th allocation of prepare. */
static bool fail_allocation(gpu_world *w, const weir_group_kernel_def *kernel,
                            const weir_group *group, bool sizes_only,
                            uint64_t k) {
  weir_counted_allocator counted;
  weir_arena arena;
  weir_error err = WEIR_ERROR_INIT;
  weir_counted_allocator_init(&counted, NULL);
  counted.fail_at = k;
  weir_arena_init(&arena, &counted.base);
  weir_prepared p = {.arena = &arena,
                     .alloc = &counted.base,
                     .device = sizes_only ? NULL : w->device,
                     .sizes_only = sizes_only};
  weir_status s = kernel->prepare(group, &p, &err);
  if (s == WEIR_OK && kernel->release != NULL) kernel->release(p.state);
  weir_arena_release(&arena);
  assert_int_equal(atomic_load(&counted.live_blocks), 0);
  if (s != WEIR_OK) assert_int_equal(s, WEIR_RESOURCE_EXHAUSTED);
  return s != WEIR_OK;
}

int group_run_failing(gpu_world *w, const weir_group_kernel_def *kernel,
                      const group_data *data) {
  int failed = 0;
  size_t scratch_bytes = scratch_of(w, kernel, data->group);
  for (int sizes = 0; sizes < 2; sizes++)
    for (uint64_t k = 1; fail_allocation(w, kernel, data->group, sizes == 1, k);
         k++)
      failed++;
  if (w->standin == NULL) return failed;
  for (uint64_t k = 1; fail_call(w, kernel, data, scratch_bytes, k); k++)
    failed++;
  return failed;
}
