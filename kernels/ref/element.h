/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_REF_ELEMENT_H_
#define KERNELS_REF_ELEMENT_H_

#include <stdint.h>
#include <string.h>

#include "runtime/tensor/dtype.h"

/* Elements of any dtype, one at a time. Reference kernels compute in two
 * domains: double for floats, int64 with wrap-around for the rest; a result is
 * rounded or cut once, when it is stored. For + - * / and sqrt that gives the
 * same bits as f32 arithmetic would; an integer's low bits depend on low bits
 * alone. */

/* Element |i| of floats at |p|. */
static inline double weir_get_f64(weir_dtype dtype, const void *p, int64_t i) {
  if (dtype == WEIR_F32) return ((const float *)p)[i];
  return ((const double *)p)[i];
}

static inline void weir_put_f64(weir_dtype dtype, void *p, int64_t i,
                                double value) {
  if (dtype == WEIR_F32)
    ((float *)p)[i] = (float)value;
  else
    ((double *)p)[i] = value;
}

/* Adds to element |i| of floats, rounding to the dtype. */
static inline void weir_add_f64(weir_dtype dtype, void *p, int64_t i,
                                double value) {
  weir_put_f64(dtype, p, i, weir_get_f64(dtype, p, i) + value);
}

/* Element |i| of integers or bools at |p|. */
static inline int64_t weir_get_i64(weir_dtype dtype, const void *p, int64_t i) {
  if (dtype == WEIR_I64) return ((const int64_t *)p)[i];
  if (dtype == WEIR_I32) return ((const int32_t *)p)[i];
  return ((const uint8_t *)p)[i];
}

/* Keeps the low bits. */
static inline void weir_put_i64(weir_dtype dtype, void *p, int64_t i,
                                int64_t value) {
  if (dtype == WEIR_I64)
    ((int64_t *)p)[i] = value;
  else if (dtype == WEIR_I32)
    ((int32_t *)p)[i] = (int32_t)(uint32_t)(uint64_t)value;
  else
    ((uint8_t *)p)[i] = (uint8_t)(uint64_t)value;
}

/* Wrapping arithmetic. */
static inline int64_t weir_wrap_add(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t weir_wrap_mul(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Copies element |from| of |src| to element |to| of |dst|, both of |size|
 * bytes. */
static inline void weir_copy_element(void *dst, int64_t to, const void *src,
                                     int64_t from, size_t size) {
  memcpy((char *)dst + (size_t)to * size,
         (const char *)src + from * (int64_t)size, size);
}

#endif
