/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/exec/channel/channel_local.h"
#include "runtime/exec/channel/channel_null.h"
#include "runtime/exec/program/instr_comm.h"
#include "runtime/exec/program/instr_control.h"
#include "runtime/exec/program/instr_loop.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/frame.h"
#include "runtime/exec/run/run.h"
#include "tests/exec/support.h"

/* Programs put together by hand: every kind of instruction, failures, order. */

typedef struct hand {
  exec_world world;
  weir_pool *pool;
  weir_program_builder *b;
  weir_program *program;
  weir_frame *frame;
  weir_error err;
} hand;

static void open_hand(hand *h, int threads) {
  memset(h, 0, sizeof *h);
  h->err.struct_size = sizeof h->err;
  exec_world_init(&h->world);
  h->pool = exec_pool(&h->world, threads);
  assert_ok(weir_program_builder_create(&h->world.env, NULL, &h->b, &h->err),
            &h->err);
}

static void finish_hand(hand *h) {
  weir_program_options options = {.threads = weir_pool_threads(h->pool)};
  assert_ok(weir_program_finish(h->b, &options, &h->program, &h->err), &h->err);
  weir_program_builder_release(h->b);
  h->b = NULL;
  assert_ok(weir_frame_create(h->program, &h->frame, &h->err), &h->err);
}

static void close_hand(hand *h) {
  weir_frame_release(h->frame);
  weir_program_release(h->program);
  weir_pool_release(h->pool);
  exec_world_check_empty(&h->world);
}

static uint32_t i32_value(weir_program_builder *b, weir_storage storage,
                          uint32_t external) {
  weir_value_spec spec = {
      .storage = storage, .external = external, .bytes = 4, .dtype = WEIR_I32};
  return weir_program_add_value(b, &spec);
}

static uint32_t i64_value(weir_program_builder *b, weir_storage storage,
                          uint32_t external) {
  weir_value_spec spec = {
      .storage = storage, .external = external, .bytes = 8, .dtype = WEIR_I64};
  return weir_program_add_value(b, &spec);
}

static weir_status add_run(const weir_args *args) {
  *(uint32_t *)args->io[2] =
      *(const uint32_t *)args->io[0] + *(const uint32_t *)args->io[1];
  return WEIR_OK;
}

static weir_status less_run(const weir_args *args) {
  *(uint8_t *)args->io[2] =
      *(const int32_t *)args->io[0] < *(const int32_t *)args->io[1];
  return WEIR_OK;
}

static weir_status fail_run(const weir_args *args) {
  return weir_fail(args->err, WEIR_W5008, NULL, "told to");
}

static uint32_t add(weir_program_builder *b, weir_run_fn run, uint32_t x,
                    uint32_t y, uint32_t z, int64_t cost_ns) {
  weir_instr_spec spec = {.kind = WEIR_INSTR_KERNEL,
                          .in = (uint32_t[]){x, y},
                          .out = &z,
                          .in_count = 2,
                          .out_count = 1,
                          .run = run,
                          .in_place = true,
                          .cost_ns = cost_ns,
                          .node = weir_sv_from("node")};
  return weir_program_add_instr(b, &spec);
}

/* Externals x, y -> z = x + y. */
static const weir_program *small_program(hand *h, weir_run_fn run,
                                         size_t out_bytes) {
  weir_program_builder *b = NULL;
  weir_program *p = NULL;
  assert_ok(weir_program_builder_create(&h->world.env, NULL, &b, &h->err),
            &h->err);
  uint32_t x = i32_value(b, WEIR_STORAGE_EXTERNAL, 0);
  uint32_t y = i32_value(b, WEIR_STORAGE_EXTERNAL, 1);
  weir_value_spec out = {.storage = WEIR_STORAGE_EXTERNAL,
                         .external = 2,
                         .bytes = out_bytes,
                         .dtype = out_bytes == 1 ? WEIR_BOOL : WEIR_I32};
  add(b, run, x, y, weir_program_add_value(b, &out), 10);
  weir_program_options options = {.threads = 2};
  assert_ok(weir_program_finish(b, &options, &p, &h->err), &h->err);
  weir_program_builder_release(b);
  return p;
}

