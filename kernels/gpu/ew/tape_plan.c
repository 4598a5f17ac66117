/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a tape of a group's calls.
 *
 * Passes: each call becomes a step that reads inputs and earlier steps; the
 * dimensions that all inputs walk as one are joined; a result that is read by
 * another step than the next gets a place in shared memory until its last
 * reader. Invariant: a step reads its operands before its result is kept or
 * written, so both may take the place of one of them. */
#include "kernels/gpu/ew/tape_plan.h"

#include <assert.h>
#include <string.h>

#include "kernels/cuda/ew.h"
#include "kernels/gpu/ew/ops.h"
#include "kernels/gpu/space.h"
#include "kernels/registry.h"

enum { kDtypes = WEIR_F32 | WEIR_BOOL | WEIR_U8, kNoStep = -1 };

/* An operand of a step: a step before it, or else an input. */
typedef struct source {
  bool step;
  int32_t index;
} source;

typedef struct builder {
  const weir_group *group;
  const weir_gpu_tape_part *part;
  weir_gpu_tape *tape;
  weir_why *why;
  source from[WEIR_TAPE_STEPS][3];
  int32_t step_of[WEIR_TAPE_STEPS]; /* by call, or kNoStep */
  const weir_operand *in[WEIR_TAPE_INPUTS];
} builder;

/* ---- Steps */

static bool is_op(const weir_call *call, const char *name) {
  return strcmp(call->op->name, name) == 0;
}

/* The step's function; false: tapes have none. */
static bool set_function(const weir_call *call, weir_tape_step *step) {
  bool is_f32 = call->in[0].dtype == WEIR_F32;
  double p[2] = {0, 0};
  int32_t op = 0;
  step->kind = WEIR_TAPE_UNARY;
  if (is_op(call, "cast")) {
    step->kind = WEIR_TAPE_COPY;
    return call->out[0].dtype == WEIR_F32;
  } else if (is_op(call, "where")) {
    step->kind = WEIR_TAPE_WHERE;
  } else if ((op = weir_gpu_compare_op(call)) >= 0) {
    step->kind = WEIR_TAPE_COMPARE;
  } else if (is_f32 && (op = weir_gpu_binary_op(call)) >= 0) {
    step->kind = WEIR_TAPE_BINARY;
  } else if (!is_f32 || (op = weir_gpu_unary_op(call, p)) < 0) {
    return false;
  }
  step->op = (int8_t)op;
  for (int k = 0; k < 2; k++) step->p[k] = (float)p[k];
  return true;
}

/* The input that reads operand |io| of the run; -1: too many. */
static int32_t add_input(builder *b, uint32_t io, const weir_operand *x) {
  weir_gpu_tape *t = b->tape;
  for (uint32_t i = 0; i < t->in_count; i++)
    if (t->in[i] == io) return (int32_t)i;
  if (t->in_count == WEIR_TAPE_INPUTS) return -1;
  t->in[t->in_count] = io;
  b->in[t->in_count] = x;
  t->args.in[t->in_count].byte = x->dtype != WEIR_F32;
  return (int32_t)t->in_count++;
}

static bool find_source(builder *b, uint32_t c, uint32_t i, source *out) {
  const weir_operand *x = &b->group->calls[c].in[i];
  weir_group_ref ref = b->group->refs[c][i];
  uint32_t io = ref.index;
  if ((x->dtype & kDtypes) == 0)
    return weir_no(b->why, "%s of %s", b->group->calls[c].op->name,
                   weir_dtype_name(x->dtype));
  if (ref.member && (b->part->done >> ref.index & 1) == 0) {
    if (ref.index >= c) return weir_no(b->why, "calls are not in order");
    *out = (source){true, b->step_of[ref.index]};
    return true;
  }
  if (ref.member) {
    assert(ref.index == b->part->done_by && b->part->done_io >= 0);
    io = (uint32_t)b->part->done_io;
  }
  *out = (source){false, add_input(b, io, x)};
  return out->index >= 0 ||
         weir_no(b->why, "more than %d inputs", WEIR_TAPE_INPUTS);
}

