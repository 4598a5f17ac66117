/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that compute element by element. Memory is their limit, so the branch
 * on the op, which is the same for all threads, costs nothing that counts.
 * Each thread reads all it needs of an element before it writes it. */
#include "kernels/cuda/ew.h"

#include "kernels/cuda/element.h"

template <class T>
static __device__ __forceinline__ void fill_all(const weir_fill_args &args) {
  T *y = (T *)args.y;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step())
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

/* Conditions are written such that a NaN takes the branch that keeps it. */
#define UNARY(name, expr)                                                      \
  static __device__ __forceinline__ float name##_of(float a, const float *p) { \
    (void)p;                                                                   \
    return expr;                                                               \
  }
UNARY(neg, -a)
UNARY(abs, weir_el_abs(a))
UNARY(square, a *a)
UNARY(sign, a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : a == 0.0f ? 0.0f : a)
UNARY(relu, a <= 0.0f ? 0.0f : a)
UNARY(exp, weir_el_exp(a))
UNARY(log, weir_el_log(a))
UNARY(sqrt, sqrtf(a))
UNARY(rsqrt, 1.0f / sqrtf(a))
UNARY(reciprocal, 1.0f / a)
UNARY(tanh, weir_el_tanh(a))
UNARY(sigmoid, weir_el_sigmoid(a))
UNARY(silu, weir_el_silu(a))
UNARY(softplus, weir_el_softplus(a))
UNARY(erf, weir_el_erf(a))
UNARY(floor, weir_el_floor(a))
UNARY(ceil, weir_el_ceil(a))
UNARY(round, weir_el_round(a))
UNARY(leaky_relu, a < 0.0f ? a * p[0] : a)
UNARY(elu, a < 0.0f ? p[0] * weir_el_expm1_negative(a) : a)
UNARY(gelu, weir_el_gelu(a))
UNARY(gelu_tanh, weir_el_gelu_tanh(a))
UNARY(clip, a<p[0] ? p[0] : a> p[1] ? p[1] : a)

#define WEIR_UNARY(name)  \
  case WEIR_UNARY_##name: \
    return name##_of(a, p);
static __device__ __forceinline__ float unary(int32_t op, float a,
                                              const float *p) {
  switch (op) {
#include "kernels/cuda/unary.def"
  }
  return a;
}
#undef WEIR_UNARY

WEIR_BODY(unary_f32, weir_unary_args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step())
    args.y[i] = unary(args.op, args.x[i], args.p);
}

/* Where the operands of element |i| are. */
template <int N>
static __device__ __forceinline__ void locate(
    const int64_t *dims, const int64_t (*strides)[WEIR_BODY_RANK], int32_t rank,
    int64_t i, int64_t *at) {
  for (int k = 0; k < N; k++) at[k] = rank <= 1 ? i * strides[k][0] : 0;
  if (rank <= 1) return;
  for (int32_t d = rank - 1; d >= 0; d--) {
    int64_t next = i / dims[d], here = i - next * dims[d];
    for (int k = 0; k < N; k++) at[k] += here * strides[k][d];
    i = next;
  }
}

static __device__ __forceinline__ float binary(int32_t op, float a, float b,
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
      return weir_el_min(a, b);
    case WEIR_BINARY_MAX:
      return weir_el_max(a, b);
    default:
      return weir_el_power(a, b);
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

template <class T>
static __device__ __forceinline__ void binary_all(
    const weir_binary_args &args) {
  T *y = (T *)args.y;
  const T *a = (const T *)args.in[0], *b = (const T *)args.in[1];
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    int64_t at[2];
    bool refused = false;
    locate<2>(args.dims, args.strides, args.rank, i, at);
    y[i] = binary(args.op, a[at[0]], b[at[1]], &refused);
    if (refused && args.refused != nullptr)
      atomicMin(args.refused, (unsigned long long)i);
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

template <class T>
static __device__ __forceinline__ bool compare(int32_t op, T a, T b) {
  switch (op) {
    case WEIR_COMPARE_EQUAL:
      return a == b;
    case WEIR_COMPARE_NOT_EQUAL:
      return a != b;
    case WEIR_COMPARE_LESS:
      return a < b;
    case WEIR_COMPARE_LESS_EQUAL:
      return a <= b;
    case WEIR_COMPARE_GREATER:
      return a > b;
    default:
      return a >= b;
  }
}

template <class T>
static __device__ __forceinline__ void compare_all(
    const weir_binary_args &args) {
  uint8_t *y = (uint8_t *)args.y;
  const T *a = (const T *)args.in[0], *b = (const T *)args.in[1];
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    int64_t at[2];
    locate<2>(args.dims, args.strides, args.rank, i, at);
    y[i] = compare(args.op, a[at[0]], b[at[1]]) ? 1 : 0;
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

template <class T>
static __device__ __forceinline__ void where_all(const weir_where_args &args) {
  T *y = (T *)args.y;
  const uint8_t *c = (const uint8_t *)args.in[0];
  const T *a = (const T *)args.in[1], *b = (const T *)args.in[2];
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    int64_t at[3];
    locate<3>(args.dims, args.strides, args.rank, i, at);
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

/* Toward zero. Conversions of floats out of range differ between machines, so
 * they are compared first; a double holds neither 2^63 - 1 nor more. */
static __device__ __forceinline__ int64_t whole(double x, int64_t least,
                                                int64_t most) {
  if (x != x) return 0;
  if (x >= (double)most) return most;
  if (x <= (double)least) return least;
  return (int64_t)x;
}

static __device__ __forceinline__ int64_t whole(int64_t x, int64_t least,
                                                int64_t most) {
  return x < least ? least : x > most ? most : x;
}

template <class T>
static __device__ __forceinline__ void store_as(const weir_cast_args &args,
                                                int64_t i, T x) {
  switch (args.to) {
    case WEIR_CAST_F32:
      ((float *)args.y)[i] = (float)x; /* of an integer: one rounding */
      return;
    case WEIR_CAST_F64:
      ((double *)args.y)[i] = (double)x;
      return;
    case WEIR_CAST_I32:
      ((int32_t *)args.y)[i] = (int32_t)whole(x, INT32_MIN, INT32_MAX);
      return;
    case WEIR_CAST_I64:
      ((int64_t *)args.y)[i] = whole(x, INT64_MIN, INT64_MAX);
      return;
    case WEIR_CAST_U8:
      ((uint8_t *)args.y)[i] = (uint8_t)whole(x, 0, UINT8_MAX);
      return;
    default:
      ((uint8_t *)args.y)[i] = x != 0 ? 1 : 0;
  }
}

WEIR_BODY(cast, weir_cast_args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    switch (args.from) {
      case WEIR_CAST_F32:
        store_as(args, i, (double)((const float *)args.x)[i]);
        break;
      case WEIR_CAST_F64:
        store_as(args, i, ((const double *)args.x)[i]);
        break;
      case WEIR_CAST_I32:
        store_as(args, i, (int64_t)((const int32_t *)args.x)[i]);
        break;
      case WEIR_CAST_I64:
        store_as(args, i, ((const int64_t *)args.x)[i]);
        break;
      default:
        store_as(args, i, (int64_t)((const uint8_t *)args.x)[i]);
    }
  }
}
