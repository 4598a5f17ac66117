/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/instr_control.h"

#include <inttypes.h>
#include <string.h>

#include "ops/cost.h"
#include "runtime/base/size.h"
#include "runtime/exec/program/instr_bytes.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/frame.h"
#include "runtime/exec/run/run.h"

/* The kinds that move bytes or run nested programs. A nested program's frame
 * was made with the frame around it, so entering it sets its externals'
 * pointers, O(inputs + outputs), and copies nothing. */

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
  spec->bytes = weir_cost_mul((int64_t)bytes, 2);
  spec->cost_ns = 10 + (int64_t)(bytes / 8);
  return WEIR_OK;
}

/* State of an instruction with bodies. */
typedef struct control_state {
  uint32_t child; /* the first body's number among the frame's children */
  uint32_t body_count, in_count, out_count;
  weir_dtype selector;
} control_state;

static weir_frame **children_of(const weir_args *args,
                                const control_state *state) {
  return &weir_exec_of(args)->frame->children[state->child];
}

static control_state *control_new(weir_program_builder *builder,
                                  weir_instr_spec *spec) {
  control_state *state =
      weir_arena_array(weir_program_builder_arena(builder), 1, sizeof *state);
  if (state == NULL) {
    builder->no_memory = true;
    return NULL;
  }
  spec->child = &state->child;
  state->body_count = spec->body_count;
  state->in_count = spec->in_count;
  state->out_count = spec->out_count;
  return state;
}

/* The dearest body's, since only one runs; 50 ns for the call. */
static int64_t bodies_cost(const weir_instr_spec *spec) {
  int64_t most = 0;
  for (uint32_t i = 0; i < spec->body_count; i++)
    if (spec->bodies[i]->cost_ns > most) most = spec->bodies[i]->cost_ns;
  weir_sum_add(&most, 50);
  return most;
}

/* Runs |child| with inputs io[first..in_count) and the outputs. */
static weir_status call_body(weir_frame *child, const weir_args *args,
                             const control_state *state, uint32_t first) {
  uint32_t external = 0;
  for (uint32_t i = first; i < state->in_count + state->out_count; i++)
    weir_frame_set_external(child, external++, args->io[i]);
  return weir_frame_run_nested(child, args);
}

static weir_status branch_run(const weir_args *args) {
  const control_state *state = args->state;
  int32_t which;
  bool over;
  if (state->selector == WEIR_BOOL) {
    uint8_t flag;
    WEIR_TRY(weir_instr_ask(args, args->io[0], sizeof flag, &flag, &over));
    which = flag != 0;
  } else {
    WEIR_TRY(weir_instr_ask(args, args->io[0], sizeof which, &which, &over));
  }
  if (over) return WEIR_OK;
  if (which < 0 || (uint32_t)which >= state->body_count)
    return weir_fail(args->err, WEIR_W5008, NULL,
                     "branch %" PRId32 " was chosen, there are %u", which,
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
  spec->asks = spec->checks = true;
  spec->cost_ns = bodies_cost(spec);
  return WEIR_OK;
}
