/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_SAFETENSORS_HEADER_H_
#define WEIR_IO_SAFETENSORS_HEADER_H_

#include "runtime/base/env.h"
#include "runtime/base/sv.h"
#include "runtime/base/vec.h"
#include "runtime/io/array/safetensors.h"
#include "runtime/tensor/tensor.h"

/* The header of a safetensors file, shared by the files of that name. */

/* One tensor; |begin| and |end| count from the first byte of data. */
typedef struct weir_safetensors_entry {
  weir_sv name;
  const char *dtype_name; /* "BF16"; static */
  weir_dtype dtype;       /* NONE: weir does not have it */
  weir_shape shape;
  uint64_t begin, end;
} weir_safetensors_entry;

typedef WEIR_VEC(weir_safetensors_entry) weir_safetensors_entries;

typedef WEIR_VEC(weir_safetensors_pair) weir_safetensors_pairs;

/* Reads and checks the header |text|, which begins at byte 8 of the file,
 * before |data_bytes| bytes of data. Texts go to |arena|, entries and
 * metadata to lists that the caller frees with arena->alloc also on failure.
 * Errors: W4005, W6001. */
weir_status weir_safetensors_parse(weir_sv text, uint64_t data_bytes,
                                   const char *file, weir_arena *arena,
                                   weir_safetensors_entries *entries,
                                   weir_safetensors_pairs *metadata,
                                   weir_error *err);

/* "F32"; NULL for WEIR_DTYPE_NONE. */
const char *weir_safetensors_dtype_name(weir_dtype dtype);

#endif
