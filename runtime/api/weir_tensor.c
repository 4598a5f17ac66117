/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tensor/tensor.h"

#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/exec/gpu/gpu_tensor.h"

static weir_status check_handles(const weir_runtime *runtime,
                                 weir_tensor **out_tensor, weir_error *err) {
  if (out_tensor == NULL) return weir_fail_null(err, "out_tensor");
  *out_tensor = NULL;
  return runtime != NULL ? WEIR_OK : weir_fail_null(err, "runtime");
}

static weir_status read_shape(weir_dtype dtype, int32_t rank,
                              const int64_t *dims, weir_shape *out_shape,
                              weir_error *err) {
  if (weir_dtype_size(dtype) == 0)
    return weir_fail(err, WEIR_W0004, NULL, "dtype is %d, which is none",
                     (int)dtype);
  if (rank < 0)
    return weir_fail(err, WEIR_W0004, NULL, "rank is %d, expected 0 to 8",
                     (int)rank);
  if (rank > WEIR_MAX_RANK)
    return weir_fail(err, WEIR_W2003, NULL, "rank is %d, expected 0 to 8",
                     (int)rank);
  if (rank > 0 && dims == NULL) return weir_fail_null(err, "dims");
  *out_shape = weir_shape_of(rank, dims);
  return weir_shape_check(out_shape, dtype, err);
}

static weir_status settle(const weir_runtime *runtime, weir_status s,
                          weir_error *err) {
  return weir_settle(runtime->env.alloc, "making a tensor", s, err);
}

weir_status weir_tensor_create(weir_runtime *runtime, weir_dtype dtype,
                               int32_t rank, const int64_t *dims,
                               weir_tensor **out_tensor, weir_error *err) {
  weir_shape shape;
  WEIR_TRY(check_handles(runtime, out_tensor, err));
  WEIR_TRY(read_shape(dtype, rank, dims, &shape, err));
  weir_status s = weir_tensor_create_shaped(runtime->env.alloc, dtype, &shape,
                                            out_tensor, err);
  return settle(runtime, s, err);
}

static weir_status check_bytes(const weir_shape *shape, weir_dtype dtype,
                               const void *data, size_t bytes,
                               weir_error *err) {
  size_t want = weir_shape_bytes(shape, dtype);
  if (bytes != want)
    return weir_fail(err, WEIR_W0004, NULL,
                     "%zu bytes were given, the shape takes %zu", bytes, want);
  if (data == NULL && bytes != 0) return weir_fail_null(err, "data");
  return WEIR_OK;
}

/* A spec that was read, with its shape. */
typedef struct shaped_spec {
  weir_tensor_spec spec;
  weir_shape shape;
} shaped_spec;

/* |data| has the bytes of |spec|. */
static weir_status read_spec(weir_runtime *runtime,
                             const weir_tensor_spec *spec, const void *data,
                             shaped_spec *out, weir_tensor **out_tensor,
                             weir_error *err) {
  const weir_tensor_spec *s = &out->spec;
  if (out_tensor != NULL) *out_tensor = NULL;
  if (spec == NULL) return weir_fail_null(err, "spec");
  WEIR_TRY(WEIR_OPTS_READ(weir_tensor_spec, &out->spec, spec, err));
  WEIR_TRY(check_handles(runtime, out_tensor, err));
  WEIR_TRY(read_shape(s->dtype, s->rank, s->dims, &out->shape, err));
  return check_bytes(&out->shape, s->dtype, data, s->bytes, err);
}

weir_status weir_tensor_from_data(weir_runtime *runtime,
                                  const weir_tensor_spec *spec,
                                  const void *data, weir_tensor **out_tensor,
                                  weir_error *err) {
  shaped_spec t;
  WEIR_TRY(read_spec(runtime, spec, data, &t, out_tensor, err));
  weir_status s = weir_tensor_create_shaped(runtime->env.alloc, t.spec.dtype,
                                            &t.shape, out_tensor, err);
  if (s != WEIR_OK) return settle(runtime, s, err);
  if (t.spec.bytes != 0) memcpy((*out_tensor)->data, data, t.spec.bytes);
  return WEIR_OK;
}

weir_status weir_tensor_from_memory(weir_runtime *runtime,
                                    const weir_tensor_spec *spec, void *data,
                                    void (*release)(void *self, void *data),
                                    void *self, weir_tensor **out_tensor,
                                    weir_error *err) {
  shaped_spec t;
  WEIR_TRY(read_spec(runtime, spec, data, &t, out_tensor, err));
  weir_dtype dtype = t.spec.dtype;
  if (data == NULL) return weir_fail_null(err, "data");
  if ((uintptr_t)data % weir_dtype_size(dtype) != 0)
    return weir_fail(err, WEIR_W0004, NULL,
                     "data is not aligned to %zu bytes, the size of %s",
                     weir_dtype_size(dtype), weir_dtype_name(dtype));
  weir_tensor_memory memory = {dtype, &t.shape, data, release, self};
  return settle(runtime,
                weir_tensor_wrap(runtime->env.alloc, &memory, out_tensor, err),
                err);
}

weir_tensor *weir_tensor_retain(weir_tensor *tensor) {
  return tensor != NULL ? weir_tensor_ref(tensor) : NULL;
}

void weir_tensor_release(weir_tensor *tensor) {
  weir_tensor_unref(tensor);
}

weir_status weir_tensor_desc(const weir_tensor *tensor,
                             weir_tensor_info *out_info) {
  if (tensor == NULL) return WEIR_INVALID_ARGUMENT;
  weir_tensor_info info = {
      .dtype = tensor->dtype,
      .rank = tensor->shape.rank,
      .read_only = tensor->read_only,
      .elements = weir_shape_elements(&tensor->shape),
      .bytes = tensor->bytes,
      .memory = tensor->on_gpu ? WEIR_MEMORY_GPU : WEIR_MEMORY_HOST,
      .gpu = tensor->gpu,
  };
  for (int32_t i = 0; i < tensor->shape.rank; i++)
    info.dims[i] = tensor->shape.dims[i].value;
  return WEIR_OPTS_WRITE(weir_tensor_info, out_info, &info, NULL);
}

const void *weir_tensor_data(const weir_tensor *tensor) {
  return tensor == NULL || tensor->on_gpu ? NULL : tensor->data;
}

void *weir_tensor_mutable_data(weir_tensor *tensor) {
  return tensor == NULL || tensor->read_only || tensor->on_gpu ? NULL
                                                               : tensor->data;
}

/* ---- On GPUs */

weir_status weir_check_on_host(const weir_tensor *tensor, const char *what,
                               weir_error *err) {
  if (tensor == NULL || !tensor->on_gpu) return WEIR_OK;
  weir_status s = weir_fail(err, WEIR_W0004, NULL,
                            "%s is a tensor on GPU %d, one on the host is "
                            "wanted",
                            what, (int)tensor->gpu);
  weir_hint(err, "weir_tensor_to_host copies it");
  return s;
}

weir_status weir_tensor_to_host(weir_runtime *runtime, weir_tensor *tensor,
                                weir_tensor **out_tensor, weir_error *err) {
  WEIR_TRY(check_handles(runtime, out_tensor, err));
  if (tensor == NULL) return weir_fail_null(err, "tensor");
  if (tensor->on_gpu)
    return settle(runtime,
                  weir_gpu_tensor_to_host(runtime->env.gpus, runtime->env.alloc,
                                          tensor, out_tensor, err),
                  err);
  *out_tensor = weir_tensor_ref(tensor);
  return WEIR_OK;
}
