/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of recurrent layers, forward and back: a thread has all gates of a unit
 * of one sequence. Gates that are kept are all that the way back needs, but for
 * lstm's tanh of the cell: derivatives come from values, sigmoid' = s (1 - s),
 * tanh' = 1 - t t.
 * Sources: Hochreiter and Schmidhuber, Neural Computation 9 (1997) 1735-1780,
 * with the forget gate of Gers et al. (2000); Cho et al., EMNLP 2014, with the
 * reset gate after the product. */
#include "kernels/cuda/cells.h"

#include "kernels/cuda/wide.h"

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

template <class V>
static __device__ __forceinline__ V cell_get(const void *x, int64_t i) {
  return x != nullptr ? ((const V *)x)[i] : (V)0;
}

/* The state before a step. */
template <class V>
static __device__ __forceinline__ V
cell_before(const weir_cells_back_args &args, const cell_place &p) {
  int64_t row = p.sequence * args.before_steps;
  return cell_get<V>(args.before, row * args.units.d + p.unit);
}

template <class V>
static __device__ __forceinline__ void cell_put(void *y, int64_t i, V v) {
  if (y != nullptr) ((V *)y)[i] = v;
}

/* ---- lstm: c' = f c + i g, h = o tanh(c') */

template <class V>
static __device__ __forceinline__ void lstm_cell(const weir_cells_args &args) {
  int64_t u = args.units.d;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    cell_place p = cell_at(args.units, args.steps, 4, i);
    V *z = (V *)args.z + p.wide, a[4];
    for (int g = 0; g < 4; g++) {
      V sum = z[g * u] + cell_get<V>(args.bias, g * u + p.unit);
      sum += cell_get<V>(args.q, p.q + g * u);
      a[g] = g == 2 ? weir_el_tanh(sum) : weir_el_sigmoid(sum);
    }
    V c = weir_el_fma(a[1], cell_get<V>(args.before, i), a[0] * a[2]);
    V h = a[3] * weir_el_tanh(c);
    ((V *)args.c)[i] = c;
    ((V *)args.h)[i] = h;
    ((V *)args.y)[p.row] = h;
    cell_put(args.extra, p.row, c);
    if (args.keep == 0) continue;
    for (int g = 0; g < 4; g++) z[g * u] = a[g];
  }
}

template <class V>
static __device__ __forceinline__ void lstm_cell_back(
    const weir_cells_back_args &args) {
  int64_t u = args.units.d;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    cell_place p = cell_at(args.units, args.steps, 4, i);
    const V *gates = (const V *)args.gates + p.wide;
    V in = gates[0], forget = gates[u], input = gates[2 * u];
    V out = gates[3 * u], t = weir_el_tanh(((const V *)args.saved)[p.row]);
    V dh = cell_get<V>(args.dh, i) + cell_get<V>(args.dy, p.row);
    V dc = weir_el_fma(dh * out, weir_el_fma(-t, t, (V)1),
                       cell_get<V>(args.dc, i));
    V before = cell_before<V>(args, p);
    V *dz = (V *)args.dz + p.wide;
    dz[0] = dc * input * in * ((V)1 - in);
    dz[u] = dc * before * forget * ((V)1 - forget);
    dz[2 * u] = dc * in * weir_el_fma(-input, input, (V)1);
    dz[3 * u] = dh * t * out * ((V)1 - out);
    ((V *)args.past)[i] = dc * forget;
  }
}

/* ---- gru: h' = (1 - z) n + z h, n = tanh(x w + r (h r + rbias)) */

template <class V>
static __device__ __forceinline__ void gru_cell(const weir_cells_args &args) {
  int64_t u = args.units.d;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    cell_place p = cell_at(args.units, args.steps, 3, i);
    V *z = (V *)args.z + p.wide, sum[3], q[3];
    for (int g = 0; g < 3; g++) {
      sum[g] = z[g * u] + cell_get<V>(args.bias, g * u + p.unit);
      q[g] = cell_get<V>(args.q, p.q + g * u) +
             cell_get<V>(args.rbias, g * u + p.unit);
    }
    V reset = weir_el_sigmoid(sum[0] + q[0]);
    V update = weir_el_sigmoid(sum[1] + q[1]);
    V n = weir_el_tanh(weir_el_fma(reset, q[2], sum[2]));
    V h = weir_el_fma((V)1 - update, n, update * cell_get<V>(args.before, i));
    ((V *)args.h)[i] = h;
    ((V *)args.y)[p.row] = h;
    cell_put(args.extra, p.row, q[2]);
    if (args.keep == 0) continue;
    z[0] = reset;
    z[u] = update;
    z[2 * u] = n;
  }
}

/* dz and dq differ in gate n alone, where the reset gate lies between. */
template <class V>
static __device__ __forceinline__ void gru_cell_back(
    const weir_cells_back_args &args) {
  int64_t u = args.units.d;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    cell_place p = cell_at(args.units, args.steps, 3, i);
    const V *gates = (const V *)args.gates + p.wide;
    V reset = gates[0], update = gates[u], n = gates[2 * u];
    V before = cell_before<V>(args, p);
    V dh = cell_get<V>(args.dh, i) + cell_get<V>(args.dy, p.row);
    V dn = dh * ((V)1 - update) * weir_el_fma(-n, n, (V)1);
    V dr = dn * ((const V *)args.saved)[p.row] * reset * ((V)1 - reset);
    V du = dh * (before - n) * update * ((V)1 - update);
    V *dz = (V *)args.dz + p.wide, *dq = (V *)args.dq + p.wide;
    dz[0] = dq[0] = dr;
    dz[u] = dq[u] = du;
    dz[2 * u] = dn;
    dq[2 * u] = dn * reset;
    ((V *)args.past)[i] = dh * update;
  }
}

/* ---- rnn: h' = tanh or relu of the sum. Conditions keep a NaN. */

template <class V>
static __device__ __forceinline__ void rnn_cell(const weir_cells_args &args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    cell_place p = cell_at(args.units, args.steps, 1, i);
    V sum = ((const V *)args.z)[p.row] + cell_get<V>(args.bias, p.unit);
    sum += cell_get<V>(args.q, i);
    V h = args.relu == 0 ? weir_el_tanh(sum) : sum < (V)0 ? (V)0 : sum;
    ((V *)args.h)[i] = h;
    ((V *)args.y)[p.row] = h;
  }
}

template <class V>
static __device__ __forceinline__ void rnn_cell_back(
    const weir_cells_back_args &args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    cell_place p = cell_at(args.units, args.steps, 1, i);
    V y = ((const V *)args.saved)[p.row];
    V dh = cell_get<V>(args.dh, i) + cell_get<V>(args.dy, p.row);
    V slope = args.relu == 0 ? weir_el_fma(-y, y, (V)1) : (V)1;
    ((V *)args.dz)[p.row] = args.relu != 0 && !(y > (V)0) ? (V)0 : dh * slope;
  }
}

#define CELL(name, args_type)        \
  WEIR_BODY(name##_f32, args_type) { \
    name<float>(args);               \
  }                                  \
  WEIR_BODY(name##_f64, args_type) { \
    name<double>(args);              \
  }
CELL(lstm_cell, weir_cells_args)
CELL(lstm_cell_back, weir_cells_back_args)
CELL(gru_cell, weir_cells_args)
CELL(gru_cell_back, weir_cells_back_args)
CELL(rnn_cell, weir_cells_args)
CELL(rnn_cell_back, weir_cells_back_args)
