/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/instr_gpu.h"

#include <string.h>

#include "kernels/gpu/gpu.h"
#include "ops/cost.h"
#include "runtime/base/table.h"
#include "runtime/exec/gpu/gpus.h"
#include "runtime/exec/program/program_internal.h"

typedef struct copy_state {
  size_t bytes;
  weir_exec_gpu *src; /* of copies from elsewhere than the part's GPU */
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

static weir_status run_peer(const weir_args *args) {
  const weir_gpu_run *r = args->ctx->gpu;
  const copy_state *state = args->state;
  weir_device *d = r->gpu->device;
  weir_device_buffer from = buffer_at(args->io[0], state->bytes);
  weir_device_buffer to = buffer_at(args->io[1], state->bytes);
  return d->vt->copy_peer(d, r->queue, (weir_device_place){&to, 0},
                          state->src->gpu.device, (weir_device_place){&from, 0},
                          state->bytes, args->err);
}

/* Of a part of the host: its thread waits. */
static weir_status run_read(const weir_args *args) {
  const copy_state *state = args->state;
  weir_device_buffer from = buffer_at(args->io[0], state->bytes);
  return weir_gpu_read(state->src, args->io[1], (weir_device_place){&from, 0},
                       state->bytes, args->err);
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

/* |run| with a state of its own. */
static weir_status fill(weir_program_builder *builder, weir_instr_kind kind,
                        copy_state given, weir_run_fn run,
                        weir_instr_spec *spec) {
  copy_state *state =
      weir_arena_array(weir_program_builder_arena(builder), 1, sizeof *state);
  if (state == NULL) {
    builder->no_memory = true;
    return WEIR_RESOURCE_EXHAUSTED;
  }
  *state = given;
  spec->kind = kind;
  spec->state = state;
  spec->run = given.bytes > 0 ? run : run_nothing;
  spec->bytes = weir_cost_mul((int64_t)given.bytes, 2);
  return WEIR_OK;
}

weir_status weir_instr_host_copy(weir_program_builder *builder,
                                 weir_instr_kind kind, size_t bytes,
                                 weir_instr_spec *spec) {
  spec->kernel = "copy";
  spec->cost_ns = 10 + (int64_t)(bytes / 8);
  return fill(builder, kind, (copy_state){.bytes = bytes}, run_host, spec);
}

/* ---- In the queue, or waited for */

static int64_t copy_ns(size_t bytes) {
  return 2000 + (int64_t)(bytes / 10);
}

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
  spec->kernel = kWays[way].kernel;
  spec->cost_ns = copy_ns(bytes);
  return fill(builder, kind, (copy_state){.bytes = bytes}, kWays[way].run,
              spec);
}

weir_status weir_instr_gpu_peer(weir_program_builder *builder,
                                weir_instr_kind kind, struct weir_exec_gpu *src,
                                size_t bytes, weir_instr_spec *spec) {
  spec->kernel = "copy.gpu_to_gpu";
  spec->when = WEIR_BEFORE;
  spec->cost_ns = copy_ns(bytes);
  return fill(builder, kind, (copy_state){bytes, src}, run_peer, spec);
}

weir_status weir_instr_gpu_read(weir_program_builder *builder,
                                weir_instr_kind kind, struct weir_exec_gpu *src,
                                size_t bytes, weir_instr_spec *spec) {
  spec->kernel = "copy.gpu_to_host";
  spec->cost_ns = copy_ns(bytes);
  return fill(builder, kind, (copy_state){bytes, src}, run_read, spec);
}