static void copies_of_every_kind(void **state) {
  (void)state;
  const weir_instr_kind kinds[] = {WEIR_INSTR_FEED, WEIR_INSTR_VAR_READ,
                                   WEIR_INSTR_COPY, WEIR_INSTR_VAR_COMMIT,
                                   WEIR_INSTR_FETCH};
  hand h;
  open_hand(&h, 1);
  uint32_t at = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 0);
  for (int i = 0; i < 5; i++) {
    uint32_t to =
        i32_value(h.b, i == 4 ? WEIR_STORAGE_EXTERNAL : WEIR_STORAGE_TEMP, 1);
    weir_instr_spec spec = {
        .in = &at, .out = &to, .in_count = 1, .out_count = 1};
    assert_int_equal(weir_instr_copy(h.b, kinds[i], 4, &spec), WEIR_OK);
    assert_int_equal(spec.kind, kinds[i]);
    weir_program_add_instr(h.b, &spec);
    at = to;
  }
  finish_hand(&h);
  int32_t x = 42, y = 0;
  weir_frame_set_external(h.frame, 0, &x);
  weir_frame_set_external(h.frame, 1, &y);
  assert_ok(weir_frame_run(h.frame, h.pool, NULL, &h.err), &h.err);
  assert_int_equal(y, 42);
  close_hand(&h);
}

static weir_status first_run(const weir_args *args) {
  *(int32_t *)args->io[2] = *(const int32_t *)args->io[0];
  return WEIR_OK;
}

static void branch_takes_one_body(void **state) {
  (void)state;
  hand h;
  open_hand(&h, 1);
  const weir_program *bodies[] = {small_program(&h, add_run, 4),
                                  small_program(&h, first_run, 4)};
  uint32_t which = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 3);
  uint32_t x = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 0);
  uint32_t y = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 1);
  uint32_t z = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 2);
  weir_instr_spec spec = {.in = (uint32_t[]){which, x, y},
                          .out = &z,
                          .in_count = 3,
                          .out_count = 1,
                          .bodies = bodies,
                          .body_count = 2};
  assert_int_equal(weir_instr_branch(h.b, WEIR_I32, &spec), WEIR_OK);
  weir_program_add_instr(h.b, &spec);
  finish_hand(&h);
  int32_t a = 3, b = 4, c = 0, sel = 0;
  weir_frame_set_external(h.frame, 0, &a);
  weir_frame_set_external(h.frame, 1, &b);
  weir_frame_set_external(h.frame, 2, &c);
  weir_frame_set_external(h.frame, 3, &sel);
  assert_ok(weir_frame_run(h.frame, h.pool, NULL, &h.err), &h.err);
  assert_int_equal(c, 7);
  sel = 1;
  assert_ok(weir_frame_run(h.frame, h.pool, NULL, &h.err), &h.err);
  assert_int_equal(c, 3);
  sel = 2;
  assert_error(weir_frame_run(h.frame, h.pool, NULL, &h.err), &h.err, "W5008");
  close_hand(&h);
}

