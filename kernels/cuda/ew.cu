/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that compute element by element. Memory is their limit, so the branch
 * on the op, which is the same for all threads, costs nothing that counts.
 * Each thread reads all it needs of an element before it writes it. */
#include "kernels/cuda/ew.h"

#include "kernels/cuda/fours.h"
#include "kernels/cuda/functions.h"
#include "kernels/cuda/wide.h"

template <class T>
static __device__ __forceinline__ void fill_all(const weir_fill_args &args) {
  T *y = (T *)args.y;
  weir_four<uint32_t> four;
  for (int j = 0; j < 4; j++)
    four.v[j] = (uint32_t)(j % 2 == 0 ? args.value : args.value >> 32);
  int64_t each = 16 / (int64_t)sizeof(T);
  int64_t fours = args.wide != 0 ? args.n / each : 0;
  for (int64_t i = weir_body_first(); i < fours; i += weir_body_step())
    weir_four_store((uint32_t *)args.y, 4 * i, four);
  for (int64_t i = fours * each + weir_body_first(); i < args.n;
       i += weir_body_step())
    y[i] = (T)args.value;
}

WEIR_BODY(fill, weir_fill_args) {
  if (args.size == 1)
    fill_all<uint8_t>(args);
  else if (args.size == 4)
    fill_all<uint32_t>(args);
  else
    fill_all<uint64_t>(args);
}

WEIR_BODY(unary_f32, weir_unary_args) {
  const float *from = (const float *)args.x;
  float *y = (float *)args.y;
  int64_t fours = args.fours != 0 ? args.n / 4 : 0;
  for (int64_t i = weir_body_first(); i < fours; i += weir_body_step()) {
    weir_four<float> x = weir_four_load(from, 4 * i, false);
    weir_unary<4>(args.op, x.v, args.p);
    weir_four_store(y, 4 * i, x);
  }
  for (int64_t i = 4 * fours + weir_body_first(); i < args.n;
       i += weir_body_step()) {
    float x = from[i];
    weir_unary<1>(args.op, &x, args.p);
    y[i] = x;
  }
}

/* Of f64; a switch in the loop costs less than doubles do. */
static __device__ __forceinline__ double unary_wide(int32_t op, double a,
                                                    const double *p) {
  switch (op) {
    case WEIR_UNARY_neg:
      return -a;
    case WEIR_UNARY_abs:
      return fabs(a);
    case WEIR_UNARY_square:
      return a * a;
    case WEIR_UNARY_sign:
      return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a == 0.0 ? 0.0 : a;
    case WEIR_UNARY_relu:
      return a <= 0.0 ? 0.0 : a;
    case WEIR_UNARY_sqrt:
      return sqrt(a);
    case WEIR_UNARY_rsqrt:
      return 1.0 / sqrt(a);
    case WEIR_UNARY_floor:
      return floor(a);
    case WEIR_UNARY_ceil:
      return ceil(a);
    case WEIR_UNARY_round:
      return rint(a);
    case WEIR_UNARY_leaky_relu:
      return a < 0.0 ? a * p[0] : a;
    case WEIR_UNARY_hard_sigmoid:
      return a <= -3.0 ? 0.0 : a >= 3.0 ? 1.0 : (a + 3.0) / 6.0;
    case WEIR_UNARY_hard_swish:
      return a <= -3.0 ? -0.0 : a >= 3.0 ? a : a * (a + 3.0) / 6.0;
    case WEIR_UNARY_clip:
      a = a < p[0] ? p[0] : a;
      return a > p[1] ? p[1] : a;
    default:
      return 1.0 / a;
  }
}

