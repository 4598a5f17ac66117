/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tests/exec/generate.h"

/* One function for each kind of node. It returns false, with nothing written,
 * when the value it drew does not suit it. */

static int64_t room(const gen *g) {
  return g->large ? GEN_LARGE : GEN_ELEMENTS;
}

static const gen_value *shape_of(const gen *g, uint32_t v) {
  return &g->values[v];
}

/* Later values more often: graphs get deep. */
static uint32_t pick_value(gen *g) {
  uint32_t last = g->count - 1;
  uint32_t recent = last < 4 ? last + 1 : 4;
  return gen_pick(g, 3) == 0 ? gen_pick(g, g->count)
                             : last - gen_pick(g, recent);
}

/* A value of that rank at least, or UINT32_MAX. */
static uint32_t pick_rank(gen *g, int least, int most) {
  for (int i = 0; i < 4; i++) {
    uint32_t v = pick_value(g);
    int rank = shape_of(g, v)->rank;
    if (rank >= least && rank <= most) return v;
  }
  return UINT32_MAX;
}

static bool unary(gen *g) {
  static const char *const forms[] = {"relu(v%u)",
                                      "tanh(v%u)",
                                      "sigmoid(v%u)",
                                      "neg(v%u)",
                                      "abs(v%u)",
                                      "square(tanh(v%u))",
                                      "exp(neg(abs(v%u)))",
                                      "log(add(abs(v%u), 1))",
                                      "gelu(v%u)",
                                      "erf(v%u)",
                                      "softplus(v%u)",
                                      "elu(v%u)",
                                      "leaky_relu(v%u)",
                                      "sqrt(add(abs(v%u), 1))",
                                      "clip(v%u, min=-1, max=1)",
                                      "cast(cast(v%u, f64), f32)",
                                      "sin(v%u)",
                                      "cos(v%u)",
                                      "identity(v%u)",
                                      "rsqrt(add(square(v%u), 1))"};
  uint32_t v = pick_value(g);
  gen_value shape = *shape_of(g, v);
  const char *form = forms[gen_pick(g, sizeof forms / sizeof *forms)];
  const char *hole = strstr(form, "%u");
  gen_put(g, "  v%u: %.*s%u%s\n", gen_new(g, &shape), (int)(hole - form), form,
          v, hole + 2);
  return true;
}

static const char *const kBefore[] = {"mul(add(", "sub(", "mul(tanh(",
                                      "max(",     "min(", "div("};
static const char *const kMiddle[] = {", ", ", ", "), ",
                                      ", ", ", ", ", add(abs("};
static const char *const kAfter[] = {"), 0.5)", ")", ")", ")", ")", "), 1))"};

static void put_binary(gen *g, uint32_t form, uint32_t a, char kind,
                       uint32_t b) {
  gen_put(g, "%sv%u%s%c%u%s\n", kBefore[form], a, kMiddle[form], kind, b,
          kAfter[form]);
}

/* With a variable whose shape broadcasts to that of the value. */
static bool binary_with_weight(gen *g) {
  uint32_t a = pick_value(g);
  gen_value shape = *shape_of(g, a), small = {0};
  int skip = (int)gen_pick(g, (uint32_t)shape.rank + 1);
  for (int i = skip; i < shape.rank; i++)
    small.dims[small.rank++] = gen_pick(g, 3) == 0 ? 1 : shape.dims[i];
  uint32_t w = gen_weight(g, small.rank, small.dims, "-1", "1");
  gen_put(g, "  v%u: ", gen_new(g, &shape));
  put_binary(g, gen_pick(g, 6), a, 'w', w);
  return true;
}

