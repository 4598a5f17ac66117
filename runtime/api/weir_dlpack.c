/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in and out by DLPack.
 *
 * A foreign struct is checked field by field before anything of it is used.
 * Row-major, aligned data is wrapped and its deleter runs with the last
 * reference; other data is copied and the deleter runs at once. On a GPU data
 * is wrapped or refused: nothing here can walk over it. After a failure the
 * caller still owns the struct, so the deleter is never called then.
 *
 * Pinned memory is the host's. So is managed memory: the GPUs that weir runs on
 * let the host read its pages while kernels run. */
#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/size.h"
#include "runtime/dlpack.h"
#include "runtime/exec/gpu/gpu_tensor.h"

typedef struct dtype_row {
  weir_dtype dtype;
  DLDataType dl;
} dtype_row;

static const dtype_row dtypes[] = {
    {WEIR_F32, {kDLFloat, 32, 1}}, {WEIR_F64, {kDLFloat, 64, 1}},
    {WEIR_I32, {kDLInt, 32, 1}},   {WEIR_I64, {kDLInt, 64, 1}},
    {WEIR_U8, {kDLUInt, 8, 1}},    {WEIR_BOOL, {kDLBool, 8, 1}}};

enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

static weir_dtype dtype_from(DLDataType dl) {
  for (int i = 0; i < DTYPE_COUNT; i++)
    if (dtypes[i].dl.code == dl.code && dtypes[i].dl.bits == dl.bits &&
        dl.lanes == 1)
      return dtypes[i].dtype;
  return WEIR_DTYPE_NONE;
}

static DLDataType dtype_to(weir_dtype dtype) {
  for (int i = 0; i < DTYPE_COUNT; i++)
    if (dtypes[i].dtype == dtype) return dtypes[i].dl;
  return (DLDataType){0};
}

/* ---- In */

static bool is_host(const DLTensor *t) {
  return t->device.device_type == kDLCPU ||
         t->device.device_type == kDLCUDAHost ||
         t->device.device_type == kDLCUDAManaged;
}

static bool is_gpu(const DLTensor *t) {
  return t->device.device_type == kDLCUDA;
}

static weir_status check_header(const DLManagedTensorVersioned *m,
                                weir_error *err) {
  const DLTensor *t = &m->dl_tensor;
  if (m->version.major != DLPACK_MAJOR_VERSION)
    return weir_fail(err, WEIR_W0004, NULL,
                     "DLPack version %u.%u, expected major version %d",
                     m->version.major, m->version.minor, DLPACK_MAJOR_VERSION);
  if (!is_host(t) && !is_gpu(t))
    return weir_fail(err, WEIR_W0004, NULL,
                     "DLPack device type %d, expected 1 (CPU), 2 (CUDA), 3 "
                     "(CUDA's pinned memory) or 13 (CUDA's managed memory)",
                     (int)t->device.device_type);
  if (dtype_from(t->dtype) == WEIR_DTYPE_NONE)
    return weir_fail(err, WEIR_W2005, NULL,
                     "DLPack type code %u of %u bits and %u lanes has no dtype",
                     t->dtype.code, t->dtype.bits, t->dtype.lanes);
  if (t->ndim < 0 || (t->ndim > 0 && t->shape == NULL))
    return weir_fail(err, WEIR_W0004, NULL,
                     "DLPack ndim is %d, or the shape is missing",
                     (int)t->ndim);
  if (t->ndim > WEIR_MAX_RANK)
    return weir_fail(err, WEIR_W2003, NULL, "DLPack ndim is %d, at most 8",
                     (int)t->ndim);
  return WEIR_OK;
}

/* Whether elements lie row-major without gaps. */
static bool is_dense(const DLTensor *t) {
  if (t->strides == NULL) return true;
  int64_t step = 1;
  for (int i = t->ndim - 1; i >= 0; i--) {
    if (t->shape[i] != 1 && t->strides[i] != step) return false;
    if (!weir_dim_mul_checked(step, t->shape[i], &step)) return false;
  }
  return true;
}

/* Copies a strided tensor, counting through all but no recursion. */
static void copy_strided(const DLTensor *t, const char *src, size_t elem_bytes,
                         char *dst, int64_t elements) {
  int64_t at[WEIR_MAX_RANK] = {0};
  int64_t offset = 0;
  for (int64_t n = 0; n < elements; n++) {
    memcpy(dst + (size_t)n * elem_bytes, src + offset * (int64_t)elem_bytes,
           elem_bytes);
    for (int i = t->ndim - 1; i >= 0; i--) {
      offset += t->strides[i];
      if (++at[i] < t->shape[i]) break;
      offset -= at[i] * t->strides[i];
      at[i] = 0;
    }
  }
}

static void release_managed(void *self, void *data) {
  (void)data;
  DLManagedTensorVersioned *m = self;
  if (m->deleter != NULL) m->deleter(m);
}

