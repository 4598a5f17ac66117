/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of element-wise calls as one pass (kernels/cpu/ew/ew.h): each value
 * between two calls stays in the first cache instead of going through memory.
 * Learning rates are checked first, as a single apply_sgd would. */
#include "kernels/cpu/ew/ew.h"
#include "kernels/cpu/ew/ew_build.h"
#include "kernels/cpu/ew/ew_run.h"
#include "kernels/cpu/isa/choose.h"

static bool build(const weir_group *group, weir_ew_room *room, weir_why *why) {
  return weir_ew_build(group, 0, -1, false, room, why);
}

static bool accepts(const weir_group *group, weir_why *why) {
  weir_ew_room room;
  return build(group, &room, why);
}

static weir_status prepare(const weir_group *group, weir_prepared *out,
                           weir_error *err) {
  weir_ew_room room;
  if (!build(group, &room, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "cpu.fused: group not accepted");
  const weir_ew *ew = weir_ew_keep(&room, out->arena);
  if (!ew) return weir_fail_memory(err, sizeof *ew);
  out->state = (void *)(uintptr_t)ew;
  out->worker_scratch_bytes = ew->scratch_bytes;
  out->algorithm = "one pass over tiles of 1024";
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  WEIR_TRY(weir_ew_check(args->state, args));
  weir_ew_run(args->state, args);
  return WEIR_OK;
}

const weir_group_kernel_def weir_group_cpu_fused = {.name = "cpu.fused",
                                                    .device = WEIR_CPU,
                                                    .accepts = accepts,
                                                    .layouts = true,
                                                    .over_inputs = true,
                                                    .prepare = prepare,
                                                    .run = run};
