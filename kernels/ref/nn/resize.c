/* SPDX-License-Identifier: Apache-2.0 */
/* resize and its gradient, output place by output place: the elements that it
 * is made of and their weights are those of weir_resize_taps, first of its row,
 * then of its column. Cost: four products a place. A weight of 0 reads nothing:
 * an infinity beside a pixel does not make it NaN. */
#include "kernels/ref/ref.h"
#include "ops/nn/resample.h"

/* An image of h x w, resized to or from one of rows x columns. */
typedef struct sides {
  int64_t images, h, w, rows, columns;
  bool nearest;
} sides;

static sides sides_of(const weir_call *call, const weir_operand *x,
                      const weir_operand *y) {
  return (sides){x->dims[0] * x->dims[1],
                 x->dims[2],
                 x->dims[3],
                 y->dims[2],
                 y->dims[3],
                 weir_sv_is(weir_call_attr(call, "mode")->s, "nearest")};
}

/* Of elements |at| apart from |base| on, the mean that |t| says. */
static double mix(weir_dtype dtype, const void *data, int64_t base,
                  weir_taps t) {
  double a = weir_get_f64(dtype, data, base + t.first);
  if (t.share == 0) return a;
  double b = weir_get_f64(dtype, data, base + t.second);
  return (1 - t.share) * a + t.share * b;
}

static weir_status run(const weir_args *args) {
  const weir_call *call = args->state;
  weir_dtype dtype = call->in[0].dtype;
  sides s = sides_of(call, &call->in[0], &call->out[0]);
  int64_t at = 0;
  for (int64_t row = 0; row < s.images * s.rows && !weir_run_over(args);
       row++) {
    weir_taps v = weir_resize_taps(s.h, s.rows, row % s.rows, s.nearest);
    int64_t image = row / s.rows * s.h;
    for (int64_t column = 0; column < s.columns; column++) {
      weir_taps u = weir_resize_taps(s.w, s.columns, column, s.nearest);
      double y = mix(dtype, args->io[0], (image + v.first) * s.w, u);
      if (v.share != 0)
        y = (1 - v.share) * y +
            v.share * mix(dtype, args->io[0], (image + v.second) * s.w, u);
      weir_put_f64(dtype, args->io[1], at++, y);
    }
  }
  return WEIR_OK;
}

/* Adds |g| to the two elements from |base| on that |t| names. */
static void give(weir_dtype dtype, void *data, int64_t base, weir_taps t,
                 double g) {
  weir_add_f64(dtype, data, base + t.first, (1 - t.share) * g);
  if (t.share != 0) weir_add_f64(dtype, data, base + t.second, t.share * g);
}

static weir_status run_grad(const weir_args *args) {
  const weir_call *call = args->state;
  weir_dtype dtype = call->in[0].dtype;
  sides s = sides_of(call, &call->out[0], &call->in[0]);
  int64_t at = 0;
  weir_clear_out(args, call, 0);
  for (int64_t row = 0; row < s.images * s.rows && !weir_run_over(args);
       row++) {
    weir_taps v = weir_resize_taps(s.h, s.rows, row % s.rows, s.nearest);
    int64_t image = row / s.rows * s.h;
    for (int64_t column = 0; column < s.columns; column++) {
      weir_taps u = weir_resize_taps(s.w, s.columns, column, s.nearest);
      double g = weir_get_f64(dtype, args->io[0], at++);
      give(dtype, args->io[1], (image + v.first) * s.w, u, (1 - v.share) * g);
      if (v.share != 0)
        give(dtype, args->io[1], (image + v.second) * s.w, u, v.share * g);
    }
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(resize, WEIR_FLOATS, run);
WEIR_REF_KERNEL(resize_grad, WEIR_FLOATS, run_grad);
