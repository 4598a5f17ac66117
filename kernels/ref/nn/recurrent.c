/* SPDX-License-Identifier: Apache-2.0 */
/* lstm, gru, rnn and their gradients, one sequence of the batch after the
 * other. A step reads the state as it was stored, rounded to the dtype, so that
 * outputs and states have the same bits.
 * Going back, the outputs for first states carry the gradients of the states
 * from step to step; after step 0 they hold the result.
 * Cost: O(b t u g (i + u)), every product by its definition. */
#include <math.h>

#include "kernels/ref/nn/dot.h"
#include "kernels/ref/ref.h"

/* Sizes and operands of a call; missing ones are NULL. */
typedef struct walk {
  weir_dtype dtype;
  int64_t batch, steps, inputs, units, wide;
  bool reverse;
  const void *in[WEIR_OP_INPUTS];
  void *const *out;
} walk;

/* Inputs |r| and |sequence| have the sizes. */
static walk walk_of(const weir_args *args, uint32_t r, uint32_t sequence) {
  const weir_call *call = args->state;
  const int64_t *dims = call->in[sequence].dims;
  walk w = {.dtype = call->in[r].dtype,
            .batch = dims[0],
            .steps = dims[1],
            .inputs = dims[2],
            .units = call->in[r].dims[0],
            .wide = call->in[r].dims[1],
            .reverse = weir_call_attr(call, "reverse")->b,
            .out = args->io + call->in_count};
  for (uint32_t i = 0; i < call->in_count; i++) w.in[i] = args->io[i];
  return w;
}

/* Which step of sequence |b| comes |k|-th, as a row of [b, t, ...]. */
static int64_t row_at(const walk *w, int64_t b, int64_t k) {
  return b * w->steps + (w->reverse ? w->steps - 1 - k : k);
}

/* Element |i| of an operand that may be missing. */
static double get(const walk *w, const void *x, int64_t i) {
  return x == NULL ? 0 : weir_get_f64(w->dtype, x, i);
}

static void put(const walk *w, void *y, int64_t i, double value) {
  if (y != NULL) weir_put_f64(w->dtype, y, i, value);
}

/* Sum over p of x[at + p] m[p][column], p < n; m has |wide| columns. */
static double product(const walk *w, const void *x, int64_t at, const void *m,
                      int64_t n, int64_t column) {
  double sum = 0;
  for (int64_t p = 0; p < n; p++)
    sum += get(w, x, at + p) * get(w, m, p * w->wide + column);
  return sum;
}

/* Sum over j of dz[at + j] r[unit][j]. */
static double product_back(const walk *w, const void *dz, int64_t at,
                           const void *r, int64_t unit) {
  double sum = 0;
  for (int64_t j = 0; j < w->wide; j++)
    sum += get(w, dz, at + j) * get(w, r, unit * w->wide + j);
  return sum;
}

/* Copies row |from| of x, or zeros if it is missing, to row |to| of y. */
static void copy_row(const walk *w, void *y, int64_t to, const void *x,
                     int64_t from) {
  for (int64_t j = 0; j < w->units; j++)
    put(w, y, to * w->units + j, get(w, x, from * w->units + j));
}

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

/* ---- lstm: x, w, r, bias, h0, c0 -> y, h, c, gates, cells */

/* The products of |n| elements of |x| with the columns of m for the four gates
 * of a unit. */
static void gates(const walk *w, weir_row x, const void *m, int64_t n,
                  int64_t unit, double out[WEIR_DOTS]) {
  weir_row column = {m, unit, w->wide};
  weir_dots_f64(w->dtype, x, column, w->units, n, out);
}

/* One unit of step |row|, from the states in h and c; h stays, as other units
 * of the step still read it, c is replaced. */
static void lstm_unit(const walk *w, int64_t b, int64_t row, int64_t unit) {
  const void *const *in = w->in;
  void *const *out = w->out;
  int64_t u = w->units, at = row * u + unit;
  double a[4], x[WEIR_DOTS], h[WEIR_DOTS];
  gates(w, (weir_row){in[0], row * w->inputs, 1}, in[1], w->inputs, unit, x);
  gates(w, (weir_row){out[1], b * u, 1}, in[2], u, unit, h);
  for (int64_t g = 0; g < 4; g++) {
    int64_t column = g * u + unit;
    double z = get(w, in[3], column) + x[g] + h[g];
    a[g] = g == 2 ? tanh(z) : sigmoid(z);
    put(w, out[3], row * w->wide + column, a[g]);
  }
  double c = a[1] * get(w, out[2], b * u + unit) + a[0] * a[2];
  put(w, out[2], b * u + unit, c);
  put(w, out[4], at, c);
  put(w, out[0], at, a[3] * tanh(c));
}

