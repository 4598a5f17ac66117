/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of recurrent layers, forward and back: a thread has all gates of a unit
 * of one sequence. Gates that are kept are all that the way back needs, but for
 * lstm's tanh of the cell: derivatives come from values, sigmoid' = s (1 - s),
 * tanh' = 1 - t t.
 * Sources: Hochreiter and Schmidhuber, Neural Computation 9 (1997) 1735-1780,
 * with the forget gate of Gers et al. (2000); Cho et al., EMNLP 2014, with the
 * reset gate after the product. */
#include "kernels/cuda/cells.h"

#include "kernels/cuda/element.h"

/* Where the parts of one unit are. */
typedef struct cell_place {
  int64_t row;  /* in [t] u */
  int64_t wide; /* in [t] g u, of gate 0 */
  int64_t q;    /* in b, g u, of gate 0 */
  int64_t sequence, unit;
} cell_place;

static __device__ __forceinline__ cell_place cell_at(weir_divisor units,
                                                     int64_t steps,
                                                     int64_t gates, int64_t i) {
  uint32_t unit;
  int64_t sequence = weir_divide_rest((uint32_t)i, units, &unit);
  int64_t u = units.d, row = sequence * steps;
  return {row * u + unit, row * gates * u + unit, sequence * gates * u + unit,
          sequence, unit};
}

static __device__ __forceinline__ float cell_get(const float *x, int64_t i) {
  return x != nullptr ? x[i] : 0.0f;
}

/* The state before a step. */
static __device__ __forceinline__ float cell_before(
    const weir_cells_back_args &args, const cell_place &p) {
  int64_t row = p.sequence * args.before_steps;
  return cell_get(args.before, row * args.units.d + p.unit);
}

static __device__ __forceinline__ void cell_put(float *y, int64_t i, float v) {
  if (y != nullptr) y[i] = v;
}

/* ---- lstm: c' = f c + i g, h = o tanh(c') */

WEIR_BODY(lstm_cell_f32, weir_cells_args) {
  int64_t u = args.units.d;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    cell_place p = cell_at(args.units, args.steps, 4, i);
    float *z = args.z + p.wide, a[4];
    for (int g = 0; g < 4; g++) {
      float sum = z[g * u] + cell_get(args.bias, g * u + p.unit);
      sum += cell_get(args.q, p.q + g * u);
      a[g] = g == 2 ? weir_el_tanh(sum) : weir_el_sigmoid(sum);
    }
    float c = fmaf(a[1], cell_get(args.before, i), a[0] * a[2]);
    float h = a[3] * weir_el_tanh(c);
    args.c[i] = c;
    args.h[i] = h;
    args.y[p.row] = h;
    cell_put(args.extra, p.row, c);
    if (args.keep == 0) continue;
    for (int g = 0; g < 4; g++) z[g * u] = a[g];
  }
}

WEIR_BODY(lstm_cell_back_f32, weir_cells_back_args) {
  int64_t u = args.units.d;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    cell_place p = cell_at(args.units, args.steps, 4, i);
    const float *gates = args.gates + p.wide;
    float in = gates[0], forget = gates[u], input = gates[2 * u];
    float out = gates[3 * u], t = weir_el_tanh(args.saved[p.row]);
    float dh = cell_get(args.dh, i) + cell_get(args.dy, p.row);
    float dc = fmaf(dh * out, fmaf(-t, t, 1.0f), cell_get(args.dc, i));
    float before = cell_before(args, p);
    float *dz = args.dz + p.wide;
    dz[0] = dc * input * in * (1.0f - in);
    dz[u] = dc * before * forget * (1.0f - forget);
    dz[2 * u] = dc * in * fmaf(-input, input, 1.0f);
    dz[3 * u] = dh * t * out * (1.0f - out);
    args.past[i] = dc * forget;
  }
}

/* ---- gru: h' = (1 - z) n + z h, n = tanh(x w + r (h r + rbias)) */

WEIR_BODY(gru_cell_f32, weir_cells_args) {
  int64_t u = args.units.d;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    cell_place p = cell_at(args.units, args.steps, 3, i);
    float *z = args.z + p.wide, sum[3], q[3];
    for (int g = 0; g < 3; g++) {
      sum[g] = z[g * u] + cell_get(args.bias, g * u + p.unit);
      q[g] =
          cell_get(args.q, p.q + g * u) + cell_get(args.rbias, g * u + p.unit);
    }
    float reset = weir_el_sigmoid(sum[0] + q[0]);
    float update = weir_el_sigmoid(sum[1] + q[1]);
    float n = weir_el_tanh(fmaf(reset, q[2], sum[2]));
    float h = fmaf(1.0f - update, n, update * cell_get(args.before, i));
    args.h[i] = h;
    args.y[p.row] = h;
    cell_put(args.extra, p.row, q[2]);
    if (args.keep == 0) continue;
    z[0] = reset;
    z[u] = update;
    z[2 * u] = n;
  }
}

/* dz and dq differ in gate n alone, where the reset gate lies between. */
WEIR_BODY(gru_cell_back_f32, weir_cells_back_args) {
  int64_t u = args.units.d;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    cell_place p = cell_at(args.units, args.steps, 3, i);
    const float *gates = args.gates + p.wide;
    float reset = gates[0], update = gates[u], n = gates[2 * u];
    float before = cell_before(args, p);
    float dh = cell_get(args.dh, i) + cell_get(args.dy, p.row);
    float dn = dh * (1.0f - update) * fmaf(-n, n, 1.0f);
    float dr = dn * args.saved[p.row] * reset * (1.0f - reset);
    float du = dh * (before - n) * update * (1.0f - update);
    float *dz = args.dz + p.wide, *dq = args.dq + p.wide;
    dz[0] = dq[0] = dr;
    dz[u] = dq[u] = du;
    dz[2 * u] = dn;
    dq[2 * u] = dn * reset;
    args.past[i] = dh * update;
  }
}

/* ---- rnn: h' = tanh or relu of the sum. Conditions keep a NaN. */

WEIR_BODY(rnn_cell_f32, weir_cells_args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    cell_place p = cell_at(args.units, args.steps, 1, i);
    float sum = args.z[p.row] + cell_get(args.bias, p.unit);
    sum += cell_get(args.q, i);
    float h = args.relu == 0 ? weir_el_tanh(sum) : sum < 0.0f ? 0.0f : sum;
    args.h[i] = h;
    args.y[p.row] = h;
  }
}

WEIR_BODY(rnn_cell_back_f32, weir_cells_back_args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    cell_place p = cell_at(args.units, args.steps, 1, i);
    float y = args.saved[p.row];
    float dh = cell_get(args.dh, i) + cell_get(args.dy, p.row);
    float slope = args.relu == 0 ? fmaf(-y, y, 1.0f) : 1.0f;
    args.dz[p.row] = args.relu != 0 && !(y > 0.0f) ? 0.0f : dh * slope;
  }
}
