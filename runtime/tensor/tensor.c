/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tensor/tensor.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "runtime/base/size.h"

/* A tensor is one block: the struct, then, at the next multiple of 64, its
 * data; so making one is one allocation and unref one free. Wrapped memory has
 * the struct alone. A tensor without elements has a byte all the same: its
 * |data| is a pointer that may be passed on. */

enum { kDataAlign = 64 };

static weir_status make(const weir_allocator *alloc, weir_dtype dtype,
                        const weir_shape *shape, size_t data_bytes,
                        weir_tensor **out_tensor, weir_error *err) {
  size_t total, header;
  bool ok = weir_size_align(sizeof(weir_tensor), kDataAlign, &header) &&
            weir_size_add(header, data_bytes, &total);
  weir_tensor *t = ok ? weir_alloc_aligned(alloc, total, kDataAlign) : NULL;
  if (t == NULL) return weir_fail_memory(err, data_bytes);
  memset(t, 0, sizeof *t);
  atomic_init(&t->refs, 1);
  t->dtype = dtype;
  t->shape = *shape;
  t->bytes = weir_shape_bytes(shape, dtype);
  t->data = (char *)t + header;
  t->alloc = alloc;
  *out_tensor = t;
  return WEIR_OK;
}

weir_status weir_tensor_create_shaped(const weir_allocator *alloc,
                                      weir_dtype dtype, const weir_shape *shape,
                                      weir_tensor **out_tensor,
                                      weir_error *err) {
  *out_tensor = NULL;
  WEIR_TRY(weir_shape_check(shape, dtype, err));
  size_t bytes = weir_shape_bytes(shape, dtype);
  return make(alloc, dtype, shape, bytes > 0 ? bytes : 1, out_tensor, err);
}

weir_status weir_tensor_wrap(const weir_allocator *alloc,
                             const weir_tensor_memory *memory,
                             weir_tensor **out_tensor, weir_error *err) {
  *out_tensor = NULL;
  WEIR_TRY(weir_shape_check(memory->shape, memory->dtype, err));
  WEIR_TRY(make(alloc, memory->dtype, memory->shape, 1, out_tensor, err));
  if (memory->data != NULL) (*out_tensor)->data = memory->data;
  (*out_tensor)->release_data = memory->release;
  (*out_tensor)->release_self = memory->self;
  return WEIR_OK;
}

weir_status weir_tensor_copy(const weir_allocator *alloc,
                             const weir_tensor *src, weir_tensor **out_tensor,
                             weir_error *err) {
  assert(!src->on_gpu);
  WEIR_TRY(weir_tensor_create_shaped(alloc, src->dtype, &src->shape, out_tensor,
                                     err));
  memcpy((*out_tensor)->data, src->data, src->bytes);
  return WEIR_OK;
}

weir_tensor *weir_tensor_ref(weir_tensor *tensor) {
  atomic_fetch_add(&tensor->refs, 1);
  return tensor;
}

void weir_tensor_unref(weir_tensor *tensor) {
  if (tensor == NULL) return;
  int before = atomic_fetch_sub(&tensor->refs, 1);
  assert(before > 0);
  if (before != 1) return;
  if (tensor->release_data != NULL)
    tensor->release_data(tensor->release_self, tensor->data);
  weir_free(tensor->alloc, tensor);
}

double weir_tensor_get_f64(const weir_tensor *tensor, int64_t i) {
  switch (tensor->dtype) {
    case WEIR_F32:
      return (double)((const float *)tensor->data)[i];
    case WEIR_F64:
      return ((const double *)tensor->data)[i];
    default:
      return (double)weir_tensor_get_i64(tensor, i);
  }
}

/* C leaves conversions out of range undefined; 2^63 itself is out of it. */
static int64_t clamp_f64(double v) {
  if (isnan(v)) return 0;
  if (v >= 9223372036854775808.0) return INT64_MAX;
  if (v <= -9223372036854775808.0) return INT64_MIN;
  return (int64_t)v;
}

int64_t weir_tensor_get_i64(const weir_tensor *tensor, int64_t i) {
  switch (tensor->dtype) {
    case WEIR_I32:
      return ((const int32_t *)tensor->data)[i];
    case WEIR_I64:
      return ((const int64_t *)tensor->data)[i];
    case WEIR_U8:
    case WEIR_BOOL:
      return ((const uint8_t *)tensor->data)[i];
    case WEIR_F32:
      return clamp_f64((double)((const float *)tensor->data)[i]);
    case WEIR_F64:
      return clamp_f64(((const double *)tensor->data)[i]);
    case WEIR_DTYPE_NONE:
      break;
  }
  return 0;
}

static int64_t clamp_i64(int64_t v, int64_t low, int64_t high) {
  return v < low ? low : v > high ? high : v;
}

void weir_tensor_set_i64(weir_tensor *tensor, int64_t i, int64_t value) {
  switch (tensor->dtype) {
    case WEIR_I32:
      ((int32_t *)tensor->data)[i] =
          (int32_t)clamp_i64(value, INT32_MIN, INT32_MAX);
      break;
    case WEIR_I64:
      ((int64_t *)tensor->data)[i] = value;
      break;
    case WEIR_U8:
      ((uint8_t *)tensor->data)[i] = (uint8_t)clamp_i64(value, 0, UINT8_MAX);
      break;
    case WEIR_BOOL:
      ((uint8_t *)tensor->data)[i] = value != 0;
      break;
    case WEIR_F32:
      ((float *)tensor->data)[i] = (float)value;
      break;
    case WEIR_F64:
      ((double *)tensor->data)[i] = (double)value;
      break;
    case WEIR_DTYPE_NONE:
      break;
  }
}

void weir_tensor_set_f64(weir_tensor *tensor, int64_t i, double value) {
  switch (tensor->dtype) {
    case WEIR_F32:
      ((float *)tensor->data)[i] = (float)value;
      break;
    case WEIR_F64:
      ((double *)tensor->data)[i] = value;
      break;
    case WEIR_BOOL:
      ((uint8_t *)tensor->data)[i] = value != 0.0;
      break;
    default:
      weir_tensor_set_i64(tensor, i, clamp_f64(value));
      break;
  }
}
