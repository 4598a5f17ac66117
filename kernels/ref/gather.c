/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "kernels/ref/ref.h"

static weir_status run_gather(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0], *indices = &call->in[1];
  weir_lanes lanes = weir_lanes_of(x, weir_call_attr(call, "axis")->i);
  size_t bytes = (size_t)lanes.inner * weir_dtype_size(x->dtype);
  const char *from = args->io[0];
  char *to = args->io[2];
  for (int64_t o = 0; o < lanes.outer; o++)
    for (int64_t i = 0; i < indices->elements; i++) {
      int64_t k = weir_get_i64(indices->dtype, args->io[1], i);
      if (k < -lanes.n || k >= lanes.n)
        return weir_fail(args->err, WEIR_W5002, NULL,
                         "gather: index %" PRId64 " at element %" PRId64
                         " is outside an axis of %" PRId64,
                         k, i, lanes.n);
      if (k < 0) k += lanes.n;
      memcpy(to, from + (size_t)(o * lanes.n + k) * bytes, bytes);
      to += bytes;
    }
  return WEIR_OK;
}

/* An index outside [0, depth) makes a row of zeros. */
static weir_status run_one_hot(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *indices = &call->in[0], *y = &call->out[0];
  int64_t depth = weir_call_attr(call, "depth")->i;
  memset(args->io[1], 0, (size_t)y->elements * weir_dtype_size(y->dtype));
  for (int64_t i = 0; i < indices->elements; i++) {
    int64_t k = weir_get_i64(indices->dtype, args->io[0], i);
    if (k < 0 || k >= depth) continue;
    weir_put_number(y->dtype, args->io[1], i * depth + k, 1);
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(gather, WEIR_ALL_TYPES, run_gather);
WEIR_REF_KERNEL(one_hot, WEIR_INTS, run_one_hot);
