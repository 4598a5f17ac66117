/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d by its definition: each output is a sum over channels and filter rows
 * of dot products of rows. Columns outside of the image are clipped once for a
 * row, so the inner loop has no test. The border is of zeros, which count: zero
 * times a filter element that is infinite or NaN is NaN. Cost: 2 n oc oh ow
 * taps flop. */
#include "kernels/ref/nn/dot.h"
#include "kernels/ref/ref.h"
#include "ops/nn/window.h"

/* Where a filter row meets the input: kernel columns [from, to) that fall on
 * columns [0, width) when its first one stands at |x|. */
static void clip_columns(int64_t x, int64_t step, int64_t kernel, int64_t width,
                         int64_t *from, int64_t *to) {
  *from = x < 0 ? (-x + step - 1) / step : 0;
  *to = x >= width ? 0 : (width - x + step - 1) / step;
  if (*to > kernel) *to = kernel;
  if (*from > *to) *from = *to;
}

typedef struct conv {
  const weir_operand *x, *w, *y;
  const void *x_data, *w_data;
  weir_window window;
} conv;

/* Zero times the filter elements [from, to) of the row at |w_at|. */
static double border(const conv *c, int64_t w_at, int64_t from, int64_t to) {
  double sum = 0;
  for (int64_t j = from; j < to; j++)
    sum += 0.0 * weir_get_f64(c->w->dtype, c->w_data, w_at + j);
  return sum;
}

/* Sum over one channel's filter at output (row, column). |x_at| and |w_at| are
 * the first elements of the channel's image and filter. */
static double channel(const conv *c, int64_t x_at, int64_t w_at, int64_t row,
                      int64_t column) {
  const weir_window *v = &c->window;
  int64_t height = c->x->dims[2], width = c->x->dims[3];
  int64_t kernel_h = c->w->dims[2], kernel_w = c->w->dims[3];
  int64_t left = column * v->stride[1] - v->pad[1], from, to;
  double sum = 0;
  clip_columns(left, v->dilation[1], kernel_w, width, &from, &to);
  for (int64_t i = 0; i < kernel_h; i++) {
    int64_t h = row * v->stride[0] - v->pad[0] + i * v->dilation[0];
    int64_t row_at = w_at + i * kernel_w;
    if (h < 0 || h >= height) {
      sum += border(c, row_at, 0, kernel_w);
      continue;
    }
    sum += border(c, row_at, 0, from) + border(c, row_at, to, kernel_w);
    weir_row x = {c->x_data, x_at + h * width + left + from * v->dilation[1],
                  v->dilation[1]};
    weir_row w = {c->w_data, row_at + from, 1};
    sum += weir_dot_f64(c->x->dtype, x, w, to - from);
  }
  return sum;
}

static double pixel(const conv *c, int64_t image, int64_t o, int64_t row,
                    int64_t column) {
  int64_t channels = c->w->dims[1];
  int64_t group = o / (c->w->dims[0] / c->window.groups);
  int64_t x_size = c->x->dims[2] * c->x->dims[3];
  int64_t w_size = c->w->dims[2] * c->w->dims[3];
  double sum = 0;
  for (int64_t k = 0; k < channels; k++)
    sum += channel(c, (image * c->x->dims[1] + group * channels + k) * x_size,
                   (o * channels + k) * w_size, row, column);
  return sum;
}

static weir_status run(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *y = &call->out[0];
  bool has_bias = call->in_count > 2 && call->in[2].dtype != WEIR_DTYPE_NONE;
  conv c = {&call->in[0], &call->in[1], y,
            args->io[0],  args->io[1],  {{0}, {0}, {0}, {0}, 0}};
  weir_iter it;
  weir_call_window(call, &c.window);
  weir_iter_init(&it, 4, y->dims);
  for (int64_t i = 0; it.left > 0; weir_iter_next(&it), i++) {
    if (i % 64 == 0 && weir_run_over(args)) break;
    double v = pixel(&c, it.index[0], it.index[1], it.index[2], it.index[3]);
    if (has_bias) v += weir_get_f64(y->dtype, args->io[2], it.index[1]);
    weir_put_f64(y->dtype, args->io[call->in_count], i, v);
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(conv2d, WEIR_FLOATS, run);