/* Those of a library. */
static __device__ __forceinline__ double unary_curved(int32_t op, double a,
                                                      const double *p) {
  switch (op) {
    case WEIR_UNARY_exp:
      return weir_el_exp(a);
    case WEIR_UNARY_log:
      return weir_el_log(a);
    case WEIR_UNARY_tanh:
      return weir_el_tanh(a);
    case WEIR_UNARY_sigmoid:
      return weir_el_sigmoid(a);
    case WEIR_UNARY_softplus:
      return weir_el_softplus(a);
    case WEIR_UNARY_erf:
      return weir_el_erf(a);
    case WEIR_UNARY_sin:
      return weir_el_sin(a);
    case WEIR_UNARY_cos:
      return weir_el_cos(a);
    case WEIR_UNARY_elu:
      return a < 0.0 ? p[0] * expm1(a) : a;
    case WEIR_UNARY_gelu:
      return weir_el_gelu(a);
    case WEIR_UNARY_gelu_tanh:
      return weir_el_gelu_tanh(a);
    default:
      return unary_wide(op, a, p);
  }
}

/* Of integers; arithmetic wraps. */
template <class T, class U>
static __device__ __forceinline__ T unary_whole(int32_t op, T a,
                                                const int64_t *limits) {
  switch (op) {
    case WEIR_UNARY_neg:
      return (T)(0 - (U)a);
    case WEIR_UNARY_abs:
      return a < 0 ? (T)(0 - (U)a) : a;
    case WEIR_UNARY_square:
      return (T)((U)a * (U)a);
    case WEIR_UNARY_sign:
      return (T)((a > 0) - (a < 0));
    case WEIR_UNARY_clip:
      if ((int64_t)a < limits[0]) a = (T)limits[0];
      return (int64_t)a > limits[1] ? (T)limits[1] : a;
    default:
      return a > 0 ? a : 0;
  }
}

template <class T, class U>
static __device__ __forceinline__ void whole_all(const weir_unary_args &args) {
  const T *x = (const T *)args.x;
  T *y = (T *)args.y;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step())
    y[i] = unary_whole<T, U>(args.op, x[i], args.limits);
}

WEIR_BODY(unary_i32, weir_unary_args) {
  whole_all<int32_t, uint32_t>(args);
}

WEIR_BODY(unary_i64, weir_unary_args) {
  whole_all<int64_t, uint64_t>(args);
}

/* A byte's functions fit an int, whose low bits they keep. */
WEIR_BODY(unary_u8, weir_unary_args) {
  const uint8_t *x = (const uint8_t *)args.x;
  uint8_t *y = (uint8_t *)args.y;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step())
    y[i] = (uint8_t)unary_whole<int32_t, uint32_t>(args.op, x[i], args.limits);
}

WEIR_BODY(unary_f64, weir_unary_args) {
  const double *x = (const double *)args.x;
  double *y = (double *)args.y;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step())
    y[i] = unary_curved(args.op, x[i], args.wide);
}

static __device__ __forceinline__ float binary(int32_t op, float a, float b,
                                               bool *refused) {
  (void)refused;
  return weir_binary(op, a, b);
}

static __device__ __forceinline__ double binary(int32_t op, double a, double b,
                                                bool *refused) {
  (void)refused;
  switch (op) {
    case WEIR_BINARY_ADD:
      return a + b;
    case WEIR_BINARY_SUB:
      return a - b;
    case WEIR_BINARY_MUL:
      return a * b;
    case WEIR_BINARY_DIV:
      return a / b;
    case WEIR_BINARY_MIN:
      return a < b || a != a ? a : b;
    case WEIR_BINARY_MAX:
      return a > b || a != a ? a : b;
    case WEIR_BINARY_SIGMOID_GRAD:
      return b * (a * (1.0 - a));
    case WEIR_BINARY_TANH_GRAD:
      return b * fma(-a, a, 1.0);
    case WEIR_BINARY_RELU_GRAD:
      return a > 0.0 ? b : 0.0;
    default:
      return pow(a, b);
  }
}

/* By squaring; U is the unsigned type, which wraps. */
template <class U>
static __device__ __forceinline__ U power(U a, uint64_t b) {
  U y = 1;
  for (; b > 0; b >>= 1) {
    if (b & 1) y = (U)(y * a);
    a = (U)(a * a);
  }
  return y;
}

