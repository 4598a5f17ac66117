/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/instr_loop.h"

#include <assert.h>
#include <string.h>

#include "kernels/gpu/move/bytes.h"
#include "runtime/base/size.h"
#include "runtime/exec/program/instr_bytes.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/frame.h"
#include "runtime/exec/run/run.h"

/* LOOP: scan and while.
 *
 * A carried value has two places, its output and one in scratch memory; odd and
 * even turns write one each, counted from the end, so that the last turn writes
 * the output. Or, where a stack holds all its values anyway, its places are the
 * slices of that stack. A while loop does not know its last turn: it counts
 * from the beginning, and a value that ends in scratch is copied once. Slices
 * along the first axis are views, where they are aligned as kernels want them;
 * others are gathered and scattered by runs.
 *
 * On a GPU the same calls put a turn's work into the queue: places are its
 * memory, and turns that a condition or a count decides about are waited for.
 *
 * Invariant: a turn never writes where it reads a carried value. Cost of a turn
 * beside its body: O(carried + scanned + stacked) pointers, and the bytes of
 * slices that are not views. */

typedef struct loop_part {
  size_t bytes; /* of a slice or a carried value */
  size_t outer, inner;
  size_t scratch; /* where its second place or its slice is; 0: nowhere */
  uint32_t link;  /* carried: the stack it lies in; stacks: stack_from */
} loop_part;

typedef struct loop_state {
  uint32_t child;
  uint32_t first, carried, scanned, captured, stacked, in_count;
  int64_t length;
  bool reverse, counted, conditional, draws;
  loop_part *parts; /* carried, scanned, stacked */
} loop_state;

/* Scratch begins with the condition's flag and the step of a turn's random ops
 * on a GPU, so no part of the loop has offset 0, which means "nowhere". */
enum { kGoing = 0, kStep = 8, kFlagBytes = 64 };

typedef struct loop_run {
  const weir_args *args;
  weir_args inner; /* its bodies' */
  weir_exec_ctx ctx;
  weir_gpu_run gpu; /* with the turn's step, if bodies draw */
  const loop_state *state;
  weir_frame *cond, *body;
  char *scratch;
  void *const *out; /* carried, turns, stacks */
  uint32_t body_out;
  int64_t turns;
} loop_run;

static const loop_part *scanned_part(const loop_state *s, uint32_t i) {
  return &s->parts[s->carried + i];
}

static const loop_part *stack_part(const loop_state *s, uint32_t i) {
  return &s->parts[s->carried + s->scanned + i];
}

static char *stack_at(const loop_run *r, uint32_t i) {
  const loop_state *s = r->state;
  return r->out[s->carried + (s->conditional ? 1 : 0) + i];
}

/* Slice |t| of |whole|, as rows: to |slice| or from there. */
static weir_status move_slice(const loop_run *r, const loop_part *p,
                              char *whole, int64_t t, char *slice, bool into) {
  size_t row = (size_t)r->state->length * p->inner;
  char *at = whole + (size_t)t * p->inner;
  const weir_instr_rows rows = {.bytes = p->inner,
                                .src_step = into ? p->inner : row,
                                .dst_step = into ? row : p->inner,
                                .count = p->outer};
  return weir_instr_copy_rows(r->args, &rows, into ? at : slice,
                              into ? slice : at);
}

/* Pointers that do not change from turn to turn. */
static void set_fixed(loop_run *r) {
  const loop_state *s = r->state;
  void *const *in = r->args->io + s->first;
  uint32_t at = s->carried + s->scanned;
  for (uint32_t i = 0; i < s->captured; i++) {
    weir_frame_set_external(r->body, at + i, in[at + i]);
    if (s->conditional)
      weir_frame_set_external(r->cond, s->carried + i, in[at + i]);
  }
  r->body_out = at + s->captured;
  if (s->conditional)
    weir_frame_set_external(r->cond, s->carried + s->captured,
                            r->scratch + kGoing);
  for (uint32_t i = 0; i < s->scanned; i++)
    if (scanned_part(s, i)->scratch != 0)
      weir_frame_set_external(r->body, s->carried + i,
                              r->scratch + scanned_part(s, i)->scratch);
}

