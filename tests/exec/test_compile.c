/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "runtime/exec/session/binding.h"
#include "tests/exec/maker.h"

/* The compiler's choices, read from the description of a binding. */

typedef struct text {
  char data[16384];
  size_t size;
} text;

static bool text_write(void *self, const char *data, size_t size) {
  text *t = self;
  if (t->size + size >= sizeof t->data) return true; /* the start will do */
  memcpy(t->data + t->size, data, size);
  t->size += size;
  t->data[t->size] = 0;
  return true;
}

typedef struct result {
  text about;
  weir_program_stats stats;
  weir_tensor *out;
} result;

/* Runs |y| of |g| with |x| fed, under |options|. */
static result run(exec_world *world, weir_pool *pool, const weir_graph *g,
                  weir_value_id x, weir_tensor *in, weir_value_id y,
                  const weir_session_options *options) {
  result r = {0};
  weir_error err = WEIR_ERROR_INIT;
  weir_exec_session *session = NULL;
  weir_binding *binding = NULL;
  weir_exec_feed feed = {x, in};
  weir_exec_fetch fetch = {.value = y};
  assert_ok(
      weir_exec_session_create(&world->env, pool, g, options, &session, &err),
      &err);
  weir_exec_request request = {.feeds = &feed,
                               .feed_count = in != NULL ? 1 : 0,
                               .fetches = &fetch,
                               .fetch_count = 1};
  assert_ok(weir_exec_bind(session, &request, &binding, &err), &err);
  for (int i = 0; i < 3; i++)
    assert_ok(weir_binding_run(binding, NULL, &err), &err);
  weir_writer out = {&r.about, text_write};
  assert_true(weir_binding_describe(binding, &out));
  r.stats = weir_binding_stats(binding);
  r.out = fetch.tensor;
  weir_binding_release(binding);
  weir_exec_session_release(session);
  return r;
}

static void assert_close(const weir_tensor *a, const weir_tensor *b) {
  int64_t n = weir_shape_elements(&a->shape);
  assert_int_equal(n, weir_shape_elements(&b->shape));
  for (int64_t i = 0; i < n; i++) {
    double x = weir_tensor_get_f64(a, i), y = weir_tensor_get_f64(b, i);
    if (fabs(x - y) > 1e-4 * (1 + fabs(y)))
      fail_msg("element %d: %g and %g", (int)i, x, y);
  }
}

static void fill(weir_tensor *t, int seed) {
  int64_t n = weir_shape_elements(&t->shape);
  for (int64_t i = 0; i < n; i++)
    weir_tensor_set_f64(t, i, (double)((i * 37 + seed) % 19) / 19 - 0.5);
}

static weir_value_id weights(maker *m, const char *name, uint32_t rank,
                             const weir_dim *dims, int seed) {
  static float values[4096];
  for (int i = 0; i < 4096; i++)
    values[i] = (float)((i * 31 + seed) % 17) / 17 - 0.5f;
  return constant(m, name, rank, dims, values);
}

