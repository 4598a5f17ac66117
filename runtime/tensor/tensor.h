/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TENSOR_TENSOR_H_
#define WEIR_TENSOR_TENSOR_H_

#include <stdatomic.h>

#include "runtime/base/alloc.h"
#include "runtime/base/status.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

/* A tensor: dtype, shape of known dimensions, and row-major contiguous data on
 * the host, 64-byte aligned when weir allocated it. Reference-counted; the
 * count is atomic, the data is not guarded: the holder of the only reference
 * may write. Layouts other than row-major exist inside programs only.
 *
 * A tensor may be |on_gpu|: then |data| is an address of that GPU, which the
 * host neither reads nor writes. Only feeds and fetches of a session take such
 * a tensor (exec/gpu/gpu_tensor.h); the API keeps it from all other rooms. */
typedef struct weir_tensor {
  atomic_int refs;
  weir_dtype dtype;
  weir_shape shape;
  size_t bytes;
  void *data; /* never NULL, also for 0 elements */
  bool read_only;
  bool on_gpu; /* |data| is memory of GPU |gpu| */
  int32_t gpu; /* as CUDA numbers those that the process is shown */
  const weir_allocator *alloc;
  /* Frees |data|; NULL when it belongs to the tensor's own block. */
  void (*release_data)(void *self, void *data);
  void *release_self;
} weir_tensor;

/* Uninitialised. Errors: W2001-W2003, W6001. */
weir_status weir_tensor_create_shaped(const weir_allocator *alloc,
                                      weir_dtype dtype, const weir_shape *shape,
                                      weir_tensor **out_tensor,
                                      weir_error *err);

/* Memory with elements in it, and the function that gives it back. */
typedef struct weir_tensor_memory {
  weir_dtype dtype;
  const weir_shape *shape;
  void *data;                              /* the shape's bytes */
  void (*release)(void *self, void *data); /* NULL: borrowed */
  void *self;
} weir_tensor_memory;

/* A tensor over |memory|; its release is called once, when the last reference
 * goes. On failure nothing was taken. Errors: W2001-W2003, W6001. */
weir_status weir_tensor_wrap(const weir_allocator *alloc,
                             const weir_tensor_memory *memory,
                             weir_tensor **out_tensor, weir_error *err);

/* A fresh copy with its own data, of a tensor on the host. */
weir_status weir_tensor_copy(const weir_allocator *alloc,
                             const weir_tensor *src, weir_tensor **out_tensor,
                             weir_error *err);

/* One more reference to |tensor|, which is returned; unref drops one. */
weir_tensor *weir_tensor_ref(weir_tensor *tensor);
void weir_tensor_unref(weir_tensor *tensor); /* NULL-safe */

/* Element |i| in row-major order, converted. */
double weir_tensor_get_f64(const weir_tensor *tensor, int64_t i);
int64_t weir_tensor_get_i64(const weir_tensor *tensor, int64_t i);
/* Stores |value| converted to the dtype; integers are clamped to its range. */
void weir_tensor_set_f64(weir_tensor *tensor, int64_t i, double value);
void weir_tensor_set_i64(weir_tensor *tensor, int64_t i, int64_t value);

#endif