/* The slice that turn |turn| reads and writes. */
static int64_t slice_of(const loop_run *r, int64_t turn) {
  return r->state->reverse ? r->turns - 1 - turn : turn;
}

/* Where carried value |i| is after |turns| turns. */
static char *place_after(const loop_run *r, uint32_t i, int64_t turns) {
  const loop_state *s = r->state;
  const loop_part *p = &s->parts[i];
  if (turns == 0) return r->args->io[s->first + i];
  if (p->link != WEIR_NO_INDEX)
    return stack_at(r, p->link) + (size_t)slice_of(r, turns - 1) * p->bytes;
  int64_t left = s->conditional ? turns - 1 : r->turns - turns;
  assert(left >= 0);
  return left % 2 == 0 ? r->out[i] : r->scratch + p->scratch;
}

static weir_status set_turn(const loop_run *r, int64_t turn) {
  const loop_state *s = r->state;
  void *const *in = r->args->io + s->first;
  int64_t t = slice_of(r, turn);
  uint32_t out = r->body_out;
  for (uint32_t i = 0; i < s->carried; i++) {
    weir_frame_set_external(r->body, i, place_after(r, i, turn));
    weir_frame_set_external(r->body, out++, place_after(r, i, turn + 1));
  }
  for (uint32_t i = 0; i < s->scanned; i++) {
    const loop_part *p = scanned_part(s, i);
    char *whole = in[s->carried + i];
    if (p->scratch != 0)
      WEIR_TRY(move_slice(r, p, whole, t, r->scratch + p->scratch, false));
    else
      weir_frame_set_external(r->body, s->carried + i,
                              whole + (size_t)t * p->bytes);
  }
  for (uint32_t i = 0; i < s->stacked; i++) {
    const loop_part *p = stack_part(s, i);
    if (p->link != WEIR_NO_INDEX) continue;
    char *slice = p->scratch != 0 ? r->scratch + p->scratch
                                  : stack_at(r, i) + (size_t)t * p->bytes;
    weir_frame_set_external(r->body, out++, slice);
  }
  return WEIR_OK;
}

/* After the body: slices that it did not write into their stack are copied
 * there. A second stack of the same carried value is among them: the value has
 * one place. */
static weir_status end_turn(const loop_run *r, int64_t turn) {
  const loop_state *s = r->state;
  for (uint32_t i = 0; i < s->stacked; i++) {
    const loop_part *p = stack_part(s, i);
    char *slice = p->link != WEIR_NO_INDEX ? place_after(r, p->link, turn + 1)
                  : p->scratch != 0        ? r->scratch + p->scratch
                                           : NULL;
    if (slice == NULL) continue;
    /* The stack that the carried value lies in has it already. */
    if (p->link != WEIR_NO_INDEX && s->parts[p->link].link == i) continue;
    WEIR_TRY(move_slice(r, p, stack_at(r, i), slice_of(r, turn), slice, true));
  }
  return WEIR_OK;
}

static weir_status ask_condition(const loop_run *r, int64_t turn, bool *going) {
  const loop_state *s = r->state;
  bool over;
  uint8_t flag;
  for (uint32_t i = 0; i < s->carried; i++)
    weir_frame_set_external(r->cond, i, place_after(r, i, turn));
  WEIR_TRY(weir_frame_run_turn(r->cond, &r->inner, slice_of(r, turn)));
  WEIR_TRY(weir_instr_ask(r->args, r->scratch + kGoing, 1, &flag, &over));
  *going = flag != 0 && !over;
  return WEIR_OK;
}