/* True when |a| and |b| broadcast; |out| is the result. */
static bool broadcast(const gen_value *a, const gen_value *b, gen_value *out) {
  out->rank = a->rank > b->rank ? a->rank : b->rank;
  for (int i = 1; i <= out->rank; i++) {
    int64_t x = i <= a->rank ? a->dims[a->rank - i] : 1;
    int64_t y = i <= b->rank ? b->dims[b->rank - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    out->dims[out->rank - i] = x == 1 ? y : x;
  }
  return true;
}

static bool binary(gen *g) {
  for (int i = 0; i < 6; i++) {
    uint32_t a = pick_value(g), b = pick_value(g);
    gen_value shape = {0};
    if (!broadcast(shape_of(g, a), shape_of(g, b), &shape)) continue;
    if (gen_elements(&shape) > room(g)) continue;
    gen_put(g, "  v%u: ", gen_new(g, &shape));
    put_binary(g, gen_pick(g, 6), a, 'v', b);
    return true;
  }
  return false;
}

static bool select_one(gen *g) {
  uint32_t a = pick_value(g);
  gen_value shape = *shape_of(g, a);
  uint32_t v = gen_new(g, &shape);
  gen_put(g, "  v%u: where(%s(v%u, 0), mul(v%u, 0.25), v%u)\n", v,
          gen_pick(g, 2) ? "greater" : "less_equal", a, a, a);
  return true;
}

static bool matmul(gen *g) {
  static const int64_t sizes[] = {1, 2, 3, 6, 8, 16, 17, 48, 65};
  uint32_t a = pick_rank(g, 2, 4);
  if (a == UINT32_MAX) return false;
  gen_value shape = *shape_of(g, a);
  int64_t k = shape.dims[shape.rank - 1], n = sizes[gen_pick(g, 9)];
  int64_t rows = k > 0 ? gen_elements(&shape) / k : 0;
  bool turned = gen_pick(g, 3) == 0;
  if (rows * k * n > GEN_PRODUCTS || rows * n > room(g)) return false;
  int64_t dims[2] = {turned ? n : k, turned ? k : n};
  uint32_t w = gen_weight(g, 2, dims, "-1", "1");
  uint32_t end = gen_pick(g, 4);
  uint32_t bias = end > 1 ? gen_weight(g, 1, &n, "-1", "1") : 0;
  shape.dims[shape.rank - 1] = n;
  double scale = 1.0 / sqrt((double)(k > 0 ? k : 1));
  gen_put(g, "  v%u: ", gen_new(g, &shape));
  gen_put(g, "%s", end == 3 ? "relu(add(" : end == 2 ? "tanh(add(" : "");
  gen_put(g, "mul(matmul(v%u, w%u%s), %.6f)", a, w,
          turned ? ", transpose_b=true" : "", scale);
  if (end > 1) gen_put(g, ", w%u))", bias);
  gen_put(g, "\n");
  return true;
}

/* A value with itself, turned. */
static bool matmul_of_values(gen *g) {
  uint32_t a = pick_rank(g, 2, 4);
  if (a == UINT32_MAX) return false;
  gen_value shape = *shape_of(g, a);
  int64_t k = shape.dims[shape.rank - 1], m = shape.dims[shape.rank - 2];
  int64_t batch = m * k > 0 ? gen_elements(&shape) / (m * k) : 0;
  if (batch * m * m * k > GEN_PRODUCTS || batch * m * m > room(g)) return false;
  shape.dims[shape.rank - 1] = m;
  double scale = 1.0 / sqrt((double)(k > 0 ? k : 1));
  gen_put(g, "  v%u: ", gen_new(g, &shape));
  gen_put(g, "mul(matmul(v%u, v%u, transpose_b=true), %.6f)\n", a, a, scale);
  return true;
}

typedef struct window {
  int64_t kernel, stride, pad, dilation;
} window;

static int64_t window_out(const window *w, int64_t size) {
  int64_t reach = (w->kernel - 1) * w->dilation + 1;
  return size + 2 * w->pad < reach
             ? -1
             : (size + 2 * w->pad - reach) / w->stride + 1;
}

/* A 4-d value that a window fits, or UINT32_MAX. */
static uint32_t pick_image(gen *g, window *w, gen_value *out) {
  uint32_t v = pick_rank(g, 4, 4);
  if (v == UINT32_MAX) return v;
  *out = *shape_of(g, v);
  if (out->dims[1] == 0 || out->dims[2] == 0 || out->dims[3] == 0)
    return UINT32_MAX;
  out->dims[2] = window_out(w, out->dims[2]);
  out->dims[3] = window_out(w, out->dims[3]);
  return out->dims[2] < 1 || out->dims[3] < 1 ? UINT32_MAX : v;
}

static bool conv(gen *g) {
  static const int64_t filters[] = {1, 2, 4, 6, 8, 16, 20};
  window w = {1 + gen_pick(g, 5), 1 + gen_pick(g, 2), gen_pick(g, 3),
              1 + (gen_pick(g, 4) == 0)};
  gen_value shape;
  uint32_t v = pick_image(g, &w, &shape);
  if (v == UINT32_MAX) return false;
  int64_t channels = shape.dims[1], o = filters[gen_pick(g, 7)];
  int64_t groups =
      channels % 2 == 0 && o % 2 == 0 && gen_pick(g, 4) == 0 ? 2 : 1;
  shape.dims[1] = o;
  int64_t dims[4] = {o, channels / groups, w.kernel, w.kernel};
  int64_t taps = dims[1] * w.kernel * w.kernel;
  if (gen_elements(&shape) > room(g)) return false;
  if (gen_elements(&shape) * taps > GEN_PRODUCTS) return false;
  uint32_t f = gen_weight(g, 4, dims, "-0.5", "0.5");
  uint32_t b = gen_weight(g, 1, &o, "-1", "1");
  uint32_t end = gen_pick(g, 3);
  gen_put(g, "  v%u: %sconv2d(v%u, w%u", gen_new(g, &shape),
          end == 0   ? "relu("
          : end == 1 ? "tanh("
                     : "",
          v, f);
  if (gen_pick(g, 2)) gen_put(g, ", w%u", b);
  gen_put(g, ", stride=%d, pad=%d, dilation=%d, groups=%d)%s\n", (int)w.stride,
          (int)w.pad, (int)w.dilation, (int)groups, end < 2 ? ")" : "");
  return true;
}

static bool pool(gen *g) {
  int64_t kernel = 1 + gen_pick(g, 3);
  window w = {kernel, 1 + gen_pick(g, 3),
              kernel > 1 ? gen_pick(g, (uint32_t)(kernel / 2) + 1) : 0, 1};
  gen_value shape;
  uint32_t v = pick_image(g, &w, &shape);
  if (v == UINT32_MAX || gen_elements(&shape) > room(g)) return false;
  gen_put(g, "  v%u: %s_pool(v%u, %d, stride=%d, pad=%d)\n", gen_new(g, &shape),
          gen_pick(g, 2) ? "max" : "avg", v, (int)kernel, (int)w.stride,
          (int)w.pad);
  return true;
}

static bool reduce(gen *g) {
  static const char *const names[] = {"reduce_sum", "reduce_mean", "reduce_max",
                                      "reduce_min"};
  uint32_t v = pick_rank(g, 1, GEN_RANK);
  if (v == UINT32_MAX) return false;
  gen_value in = *shape_of(g, v), out = {0};
  bool keep = gen_pick(g, 2) != 0;
  int64_t axes[GEN_RANK], reduced = 1;
  int count = 0;
  for (int i = 0; i < in.rank; i++) {
    bool drop = gen_pick(g, 2) != 0 || (i + 1 == in.rank && count == 0);
    if (drop) axes[count++] = i;
    if (drop) reduced *= in.dims[i];
    if (!drop || keep) out.dims[out.rank++] = drop ? 1 : in.dims[i];
  }
  uint32_t kind = reduced > 0 ? gen_pick(g, 4) : 0;
  double scale = 1.0 / sqrt((double)(reduced > 0 ? reduced : 1));
  gen_put(g, "  v%u: mul(%s(v%u, axis=[", gen_new(g, &out), names[kind], v);
  gen_put_dims(g, count, axes);
  gen_put(g, "], keepdims=%s), %.6f)\n", keep ? "true" : "false",
          kind == 0 ? scale : 1.0);
  return true;
}

static bool rows(gen *g) {
  uint32_t v = pick_rank(g, 1, GEN_RANK), form = gen_pick(g, 3);
  if (v == UINT32_MAX) return false;
  gen_value shape = *shape_of(g, v);
  int64_t last = shape.dims[shape.rank - 1];
  if (form == 2 && last > 0) {
    uint32_t scale = gen_weight(g, 1, &last, "0.5", "1.5");
    uint32_t bias = gen_weight(g, 1, &last, "-1", "1");
    gen_put(g, "  v%u: layer_norm(v%u, w%u, w%u, epsilon=0.1)\n",
            gen_new(g, &shape), v, scale, bias);
    return true;
  }
  gen_put(g, "  v%u: %s(v%u, axis=%d)%s\n", gen_new(g, &shape),
          form ? "mul(0.1, log_softmax" : "softmax", v,
          (int)gen_pick(g, (uint32_t)shape.rank), form ? ")" : "");
  return true;
}

static bool norm_batch(gen *g) {
  uint32_t v = pick_rank(g, 2, GEN_RANK), w[4];
  if (v == UINT32_MAX) return false;
  gen_value shape = *shape_of(g, v);
  for (int i = 0; i < 4; i++)
    w[i] = gen_weight(g, 1, &shape.dims[1], i == 3 ? "0.5" : "-1",
                      i == 3 ? "1.5" : "1");
  gen_put(g, "  v%u: batch_norm(v%u, w%u, w%u, w%u, w%u)\n", gen_new(g, &shape),
          v, w[0], w[1], w[2], w[3]);
  return true;
}

static bool transpose(gen *g) {
  uint32_t v = pick_rank(g, 2, GEN_RANK);
  if (v == UINT32_MAX) return false;
  gen_value in = *shape_of(g, v), out = in;
  int64_t perm[GEN_RANK];
  for (int i = 0; i < in.rank; i++) perm[i] = i;
  for (int i = in.rank - 1; i > 0; i--) {
    uint32_t j = gen_pick(g, (uint32_t)i + 1);
    int64_t was = perm[i];
    perm[i] = perm[j], perm[j] = was;
  }
  for (int i = 0; i < in.rank; i++) out.dims[i] = in.dims[perm[i]];
  gen_put(g, "  v%u: transpose(v%u, perm=[", gen_new(g, &out), v);
  gen_put_dims(g, in.rank, perm);
  gen_put(g, "])\n");
  return true;
}

/* Two neighbours become one dimension, or one becomes two. */
static bool reshape(gen *g) {
  uint32_t v = pick_rank(g, 1, GEN_RANK);
  if (v == UINT32_MAX) return false;
  gen_value in = *shape_of(g, v), out = in;
  int at = (int)gen_pick(g, (uint32_t)in.rank);
  if (at + 1 < in.rank) {
    out.dims[at] = in.dims[at] * in.dims[at + 1];
    for (int i = at + 1; i + 1 < in.rank; i++) out.dims[i] = in.dims[i + 1];
    out.rank--;
  } else if (in.rank < GEN_RANK) {
    int64_t part = in.dims[at] % 4 == 0 ? 4 : 1;
    out.dims[at] = in.dims[at] / part;
    out.dims[out.rank++] = part;
  }
  gen_put(g, "  v%u: reshape(v%u, [", gen_new(g, &out), v);
  gen_put_dims(g, out.rank, out.dims);
  gen_put(g, "])\n");
  return true;
}

static bool concat(gen *g) {
  uint32_t v = pick_rank(g, 1, GEN_RANK);
  if (v == UINT32_MAX) return false;
  gen_value out = *shape_of(g, v), other = out;
  int axis = (int)gen_pick(g, (uint32_t)out.rank);
  other.dims[axis] = gen_pick(g, 6);
  out.dims[axis] += other.dims[axis];
  if (gen_elements(&out) > room(g)) return false;
  uint32_t w = gen_weight(g, other.rank, other.dims, "-1", "1");
  bool first = gen_pick(g, 2) != 0;
  gen_put(g, "  v%u: concat(%c%u, %c%u, axis=%d)\n", gen_new(g, &out),
          first ? 'w' : 'v', first ? w : v, first ? 'v' : 'w', first ? v : w,
          axis);
  return true;
}

static bool split(gen *g) {
  uint32_t v = pick_rank(g, 1, GEN_RANK);
  if (v == UINT32_MAX) return false;
  gen_value a = *shape_of(g, v), b = a;
  int axis = (int)gen_pick(g, (uint32_t)a.rank);
  a.dims[axis] = gen_pick(g, (uint32_t)b.dims[axis] + 1);
  b.dims[axis] -= a.dims[axis];
  uint32_t first = gen_new(g, &a), second = gen_new(g, &b);
  gen_put(g, "  v%u, v%u: split(v%u, sizes=[%d, %d], axis=%d)\n", first, second,
          v, (int)a.dims[axis], (int)b.dims[axis], axis);
  return true;
}

static bool slice(gen *g) {
  uint32_t v = pick_rank(g, 1, GEN_RANK);
  if (v == UINT32_MAX) return false;
  gen_value out = *shape_of(g, v);
  int axis = (int)gen_pick(g, (uint32_t)out.rank);
  int64_t n = out.dims[axis], step = 1 + gen_pick(g, 3);
  int64_t start = gen_pick(g, (uint32_t)n + 1);
  int64_t stop = start + gen_pick(g, (uint32_t)(n - start) + 1);
  out.dims[axis] = (stop - start + step - 1) / step;
  gen_put(g, "  v%u: slice(v%u, [%d], [%d], axis=[%d], step=[%d])\n",
          gen_new(g, &out), v, (int)start, (int)stop, axis, (int)step);
  return true;
}

static bool pad(gen *g) {
  uint32_t v = pick_rank(g, 1, GEN_RANK);
  if (v == UINT32_MAX) return false;
  gen_value out = *shape_of(g, v);
  int64_t pads[2 * GEN_RANK];
  for (int i = 0; i < 2 * out.rank; i++) pads[i] = gen_pick(g, 3);
  for (int i = 0; i < out.rank; i++)
    out.dims[i] += pads[i] + pads[out.rank + i];
  if (gen_elements(&out) > room(g)) return false;
  int rank = out.rank;
  gen_put(g, "  v%u: pad(v%u, pads=[", gen_new(g, &out), v);
  gen_put_dims(g, 2 * rank, pads);
  gen_put(g, "], value=0.5)\n");
  return true;
}

static bool repeat(gen *g) {
  uint32_t v = pick_rank(g, 1, GEN_RANK);
  if (v == UINT32_MAX) return false;
  gen_value out = *shape_of(g, v);
  int64_t times[GEN_RANK];
  for (int i = 0; i < out.rank; i++) times[i] = 1 + gen_pick(g, 2);
  for (int i = 0; i < out.rank; i++) out.dims[i] *= times[i];
  if (gen_elements(&out) > room(g)) return false;
  gen_put(g, "  v%u: tile(v%u, repeats=[", gen_new(g, &out), v);
  gen_put_dims(g, out.rank, times);
  gen_put(g, "])\n");
  return true;
}

static bool gather(gen *g) {
  uint32_t v = pick_rank(g, 1, GEN_RANK);
  if (v == UINT32_MAX) return false;
  gen_value out = *shape_of(g, v);
  int axis = (int)gen_pick(g, (uint32_t)out.rank);
  int64_t n = out.dims[axis], picked[3];
  if (n == 0) return false;
  for (int i = 0; i < 3; i++) picked[i] = gen_pick(g, (uint32_t)n);
  out.dims[axis] = 3;
  if (gen_elements(&out) > room(g)) return false;
  gen_put(g, "  v%u: gather(v%u, const([", gen_new(g, &out), v);
  gen_put_dims(g, 3, picked);
  gen_put(g, "], dtype=i64), axis=%d)\n", axis);
  return true;
}

void gen_node(gen *g) {
  static bool (*const kinds[])(gen *) = {unary,
                                         unary,
                                         binary,
                                         binary,
                                         binary_with_weight,
                                         select_one,
                                         matmul,
                                         matmul,
                                         conv,
                                         conv,
                                         pool,
                                         reduce,
                                         rows,
                                         concat,
                                         reshape,
                                         norm_batch,
                                         transpose,
                                         split,
                                         slice,
                                         pad,
                                         repeat,
                                         gather,
                                         matmul_of_values,
                                         unary,
                                         binary_with_weight};
  for (int i = 0; i < 8; i++)
    if (kinds[gen_pick(g, sizeof kinds / sizeof *kinds)](g)) return;
  unary(g);
}
