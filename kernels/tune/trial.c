/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels run one after the other in each round, so that what else the machine
 * does meets all of them; a kernel's time is its quickest run, which nothing
 * can make too short. */
#include "kernels/tune/trial.h"

#include <string.h>

#include "runtime/base/size.h"

enum { ROUNDS = 5, MOST_ROUNDS = 200, IMAGES = 16 };
enum { ENOUGH_NS = 50 * 1000 * 1000 };

typedef struct runner {
  weir_prepared prepared;
  void *scratch;
  bool ready;
} runner;

typedef struct table {
  const weir_env *env;
  const weir_trial *trial;
  weir_arena arena;
  runner runners[WEIR_TRIAL_KERNELS];
  const weir_operand *in, *out;
  uint32_t in_count, out_count;
  void **io;
} table;

static void serial(void *self, int64_t blocks, weir_block_fn fn, void *arg) {
  (void)self;
  for (int64_t b = 0; b < blocks; b++) fn(arg, b, 0);
}

/* ---- Operands */

/* Floats in [-1, 1]; zeros are an index, a step and a count that all take. */
static void fill(const weir_operand *o, void *memory, size_t bytes) {
  uint64_t state = 1;
  memset(memory, 0, bytes);
  size_t size = weir_dtype_size(o->dtype);
  if (o->dtype != WEIR_F32 && o->dtype != WEIR_F64) return;
  for (size_t i = 0; i < bytes / size; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double x = (double)(state >> 40) / (1 << 23) - 1;
    float narrow = (float)x;
    if (o->dtype == WEIR_F32)
      memcpy((char *)memory + i * size, &narrow, size);
    else
      memcpy((char *)memory + i * size, &x, size);
  }
}

/* Images and channels in blocks have room for whole blocks. */
static bool bytes_of(const weir_operand *o, size_t *out) {
  size_t elements = (size_t)o->elements;
  int channels = weir_layout_channels(o->layout);
  if (o->layout != WEIR_LAYOUT_PLAIN && elements > 0) {
    int64_t side = o->dims[channels > 0 ? 1 : 0];
    int64_t padded = weir_layout_padded(side, channels > 0 ? channels : IMAGES);
    if (!weir_size_mul(elements / (size_t)side, (size_t)padded, &elements))
      return false;
  }
  return weir_size_mul(elements, weir_dtype_size(o->dtype), out) &&
         weir_size_add(*out, 64, out);
}

static weir_status make_operand(table *t, const weir_operand *o, bool is_input,
                                void **out, weir_error *err) {
  size_t bytes;
  *out = NULL;
  if (o->dtype == WEIR_DTYPE_NONE) return WEIR_OK;
  if (is_input && o->value != NULL) {
    *out = (void *)(uintptr_t)o->value;
    return WEIR_OK;
  }
  if (!bytes_of(o, &bytes)) return weir_fail_memory(err, SIZE_MAX);
  *out = weir_alloc_aligned(t->env->alloc, bytes, 64);
  if (*out == NULL) return weir_fail_memory(err, bytes);
  fill(o, *out, bytes);
  return WEIR_OK;
}

static weir_status make_operands(table *t, weir_error *err) {
  uint32_t count = t->in_count + t->out_count;
  t->io = weir_alloc_array(t->env->alloc, count + 1, sizeof *t->io);
  if (t->io == NULL) return weir_fail_memory(err, count * sizeof *t->io);
  memset(t->io, 0, (count + 1) * sizeof *t->io);
  for (uint32_t i = 0; i < t->in_count; i++)
    WEIR_TRY(make_operand(t, &t->in[i], true, &t->io[i], err));
  for (uint32_t i = 0; i < t->out_count; i++)
    WEIR_TRY(make_operand(t, &t->out[i], false, &t->io[t->in_count + i], err));
  return WEIR_OK;
}

static void free_operands(table *t) {
  for (uint32_t i = 0; t->io != NULL && i < t->in_count + t->out_count; i++)
    if (i >= t->in_count || t->in[i].value == NULL)
      weir_free(t->env->alloc, t->io[i]);
  weir_free(t->env->alloc, t->io);
}

/* ---- Kernels */

