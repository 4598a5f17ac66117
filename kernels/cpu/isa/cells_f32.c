/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise part of recurrent steps, forward and back.
 *
 * One pass: gates, state and output of a unit are computed while they are in
 * registers, so a step reads x w and h r once and writes the state once.
 * |keep| stores the gates over x w, which is not needed any more: the backward
 * step reads them there and no exponential is computed twice.
 * Derivatives come from the values: sigmoid' = s (1 - s), tanh' = 1 - t t.
 * Sources: Hochreiter and Schmidhuber, Neural Computation 9 (1997) 1735-1780,
 * with the forget gate of Gers et al. (2000); Cho et al., EMNLP 2014, with
 * the reset gate after the product.
 * Cost: lstm 5 exponentials a unit, gru 3, rnn 1 or none; 0 when going back but
 * for lstm's tanh of the cell. */
#include "kernels/cpu/isa/cells.h"

#include "kernels/cpu/isa/vmath.h"

/* The first |n| elements, at most a vector. */
INLINE vf get(const float *p, int64_t n) {
  return n >= LANES ? vload(p) : vload_part(p, n);
}

INLINE vf get_or_zero(const float *p, int64_t i, int64_t n) {
  return p == NULL ? vset(0.0f) : get(p + i, n);
}

INLINE void put(float *p, vf v, int64_t n) {
  if (n >= LANES)
    vstore(p, v);
  else
    vstore_part(p, v, n);
}

/* ---- lstm: c' = f c + i g, h = o tanh(c') */

static void lstm(const weir_lstm_cell *cell) {
  int64_t gate = cell->gate;
  for (int64_t i = 0; i < cell->n; i += LANES) {
    int64_t n = cell->n - i;
    float *z = cell->z + i;
    vf sums[4];
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
      sums[g] = get(z + g * gate, n);
      if (cell->bias) sums[g] += get(cell->bias + g * gate + i, n);
      if (cell->q) sums[g] += get(cell->q + g * cell->q_gate + i, n);
    }
    vf in = vsigmoid(sums[0]), forget = vsigmoid(sums[1]);
    vf input = vtanh(sums[2]), out = vsigmoid(sums[3]);
    vf c = forget * get(cell->c + i, n) + in * input;
    put(cell->c + i, c, n);
    put(cell->y + i, out * vtanh(c), n);
    if (cell->cells) put(cell->cells + i, c, n);
    if (!cell->keep) continue;
    put(z, in, n);
    put(z + gate, forget, n);
    put(z + 2 * gate, input, n);
    put(z + 3 * gate, out, n);
  }
}

/* dc is the sum of the next step's and the output's share; it leaves as the
 * gradient of the cell before. */
static void lstm_back(const weir_lstm_cell_back *cell) {
  int64_t gate = cell->gate;
  for (int64_t i = 0; i < cell->n; i += LANES) {
    int64_t n = cell->n - i;
    const float *gates = cell->gates + i;
    float *dz = cell->dz + i;
    vf in = get(gates, n), forget = get(gates + gate, n);
    vf input = get(gates + 2 * gate, n), out = get(gates + 3 * gate, n);
    vf t = vtanh(get(cell->cells + i, n));
    vf dh = get_or_zero(cell->dh, i, n) + get_or_zero(cell->dy, i, n);
    vf dc = get(cell->dc + i, n) + dh * out * (1.0f - t * t);
    vf before = get_or_zero(cell->before, i, n);
    put(dz, dc * input * in * (1.0f - in), n);
    put(dz + gate, dc * before * forget * (1.0f - forget), n);
    put(dz + 2 * gate, dc * in * (1.0f - input * input), n);
    put(dz + 3 * gate, dh * t * out * (1.0f - out), n);
    put(cell->dc + i, dc * forget, n);
  }
}

/* ---- gru: h' = (1 - u) n + u h, n = tanh(x w + r * (h r + rbias)) */

static void gru(const weir_gru_cell *cell) {
  int64_t gate = cell->gate;
  for (int64_t i = 0; i < cell->n; i += LANES) {
    int64_t n = cell->n - i;
    float *z = cell->z + i;
    vf sums[3], q[3];
#pragma GCC unroll 3
    for (int g = 0; g < 3; g++) {
      sums[g] = get(z + g * gate, n);
      q[g] = get_or_zero(cell->q, g * cell->q_gate + i, n);
      if (cell->bias) sums[g] += get(cell->bias + g * gate + i, n);
      if (cell->rbias) q[g] += get(cell->rbias + g * gate + i, n);
    }
    vf reset = vsigmoid(sums[0] + q[0]), update = vsigmoid(sums[1] + q[1]);
    vf inner = vtanh(sums[2] + reset * q[2]);
    vf before = get_or_zero(cell->before, i, n);
    put(cell->y + i, (1.0f - update) * inner + update * before, n);
    if (cell->inner) put(cell->inner + i, q[2], n);
    if (!cell->keep) continue;
    put(z, reset, n);
    put(z + gate, update, n);
    put(z + 2 * gate, inner, n);
  }
}

/* dz goes to x w, dq to the products with h: they differ in gate n alone, where
 * the reset gate lies between. |inner| is the product it was multiplied with.
 */
static void gru_back(const weir_gru_cell_back *cell) {
  int64_t gate = cell->gate;
  for (int64_t i = 0; i < cell->n; i += LANES) {
    int64_t n = cell->n - i;
    const float *gates = cell->gates + i;
    float *dz = cell->dz + i, *dq = cell->dq + i;
    vf reset = get(gates, n), update = get(gates + gate, n);
    vf inner = get(gates + 2 * gate, n), q = get(cell->inner + i, n);
    vf before = get_or_zero(cell->before, i, n);
    vf dh = get(cell->dh + i, n) + get_or_zero(cell->through, i, n);
    dh += get_or_zero(cell->dy, i, n);
    vf dn = dh * (1.0f - update) * (1.0f - inner * inner);
    vf dr = dn * q * reset * (1.0f - reset);
    vf du = dh * (before - inner) * update * (1.0f - update);
    put(dz, dr, n);
    put(dz + gate, du, n);
    put(dz + 2 * gate, dn, n);
    put(dq, dr, n);
    put(dq + gate, du, n);
    put(dq + 2 * gate, dn * reset, n);
    put(cell->dh + i, dh * update, n);
  }
}

/* ---- rnn */

static void rnn(const weir_rnn_cell *cell) {
  for (int64_t i = 0; i < cell->n; i += LANES) {
    int64_t n = cell->n - i;
    vf sum = get(cell->y + i, n);
    if (cell->bias) sum += get(cell->bias + i, n);
    if (cell->q) sum += get(cell->q + i, n);
    vf y = cell->relu ? vselect(sum < 0.0f, vset(0.0f), sum) : vtanh(sum);
    put(cell->y + i, y, n);
  }
}

static void rnn_back(const weir_rnn_cell_back *cell) {
  for (int64_t i = 0; i < cell->n; i += LANES) {
    int64_t n = cell->n - i;
    vf y = get(cell->y + i, n);
    vf dh = get_or_zero(cell->dh, i, n) + get_or_zero(cell->dy, i, n);
    vf dz =
        cell->relu ? vselect(y > 0.0f, dh, vset(0.0f)) : dh * (1.0f - y * y);
    put(cell->dz + i, dz, n);
  }
}

extern const weir_cell_table ISA(cells);
const weir_cell_table ISA(cells) = {.lstm = lstm,
                                    .lstm_back = lstm_back,
                                    .gru = gru,
                                    .gru_back = gru_back,
                                    .rnn = rnn,
                                    .rnn_back = rnn_back};
