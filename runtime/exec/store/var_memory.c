/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/store/var_memory.h"

#include "runtime/exec/gpu/gpu_memory.h"

/* A buffer has room in the host's memory always, which costs addresses alone
 * until it is written, and in that of one GPU at a time. */

static weir_status to_host(weir_var_buffer *b, weir_error *err) {
  if (b->on_host || !b->on_gpu) return WEIR_OK;
  WEIR_TRY(weir_gpu_read(b->gpu, b->data, (weir_device_place){&b->memory, 0},
                         b->bytes, err));
  b->on_host = true;
  return WEIR_OK;
}

/* Memory of |gpu|; the value, if it is another GPU's, goes to the host. */
static weir_status room_on(weir_var_buffer *b, weir_exec_gpu *gpu,
                           weir_error *err) {
  if (b->gpu == gpu) return WEIR_OK;
  if (b->gpu != NULL) {
    WEIR_TRY(to_host(b, err));
    b->gpu->gpu.device->vt->free(b->gpu->gpu.device, &b->memory);
    b->gpu = NULL;
    b->on_gpu = false;
  }
  WEIR_TRY(weir_gpu_alloc(gpu, b->bytes > 0 ? b->bytes : 1, &b->memory, err));
  b->gpu = gpu;
  return WEIR_OK;
}

weir_status weir_var_buffer_read(weir_var_buffer *b, weir_exec_gpu *gpu,
                                 void **out_data, weir_error *err) {
  *out_data = b->data;
  if (gpu == NULL) return to_host(b, err);
  WEIR_TRY(room_on(b, gpu, err));
  *out_data = b->memory.handle;
  if (b->on_gpu) return WEIR_OK;
  WEIR_TRY(weir_gpu_write(gpu, (weir_device_place){&b->memory, 0}, b->data,
                          b->bytes, err));
  b->on_gpu = true;
  return WEIR_OK;
}

weir_status weir_var_buffer_write(weir_var_buffer *b, weir_exec_gpu *gpu,
                                  void **out_data, weir_error *err) {
  *out_data = b->data;
  if (gpu == NULL) return WEIR_OK;
  WEIR_TRY(room_on(b, gpu, err));
  *out_data = b->memory.handle;
  return WEIR_OK;
}

void weir_var_buffer_written(weir_var_buffer *b, weir_exec_gpu *gpu) {
  b->on_host = gpu == NULL;
  b->on_gpu = gpu != NULL;
}