/* Wraps |data|. */
static weir_status wrap(weir_runtime *runtime, DLManagedTensorVersioned *m,
                        const weir_shape *shape, void *data,
                        weir_tensor **out_tensor, weir_error *err) {
  const weir_tensor_memory memory = {dtype_from(m->dl_tensor.dtype), shape,
                                     data, release_managed, m};
  WEIR_TRY(weir_tensor_wrap(runtime->env.alloc, &memory, out_tensor, err));
  (*out_tensor)->read_only = (m->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  return WEIR_OK;
}

/* The GPU that has the data must be one of |runtime|. */
static weir_status take_gpu(weir_runtime *runtime, DLManagedTensorVersioned *m,
                            const weir_shape *shape, weir_tensor **out_tensor,
                            weir_error *err) {
  const DLTensor *t = &m->dl_tensor;
  size_t elem_bytes = weir_dtype_size(dtype_from(t->dtype));
  bool some = weir_shape_elements(shape) != 0;
  char *data = t->data != NULL ? (char *)t->data + t->byte_offset : NULL;
  uint32_t count = 0;
  int gpu = (int)t->device.device_id;
  if (data == NULL && some) return weir_fail_null(err, "DLPack data");
  if (some && !is_dense(t))
    return weir_fail(err, WEIR_W0004, NULL,
                     "DLPack tensor on GPU %d is not row-major without gaps; "
                     "make it contiguous first",
                     gpu);
  if (some && (uintptr_t)data % elem_bytes != 0)
    return weir_fail(err, WEIR_W0004, NULL,
                     "DLPack tensor on GPU %d is not aligned to %zu bytes, the "
                     "size of its elements",
                     gpu, elem_bytes);
  WEIR_TRY(weir_gpus_count(runtime->env.gpus, &count, err));
  if (gpu < 0 || (uint32_t)gpu >= count)
    return weir_fail(err, WEIR_W6004, NULL,
                     "DLPack tensor is on GPU %d, CUDA sees %u", gpu, count);
  WEIR_TRY(wrap(runtime, m, shape, some ? data : NULL, out_tensor, err));
  weir_gpu_tensor_mark(*out_tensor, gpu);
  return WEIR_OK;
}

static weir_status take(weir_runtime *runtime, DLManagedTensorVersioned *m,
                        const weir_shape *shape, weir_tensor **out_tensor,
                        weir_error *err) {
  const DLTensor *t = &m->dl_tensor;
  const weir_allocator *alloc = runtime->env.alloc;
  weir_dtype dtype = dtype_from(t->dtype);
  size_t elem_bytes = weir_dtype_size(dtype);
  int64_t elements = weir_shape_elements(shape);
  char *data = t->data != NULL ? (char *)t->data + t->byte_offset : NULL;
  if (data == NULL && elements != 0) return weir_fail_null(err, "DLPack data");
  if (elements != 0 && is_dense(t) && (uintptr_t)data % elem_bytes == 0)
    return wrap(runtime, m, shape, data, out_tensor, err);
  WEIR_TRY(weir_tensor_create_shaped(alloc, dtype, shape, out_tensor, err));
  if (elements != 0 && is_dense(t))
    memcpy((*out_tensor)->data, data, (size_t)elements * elem_bytes);
  else if (elements != 0)
    copy_strided(t, data, elem_bytes, (*out_tensor)->data, elements);
  release_managed(m, NULL);
  return WEIR_OK;
}

weir_status weir_tensor_from_dlpack(weir_runtime *runtime,
                                    struct DLManagedTensorVersioned *managed,
                                    weir_tensor **out_tensor, weir_error *err) {
  if (out_tensor == NULL) return weir_fail_null(err, "out_tensor");
  *out_tensor = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (managed == NULL) return weir_fail_null(err, "managed");
  WEIR_TRY(check_header(managed, err));
  const DLTensor *t = &managed->dl_tensor;
  weir_shape shape = weir_shape_of(t->ndim, t->shape);
  WEIR_TRY(weir_shape_check(&shape, dtype_from(t->dtype), err));
  return is_gpu(t) ? take_gpu(runtime, managed, &shape, out_tensor, err)
                   : take(runtime, managed, &shape, out_tensor, err);
}

/* ---- Out */

typedef struct exported {
  DLManagedTensorVersioned managed;
  weir_tensor *tensor;
  const weir_allocator *alloc;
  int64_t shape[WEIR_MAX_RANK], strides[WEIR_MAX_RANK];
} exported;

static void release_exported(DLManagedTensorVersioned *self) {
  exported *e = self->manager_ctx;
  const weir_allocator *alloc = e->alloc;
  weir_tensor *tensor = e->tensor;
  weir_free(alloc, e);
  weir_tensor_unref(tensor);
}

static void fill_exported(exported *e, weir_tensor *tensor) {
  int64_t step = 1;
  /* Without elements |data| is a byte of the host. */
  bool no_data = tensor->on_gpu && tensor->bytes == 0;
  for (int i = tensor->shape.rank - 1; i >= 0; i--) {
    e->shape[i] = tensor->shape.dims[i].value;
    e->strides[i] = step;
    if (e->shape[i] > 0) step *= e->shape[i]; /* fits: the shape was checked */
  }
  e->managed = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .manager_ctx = e,
      .deleter = release_exported,
      .flags = tensor->read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0,
      .dl_tensor = {.data = no_data ? NULL : tensor->data,
                    .device = {tensor->on_gpu ? kDLCUDA : kDLCPU, tensor->gpu},
                    .ndim = tensor->shape.rank,
                    .dtype = dtype_to(tensor->dtype),
                    .shape = e->shape,
                    .strides = e->strides}};
}

weir_status weir_tensor_to_dlpack(weir_tensor *tensor,
                                  struct DLManagedTensorVersioned **out_managed,
                                  weir_error *err) {
  if (out_managed == NULL) return weir_fail_null(err, "out_managed");
  *out_managed = NULL;
  if (tensor == NULL) return weir_fail_null(err, "tensor");
  exported *e = weir_alloc_array(tensor->alloc, 1, sizeof *e);
  if (e == NULL) return weir_fail_memory(err, sizeof *e);
  e->alloc = tensor->alloc;
  e->tensor = weir_tensor_ref(tensor);
  fill_exported(e, tensor);
  *out_managed = &e->managed;
  return WEIR_OK;
}
