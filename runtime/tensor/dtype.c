/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tensor/dtype.h"

#include <string.h>

static const struct {
  weir_dtype dtype;
  const char *name;
  size_t size;
} kTypes[] = {
    {WEIR_F32, "f32", 4}, {WEIR_F64, "f64", 8}, {WEIR_I32, "i32", 4},
    {WEIR_I64, "i64", 8}, {WEIR_U8, "u8", 1},   {WEIR_BOOL, "bool", 1},
};
enum { kTypeCount = sizeof kTypes / sizeof kTypes[0] };

const char *weir_dtype_name(weir_dtype dtype) {
  for (int i = 0; i < kTypeCount; i++)
    if (kTypes[i].dtype == dtype) return kTypes[i].name;
  return "?";
}

size_t weir_dtype_size(weir_dtype dtype) {
  for (int i = 0; i < kTypeCount; i++)
    if (kTypes[i].dtype == dtype) return kTypes[i].size;
  return 0;
}

weir_dtype weir_dtype_from_name(const char *name, size_t size) {
  for (int i = 0; i < kTypeCount && name != NULL; i++)
    if (strlen(kTypes[i].name) == size &&
        memcmp(kTypes[i].name, name, size) == 0)
      return kTypes[i].dtype;
  return WEIR_DTYPE_NONE;
}

bool weir_dtype_is_float(weir_dtype dtype) {
  return ((unsigned)dtype & WEIR_FLOATS) != 0;
}
