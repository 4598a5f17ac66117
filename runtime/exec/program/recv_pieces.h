/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_RECV_PIECES_H_
#define WEIR_EXEC_RECV_PIECES_H_

#include "kernels/kernel.h"

/* A receive that computes: what comes is an input of an element-wise kernel,
 * which does its part of the output with each piece while that is in the cache.
 * The value itself is nowhere in memory, and behind its last byte nothing is
 * left to be done. */

enum { WEIR_TAKE_INPUTS = 3 };

typedef struct weir_take {
  weir_slice_fn fn;
  const void *state;
  uint32_t in, in_count; /* the input that comes, of so many; one output */
  size_t element_bytes;  /* of it and of the output */
} weir_take;

/* Takes the bytes from |offset| on; they come in order. |io|: operands, that of
 * the input left out. */
void weir_take_piece(const weir_take *take, void *const *io, size_t offset,
                     const void *data, size_t size);

#endif
