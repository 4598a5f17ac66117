/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an element-wise program (ew.h) of the calls of a group.
 *
 * Passes: each call becomes a step with its tile function and inputs; dims are
 * joined; values that are no outputs get buffers; the space is cut into blocks.
 * Invariant: a step reads inputs and earlier steps only, and its buffer is none
 * of those it reads. Blocks follow from the shape and the number of steps.
 * Cost: steps x inputs, at build time. Scratch: 8 KiB for each value that is
 * alive at once and for each input that must be spread. */
#include "kernels/cpu/ew/ew_build.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/ew/ew.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/registry.h"

/* Sets |*out| to a limit of `clip` on integers; false where a float does not
 * hold it: steps carry their numbers as floats, and a rounded limit would clip
 * wrongly. */
static bool whole_limit(const weir_attr *limit, bool up, float *out) {
  if (limit->kind == WEIR_ATTR_NONE) return true;
  double whole = weir_attr_number(limit);
  whole = up ? ceil(whole) : floor(whole);
  *out = (float)whole;
  if ((double)*out != whole) return false;
  return limit->kind != WEIR_ATTR_INT ||
         (*out < 0x1p63f && (int64_t)*out == limit->i);
}

/* Sets the attributes of a step; the tile function's name may depend on them.
 * False when no tile function takes such a call. */
static bool step_attrs(const weir_call *call, weir_ew_step *step,
                       const char **name) {
  const char *op = call->op->name;
  *name = op;
  if (strcmp(op, "leaky_relu") == 0 || strcmp(op, "elu") == 0) {
    step->p[0] = (float)weir_call_attr(call, "alpha")->f;
  } else if (strcmp(op, "clip") == 0) {
    const weir_attr *low = weir_call_attr(call, "min");
    const weir_attr *high = weir_call_attr(call, "max");
    bool ints = !weir_dtype_is_float(call->in[0].dtype);
    step->p[0] = -INFINITY;
    step->p[1] = INFINITY;
    if (ints)
      return whole_limit(low, true, &step->p[0]) &&
             whole_limit(high, false, &step->p[1]) && step->p[0] <= step->p[1];
    if (low->kind != WEIR_ATTR_NONE) step->p[0] = (float)weir_attr_number(low);
    if (high->kind != WEIR_ATTR_NONE)
      step->p[1] = (float)weir_attr_number(high);
    return step->p[0] <= step->p[1];
  } else if (strcmp(op, "apply_sgd") == 0) {
    step->p[0] = (float)weir_call_attr(call, "l2")->f;
  } else if (strcmp(op, "gelu") == 0) {
    if (weir_sv_is(weir_call_attr(call, "approximate")->s, "tanh"))
      *name = "gelu_tanh";
  }
  return true;
}

static bool step_function(const weir_call *call, const weir_isa *isa,
                          weir_ew_step *step) {
  const char *name;
  if (!step_attrs(call, step, &name)) return false;
  bool where = strcmp(name, "where") == 0, cast = strcmp(name, "cast") == 0;
  unsigned dtype = call->in[where ? 1 : 0].dtype;
  unsigned target = cast ? call->out[0].dtype : 0;
  if (cast && dtype == WEIR_BOOL) dtype = WEIR_U8;
  if (cast && dtype == target)
    step->fn = weir_isa_tile(isa, "identity", dtype, 0);
  else
    step->fn = weir_isa_tile(isa, name, dtype, target);
  return step->fn != NULL;
}

bool weir_ew_unary(const weir_call *call, const weir_isa *isa, weir_tile_fn *fn,
                   float p[2]) {
  weir_ew_step step = {.fn = NULL};
  if (call->in_count != 1 || !(call->op->flags & WEIR_OP_ELEMENTWISE) ||
      !step_function(call, isa, &step))
    return false;
  *fn = step.fn;
  p[0] = step.p[0];
  p[1] = step.p[1];
  return true;
}

/* Strides of |operand| in the space of |rank| dims, 0 where it is repeated. */
static void full_strides(const weir_operand *operand, int32_t rank,
                         int64_t *strides) {
  int64_t stride = 1;
  for (int32_t d = 0; d < rank; d++) strides[d] = 0;
  for (int32_t d = operand->rank - 1; d >= 0; d--) {
    if (operand->dims[d] != 1) strides[d + rank - operand->rank] = stride;
    stride *= operand->dims[d];
  }
}

/* Joins neighbouring dims that every input walks as one: an input does if a
 * step along the outer dim equals all steps along the inner one, repeated
 * operands with two strides of 0 included. |keep| holds back the last dim. */
