/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_NPY_H_
#define WEIR_IO_NPY_H_

#include "runtime/base/env.h"
#include "runtime/base/strbuf.h"
#include "runtime/tensor/tensor.h"

/* .npy: NumPy's file of one array.
 *
 * A magic, a version (1, 2 or 3), the length of a header, the header (the text
 * of a Python dict with descr, fortran_order and shape), then the elements and
 * nothing else. Read are f4, f8, i4, i8, u1 and b1 of either byte order and
 * either index order; the tensor is row-major in the machine's order, bools are
 * 0 or 1. Nothing is allocated before the bytes for it were seen.
 * Source: NEP 1 and numpy.lib.format of NumPy 1.26. */

enum { WEIR_NPY_HEADER_BYTES = 65536 }; /* the longest header that is read */

/* The first bytes of the file are those of this format. */
bool weir_npy_is(weir_bytes bytes);

/* Reads a tensor from |bytes|, all of a file; |file| is its name in messages.
 * Errors: W4003, W6001. */
weir_status weir_npy_read(const weir_allocator *alloc, weir_bytes bytes,
                          const char *file, weir_tensor **out_tensor,
                          weir_error *err);

/* Appends |tensor| to |out| as a file of version 1; its elements start at a
 * multiple of 64 bytes from its start. Errors: W6001. */
weir_status weir_npy_write(const weir_tensor *tensor, weir_strbuf *out,
                           weir_error *err);

/* The fields of a header. */
typedef struct weir_npy_header {
  weir_dtype dtype;
  bool big_endian, fortran_order;
  weir_shape shape; /* checked */
} weir_npy_header;

/* Reads magic, version and header from the first bytes of a file: all of it,
 * or at least WEIR_NPY_HEADER_BYTES + 12. The elements start |*out_data_at|
 * bytes into it. Errors: W4003. */
weir_status weir_npy_head_read(weir_bytes start, const char *file,
                               weir_npy_header *out_header, size_t *out_data_at,
                               weir_error *err);

#endif