/* conv, relu, conv, relu with 20 images: the value between them is N16. */
static void layouts_agree(void **state) {
  (void)state;
  exec_world world;
  exec_world_init(&world);
  weir_pool *pool = exec_pool(&world, 2);
  maker m;
  begin(&m, &world.memory.base);
  static const weir_dim kX[] = {{20, 0, 0}, {2, 0, 0}, {12, 0, 0}, {12, 0, 0}};
  static const weir_dim kW1[] = {{6, 0, 0}, {2, 0, 0}, {5, 0, 0}, {5, 0, 0}};
  static const weir_dim kW2[] = {{4, 0, 0}, {6, 0, 0}, {3, 0, 0}, {3, 0, 0}};
  weir_value_id x = input(&m, "x", WEIR_F32, 4, kX, WEIR_NO_VALUE);
  weir_value_id w1 = weights(&m, "w1", 4, kW1, 1);
  weir_value_id w2 = weights(&m, "w2", 4, kW2, 5);
  weir_value_id a = NODE(&m, "a", "conv2d", x, w1);
  weir_value_id b = NODE(&m, "b", "relu", a);
  weir_value_id c = NODE(&m, "c", "conv2d", b, w2);
  weir_value_id y = NODE(&m, "y", "relu", c);
  weir_graph *g = finish(&m);
  weir_tensor *in =
      f32_tensor(&world.memory.base, 4, (int64_t[]){20, 2, 12, 12}, NULL);
  fill(in, 3);
  const weir_session_options all[] = {{.ref_kernels = true, .no_fusion = true},
                                      {.no_layout = true},
                                      {.no_fusion = true},
                                      {.no_fold = true}};
  result ref = run(&world, pool, g, x, in, y, &all[0]);
  result best = run(&world, pool, g, x, in, y, NULL);
  assert_close(best.out, ref.out);
  if (strstr(best.about.data, "cpu.conv2d.direct") != NULL)
    assert_non_null(strstr(best.about.data, "n16"));
  for (int i = 1; i < 4; i++) {
    result r = run(&world, pool, g, x, in, y, &all[i]);
    assert_close(r.out, ref.out);
    if (i == 1) assert_null(strstr(r.about.data, "n16"));
    weir_tensor_unref(r.out);
  }
  weir_tensor_unref(ref.out);
  weir_tensor_unref(best.out);
  weir_tensor_unref(in);
  weir_graph_unref(g);
  weir_pool_release(pool);
  exec_world_check_empty(&world);
}

/* c + c is computed once; with an input's default only unless no_fold. */
static void constants_fold(void **state) {
  (void)state;
  static const weir_dim k2[] = {{2, 0, 0}};
  exec_world world;
  exec_world_init(&world);
  weir_pool *pool = exec_pool(&world, 1);
  maker m;
  begin(&m, &world.memory.base);
  weir_value_id c = constant(&m, "c", 1, k2, (float[]){1, 2});
  weir_value_id x = input(&m, "x", WEIR_F32, 1, k2, c);
  weir_value_id d = NODE(&m, "d", "add", c, c);
  weir_value_id e = NODE(&m, "e", "mul", d, x);
  weir_value_id y = NODE(&m, "y", "neg", e);
  weir_graph *g = finish(&m);
  weir_session_options keep = {.no_fold = true, .no_fusion = true};
  result folded = run(&world, pool, g, x, NULL, y, NULL);
  result kept = run(&world, pool, g, x, NULL, y, &keep);
  assert_close(folded.out, kept.out);
  assert_true(((float *)kept.out->data)[1] == -8);
  assert_int_equal(folded.stats.instructions, 1); /* the copy out */
  assert_int_equal(kept.stats.instructions, 2);   /* mul and neg */
  weir_tensor_unref(folded.out);
  weir_tensor_unref(kept.out);
  weir_graph_unref(g);
  weir_pool_release(pool);
  exec_world_check_empty(&world);
}

/* A chain of a thousand large nodes lives in the memory of few. */
static void long_chains_use_little_memory(void **state) {
  (void)state;
  static char names[1000][8];
  static const weir_dim kBig[] = {{16, 0, 0}, {1024, 0, 0}};
  exec_world world;
  exec_world_init(&world);
  weir_pool *pool = exec_pool(&world, 2);
  maker m;
  begin(&m, &world.memory.base);
  weir_value_id x = input(&m, "x", WEIR_F32, 2, kBig, WEIR_NO_VALUE), y = x;
  for (int i = 0; i < 1000; i++) {
    snprintf(names[i], sizeof names[i], "n%d", i % 1000);
    y = NODE(&m, names[i], i % 2 ? "neg" : "relu", y);
  }
  weir_graph *g = finish(&m);
  weir_tensor *in =
      f32_tensor(&world.memory.base, 2, (int64_t[]){16, 1024}, NULL);
  fill(in, 1);
  weir_session_options options = {.no_fusion = true};
  result r = run(&world, pool, g, x, in, y, &options);
  assert_true(r.stats.arena_bytes <= 2 * in->bytes);
  assert_true(r.stats.arena_bound_bytes <= r.stats.arena_bytes);
  weir_tensor_unref(r.out);
  weir_tensor_unref(in);
  weir_graph_unref(g);
  weir_pool_release(pool);
  exec_world_check_empty(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layouts_agree),
      cmocka_unit_test(constants_fold),
      cmocka_unit_test(long_chains_use_little_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