static weir_status prepare_one(table *t, int i, weir_error *err) {
  const weir_trial_kernel *k = &t->trial->kernels[i];
  runner *r = &t->runners[i];
  r->prepared = (weir_prepared){.arena = &t->arena, .alloc = t->env->alloc};
  if (k->group != NULL)
    WEIR_TRY(k->group->prepare(t->trial->group, &r->prepared, err));
  else if (k->kernel->prepare != NULL)
    WEIR_TRY(k->kernel->prepare(t->trial->call, &r->prepared, err));
  else
    r->prepared.state = (void *)(uintptr_t)t->trial->call;
  r->ready = true;
  size_t bytes = weir_scratch_align(r->prepared.scratch_bytes) +
                 weir_scratch_align(r->prepared.worker_scratch_bytes) + 64;
  r->scratch = weir_alloc_aligned(t->env->alloc, bytes, 64);
  return r->scratch != NULL ? WEIR_OK : weir_fail_memory(err, bytes);
}

static void release_one(table *t, int i) {
  const weir_trial_kernel *k = &t->trial->kernels[i];
  runner *r = &t->runners[i];
  void (*release)(void *) = k->group != NULL             ? k->group->release
                            : k->kernel->prepare != NULL ? k->kernel->release
                                                         : NULL;
  if (r->ready && release != NULL) release(r->prepared.state);
  weir_free(t->env->alloc, r->scratch);
}

/* A run's time; INT64_MAX: it failed. */
static int64_t time_one(table *t, int i) {
  const weir_run_ctx ctx = {.parallel_for = serial, .workers = 1};
  const weir_trial_kernel *k = &t->trial->kernels[i];
  const weir_clock *clock = t->env->clock;
  weir_error err = WEIR_ERROR_INIT;
  const weir_args args = {.io = t->io,
                          .state = t->runners[i].prepared.state,
                          .scratch = t->runners[i].scratch,
                          .ctx = &ctx,
                          .err = &err};
  int64_t begin = clock->now_ns(clock->self);
  weir_status s =
      k->group != NULL ? k->group->run(&args) : k->kernel->run(&args);
  int64_t took = clock->now_ns(clock->self) - begin;
  return s == WEIR_OK ? took : INT64_MAX;
}

/* The first round is not counted: caches and pages come in. */
static void time_all(table *t, weir_trial *trial) {
  const weir_clock *clock = t->env->clock;
  int64_t begin = clock->now_ns(clock->self);
  for (int i = 0; i < trial->count; i++) trial->kernels[i].ns = INT64_MAX;
  for (int round = 0; round <= MOST_ROUNDS; round++) {
    bool enough = clock->now_ns(clock->self) - begin > ENOUGH_NS;
    if (round > ROUNDS && enough) break;
    for (int i = 0; i < trial->count; i++) {
      int64_t took = time_one(t, i);
      if (round > 0 && took < trial->kernels[i].ns) trial->kernels[i].ns = took;
    }
  }
}

static int winner_of(const weir_trial *trial) {
  int best = 0;
  for (int i = 1; i < trial->count; i++)
    if (trial->kernels[i].ns < trial->kernels[best].ns) best = i;
  int64_t first = trial->kernels[0].ns;
  return trial->kernels[best].ns < first - first / 20 ? best : 0;
}

weir_status weir_trial_run(const weir_env *env, weir_trial *trial,
                           int *out_winner, weir_error *err) {
  table t = {.env = env, .trial = trial};
  const bool alone = trial->call != NULL;
  t.in = alone ? trial->call->in : trial->group->in;
  t.out = alone ? trial->call->out : trial->group->out;
  t.in_count = alone ? trial->call->in_count : trial->group->in_count;
  t.out_count = alone ? trial->call->out_count : trial->group->out_count;
  weir_arena_init(&t.arena, env->alloc);
  *out_winner = 0;
  weir_status s = make_operands(&t, err);
  for (int i = 0; i < trial->count && s == WEIR_OK; i++)
    s = prepare_one(&t, i, err);
  if (s == WEIR_OK) {
    time_all(&t, trial);
    *out_winner = winner_of(trial);
  }
  for (int i = 0; i < trial->count; i++) release_one(&t, i);
  free_operands(&t);
  weir_arena_release(&t.arena);
  return s;
}