static weir_status run_lstm(const weir_args *args) {
  walk w = walk_of(args, 2, 0);
  void *const *out = w.out;
  for (int64_t b = 0; b < w.batch && !weir_run_over(args); b++) {
    copy_row(&w, out[1], b, w.in[4], b);
    copy_row(&w, out[2], b, w.in[5], b);
    for (int64_t k = 0; k < w.steps && !weir_run_over(args); k++) {
      int64_t row = row_at(&w, b, k);
      for (int64_t j = 0; j < w.units && !weir_run_over(args); j++)
        lstm_unit(&w, b, row, j);
      copy_row(&w, out[1], b, out[0], row);
    }
  }
  return WEIR_OK;
}

/* r, gates, cells, c0, dy, dh, dc -> dz, dh0, dc0. dh0 and dc0 hold the
 * gradients of the states on the way from the last step to the first. */
static void lstm_unit_back(const walk *w, int64_t b, int64_t k, int64_t unit) {
  const void *const *in = w->in;
  void *const *out = w->out;
  int64_t u = w->units, row = row_at(w, b, k), at = row * u + unit;
  int64_t state = b * u + unit, first = row * w->wide + unit;
  double i = get(w, in[1], first), f = get(w, in[1], first + u);
  double g = get(w, in[1], first + 2 * u), o = get(w, in[1], first + 3 * u);
  double t = tanh(get(w, in[2], at));
  double before = k == 0 ? get(w, in[3], state)
                         : get(w, in[2], row_at(w, b, k - 1) * u + unit);
  double dh = get(w, out[1], state) + get(w, in[4], at);
  double dc = get(w, out[2], state) + dh * o * (1 - t * t);
  put(w, out[0], first, dc * g * i * (1 - i));
  put(w, out[0], first + u, dc * before * f * (1 - f));
  put(w, out[0], first + 2 * u, dc * i * (1 - g * g));
  put(w, out[0], first + 3 * u, dh * t * o * (1 - o));
  put(w, out[2], state, dc * f);
}

