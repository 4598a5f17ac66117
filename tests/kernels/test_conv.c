/* SPDX-License-Identifier: Apache-2.0
 * Direct convolution against a plain loop in f64, with and without the ops that
 * follow, in both layouts, with serial and scrambled blocks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"
#include "tests/check.h"
#include "tests/kernels/bed.h"

extern const weir_group_kernel_def weir_group_cpu_conv2d_direct;
extern const weir_op_def weir_op_conv2d;

static const weir_op_def kSigmoid = {.name = "sigmoid",
                                     .flags = WEIR_OP_ELEMENTWISE};
static const weir_op_def kAdd = {.name = "add", .flags = WEIR_OP_ELEMENTWISE};
#define POOL(text)                                    \
  {                                                   \
    .name = text, .flags = WEIR_OP_WINDOW, .attrs = { \
      {"kernel", WEIR_ATTR_INTS, NULL, "size"},       \
      {"stride", WEIR_ATTR_INTS, "none", "step"},     \
      {"pad", WEIR_ATTR_INTS, "[0, 0]", "zeros"}      \
    }                                                 \
  }
static const weir_op_def kAvgPool = POOL("avg_pool");
static const weir_op_def kMaxPool = POOL("max_pool");

typedef struct shape {
  int64_t n, c, h, w, oc, kh, kw, stride, pad, dilation;
  int pool; /* 0 none, k: average, -k: max */
  bool bias, add, sigmoid;
} shape;

/* One problem: data, the group that describes it, and the expected result. */
typedef struct problem {
  shape s;
  int64_t oh, ow, ph, pw;
  float *x, *w, *b, *a;
  double *want; /* [n][oc][ph][pw] */
  weir_dim dims[4];
  weir_attr conv_attrs[5], pool_attrs[3];
  weir_operand in[4], mid, out;
  weir_operand conv_in[3], add_in[2];
  weir_call calls[4];
  weir_group_ref conv_refs[3], add_refs[2], unary_refs[2];
  const weir_group_ref *refs[4];
  uint32_t out_call;
  weir_group group;
} problem;

static float noise(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / (float)(1 << 23) - 1.0f;
}

static float *random_floats(int64_t count, uint32_t *state) {
  float *p = malloc((size_t)count * sizeof *p);
  for (int64_t i = 0; i < count; i++) p[i] = noise(state);
  return p;
}

static double conv_at(const problem *p, int64_t n, int64_t o, int64_t i,
                      int64_t j) {
  const shape *s = &p->s;
  double sum = s->bias ? p->b[o] : 0.0;
  for (int64_t c = 0; c < s->c; c++)
    for (int64_t u = 0; u < s->kh; u++)
      for (int64_t v = 0; v < s->kw; v++) {
        int64_t y = i * s->stride + u * s->dilation - s->pad;
        int64_t x = j * s->stride + v * s->dilation - s->pad;
        if (y < 0 || x < 0 || y >= s->h || x >= s->w) continue;
        sum += (double)p->x[((n * s->c + c) * s->h + y) * s->w + x] *
               (double)p->w[((o * s->c + c) * s->kh + u) * s->kw + v];
      }
  if (s->add) sum += p->a[o];
  return s->sigmoid ? 1.0 / (1.0 + exp(-sum)) : sum;
}

static double want_at(const problem *p, int64_t n, int64_t o, int64_t i,
                      int64_t j) {
  int k = abs(p->s.pool);
  if (k == 0) return conv_at(p, n, o, i, j);
  double sum = 0, most = -INFINITY;
  for (int u = 0; u < k; u++)
    for (int v = 0; v < k; v++) {
      double y = conv_at(p, n, o, i * k + u, j * k + v);
      sum += y;
      most = y > most ? y : most;
    }
  return p->s.pool > 0 ? sum / (k * k) : most;
}

static weir_operand operand(int rank, const int64_t *dims) {
  weir_operand o = {.dtype = WEIR_F32, .rank = rank, .elements = 1};
  for (int i = 0; i < rank; i++) {
    o.dims[i] = dims[i];
    o.elements *= dims[i];
  }
  return o;
}

static weir_attr ints(const weir_dim *dims) {
  return (weir_attr){.kind = WEIR_ATTR_INTS, .count = 1, .dims = dims};
}