static weir_status one_turn(const loop_run *r, int64_t turn, bool *going) {
  const loop_state *s = r->state;
  if (s->draws && r->args->ctx->gpu != NULL)
    WEIR_TRY(weir_gpu_turn_step(r->args, (uint64_t *)(r->scratch + kStep),
                                r->args->ctx->gpu->step, slice_of(r, turn)));
  if (s->conditional) WEIR_TRY(ask_condition(r, turn, going));
  if (!*going) return WEIR_OK;
  WEIR_TRY(set_turn(r, turn));
  WEIR_TRY(weir_frame_run_turn(r->body, &r->inner, slice_of(r, turn)));
  return end_turn(r, turn);
}

/* Slices that no turn wrote are zeros. */
static weir_status clear_rest(const loop_run *r, int64_t made) {
  const loop_state *s = r->state;
  size_t rest = (size_t)(s->length - made);
  for (uint32_t i = 0; rest > 0 && i < s->stacked; i++) {
    const loop_part *p = stack_part(s, i);
    size_t row = (size_t)s->length * p->inner;
    for (size_t o = 0; o < p->outer; o++)
      WEIR_TRY(weir_instr_zero(
          r->args, stack_at(r, i) + o * row + (size_t)made * p->inner,
          rest * p->inner));
  }
  return WEIR_OK;
}

/* The turns that were made are known: outputs get what is elsewhere. */
static weir_status end_loop(const loop_run *r, int64_t made) {
  const loop_state *s = r->state;
  for (uint32_t i = 0; i < s->carried; i++) {
    const char *last = place_after(r, i, made);
    if (last != r->out[i])
      WEIR_TRY(
          weir_instr_copy_bytes(r->args, r->out[i], last, s->parts[i].bytes));
  }
  if (s->conditional)
    WEIR_TRY(weir_instr_put_i64(r->args, r->out[s->carried], made));
  return clear_rest(r, made);
}

/* On a GPU bodies draw from the turn's step, which is in its memory. */
static void lend_step(loop_run *r) {
  r->inner = *r->args;
  if (r->args->ctx->gpu == NULL || !r->state->draws) return;
  r->gpu = *r->args->ctx->gpu;
  r->gpu.step = (const uint64_t *)(r->scratch + kStep);
  r->ctx = *weir_exec_of(r->args);
  r->ctx.base.gpu = &r->gpu;
  r->inner.ctx = &r->ctx.base;
}

/* The count of turns; a GPU is asked for it. */
static weir_status count_turns(loop_run *r, bool *over) {
  const loop_state *s = r->state;
  int64_t count;
  WEIR_TRY(weir_instr_ask(r->args, r->args->io[0], sizeof count, &count, over));
  r->turns = count < 0 ? 0 : count < s->length ? count : s->length;
  return WEIR_OK;
}

static weir_status loop_run_all(const weir_args *args) {
  const loop_state *s = args->state;
  weir_frame **children = &weir_exec_of(args)->frame->children[s->child];
  loop_run r = {.args = args,
                .state = s,
                .cond = children[0],
                .body = children[s->conditional ? 1 : 0],
                .scratch = args->scratch,
                .out = args->io + s->in_count,
                .turns = s->length < 0 ? INT64_MAX : s->length};
  bool over = false, going = true;
  if (s->counted) WEIR_TRY(count_turns(&r, &over));
  if (over) return WEIR_OK;
  lend_step(&r);
  set_fixed(&r);
  int64_t turn = 0;
  for (; turn < r.turns; turn++) {
    WEIR_TRY(one_turn(&r, turn, &going));
    if (!going) break;
  }
  return end_loop(&r, turn);
}

/* ---- Making one */

static bool take_scratch(size_t bytes, size_t *total, size_t *at) {
  *at = *total;
  return weir_size_add(*total, bytes, total) &&
         weir_size_align(*total, 64, total);
}

