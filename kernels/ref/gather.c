/* SPDX-License-Identifier: Apache-2.0 */
/* gather, its gradient, one_hot. Negative indices count from the end; an index
 * outside of the axis is an error, except for one_hot, which has a row for it.
 */
#include <inttypes.h>
#include <string.h>

#include "kernels/ref/ref.h"

/* Index |i| from the front, in an axis of |n|. */
static weir_status read_index(const weir_args *args, uint32_t operand,
                              int64_t i, int64_t n, int64_t *out) {
  const weir_call *call = args->state;
  int64_t k = weir_get_i64(call->in[operand].dtype, args->io[operand], i);
  *out = k < 0 ? k + n : k;
  if (k >= -n && k < n) return WEIR_OK;
  return weir_fail(args->err, WEIR_W5002, NULL,
                   "%s: index %" PRId64 " at element %" PRId64
                   " is outside an axis of %" PRId64,
                   call->op->name, k, i, n);
}

static weir_status run_gather(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0], *indices = &call->in[1];
  weir_lanes lanes = weir_lanes_of(x, weir_call_attr(call, "axis")->i);
  size_t bytes = (size_t)lanes.inner * weir_dtype_size(x->dtype);
  const char *from = args->io[0];
  char *to = args->io[2];
  weir_ref_watch watch = {args, 0};
  for (int64_t o = 0; o < lanes.outer; o++)
    for (int64_t i = 0; i < indices->elements; i++) {
      int64_t k = 0;
      if (weir_ref_late(&watch, lanes.inner)) return WEIR_OK;
      WEIR_TRY(read_index(args, 1, i, lanes.n, &k));
      memcpy(to, from + (size_t)(o * lanes.n + k) * bytes, bytes);
      to += bytes;
    }
  return WEIR_OK;
}

static weir_status run_gather_grad(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *dx = &call->out[0];
  weir_lanes lanes = weir_lanes_of(dx, weir_call_attr(call, "axis")->i);
  int64_t from = 0;
  weir_ref_watch watch = {args, 0};
  weir_clear_out(args, call, 0);
  for (int64_t o = 0; o < lanes.outer; o++)
    for (int64_t i = 0; i < call->in[1].elements; i++) {
      int64_t k = 0;
      if (weir_ref_late(&watch, lanes.inner)) return WEIR_OK;
      WEIR_TRY(read_index(args, 1, i, lanes.n, &k));
      for (int64_t e = 0; e < lanes.inner; e++, from++)
        weir_add_f64(dx->dtype, args->io[2],
                     (o * lanes.n + k) * lanes.inner + e,
                     weir_get_f64(dx->dtype, args->io[0], from));
    }
  return WEIR_OK;
}

/* An index outside [0, depth) makes a row of zeros. */
static weir_status run_one_hot(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *indices = &call->in[0], *y = &call->out[0];
  int64_t depth = weir_call_attr(call, "depth")->i;
  weir_clear_out(args, call, 0);
  for (int64_t i = 0; i < indices->elements && !weir_ref_over(args, i); i++) {
    int64_t k = weir_get_i64(indices->dtype, args->io[0], i);
    if (k < 0 || k >= depth) continue;
    weir_put_number(y->dtype, args->io[1], i * depth + k, 1);
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(gather, WEIR_ALL_TYPES, run_gather);
WEIR_REF_KERNEL(gather_grad, WEIR_FLOATS, run_gather_grad);
WEIR_REF_KERNEL(one_hot, WEIR_INTS, run_one_hot);
