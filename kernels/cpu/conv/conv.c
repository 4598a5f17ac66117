/* SPDX-License-Identifier: Apache-2.0
 *
 * Direct convolution as kernels: of a group, and alone.
 *
 * Scratch of a run: the packed weights and bias, unless prepare packed constant
 * ones; then for each worker its padded input, its rows and its output block,
 * in this order (conv_plan.c sizes them).
 * Invariant: a block is 16 images, or a number of images that follows from the
 * shape, and blocks share nothing that is written. So any thread may take any
 * block and the bits stay the same. */
#include "kernels/cpu/conv/conv.h"

#include <assert.h>

#include "kernels/cpu/conv/conv_images.h"
#include "kernels/cpu/conv/conv_plan.h"
#include "kernels/cpu/conv/conv_small.h"

typedef struct conv_job {
  const weir_conv_plan *plan;
  const weir_args *args;
  const float *packed;
} conv_job;

static void run_block(void *arg, int64_t block, int worker) {
  const conv_job *job = arg;
  const weir_conv_plan *plan = job->plan;
  assert(block >= 0 && block < plan->blocks);
  size_t packed =
      plan->packed != NULL ? 0 : plan->packed_floats * sizeof(float);
  size_t own = plan->pad_bytes + plan->row_bytes + plan->out_bytes;
  char *scratch = (char *)job->args->scratch + weir_scratch_align(packed) +
                  (size_t)worker * weir_scratch_align(own);
  const float *x = job->args->io[plan->x_io];
  float *y = job->args->io[plan->y_io];
  if (plan->form == WEIR_CONV_IMAGES)
    weir_conv_block_images(plan, job->packed, x, y, block, scratch);
  else
    weir_conv_block_small(plan, job->packed, x, y, block, scratch);
}

static weir_status run(const weir_args *args) {
  const weir_conv_plan *plan = args->state;
  conv_job job = {plan, args, plan->packed};
  if (job.packed == NULL) {
    const float *bias = plan->bias_io >= 0 ? args->io[plan->bias_io] : NULL;
    weir_conv_pack(plan, args->io[plan->w_io], bias, args->scratch);
    job.packed = args->scratch;
  }
  weir_parallel_for(args, plan->blocks, run_block, &job);
  return WEIR_OK;
}

static bool accepts_group(const weir_group *group, weir_why *why) {
  weir_conv_plan plan;
  return weir_conv_plan_make(group, &plan, why);
}

static const char *form_name(weir_conv_form form) {
  return form == WEIR_CONV_IMAGES  ? "direct, 16 images"
         : form == WEIR_CONV_WIDTH ? "direct, along the width"
                                   : "direct, over channels";
}

static weir_status pack(weir_conv_plan *plan, const float *w, const float *bias,
                        weir_prepared *out, weir_error *err) {
  float *packed =
      weir_arena_array(out->arena, plan->packed_floats, sizeof *packed);
  if (packed == NULL) return weir_fail_memory(err, plan->packed_floats * 4);
  weir_conv_pack(plan, w, bias, packed);
  plan->packed = packed;
  return WEIR_OK;
}

/* Packs now when weights and bias are constant. */
static weir_status prepare_group(const weir_group *group, weir_prepared *out,
                                 weir_error *err) {
  weir_conv_plan *plan = weir_arena_array(out->arena, 1, sizeof *plan);
  if (plan == NULL) return weir_fail_memory(err, sizeof *plan);
  weir_why why;
  if (!weir_conv_plan_make(group, plan, &why))
    return weir_fail(err, WEIR_W9001, NULL, "conv2d: %s", why.text);
  const float *w = group->in[plan->w_io].value;
  const float *bias =
      plan->bias_io >= 0 ? group->in[plan->bias_io].value : NULL;
  if (w != NULL && (plan->bias_io < 0 || bias != NULL)) {
    out->kept_bytes = plan->packed_floats * sizeof(float);
    if (!out->sizes_only) WEIR_TRY(pack(plan, w, bias, out, err));
  }
  out->state = plan;
  out->scratch_bytes =
      out->kept_bytes > 0 ? 0 : plan->packed_floats * sizeof(float);
  out->worker_scratch_bytes =
      plan->pad_bytes + plan->row_bytes + plan->out_bytes;
  out->algorithm = form_name(plan->form);
  return WEIR_OK;
}

/* A call alone is a group of one: one plan and one set of tests serve both. */
typedef struct lone_group {
  weir_group group;
  weir_group_ref refs[4];
  const weir_group_ref *first;
  uint32_t out_call;
} lone_group;

static const weir_group *as_group(const weir_call *call, lone_group *lone) {
  *lone = (lone_group){.first = lone->refs};
  for (uint32_t i = 0; i < call->in_count && i < 4; i++)
    lone->refs[i] = (weir_group_ref){.member = false, .index = i};
  lone->group = (weir_group){.call_count = 1,
                             .in_count = call->in_count,
                             .out_count = 1,
                             .calls = call,
                             .refs = &lone->first,
                             .in = call->in,
                             .out = call->out,
                             .out_calls = &lone->out_call};
  return &lone->group;
}

static bool accepts(const weir_call *call, weir_why *why) {
  lone_group lone;
  return accepts_group(as_group(call, &lone), why);
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  lone_group lone;
  return prepare_group(as_group(call, &lone), out, err);
}

const weir_kernel_def weir_kernel_cpu_conv2d_direct = {
    .op = "conv2d",
    .name = "cpu.conv2d.direct",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .accepts = accepts,
    .layouts = true,
    .prepare = prepare,
    .run = run};

const weir_group_kernel_def weir_group_cpu_conv2d_direct = {
    .name = "cpu.conv2d.direct",
    .device = WEIR_CPU,
    .accepts = accepts_group,
    .layouts = true,
    .prepare = prepare_group,
    .run = run};
