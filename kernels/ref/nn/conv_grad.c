/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of conv2d: every element of the result is one sum in double. */
#include "kernels/ref/ref.h"
#include "ops/nn/window.h"

/* y = conv2d(x, w); two of them are inputs, the third's gradient is asked. */
typedef struct conv_grad {
  const weir_operand *x, *w, *y;
  const void *x_data, *w_data, *y_data; /* NULL for the one asked */
  weir_window window;
} conv_grad;

static int64_t offset(const weir_operand *t, int64_t a, int64_t b, int64_t c,
                      int64_t d) {
  return ((a * t->dims[1] + b) * t->dims[2] + c) * t->dims[3] + d;
}

/* The output row (side 0) or column (1) whose filter element |k| lies on input
 * |at|; -1 when there is none. */
static int64_t place(const conv_grad *g, int side, int64_t at, int64_t k) {
  int64_t from = at + g->window.pad[side] - k * g->window.dilation[side];
  if (from < 0 || from % g->window.stride[side] != 0) return -1;
  from /= g->window.stride[side];
  return from < g->y->dims[2 + side] ? from : -1;
}

/* One output channel's part in dx[n, c, h, w]; |c| counts in the group. */
static double from_filter(const conv_grad *g, const int64_t *at, int64_t o,
                          int64_t c) {
  weir_dtype dtype = g->x->dtype;
  double sum = 0;
  for (int64_t i = 0; i < g->w->dims[2]; i++) {
    int64_t row = place(g, 0, at[2], i);
    for (int64_t j = 0; j < g->w->dims[3] && row >= 0; j++) {
      int64_t column = place(g, 1, at[3], j);
      if (column < 0) continue;
      sum +=
          weir_get_f64(dtype, g->w_data, offset(g->w, o, c, i, j)) *
          weir_get_f64(dtype, g->y_data, offset(g->y, at[0], o, row, column));
    }
  }
  return sum;
}

static weir_status run_input(const weir_args *args) {
  const weir_call *call = args->state;
  conv_grad g = {.x = &call->out[0],
                 .w = &call->in[0],
                 .y = &call->in[1],
                 .w_data = args->io[0],
                 .y_data = args->io[1]};
  weir_iter it;
  weir_call_window(call, &g.window);
  int64_t c_in = g.w->dims[1], c_out = g.w->dims[0] / g.window.groups;
  weir_iter_init(&it, 4, g.x->dims);
  for (int64_t k = 0; it.left > 0; weir_iter_next(&it), k++) {
    if (k % 64 == 0 && weir_run_over(args)) break;
    int64_t group = it.index[1] / c_in;
    double sum = 0;
    for (int64_t o = group * c_out; o < (group + 1) * c_out; o++)
      sum += from_filter(&g, it.index, o, it.index[1] % c_in);
    weir_put_f64(g.x->dtype, args->io[2], k, sum);
  }
  return WEIR_OK;
}

/* x[n, c, h, w]; 0 in the border. */
static double pixel(const conv_grad *g, int64_t n, int64_t c, int64_t h,
                    int64_t w) {
  if (h < 0 || h >= g->x->dims[2] || w < 0 || w >= g->x->dims[3]) return 0;
  return weir_get_f64(g->x->dtype, g->x_data, offset(g->x, n, c, h, w));
}

/* One image's part in dw[o, c, i, j]; |c| is the channel of x. */
static double from_image(const conv_grad *g, const int64_t *at, int64_t n,
                         int64_t c) {
  const weir_window *v = &g->window;
  weir_dtype dtype = g->x->dtype;
  double sum = 0;
  for (int64_t row = 0; row < g->y->dims[2]; row++) {
    int64_t h = row * v->stride[0] - v->pad[0] + at[2] * v->dilation[0];
    for (int64_t column = 0; column < g->y->dims[3]; column++) {
      int64_t w = column * v->stride[1] - v->pad[1] + at[3] * v->dilation[1];
      sum +=
          pixel(g, n, c, h, w) *
          weir_get_f64(dtype, g->y_data, offset(g->y, n, at[0], row, column));
    }
  }
  return sum;
}

/* Sums of dy by channel. */
static void sum_bias(const weir_operand *dy, const void *data, void *db) {
  int64_t pixels = dy->dims[2] * dy->dims[3];
  for (int64_t o = 0; o < dy->dims[1]; o++) {
    double sum = 0;
    for (int64_t n = 0; n < dy->dims[0]; n++)
      for (int64_t i = 0; i < pixels; i++)
        sum +=
            weir_get_f64(dy->dtype, data, (n * dy->dims[1] + o) * pixels + i);
    weir_put_f64(dy->dtype, db, o, sum);
  }
}

static weir_status run_weight(const weir_args *args) {
  const weir_call *call = args->state;
  conv_grad g = {.x = &call->in[0],
                 .w = &call->out[0],
                 .y = &call->in[1],
                 .x_data = args->io[0],
                 .y_data = args->io[1]};
  weir_iter it;
  weir_call_window(call, &g.window);
  int64_t c_in = g.w->dims[1], c_out = g.w->dims[0] / g.window.groups;
  weir_iter_init(&it, 4, g.w->dims);
  for (int64_t k = 0; it.left > 0 && !weir_run_over(args);
       weir_iter_next(&it), k++) {
    int64_t c = it.index[0] / c_out * c_in + it.index[1];
    double sum = 0;
    for (int64_t n = 0; n < g.x->dims[0]; n++)
      sum += from_image(&g, it.index, n, c);
    weir_put_f64(g.w->dtype, args->io[2], k, sum);
  }
  if (args->io[3] != NULL) sum_bias(g.y, args->io[1], args->io[3]);
  return WEIR_OK;
}

WEIR_REF_KERNEL(conv2d_grad_input, WEIR_FLOATS, run_input);
WEIR_REF_KERNEL(conv2d_grad_weight, WEIR_FLOATS, run_weight);
