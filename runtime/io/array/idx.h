/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_IDX_H_
#define WEIR_IO_IDX_H_

#include "runtime/base/env.h"
#include "runtime/tensor/tensor.h"

/* IDX: the files of MNIST and its kin, plain or as gzip.
 *
 * Two zero bytes, the element type, the number of dimensions, each dimension
 * in 4 bytes, the elements; all numbers are big-endian. Types u8, i32, f32 and
 * f64 are read as they are; i8 and i16 become i32. A shape that needs more
 * bytes than the file can hold is refused before memory is asked for.
 * Source: the format's description on Yann LeCun's MNIST page. */

/* The first bytes are those of a plain, or of any gzip file. */
bool weir_idx_is(weir_bytes bytes);
bool weir_gzip_is(weir_bytes bytes);

/* The head of a file, from its first bytes. */
typedef struct weir_idx_head {
  weir_dtype dtype;   /* of the tensor */
  uint8_t elem_bytes; /* of an element in the file; fewer for i8 and i16 */
  weir_shape shape;   /* checked */
  size_t data_at;     /* byte where the elements start */
} weir_idx_head;

/* Reads the head from the first bytes of plain content: all of it, or at least
 * 40. Errors: W4006. */
weir_status weir_idx_head_read(weir_bytes start, const char *file,
                               weir_idx_head *out_head, weir_error *err);
/* Makes |count| i32 of big-endian elements of 1 or 2 bytes at |src|, which may
 * lie at the end of |dst|'s own bytes. */
void weir_idx_widen(int32_t *dst, const uint8_t *src, size_t count,
                    size_t elem_bytes);

/* Reads a tensor from |bytes|, all of a file; |file| is its name in messages.
 * Errors: W4006; W4007 for a gzip stream; W6001. */
weir_status weir_idx_read(const weir_allocator *alloc, weir_bytes bytes,
                          const char *file, weir_tensor **out_tensor,
                          weir_error *err);

#endif
