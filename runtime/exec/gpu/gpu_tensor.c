/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/gpu/gpu_tensor.h"

#include "runtime/exec/gpu/gpu_memory.h"

/* What gives a tensor's memory back. */
typedef struct holder {
  weir_exec_gpu *gpu; /* with a reference to its list */
  const weir_allocator *alloc;
  weir_device_buffer buffer;
} holder;

static void release(void *self, void *data) {
  holder *h = self;
  const weir_allocator *alloc = h->alloc;
  weir_gpus *list = h->gpu->list;
  weir_device *d = h->gpu->gpu.device;
  (void)data;
  if (h->buffer.handle != NULL) d->vt->free(d, &h->buffer);
  weir_free(alloc, h);
  weir_gpus_release(list);
}

void weir_gpu_tensor_mark(weir_tensor *tensor, int32_t index) {
  tensor->on_gpu = true;
  tensor->gpu = index;
}

weir_status weir_gpu_tensor_create(weir_exec_gpu *gpu,
                                   const weir_allocator *alloc,
                                   weir_dtype dtype, const weir_shape *shape,
                                   weir_tensor **out_tensor, weir_error *err) {
  *out_tensor = NULL;
  WEIR_TRY(weir_shape_check(shape, dtype, err));
  size_t bytes = weir_shape_bytes(shape, dtype);
  holder *h = weir_alloc_array(alloc, 1, sizeof *h);
  if (h == NULL) return weir_fail_memory(err, sizeof *h);
  *h = (holder){.gpu = gpu, .alloc = alloc};
  (void)weir_gpus_ref(gpu->list);
  weir_status s = WEIR_OK;
  if (bytes > 0) s = weir_gpu_alloc_waiting(gpu, bytes, &h->buffer, err);
  if (s == WEIR_OK) {
    const weir_tensor_memory memory = {dtype, shape, h->buffer.handle, release,
                                       h};
    s = weir_tensor_wrap(alloc, &memory, out_tensor, err);
  }
  if (s != WEIR_OK) {
    release(h, NULL);
    return s;
  }
  weir_gpu_tensor_mark(*out_tensor, gpu->index);
  return WEIR_OK;
}

weir_status weir_gpu_tensor_to_host(weir_gpus *gpus,
                                    const weir_allocator *alloc,
                                    const weir_tensor *src,
                                    weir_tensor **out_tensor, weir_error *err) {
  weir_exec_gpu *gpu = NULL;
  weir_tensor *made = NULL;
  const weir_device_buffer from = {src->data, NULL, src->bytes};
  *out_tensor = NULL;
  WEIR_TRY(weir_gpus_open(gpus, src->gpu, &gpu, err));
  WEIR_TRY(
      weir_tensor_create_shaped(alloc, src->dtype, &src->shape, &made, err));
  weir_status s = weir_gpu_read(gpu, made->data, (weir_device_place){&from, 0},
                                src->bytes, err);
  if (s == WEIR_OK)
    *out_tensor = made;
  else
    weir_tensor_unref(made);
  return s;
}
