/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/gpu/gpu_look.h"

#include <assert.h>
#include <string.h>

#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/run_slow.h"

weir_status weir_gpu_look_wait(weir_gpu_frame *g, weir_error *err) {
  weir_device *d = g->gpu->gpu.device;
  weir_status s = d->vt->record(d, g->queue, g->looked, err);
  if (s == WEIR_OK) s = d->vt->wait(d, g->looked, err);
  if (s != WEIR_OK) weir_gpu_settle(g->gpu, g->queue, g->looked);
  return s;
}

weir_status weir_gpu_look_ask(weir_gpu_frame *g, const void *at, size_t bytes,
                              void *out, bool *out_over, weir_error *err) {
  weir_device *d = g->gpu->gpu.device;
  weir_gpu_asked *a = g->asked;
  weir_device_buffer from = {(void *)(uintptr_t)at, NULL, bytes};
  assert(bytes <= sizeof a->data);
  WEIR_TRY(d->vt->copy_out(d, g->queue, a->data, (weir_device_place){&from, 0},
                           bytes, err));
  WEIR_TRY(d->vt->copy_out(d, g->queue, &a->block,
                           (weir_device_place){&g->block, 0}, sizeof a->block,
                           err));
  WEIR_TRY(weir_gpu_look_wait(g, err));
  memcpy(out, a->data, bytes);
  *out_over = a->block.fault.instr != 0;
  return WEIR_OK;
}

weir_status weir_gpu_look_trap(const weir_frame *f, uint32_t instr,
                               void *const *io, weir_error *err) {
  const weir_instr_spec *s = &f->program->instrs[instr].spec;
  weir_status status = WEIR_OK;
  for (uint32_t k = 0; k < s->out_count && status == WEIR_OK; k++) {
    if (s->out[k] == WEIR_NO_INDEX) continue;
    const weir_pvalue *v = &f->program->values[s->out[k]];
    if (v->staged || v->bytes == 0) continue;
    void *copy = weir_alloc(f->program->env->alloc, v->bytes);
    if (copy == NULL) return weir_fail_memory(err, v->bytes);
    weir_device_buffer at = {io[s->in_count + k], NULL, v->bytes};
    status = weir_gpu_read(f->program->gpu, copy, (weir_device_place){&at, 0},
                           v->bytes, err);
    if (status == WEIR_OK) status = weir_frame_trap_value(v, k, copy, err);
    weir_free(f->program->env->alloc, copy);
  }
  return status;
}
