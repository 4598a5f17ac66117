/* SPDX-License-Identifier: Apache-2.0 */
/* pad and its gradient. Both ask for each element of the padded tensor which
 * element of the other it comes from, so the gradient of an edge or a
 * reflection is the sum over all places that show an element. */
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

/* The element of |x| that comes to |index| of the padded tensor; -1: none. */
static int64_t element_at(const weir_call *call, const weir_operand *x,
                          pad_mode mode, const int64_t *index) {
  const weir_attr *pads = weir_call_attr(call, "pads");
  int64_t from = 0;
  for (int32_t d = 0; d < x->rank; d++) {
    int64_t k = source(mode, index[d] - pads->dims[d].value, x->dims[d]);
    if (k < 0) return -1;
    from = from * x->dims[d] + k;
  }
  return from;
}

static weir_status run(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  pad_mode mode = mode_of(weir_call_attr(call, "mode")->s);
  size_t size = weir_dtype_size(x->dtype);
  int64_t value = 0;
  weir_iter it;
  weir_put_attr(x->dtype, &value, 0, weir_call_attr(call, "value"));
  weir_iter_init(&it, x->rank, call->out[0].dims);
  for (int64_t i = 0; weir_iter_more(&it, args); weir_iter_next(&it), i++) {
    int64_t from = element_at(call, x, mode, it.index);
    if (from < 0)
      weir_copy_element(args->io[1], i, &value, 0, size);
    else
      weir_copy_element(args->io[1], i, args->io[0], from, size);
  }
  return WEIR_OK;
}

static weir_status run_grad(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *dx = &call->out[0], *dy = &call->in[0];
  pad_mode mode = mode_of(weir_call_attr(call, "mode")->s);
  weir_iter it;
  weir_clear_out(args, call, 0);
  weir_iter_init(&it, dy->rank, dy->dims);
  for (int64_t i = 0; weir_iter_more(&it, args); weir_iter_next(&it), i++) {
    int64_t to = element_at(call, dx, mode, it.index);
    if (to >= 0)
      weir_add_f64(dx->dtype, args->io[1], to,
                   weir_get_f64(dy->dtype, args->io[0], i));
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(pad, WEIR_ALL_TYPES, run);
WEIR_REF_KERNEL(pad_grad, WEIR_FLOATS, run_grad);
