/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/resample.h"

#include <assert.h>
#include <inttypes.h>

#include "ops/rules.h"

/* With whole numbers: place at stands at p / q of the input, p = (2 at + 1) in
 * - out and q = 2 out. Sides of at most 2^30 keep p within 62 bits, so the
 * places are exact, and equal sizes give back the input. */

weir_taps weir_resize_taps(int64_t in, int64_t out, int64_t at, bool nearest) {
  assert(in >= 1 && out >= 1 && at >= 0 && at < out);
  assert(in <= WEIR_RESIZE_SIDE && out <= WEIR_RESIZE_SIDE);
  int64_t p = (2 * at + 1) * in - out, q = 2 * out;
  weir_taps t = {0, 0, 0};
  if (p <= 0) return t;
  t.first = p / q;
  if (nearest) {
    if (p % q > out) t.first++; /* past the middle between two */
    if (t.first > in - 1) t.first = in - 1;
    t.second = t.first;
    return t;
  }
  if (t.first >= in - 1) {
    t.first = t.second = in - 1;
    return t;
  }
  t.second = t.first + 1;
  t.share = (double)(p % q) / (double)q;
  return t;
}

weir_status weir_rule_resize_sides(weir_shape_ctx *ctx, const weir_shape *x,
                                   const char *name) {
  for (int side = 2; x->rank == 4 && side < 4; side++) {
    weir_dim d = x->dims[side];
    if (weir_dim_known(d) && (d.value < 1 || d.value > WEIR_RESIZE_SIDE))
      return weir_shape_fail(ctx, WEIR_W2013,
                             "%s is %s, expected a height and width of 1 to %d",
                             name, weir_shape_text(ctx, x), WEIR_RESIZE_SIDE);
  }
  return WEIR_OK;
}

weir_status weir_rule_resize(weir_shape_ctx *ctx, const weir_shape *x,
                             weir_shape *out) {
  weir_shape size;
  WEIR_TRY(weir_rule_shape_of_attr(ctx, "size", &size));
  if (size.rank < 1 || size.rank > 2)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "size has %d numbers, expected 1 to 2", size.rank);
  WEIR_TRY(weir_rule_resize_sides(ctx, x, "x"));
  *out = *x;
  if (x->rank != 4) return WEIR_OK;
  out->dims[2] = size.dims[0];
  out->dims[3] = size.dims[size.rank - 1];
  return weir_rule_resize_sides(ctx, out, "y");
}
