/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise parts of recurrent steps and dropout's choice, on every
 * instruction set this processor has, against formulas in double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/isa/cells.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/random.h"
#include "kernels/philox.h"
#include "tests/kernels/bed.h"

enum { MOST = 41, GATE = 50, Q_GATE = 44 };

static double sigma(double x) {
  return 1 / (1 + exp(-x));
}

/* Reads element |i|, or 0 where the operand is missing. */
static double at(const float *x, int64_t i) {
  return x == NULL ? 0 : (double)x[i];
}

static void expect(const weir_isa *isa, const char *what, double got,
                   double want) {
  if (fabs(got - want) > 2e-6 + 2e-6 * fabs(want))
    fail_msg("%s, %s: %.9g, want %.9g", isa->name, what, got, want);
}

/* Numbers of one test: memory past the n-th unit must stay. */
typedef struct numbers {
  float *x[12];
} numbers;

static numbers make(void) {
  numbers m;
  for (uint64_t i = 0; i < 12; i++) m.x[i] = bed_numbers(4 * GATE, i + 1);
  return m;
}

static void drop(numbers *m) {
  for (int i = 0; i < 12; i++) free(m->x[i]);
}

/* Whether nothing was written between the units of the gates. */
static void check_rest(const weir_isa *isa, const float *got, const float *old,
                       int64_t n, int gates) {
  for (int64_t i = 0; i < 4 * GATE; i++)
    if ((i / GATE >= gates || i % GATE >= n) && got[i] != old[i])
      fail_msg("%s: element %ld was written", isa->name, (long)i);
}

/* Bit |b| of |missing|: that operand is left out. */
static float *given(const numbers *m, int i, unsigned missing, int bit) {
  return missing >> bit & 1 ? NULL : m->x[i];
}

static void lstm_one(const weir_isa *isa, int64_t n, unsigned missing) {
  numbers m = make(), old = make();
  weir_lstm_cell cell = {.n = n,
                         .gate = GATE,
                         .q_gate = Q_GATE,
                         .z = m.x[0],
                         .q = given(&m, 1, missing, 0),
                         .bias = given(&m, 2, missing, 1),
                         .c = m.x[3],
                         .y = m.x[4],
                         .cells = given(&m, 5, missing, 2),
                         .keep = !(missing >> 3 & 1)};
  isa->cells->lstm(&cell);
  for (int64_t i = 0; i < n; i++) {
    double a[4];
    for (int g = 0; g < 4; g++) {
      double z = at(old.x[0], g * GATE + i) + at(cell.bias, g * GATE + i) +
                 at(cell.q, g * Q_GATE + i);
      a[g] = g == 2 ? tanh(z) : sigma(z);
      expect(isa, "gate", (double)m.x[0][g * GATE + i],
             cell.keep ? a[g] : at(old.x[0], g * GATE + i));
    }
    double c = a[1] * at(old.x[3], i) + a[0] * a[2];
    expect(isa, "c", (double)m.x[3][i], c);
    expect(isa, "y", (double)m.x[4][i], a[3] * tanh(c));
    if (cell.cells) expect(isa, "cells", (double)m.x[5][i], c);
  }
  check_rest(isa, m.x[0], old.x[0], n, 4);
  check_rest(isa, m.x[4], old.x[4], n, 1);
  drop(&m);
  drop(&old);
}