/* i = 0; while i < n: i = i + step. */
static void loop_carries_values(void **state) {
  (void)state;
  hand h;
  open_hand(&h, 1);
  const size_t bytes[] = {4};
  /* Both bodies: carried value, captured one -> result. */
  const weir_program *bodies[] = {small_program(&h, less_run, 1),
                                  small_program(&h, add_run, 4)};
  uint32_t start = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 0);
  uint32_t n = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 1);
  uint32_t end = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 2);
  uint32_t turns = i64_value(h.b, WEIR_STORAGE_EXTERNAL, 3);
  weir_instr_spec spec = {.in = (uint32_t[]){start, n},
                          .out = (uint32_t[]){end, turns},
                          .in_count = 2,
                          .out_count = 2,
                          .bodies = bodies,
                          .body_count = 2};
  const weir_loop_spec loop = {.carried = 1,
                               .captured = 1,
                               .carried_bytes = bytes,
                               .length = 5,
                               .conditional = true};
  assert_int_equal(weir_instr_loop(h.b, &loop, &spec), WEIR_OK);
  weir_program_add_instr(h.b, &spec);
  finish_hand(&h);
  int32_t from = 1, until = 8, result = 0;
  int64_t made = -1;
  weir_frame_set_external(h.frame, 3, &made);
  weir_frame_set_external(h.frame, 0, &from);
  weir_frame_set_external(h.frame, 1, &until);
  weir_frame_set_external(h.frame, 2, &result);
  assert_ok(weir_frame_run(h.frame, h.pool, NULL, &h.err), &h.err);
  assert_int_equal(result, 9); /* 1 -> 9, then 9 < 8 is false */
  assert_int_equal(made, 1);
  until = 0;
  assert_ok(weir_frame_run(h.frame, h.pool, NULL, &h.err), &h.err);
  assert_int_equal(result, 1);
  from = -100; /* the limit of five turns */
  until = 1;
  assert_ok(weir_frame_run(h.frame, h.pool, NULL, &h.err), &h.err);
  assert_int_equal(result, -95);
  assert_int_equal(made, 5);
  close_hand(&h);
}

/* The receiver stands first: one thread must run both ends. */
static void both_ends_of_a_channel(int threads) {
  hand h;
  open_hand(&h, threads);
  weir_channel *channel = NULL;
  assert_ok(weir_channel_local_create(&h.world.env, 2, &channel, &h.err),
            &h.err);
  uint32_t x = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 0);
  uint32_t got = i32_value(h.b, WEIR_STORAGE_TEMP, 0);
  uint32_t sum = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 1);
  weir_instr_spec recv = {.out = &got, .out_count = 1};
  weir_instr_spec send = {.in = &x, .in_count = 1};
  assert_int_equal(weir_instr_recv(h.b, channel, false, 7, 4, &recv), WEIR_OK);
  assert_int_equal(weir_instr_send(h.b, channel, false, 7, 4, &send), WEIR_OK);
  weir_program_add_instr(h.b, &recv);
  weir_program_add_instr(h.b, &send);
  add(h.b, add_run, got, x, sum, 10);
  finish_hand(&h);
  int32_t a = 21, c = 0;
  weir_frame_set_external(h.frame, 0, &a);
  weir_frame_set_external(h.frame, 1, &c);
  for (uint64_t step = 0; step < 50; step++) {
    weir_run_options options = {.step = step, .channel_step = step};
    a = (int32_t)step;
    assert_ok(weir_frame_run(h.frame, h.pool, &options, &h.err), &h.err);
    assert_int_equal(c, 2 * a);
  }
  weir_channel_release(channel);
  close_hand(&h);
}

static void send_and_receive(void **state) {
  (void)state;
  both_ends_of_a_channel(1);
  both_ends_of_a_channel(2);
}

/* Two ranks of an all-reduce in one program; and a channel without peers. */
static void collective_sums(void **state) {
  (void)state;
  hand h;
  open_hand(&h, 1);
  weir_channel *channel = NULL;
  assert_ok(weir_channel_local_create(&h.world.env, 2, &channel, &h.err),
            &h.err);
  for (uint32_t rank = 0; rank < 2; rank++) {
    uint32_t x = i32_value(h.b, WEIR_STORAGE_EXTERNAL, rank);
    uint32_t y = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 2 + rank);
    weir_collective part = {.kind = WEIR_ALL_REDUCE,
                            .dtype = WEIR_I32,
                            .rank = rank,
                            .ranks = 2,
                            .count = 1};
    weir_instr_spec spec = {.in = &x, .out = &y, .in_count = 1, .out_count = 1};
    assert_int_equal(weir_instr_collective(h.b, channel, false, &part, &spec),
                     WEIR_OK);
    weir_program_add_instr(h.b, &spec);
  }
  finish_hand(&h);
  int32_t x[2] = {5, 6}, y[2] = {0, 0};
  for (uint32_t i = 0; i < 2; i++) {
    weir_frame_set_external(h.frame, i, &x[i]);
    weir_frame_set_external(h.frame, 2 + i, &y[i]);
  }
  assert_ok(weir_frame_run(h.frame, h.pool, NULL, &h.err), &h.err);
  assert_int_equal(y[0], 11);
  assert_int_equal(y[1], 11);
  weir_channel_release(channel);
  close_hand(&h);
}

