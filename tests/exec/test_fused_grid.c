/* SPDX-License-Identifier: Apache-2.0
 * Groups that run as one kernel, over grids of shapes, beside the same graph on
 * the reference kernels, under each instruction set of the machine, on one and
 * two threads. Every group kernel must be reached. */
#include <math.h>
#include <stdlib.h>

#include "runtime/exec/session/binding.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/maker.h"
#include "tests/profiles.h"

enum { AXES = 4, VALUES = 12, INPUTS = 6, TEXT = 4096 };

/* `$m` in a text stands for a value of axis m; a list ends with -1. */
typedef struct axis {
  char name;
  int values[VALUES];
} axis;

typedef struct grid {
  const char *text;
  axis axes[AXES]; /* a name of 0 ends them */
} grid;

#define PRODUCT(a, b, call)                                             \
  "inputs: {a: \"f32[" a "]\", b: \"f32[" b                             \
  "]\", r: \"f32[$n]\", c: \"f32[$m, 1]\"}\nnodes:\n  p: " call         \
  "\n  y: relu(add(add(p, r), c))\n  z: tanh(mul(p, 0.5))\noutputs: [y" \
  ", z]\n"
#define PRODUCT_AXES                                                      \
  {                                                                       \
    {'m', {0, 1, 2, 3, 6, 12, 13, -1}}, {'n', {1, 2, 3, 16, 17, 33, -1}}, \
        {'k', {0, 1, 2, 17, -1}}, {                                       \
      0                                                                   \
    }                                                                     \
  }
#define BATCH(a, b, call)                       \
  "inputs: {a: \"f32[$e, " a "]\", b: \"f32[" b \
  "]\", r: \"f32[$n]\"}\nnodes:\n  y: relu(add(" call ", r))\noutputs: [y]\n"
#define BATCH_AXES                                                          \
  {                                                                         \
    {'e', {0, 1, 2, 3, -1}}, {'m', {1, 2, 7, -1}}, {'n', {1, 2, 17, -1}}, { \
      'k', {                                                                \
        1, 2, 9, -1                                                         \
      }                                                                     \
    }                                                                       \
  }

static const grid kGrids[] = {
    {PRODUCT("$m, $k", "$k, $n", "matmul(a, b)"), PRODUCT_AXES},
    {PRODUCT("$k, $m", "$k, $n", "matmul(a, b, transpose_a=true)"),
     PRODUCT_AXES},
    {PRODUCT("$m, $k", "$n, $k", "matmul(a, b, transpose_b=true)"),
     PRODUCT_AXES},
    {PRODUCT("$k, $m", "$n, $k",
             "matmul(a, b, transpose_a=true, transpose_b=true)"),
     PRODUCT_AXES},
    {BATCH("$m, $k", "$k, $n", "matmul(a, b)"), BATCH_AXES},
    {BATCH("$k, $m", "$k, $n", "matmul(a, b, transpose_a=true)"), BATCH_AXES},
    {BATCH("$m, $k", "$e, $n, $k", "matmul(a, b, transpose_b=true)"),
     BATCH_AXES},
    {BATCH("$k, $m", "1, $n, $k",
           "matmul(a, b, transpose_a=true, transpose_b=true)"),
     BATCH_AXES},
    {"inputs: {a: \"f32[$e, $m, $k]\", r: \"f32[$m]\"}\nnodes:\n"
     "  y: relu(add(matmul(a, a, transpose_b=true), r))\noutputs: [y]\n",
     {{'e', {1, 2, -1}}, {'m', {1, 2, 13, 33, -1}}, {'k', {0, 1, 17, -1}}}},
    {"inputs: {a: \"f32[$m, $n]\", b: \"f32[$n]\", c: \"f32[$m, 1]\", "
     "d: \"f32[]\"}\nnodes:\n  s: mul(add(a, b), c)\n"
     "  y: where(greater(s, d), s, tanh(s))\n"
     "  z: cast(round(sub(y, a)), i32)\noutputs: [y, z]\n",
     {{'m', {0, 1, 2, 3, 65, -1}}, {'n', {1, 15, 16, 17, 1024, 1025, -1}}}},
    {"inputs: {a: \"f64[$m, $n]\", b: \"f64[$n]\"}\nnodes:\n"
     "  y: sqrt(abs(mul(add(a, b), a)))\noutputs: [y]\n",
     {{'m', {0, 1, 3, -1}}, {'n', {1, 8, 9, 1025, -1}}}},
    {"inputs: {x: \"f32[$n, $c, 6, $w]\", w: \"f32[5, $c, 3, 3]\", "
     "b: \"f32[5]\"}\nnodes:\n"
     "  y: max_pool(relu(conv2d(x, w, b, pad=1)), 2)\noutputs: [y]\n",
     {{'n', {1, 2, 15, 16, 17, -1}},
      {'c', {1, 2, 3, -1}},
      {'w', {2, 3, 8, 17, -1}}}},
    {"inputs: {x: \"f32[$n, $c, 6, $w]\", w: \"f32[$o, $c, 3, 3]\", "
     "b: \"f32[$o]\"}\nnodes:\n"
     "  y: tanh(conv2d(x, w, b, stride=2, dilation=2, pad=2))\n"
     "outputs: [y]\n",
     {{'n', {0, 1, 3, 16, 17, -1}},
      {'c', {1, 2, -1}},
      {'w', {5, 8, 17, -1}},
      {'o', {1, 6, 17, -1}}}},
    {"inputs: {x: \"f64[$n, $c, 4, 5]\", w: \"f64[$o, $c, 2, 2]\"}\nnodes:\n"
     "  y: relu(conv2d(x, w))\noutputs: [y]\n",
     {{'n', {1, 2, 17, -1}}, {'c', {1, 3, -1}}, {'o', {1, 6, -1}}}},
    {"inputs: {x: \"f32[$n, $c, 4, $w]\", d: \"f32[$n, $c, 4, $w]\"}\nnodes:\n"
     "  g: max_pool_grad(relu(x), d, kernel=3, stride=1, pad=1)\n"
     "  y: relu_grad(x, g)\noutputs: [y]\n",
     {{'n', {1, 2, 16, 17, -1}}, {'c', {1, 3, -1}}, {'w', {1, 5, 16, 17, -1}}}},
};
enum { GRIDS = sizeof kGrids / sizeof kGrids[0] };