static void lstm_back_one(const weir_isa *isa, int64_t n, unsigned missing) {
  numbers m = make(), old = make();
  weir_lstm_cell_back cell = {.n = n,
                              .gate = GATE,
                              .gates = m.x[0],
                              .cells = m.x[1],
                              .before = given(&m, 2, missing, 0),
                              .dh = given(&m, 3, missing, 1),
                              .dy = given(&m, 4, missing, 2),
                              .dc = m.x[5],
                              .dz = m.x[6]};
  isa->cells->lstm_back(&cell);
  for (int64_t i = 0; i < n; i++) {
    double in = at(m.x[0], i), forget = at(m.x[0], GATE + i);
    double g = at(m.x[0], 2 * GATE + i), out = at(m.x[0], 3 * GATE + i);
    double t = tanh(at(m.x[1], i)), dh = at(cell.dh, i) + at(cell.dy, i);
    double dc = at(old.x[5], i) + dh * out * (1 - t * t);
    const float *dz = m.x[6] + i;
    expect(isa, "dz i", (double)dz[0], dc * g * in * (1 - in));
    expect(isa, "dz f", (double)dz[GATE],
           dc * at(cell.before, i) * forget * (1 - forget));
    expect(isa, "dz g", (double)dz[2 * GATE], dc * in * (1 - g * g));
    expect(isa, "dz o", (double)dz[3 * GATE], dh * t * out * (1 - out));
    expect(isa, "dc", (double)m.x[5][i], dc * forget);
  }
  check_rest(isa, m.x[6], old.x[6], n, 4);
  check_rest(isa, m.x[5], old.x[5], n, 1);
  drop(&m);
  drop(&old);
}

static void gru_one(const weir_isa *isa, int64_t n, unsigned missing) {
  numbers m = make(), old = make();
  weir_gru_cell cell = {.n = n,
                        .gate = GATE,
                        .q_gate = Q_GATE,
                        .z = m.x[0],
                        .q = given(&m, 1, missing, 0),
                        .bias = given(&m, 2, missing, 1),
                        .rbias = given(&m, 3, missing, 2),
                        .before = given(&m, 4, missing, 3),
                        .y = m.x[5],
                        .inner = given(&m, 6, missing, 1),
                        .keep = !(missing & 1)};
  isa->cells->gru(&cell);
  for (int64_t i = 0; i < n; i++) {
    double z[3], q[3];
    for (int g = 0; g < 3; g++) {
      z[g] = at(old.x[0], g * GATE + i) + at(cell.bias, g * GATE + i);
      q[g] = at(cell.q, g * Q_GATE + i) + at(cell.rbias, g * GATE + i);
    }
    double reset = sigma(z[0] + q[0]), update = sigma(z[1] + q[1]);
    double inner = tanh(z[2] + reset * q[2]);
    expect(isa, "y", (double)m.x[5][i],
           (1 - update) * inner + update * at(cell.before, i));
    if (cell.inner) expect(isa, "inner", (double)m.x[6][i], q[2]);
    if (!cell.keep) continue;
    expect(isa, "r", (double)m.x[0][i], reset);
    expect(isa, "z", (double)m.x[0][GATE + i], update);
    expect(isa, "n", (double)m.x[0][2 * GATE + i], inner);
  }
  check_rest(isa, m.x[0], old.x[0], n, 3);
  check_rest(isa, m.x[5], old.x[5], n, 1);
  drop(&m);
  drop(&old);
}

static void gru_back_one(const weir_isa *isa, int64_t n, unsigned missing) {
  numbers m = make(), old = make();
  weir_gru_cell_back cell = {.n = n,
                             .gate = GATE,
                             .gates = m.x[0],
                             .inner = m.x[1],
                             .before = given(&m, 2, missing, 0),
                             .dh = m.x[3],
                             .through = given(&m, 4, missing, 1),
                             .dy = given(&m, 5, missing, 2),
                             .dz = m.x[6],
                             .dq = m.x[7]};
  isa->cells->gru_back(&cell);
  for (int64_t i = 0; i < n; i++) {
    double reset = at(m.x[0], i), update = at(m.x[0], GATE + i);
    double inner = at(m.x[0], 2 * GATE + i), q = at(m.x[1], i);
    double dh = at(old.x[3], i) + at(cell.through, i) + at(cell.dy, i);
    double dn = dh * (1 - update) * (1 - inner * inner);
    double dr = dn * q * reset * (1 - reset);
    double du = dh * (at(cell.before, i) - inner) * update * (1 - update);
    const double want[3] = {dr, du, dn};
    for (int g = 0; g < 3; g++) {
      expect(isa, "dz", (double)m.x[6][g * GATE + i], want[g]);
      expect(isa, "dq", (double)m.x[7][g * GATE + i],
             g == 2 ? dn * reset : want[g]);
    }
    expect(isa, "dh", (double)m.x[3][i], dh * update);
  }
  check_rest(isa, m.x[6], old.x[6], n, 3);
  check_rest(isa, m.x[7], old.x[7], n, 3);
  drop(&m);
  drop(&old);
}

