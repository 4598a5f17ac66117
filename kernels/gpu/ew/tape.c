/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of element-wise calls of f32 in one launch: what members leave to each
 * other does not go through memory. A member's function is the same text as in
 * its own kernel, so a group has the bits of its members one by one. */
#include "kernels/gpu/ew/tape_plan.h"
#include "kernels/registry.h"

static const weir_gpu_tape_part kAll = {.done_io = -1};

static bool accepts(const weir_group *group, weir_why *why) {
  weir_gpu_tape tape;
  return weir_gpu_tape_build(group, &kAll, &tape, why);
}

static weir_status prepare(const weir_group *group, weir_prepared *out,
                           weir_error *err) {
  weir_gpu_tape *tape = weir_arena_alloc(out->arena, sizeof *tape);
  if (tape == NULL) return weir_fail_memory(err, sizeof *tape);
  if (!weir_gpu_tape_build(group, &kAll, tape, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "gpu.fused: group not accepted");
  out->state = tape;
  out->algorithm = "one launch";
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  return weir_gpu_tape_run(args->state, args);
}

const weir_group_kernel_def weir_group_gpu_fused = {.name = "gpu.fused",
                                                    .device = WEIR_GPU,
                                                    .accepts = accepts,
                                                    .over_inputs = true,
                                                    .prepare = prepare,
                                                    .run = run};
