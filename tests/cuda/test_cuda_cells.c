/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "kernels/cpu/isa/cells.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/cuda/cells.h"
#include "kernels/philox.h"
#include "tests/cuda/cuda_bench.h"

/* Cells of recurrent layers beside the CPU's, with more units than two blocks
 * have threads. Operands with all steps keep the rows of the other steps. */

enum {
  kBatch = 5,
  kSteps = 3,
  kStep = 1,
  kUnits = 150,
  kN = kBatch * kUnits,
  kRows = kN * kSteps,
  kMost = 4 * kRows
};

/* Operands by what they are; the host's are those of the CPU's cells. */
typedef enum operand {
  Z,
  Q,
  BIAS,
  RBIAS,
  C,
  BEFORE,
  Y,
  H,
  EXTRA,
  DZ,
  DQ,
  DH,
  DC,
  DY,
  OPERANDS
} operand;
static float host[OPERANDS][kMost], got[kMost];

static void fill_host(void) {
  for (uint64_t k = 0; k < OPERANDS; k++)
    for (uint64_t i = 0; i < kMost; i++) {
      weir_philox p = weir_philox_block(k, 0, i);
      host[k][i] = weir_uniform_f32(p.word[0]) * 4.0f - 2.0f;
    }
}

/* One launch; outputs are compared in the order in which they were given. */
typedef struct bed {
  cuda_bench b;
  operand outs[OPERANDS];
  int64_t counts[OPERANDS];
} bed;

static const float *in(bed *t, operand k, int64_t n, int64_t first) {
  const float *at = cuda_bench_in(&t->b, host[k], (size_t)n * sizeof *at);
  return at + first;
}

static float *out(bed *t, operand k, int64_t n, int64_t first) {
  t->outs[t->b.out_count] = k;
  t->counts[t->b.out_count] = n;
  float *at = cuda_bench_inout(&t->b, host[k], (size_t)n * sizeof *at);
  return at + first;
}

static void check(bed *t, const char *what) {
  for (int k = 0; k < t->b.out_count; k++) {
    const float *want = host[t->outs[k]];
    cuda_bench_get(&t->b, k, got, (size_t)t->counts[k] * sizeof *got);
    for (int64_t i = 0; i < t->counts[k]; i++)
      if (!(fabsf(got[i] - want[i]) <= 4e-6f + 4e-6f * fabsf(want[i])))
        fail_msg("%s, output %d, element %d: %.9g, not %.9g", what, k, (int)i,
                 (double)got[i], (double)want[i]);
  }
  cuda_bench_clear(&t->b);
}

/* Where sequence |s| has its row of [t] |wide|, and of that the first. */
static int64_t row(int64_t s, int64_t wide) {
  return (s * kSteps + kStep) * wide;
}

static float *given(bool all, operand k, int64_t at) {
  return all ? host[k] + at : NULL;
}

static const weir_cell_table *cpu(void) {
  return weir_isa_at(0)->cells;
}

/* ---- Forward */

static void want_lstm(bool all) {
  if (!all) memset(host[C], 0, sizeof host[C]);
  for (int64_t s = 0; s < kBatch; s++) {
    weir_lstm_cell c = {.n = kUnits,
                        .gate = kUnits,
                        .q_gate = kUnits,
                        .z = host[Z] + row(s, 4 * kUnits),
                        .q = given(all, Q, s * 4 * kUnits),
                        .bias = given(all, BIAS, 0),
                        .c = host[C] + s * kUnits,
                        .y = host[Y] + row(s, kUnits),
                        .cells = given(all, EXTRA, row(s, kUnits)),
                        .keep = all};
    cpu()->lstm(&c);
  }
}

static void want_gru(bool all) {
  for (int64_t s = 0; s < kBatch; s++) {
    weir_gru_cell c = {.n = kUnits,
                       .gate = kUnits,
                       .q_gate = kUnits,
                       .z = host[Z] + row(s, 3 * kUnits),
                       .q = given(all, Q, s * 3 * kUnits),
                       .bias = given(all, BIAS, 0),
                       .rbias = given(all, RBIAS, 0),
                       .before = given(all, BEFORE, s * kUnits),
                       .y = host[Y] + row(s, kUnits),
                       .inner = given(all, EXTRA, row(s, kUnits)),
                       .keep = all};
    cpu()->gru(&c);
  }
}

/* The CPU's has x w in y. */
static void want_rnn(bool all, bool relu) {
  for (int64_t s = 0; s < kBatch; s++) {
    float *y = host[Y] + row(s, kUnits);
    memcpy(y, host[Z] + row(s, kUnits), kUnits * sizeof *y);
    weir_rnn_cell c = {.n = kUnits,
                       .relu = relu,
                       .q = given(all, Q, s * kUnits),
                       .bias = given(all, BIAS, 0),
                       .y = y};
    cpu()->rnn(&c);
  }
}

/* The operands of a layer of |gates|; with |all| none is missing. */
static weir_cells_args forward_args(bed *t, int gates, bool all) {
  int64_t wide = gates * kUnits;
  weir_cells_args a = {.n = kN,
                       .steps = kSteps,
                       .units = weir_divisor_of(kUnits),
                       .keep = all && gates > 1};
  a.z = out(t, Z, kRows * gates, kStep * wide);
  a.y = out(t, Y, kRows, kStep * kUnits);
  a.h = out(t, H, kN, 0);
  if (gates == 4) a.c = out(t, C, kN, 0);
  if (!all) return a;
  if (gates > 1) a.extra = out(t, EXTRA, kRows, kStep * kUnits);
  a.q = in(t, Q, kN * gates, 0);
  a.bias = in(t, BIAS, wide, 0);
  if (gates == 3) a.rbias = in(t, RBIAS, wide, 0);
  if (gates == 3) a.before = in(t, BEFORE, kN, 0);
  if (gates == 4) a.before = a.c;
  return a;
}

