/* SPDX-License-Identifier: Apache-2.0 */
/* Group kernels of GPUs beside their members' kernels, on groups that the pass
 * makes of random graphs. The stand-in runs each launch in both orders. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/registry.h"
#include "tests/cuda/groups/group_make.h"
#include "tests/cuda/groups/group_run.h"

enum { GRAPHS = 300, MANY_OUTPUTS = 3 };

static gpu_world world;

static const weir_group_kernel_def *kernel_named(const char *name) {
  for (size_t i = 0; i < weir_builtin_group_kernel_count; i++)
    if (strcmp(weir_builtin_group_kernels[i]->name, name) == 0)
      return weir_builtin_group_kernels[i];
  fail_msg("no group kernel %s", name);
  return NULL;
}

/* The same bits, or both are no numbers. */
static void check_bits(const weir_operand *x, const void *got, const void *want,
                       const char *text) {
  for (int64_t i = 0; i < x->elements; i++) {
    float g, w;
    memcpy(&g, (const char *)got + 4 * i, 4);
    memcpy(&w, (const char *)want + 4 * i, 4);
    if (memcmp(&g, &w, 4) == 0 || (isnan(g) && isnan(w))) continue;
    fail_msg("element %lld is %.9g, want %.9g, of\n%s", (long long)i, g, w,
             text);
  }
}

static void check_run(const group_data *data, group_how how, const char *text) {
  const weir_group *g = data->group;
  void *out[GROUP_OUTPUTS] = {NULL};
  group_run(&world, kernel_named("gpu.fused"), data, how, out);
  for (uint32_t o = 0; o < g->out_count; o++) {
    check_bits(&g->out[o], out[o], data->member[g->out_calls[o]], text);
    free(out[o]);
  }
}

static bool same_shape(const weir_operand *a, const weir_operand *b) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

/* Results of other members are outputs too. */
static void check_outputs(const group_data *data, uint32_t seed,
                          const char *text) {
  weir_group g = *data->group;
  group_data more = *data;
  weir_operand out[MANY_OUTPUTS];
  uint32_t calls[MANY_OUTPUTS];
  g.out = out;
  g.out_calls = calls;
  g.out_count = 0;
  for (uint32_t c = seed % g.call_count; g.out_count < MANY_OUTPUTS; c++) {
    if (c >= g.call_count) break;
    if (g.calls[c].out[0].dtype != WEIR_F32) continue;
    out[g.out_count] = g.calls[c].out[0];
    calls[g.out_count++] = c;
  }
  more.group = &g;
  if (g.out_count > 0) check_run(&more, (group_how){.in_place = -1}, text);
}

static void check_group(const weir_group *group, uint32_t seed,
                        const char *text) {
  group_data data;
  weir_operand y = group->out[0];
  group_data_make(&world, group, seed, &data);
  check_run(&data, (group_how){.in_place = -1}, text);
  check_run(&data, (group_how){.in_place = -1, .shift = 4}, text);
  for (uint32_t i = 0; i < group->in_count; i++)
    if (same_shape(&group->in[i], &y))
      check_run(&data, (group_how){.in_place = (int32_t)i}, text);
  check_outputs(&data, seed, text);
  if (seed % 8 == 0)
    assert_true(group_run_failing(&world, kernel_named("gpu.fused"), &data) >
                0);
  group_data_free(&data);
}

/* Few groups are too large; which, the seeds decide. */
static void tapes_have_their_members_bits(void **state) {
  (void)state;
  int taken = 0, refused = 0;
  for (uint32_t seed = 1; seed <= GRAPHS; seed++) {
    char text[GROUP_TEXT];
    uint32_t count;
    group_text(seed, text);
    weir_graph *graph = group_load(text, &count);
    for (uint32_t id = 0; id < count; id++) {
      weir_arena arena;
      weir_group group;
      weir_why why = {""};
      weir_arena_init(&arena, weir_allocator_system());
      group_of(graph, id, &arena, &group);
      if (kernel_named("gpu.fused")->accepts(&group, &why)) {
        check_group(&group, seed, text);
        taken++;
      } else {
        print_message("seed %u: %s\n", seed, why.text);
        refused++;
      }
      weir_arena_release(&arena);
    }
    weir_graph_unref(graph);
  }
  print_message("%d groups, %d refused\n", taken, refused);
  assert_true(taken >= GRAPHS * 9 / 10);
}

/* ---- Products */

/* What stands after a product p of m rows and n columns, with the number of
 * launches; 0: the group is not taken. */
typedef struct followers {
  const char *text;
  uint64_t launches;
} followers;