static void add_call(problem *p, const weir_op_def *op, const weir_attr *attrs,
                     const weir_operand *in, uint32_t in_count,
                     const weir_operand *out, const weir_group_ref *refs) {
  uint32_t c = p->group.call_count++;
  p->calls[c] = (weir_call){.op = op,
                            .profile = bed_profile(),
                            .attrs = attrs,
                            .in = in,
                            .out = out,
                            .in_count = in_count,
                            .out_count = 1};
  p->refs[c] = refs;
}

static void describe(problem *p) {
  const shape *s = &p->s;
  p->in[0] = operand(4, (int64_t[]){s->n, s->c, s->h, s->w});
  p->in[1] = operand(4, (int64_t[]){s->oc, s->c, s->kh, s->kw});
  p->in[2] = operand(1, (int64_t[]){s->oc});
  p->in[3] = operand(3, (int64_t[]){s->oc, 1, 1});
  p->mid = operand(4, (int64_t[]){s->n, s->oc, p->oh, p->ow});
  p->out = operand(4, (int64_t[]){s->n, s->oc, p->ph, p->pw});
  p->dims[0] = weir_dim_of(s->stride);
  p->dims[1] = weir_dim_of(s->pad);
  p->dims[2] = weir_dim_of(s->dilation);
  p->dims[3] = weir_dim_of(abs(s->pool));
  p->conv_attrs[0] = ints(&p->dims[0]);
  p->conv_attrs[1] = ints(&p->dims[1]);
  p->conv_attrs[2] = ints(&p->dims[2]);
  p->conv_attrs[3] = (weir_attr){.kind = WEIR_ATTR_INT, .i = 1};
  static const weir_dim kZero = {0, 0, 0};
  p->pool_attrs[0] = ints(&p->dims[3]);
  p->pool_attrs[1] = ints(&p->dims[3]);
  p->pool_attrs[2] = ints(&kZero);
  for (uint32_t i = 0; i < 3; i++) {
    p->conv_in[i] = p->in[i];
    p->conv_refs[i] = (weir_group_ref){false, i};
  }
  p->group.refs = p->refs;
  p->group.calls = p->calls;
  p->group.in = p->in;
  p->group.out = &p->out;
  p->group.in_count = 4;
  p->group.out_count = 1;
  p->group.out_calls = &p->out_call;
  add_call(p, &weir_op_conv2d, p->conv_attrs, p->conv_in, s->bias ? 3 : 2,
           &p->mid, p->conv_refs);
  if (s->add) {
    p->add_in[0] = p->in[3];
    p->add_in[1] = p->mid;
    p->add_refs[0] = (weir_group_ref){false, 3};
    p->add_refs[1] = (weir_group_ref){true, p->group.call_count - 1};
    add_call(p, &kAdd, NULL, p->add_in, 2, &p->mid, p->add_refs);
  }
  if (s->sigmoid) {
    p->unary_refs[0] = (weir_group_ref){true, p->group.call_count - 1};
    add_call(p, &kSigmoid, NULL, &p->mid, 1, &p->mid, &p->unary_refs[0]);
  }
  if (s->pool != 0) {
    p->unary_refs[1] = (weir_group_ref){true, p->group.call_count - 1};
    add_call(p, s->pool > 0 ? &kAvgPool : &kMaxPool, p->pool_attrs, &p->mid, 1,
             &p->out, &p->unary_refs[1]);
  }
  p->out_call = p->group.call_count - 1;
}

static problem *make(shape s, uint32_t seed) {
  problem *p = calloc(1, sizeof *p);
  p->s = s;
  p->oh = (s.h + 2 * s.pad - s.dilation * (s.kh - 1) - 1) / s.stride + 1;
  p->ow = (s.w + 2 * s.pad - s.dilation * (s.kw - 1) - 1) / s.stride + 1;
  int k = s.pool == 0 ? 1 : abs(s.pool);
  p->ph = p->oh / k;
  p->pw = p->ow / k;
  p->x = random_floats(s.n * s.c * s.h * s.w, &seed);
  p->w = random_floats(s.oc * s.c * s.kh * s.kw, &seed);
  p->b = random_floats(s.oc, &seed);
  p->a = random_floats(s.oc, &seed);
  p->want = malloc((size_t)(s.n * s.oc * p->ph * p->pw) * sizeof(double));
  double *to = p->want;
  for (int64_t n = 0; n < s.n; n++)
    for (int64_t o = 0; o < s.oc; o++)
      for (int64_t i = 0; i < p->ph; i++)
        for (int64_t j = 0; j < p->pw; j++) *to++ = want_at(p, n, o, i, j);
  describe(p);
  return p;
}

