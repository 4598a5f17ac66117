/* SPDX-License-Identifier: Apache-2.0 */
/* lstm, gru, rnn and their gradients: which operand is what of recurrent.h. The
 * gradients of x, w and r are products of whole matrices, which the ops'
 * gradient rules add to the graph. */
#include "kernels/gpu/nn/recurrent.h"
#include "kernels/registry.h"

/* ---- lstm: x, w, r, bias, h0, c0 -> y, h, c, gates, cells. x w lies in the
 * gates, or in scratch if these are not wanted. */

static weir_status prepare_lstm(const weir_call *call, weir_prepared *out,
                                weir_error *err) {
  bool keeps_gates = call->out[3].dtype != WEIR_DTYPE_NONE;
  return weir_gpu_recurrent_prepare(call, !keeps_gates, out, err);
}

static weir_status run_lstm(const weir_args *args) {
  void *gates = weir_gpu_recurrent_out(args, 3);
  const weir_gpu_cells cells = {
      .body = WEIR_GPU_lstm_cell_f32,
      .cells = {.bias = weir_gpu_recurrent_in(args, 3),
                .y = weir_gpu_recurrent_out(args, 0),
                .h = weir_gpu_recurrent_out(args, 1),
                .c = weir_gpu_recurrent_out(args, 2),
                .extra = weir_gpu_recurrent_out(args, 4),
                .keep = gates != NULL},
      .sums = gates != NULL ? gates : weir_gpu_recurrent_sums(args),
      .h0 = weir_gpu_recurrent_in(args, 4),
      .c0 = weir_gpu_recurrent_in(args, 5)};
  return weir_gpu_recurrent_run(args, &cells);
}

/* r, gates, cells, c0, dy, dh, dc -> dz, dh0, dc0. */
static weir_status prepare_lstm_grad(const weir_call *call, weir_prepared *out,
                                     weir_error *err) {
  return weir_gpu_recurrent_back_prepare(call, false, out, err);
}

static weir_status run_lstm_grad(const weir_args *args) {
  void *dz = weir_gpu_recurrent_out(args, 0);
  void *dc0 = weir_gpu_recurrent_out(args, 2);
  const weir_gpu_cells_back cells = {
      .body = WEIR_GPU_lstm_cell_back_f32,
      .cells = {.dz = dz,
                .past = dc0,
                .gates = weir_gpu_recurrent_in(args, 1),
                .saved = weir_gpu_recurrent_in(args, 2),
                .before = weir_gpu_recurrent_in(args, 3),
                .dh = weir_gpu_recurrent_in(args, 5),
                .dc = weir_gpu_recurrent_in(args, 6),
                .dy = weir_gpu_recurrent_in(args, 4)},
      .states = weir_gpu_recurrent_in(args, 2),
      .dq = dz,
      .dh0 = weir_gpu_recurrent_out(args, 1),
      .dc0 = dc0};
  return weir_gpu_recurrent_run_back(args, &cells);
}

/* ---- gru: x, w, r, bias, rbias, h0 -> y, h, gates, inner */

static weir_status prepare_gru(const weir_call *call, weir_prepared *out,
                               weir_error *err) {
  bool keeps_gates = call->out[2].dtype != WEIR_DTYPE_NONE;
  return weir_gpu_recurrent_prepare(call, !keeps_gates, out, err);
}

static weir_status run_gru(const weir_args *args) {
  void *gates = weir_gpu_recurrent_out(args, 2);
  const weir_gpu_cells cells = {
      .body = WEIR_GPU_gru_cell_f32,
      .cells = {.bias = weir_gpu_recurrent_in(args, 3),
                .rbias = weir_gpu_recurrent_in(args, 4),
                .y = weir_gpu_recurrent_out(args, 0),
                .h = weir_gpu_recurrent_out(args, 1),
                .extra = weir_gpu_recurrent_out(args, 3),
                .keep = gates != NULL},
      .sums = gates != NULL ? gates : weir_gpu_recurrent_sums(args),
      .h0 = weir_gpu_recurrent_in(args, 5)};
  return weir_gpu_recurrent_run(args, &cells);
}

