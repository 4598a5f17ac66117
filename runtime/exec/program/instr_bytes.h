/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_INSTR_BYTES_H_
#define WEIR_EXEC_INSTR_BYTES_H_

#include "runtime/exec/program/program.h"

/* What instructions with bodies do with the bytes of values: on the host at
 * once, in a GPU's part by work of its queue. Addresses are those of operands
 * and scratch. Errors: those of the GPU. */

/* Rows of |bytes| bytes, so many bytes apart. */
typedef struct weir_instr_rows {
  size_t bytes, src_step, dst_step;
  size_t count;
} weir_instr_rows;

/* Copies |rows| from |src| to |dst|, which do not overlap. */
weir_status weir_instr_copy_rows(const weir_args *args,
                                 const weir_instr_rows *rows, void *dst,
                                 const void *src);

/* Copies |bytes| bytes; none: |dst| and |src| may be anything. */
weir_status weir_instr_copy_bytes(const weir_args *args, void *dst,
                                  const void *src, size_t bytes);

/* Makes |bytes| bytes zeros. */
weir_status weir_instr_zero(const weir_args *args, void *dst, size_t bytes);

/* Writes an i64. */
weir_status weir_instr_put_i64(const weir_args *args, void *dst, int64_t value);

/* Reads |bytes| bytes, at most 8, that decide how a run goes on; waits for a
 * GPU. |*out_over|: it had better end, since a body has refused data. */
weir_status weir_instr_ask(const weir_args *args, const void *at, size_t bytes,
                           void *out, bool *out_over);

#endif
