/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/instr_gpu.h"

#include <string.h>

#include "kernels/gpu/gpu.h"
#include "ops/cost.h"
#include "runtime/base/table.h"
#include "runtime/exec/program/program_internal.h"

typedef struct copy_state {
  size_t bytes;
} copy_state;

static weir_device_buffer buffer_at(void *address, size_t bytes) {
  return (weir_device_buffer){address, NULL, bytes};
}

static weir_status run_in(const weir_args *args) {
  const weir_gpu_run *r = args->ctx->gpu;
  size_t bytes = ((const copy_state *)args->state)->bytes;
  weir_device *d = r->gpu->device;
  weir_device_buffer to = buffer_at(args->io[1], bytes);
  return d->vt->copy_in(d, r->queue, (weir_device_place){&to, 0}, args->io[0],
                        bytes, args->err);
}

static weir_status run_out(const weir_args *args) {
  const weir_gpu_run *r = args->ctx->gpu;
  size_t bytes = ((const copy_state *)args->state)->bytes;
  weir_device *d = r->gpu->device;
  weir_device_buffer from = buffer_at(args->io[0], bytes);
  return d->vt->copy_out(d, r->queue, args->io[1],
                         (weir_device_place){&from, 0}, bytes, args->err);
}

static weir_status run_within(const weir_args *args) {
  size_t bytes = ((const copy_state *)args->state)->bytes;
  if (args->io[0] == args->io[1]) return WEIR_OK;
  return weir_gpu_copy(args, args->io[1], args->io[0], bytes);
}

static weir_status run_nothing(const weir_args *args) {
  (void)args;
  return WEIR_OK;
}

/* ---- Between addresses of the host */

enum { kPiece = 256 << 10 };

typedef struct pieces {
  char *to;
  const char *from;
  size_t bytes;
} pieces;

static void copy_piece(void *arg, int64_t block, int worker) {
  const pieces *p = arg;
  size_t at = (size_t)block * kPiece, left = p->bytes - at;
  (void)worker;
  memcpy(p->to + at, p->from + at, left < kPiece ? left : kPiece);
}

static weir_status run_host(const weir_args *args) {
  size_t bytes = ((const copy_state *)args->state)->bytes;
  pieces p = {args->io[1], args->io[0], bytes};
  weir_parallel_for(args, (int64_t)((bytes + kPiece - 1) / kPiece), copy_piece,
                    &p);
  return WEIR_OK;
}

weir_status weir_instr_host_copy(weir_program_builder *builder,
                                 weir_instr_kind kind, size_t bytes,
                                 weir_instr_spec *spec) {
  copy_state *state =
      weir_arena_array(weir_program_builder_arena(builder), 1, sizeof *state);
  if (state == NULL) {
    builder->no_memory = true;
    return WEIR_RESOURCE_EXHAUSTED;
  }
  state->bytes = bytes;
  spec->kind = kind;
  spec->state = state;
  spec->run = bytes > 0 ? run_host : run_nothing;
  spec->kernel = "copy";
  spec->bytes = weir_cost_mul((int64_t)bytes, 2);
  spec->cost_ns = 10 + (int64_t)(bytes / 8);
  return WEIR_OK;
}

/* ---- In the queue */

weir_status weir_instr_gpu_copy(weir_program_builder *builder,
                                weir_instr_kind kind, weir_gpu_way way,
                                size_t bytes, weir_instr_spec *spec) {
  static const struct {
    weir_run_fn run;
    const char *kernel;
  } kWays[] = {[WEIR_GPU_IN] = {run_in, WEIR_GPU_COPY_IN},
               [WEIR_GPU_OUT] = {run_out, WEIR_GPU_COPY_OUT},
               [WEIR_GPU_WITHIN] = {run_within, "copy.gpu"}};
  WEIR_TABLE_OF(kWays, WEIR_GPU_WAYS);
  copy_state *state =
      weir_arena_array(weir_program_builder_arena(builder), 1, sizeof *state);
  if (state == NULL) {
    builder->no_memory = true;
    return WEIR_RESOURCE_EXHAUSTED;
  }
  state->bytes = bytes;
  spec->kind = kind;
  spec->state = state;
  spec->run = bytes > 0 ? kWays[way].run : run_nothing;
  spec->kernel = kWays[way].kernel;
  spec->bytes = weir_cost_mul((int64_t)bytes, 2);
  spec->cost_ns = 2000 + (int64_t)(bytes / 10);
  return WEIR_OK;
}