static void null_channel_fails_the_run(void **state) {
  (void)state;
  hand h;
  open_hand(&h, 2);
  uint32_t got = i32_value(h.b, WEIR_STORAGE_TEMP, 0);
  uint32_t x = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 0);
  uint32_t bad = i32_value(h.b, WEIR_STORAGE_TEMP, 0);
  uint32_t good = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 1);
  weir_instr_spec recv = {
      .out = &got, .out_count = 1, .node = weir_sv_from("recv")};
  assert_int_equal(
      weir_instr_recv(h.b, weir_channel_null(), false, 7, 4, &recv), WEIR_OK);
  weir_program_add_instr(h.b, &recv);
  add(h.b, add_run, got, x, bad, 10);
  add(h.b, add_run, x, x, good, 10);
  weir_program_add_fetch(h.b, bad);
  weir_program_add_fetch(h.b, good);
  finish_hand(&h);
  int32_t a = 4, c = 0;
  weir_frame_set_external(h.frame, 0, &a);
  weir_frame_set_external(h.frame, 1, &c);
  for (int i = 0; i < 3; i++) {
    assert_error(weir_frame_run(h.frame, h.pool, NULL, &h.err), &h.err,
                 "W7001");
    assert_string_equal(h.err.node, "recv");
    assert_int_not_equal(weir_frame_fetch_status(h.frame, 0, NULL), WEIR_OK);
    assert_int_equal(weir_frame_fetch_status(h.frame, 1, NULL), WEIR_OK);
    assert_int_equal(c, 8);
  }
  close_hand(&h);
}

/* Costly nodes in a diamond lattice: many tasks, memory used again. */
enum { kLayers = 40, kWidth = 6 };

static void tasks_keep_order_and_memory(void **state) {
  (void)state;
  hand h;
  open_hand(&h, 3);
  uint32_t row[kWidth], next[kWidth];
  for (uint32_t i = 0; i < kWidth; i++)
    row[i] = i32_value(h.b, WEIR_STORAGE_EXTERNAL, i);
  for (int l = 0; l < kLayers; l++) {
    for (uint32_t i = 0; i < kWidth; i++) {
      next[i] = i32_value(h.b, WEIR_STORAGE_TEMP, 0);
      add(h.b, add_run, row[i], row[(i + 1) % kWidth], next[i],
          i % 2 == 0 ? 20000 : 100);
    }
    memcpy(row, next, sizeof row);
  }
  for (uint32_t i = 0; i < kWidth; i++)
    weir_program_set_external(h.b, row[i], kWidth + i);
  finish_hand(&h);
  assert_true(h.program->task_count > kLayers);
  assert_true(h.program->memory_bytes < 64 * kWidth * kLayers / 4);
  int32_t x[kWidth], y[kWidth];
  for (uint32_t i = 0; i < kWidth; i++) {
    weir_frame_set_external(h.frame, i, &x[i]);
    weir_frame_set_external(h.frame, kWidth + i, &y[i]);
  }
  for (int run = 0; run < 200; run++) {
    uint32_t want[kWidth], old[kWidth];
    for (uint32_t i = 0; i < kWidth; i++)
      want[i] = (uint32_t)(x[i] = (int32_t)i + run);
    for (int l = 0; l < kLayers; l++) {
      memcpy(old, want, sizeof old);
      for (uint32_t i = 0; i < kWidth; i++)
        want[i] = old[i] + old[(i + 1) % kWidth];
    }
    assert_ok(weir_frame_run(h.frame, h.pool, NULL, &h.err), &h.err);
    for (uint32_t i = 0; i < kWidth; i++)
      assert_int_equal((uint32_t)y[i], want[i]);
  }
  close_hand(&h);
}

