/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_SIZE_H_
#define WEIR_BASE_SIZE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The only place where sizes are multiplied or added. Each function returns
 * false on overflow and then leaves |*out| alone. */

static inline bool weir_size_add(size_t a, size_t b, size_t *out) {
  size_t r;
  if (__builtin_add_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}

static inline bool weir_size_mul(size_t a, size_t b, size_t *out) {
  size_t r;
  if (__builtin_mul_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}

/* Rounds |a| up to a multiple of |align|, a power of two. */
static inline bool weir_size_align(size_t a, size_t align, size_t *out) {
  size_t r;
  if (__builtin_add_overflow(a, align - 1, &r)) return false;
  *out = r & ~(align - 1);
  return true;
}

/* The same for element counts and dimensions; operands must be >= 0. */
static inline bool weir_dim_mul_checked(int64_t a, int64_t b, int64_t *out) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}

static inline bool weir_dim_add_checked(int64_t a, int64_t b, int64_t *out) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}

/* Adds a time, a cost or bytes, 0 or more; a sum that is too large stays
 * INT64_MAX. */
static inline void weir_sum_add(int64_t *sum, int64_t value) {
  if (__builtin_add_overflow(*sum, value, sum)) *sum = INT64_MAX;
}

#endif
