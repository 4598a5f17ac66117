/* SPDX-License-Identifier: Apache-2.0 */
/* dropout by its definition; elements that stay are divided by |keep|, so that
 * the mean is kept and inference is the identity. */
#include "kernels/draw.h"
#include "kernels/philox.h"
#include "kernels/ref/ref.h"

/* Element i gets word i % 4 of block i / 4, of either dtype. */
static bool stays(uint64_t key, uint64_t step, int64_t i, double keep) {
  weir_philox p = weir_philox_block(key, step, (uint64_t)i / 4);
  return (double)weir_uniform_f32(p.word[i % 4]) < keep;
}

static weir_status run(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  double keep = weir_call_attr(call, "keep")->f;
  bool training = weir_call_attr(call, "training")->b;
  uint64_t key = weir_draw_key(call);
  uint8_t *mask = args->io[2];
  for (int64_t i = 0; i < x->elements && !weir_ref_over(args, i); i++) {
    bool stay = !training || stays(key, args->ctx->step, i, keep);
    double value = weir_get_f64(x->dtype, args->io[0], i);
    if (mask) mask[i] = stay;
    if (training) value = stay ? value / keep : 0;
    weir_put_f64(x->dtype, args->io[1], i, value);
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(dropout, WEIR_FLOATS, run);