static void release(problem *p) {
  free(p->x);
  free(p->w);
  free(p->b);
  free(p->a);
  free(p->want);
  free(p);
}

/* Runs blocks from the last to the first, workers in turn. */
static void scrambled(void *self, int64_t blocks, weir_block_fn fn, void *arg) {
  (void)self;
  for (int64_t b = blocks; b-- > 0;) fn(arg, b, (int)(b % 3));
}

static void serial(void *self, int64_t blocks, weir_block_fn fn, void *arg) {
  (void)self;
  for (int64_t b = 0; b < blocks; b++) fn(arg, b, 0);
}

/* [n][c][hw] to and from [ceil(n/16)][c][hw][16]. */
static float *to_n16(const float *x, int64_t n, int64_t chw) {
  int64_t blocks = (n + 15) / 16;
  float *y = calloc((size_t)(blocks * chw * 16), sizeof *y);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < chw; k++)
      y[((i / 16) * chw + k) * 16 + i % 16] = x[i * chw + k];
  return y;
}

static void from_n16(float *y, const float *x, int64_t n, int64_t chw) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < chw; k++)
      y[i * chw + k] = x[((i / 16) * chw + k) * 16 + i % 16];
}

typedef struct how {
  bool x_n16, y_n16, constant, scrambled;
} how;

/* The result in plain layout, to be freed; NULL when refused. */
static float *run(problem *p, how h) {
  const weir_group_kernel_def *k = &weir_group_cpu_conv2d_direct;
  const shape *s = &p->s;
  weir_error err = WEIR_ERROR_INIT;
  weir_layout n16 = WEIR_LAYOUT_N16, plain = WEIR_LAYOUT_PLAIN;
  p->conv_in[0].layout = p->in[0].layout = h.x_n16 ? n16 : plain;
  p->out.layout = h.y_n16 ? n16 : plain;
  p->in[1].value = h.constant ? p->w : NULL;
  p->in[2].value = h.constant ? p->b : NULL;
  p->in[3].value = h.constant ? p->a : NULL;
  weir_why why = {""};
  if (!k->accepts(&p->group, &why)) {
    assert_true(strlen(why.text) > 0);
    return NULL;
  }
  weir_arena arena;
  weir_arena_init(&arena, weir_allocator_system());
  weir_prepared prepared = {.arena = &arena, .alloc = weir_allocator_system()};
  assert_ok(k->prepare(&p->group, &prepared, &err), &err);
  int workers = h.scrambled ? 3 : 1;
  size_t bytes =
      weir_scratch_align(prepared.scratch_bytes) +
      (size_t)workers * weir_scratch_align(prepared.worker_scratch_bytes);
  char *scratch = aligned_alloc(64, bytes + 64);
  memset(scratch, 0xff, bytes); /* NaN: unwritten places must not count */
  int64_t image = s->oc * p->ph * p->pw, blocks = (s->n + 15) / 16;
  float *x = h.x_n16 ? to_n16(p->x, s->n, s->c * s->h * s->w) : p->x;
  float *y = malloc((size_t)(blocks * 16 * image) * sizeof *y);
  float *out = malloc((size_t)(s->n * image) * sizeof *out);
  weir_run_ctx ctx = {.parallel_for = h.scrambled ? scrambled : serial,
                      .workers = workers};
  weir_args args = {.io = (void *[]){x, p->w, p->b, p->a, y},
                    .state = prepared.state,
                    .scratch = scratch,
                    .ctx = &ctx,
                    .err = &err};
  assert_ok(k->run(&args), &err);
  if (h.y_n16)
    from_n16(out, y, s->n, image);
  else
    memcpy(out, y, (size_t)(s->n * image) * sizeof *out);
  if (h.x_n16) free(x);
  free(y);
  free(scratch);
  weir_arena_release(&arena);
  return out;
}

