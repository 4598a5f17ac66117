/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/nn/product.h"

#include "kernels/tune/tuning.h"

weir_gemm_type weir_gpu_gemm_type(weir_dtype dtype) {
  return dtype == WEIR_F64 ? WEIR_GEMM_F64 : WEIR_GEMM_F32;
}

weir_status weir_gpu_product_plan(const weir_prepared *in,
                                  const weir_gemm_desc *desc,
                                  weir_gpu_product *out, weir_error *err) {
  weir_device *device = in->device;
  weir_gemm_desc d = *desc;
  *out = (weir_gpu_product){.device = device,
                            .tf32 = in->tf32 && desc->type == WEIR_GEMM_F32};
  if (out->tf32) d.type = WEIR_GEMM_F32_TF32;
  if (device == NULL) {
    out->workspace_bytes = WEIR_GEMM_WORKSPACE_BYTES;
    return WEIR_OK;
  }
  if (device->vt->gemm == NULL)
    return weir_fail(err, WEIR_W6004, NULL, "the device has no products");
  WEIR_TRY(device->vt->gemm->plan(device, &d, &out->plan, &out->workspace_bytes,
                                  err));
  if (in->tuning == NULL) return WEIR_OK;
  weir_status s = weir_tuning_apply(in->tuning, device, &d, out->plan,
                                    &out->workspace_bytes, err);
  if (s != WEIR_OK) weir_gpu_product_release(out);
  return s;
}

/* Any memory from |at| on: the library knows how much it needs. */
static weir_device_buffer from(const void *at) {
  return (weir_device_buffer){(void *)(uintptr_t)at, NULL, SIZE_MAX / 2};
}

weir_status weir_gpu_product_run(const weir_args *args,
                                 const weir_gpu_product *product,
                                 const weir_gpu_matrices *m) {
  const weir_gpu_run *run = args->ctx->gpu;
  weir_device *d = run->gpu->device;
  weir_device_buffer a = from(m->a), b = from(m->b), y = from(m->d);
  weir_device_buffer space = from(m->workspace);
  weir_gemm_operands o = {
      .a = {&a, 0}, .b = {&b, 0}, .c = {&y, 0}, .d = {&y, 0}};
  weir_device_buffer bias = from(m->bias);
  if (product->workspace_bytes > 0) o.workspace.buffer = &space;
  if (m->bias != NULL) o.bias.buffer = &bias;
  return d->vt->gemm->run(d, product->plan, run->queue, &o, args->err);
}

void weir_gpu_product_release(weir_gpu_product *product) {
  if (product->device != NULL)
    product->device->vt->gemm->release(product->device, product->plan);
  *product = (weir_gpu_product){0};
}