static void forward(bed *t, const char *body, int gates, bool all, bool relu) {
  fill_host();
  weir_cells_args a = forward_args(t, gates, all);
  a.relu = relu;
  if (gates == 4) want_lstm(all);
  if (gates == 3) want_gru(all);
  if (gates == 1) want_rnn(all, relu);
  for (int64_t s = 0; s < kBatch; s++)
    memcpy(host[H] + s * kUnits, host[Y] + row(s, kUnits),
           kUnits * sizeof(float));
  cuda_bench_run(&t->b, body, 2, &a, sizeof a);
  check(t, body);
}

static void steps_forward(void **state) {
  (void)state;
  bed t;
  cuda_bench_open(&t.b);
  for (int all = 0; all < 2; all++) {
    forward(&t, "lstm_cell_f32", 4, all, false);
    forward(&t, "gru_cell_f32", 3, all, false);
    forward(&t, "rnn_cell_f32", 1, all, false);
    forward(&t, "rnn_cell_f32", 1, all, true);
  }
  cuda_bench_close(&t.b);
}

/* ---- Back. Gates are Z, the state after the step or gru's inner is Y; BEFORE
 * has the rows of all steps. */

static void want_lstm_back(bool all) {
  if (!all) memset(host[DC], 0, sizeof host[DC]);
  for (int64_t s = 0; s < kBatch; s++) {
    weir_lstm_cell_back c = {.n = kUnits,
                             .gate = kUnits,
                             .gates = host[Z] + row(s, 4 * kUnits),
                             .cells = host[Y] + row(s, kUnits),
                             .before = given(all, BEFORE, row(s, kUnits)),
                             .dh = given(all, DH, s * kUnits),
                             .dy = given(all, DY, row(s, kUnits)),
                             .dc = host[DC] + s * kUnits,
                             .dz = host[DZ] + row(s, 4 * kUnits)};
    cpu()->lstm_back(&c);
  }
}

static void want_gru_back(bool all) {
  if (!all) memset(host[DH], 0, sizeof host[DH]);
  for (int64_t s = 0; s < kBatch; s++) {
    weir_gru_cell_back c = {.n = kUnits,
                            .gate = kUnits,
                            .gates = host[Z] + row(s, 3 * kUnits),
                            .inner = host[Y] + row(s, kUnits),
                            .before = given(all, BEFORE, row(s, kUnits)),
                            .dh = host[DH] + s * kUnits,
                            .dy = given(all, DY, row(s, kUnits)),
                            .dz = host[DZ] + row(s, 3 * kUnits),
                            .dq = host[DQ] + row(s, 3 * kUnits)};
    cpu()->gru_back(&c);
  }
}

static void want_rnn_back(bool all, bool relu) {
  for (int64_t s = 0; s < kBatch; s++) {
    weir_rnn_cell_back c = {.n = kUnits,
                            .relu = relu,
                            .y = host[Y] + row(s, kUnits),
                            .dh = given(all, DH, s * kUnits),
                            .dy = given(all, DY, row(s, kUnits)),
                            .dz = host[DZ] + row(s, kUnits)};
    cpu()->rnn_back(&c);
  }
}

/* The gradients of states are replaced where they lie, but without |all|, when
 * there are none after the step. */
static weir_cells_back_args back_args(bed *t, int gates, bool all) {
  int64_t first = kStep * kUnits;
  weir_cells_back_args a = {.n = kN,
                            .steps = kSteps,
                            .before_steps = kSteps,
                            .units = weir_divisor_of(kUnits)};
  a.dz = out(t, DZ, kRows * gates, gates * first);
  if (gates == 3) a.dq = out(t, DQ, kRows * gates, gates * first);
  if (gates > 1) a.past = out(t, gates == 4 ? DC : DH, kN, 0);
  if (gates > 1) a.gates = in(t, Z, kRows * gates, gates * first);
  a.saved = in(t, Y, kRows, first);
  if (!all) return a;
  if (gates > 1) a.before = in(t, BEFORE, kRows, first);
  a.dc = gates == 4 ? a.past : NULL;
  a.dh = gates == 3 ? a.past : in(t, DH, kN, 0);
  a.dy = in(t, DY, kRows, first);
  return a;
}

static void back(bed *t, const char *body, int gates, bool all, bool relu) {
  fill_host();
  weir_cells_back_args a = back_args(t, gates, all);
  a.relu = relu;
  if (gates == 4) want_lstm_back(all);
  if (gates == 3) want_gru_back(all);
  if (gates == 1) want_rnn_back(all, relu);
  cuda_bench_run(&t->b, body, 2, &a, sizeof a);
  check(t, body);
}

static void steps_back(void **state) {
  (void)state;
  bed t;
  cuda_bench_open(&t.b);
  for (int all = 0; all < 2; all++) {
    back(&t, "lstm_cell_back_f32", 4, all, false);
    back(&t, "gru_cell_back_f32", 3, all, false);
    back(&t, "rnn_cell_back_f32", 1, all, false);
    back(&t, "rnn_cell_back_f32", 1, all, true);
  }
  cuda_bench_close(&t.b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(steps_forward),
                                     cmocka_unit_test(steps_back)};
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
