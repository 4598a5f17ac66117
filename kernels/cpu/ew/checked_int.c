/* SPDX-License-Identifier: Apache-2.0 */
/* Division and powers of integers, which may fail. The second operand is
 * checked before anything is computed, in one pass that vectorises (no exit
 * within the loop); the reference kernel then finds the element and reports it,
 * so both kernels give the same message. */
#include "kernels/cpu/ew/ew.h"
#include "kernels/cpu/ew/ew_build.h"
#include "kernels/cpu/ew/ew_run.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/registry.h"

typedef struct plan {
  const weir_ew *ew;
  const weir_call *call;
  const weir_kernel_def *ref;
  bool is_div;
} plan;

extern const weir_kernel_def weir_kernel_ref_div, weir_kernel_ref_pow;

/* The call as a program of one step, as if it were `mul`, whose step is then
 * exchanged: fusion must not find these functions by the op's name. */
static bool build(const weir_call *call, const char *tile, weir_ew_room *room,
                  weir_why *why) {
  const weir_isa *isa = weir_isa_of(call);
  weir_op_def stand_in = *call->op;
  weir_call as_mul = *call;
  weir_group_ref refs[2] = {{false, 0}, {false, 1}};
  const weir_group_ref *const rows[1] = {refs};
  uint32_t out_call = 0;
  weir_group group = {.call_count = 1,
                      .in_count = 2,
                      .out_count = 1,
                      .calls = &as_mul,
                      .refs = rows,
                      .in = call->in,
                      .out = call->out,
                      .out_calls = &out_call};
  stand_in.name = "mul";
  as_mul.op = &stand_in;
  if (!weir_ew_build(&group, 0, -1, false, room, why)) return false;
  room->steps[0].fn = weir_isa_tile(isa, tile, call->in[0].dtype, 0);
  return room->steps[0].fn != NULL || weir_no(why, "no function for the dtype");
}

static bool accepts_div(const weir_call *call, weir_why *why) {
  weir_ew_room room;
  return build(call, "div_int", &room, why);
}

static bool accepts_pow(const weir_call *call, weir_why *why) {
  weir_ew_room room;
  return build(call, "pow_int", &room, why);
}

static weir_status prepare(const weir_call *call, bool is_div,
                           weir_prepared *out, weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  p->call = call;
  p->is_div = is_div;
  p->ref = is_div ? &weir_kernel_ref_div : &weir_kernel_ref_pow;
  weir_ew_room room;
  if (!build(call, is_div ? "div_int" : "pow_int", &room, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "cpu.%s: call not accepted",
                     call->op->name);
  p->ew = weir_ew_keep(&room, out->arena);
  if (p->ew == NULL) return weir_fail_memory(err, sizeof *p->ew);
  out->state = p;
  out->worker_scratch_bytes = p->ew->scratch_bytes;
  out->algorithm = weir_isa_of(call)->name;
  return WEIR_OK;
}

static weir_status prepare_div(const weir_call *call, weir_prepared *out,
                               weir_error *err) {
  return prepare(call, true, out, err);
}

static weir_status prepare_pow(const weir_call *call, weir_prepared *out,
                               weir_error *err) {
  return prepare(call, false, out, err);
}

#define ANY(T, condition)                                 \
  do {                                                    \
    const T *b = data;                                    \
    bool found = false;                                   \
    for (int64_t i = 0; i < n; i++) found |= (condition); \
    return found;                                         \
  } while (0)

/* Whether any divisor is 0, or any power negative. */
static bool any_bad(const plan *p, const void *data) {
  int64_t n = p->call->in[1].elements;
  weir_dtype dtype = p->call->in[1].dtype;
  if (dtype == WEIR_I64 && p->is_div) ANY(int64_t, b[i] == 0);
  if (dtype == WEIR_I64) ANY(int64_t, b[i] < 0);
  if (dtype == WEIR_I32 && p->is_div) ANY(int32_t, b[i] == 0);
  if (dtype == WEIR_I32) ANY(int32_t, b[i] < 0);
  if (p->is_div) ANY(uint8_t, b[i] == 0);
  return false;
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  if (p->call->out[0].elements == 0) return WEIR_OK;
  if (any_bad(p, args->io[1])) {
    weir_args reported = *args;
    reported.state = p->call;
    return p->ref->run(&reported);
  }
  weir_ew_run(p->ew, args);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_div_int = {.op = "div",
                                                 .name = "cpu.div.int",
                                                 .device = WEIR_CPU,
                                                 .types = WEIR_INTS,
                                                 .accepts = accepts_div,
                                                 .prepare = prepare_div,
                                                 .run = run};

const weir_kernel_def weir_kernel_cpu_pow_int = {.op = "pow",
                                                 .name = "cpu.pow.int",
                                                 .device = WEIR_CPU,
                                                 .types = WEIR_INTS,
                                                 .accepts = accepts_pow,
                                                 .prepare = prepare_pow,
                                                 .run = run};
