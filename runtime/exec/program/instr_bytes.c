/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/instr_bytes.h"

#include <string.h>

#include "kernels/gpu/move/bytes.h"
#include "runtime/exec/gpu/gpu_look.h"

weir_status weir_instr_copy_rows(const weir_args *args,
                                 const weir_instr_rows *rows, void *dst,
                                 const void *src) {
  if (rows->bytes == 0) return WEIR_OK;
  if (args->ctx->gpu != NULL) {
    const weir_gpu_rows there = {rows->bytes, rows->src_step, rows->dst_step,
                                 (int64_t)rows->count};
    return weir_gpu_copy_rows(args, &there, dst, src);
  }
  for (size_t i = 0; i < rows->count; i++)
    memcpy((char *)dst + i * rows->dst_step,
           (const char *)src + i * rows->src_step, rows->bytes);
  return WEIR_OK;
}

weir_status weir_instr_copy_bytes(const weir_args *args, void *dst,
                                  const void *src, size_t bytes) {
  if (bytes == 0) return WEIR_OK;
  if (args->ctx->gpu != NULL) return weir_gpu_copy(args, dst, src, bytes);
  memcpy(dst, src, bytes);
  return WEIR_OK;
}

weir_status weir_instr_zero(const weir_args *args, void *dst, size_t bytes) {
  if (bytes == 0) return WEIR_OK;
  if (args->ctx->gpu != NULL) return weir_gpu_zero(args, dst, bytes);
  memset(dst, 0, bytes);
  return WEIR_OK;
}

weir_status weir_instr_put_i64(const weir_args *args, void *dst,
                               int64_t value) {
  if (args->ctx->gpu != NULL) return weir_gpu_put_i64(args, dst, value);
  *(int64_t *)dst = value;
  return WEIR_OK;
}

weir_status weir_instr_ask(const weir_args *args, const void *at, size_t bytes,
                           void *out, bool *out_over) {
  *out_over = false;
  if (args->ctx->gpu != NULL)
    return weir_gpu_look_ask(weir_exec_of(args)->gpu, at, bytes, out, out_over,
                             args->err);
  memcpy(out, at, bytes);
  return WEIR_OK;
}
