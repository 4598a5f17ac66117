/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: the words of kernels/philox.h, so the same ones as on a CPU,
 * of a step that the body reads itself, so that a launch can be replayed. A
 * thread makes the elements of a block of words: four of f32, two of f64.
 * Functions are computed in double: they are rounded once, as on the CPU. */
#include "kernels/cuda/random.h"

#include "kernels/cuda/wide.h"

typedef struct words {
  uint32_t word[4];
} words;

static __device__ __forceinline__ words words_of(uint64_t key, uint64_t step,
                                                 uint64_t block) {
  uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
  words c = {{(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)step,
              (uint32_t)(step >> 32)}};
  for (int i = 0; i < 10; i++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c.word[0];
    uint64_t p1 = (uint64_t)0xCD9E8D57u * c.word[2];
    c = {{(uint32_t)(p1 >> 32) ^ c.word[1] ^ key0, (uint32_t)p1,
          (uint32_t)(p0 >> 32) ^ c.word[3] ^ key1, (uint32_t)p0}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

static __device__ __forceinline__ double uniform_of(uint32_t word) {
  return (double)(word >> 8) * (1.0 / 16777216.0);
}

/* cos and sin of 2 pi v for v in [0, 1): by quarters of a turn about the
 * nearest, so |t| is at most pi / 4, and there by Taylor's series, within
 * 2^-44. */
typedef struct turn {
  double cosine, sine;
} turn;

static __device__ __forceinline__ turn turn_of(double v) {
  int quarter = (int)(4.0 * v + 0.5);
  double t = fma(4.0, v, -(double)quarter) * 1.5707963267948966, z = t * t;
  double s = 1.0, c = 1.0;
  for (int n = 12; n > 0; n -= 2) {
    s = fma(-z / (double)(n * (n + 1)), s, 1.0);
    c = fma(-z / (double)(n * (n - 1)), c, 1.0);
  }
  s *= t;
  if (quarter % 4 == 1) return {-s, c};
  if (quarter % 4 == 2) return {-c, -s};
  if (quarter % 4 == 3) return {s, -c};
  return {c, s};
}

/* Two normal numbers by Box and Muller; 1 - u is exact, and never 0. */
static __device__ __forceinline__ void normal_of(double u, double v,
                                                 double *z) {
  double radius = sqrt(-2.0 * weir_el_log_wide((float)(1.0 - u)));
  turn t = turn_of(v);
  z[0] = radius * t.cosine;
  z[1] = radius * t.sine;
}

/* The x in [-2, 2] below which a truncated normal number falls with probability
 * u: half of erf(w), w = x / sqrt(2), is u - 1/2 of all there is between, and
 *   sqrt(pi)/2 e^(w w) erf(w) = w + 2 w^3 / 3 + 4 w^5 / 15 + ...
 * whose terms are positive; Newton's steps from 0 never overshoot. */
static __device__ __forceinline__ double truncated_of(double u) {
  double wanted = 2.0 * (u - 0.5) * 0.9544997361036416 * 0.886226925452758;
  double goal = wanted < 0.0 ? -wanted : wanted, w = 0.0;
  for (int step = 0; step < 12; step++) {
    double z = 2.0 * w * w, series = 1.0, grown = 1.0;
    for (int n = 63; n > 1; n -= 2) series = fma(z / (double)n, series, 1.0);
    for (int n = 30; n > 0; n--) grown = fma(0.5 * z / (double)n, grown, 1.0);
    w = fma(goal, grown, fma(-w, series, w));
  }
  double x = w * 1.4142135623730951;
  x = x > 2.0 ? 2.0 : x;
  return wanted < 0.0 ? -x : x;
}

/* The four numbers of f32 that a block of words makes. */
static __device__ __forceinline__ void draw(int32_t op, words w, float,
                                            double *z) {
  for (int i = 0; i < 4; i += 2) {
    double u = uniform_of(w.word[i]), v = uniform_of(w.word[i + 1]);
    z[i] = u;
    z[i + 1] = v;
    if (op == WEIR_RANDOM_NORMAL) normal_of(u, v, z + i);
    if (op != WEIR_RANDOM_TRUNCATED) continue;
    z[i] = truncated_of(u);
    z[i + 1] = truncated_of(v);
  }
}

/* The two of f64, of 53 bits each. */
static __device__ __forceinline__ void draw(int32_t op, words w, double,
                                            double *z) {
  for (int i = 0; i < 2; i++) {
    uint64_t bits = (uint64_t)w.word[2 * i + 1] << 32 | w.word[2 * i];
    z[i] = (double)(bits >> 11) * (1.0 / 9007199254740992.0);
    if (op == WEIR_RANDOM_TRUNCATED) z[i] = truncated_of(z[i]);
  }
  if (op != WEIR_RANDOM_NORMAL) return;
  double radius = sqrt(-2.0 * log(1.0 - z[0])); /* the difference is exact */
  double angle = 6.283185307179586 * z[1];
  z[0] = radius * weir_el_cos(angle);
  z[1] = radius * weir_el_sin(angle);
}

template <class V>
static __device__ __forceinline__ void random_numbers(
    const weir_random_args &args) {
  const int EACH = 16 / (int)sizeof(V); /* of a block of words */
  int64_t blocks = args.n / EACH + (args.n % EACH != 0);
  for (int64_t b = weir_body_first(); b < blocks; b += weir_body_step()) {
    double z[4];
    draw(args.op, words_of(args.key, *args.step, (uint64_t)b), (V)0, z);
    for (int k = 0; k < EACH; k++) {
      if (EACH * b + k >= args.n) continue;
      V y = (V)(args.offset + args.scale * z[k]);
      ((V *)args.y)[EACH * b + k] = y >= (V)args.high ? (V)args.offset : y;
    }
  }
}

WEIR_BODY(random_f32, weir_random_args) {
  random_numbers<float>(args);
}

WEIR_BODY(random_f64, weir_random_args) {
  random_numbers<double>(args);
}

template <class V>
static __device__ __forceinline__ void dropout(const weir_dropout_args &args) {
  int64_t blocks = args.n / 4 + (args.n % 4 != 0);
  for (int64_t b = weir_body_first(); b < blocks; b += weir_body_step()) {
    words w = words_of(args.key, *args.step, (uint64_t)b);
    for (int k = 0; k < 4; k++) {
      int64_t i = 4 * b + k;
      if (i >= args.n) continue;
      bool stays = w.word[k] >> 8 < args.below;
      ((V *)args.y)[i] = stays ? ((const V *)args.x)[i] * (V)args.scale : (V)0;
      if (args.mask != nullptr) args.mask[i] = stays ? 1 : 0;
    }
  }
}

WEIR_BODY(dropout_f32, weir_dropout_args) {
  dropout<float>(args);
}

WEIR_BODY(dropout_f64, weir_dropout_args) {
  dropout<double>(args);
}

WEIR_BODY(turn_step, weir_turn_args) {
  if (weir_body_first() != 0) return;
  uint64_t h = *args.outer ^ (0x9e3779b97f4a7c15u * 9u); /* of 8 bytes */
  h = (h ^ (uint64_t)args.turn) * 0xff51afd7ed558ccdu;
  h ^= h >> 32;
  h *= 0xc4ceb9fe1a85ec53u;
  *args.step = h ^ (h >> 29);
}