static bool fill_parts(const weir_loop_spec *loop, loop_state *s,
                       size_t *total) {
  bool ok = true;
  for (uint32_t i = 0; i < s->carried; i++)
    s->parts[i] =
        (loop_part){.bytes = loop->carried_bytes[i], .link = WEIR_NO_INDEX};
  for (uint32_t i = 0; i < s->scanned + s->stacked; i++) {
    bool stack = i >= s->scanned;
    loop_part *p = &s->parts[s->carried + i];
    *p = (loop_part){
        .outer = loop->slices[i].outer,
        .inner = loop->slices[i].inner,
        .link = stack ? loop->stack_from[i - s->scanned] : WEIR_NO_INDEX};
    ok = ok && weir_size_mul(p->outer, p->inner, &p->bytes);
    bool view = p->outer == 1 && (!loop->aligned || p->bytes % 16 == 0);
    uint32_t *from = p->link != WEIR_NO_INDEX ? &s->parts[p->link].link : NULL;
    if (from != NULL && *from == WEIR_NO_INDEX && view) *from = i - s->scanned;
    if (!view && from == NULL)
      ok = ok && take_scratch(p->bytes, total, &p->scratch);
  }
  for (uint32_t i = 0; i < s->carried; i++)
    if (s->parts[i].link == WEIR_NO_INDEX)
      ok = ok && take_scratch(s->parts[i].bytes, total, &s->parts[i].scratch);
  return ok;
}

/* A quarter of the range, so that sums over instructions do not overflow. */
static int64_t total_of(int64_t turns, int64_t each) {
  int64_t product;
  return __builtin_mul_overflow(turns, each, &product) ? INT64_MAX / 4
                                                       : product;
}

weir_status weir_instr_loop(weir_program_builder *builder,
                            const weir_loop_spec *loop, weir_instr_spec *spec) {
  weir_arena *arena = weir_program_builder_arena(builder);
  loop_state *s = weir_arena_array(arena, 1, sizeof *s);
  size_t count = (size_t)loop->carried + loop->scanned + loop->stacked;
  loop_part *parts = weir_arena_array(arena, count, sizeof *parts);
  size_t total = kFlagBytes;
  if (s == NULL || parts == NULL) {
    builder->no_memory = true;
    return WEIR_RESOURCE_EXHAUSTED;
  }
  *s = (loop_state){.first = loop->counted ? 1 : 0,
                    .carried = loop->carried,
                    .scanned = loop->scanned,
                    .captured = loop->captured,
                    .stacked = loop->stacked,
                    .in_count = spec->in_count,
                    .length = loop->length,
                    .reverse = loop->reverse,
                    .counted = loop->counted,
                    .conditional = loop->conditional,
                    .parts = parts};
  for (uint32_t k = 0; k < spec->body_count; k++)
    s->draws |= spec->bodies[k]->draws;
  if (!fill_parts(loop, s, &total)) total = SIZE_MAX; /* finish refuses it */
  /* For estimates: a while loop rarely reaches its limit, so 10 at most. */
  int64_t turns = loop->length < 0                         ? 10
                  : loop->conditional && loop->length > 10 ? 10
                                                           : loop->length;
  const weir_program *body = spec->bodies[loop->conditional ? 1 : 0];
  spec->kind = WEIR_INSTR_LOOP;
  spec->state = s;
  spec->run = loop_run_all;
  spec->child = &s->child;
  spec->scratch_bytes = total;
  int64_t turn_ns = body->cost_ns;
  weir_sum_add(&turn_ns, 50);
  spec->cost_ns = total_of(turns, turn_ns);
  spec->any_time = loop->length < 0 || loop->conditional;
  spec->asks = spec->checks = loop->conditional || loop->counted;
  int64_t calls = total_of(turns, weir_program_calls(body));
  spec->calls = calls < UINT32_MAX ? (uint32_t)calls : UINT32_MAX;
  spec->flops = total_of(turns, body->flops);
  spec->bytes = total_of(turns, body->bytes);
  return WEIR_OK;
}