static weir_status run_lstm_grad(const weir_args *args) {
  walk w = walk_of(args, 0, 1);
  void *const *out = w.out;
  for (int64_t b = 0; b < w.batch && !weir_run_over(args); b++) {
    copy_row(&w, out[1], b, w.in[5], b);
    copy_row(&w, out[2], b, w.in[6], b);
    for (int64_t k = w.steps; k-- > 0 && !weir_run_over(args);) {
      int64_t at = row_at(&w, b, k) * w.wide;
      for (int64_t j = 0; j < w.units && !weir_run_over(args); j++)
        lstm_unit_back(&w, b, k, j);
      for (int64_t j = 0; j < w.units && !weir_run_over(args); j++)
        put(&w, out[1], b * w.units + j,
            product_back(&w, out[0], at, w.in[0], j));
    }
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(lstm, WEIR_FLOATS, run_lstm);
WEIR_REF_KERNEL(lstm_grad, WEIR_FLOATS, run_lstm_grad);

/* ---- gru: x, w, r, bias, rbias, h0 -> y, h, gates, inner */

static void gru_unit(const walk *w, int64_t b, int64_t row, int64_t unit) {
  const void *const *in = w->in;
  void *const *out = w->out;
  int64_t u = w->units, at = row * u + unit;
  double z[3], q[3];
  for (int64_t g = 0; g < 3; g++) {
    int64_t column = g * u + unit;
    z[g] = get(w, in[3], column) +
           product(w, in[0], row * w->inputs, in[1], w->inputs, column);
    q[g] = get(w, in[4], column) + product(w, out[1], b * u, in[2], u, column);
  }
  double reset = sigmoid(z[0] + q[0]), update = sigmoid(z[1] + q[1]);
  double n = tanh(z[2] + reset * q[2]);
  put(w, out[2], row * w->wide + unit, reset);
  put(w, out[2], row * w->wide + u + unit, update);
  put(w, out[2], row * w->wide + 2 * u + unit, n);
  put(w, out[3], at, q[2]);
  put(w, out[0], at, (1 - update) * n + update * get(w, out[1], b * u + unit));
}

/* Runs a layer whose only state is h: |unit| makes y of it, |h0| is its input.
 */
static weir_status run_layer(const weir_args *args, uint32_t h0,
                             void (*unit)(const walk *w, int64_t b, int64_t row,
                                          int64_t unit)) {
  walk w = walk_of(args, 2, 0);
  for (int64_t b = 0; b < w.batch && !weir_run_over(args); b++) {
    copy_row(&w, w.out[1], b, w.in[h0], b);
    for (int64_t k = 0; k < w.steps && !weir_run_over(args); k++) {
      int64_t row = row_at(&w, b, k);
      for (int64_t j = 0; j < w.units && !weir_run_over(args); j++)
        unit(&w, b, row, j);
      copy_row(&w, w.out[1], b, w.out[0], row);
    }
  }
  return WEIR_OK;
}

static weir_status run_gru(const weir_args *args) {
  return run_layer(args, 5, gru_unit);
}

/* r, gates, inner, y, h0, dy, dh -> dz, dq, dh0. dh0 gets the share
 * past the gates. */
static void gru_unit_back(const walk *w, int64_t b, int64_t k, int64_t unit) {
  const void *const *in = w->in;
  int64_t u = w->units, row = row_at(w, b, k), at = row * u + unit;
  int64_t state = b * u + unit, first = row * w->wide + unit;
  double reset = get(w, in[1], first), update = get(w, in[1], first + u);
  double n = get(w, in[1], first + 2 * u), q = get(w, in[2], at);
  double before = k == 0 ? get(w, in[4], state)
                         : get(w, in[3], row_at(w, b, k - 1) * u + unit);
  double dh = get(w, w->out[2], state) + get(w, in[5], at);
  double dn = dh * (1 - update) * (1 - n * n);
  double dz[3] = {dn * q * reset * (1 - reset),
                  dh * (before - n) * update * (1 - update), dn};
  for (int64_t g = 0; g < 3; g++) {
    put(w, w->out[0], first + g * u, dz[g]);
    put(w, w->out[1], first + g * u, g == 2 ? dn * reset : dz[g]);
  }
  put(w, w->out[2], state, dh * update);
}

static weir_status run_gru_grad(const weir_args *args) {
  walk w = walk_of(args, 0, 1);
  for (int64_t b = 0; b < w.batch && !weir_run_over(args); b++) {
    copy_row(&w, w.out[2], b, w.in[6], b);
    for (int64_t k = w.steps; k-- > 0 && !weir_run_over(args);) {
      int64_t at = row_at(&w, b, k) * w.wide;
      for (int64_t j = 0; j < w.units && !weir_run_over(args); j++)
        gru_unit_back(&w, b, k, j);
      for (int64_t j = 0; j < w.units && !weir_run_over(args); j++)
        weir_add_f64(w.dtype, w.out[2], b * w.units + j,
                     product_back(&w, w.out[1], at, w.in[0], j));
    }
  }
  return WEIR_OK;
}

/* ---- rnn: x, w, r, bias, h0 -> y, h */

static double rnn_sum(const walk *w, int64_t b, int64_t row, int64_t unit) {
  return get(w, w->in[3], unit) +
         product(w, w->in[0], row * w->inputs, w->in[1], w->inputs, unit) +
         product(w, w->out[1], b * w->units, w->in[2], w->units, unit);
}

static void tanh_unit(const walk *w, int64_t b, int64_t row, int64_t unit) {
  put(w, w->out[0], row * w->units + unit, tanh(rnn_sum(w, b, row, unit)));
}

static void relu_unit(const walk *w, int64_t b, int64_t row, int64_t unit) {
  double sum = rnn_sum(w, b, row, unit);
  put(w, w->out[0], row * w->units + unit, sum < 0 ? 0 : sum);
}

static bool is_relu(const weir_args *args) {
  const weir_call *call = args->state;
  return weir_sv_is(weir_call_attr(call, "act")->s, "relu");
}

static weir_status run_rnn(const weir_args *args) {
  return run_layer(args, 4, is_relu(args) ? relu_unit : tanh_unit);
}

/* r, y, dy, dh -> dz, dh0 */
static weir_status run_rnn_grad(const weir_args *args) {
  walk w = walk_of(args, 0, 1);
  bool relu = is_relu(args);
  for (int64_t b = 0; b < w.batch && !weir_run_over(args); b++) {
    copy_row(&w, w.out[1], b, w.in[3], b);
    for (int64_t k = w.steps; k-- > 0 && !weir_run_over(args);) {
      int64_t at = row_at(&w, b, k) * w.units;
      for (int64_t j = 0; j < w.units && !weir_run_over(args); j++) {
        double y = get(&w, w.in[1], at + j);
        double dh =
            get(&w, w.out[1], b * w.units + j) + get(&w, w.in[2], at + j);
        put(&w, w.out[0], at + j, relu ? (y > 0 ? dh : 0) : dh * (1 - y * y));
      }
      for (int64_t j = 0; j < w.units && !weir_run_over(args); j++)
        put(&w, w.out[1], b * w.units + j,
            product_back(&w, w.out[0], at, w.in[0], j));
    }
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(gru, WEIR_FLOATS, run_gru);
WEIR_REF_KERNEL(gru_grad, WEIR_FLOATS, run_gru_grad);
WEIR_REF_KERNEL(rnn, WEIR_FLOATS, run_rnn);
WEIR_REF_KERNEL(rnn_grad, WEIR_FLOATS, run_rnn_grad);