template <class T, class U>
static __device__ __forceinline__ T integers(int32_t op, T a, T b,
                                             bool *refused) {
  switch (op) {
    case WEIR_BINARY_ADD:
      return (T)((U)a + (U)b);
    case WEIR_BINARY_SUB:
      return (T)((U)a - (U)b);
    case WEIR_BINARY_MUL:
      return (T)((U)a * (U)b);
    case WEIR_BINARY_DIV:
      *refused = b == 0;
      if (b == 0) return 0;
      return b == -1 ? (T)(0 - (U)a) : a / b; /* the least one wraps */
    case WEIR_BINARY_MIN:
      return a < b ? a : b;
    case WEIR_BINARY_MAX:
      return a > b ? a : b;
    default:
      *refused = b < 0;
      return b < 0 ? 0 : (T)power<U>((U)a, (uint64_t)b);
  }
}

static __device__ __forceinline__ int32_t binary(int32_t op, int32_t a,
                                                 int32_t b, bool *refused) {
  return integers<int32_t, uint32_t>(op, a, b, refused);
}

static __device__ __forceinline__ int64_t binary(int32_t op, int64_t a,
                                                 int64_t b, bool *refused) {
  return integers<int64_t, uint64_t>(op, a, b, refused);
}

/* A byte's division and powers fit an int, whose low bits they keep. */
static __device__ __forceinline__ uint8_t binary(int32_t op, uint8_t a,
                                                 uint8_t b, bool *refused) {
  return (uint8_t)integers<int32_t, uint32_t>(op, a, b, refused);
}

/* The op's number is a constant in each branch, so that a branch has its own
 * four elements' code and no other's. */
#define FOUR(op)                                        \
  case op:                                              \
    for (int j = 0; j < 4; j++)                         \
      y.v[j] = binary(op, a.v[j], b.v[j], &refused[j]); \
    return y;
template <class T>
static __device__ __forceinline__ weir_four<T> binary_four(
    int32_t op, const weir_four<T> &a, const weir_four<T> &b, bool *refused) {
  weir_four<T> y;
  switch (op) { WEIR_BINARY_FOURS(FOUR) }
  return a;
}
#undef FOUR

static __device__ __forceinline__ void note(const weir_binary_args &args,
                                            int64_t i, bool refused) {
  if (refused && args.refused != nullptr)
    atomicMin(args.refused, (unsigned long long)i);
}

/* Element |i| of the rest that fours leave, and of arguments without fours. */
template <int N, class A>
static __device__ __forceinline__ void locate_one(const A &args, int64_t i,
                                                  int64_t *at) {
  if (args.fours == 0)
    weir_locate<N>(args.dims, args.strides, args.rank, args.n, i, at);
  else
    for (int k = 0; k < N; k++) at[k] = args.repeated >> k & 1 ? 0 : i;
}

template <class T>
static __device__ __forceinline__ void binary_all(
    const weir_binary_args &args) {
  T *y = (T *)args.y;
  const T *a = (const T *)args.in[0], *b = (const T *)args.in[1];
  int64_t fours = args.fours != 0 ? args.n / 4 : 0, at[2];
  for (int64_t i = weir_body_first(); i < fours; i += weir_body_step()) {
    bool refused[4] = {false, false, false, false};
    weir_locate<2>(args.dims, args.strides, args.rank, args.n, i, at);
    weir_four_store(
        y, 4 * i,
        binary_four(args.op, weir_four_load(a, at[0], args.repeated & 1),
                    weir_four_load(b, at[1], args.repeated >> 1), refused));
    for (int j = 0; j < 4; j++) note(args, 4 * i + j, refused[j]);
  }
  for (int64_t i = 4 * fours + weir_body_first(); i < args.n;
       i += weir_body_step()) {
    bool refused = false;
    locate_one<2>(args, i, at);
    y[i] = binary(args.op, a[at[0]], b[at[1]], &refused);
    note(args, i, refused);
  }
}

WEIR_BODY(binary_f32, weir_binary_args) {
  binary_all<float>(args);
}