static void first_failure_in_node_order_is_told(void **state) {
  (void)state;
  hand h;
  open_hand(&h, 2);
  uint32_t x = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 0);
  for (uint32_t i = 0; i < 6; i++) {
    uint32_t y = i32_value(h.b, WEIR_STORAGE_TEMP, 0);
    uint32_t in[] = {x, x};
    weir_instr_spec spec = {.in = in,
                            .out = &y,
                            .in_count = 2,
                            .out_count = 1,
                            .run = fail_run,
                            .cost_ns = 50000,
                            .node_order = 10 - i,
                            .node = weir_sv_from(i == 5 ? "first" : "later")};
    weir_program_add_instr(h.b, &spec);
  }
  finish_hand(&h);
  int32_t a = 1;
  weir_frame_set_external(h.frame, 0, &a);
  for (int run = 0; run < 20; run++) {
    assert_error(weir_frame_run(h.frame, h.pool, NULL, &h.err), &h.err,
                 "W5008");
    assert_string_equal(h.err.node, "first");
  }
  close_hand(&h);
}

/* r is received while the reader of a runs: not in a's memory, where it would
 * wait for that; else it may be there. */
static void received_memory_is_free_when_it_comes(void **state) {
  (void)state;
  for (uint32_t from = 0; from <= 2; from += 2) {
    hand h;
    open_hand(&h, 1);
    uint32_t x = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 0);
    uint32_t z = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 1);
    uint32_t a = i32_value(h.b, WEIR_STORAGE_TEMP, 0);
    uint32_t b = i32_value(h.b, WEIR_STORAGE_TEMP, 0);
    uint32_t r = i32_value(h.b, WEIR_STORAGE_TEMP, 0);
    add(h.b, add_run, x, x, a, 10);
    add(h.b, add_run, x, a, b, 10);
    weir_instr_spec recv = {.out = &r, .out_count = 1, .room_from = from};
    assert_int_equal(
        weir_instr_recv(h.b, weir_channel_null(), false, 7, 4, &recv), WEIR_OK);
    weir_program_add_instr(h.b, &recv);
    add(h.b, add_run, b, r, z, 10);
    weir_program_options options = {.threads = 1, .stream = true};
    assert_ok(weir_program_finish(h.b, &options, &h.program, &h.err), &h.err);
    weir_program_builder_release(h.b);
    const weir_pvalue *v = h.program->values;
    assert_int_equal(v[r].offset == v[a].offset, from == 0);
    assert_int_not_equal(v[r].offset, v[b].offset);
    close_hand(&h);
  }
}

static void too_many_sends_are_refused(void **state) {
  (void)state;
  hand h;
  open_hand(&h, 2);
  weir_channel *channel = weir_channel_null();
  uint32_t x = i32_value(h.b, WEIR_STORAGE_EXTERNAL, 0);
  for (uint32_t i = 0; i < 5000; i++) {
    weir_instr_spec send = {.in = &x, .in_count = 1};
    assert_int_equal(weir_instr_send(h.b, channel, false, i, 4, &send),
                     WEIR_OK);
    weir_program_add_instr(h.b, &send);
  }
  weir_program_options options = {.threads = 2};
  assert_error(weir_program_finish(h.b, &options, &h.program, &h.err), &h.err,
               "W6003");
  weir_program_builder_release(h.b);
  close_hand(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(too_many_sends_are_refused),
      cmocka_unit_test(received_memory_is_free_when_it_comes),
      cmocka_unit_test(copies_of_every_kind),
      cmocka_unit_test(branch_takes_one_body),
      cmocka_unit_test(loop_carries_values),
      cmocka_unit_test(send_and_receive),
      cmocka_unit_test(collective_sums),
      cmocka_unit_test(null_channel_fails_the_run),
      cmocka_unit_test(tasks_keep_order_and_memory),
      cmocka_unit_test(first_failure_in_node_order_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
