/* SPDX-License-Identifier: Apache-2.0 */
/* Losses on vectors of f32.
 *
 * Sums go lane by lane in f32 over CHUNK elements and are then added in f64:
 * the error grows with CHUNK / LANES, not with n, at the speed of f32.
 * Invariant: the order of a sum depends on n alone. */
#include "kernels/cpu/isa/loss.h"
#include "kernels/cpu/isa/vec.h"

/* Elements that are summed in f32, lane by lane, before they go to f64. */
enum { CHUNK = 1024 };

/* One term of a sum or element of a result; p: a number of the rule's. */
typedef vf (*pair_fn)(vf a, vf b, vf p, vf q);

/* Past the end a and b are read as 0, and every rule makes 0 of that: square
 * and bent of a difference of 0, dense because b is 0. So the tail may be added
 * as a whole vector. */
INLINE double sum_pairs(const float *a, const float *b, int64_t n, float p,
                        float q, pair_fn rule) {
  double total = 0;
  for (int64_t start = 0; start < n; start += CHUNK) {
    int64_t end = n - start < CHUNK ? n : start + CHUNK, i = start;
    vf sum[2] = {{0}};
    for (; i + 2 * LANES <= end; i += 2 * LANES)
      for (int k = 0; k < 2; k++)
        sum[k] += rule(vload(a + i + k * LANES), vload(b + i + k * LANES),
                       vset(p), vset(q));
    for (; i + LANES <= end; i += LANES)
      sum[0] += rule(vload(a + i), vload(b + i), vset(p), vset(q));
    if (i < end)
      sum[1] += rule(vload_part(a + i, end - i), vload_part(b + i, end - i),
                     vset(p), vset(q));
    total += (double)vsum(sum[0] + sum[1]);
  }
  return total;
}

/* The tail is read before the loop writes: y may be a or b. */
INLINE void each_pair(float *y, const float *a, const float *b, int64_t n,
                      float p, float q, pair_fn rule) {
  int64_t whole = n - n % LANES, rest = n - whole;
  vf last = {0};
  if (rest)
    last = rule(vload_part(a + whole, rest), vload_part(b + whole, rest),
                vset(p), vset(q));
  for (int64_t i = 0; i < whole; i += LANES)
    vstore(y + i, rule(vload(a + i), vload(b + i), vset(p), vset(q)));
  if (rest) vstore_part(y + whole, last, rest);
}

/* 0 * infinity must not make NaN of a class with probability 0. */
INLINE vf dense_rule(vf x, vf z, vf most, vf log_sum) {
  return vselect(z == 0, (vf){0}, z * ((most - x) + log_sum));
}

INLINE vf grad_rule(vf y, vf z, vf total, vf dy) {
  return (y * total - z) * dy;
}

INLINE vf square_rule(vf a, vf b, vf p, vf q) {
  vf d = a - b;
  (void)p;
  (void)q;
  return d * d;
}

INLINE vf bent_rule(vf a, vf b, vf delta, vf q) {
  vf d = a - b, size = vabs(d);
  (void)q;
  return vselect(size <= delta, 0.5f * d * d, delta * (size - 0.5f * delta));
}

static double dense(const float *x, const float *z, int64_t n, float most,
                    float log_sum) {
  return sum_pairs(x, z, n, most, log_sum, dense_rule);
}

static void dense_grad(float *y, const float *z, int64_t n, float total,
                       float dy) {
  each_pair(y, y, z, n, total, dy, grad_rule);
}

/* Not (x <= limit), so that NaN counts. A hit is a lane of -1, subtracted;
 * CHUNK bounds the count of a lane, which is added to 64 bits then. */
static int64_t above(const float *x, int64_t n, float limit) {
  int64_t count = 0;
  for (int64_t start = 0; start < n; start += CHUNK) {
    int64_t end = n - start < CHUNK ? n : start + CHUNK, i = start;
    vi hits = {0};
    int32_t lanes[LANES];
    for (; i + LANES <= end; i += LANES) hits -= ~(vload(x + i) <= limit);
    for (; i < end; i++) count += !(x[i] <= limit);
    memcpy(lanes, &hits, sizeof hits);
    for (int k = 0; k < LANES; k++) count += lanes[k];
  }
  return count;
}

static double squares(const float *a, const float *b, int64_t n, float unused) {
  return sum_pairs(a, b, n, unused, 0, square_rule);
}

static double bents(const float *a, const float *b, int64_t n, float delta) {
  return sum_pairs(a, b, n, delta, 0, bent_rule);
}

static void square(float *y, const float *a, const float *b, int64_t n,
                   float unused) {
  each_pair(y, a, b, n, unused, 0, square_rule);
}

static void bent(float *y, const float *a, const float *b, int64_t n,
                 float delta) {
  each_pair(y, a, b, n, delta, 0, bent_rule);
}

extern const weir_loss_table ISA(loss);

const weir_loss_table ISA(loss) = {.dense = dense,
                                   .dense_grad = dense_grad,
                                   .above = above,
                                   .squares = squares,
                                   .bents = bents,
                                   .square = square,
                                   .bent = bent};
