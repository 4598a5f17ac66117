/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of one dtype as those of another. */
#include "kernels/cuda/ew.h"

/* Toward zero. Conversions of floats out of range differ between machines, so
 * they are compared first; a double holds neither 2^63 - 1 nor more. */
static __device__ __forceinline__ int64_t whole(double x, int64_t least,
                                                int64_t most) {
  if (x != x) return 0;
  if (x >= (double)most) return most;
  if (x <= (double)least) return least;
  return (int64_t)x;
}

static __device__ __forceinline__ int64_t whole(int64_t x, int64_t least,
                                                int64_t most) {
  return x < least ? least : x > most ? most : x;
}

template <class T>
static __device__ __forceinline__ void store_as(const weir_cast_args &args,
                                                int64_t i, T x) {
  switch (args.to) {
    case WEIR_CAST_F32:
      ((float *)args.y)[i] = (float)x; /* of an integer: one rounding */
      return;
    case WEIR_CAST_F64:
      ((double *)args.y)[i] = (double)x;
      return;
    case WEIR_CAST_I32:
      ((int32_t *)args.y)[i] = (int32_t)whole(x, INT32_MIN, INT32_MAX);
      return;
    case WEIR_CAST_I64:
      ((int64_t *)args.y)[i] = whole(x, INT64_MIN, INT64_MAX);
      return;
    case WEIR_CAST_U8:
      ((uint8_t *)args.y)[i] = (uint8_t)whole(x, 0, UINT8_MAX);
      return;
    default:
      ((uint8_t *)args.y)[i] = x != 0 ? 1 : 0;
  }
}

WEIR_BODY(cast, weir_cast_args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    switch (args.from) {
      case WEIR_CAST_F32:
        store_as(args, i, (double)((const float *)args.x)[i]);
        break;
      case WEIR_CAST_F64:
        store_as(args, i, ((const double *)args.x)[i]);
        break;
      case WEIR_CAST_I32:
        store_as(args, i, (int64_t)((const int32_t *)args.x)[i]);
        break;
      case WEIR_CAST_I64:
        store_as(args, i, ((const int64_t *)args.x)[i]);
        break;
      default:
        store_as(args, i, (int64_t)((const uint8_t *)args.x)[i]);
    }
  }
}