static bool same_dims(const weir_operand *a, const weir_operand *b) {
  return a->rank == b->rank &&
         memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static bool add_step(builder *b, uint32_t c) {
  const weir_call *call = &b->group->calls[c];
  int32_t s = b->tape->args.step_count;
  weir_tape_step *step = &b->tape->args.steps[s];
  *step = (weir_tape_step){.keep = -1, .out = -1};
  if (!set_function(call, step) || call->in_count > 3)
    return weir_no(b->why, "%s of %s", call->op->name,
                   weir_dtype_name(call->in[0].dtype));
  if (!same_dims(&call->out[0], &b->group->out[0]))
    return weir_no(b->why, "%s has another shape", call->op->name);
  step->count = (int8_t)call->in_count;
  for (uint32_t i = 0; i < call->in_count; i++)
    if (!find_source(b, c, i, &b->from[s][i])) return false;
  b->step_of[c] = s;
  b->tape->args.step_count++;
  return true;
}

static bool add_outputs(builder *b) {
  const weir_group *g = b->group;
  weir_gpu_tape *t = b->tape;
  if (g->out_count > WEIR_TAPE_OUTPUTS)
    return weir_no(b->why, "more than %d outputs", WEIR_TAPE_OUTPUTS);
  for (uint32_t o = 0; o < g->out_count; o++) {
    if ((b->part->done >> g->out_calls[o] & 1) != 0) continue;
    if (g->out[o].dtype != WEIR_F32)
      return weir_no(b->why, "a result of %s",
                     weir_dtype_name(g->out[o].dtype));
    t->args.steps[b->step_of[g->out_calls[o]]].out = (int8_t)t->out_count;
    t->out[t->out_count++] = g->in_count + o;
  }
  return true;
}

/* ---- Dimensions */

/* Dimensions while they are joined, the first one first. */
typedef struct joined {
  int32_t rank;
  int64_t dims[WEIR_MAX_RANK], strides[WEIR_TAPE_INPUTS][WEIR_MAX_RANK];
} joined;

static void join_dim(joined *j, uint32_t count, int64_t dim,
                     int64_t (*strides)[WEIR_MAX_RANK], int32_t d) {
  int32_t last = j->rank - 1;
  bool join = j->rank > 0;
  for (uint32_t k = 0; k < count && join; k++)
    join = j->strides[k][last] == strides[k][d] * dim;
  if (!join) last = j->rank++;
  j->dims[last] = join ? j->dims[last] * dim : dim;
  for (uint32_t k = 0; k < count; k++) j->strides[k][last] = strides[k][d];
}

/* An operand that goes on with the last dimension has its rows one after the
 * other, so that with fours in a row each row begins with one. */
static void set_fours(weir_gpu_tape *t, int64_t last_dim) {
  t->fours = t->args.n >= 4 && (t->args.rank == 1 || last_dim % 4 == 0);
  for (int32_t s = 0; s < t->args.step_count; s++)
    if (t->args.steps[s].kind == WEIR_TAPE_BINARY &&
        t->args.steps[s].op == WEIR_BINARY_POW)
      t->fours = false;
  t->last_dim = weir_divisor_of(last_dim / 4);
}

static bool set_dims(builder *b) {
  const weir_operand *y = &b->group->out[0];
  weir_gpu_tape *t = b->tape;
  int64_t strides[WEIR_TAPE_INPUTS][WEIR_MAX_RANK] = {{0}};
  joined j = {.rank = 0};
  if (y->elements > INT32_MAX) return weir_no(b->why, "2^31 elements or more");
  for (uint32_t k = 0; k < t->in_count; k++)
    weir_gpu_space_strides(b->in[k], y->rank, strides[k]);
  for (int32_t d = 0; d < y->rank; d++)
    if (y->dims[d] != 1) join_dim(&j, t->in_count, y->dims[d], strides, d);
  if (j.rank == 0) j.dims[j.rank++] = 1;
  if (j.rank > WEIR_TAPE_RANK)
    return weir_no(b->why, "more than %d dimensions", WEIR_TAPE_RANK);
  t->args.n = y->elements;
  t->args.rank = j.rank;
  for (int32_t d = 0; d < j.rank; d++) {
    int32_t from = j.rank - 1 - d;
    t->args.dims[d] = weir_divisor_of(j.dims[from]);
    for (uint32_t k = 0; k < t->in_count; k++)
      t->args.in[k].strides[d] = (int32_t)j.strides[k][from];
  }
  set_fours(t, j.dims[j.rank - 1]);
  return true;
}

/* ---- Places of results */

/* A result's last reader; |*kept| when one is not the next step. */
static int32_t last_reader(const builder *b, int32_t of, bool *kept) {
  int32_t last = of;
  *kept = false;
  for (int32_t s = of + 1; s < b->tape->args.step_count; s++)
    for (int8_t i = 0; i < b->tape->args.steps[s].count; i++)
      if (b->from[s][i].step && b->from[s][i].index == of) {
        last = s;
        *kept = *kept || s != of + 1;
      }
  return last;
}

static bool keep_results(builder *b) {
  int32_t free_from[WEIR_TAPE_KEPT] = {0}; /* the first step that may take it */
  weir_tape_args *a = &b->tape->args;
  for (int32_t s = 0; s < a->step_count; s++) {
    bool kept;
    int32_t last = last_reader(b, s, &kept);
    int8_t k = 0;
    if (!kept) continue;
    while (k < WEIR_TAPE_KEPT && free_from[k] > s) k++;
    if (k == WEIR_TAPE_KEPT)
      return weir_no(b->why, "more than %d values at one time", WEIR_TAPE_KEPT);
    a->steps[s].keep = k;
    free_from[k] = last;
  }
  return true;
}

static void set_operands(builder *b) {
  weir_tape_args *a = &b->tape->args;
  for (int32_t s = 0; s < a->step_count; s++)
    for (int8_t i = 0; i < a->steps[s].count; i++) {
      source from = b->from[s][i];
      int8_t at = (int8_t)from.index;
      if (from.step && from.index == s - 1)
        at = WEIR_TAPE_LAST;
      else if (from.step)
        at = (int8_t)(WEIR_TAPE_FIRST_KEPT - a->steps[from.index].keep);
      a->steps[s].from[i] = at;
    }
}

/* ---- All */

static uint32_t last_call(const weir_group *g) {
  uint32_t last = 0;
  for (uint32_t o = 0; o < g->out_count; o++)
    if (g->out_calls[o] > last) last = g->out_calls[o];
  return last;
}

bool weir_gpu_tape_build(const weir_group *group,
                         const weir_gpu_tape_part *part, weir_gpu_tape *out,
                         weir_why *why) {
  builder b = {.group = group, .part = part, .tape = out, .why = why};
  uint32_t last = last_call(group);
  *out = (weir_gpu_tape){.fours = false};
  if (last >= WEIR_TAPE_STEPS)
    return weir_no(why, "more than %d calls", WEIR_TAPE_STEPS);
  for (uint32_t c = 0; c <= last; c++)
    if ((part->done >> c & 1) == 0 && !add_step(&b, c)) return false;
  if (!add_outputs(&b) || !set_dims(&b) || !keep_results(&b)) return false;
  set_operands(&b);
  return true;
}

weir_status weir_gpu_tape_run(const weir_gpu_tape *tape,
                              const weir_args *args) {
  weir_tape_args a = tape->args;
  bool fours = tape->fours;
  for (uint32_t i = 0; i < tape->in_count; i++) {
    a.in[i].x = args->io[tape->in[i]];
    fours = fours && weir_gpu_four_aligned(a.in[i].x, a.in[i].byte ? 1 : 4);
  }
  for (uint32_t o = 0; o < tape->out_count; o++) {
    a.out[o] = args->io[tape->out[o]];
    fours = fours && weir_gpu_four_aligned(a.out[o], sizeof *a.out[o]);
  }
  a.fours = fours;
  if (fours) a.dims[0] = tape->last_dim;
  return weir_gpu_launch(args, WEIR_GPU_tape_f32,
                         weir_gpu_blocks(fours ? (a.n + 3) / 4 : a.n), &a,
                         sizeof a);
}