/* r, gates, inner, y, h0, dy, dh -> dz, dq, dh0. The state's gradient has two
 * shares: a body leaves the one past the gates in dh0, and the product adds the
 * one through them. */
static weir_status prepare_gru_grad(const weir_call *call, weir_prepared *out,
                                    weir_error *err) {
  return weir_gpu_recurrent_back_prepare(call, true, out, err);
}

static weir_status run_gru_grad(const weir_args *args) {
  void *dq = weir_gpu_recurrent_out(args, 1);
  void *dh0 = weir_gpu_recurrent_out(args, 2);
  const weir_gpu_cells_back cells = {
      .body = WEIR_GPU_gru_cell_back_f32,
      .cells = {.dz = weir_gpu_recurrent_out(args, 0),
                .dq = dq,
                .past = dh0,
                .gates = weir_gpu_recurrent_in(args, 1),
                .saved = weir_gpu_recurrent_in(args, 2),
                .before = weir_gpu_recurrent_in(args, 4),
                .dh = weir_gpu_recurrent_in(args, 6),
                .dy = weir_gpu_recurrent_in(args, 5)},
      .states = weir_gpu_recurrent_in(args, 3),
      .dq = dq,
      .dh0 = dh0};
  return weir_gpu_recurrent_run_back(args, &cells);
}

/* ---- rnn: x, w, r, bias, h0 -> y, h. x w lies in y. */

static weir_status with_function(const weir_call *call, weir_status s,
                                 weir_prepared *out) {
  weir_gpu_recurrent *p = out->state;
  if (s == WEIR_OK)
    p->relu = weir_sv_is(weir_call_attr(call, "act")->s, "relu");
  return s;
}

static weir_status prepare_rnn(const weir_call *call, weir_prepared *out,
                               weir_error *err) {
  weir_status s = weir_gpu_recurrent_prepare(call, false, out, err);
  return with_function(call, s, out);
}

static weir_status run_rnn(const weir_args *args) {
  void *y = weir_gpu_recurrent_out(args, 0);
  const weir_gpu_cells cells = {
      .body = WEIR_GPU_rnn_cell_f32,
      .cells = {.bias = weir_gpu_recurrent_in(args, 3),
                .y = y,
                .h = weir_gpu_recurrent_out(args, 1)},
      .sums = y,
      .h0 = weir_gpu_recurrent_in(args, 4)};
  return weir_gpu_recurrent_run(args, &cells);
}

/* r, y, dy, dh -> dz, dh0. */
static weir_status prepare_rnn_grad(const weir_call *call, weir_prepared *out,
                                    weir_error *err) {
  weir_status s = weir_gpu_recurrent_back_prepare(call, false, out, err);
  return with_function(call, s, out);
}

static weir_status run_rnn_grad(const weir_args *args) {
  const void *y = weir_gpu_recurrent_in(args, 1);
  void *dz = weir_gpu_recurrent_out(args, 0);
  const weir_gpu_cells_back cells = {
      .body = WEIR_GPU_rnn_cell_back_f32,
      .cells = {.dz = dz,
                .saved = y,
                .dh = weir_gpu_recurrent_in(args, 3),
                .dy = weir_gpu_recurrent_in(args, 2)},
      .states = y,
      .dq = dz,
      .dh0 = weir_gpu_recurrent_out(args, 1)};
  return weir_gpu_recurrent_run_back(args, &cells);
}

#define LAYER(op_name, accepts_it)                    \
  const weir_kernel_def weir_kernel_gpu_##op_name = { \
      .op = #op_name,                                 \
      .name = "gpu." #op_name,                        \
      .device = WEIR_GPU,                             \
      .types = WEIR_FLOATS,                           \
      .accepts = accepts_it,                          \
      .prepare = prepare_##op_name,                   \
      .release = weir_gpu_recurrent_release,          \
      .run = run_##op_name}

LAYER(lstm, weir_gpu_recurrent_accepts);
LAYER(lstm_grad, weir_gpu_recurrent_back_accepts);
LAYER(gru, weir_gpu_recurrent_accepts);
LAYER(gru_grad, weir_gpu_recurrent_back_accepts);
LAYER(rnn, weir_gpu_recurrent_accepts);
LAYER(rnn_grad, weir_gpu_recurrent_back_accepts);