static void check(problem *p, const float *got) {
  int64_t count = p->s.n * p->s.oc * p->ph * p->pw;
  double terms = (double)(p->s.c * p->s.kh * p->s.kw);
  for (int64_t i = 0; i < count; i++)
    if (!(fabs(got[i] - p->want[i]) <= 1e-6 * (2 + terms)))
      fail_msg(
          "n %d c %d %dx%d oc %d k %dx%d pool %d: element %d is %g, "
          "want %g",
          (int)p->s.n, (int)p->s.c, (int)p->s.h, (int)p->s.w, (int)p->s.oc,
          (int)p->s.kh, (int)p->s.kw, p->s.pool, (int)i, (double)got[i],
          p->want[i]);
}

static const shape kShapes[] = {
    /* n, c, h, w, oc, kh, kw, stride, pad, dilation, pool, bias, add, sigm. */
    {1, 1, 28, 28, 6, 5, 5, 1, 2, 1, 2, true, false, true},
    {1, 6, 14, 14, 16, 5, 5, 1, 0, 1, 2, true, false, true},
    {64, 1, 28, 28, 6, 5, 5, 1, 2, 1, 2, true, false, true},
    {33, 6, 14, 14, 16, 5, 5, 1, 0, 1, 2, false, true, true},
    {16, 3, 9, 11, 10, 3, 3, 2, 1, 1, 0, true, false, false},
    {17, 2, 12, 7, 5, 3, 2, 1, 1, 2, -3, false, false, true},
    {31, 1, 5, 5, 1, 5, 5, 1, 0, 1, 0, false, false, false},
    {5, 3, 9, 11, 10, 3, 3, 2, 1, 1, 0, true, false, false},
    {3, 2, 13, 37, 7, 3, 2, 1, 1, 2, -2, false, true, true},
    {2, 4, 7, 33, 3, 1, 1, 1, 0, 1, 0, true, false, true},
    {1, 2, 1, 1, 19, 1, 1, 1, 0, 1, 0, true, false, true},
    {15, 3, 12, 12, 33, 3, 3, 1, 1, 1, 3, false, false, false},
    {7, 1, 6, 50, 2, 2, 7, 1, 3, 1, 2, true, false, false},
};
enum { kShapeCount = sizeof kShapes / sizeof kShapes[0] };

static void equals_the_plain_loop(void **state) {
  (void)state;
  for (uint32_t i = 0; i < kShapeCount; i++) {
    problem *p = make(kShapes[i], i + 1);
    size_t bytes = (size_t)(p->s.n * p->s.oc * p->ph * p->pw) * sizeof(float);
    float *first = run(p, (how){0});
    assert_non_null(first);
    check(p, first);
    for (int bits = 1; bits < 16; bits++) {
      how h = {bits & 1, bits & 2, bits & 4, bits & 8};
      float *other = run(p, h);
      bool n16 = h.x_n16 || h.y_n16;
      if (n16 && p->s.n < 16) {
        assert_null(other);
        continue;
      }
      assert_non_null(other);
      assert_memory_equal(first, other, bytes); /* the same bits */
      free(other);
    }
    free(first);
    release(p);
  }
}

static void refuses_with_words(void **state) {
  (void)state;
  const weir_group_kernel_def *k = &weir_group_cpu_conv2d_direct;
  weir_why why;
  problem *p = make(kShapes[3], 1);
  p->conv_attrs[3].i = 2;
  assert_false(k->accepts(&p->group, &why));
  assert_string_equal(why.text, "groups");
  p->conv_attrs[3].i = 1;
  p->in[3] = p->add_in[0] = p->mid;
  assert_false(k->accepts(&p->group, &why));
  assert_string_equal(why.text, "adds more than one number per channel");
  release(p);
  p = make(kShapes[0], 1);
  p->conv_in[0].dtype = WEIR_F64;
  assert_false(k->accepts(&p->group, &why));
  assert_string_equal(why.text, "f32 only");
  p->conv_in[0].dtype = WEIR_F32;
  static const weir_dim kThree = {3, 0, 0};
  p->pool_attrs[1] = ints(&kThree);
  assert_false(k->accepts(&p->group, &why));
  assert_non_null(strstr(why.text, "side by side"));
  release(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equals_the_plain_loop),
      cmocka_unit_test(refuses_with_words),
  };
  BED_RUN(tests);
}