typedef struct point {
  const grid *grid;
  uint32_t at[AXES];
  char text[TEXT];
  weir_graph *graph;
  weir_tensor *in[INPUTS];
  weir_tensor *want[2];
} point;

typedef struct sink {
  char text[16384];
  size_t used;
} sink;

static bool keep(void *self, const char *data, size_t size) {
  sink *s = self;
  if (s->used + size >= sizeof s->text) return false;
  memcpy(s->text + s->used, data, size);
  s->used += size;
  s->text[s->used] = 0;
  return true;
}

static exec_world world;
static weir_pool *pools[2];
static bool seen[16]; /* group kernels */

static int value_of(const point *p, char name) {
  for (int i = 0; i < AXES && p->grid->axes[i].name != 0; i++)
    if (p->grid->axes[i].name == name) return p->grid->axes[i].values[p->at[i]];
  fail_msg("no axis %c", name);
  return 0;
}

static void write_text(point *p) {
  size_t used = (size_t)snprintf(p->text, TEXT, "weir: 1\n");
  for (const char *c = p->grid->text; *c != 0; c++) {
    assert_true(used + 16 < TEXT);
    if (*c == '$')
      used += (size_t)snprintf(p->text + used, TEXT - used, "%d",
                               value_of(p, *++c));
    else
      p->text[used++] = *c;
    p->text[used] = 0;
  }
}

/* Numbers in [-1, 1] in steps of 1/64. */
static weir_tensor *numbers(const weir_value *v, uint32_t seed) {
  weir_tensor *t = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_tensor_create_shaped(&world.memory.base, v->dtype, v->shape,
                                      &t, &err),
            &err);
  for (int64_t i = 0; i < weir_shape_elements(v->shape); i++) {
    seed = seed * 1664525u + 1013904223u;
    weir_tensor_set_f64(t, i, ((int)(seed >> 16) % 129 - 64) / 64.0);
  }
  return t;
}

/* Which group kernels a program has; with reference kernels only, none. */
static void note_kernels(weir_binding *binding, bool ref) {
  static sink s;
  s.used = 0;
  weir_writer writer = {&s, keep};
  assert_true(weir_binding_describe(binding, &writer));
  for (size_t i = 0; i < weir_builtin_group_kernel_count; i++) {
    if (strstr(s.text, weir_builtin_group_kernels[i]->name) == NULL) continue;
    if (ref) fail_msg("a group kernel beside ref: %s", s.text);
    seen[i] = true;
  }
}

