/* SPDX-License-Identifier: Apache-2.0
 * conv2d by oneDNN against the reference kernel: x and y in rows or in blocks
 * of channels, weights known before or not, alone and with bias, residual and
 * relu after it. Numbers are multiples of 1/64, so sums of f32 are exact and
 * the results must be the same bits. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "tests/kernels/bed.h"
#include "tests/profiles.h"

static uint64_t profile; /* the best one that WEIR_ISA allows */

typedef struct shape {
  int64_t n, c, h, w, oc, kh, kw; /* c: of all groups */
  int64_t stride[2], pad[4], dilation, groups;
  bool bias;
} shape;

/* Channels fill blocks of 16, and of 8, but for the last shapes. */
static const shape shapes[] = {
    {1, 16, 1, 1, 16, 1, 1, {1, 1}, {0}, 1, 1, false},
    {2, 16, 5, 6, 320, 1, 1, {1, 1}, {0}, 1, 1, true},
    {3, 32, 7, 9, 48, 1, 1, {2, 3}, {0}, 1, 1, true},
    {1, 3, 23, 25, 32, 7, 7, {2, 2}, {3, 3, 3, 3}, 1, 1, true},
    {2, 1, 9, 8, 16, 3, 3, {1, 1}, {1, 1, 1, 1}, 1, 1, false},
    {2, 16, 9, 11, 64, 3, 3, {1, 1}, {1, 1, 1, 1}, 1, 1, false},
    {1, 32, 10, 9, 16, 3, 3, {2, 2}, {0, 1, 1, 0}, 1, 1, true},
    {2, 16, 12, 10, 32, 3, 2, {1, 3}, {2, 0, 1, 1}, 2, 1, true},
    {2, 64, 6, 5, 96, 3, 3, {1, 1}, {1, 1, 1, 1}, 1, 2, true},
    {1, 32, 4, 4, 32, 1, 1, {2, 2}, {0}, 1, 2, false},
    {2, 32, 9, 8, 32, 3, 3, {1, 1}, {1, 1, 1, 1}, 1, 32, true},
    {1, 144, 7, 7, 144, 5, 5, {2, 2}, {2, 2, 2, 2}, 1, 144, false},
    {1, 16, 3, 3, 16, 3, 3, {1, 1}, {0}, 1, 1, true},
    {1, 96, 8, 8, 256, 3, 3, {1, 1}, {1, 1, 1, 1}, 1, 1, true},
    {5, 64, 64, 64, 16, 3, 2, {3, 4}, {0}, 1, 1, false},
    {2, 24, 9, 8, 72, 3, 3, {1, 1}, {1, 1, 1, 1}, 1, 1, true},
    {3, 72, 7, 9, 40, 1, 1, {1, 1}, {0}, 1, 1, false},
    {2, 45, 8, 7, 30, 1, 1, {2, 2}, {0}, 1, 1, true},
    {2, 72, 11, 9, 72, 5, 5, {2, 2}, {2, 2, 2, 2}, 1, 72, true},
    {2, 28, 11, 9, 28, 3, 3, {1, 1}, {1, 1, 1, 1}, 1, 28, false},
    {2, 3, 9, 9, 24, 3, 3, {2, 2}, {1, 1, 1, 1}, 1, 1, true},
    {3, 72, 1, 1, 24, 1, 1, {1, 1}, {0}, 1, 1, true},
    {1, 120, 14, 14, 200, 1, 1, {1, 1}, {0}, 1, 1, true},
    /* Tiles of two rows, an odd row; strips of rows and of pixels. */
    {1, 64, 7, 7, 48, 3, 3, {1, 1}, {1, 1, 1, 1}, 1, 1, true},
    {1, 32, 29, 31, 64, 3, 3, {2, 2}, {1, 1, 1, 1}, 1, 1, false},
    {1, 32, 56, 52, 80, 3, 3, {1, 1}, {1, 1, 1, 1}, 1, 1, true},
    {1, 61, 33, 30, 88, 1, 1, {1, 1}, {0}, 1, 1, true},
    {1, 96, 13, 17, 160, 1, 1, {2, 1}, {0}, 1, 1, false},
    /* 49 taps, and more than tiles take. */
    {2, 16, 15, 13, 32, 7, 7, {2, 3}, {3, 3, 3, 3}, 1, 1, true},
    {1, 16, 12, 12, 16, 8, 8, {1, 1}, {3, 4, 4, 3}, 1, 1, false},
    /* More border than image. */
    {1, 16, 5, 4, 32, 3, 3, {1, 1}, {900, 900, 900, 900}, 900, 1, true},
    /* A row that is border alone, and windows that leave the end out. */
    {1, 16, 1, 5, 32, 3, 3, {1, 2}, {2, 1, 2, 2}, 1, 1, true},
    {1, 32, 8, 9, 16, 2, 2, {3, 3}, {0}, 1, 1, true}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

typedef struct setup {
  weir_dim stride[2], pad[4], dilation[2];
  weir_attr attrs[5]; /* the last, padding, is not given */
  weir_operand in[5], product, out;
  weir_call call;
  float *data[5]; /* x, w, bias, bias after, residual */
  float *want;
} setup;

static int64_t places(const shape *s, int side, int64_t in, int64_t kernel) {
  int64_t padded = in + s->pad[side] + s->pad[side + 2];
  return (padded - (kernel - 1) * s->dilation - 1) / s->stride[side] + 1;
}

static void ints(weir_attr *attr, weir_dim *dims, const int64_t *from,
                 uint32_t count) {
  for (uint32_t i = 0; i < count; i++) dims[i] = weir_dim_of(from[i]);
  *attr = (weir_attr){.kind = WEIR_ATTR_INTS, .count = count, .dims = dims};
}

static void setup_make(setup *t, const shape *s) {
  int64_t x[4] = {s->n, s->c, s->h, s->w};
  int64_t w[4] = {s->oc, s->c / s->groups, s->kh, s->kw};
  int64_t y[4] = {s->n, s->oc, places(s, 0, s->h, s->kh),
                  places(s, 1, s->w, s->kw)};
  int64_t after[3] = {s->oc, 1, 1}, both[2] = {s->dilation, s->dilation};
  memset(t, 0, sizeof *t);
  ints(&t->attrs[0], t->stride, s->stride, 2);
  ints(&t->attrs[1], t->pad, s->pad, 4);
  ints(&t->attrs[2], t->dilation, both, 2);
  t->attrs[3] = (weir_attr){.kind = WEIR_ATTR_INT, .i = s->groups};
  t->in[0] = bed_operand(WEIR_F32, 4, x);
  t->in[1] = bed_operand(WEIR_F32, 4, w);
  if (s->bias) t->in[2] = bed_operand(WEIR_F32, 1, &s->oc);
  t->in[3] = bed_operand(WEIR_F32, 3, after);
  t->in[4] = t->product = t->out = bed_operand(WEIR_F32, 4, y);
  for (int i = 0; i < 5; i++)
    t->data[i] = bed_numbers(t->in[i].elements, (uint64_t)i + 1);
  t->call = (weir_call){.op = bed_op("conv2d"),
                        .attrs = t->attrs,
                        .in = t->in,
                        .out = &t->out,
                        .in_count = 3,
                        .out_count = 1,
                        .profile = profile};
  t->want = bed_memory((size_t)t->out.elements * sizeof(float));
  void *io[4] = {t->data[0], t->data[1], s->bias ? t->data[2] : NULL, t->want};
  bed_run_ref(&t->call, io);
}

static void setup_release(setup *t) {
  for (int i = 0; i < 5; i++) free(t->data[i]);
  free(t->want);
}

static int64_t padded(const weir_operand *as) {
  int lanes = weir_layout_channels(as->layout);
  int64_t c = as->dims[1];
  return as->elements / c * (lanes > 0 ? weir_layout_padded(c, lanes) : c);
}

/* [n][c][pixels] to [n][c / lanes][pixels][lanes], or back, where empty lanes
 * must hold 0. */
static float *moved(const float *x, const weir_operand *as, int lanes,
                    bool back) {
  int64_t pixels = as->dims[2] * as->dims[3], c = as->dims[1];
  int64_t whole = weir_layout_padded(c, lanes), rows = 0;
  float *y =
      bed_memory((size_t)(back ? as->elements : padded(as)) * sizeof(float));
  for (int64_t r = 0; r < as->dims[0] * whole; r++)
    for (int64_t i = 0; i < pixels; i++) {
      int64_t at = (r / lanes * pixels + i) * lanes + r % lanes;
      bool there = r % whole < c;
      if (back && !there) assert_true(x[at] == 0);
      if (back && there) y[rows++] = x[at];
      if (!back) y[at] = there ? x[rows++] : 0;
    }
  return y;
}

typedef struct how {
  bool x_blocks, y_blocks, known;
} how;

static const how kHows[] = {{false, false, false}, {false, false, true},
                            {true, false, false},  {false, true, true},
                            {true, true, false},   {true, true, true}};
enum { HOWS = sizeof kHows / sizeof kHows[0] };

static weir_layout blocks(void) {
  return weir_isa_blocks(profile);
}

/* Output channels from which 1 x 1 windows from and to rows are taken. */
enum { FEW = 320 };

/* Sets layouts and the known weights; false where x cannot be in blocks. */
static bool arrange(setup *t, const how *h, void **x) {
  int lanes = weir_layout_channels(blocks());
  if (h->x_blocks && !weir_layout_pays(t->in[0].dims[1], lanes)) return false;
  t->in[0].layout = h->x_blocks ? blocks() : WEIR_LAYOUT_PLAIN;
  t->out.layout = h->y_blocks ? blocks() : WEIR_LAYOUT_PLAIN;
  t->in[4].layout = t->out.layout;
  t->in[1].value = h->known ? t->data[1] : NULL;
  *x = h->x_blocks ? moved(t->data[0], &t->in[0], lanes, false) : NULL;
  return true;
}

static void check_result(const setup *t, const how *h, const float *y,
                         const float *want) {
  float *rows = h->y_blocks
                    ? moved(y, &t->out, weir_layout_channels(blocks()), true)
                    : NULL;
  assert_memory_equal(rows != NULL ? rows : y, want,
                      (size_t)t->out.elements * sizeof(float));
  free(rows);
}

static void check_alone(setup *t, const shape *s, const how *h,
                        bed_order order) {
  void *x = NULL;
  if (arrange(t, h, &x)) {
    float *y = bed_memory((size_t)padded(&t->out) * sizeof(float));
    void *io[4] = {x != NULL ? x : t->data[0], t->data[1],
                   s->bias ? t->data[2] : NULL, y};
    const weir_kernel_def *kernel = bed_kernel("cpu.conv2d.blocked");
    weir_why why = {""};
    bool few = s->kh * s->kw == 1 && s->oc < FEW && s->stride[0] == 1 &&
               !h->x_blocks && !h->y_blocks && s->h * s->w > 1;
    assert_int_equal(kernel->accepts(&t->call, &why), !few);
    if (!few) {
      bed_run_kernel(kernel, &t->call, io, order);
      check_result(t, h, y, t->want);
    }
    free(y);
    free(x);
  }
}

static void test_alone(void **state) {
  (void)state;
  if (blocks() == WEIR_LAYOUT_PLAIN) skip(); /* no AVX2: no blocks */
  for (int i = 0; i < SHAPES; i++) {
    setup t;
    setup_make(&t, &shapes[i]);
    for (int k = 0; k < HOWS; k++)
      check_alone(&t, &shapes[i], &kHows[k],
                  k % 2 ? BED_SCRAMBLED : BED_SERIAL);
    setup_release(&t);
  }
}

/* Four calls that make relu(conv + bias[oc, 1, 1] + residual). */
typedef struct chain {
  weir_operand add_in[2], residual_in[2];
  weir_call calls[4];
  weir_group_ref r0[3], r1[2], r2[2], r3[1];
  const weir_group_ref *refs[4];
  uint32_t out_calls[1];
  weir_group group;
} chain;

/* The first |members| of them. */
static void chain_make(chain *c, const setup *t, uint32_t members) {
  *c = (chain){.add_in = {t->product, t->in[3]},
               .residual_in = {t->in[4], t->product},
               .r0 = {{false, 0}, {false, 1}, {false, 2}},
               .r1 = {{true, 0}, {false, 3}},
               .r2 = {{false, 4}, {true, 1}},
               .r3 = {{true, 2}},
               .refs = {c->r0, c->r1, c->r2, c->r3},
               .out_calls = {members - 1}};
  c->calls[0] = t->call;
  c->calls[1] = (weir_call){.op = bed_op("add"), .in = c->add_in};
  c->calls[2] = (weir_call){.op = bed_op("add"), .in = c->residual_in};
  c->calls[3] = (weir_call){.op = bed_op("relu"), .in = &t->product};
  for (uint32_t i = 0; i < 4; i++) {
    if (i > 0) c->calls[i].in_count = i < 3 ? 2 : 1;
    c->calls[i].out = i + 1 == members ? &t->out : &t->product;
    c->calls[i].out_count = 1;
    c->calls[i].profile = profile;
  }
  c->group = (weir_group){.call_count = members,
                          .in_count = 5,
                          .out_count = 1,
                          .calls = c->calls,
                          .refs = c->refs,
                          .in = t->in,
                          .out = &t->out,
                          .out_calls = c->out_calls};
}

static float *chain_want(const setup *t, int64_t oc, uint32_t members) {
  float *want = bed_memory((size_t)t->out.elements * sizeof(float));
  int64_t pixels = t->out.dims[2] * t->out.dims[3];
  for (int64_t i = 0; i < t->out.elements; i++) {
    want[i] = t->want[i] + t->data[3][i / pixels % oc];
    if (members == 4) want[i] += t->data[4][i];
    if (members == 4 && want[i] < 0) want[i] = 0;
  }
  return want;
}

static void check_group(setup *t, const shape *s, const how *h,
                        uint32_t members) {
  void *x = NULL;
  chain c;
  if (!arrange(t, h, &x)) return;
  chain_make(&c, t, members);
  float *want = chain_want(t, s->oc, members), *residual = NULL;
  float *y = bed_memory((size_t)padded(&t->out) * sizeof(float));
  if (h->y_blocks)
    residual =
        moved(t->data[4], &t->in[4], weir_layout_channels(blocks()), false);
  void *io[6] = {x != NULL ? x : t->data[0],
                 t->data[1],
                 s->bias ? t->data[2] : NULL,
                 t->data[3],
                 residual != NULL ? residual : t->data[4],
                 y};
  const weir_group_kernel_def *kernel = bed_group("cpu.conv2d_blocked_fused");
  weir_why why = {""};
  if (kernel->accepts(&c.group, &why)) {
    bed_run_group(kernel, &c.group, io, BED_SCRAMBLED);
    check_result(t, h, y, want);
  } else {
    /* A number for each channel that is not taken as the bias. */
    bool empty = h->y_blocks && s->oc % weir_layout_channels(blocks()) != 0 &&
                 (members == 4 || s->bias);
    assert_non_null(strstr(why.text, empty ? "blocks with empty lanes out"
                                           : "1 x 1 to fewer than"));
  }
  free(want);
  free(y);
  free(x);
  free(residual);
}

static void test_groups(void **state) {
  (void)state;
  if (blocks() == WEIR_LAYOUT_PLAIN) skip();
  for (int i = 0; i < SHAPES; i++) {
    setup t;
    setup_make(&t, &shapes[i]);
    for (int k = 0; k < HOWS; k++) {
      check_group(&t, &shapes[i], &kHows[k], 4);
      check_group(&t, &shapes[i], &kHows[k], 2);
    }
    setup_release(&t);
  }
}

/* The refusals, each with its words. */
static void test_refusals(void **state) {
  (void)state;
  if (blocks() == WEIR_LAYOUT_PLAIN) skip();
  static const struct {
    shape s;
    const char *says;
  } kCases[] = {
      {{1, 5, 4, 4, 32, 3, 3, {1, 1}, {0}, 1, 1, false}, "of a block"},
      {{1, 32, 4, 4, 4, 3, 3, {1, 1}, {0}, 1, 1, false}, "of a block"},
      {{1, 48, 4, 4, 40, 3, 3, {1, 1}, {0}, 1, 2, false}, "groups of channels"},
      {{1, 16, 4, 4, 16, 3, 3, {1, 1}, {3, 0, 0, 0}, 1, 1, false}, "border"},
      {{1, 16, 40, 4, 16, 17, 1, {1, 1}, {0}, 1, 1, false}, "window larger"},
      {{1, 16, 4, 4, 16, 1, 1, {1, 1}, {0}, 1, 1, false},
       "1 x 1 to fewer than"},
      {{1,
        16,
        4,
        4,
        32,
        3,
        3,
        {1, 1},
        {1 << 30, 1 << 30, 1 << 30, 1 << 30},
        1 << 30,
        1,
        false},
       "a window that reaches over 4096 pixels"},
      {{0, 16, 4, 4, 16, 3, 3, {1, 1}, {0}, 1, 1, false}, "no elements"}};
  for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; i++) {
    setup t;
    weir_why why = {""};
    setup_make(&t, &kCases[i].s);
    assert_false(bed_kernel("cpu.conv2d.blocked")->accepts(&t.call, &why));
    if (strstr(why.text, kCases[i].says) == NULL)
      fail_msg("case %zu says '%s'", i, why.text);
    setup_release(&t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone),
                                     cmocka_unit_test(test_groups),
                                     cmocka_unit_test(test_refusals)};
  test_profiles profiles;
  if (!test_profiles_find(&profiles)) return 1;
  profile = profiles.list[0];
  return cmocka_run_group_tests(tests, NULL, NULL);
}
