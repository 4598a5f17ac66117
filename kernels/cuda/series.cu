/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that make tensors of numbers alone. */
#include "kernels/cuda/series.h"

static __device__ __forceinline__ int64_t clamped(int64_t x, int64_t least,
                                                  int64_t most) {
  return x < least ? least : x > most ? most : x;
}

static __device__ __forceinline__ void put_whole(const weir_series_args &args,
                                                 int64_t i, int64_t x) {
  switch (args.type) {
    case WEIR_CAST_F32:
      ((float *)args.y)[i] = (float)x;
      return;
    case WEIR_CAST_F64:
      ((double *)args.y)[i] = (double)x;
      return;
    case WEIR_CAST_I32:
      ((int32_t *)args.y)[i] = (int32_t)clamped(x, INT32_MIN, INT32_MAX);
      return;
    case WEIR_CAST_I64:
      ((int64_t *)args.y)[i] = x;
      return;
    case WEIR_CAST_U8:
      ((uint8_t *)args.y)[i] = (uint8_t)clamped(x, 0, UINT8_MAX);
      return;
    default:
      ((uint8_t *)args.y)[i] = x != 0;
  }
}

/* Conversions out of range differ between machines, so they are compared. */
static __device__ __forceinline__ int64_t whole_of(double x) {
  if (x != x) return 0;
  if (x >= 9223372036854775808.0) return INT64_MAX;
  if (x <= -9223372036854775808.0) return INT64_MIN;
  return (int64_t)x;
}

static __device__ __forceinline__ void put_number(const weir_series_args &args,
                                                  int64_t i, double x) {
  if (args.type == WEIR_CAST_F32)
    ((float *)args.y)[i] = (float)x;
  else if (args.type == WEIR_CAST_F64)
    ((double *)args.y)[i] = x;
  else if (args.type == WEIR_CAST_BOOL)
    ((uint8_t *)args.y)[i] = x != 0.0;
  else
    put_whole(args, i, whole_of(x));
}

/* Whole numbers wrap on their way, which may leave 64 bits. */
WEIR_BODY(series, weir_series_args) {
  uint64_t start = (uint64_t)args.whole[0];
  double from = args.number[0], by = args.number[1],
         last = (double)(args.n - 1);
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    if (args.kind == WEIR_SERIES_WHOLE) {
      put_whole(args, i,
                (int64_t)(start + (uint64_t)i * (uint64_t)args.whole[1]));
    } else if (args.kind == WEIR_SERIES_NUMBER) {
      put_number(args, i, from + (double)i * by);
    } else {
      double t = i == 0 ? 0.0 : (double)i / last;
      bool ends = i > 0 && i == args.n - 1;
      put_number(args, i, ends ? by : from + t * (by - from));
    }
  }
}

template <class T>
static __device__ __forceinline__ void eye_all(const weir_eye_args &args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    int64_t row = i, column = weir_walk_take(args.walk, 1, &row);
    ((T *)args.y)[i] = row == column ? (T)args.on : (T)0;
  }
}

WEIR_BODY(eye, weir_eye_args) {
  if (args.size == 1)
    eye_all<uint8_t>(args);
  else if (args.size == 4)
    eye_all<uint32_t>(args);
  else
    eye_all<uint64_t>(args);
}

WEIR_BODY(numbers, weir_numbers_args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step())
    args.y[i] = args.values[i];
}
