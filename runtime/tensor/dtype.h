/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TENSOR_DTYPE_H_
#define WEIR_TENSOR_DTYPE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. Each is one bit, so a set of types is an OR of them:
 * `types = WEIR_F32 | WEIR_F64`. bool is one byte, 0 or 1. */
typedef enum weir_dtype {
  WEIR_DTYPE_NONE = 0,
  WEIR_F32 = 1u << 0,
  WEIR_F64 = 1u << 1,
  WEIR_I32 = 1u << 2,
  WEIR_I64 = 1u << 3,
  WEIR_U8 = 1u << 4,
  WEIR_BOOL = 1u << 5
} weir_dtype;

/* Common sets. */
#define WEIR_FLOATS ((unsigned)(WEIR_F32 | WEIR_F64))
#define WEIR_INTS ((unsigned)(WEIR_I32 | WEIR_I64 | WEIR_U8))
#define WEIR_NUMBERS (WEIR_FLOATS | WEIR_INTS)
#define WEIR_ALL_TYPES (WEIR_NUMBERS | (unsigned)WEIR_BOOL)

/* "f32". Static text; "?" for anything else. */
WEIR_API const char *weir_dtype_name(weir_dtype dtype);
/* Bytes of one element: 1, 4 or 8; 0 for WEIR_DTYPE_NONE. */
WEIR_API size_t weir_dtype_size(weir_dtype dtype);
/* The dtype called |name| of |size| bytes, or WEIR_DTYPE_NONE. */
WEIR_API weir_dtype weir_dtype_from_name(const char *name, size_t size);
WEIR_API bool weir_dtype_is_float(weir_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
