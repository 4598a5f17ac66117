/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_EINSUM_EQUATION_H_
#define OPS_EINSUM_EQUATION_H_

#include <stdint.h>

#include "runtime/base/sv.h"
#include "runtime/tensor/shape.h"

/* An einsum equation, read: "m k, k n -> m n". Part 0 and 1 are the operands,
 * part 2 the result; letters are numbered as they come. Kernels read it too. */
enum { WEIR_EINSUM_INDICES = 2 * WEIR_MAX_RANK };

typedef struct weir_einsum {
  int operand_count; /* 1 or 2 */
  int rank[3];
  uint8_t index[3][WEIR_MAX_RANK]; /* number of the letter at each dimension */
  int index_count;
  char letters[WEIR_EINSUM_INDICES];
  uint32_t error_at; /* offset of the fault */
} weir_einsum;

/* NULL, or the fault at |out->error_at| in words. Static text. */
const char *weir_einsum_parse(weir_sv equation, weir_einsum *out);
/* The indices of a part, one bit for each. */
uint32_t weir_einsum_indices(const weir_einsum *e, int part);

#endif
