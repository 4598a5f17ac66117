/* SPDX-License-Identifier: Apache-2.0 */
/* Poolings and their gradients, window by window. Windows are clipped to the
 * image (span), so padding is never read; a mean divides by the places inside
 * the image or, on request, by those of the padded one. Windows may overlap:
 * gradients are added to zeros. */
#include <math.h>

#include "kernels/ref/ref.h"
#include "ops/nn/window.h"

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

/* The most places of an image of |x| that a window covers. */
static int64_t places_of(const weir_window *window, const weir_operand *x) {
  int64_t h = window->kernel[0], w = window->kernel[1];
  return (h < x->dims[2] ? h : x->dims[2]) * (w < x->dims[3] ? w : x->dims[3]);
}

typedef struct pool_pixel {
  double most, sum;
  int64_t most_at, count, padded;
} pool_pixel;

/* Gathers the elements under the window. |x_at|: the image's first element. */
static pool_pixel gather(const weir_window *window, const weir_operand *x,
                         const void *data, int64_t x_at, int64_t row,
                         int64_t column) {
  span h = span_of(window, 0, row, x->dims[2]);
  span w = span_of(window, 1, column, x->dims[3]);
  pool_pixel p = {-INFINITY, 0, -1, 0, h.padded * w.padded};
  for (int64_t i = h.from; i < h.to; i++)
    for (int64_t j = w.from; j < w.to; j++) {
      int64_t at = x_at + i * x->dims[3] + j;
      double v = weir_get_f64(x->dtype, data, at);
      /* The first of equals, and a NaN before all. */
      if (p.count == 0 || v > p.most || (isnan(v) && !isnan(p.most))) {
        p.most = v;
        p.most_at = at;
      }
      p.sum += v;
      p.count++;
    }
  return p;
}

/* Walks over |y|; operand 0 stands at the first element of its image in x. */
static void walk_images(weir_iter *it, const weir_operand *y,
                        const weir_operand *x) {
  int64_t image = x->dims[2] * x->dims[3];
  weir_iter_init(it, 4, y->dims);
  it->strides[0][0] = x->dims[1] * image;
  it->strides[0][1] = image;
}

/* |mode|: 0 largest, 1 mean of the places in the image, 2 with the padding. */
static weir_status run(const weir_args *args, int mode) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  weir_window window;
  weir_iter it;
  weir_ref_watch watch = {args, 0};
  weir_call_window(call, &window);
  int64_t places = places_of(&window, x);
  walk_images(&it, y, x);
  for (int64_t i = 0; it.left > 0 && !weir_ref_late(&watch, places);
       weir_iter_next(&it), i++) {
    pool_pixel p =
        gather(&window, x, args->io[0], it.at[0], it.index[2], it.index[3]);
    weir_put_f64(y->dtype, args->io[1], i,
                 mode == 0   ? p.most
                 : mode == 1 ? p.sum / (double)p.count
                             : p.sum / (double)p.padded);
  }
  return WEIR_OK;
}

/* Adds |value| to every element of dx under the window. */
static void spread(const weir_window *window, const weir_operand *dx,
                   void *data, int64_t at, int64_t row, int64_t column,
                   double value) {
  span h = span_of(window, 0, row, dx->dims[2]);
  span w = span_of(window, 1, column, dx->dims[3]);
  for (int64_t i = h.from; i < h.to; i++)
    for (int64_t j = w.from; j < w.to; j++)
      weir_add_f64(dx->dtype, data, at + i * dx->dims[3] + j, value);
}

static weir_status run_max_grad(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0], *dy = &call->in[1];
  weir_window window;
  weir_iter it;
  weir_ref_watch watch = {args, 0};
  weir_clear_out(args, call, 0);
  weir_call_window(call, &window);
  int64_t places = places_of(&window, x);
  walk_images(&it, dy, x);
  for (int64_t i = 0; it.left > 0 && !weir_ref_late(&watch, places);
       weir_iter_next(&it), i++) {
    pool_pixel p =
        gather(&window, x, args->io[0], it.at[0], it.index[2], it.index[3]);
    if (p.most_at >= 0)
      weir_add_f64(x->dtype, args->io[2], p.most_at,
                   weir_get_f64(dy->dtype, args->io[1], i));
  }
  return WEIR_OK;
}

static weir_status run_avg_grad(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *dx = &call->out[0], *dy = &call->in[0];
  bool with_pad = weir_call_attr(call, "count_include_pad")->b;
  weir_window window;
  weir_iter it;
  weir_ref_watch watch = {args, 0};
  weir_clear_out(args, call, 0);
  weir_call_window(call, &window);
  int64_t places = places_of(&window, dx);
  walk_images(&it, dy, dx);
  for (int64_t i = 0; it.left > 0 && !weir_ref_late(&watch, places);
       weir_iter_next(&it), i++) {
    span h = span_of(&window, 0, it.index[2], dx->dims[2]);
    span w = span_of(&window, 1, it.index[3], dx->dims[3]);
    int64_t count =
        with_pad ? h.padded * w.padded : (h.to - h.from) * (w.to - w.from);
    spread(&window, dx, args->io[1], it.at[0], it.index[2], it.index[3],
           weir_get_f64(dy->dtype, args->io[0], i) / (double)count);
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
WEIR_REF_KERNEL(max_pool_grad, WEIR_FLOATS, run_max_grad);
WEIR_REF_KERNEL(avg_pool_grad, WEIR_FLOATS, run_avg_grad);
