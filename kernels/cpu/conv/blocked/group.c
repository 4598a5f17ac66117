/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d in blocks of channels with element-wise followers, which run on each
 * piece while it is in the cache (kernels/cpu/conv/blocked/blocked.h). */
#include <string.h>

#include "kernels/cpu/conv/blocked/blocked.h"
#include "kernels/cpu/conv/blocked/plan.h"
#include "kernels/cpu/conv/conv_plan.h"
#include "kernels/cpu/ew/ew_build.h"
#include "kernels/cpu/gemm/matmul_shape.h"
#include "kernels/registry.h"

/* An addition of a number for each channel, next after the convolution, is its
 * bias: the operand of the run, or -1. */
static int32_t bias_of(const weir_group *group, const weir_conv_blocked *p) {
  const weir_call *call = &group->calls[1];
  if (group->call_count < 2 || p->bias_io >= 0 ||
      strcmp(call->op->name, "add") != 0)
    return -1;
  for (uint32_t i = 0; i < 2; i++)
    if (!group->refs[1][i].member && group->refs[1][1 - i].member &&
        call->in[i].layout == WEIR_LAYOUT_PLAIN &&
        call->in[i].dtype == WEIR_F32 &&
        weir_conv_is_channel_bias(&call->in[i], p->out_channels) &&
        weir_anchor_io(group) == (int32_t)group->in_count)
      return (int32_t)group->refs[1][i].index;
  return -1;
}

/* Whether nobody but the next call reads the convolution itself. */
static bool feeds_next_alone(const weir_group *group) {
  for (uint32_t o = 0; o < group->out_count; o++)
    if (group->out_calls[o] == 0) return false;
  for (uint32_t c = 2; c < group->call_count; c++)
    for (uint32_t i = 0; i < group->calls[c].in_count; i++)
      if (group->refs[c][i].member && group->refs[c][i].index == 0)
        return false;
  return true;
}

static bool plan_group(const weir_group *group, weir_conv_blocked *p,
                       weir_ew_room *room, weir_why *why) {
  const weir_call *call = &group->calls[0];
  int32_t io = weir_anchor_io(group);
  room->ew.step_count = 0;
  if (strcmp(call->op->name, "conv2d") != 0)
    return weir_no(why, "does not start with conv2d");
  if (call->in[0].dtype != WEIR_F32) return weir_no(why, "f32 only");
  if (io < 0) return weir_no(why, "no output to write the product to");
  weir_layout y = group->out[io - (int32_t)group->in_count].layout;
  if (!weir_conv_blocked_plan(call, y, p, why)) return false;
  p->x_io = (int32_t)group->refs[0][0].index;
  p->w_io = (int32_t)group->refs[0][1].index;
  p->y_io = io;
  int32_t bias = feeds_next_alone(group) ? bias_of(group, p) : -1;
  if (p->bias_io >= 0) p->bias_io = (int32_t)group->refs[0][2].index;
  uint32_t first = bias >= 0 ? 2 : 1;
  if (bias >= 0) p->bias_io = bias;
  if (first == group->call_count) return true;
  return weir_ew_build(group, first, io, false, room, why);
}

static bool group_accepts(const weir_group *group, weir_why *why) {
  weir_conv_blocked plan;
  weir_ew_room room;
  return plan_group(group, &plan, &room, why);
}

static weir_status group_prepare(const weir_group *group, weir_prepared *out,
                                 weir_error *err) {
  weir_conv_blocked *p = weir_arena_alloc(out->arena, sizeof *p);
  weir_ew_room room;
  if (!p) return weir_fail_memory(err, sizeof *p);
  if (!plan_group(group, p, &room, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "cpu.conv2d.blocked: not accepted");
  if (room.ew.step_count > 0) {
    p->epilogue = weir_ew_keep(&room, out->arena);
    if (!p->epilogue) return weir_fail_memory(err, sizeof(weir_ew));
  }
  return weir_conv_blocked_prepare(p, group->in[p->w_io].value, out, err);
}

const weir_group_kernel_def weir_group_cpu_conv2d_blocked = {
    .name = "cpu.conv2d_blocked_fused",
    .device = WEIR_CPU,
    .accepts = group_accepts,
    .layouts = true,
    .prepare = group_prepare,
    .release = weir_conv_blocked_release,
    .run = weir_conv_blocked_run};
