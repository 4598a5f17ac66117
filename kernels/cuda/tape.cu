/* SPDX-License-Identifier: Apache-2.0 */
/* The body of tapes (tape.h). All threads take the same branches, as the tape
 * is the same for all, and read it from constant memory. A column of shared
 * memory is one thread's alone, so nobody waits. An array in registers has no
 * index that the compiler does not know, hence the unrolled loops. */
#include "kernels/cuda/tape.h"

#include "kernels/cuda/fours.h"
#include "kernels/cuda/functions.h"

/* A thread's elements: weir_four<float> or one. */
struct tape_one {
  float v[1];
};

/* The index of element |i|, or of the first of its four: |scale| is 1 or 4. */
static __device__ __forceinline__ void tape_index(const weir_tape_args &args,
                                                  uint32_t i, uint32_t scale,
                                                  uint32_t *c) {
  WEIR_BODY_UNROLL(4)
  for (int d = 0; d < WEIR_TAPE_RANK; d++) {
    c[d] = 0;
    if (d + 1 < args.rank)
      i = weir_divide_rest(i, args.dims[d], &c[d]);
    else if (d + 1 == args.rank)
      c[d] = i;
  }
  c[0] *= scale;
}

static __device__ __forceinline__ uint32_t tape_at(const weir_tape_input &in,
                                                   const uint32_t *c) {
  uint32_t at = 0;
  WEIR_BODY_UNROLL(4)
  for (int d = 0; d < WEIR_TAPE_RANK; d++) at += c[d] * (uint32_t)in.strides[d];
  return at;
}

static __device__ __forceinline__ void tape_load(const weir_tape_input &in,
                                                 uint32_t at, tape_one *x) {
  x->v[0] = in.byte != 0 ? (float)((const uint8_t *)in.x)[at]
                         : ((const float *)in.x)[at];
}

static __device__ __forceinline__ void tape_load(const weir_tape_input &in,
                                                 uint32_t at,
                                                 weir_four<float> *x) {
  bool repeated = in.strides[0] == 0;
  if (in.byte == 0) {
    *x = weir_four_load((const float *)in.x, at, repeated);
    return;
  }
  weir_four<uint8_t> bytes =
      weir_four_load((const uint8_t *)in.x, at, repeated);
  for (int j = 0; j < 4; j++) x->v[j] = (float)bytes.v[j];
}

static __device__ __forceinline__ void tape_store(float *y, uint32_t at,
                                                  const tape_one &x) {
  y[at] = x.v[0];
}

static __device__ __forceinline__ void tape_store(float *y, uint32_t at,
                                                  const weir_four<float> &x) {
  weir_four_store(y, at, x);
}

/* Where this thread keeps result |k|. */
static __device__ __forceinline__ float *tape_column(float *kept, int k) {
  return kept + 4 * (k * WEIR_BODY_THREADS + (int)threadIdx.x);
}

static __device__ __forceinline__ void tape_kept(const float *column,
                                                 tape_one *x) {
  x->v[0] = column[0];
}

static __device__ __forceinline__ void tape_kept(const float *column,
                                                 weir_four<float> *x) {
  *x = weir_four_load(column, 0, false);
}

template <class V>
static __device__ __forceinline__ V tape_take(const weir_tape_args &args,
                                              int from, const V &last,
                                              const uint32_t *c, float *kept) {
  if (from == WEIR_TAPE_LAST) return last;
  V x;
  if (from >= 0) {
    tape_load(args.in[from], tape_at(args.in[from], c), &x);
    return x;
  }
  tape_kept(tape_column(kept, WEIR_TAPE_FIRST_KEPT - from), &x);
  return x;
}

/* A power alone has no number: it is what is left. */
#define CASE(number)                                  \
  case number:                                        \
    for (int j = 0; j < N; j++)                       \
      a->v[j] = weir_binary(number, a->v[j], b.v[j]); \
    return;
template <int N, class V>
static __device__ __forceinline__ void tape_binary(int op, V *a, const V &b) {
  switch (op) { WEIR_BINARY_FOURS(CASE) }
  if (N == 1) a->v[0] = weir_binary(WEIR_BINARY_POW, a->v[0], b.v[0]);
}
#undef CASE

/* All steps on the elements of index |c|, the first of which is |first|. */
template <int N, class V>
static __device__ __forceinline__ void tape_run(const weir_tape_args &args,
                                                uint32_t first,
                                                const uint32_t *c,
                                                float *kept) {
  V last;
  for (int j = 0; j < N; j++) last.v[j] = 0.0f;
  WEIR_BODY_UNROLL(1)
  for (int s = 0; s < args.step_count; s++) {
    const weir_tape_step &step = args.steps[s];
    V a = tape_take(args, step.from[0], last, c, kept), b = a;
    if (step.count > 1) b = tape_take(args, step.from[1], last, c, kept);
    if (step.kind == WEIR_TAPE_UNARY) {
      weir_unary<N>(step.op, a.v, step.p);
    } else if (step.kind == WEIR_TAPE_BINARY) {
      tape_binary<N>(step.op, &a, b);
    } else if (step.kind == WEIR_TAPE_COMPARE) {
      for (int j = 0; j < N; j++)
        a.v[j] = weir_compare(step.op, a.v[j], b.v[j]) ? 1.0f : 0.0f;
    } else if (step.kind == WEIR_TAPE_WHERE) {
      V other = tape_take(args, step.from[2], last, c, kept);
      for (int j = 0; j < N; j++) a.v[j] = a.v[j] != 0.0f ? b.v[j] : other.v[j];
    }
    last = a;
    if (step.keep >= 0) tape_store(tape_column(kept, step.keep), 0, last);
    if (step.out >= 0) tape_store(args.out[step.out], first, last);
  }
}

WEIR_BODY(tape_f32, weir_tape_args) {
  __shared__ weir_four<float> columns[WEIR_TAPE_KEPT * WEIR_BODY_THREADS];
  float *kept = (float *)columns;
  int64_t fours = args.fours != 0 ? args.n / 4 : 0;
  uint32_t c[WEIR_TAPE_RANK];
  for (int64_t i = weir_body_first(); i < fours; i += weir_body_step()) {
    tape_index(args, (uint32_t)i, 4, c);
    tape_run<4, weir_four<float>>(args, 4 * (uint32_t)i, c, kept);
  }
  for (int64_t i = 4 * fours + weir_body_first(); i < args.n;
       i += weir_body_step()) {
    tape_index(args, (uint32_t)i, 1, c);
    tape_run<1, tape_one>(args, (uint32_t)i, c, kept);
  }
}