/* Runs on |pool|; the outputs go to |out|. */
static void run(point *p, weir_pool *pool, bool ref, weir_tensor **out) {
  weir_error err = WEIR_ERROR_INIT;
  weir_exec_session *session = NULL;
  weir_session_options options = {.ref_kernels = ref};
  weir_exec_feed feeds[INPUTS];
  weir_exec_fetch fetches[2] = {{0}};
  weir_binding *binding = NULL;
  for (uint32_t i = 0; i < p->graph->input_count; i++)
    feeds[i] = (weir_exec_feed){p->graph->inputs[i].value, p->in[i]};
  for (uint32_t i = 0; i < p->graph->output_count; i++)
    fetches[i].value = p->graph->outputs[i].value;
  weir_exec_request request = {.feeds = feeds,
                               .feed_count = p->graph->input_count,
                               .fetches = fetches,
                               .fetch_count = p->graph->output_count};
  assert_ok(weir_exec_session_create(&world.env, pool, p->graph, &options,
                                     &session, &err),
            &err);
  assert_ok(weir_exec_bind(session, &request, &binding, &err), &err);
  note_kernels(binding, ref);
  assert_ok(weir_binding_run(binding, NULL, &err), &err);
  for (uint32_t i = 0; i < p->graph->output_count; i++)
    out[i] = fetches[i].tensor;
  weir_binding_release(binding);
  weir_exec_session_release(session);
}

static test_profiles profiles;

static const char *profile_text(void) {
  static char text[WEIR_PROFILE_TEXT];
  return weir_profile_text(world.env.profile, text);
}

/* |got| is |want| but for the order of sums, of at most some dozen terms. */
static void check_near(const point *p, const weir_tensor *got,
                       const weir_tensor *want, const char *where) {
  assert_int_equal(got->bytes, want->bytes);
  for (int64_t i = 0; i < weir_shape_elements(&got->shape); i++) {
    double g = weir_tensor_get_f64(got, i), w = weir_tensor_get_f64(want, i);
    if (!(fabs(g - w) <= 2e-5 * (1 + fabs(w))))
      fail_msg("%s, %s: element %lld is %.9g, want %.9g, of\n%s", where,
               profile_text(), (long long)i, g, w, p->text);
  }
}

static void check_same(const point *p, const weir_tensor *a,
                       const weir_tensor *b) {
  if (memcmp(a->data, b->data, a->bytes) != 0)
    fail_msg("two threads give other bits, %s, of\n%s", profile_text(),
             p->text);
}

static void release(weir_tensor **tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    weir_tensor_unref(tensors[i]);
    tensors[i] = NULL;
  }
}

static void check_point(point *p) {
  weir_error err = WEIR_ERROR_INIT;
  weir_load_options options = {.registry = weir_builtin_registry()};
  write_text(p);
  assert_ok(weir_graph_load_text(&world.env, weir_sv_from(p->text), "point",
                                 &options, &p->graph, &err),
            &err);
  uint32_t ins = p->graph->input_count, outs = p->graph->output_count;
  for (uint32_t i = 0; i < ins; i++)
    p->in[i] = numbers(&p->graph->values[p->graph->inputs[i].value], i + 1);
  run(p, pools[0], true, p->want);
  for (int k = 0; k < profiles.count; k++) {
    weir_tensor *one[2] = {NULL}, *two[2] = {NULL};
    world.env.profile = profiles.list[k];
    run(p, pools[0], false, one);
    run(p, pools[1], false, two);
    for (uint32_t i = 0; i < outs; i++) {
      check_near(p, one[i], p->want[i], "fused");
      check_same(p, one[i], two[i]);
    }
    release(one, outs);
    release(two, outs);
  }
  release(p->in, ins);
  release(p->want, outs);
  weir_graph_unref(p->graph);
}

/* To the next combination, the last axis first. */
static bool next(point *p) {
  for (int i = AXES; i-- > 0;) {
    const axis *a = &p->grid->axes[i];
    if (a->name == 0) continue;
    if (a->values[++p->at[i]] >= 0) return true;
    p->at[i] = 0;
  }
  return false;
}

static void groups_are_what_ref_is(void **state) {
  (void)state;
  exec_world_init(&world);
  for (int i = 0; i < 2; i++) pools[i] = exec_pool(&world, i + 1);
  for (int g = 0; g < GRIDS; g++) {
    static point p;
    p = (point){.grid = &kGrids[g]};
    do check_point(&p);
    while (next(&p));
  }
  for (int i = 0; i < 2; i++) weir_pool_release(pools[i]);
  exec_world_check_empty(&world);
}

static void every_group_kernel_was_reached(void **state) {
  (void)state;
  for (size_t i = 0; i < weir_builtin_group_kernel_count; i++)
    if (weir_builtin_group_kernels[i]->device == WEIR_CPU && !seen[i])
      fail_msg("no grid reaches %s", weir_builtin_group_kernels[i]->name);
}

int main(void) {
  if (!test_profiles_find(&profiles)) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(groups_are_what_ref_is),
      cmocka_unit_test(every_group_kernel_was_reached)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