/* The library's products are no launches here. */
static const followers kAfter[] = {
    {"  y: add(p, r)\n", 0},
    {"  y: relu(p)\n", 0},
    {"  y: relu(add(p, r))\n", 0},
    {"  y: relu(add(r, p))\n", 0},
    {"  y: gelu(add(p, r), approximate=tanh)\n", 0},
    {"  y: gelu(p, approximate=tanh)\n", 0},
    {"  y: gelu(add(p, r))\n", 1},
    {"  y: add(add(p, r), e)\n", 1},
    {"  y: sub(e, relu(add(p, r)))\n", 1},
    {"  y: tanh(mul(p, s))\n", 1},
    {"  y: relu(add(p, c))\n", 1},
    {"  y: mul(add(p, r), sigmoid(add(p, c)))\n", 1},
    {"  q: add(p, r)\n  y: mul(q, sigmoid(q))\n", 1},
    {"  q: relu(add(p, r))\n  y: add(mul(q, e), q)\n", 1},
    {"  y: add(neg(e), relu(add(p, r)))\n", 1}};
enum { AFTER = sizeof kAfter / sizeof *kAfter };
static const int kSizes[] = {1, 2, 3, 4, 7, 16, 33};
enum { SIZES = sizeof kSizes / sizeof *kSizes };

/* |shape|: bits 0 and 1: a or b is transposed. */
static void product_text(const followers *after, unsigned shape,
                         const int mnk[3], char text[GROUP_TEXT]) {
  int m = mnk[0], n = mnk[1], k = mnk[2];
  bool ta = (shape & 1) != 0, tb = (shape & 2) != 0;
  snprintf(text, GROUP_TEXT,
           "weir: 1\ninputs: {a: \"f32[%d, %d]\", b: \"f32[%d, %d]\", "
           "r: \"f32[%d]\", c: \"f32[%d, 1]\", s: \"f32[]\", "
           "e: \"f32[%d, %d]\"}\nnodes:\n  p: matmul(a, b%s%s)\n%soutputs: "
           "[y]\n",
           ta ? k : m, ta ? m : k, tb ? n : k, tb ? k : n, n, m, m, n,
           ta ? ", transpose_a=true" : "", tb ? ", transpose_b=true" : "",
           after->text);
}

/* Within the rounding of sums of at most some dozen terms. */
static void check_near(const weir_operand *x, const float *got,
                       const float *want, const char *text) {
  float largest = 1;
  for (int64_t i = 0; i < x->elements; i++)
    largest = fmaxf(largest, fabsf(want[i]));
  for (int64_t i = 0; i < x->elements; i++)
    if (!(fabsf(got[i] - want[i]) <= 2e-6f * largest))
      fail_msg("element %lld is %.9g, want %.9g, of\n%s", (long long)i, got[i],
               want[i], text);
}

static void check_product(const weir_group *group, const followers *after,
                          uint32_t seed, const char *text) {
  const weir_group_kernel_def *kernel = kernel_named("gpu.matmul_fused");
  group_data data;
  void *out[1];
  uint64_t launches = 0;
  group_data_make(&world, group, seed, &data);
  if (world.standin != NULL) launches = world.standin->counts().launches;
  group_run(&world, kernel, &data, (group_how){.in_place = -1}, out);
  if (world.standin != NULL)
    assert_int_equal(world.standin->counts().launches - launches,
                     after->launches);
  check_near(&group->out[0], out[0], data.member[group->call_count - 1], text);
  if (seed % 16 == 0) assert_true(group_run_failing(&world, kernel, &data) > 1);
  free(out[0]);
  group_data_free(&data);
}

static void check_text(const followers *after, uint32_t seed,
                       const char *text) {
  uint32_t count;
  weir_arena arena;
  weir_group group;
  weir_why why = {""};
  weir_graph *graph = group_load(text, &count);
  weir_arena_init(&arena, weir_allocator_system());
  assert_int_equal(count, 1);
  group_of(graph, 0, &arena, &group);
  if (!kernel_named("gpu.matmul_fused")->accepts(&group, &why))
    fail_msg("%s: of\n%s", why.text, text);
  check_product(&group, after, seed, text);
  weir_arena_release(&arena);
  weir_graph_unref(graph);
}

static void products_are_near_their_members(void **state) {
  (void)state;
  uint32_t numbers = 7, seed = 0;
  for (int i = 0; i < AFTER; i++)
    for (unsigned shape = 0; shape < 4; shape++)
      for (int times = 0; times < 4; times++) {
        char text[GROUP_TEXT];
        const int mnk[3] = {kSizes[group_next(&numbers) % SIZES],
                            kSizes[group_next(&numbers) % SIZES],
                            kSizes[group_next(&numbers) % SIZES]};
        product_text(&kAfter[i], shape, mnk, text);
        check_text(&kAfter[i], seed++, text);
      }
}