WEIR_BODY(binary_i32, weir_binary_args) {
  binary_all<int32_t>(args);
}

WEIR_BODY(binary_i64, weir_binary_args) {
  binary_all<int64_t>(args);
}

WEIR_BODY(binary_f64, weir_binary_args) {
  binary_all<double>(args);
}

WEIR_BODY(binary_u8, weir_binary_args) {
  binary_all<uint8_t>(args);
}

WEIR_BODY(tell, weir_tell_args) {
  weir_body_fault *fault = &args.block->fault;
  if (weir_body_first() != 0 || fault->instr != 0) return;
  if (*args.refused >= (unsigned long long)args.most) return;
  fault->element = (int64_t)*args.refused;
  fault->value = 0;
  fault->instr = args.instr;
}

template <class T>
static __device__ __forceinline__ void compare_all(
    const weir_binary_args &args) {
  uint8_t *y = (uint8_t *)args.y;
  const T *a = (const T *)args.in[0], *b = (const T *)args.in[1];
  int64_t fours = args.fours != 0 ? args.n / 4 : 0, at[2];
  for (int64_t i = weir_body_first(); i < fours; i += weir_body_step()) {
    weir_locate<2>(args.dims, args.strides, args.rank, args.n, i, at);
    weir_four<T> p = weir_four_load(a, at[0], args.repeated & 1);
    weir_four<T> q = weir_four_load(b, at[1], args.repeated >> 1);
    weir_four<uint8_t> four;
    for (int j = 0; j < 4; j++)
      four.v[j] = weir_compare(args.op, p.v[j], q.v[j]) ? 1 : 0;
    weir_four_store(y, 4 * i, four);
  }
  for (int64_t i = 4 * fours + weir_body_first(); i < args.n;
       i += weir_body_step()) {
    locate_one<2>(args, i, at);
    y[i] = weir_compare(args.op, a[at[0]], b[at[1]]) ? 1 : 0;
  }
}

WEIR_BODY(compare_f32, weir_binary_args) {
  compare_all<float>(args);
}

WEIR_BODY(compare_i32, weir_binary_args) {
  compare_all<int32_t>(args);
}

WEIR_BODY(compare_i64, weir_binary_args) {
  compare_all<int64_t>(args);
}

WEIR_BODY(compare_f64, weir_binary_args) {
  compare_all<double>(args);
}

WEIR_BODY(compare_u8, weir_binary_args) {
  compare_all<uint8_t>(args);
}

template <class T>
static __device__ __forceinline__ void where_all(const weir_where_args &args) {
  T *y = (T *)args.y;
  const uint8_t *c = (const uint8_t *)args.in[0];
  const T *a = (const T *)args.in[1], *b = (const T *)args.in[2];
  int64_t fours = args.fours != 0 ? args.n / 4 : 0, at[3];
  for (int64_t i = weir_body_first(); i < fours; i += weir_body_step()) {
    weir_locate<3>(args.dims, args.strides, args.rank, args.n, i, at);
    weir_four<uint8_t> is = weir_four_load(c, at[0], args.repeated & 1);
    weir_four<T> p = weir_four_load(a, at[1], args.repeated >> 1 & 1);
    weir_four<T> q = weir_four_load(b, at[2], args.repeated >> 2 & 1);
    for (int j = 0; j < 4; j++) p.v[j] = is.v[j] != 0 ? p.v[j] : q.v[j];
    weir_four_store(y, 4 * i, p);
  }
  for (int64_t i = 4 * fours + weir_body_first(); i < args.n;
       i += weir_body_step()) {
    locate_one<3>(args, i, at);
    y[i] = c[at[0]] != 0 ? a[at[1]] : b[at[2]];
  }
}

WEIR_BODY(where_1, weir_where_args) {
  where_all<uint8_t>(args);
}

WEIR_BODY(where_4, weir_where_args) {
  where_all<uint32_t>(args);
}

WEIR_BODY(where_8, weir_where_args) {
  where_all<uint64_t>(args);
}
