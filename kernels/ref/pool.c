/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "kernels/ref/ref.h"
#include "ops/window.h"

/* The rows or columns of the input under the window at output place |at|, and
 * how many places of the padded input it covers. */
typedef struct span {
  int64_t from, to, padded;
} span;

static span span_of(const weir_window *window, int side, int64_t at,
                    int64_t size) {
  int64_t from = at * window->stride[side] - window->pad[side];
  int64_t end = size + window->pad[side + 2];
  int64_t to = from + (window->kernel[side] - 1) * window->dilation[side] + 1;
  span s = {from, to < size ? to : size, (to < end ? to : end) - from};
  if (s.from < 0) s.from = 0;
  return s;
}

typedef struct pool_pixel {
  double most, sum;
  int64_t count, padded;
} pool_pixel;

/* Gathers what lies under the window. |x_at|: the image's first element. */
static pool_pixel gather(const weir_window *window, const weir_operand *x,
                         const void *data, int64_t x_at, int64_t row,
                         int64_t column) {
  span h = span_of(window, 0, row, x->dims[2]);
  span w = span_of(window, 1, column, x->dims[3]);
  pool_pixel p = {-INFINITY, 0, 0, h.padded * w.padded};
  for (int64_t i = h.from; i < h.to; i++)
    for (int64_t j = w.from; j < w.to; j++) {
      double v = weir_get_f64(x->dtype, data, x_at + i * x->dims[3] + j);
      p.most = isnan(v) || v > p.most ? v : p.most;
      p.sum += v;
      p.count++;
    }
  return p;
}

/* |mode|: 0 largest, 1 mean of what is there, 2 mean with the padding. */
static weir_status run(const weir_args *args, int mode) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  int64_t image = x->dims[2] * x->dims[3];
  weir_window window;
  weir_iter it;
  weir_call_window(call, &window);
  weir_iter_init(&it, 4, y->dims);
  it.strides[0][0] = x->dims[1] * image;
  it.strides[0][1] = image;
  for (int64_t i = 0; it.left > 0; weir_iter_next(&it), i++) {
    pool_pixel p =
        gather(&window, x, args->io[0], it.at[0], it.index[2], it.index[3]);
    weir_put_f64(y->dtype, args->io[1], i,
                 mode == 0   ? p.most
                 : mode == 1 ? p.sum / (double)p.count
                             : p.sum / (double)p.padded);
  }
  return WEIR_OK;
}

static weir_status run_max(const weir_args *args) {
  return run(args, 0);
}

static weir_status run_avg(const weir_args *args) {
  return run(args, weir_call_attr(args->state, "count_include_pad")->b ? 2 : 1);
}

WEIR_REF_KERNEL(max_pool, WEIR_FLOATS, run_max);
WEIR_REF_KERNEL(avg_pool, WEIR_FLOATS, run_avg);
