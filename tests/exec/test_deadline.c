/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/ref/ref.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/frame.h"
#include "runtime/exec/run/run.h"
#include "tests/exec/support.h"

/* A deadline inside a kernel: its blocks are left out, and nobody reads its
 * output. Once a run begins, the clock goes on by one at each look, so that no
 * test waits. */

typedef struct slow_clock {
  atomic_llong now;
  atomic_bool runs;
} slow_clock;

static int64_t count_looks(void *self) {
  slow_clock *clock = self;
  return atomic_fetch_add(&clock->now, atomic_load(&clock->runs)) + 1;
}

static atomic_llong blocks_done, runs_done;

static void count_block(void *arg, int64_t block, int worker) {
  (void)block, (void)worker;
  atomic_fetch_add((atomic_llong *)arg, 1);
}

static weir_status copy_run(const weir_args *args) {
  *(int32_t *)args->io[1] = *(const int32_t *)args->io[0];
  return WEIR_OK;
}

/* A kernel of one long loop, which asks; one of many blocks; and one that
 * counts its runs. */
static weir_status loop_run(const weir_args *args) {
  for (int i = 0; i < 100000 && !weir_run_over(args); i++)
    count_block(&blocks_done, i, 0);
  return copy_run(args);
}

static weir_status blocks_run(const weir_args *args) {
  weir_parallel_for(args, 100000, count_block, &blocks_done);
  return copy_run(args);
}

static weir_status counted_run(const weir_args *args) {
  atomic_fetch_add(&runs_done, 1);
  return copy_run(args);
}

static uint32_t value(weir_program_builder *b, weir_storage storage,
                      uint32_t external) {
  weir_value_spec spec = {
      .storage = storage, .external = external, .bytes = 4, .dtype = WEIR_I32};
  return weir_program_add_value(b, &spec);
}

static void add(weir_program_builder *b, weir_run_fn run, uint32_t x,
                uint32_t y, int64_t cost_ns) {
  weir_instr_spec spec = {.kind = WEIR_INSTR_KERNEL,
                          .in = &x,
                          .out = &y,
                          .in_count = 1,
                          .out_count = 1,
                          .run = run,
                          .cost_ns = cost_ns,
                          .node = weir_sv_from("node")};
  weir_program_add_instr(b, &spec);
}

/* |first| and one that counts its runs, estimated at |cost_ns| each. */
static weir_program *two_kernels(exec_world *world, weir_run_fn first,
                                 int64_t cost_ns) {
  weir_error err = WEIR_ERROR_INIT;
  weir_program_builder *b = NULL;
  weir_program *program = NULL;
  weir_program_options options = {.threads = 2};
  assert_ok(weir_program_builder_create(&world->env, NULL, &b, &err), &err);
  uint32_t x = value(b, WEIR_STORAGE_EXTERNAL, 0);
  uint32_t y = value(b, WEIR_STORAGE_TEMP, 0);
  uint32_t z = value(b, WEIR_STORAGE_EXTERNAL, 1);
  add(b, first, x, y, cost_ns);
  add(b, counted_run, y, z, cost_ns);
  weir_program_add_fetch(b, z);
  assert_ok(weir_program_finish(b, &options, &program, &err), &err);
  weir_program_builder_release(b);
  return program;
}

/* The status of a run whose deadline is the 50th look. */
static weir_status run_timed(int threads, weir_run_fn first, int64_t cost_ns) {
  exec_world world;
  weir_error err = WEIR_ERROR_INIT;
  slow_clock clock;
  exec_world_init(&world);
  atomic_init(&clock.now, 0);
  atomic_init(&clock.runs, false);
  world.clock =
      (weir_clock){&clock, count_looks}; /* before a thread reads it */
  weir_pool *pool = exec_pool(&world, threads);
  weir_program *program = two_kernels(&world, first, cost_ns);
  weir_frame *frame = NULL;
  assert_ok(weir_frame_create(program, &frame, &err), &err);
  int32_t in = 1, out = 0;
  weir_frame_set_external(frame, 0, &in);
  weir_frame_set_external(frame, 1, &out);
  atomic_store(&blocks_done, 0);
  atomic_store(&runs_done, 0);
  weir_run_options options = {.deadline_ns = 50};
  atomic_store(&clock.runs, true);
  weir_status s = weir_frame_run(frame, pool, &options, &err);
  if (s != WEIR_OK) {
    assert_string_equal(err.id, "W5006");
    assert_int_equal(weir_frame_fetch_status(frame, 0, &err), s);
  }
  weir_frame_release(frame);
  weir_program_release(program);
  weir_pool_release(pool);
  exec_world_check_empty(&world);
  return s;
}

static weir_run_fn const kernels[] = {blocks_run, loop_run};

static void test_long_kernels_are_cut(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    assert_int_equal(run_timed(1 + i % 2, kernels[i / 2], 1000000000),
                     WEIR_DEADLINE_EXCEEDED);
    assert_true(atomic_load(&blocks_done) < 60);
    assert_int_equal(atomic_load(&runs_done), 0);
  }
}

/* Work that is short by its estimate is not worth the looks. One thread: idle
 * ones look at the clock as well. */
static void test_short_kernels_are_not(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(run_timed(1, kernels[i], 100), WEIR_OK);
    assert_int_equal(atomic_load(&blocks_done), 100000);
    assert_int_equal(atomic_load(&runs_done), 1);
  }
}

/* ---- Loops of reference kernels, over 100,000 elements: some looks, few, and
 * the end at the look that says so. */

typedef struct looker {
  int looks, late_at;
} looker;

static bool look(void *self) {
  looker *l = self;
  return ++l->looks == l->late_at;
}

enum { ELEMENTS = 100000, ROW = 100 };

static int64_t loop_elements(const weir_args *args) {
  int64_t i = 0;
  while (i < ELEMENTS && !weir_ref_over(args, i)) i++;
  return i;
}

static int64_t loop_walk(const weir_args *args) {
  weir_iter it;
  weir_iter_init(&it, 1, (int64_t[]){ELEMENTS});
  while (weir_iter_more(&it, args)) weir_iter_next(&it);
  return ELEMENTS - it.left;
}

static int64_t loop_rows(const weir_args *args) {
  weir_ref_watch watch = {args, 0};
  int64_t i = 0;
  while (i < ELEMENTS && !weir_ref_late(&watch, ROW)) i += ROW;
  return i;
}

static void test_reference_loops_look(void **state) {
  static int64_t (*const loops[])(const weir_args *) = {loop_elements,
                                                        loop_walk, loop_rows};
  (void)state;
  for (int k = 0; k < 3; k++) {
    looker l = {0};
    weir_run_ctx ctx = {.self = &l, .over = look};
    weir_args args = {.ctx = &ctx};
    assert_int_equal(loops[k](&args), ELEMENTS);
    assert_in_range(l.looks, 20, 30);
    l = (looker){.late_at = 3};
    assert_in_range(loops[k](&args), 1, 3 * WEIR_LOOK_EVERY);
    assert_int_equal(l.looks, 3);
    ctx.over = NULL;
    assert_int_equal(loops[k](&args), ELEMENTS);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reference_loops_look),
      cmocka_unit_test(test_long_kernels_are_cut),
      cmocka_unit_test(test_short_kernels_are_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
