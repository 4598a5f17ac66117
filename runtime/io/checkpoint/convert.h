/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CONVERT_H_
#define WEIR_IO_CONVERT_H_

#include "runtime/base/env.h"
#include "runtime/tensor/tensor.h"

/* Shared by the readers: shapes that come from a file, and the ways in which
 * bytes of a file differ from those of a tensor. */

/* Checks a shape as weir_shape_check does, but reports |id|, the format's own
 * error, at |file|. */
weir_status weir_io_check_shape(const weir_shape *shape, weir_dtype dtype,
                                weir_error_id id, const char *file,
                                weir_error *err);

/* Reverses the bytes of each of |count| elements of |size| (1, 4 or 8). */
void weir_io_swap(void *data, size_t count, size_t size);

/* Makes every byte but 0 a 1. */
void weir_io_normalise_bool(void *data, size_t count);

/* True when every byte is 0 or 1. */
bool weir_io_is_bool(const void *data, size_t count);

/* Copies |src|, the elements of |dst|'s shape with the first index running
 * fastest (Fortran order), into |dst|, where the last index does. */
void weir_io_copy_fortran(weir_tensor *dst, const uint8_t *src);

/* Spans of a file, to find those that overlap. */
typedef struct weir_io_span {
  uint64_t begin, end; /* end is exclusive */
  uint32_t index;      /* of its owner */
} weir_io_span;

/* Sorts by begin, then end, then index; in place, without recursion. */
void weir_io_sort_spans(weir_io_span *spans, size_t count);

#endif