static void collapse(weir_ew *ew, const weir_operand *space, bool keep) {
  int32_t n = 0;
  for (int32_t d = 0; d < space->rank; d++) {
    bool last = keep && d == space->rank - 1;
    if (space->dims[d] == 1 && !last) continue;
    bool join = n > 0 && !last;
    for (int32_t i = 0; i < ew->in_count && join; i++) {
      const int64_t *s = ew->in[i].strides;
      join = s[n - 1] == s[d] * space->dims[d];
    }
    if (join) {
      ew->dims[n - 1] *= space->dims[d];
      for (int32_t i = 0; i < ew->in_count; i++)
        ew->in[i].strides[n - 1] = ew->in[i].strides[d];
    } else {
      ew->dims[n] = space->dims[d];
      for (int32_t i = 0; i < ew->in_count; i++)
        ew->in[i].strides[n] = ew->in[i].strides[d];
      n++;
    }
  }
  ew->rank = n;
}

/* At least two dims, the last one being the row: the loops of ew_run.c then
 * have no special case for a scalar or a vector. */
static void pad_rank(weir_ew *ew) {
  while (ew->rank < 2) {
    memmove(ew->dims + 1, ew->dims, (size_t)ew->rank * sizeof(int64_t));
    ew->dims[0] = 1;
    for (int32_t i = 0; i < ew->in_count; i++) {
      int64_t *s = ew->in[i].strides;
      memmove(s + 1, s, (size_t)ew->rank * sizeof(int64_t));
      s[0] = 0;
    }
    ew->rank++;
  }
  ew->row = ew->dims[ew->rank - 1];
  ew->rows = 1;
  for (int32_t d = 0; d < ew->rank - 1; d++) ew->rows *= ew->dims[d];
}

/* A plain operand beside blocks of |lanes| channels: a number for all, or one
 * for each channel, as [n, c / lanes, 1, 1, lanes]. */
static bool beside_channels(const weir_operand *operand, int lanes,
                            weir_operand *out, weir_why *why) {
  int64_t dims[4] = {1, 1, 1, 1};
  if (operand->elements == 1) return true;
  if (operand->rank > 4) return weir_no(why, "rows in, blocks out");
  memcpy(dims + 4 - operand->rank, operand->dims,
         (size_t)operand->rank * sizeof dims[0]);
  if (dims[2] != 1 || dims[3] != 1)
    return weir_no(why, "rows in, blocks of channels out");
  bool each = dims[1] != 1;
  if (each && dims[1] % lanes != 0)
    return weir_no(why, "rows in, blocks with empty lanes out");
  int64_t view[5] = {dims[0], each ? dims[1] / lanes : 1, 1, 1,
                     each ? lanes : 1};
  memcpy(out->dims, view, sizeof view);
  out->rank = 5;
  return true;
}

/* |operand| as it lies in a space of |layout|. In N16 the space is [n / 16, c,
 * h, w 16]; a plain operand fits if it is repeated over images and columns, as
 * its elements are not side by side 16 times. In blocks of channels it is
 * [n, c / 8, h, w, 8]. */
static bool as_it_lies(const weir_operand *operand, weir_layout layout,
                       weir_operand *out, weir_why *why) {
  bool plain = operand->layout == WEIR_LAYOUT_PLAIN;
  int lanes = weir_layout_channels(layout);
  *out = *operand;
  if (!plain && operand->layout != layout)
    return weir_no(why, "operands in different layouts");
  if (layout == WEIR_LAYOUT_PLAIN) return true;
  if (plain && lanes > 0) return beside_channels(operand, lanes, out, why);
  if (lanes > 0) {
    out->dims[1] = weir_layout_padded(operand->dims[1], lanes) / lanes;
    out->dims[4] = lanes;
    out->rank = 5;
    return true;
  }
  if (!plain) {
    out->dims[0] = (operand->dims[0] + 15) / 16;
    out->dims[3] *= 16;
    return true;
  }
  int32_t rank = operand->rank;
  if ((rank > 0 && operand->dims[rank - 1] != 1) ||
      (rank == 4 && operand->dims[0] != 1) || rank > 4)
    return weir_no(why, "rows in, N16 out");
  return true;
}

/* The rank of a space of |rank| dims as it lies. */
static int32_t rank_of(const weir_operand *space) {
  return weir_layout_channels(space->layout) > 0 ? 5 : space->rank;
}

