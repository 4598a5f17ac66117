/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ref/ref.h"

typedef enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT } pad_mode;

/* The input index for index |i| outside or inside [0, n); -1: the constant. */
static int64_t source(pad_mode mode, int64_t i, int64_t n) {
  if (i >= 0 && i < n) return i;
  if (mode == PAD_CONSTANT) return -1;
  if (mode == PAD_EDGE) return i < 0 ? 0 : n - 1;
  if (n == 1) return 0;
  i %= 2 * (n - 1); /* mirrors at both ends again and again */
  if (i < 0) i += 2 * (n - 1);
  return i < n ? i : 2 * (n - 1) - i;
}

static pad_mode mode_of(weir_sv name) {
  return weir_sv_is(name, "edge")      ? PAD_EDGE
         : weir_sv_is(name, "reflect") ? PAD_REFLECT
                                       : PAD_CONSTANT;
}

static weir_status run(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  const weir_attr *pads = weir_call_attr(call, "pads");
  pad_mode mode = mode_of(weir_call_attr(call, "mode")->s);
  size_t size = weir_dtype_size(x->dtype);
  int64_t strides[WEIR_MAX_RANK], value = 0;
  weir_iter it;
  weir_put_number(x->dtype, &value, 0, weir_call_attr(call, "value")->f);
  weir_operand_strides(x, strides);
  weir_iter_init(&it, x->rank, call->out[0].dims);
  for (int64_t i = 0; it.left > 0; weir_iter_next(&it), i++) {
    int64_t from = 0;
    for (int32_t d = 0; d < x->rank && from >= 0; d++) {
      int64_t k = source(mode, it.index[d] - pads->dims[d].value, x->dims[d]);
      from = k < 0 ? -1 : from + k * strides[d];
    }
    if (from < 0)
      weir_copy_element(args->io[1], i, &value, 0, size);
    else
      weir_copy_element(args->io[1], i, args->io[0], from, size);
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(pad, WEIR_ALL_TYPES, run);