/* A batch; and b the same for all of it. */
static void batches_have_epilogues(void **state) {
  (void)state;
  static const char *const kHeads[] = {
      "a: \"f32[3, 5, 7]\", b: \"f32[7, 4]\"",
      "a: \"f32[2, 3, 4]\", b: \"f32[2, 4, 4]\"",
      "a: \"f32[2, 1, 3, 4]\", b: \"f32[3, 4, 5]\""};
  static const int kColumns[] = {4, 4, 5};
  const followers relu = {"relu", 0}, tape = {"tanh", 1};
  for (int i = 0; i < 3; i++)
    for (int end = 0; end < 2; end++) {
      char text[GROUP_TEXT];
      snprintf(text, sizeof text,
               "weir: 1\ninputs: {%s, r: \"f32[%d]\"}\nnodes:\n"
               "  y: %s(add(matmul(a, b), r))\noutputs: [y]\n",
               kHeads[i], kColumns[i], end == 0 ? relu.text : tape.text);
      check_text(end == 0 ? &relu : &tape, (uint32_t)i, text);
    }
}

/* ---- Refusals */

typedef struct refusal {
  const char *text, *why;
  const char *kernel;
} refusal;

static const refusal kRefusals[] = {
    {"inputs: {x: \"f64[3]\"}\nnodes:\n  y: exp(neg(x))\noutputs: [y]\n",
     "neg of f64", "gpu.fused"},
    {"inputs: {x: \"i32[3]\"}\nnodes:\n  y: exp(cast(x, f32))\noutputs: "
     "[y]\n",
     "cast of i32", "gpu.fused"},
    {"inputs: {x: \"f32[2, 3, 2, 3, 2]\", r: \"f32[3, 1, 3, 1]\"}\nnodes:\n"
     "  y: exp(mul(x, r))\noutputs: [y]\n",
     "more than 4 dimensions", "gpu.fused"},
    {"inputs: {x: \"f32[65536, 32768]\"}\nnodes:\n  y: exp(neg(x))\n"
     "outputs: [y]\n",
     "2^31 elements or more", "gpu.fused"},
    {"inputs: {a: \"f32[2, 3]\", b: \"f32[3, 4]\"}\nnodes:\n"
     "  y: neg(matmul(a, b))\noutputs: [y]\n",
     "saves no launch", "gpu.matmul_fused"},
    {"inputs: {a: \"f32[2, 0]\", b: \"f32[0, 4]\"}\nnodes:\n"
     "  y: relu(matmul(a, b))\noutputs: [y]\n",
     "no terms", "gpu.matmul_fused"},
    {"inputs: {a: \"f64[2, 3]\", b: \"f64[3, 4]\"}\nnodes:\n"
     "  y: relu(matmul(a, b))\noutputs: [y]\n",
     "not f32", "gpu.matmul_fused"},
    {"inputs: {a: \"f32[2, 3]\"}\nnodes:\n  y: relu(neg(a))\noutputs: [y]\n",
     "does not start with matmul", "gpu.matmul_fused"}};
enum { REFUSALS = sizeof kRefusals / sizeof *kRefusals };

static void refusals_have_words(void **state) {
  (void)state;
  for (int i = 0; i < REFUSALS; i++) {
    char text[GROUP_TEXT];
    uint32_t count;
    weir_arena arena;
    weir_group group;
    weir_why why = {""};
    snprintf(text, sizeof text, "weir: 1\n%s", kRefusals[i].text);
    weir_graph *graph = group_load(text, &count);
    weir_arena_init(&arena, weir_allocator_system());
    assert_int_equal(count, 1);
    group_of(graph, 0, &arena, &group);
    assert_false(kernel_named(kRefusals[i].kernel)->accepts(&group, &why));
    assert_string_equal(why.text, kRefusals[i].why);
    weir_arena_release(&arena);
    weir_graph_unref(graph);
  }
}

static int open_world(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(gpu_world_open(&world, &err), &err);
  return 0;
}

static int close_world(void **state) {
  (void)state;
  char why[512] = "";
  if (!gpu_world_close(&world, why, sizeof why)) fail_msg("%s", why);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tapes_have_their_members_bits),
      cmocka_unit_test(products_are_near_their_members),
      cmocka_unit_test(batches_have_epilogues),
      cmocka_unit_test(refusals_have_words)};
  return cmocka_run_group_tests(tests, open_world, close_world);
}