static bool same_dims(const weir_operand *a, const weir_operand *b) {
  if (a->rank != b->rank) return false;
  return memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

/* The input that reads operand |io|, made when it is new; -1: too many. */
static int16_t add_input(weir_ew *ew, int32_t io, const weir_operand *operand,
                         int32_t rank) {
  for (int16_t i = 0; i < ew->in_count; i++)
    if (ew->in[i].io == io) return i;
  if (ew->in_count == WEIR_EW_INPUTS) return -1;
  weir_ew_input *in = &ew->in[ew->in_count];
  *in = (weir_ew_input){.io = io,
                        .bytes = (uint32_t)weir_dtype_size(operand->dtype),
                        .buffer = -1};
  full_strides(operand, rank, in->strides);
  return (int16_t)ew->in_count++;
}

/* Inputs of a call, optional ones that were left out not counted. */
static uint32_t input_count(const weir_call *call) {
  uint32_t n = call->in_count;
  while (n > 0 && call->in[n - 1].dtype == WEIR_DTYPE_NONE) n--;
  return n;
}

/* Remembers the learning rate of apply_sgd. */
static bool note_rate(weir_ew *ew, const weir_call *call,
                      const weir_group_ref *refs, weir_why *why) {
  if (strcmp(call->op->name, "apply_sgd") != 0) return true;
  if (refs[2].member || ew->rate_count == WEIR_EW_RATES)
    return weir_no(why, "more learning rates than are looked at");
  ew->rates[ew->rate_count++] =
      (weir_ew_rate){.call = call, .io = (int32_t)refs[2].index};
  return true;
}

/* Steps are numbered from WEIR_EW_INPUTS: how many inputs there
 * will be is not known yet. */
static bool add_step(weir_ew *ew, const weir_group *group, uint32_t c,
                     uint32_t first, int32_t anchor_io, const weir_isa *isa,
                     weir_why *why) {
  const weir_call *call = &group->calls[c];
  const weir_operand *space = &group->calls[group->call_count - 1].out[0];
  weir_ew_step *step = &ew->steps[ew->step_count];
  *step = (weir_ew_step){.io = -1, .buffer = -1};
  uint32_t count = input_count(call);
  if (!(call->op->flags & WEIR_OP_ELEMENTWISE) || count > 3)
    return weir_no(why, "%s is not element-wise", call->op->name);
  if (!note_rate(ew, call, group->refs[c], why)) return false;
  if (!same_dims(&call->out[0], space))
    return weir_no(why, "%s has another shape", call->op->name);
  if (!step_function(call, isa, step))
    return weir_no(why, "no tile function for %s of %s", call->op->name,
                   weir_dtype_name(call->in[0].dtype));
  step->count = (int16_t)count;
  step->bytes = (uint32_t)weir_dtype_size(call->out[0].dtype);
  for (uint32_t i = 0; i < count; i++) {
    weir_group_ref ref = group->refs[c][i];
    if (ref.member && ref.index >= first) {
      step->from[i] = (int16_t)(WEIR_EW_INPUTS + ref.index - first);
      continue;
    }
    int32_t io = ref.member ? anchor_io : (int32_t)ref.index;
    weir_operand lies = call->in[i];
    if (ref.member) lies.layout = space->layout;
    weir_operand view;
    if (!as_it_lies(&lies, space->layout, &view, why)) return false;
    step->from[i] = add_input(ew, io, &view, rank_of(space));
    if (step->from[i] < 0) return weir_no(why, "more than 16 inputs");
  }
  ew->step_count++;
  return true;
}

/* Gives each value that is not an output a buffer; one is free again after its
 * last reader, and never an operand's of the step that writes it, as tile
 * functions of other widths may not work in place. Buffers stay in the first
 * cache, so few of them matter more than their order. */
static void assign_buffers(weir_ew *ew) {
  int32_t last_use[WEIR_EW_STEPS] = {0}, free_after[WEIR_EW_STEPS];
  int32_t pool = 0;
  for (int32_t s = 0; s < ew->step_count; s++)
    for (int16_t i = 0; i < ew->steps[s].count; i++)
      if (ew->steps[s].from[i] >= WEIR_EW_INPUTS)
        last_use[ew->steps[s].from[i] - WEIR_EW_INPUTS] = s;
  for (int32_t s = 0; s < ew->step_count; s++) {
    weir_ew_step *step = &ew->steps[s];
    if (step->io >= 0) continue;
    int32_t b = 0;
    while (b < pool && free_after[b] >= s) b++;
    if (b == pool) pool++;
    free_after[b] = last_use[s] > s ? last_use[s] : s;
    assert(pool <= WEIR_EW_STEPS);
    step->buffer = b;
  }
  for (int32_t i = 0; i < ew->in_count; i++) {
    const int64_t *s = ew->in[i].strides + ew->rank - 2;
    bool whole = s[1] == 1 && s[0] == ew->row;
    bool one = s[1] == 0 && s[0] == 0;
    if (!whole && !one) ew->in[i].buffer = pool++;
  }
  ew->buffer_count = pool;
  ew->scratch_bytes = (size_t)pool * WEIR_EW_TILE * 8;
}

/* Blocks of about 64 Ki element steps each, never below eight tiles; spaces of
 * up to two blocks are one, as handing them over would cost more. */
static void cut(weir_ew *ew) {
  int64_t block = 65536 / (ew->step_count + 1);
  if (block < 8 * WEIR_EW_TILE) block = 8 * WEIR_EW_TILE;
  ew->block_cols = ew->row > block ? block : ew->row;
  ew->block_rows = ew->row > 0 ? block / ew->row : 1;
  if (ew->block_rows < 1) ew->block_rows = 1;
  if (ew->rows * ew->row <= 2 * block) {
    ew->block_cols = ew->row;
    ew->block_rows = ew->rows;
  }
  if (ew->block_cols < 1) ew->block_cols = 1;
  if (ew->block_rows < 1) ew->block_rows = 1;
  ew->col_blocks = (ew->row + ew->block_cols - 1) / ew->block_cols;
  ew->row_blocks = (ew->rows + ew->block_rows - 1) / ew->block_rows;
  assert(ew->block_rows > 0 && ew->block_cols > 0);
}

/* Notes which lanes have to be cleared. */
static void find_tail(weir_ew *ew, const weir_operand *space) {
  int lanes = weir_layout_channels(space->layout);
  if (lanes == 0 || space->dims[1] % lanes == 0) return;
  int64_t pixels = space->dims[2] * space->dims[3];
  ew->lanes = lanes;
  ew->there = (int32_t)(space->dims[1] % lanes);
  ew->tail = space->dims[1] / lanes * lanes * pixels;
  ew->image = weir_layout_padded(space->dims[1], lanes) * pixels;
}

static bool link_outputs(weir_ew *ew, const weir_group *group, uint32_t first,
                         weir_why *why) {
  weir_layout space = group->calls[group->call_count - 1].out[0].layout;
  for (uint32_t o = 0; o < group->out_count; o++) {
    weir_layout lies = group->out[o].layout;
    if (lies != space &&
        weir_layout_channels(lies) + weir_layout_channels(space) > 0)
      return weir_no(why, "outputs in different layouts");
    if (group->out_calls[o] < first) continue;
    ew->steps[group->out_calls[o] - first].io = (int32_t)(group->in_count + o);
  }
  return true;
}

bool weir_ew_build(const weir_group *group, uint32_t first, int32_t anchor_io,
                   bool keep_rows, weir_ew_room *room, weir_why *why) {
  const weir_isa *isa = weir_isa_of(&group->calls[0]);
  weir_ew *ew = &room->ew;
  memset(room, 0, sizeof *room);
  ew->in = room->in;
  ew->steps = room->steps;
  uint32_t steps = group->call_count - first;
  if (steps > WEIR_EW_STEPS) return weir_no(why, "%u steps, at most 32", steps);
  if (steps == 0) return weir_no(why, "nothing element-wise");
  for (uint32_t c = first; c < group->call_count; c++)
    if (!add_step(ew, group, c, first, anchor_io, isa, why)) return false;
  if (!link_outputs(ew, group, first, why)) return false;
  for (int32_t s = 0; s < ew->step_count; s++)
    for (int16_t i = 0; i < ew->steps[s].count; i++)
      if (ew->steps[s].from[i] >= WEIR_EW_INPUTS &&
          ew->steps[s].from[i] - WEIR_EW_INPUTS >= s)
        return weir_no(why, "calls are not in order");
  weir_operand space = group->calls[group->call_count - 1].out[0];
  weir_operand view;
  if (!as_it_lies(&space, space.layout, &view, why)) return false;
  collapse(ew, &view, keep_rows);
  find_tail(ew, &space);
  pad_rank(ew);
  if (keep_rows && ew->rank != 2)
    return weir_no(why, "an operand is repeated over inner dimensions");
  assign_buffers(ew);
  cut(ew);
  return true;
}

const weir_ew *weir_ew_keep(const weir_ew_room *room, weir_arena *arena) {
  const weir_ew *from = &room->ew;
  weir_ew *ew = weir_arena_alloc(arena, sizeof *ew);
  weir_ew_input *in =
      weir_arena_array(arena, (size_t)from->in_count, sizeof *in);
  weir_ew_step *steps =
      weir_arena_array(arena, (size_t)from->step_count, sizeof *steps);
  if (ew == NULL || in == NULL || steps == NULL) return NULL;
  memcpy(in, from->in, (size_t)from->in_count * sizeof *in);
  memcpy(steps, from->steps, (size_t)from->step_count * sizeof *steps);
  *ew = *from;
  ew->in = in;
  ew->steps = steps;
  return ew;
}
