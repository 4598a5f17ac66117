/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "runtime/exec/frame.h"

/* The kinds that move bytes or run nested programs. */

typedef struct copy_state {
  size_t bytes;
} copy_state;

static weir_status copy_run(const weir_args *args) {
  const copy_state *state = args->state;
  if (args->io[0] != args->io[1])
    memcpy(args->io[1], args->io[0], state->bytes);
  return WEIR_OK;
}

weir_status weir_instr_copy(weir_program_builder *builder, weir_instr_kind kind,
                            size_t bytes, weir_instr_spec *spec) {
  copy_state *state =
      weir_arena_array(weir_program_builder_arena(builder), 1, sizeof *state);
  if (state == NULL) {
    builder->no_memory = true;
    return WEIR_RESOURCE_EXHAUSTED;
  }
  state->bytes = bytes;
  spec->kind = kind;
  spec->state = state;
  spec->run = copy_run;
  spec->bytes = (int64_t)bytes * 2;
  spec->cost_ns = 10 + (int64_t)(bytes / 8);
  return WEIR_OK;
}

/* What an instruction with bodies knows. Its frame's children are found by its
 * own index, which is known only when the program is finished: state points to
 * the program's list through the frame, so it keeps the first body instead. */
typedef struct control_state {
  const weir_program *first_body;
  uint32_t body_count, in_count, out_count;
  uint32_t carried;
  int64_t limit;
  weir_dtype selector;
  const size_t *bytes;
} control_state;

static weir_frame **children_of(const weir_args *args,
                                const control_state *state) {
  weir_frame *f = weir_exec_of(args)->frame;
  for (uint32_t i = 0; i < f->program->child_count; i++)
    if (f->program->children[i] == state->first_body) return &f->children[i];
  return NULL;
}

static control_state *control_new(weir_program_builder *builder,
                                  const weir_instr_spec *spec) {
  control_state *state =
      weir_arena_array(weir_program_builder_arena(builder), 1, sizeof *state);
  if (state == NULL) {
    builder->no_memory = true;
    return NULL;
  }
  state->first_body = spec->bodies[0];
  state->body_count = spec->body_count;
  state->in_count = spec->in_count;
  state->out_count = spec->out_count;
  return state;
}

static int64_t bodies_cost(const weir_instr_spec *spec) {
  int64_t most = 0;
  for (uint32_t i = 0; i < spec->body_count; i++)
    if (spec->bodies[i]->cost_ns > most) most = spec->bodies[i]->cost_ns;
  return most + 50;
}

/* Runs |child| with inputs io[first..in_count) and the outputs. */
static weir_status call_body(weir_frame *child, const weir_args *args,
                             const control_state *state, uint32_t first) {
  uint32_t external = 0;
  for (uint32_t i = first; i < state->in_count + state->out_count; i++)
    weir_frame_set_external(child, external++, args->io[i]);
  return weir_frame_run_nested(child, args);
}

static weir_status call_run(const weir_args *args) {
  const control_state *state = args->state;
  return call_body(children_of(args, state)[0], args, state, 0);
}

weir_status weir_instr_call(weir_program_builder *builder,
                            weir_instr_spec *spec) {
  control_state *state = control_new(builder, spec);
  if (state == NULL) return WEIR_RESOURCE_EXHAUSTED;
  spec->kind = WEIR_INSTR_CALL;
  spec->state = state;
  spec->run = call_run;
  spec->cost_ns = bodies_cost(spec);
  return WEIR_OK;
}

static weir_status branch_run(const weir_args *args) {
  const control_state *state = args->state;
  int64_t which = state->selector == WEIR_BOOL
                      ? *(const uint8_t *)args->io[0] != 0
                      : *(const int32_t *)args->io[0];
  if (which < 0 || which >= state->body_count)
    return weir_fail(args->err, WEIR_W5008, NULL,
                     "branch %" PRId64 " was chosen, there are %u", which,
                     state->body_count);
  return call_body(children_of(args, state)[which], args, state, 1);
}

weir_status weir_instr_branch(weir_program_builder *builder, weir_dtype dtype,
                              weir_instr_spec *spec) {
  control_state *state = control_new(builder, spec);
  if (state == NULL) return WEIR_RESOURCE_EXHAUSTED;
  state->selector = dtype;
  spec->kind = WEIR_INSTR_BRANCH;
  spec->state = state;
  spec->run = branch_run;
  spec->cost_ns = bodies_cost(spec);
  return WEIR_OK;
}

/* Gives |child| the carried values and the captured inputs; then, from
 * external |at| on, its outputs come. */
static uint32_t loop_inputs(weir_frame *child, const weir_args *args,
                            const control_state *state) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < state->carried; i++)
    weir_frame_set_external(child, at++, args->io[state->in_count + i]);
  for (uint32_t i = state->carried; i < state->in_count; i++)
    weir_frame_set_external(child, at++, args->io[i]);
  return at;
}

static weir_status loop_run(const weir_args *args) {
  const control_state *state = args->state;
  weir_frame **children = children_of(args, state);
  void *const *out = args->io + state->in_count;
  uint8_t *going = args->scratch; /* then the next values */
  for (uint32_t i = 0; i < state->carried; i++)
    if (out[i] != args->io[i]) memcpy(out[i], args->io[i], state->bytes[i]);
  uint32_t cond_out = loop_inputs(children[0], args, state);
  uint32_t body_out = loop_inputs(children[1], args, state);
  weir_frame_set_external(children[0], cond_out, going);
  for (int64_t turn = 0; turn < state->limit; turn++) {
    WEIR_TRY(weir_frame_run_nested(children[0], args));
    if (*going == 0) break;
    char *next = (char *)args->scratch + 64;
    for (uint32_t i = 0; i < state->carried; i++) {
      weir_frame_set_external(children[1], body_out + i, next);
      next += weir_scratch_align(state->bytes[i]);
    }
    WEIR_TRY(weir_frame_run_nested(children[1], args));
    next = (char *)args->scratch + 64;
    for (uint32_t i = 0; i < state->carried; i++) {
      memcpy(out[i], next, state->bytes[i]);
      next += weir_scratch_align(state->bytes[i]);
    }
  }
  return WEIR_OK;
}

weir_status weir_instr_loop(weir_program_builder *builder, uint32_t carried,
                            const size_t *bytes, int64_t limit,
                            weir_instr_spec *spec) {
  weir_arena *arena = weir_program_builder_arena(builder);
  control_state *state = control_new(builder, spec);
  size_t *kept = weir_arena_array(arena, carried, sizeof *kept);
  if (state == NULL || kept == NULL) {
    builder->no_memory = true;
    return WEIR_RESOURCE_EXHAUSTED;
  }
  state->carried = carried;
  state->limit = limit;
  state->bytes = kept;
  spec->scratch_bytes = 64;
  for (uint32_t i = 0; i < carried; i++) {
    kept[i] = bytes[i];
    spec->scratch_bytes += weir_scratch_align(bytes[i]);
  }
  spec->kind = WEIR_INSTR_LOOP;
  spec->state = state;
  spec->run = loop_run;
  spec->cost_ns = bodies_cost(spec) * 10;
  return WEIR_OK;
}