static void rnn_one(const weir_isa *isa, int64_t n, unsigned missing) {
  numbers m = make(), old = make();
  bool relu = missing >> 2 & 1;
  weir_rnn_cell cell = {.n = n,
                        .relu = relu,
                        .q = given(&m, 0, missing, 0),
                        .bias = given(&m, 1, missing, 1),
                        .y = m.x[2]};
  weir_rnn_cell_back back = {.n = n,
                             .relu = relu,
                             .y = m.x[3],
                             .dh = given(&m, 4, missing, 0),
                             .dy = given(&m, 5, missing, 1),
                             .dz = m.x[6]};
  isa->cells->rnn(&cell);
  isa->cells->rnn_back(&back);
  for (int64_t i = 0; i < n; i++) {
    double sum = at(old.x[2], i) + at(cell.q, i) + at(cell.bias, i);
    expect(isa, "y", (double)m.x[2][i], relu ? fmax(sum, 0) : tanh(sum));
    double y = at(m.x[3], i), dh = at(back.dh, i) + at(back.dy, i);
    expect(isa, "dz", (double)m.x[6][i],
           relu ? (y > 0 ? dh : 0) : dh * (1 - y * y));
  }
  check_rest(isa, m.x[2], old.x[2], n, 1);
  check_rest(isa, m.x[6], old.x[6], n, 1);
  drop(&m);
  drop(&old);
}

typedef void (*one_fn)(const weir_isa *isa, int64_t n, unsigned missing);

static void on_all(one_fn one) {
  const weir_isa *isa = NULL;
  for (int k = 0; (isa = weir_isa_at(k)) != NULL; k++)
    for (int64_t n = 1; n <= MOST; n++)
      for (unsigned missing = 0; missing < 16; missing++) one(isa, n, missing);
}

static void lstm_cells(void **state) {
  (void)state;
  on_all(lstm_one);
  on_all(lstm_back_one);
}

static void gru_cells(void **state) {
  (void)state;
  on_all(gru_one);
  on_all(gru_back_one);
}

static void rnn_cells(void **state) {
  (void)state;
  on_all(rnn_one);
}

/* Which elements stay is the same on every instruction set, exactly. */
static void dropouts_choose_alike(void **state) {
  (void)state;
  enum { COUNT = 1000 };
  float *x = bed_numbers(COUNT, 3), *y = bed_memory(COUNT * sizeof *y);
  uint8_t *mask = bed_memory(COUNT);
  const uint64_t step = 0x100000007u;
  const weir_isa *isa = NULL;
  for (int k = 0; (isa = weir_isa_at(k)) != NULL; k++)
    for (int64_t n = 1; n < COUNT; n += 37) {
      weir_dropout d = {x, y, mask, 4 * 12345678901, n, 99, step, 0xC00000, 2};
      mask[n] = 0xC5;
      isa->random->dropout(&d);
      for (int64_t i = 0; i < n; i++) {
        weir_philox p =
            weir_philox_block(99, step, (uint64_t)(12345678901 + i / 4));
        bool stays = weir_uniform_f32(p.word[i % 4]) < 0.75f;
        assert_int_equal(mask[i], stays);
        assert_true(y[i] == (stays ? 2 * x[i] : 0));
      }
      assert_int_equal(mask[n], 0xC5);
    }
  free(x);
  free(y);
  free(mask);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lstm_cells), cmocka_unit_test(gru_cells),
      cmocka_unit_test(rnn_cells), cmocka_unit_test(dropouts_choose_alike)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
