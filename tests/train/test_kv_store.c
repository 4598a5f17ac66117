/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/env_system.h"
#include "runtime/train/kv/store.h"
#include "tests/check.h"

/* The keys of a server: rules against the same arithmetic by hand, whole and by
 * rows, over chunk borders; lack of memory. */

typedef struct world {
  weir_counted_allocator memory;
  weir_env env;
  weir_pool *pool;
  weir_kv_store *store;
} world;

static void open_world(world *w) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_pool_options options = {.threads = 1};
  weir_counted_allocator_init(&w->memory, NULL);
  w->env = *weir_env_system();
  w->env.alloc = &w->memory.base;
  assert_ok(weir_pool_create(&w->env, &options, &w->pool, &err), &err);
  assert_ok(weir_kv_store_create(&w->env, w->pool, &w->store, &err), &err);
}

static void close_world(world *w) {
  weir_kv_store_release(w->store);
  weir_pool_release(w->pool);
  assert_int_equal(w->memory.live_bytes, 0);
}

static weir_kv_message message_of(weir_kv_kind kind, const char *name) {
  weir_kv_message m = {.kind = kind};
  snprintf(m.name, sizeof m.name, "%s", name);
  return m;
}

/* Does |m| with these ids and floats, and gives its data back. */
static weir_kv_message act(world *w, weir_kv_message m, const int64_t *ids,
                           const float *values) {
  weir_error err = WEIR_ERROR_INIT;
  weir_kv_message reply = {0};
  weir_kv_block *block = NULL;
  weir_status s = weir_kv_block_create(&w->memory.base, &m, true, &block, &err);
  if (s != WEIR_OK) {
    weir_kv_set_error(&reply, s, &err);
    return reply;
  }
  if (ids != NULL && block != NULL) memcpy(block->ids, ids, m.count * 8);
  if (values != NULL && block != NULL)
    memcpy(block->values, values, m.value_bytes);
  m.data = block;
  weir_kv_store_do(w->store, &m, &reply);
  weir_kv_block_release(block);
  return reply;
}

static weir_kv_message declare(world *w, const char *name, const char *rule,
                               int64_t rows, int64_t width) {
  weir_kv_message m = message_of(WEIR_KV_DECLARE, name);
  m.dtype = WEIR_F32;
  m.rank = 2;
  m.dims[0] = m.rows = rows;
  m.dims[1] = width;
  snprintf(m.text, sizeof m.text, "%s", rule);
  return act(w, m, NULL, NULL);
}

static weir_kv_message push(world *w, const char *name, uint64_t count,
                            const int64_t *ids, const float *values,
                            size_t bytes) {
  weir_kv_message m = message_of(WEIR_KV_PUSH, name);
  m.by_row = ids != NULL;
  m.count = count;
  m.value_bytes = bytes;
  return act(w, m, ids, values);
}

static void read(world *w, const char *name, float *out, size_t bytes) {
  weir_kv_message reply = act(w, message_of(WEIR_KV_PULL, name), NULL, NULL);
  assert_int_equal(reply.status, WEIR_OK);
  assert_int_equal(reply.value_bytes, bytes);
  weir_kv_block *block = reply.data;
  memcpy(out, block->values, bytes);
  weir_kv_block_release(block);
}

/* Rows around the chunk's size and beyond it: whole pushes and the same rows in
 * another order, some twice, give the same bits. */
static void rows_and_chunks_give_the_same_bits(void **state) {
  (void)state;
  static const int64_t kShapes[][2] = {{1, 1},     {3, 1},     {5, 5461},
                                       {2, 16384}, {2, 16385}, {3, 40000},
                                       {40000, 1}};
  static const char *const kRules[] = {"add", "sgd(lr=0.5)", "adam(lr=0.25)",
                                       "rms_prop(lr=0.1, momentum=0.5)"};
  for (size_t shape = 0; shape < 7; shape++)
    for (size_t rule = 0; rule < 4; rule++) {
      world w;
      size_t rows = (size_t)kShapes[shape][0],
             width = (size_t)kShapes[shape][1];
      size_t n = rows * width;
      float *x = calloc(n + width, sizeof *x), *a = calloc(n, sizeof *a),
            *b = calloc(n, sizeof *b);
      int64_t *ids = calloc(rows + 1, sizeof *ids);
      open_world(&w);
      declare(&w, "a", kRules[rule], (int64_t)rows, (int64_t)width);
      declare(&w, "b", kRules[rule], (int64_t)rows, (int64_t)width);
      for (int turn = 1; turn < 4; turn++) {
        for (size_t i = 0; i < n; i++) x[i] = (float)(i % 7) + (float)turn;
        assert_int_equal(push(&w, "a", 0, NULL, x, n * 4).version, turn);
        for (size_t r = 0; r < rows; r++) { /* from the last to the first */
          ids[r] = (int64_t)(rows - 1 - r);
          for (size_t k = 0; k < width; k++)
            x[r * width + k] =
                (float)(((rows - 1 - r) * width + k) % 7) + (float)turn;
        }
        ids[rows] = ids[0]; /* once more, as halves that are summed */
        for (size_t k = 0; k < width; k++) x[n + k] = x[k] = x[k] / 2;
        assert_int_equal(
            push(&w, "b", rows + 1, ids, x, (n + width) * 4).version, turn);
      }
      read(&w, "a", a, n * 4);
      read(&w, "b", b, n * 4);
      assert_memory_equal(a, b, n * 4);
      assert_true(a[n - 1] != 0);
      free(x), free(a), free(b), free(ids);
      close_world(&w);
    }
}

static void refused_pushes_change_nothing(void **state) {
  (void)state;
  world w;
  const float x[] = {1, 2, 3, 4};
  const int64_t low[] = {0, -1}, high[] = {0, 2};
  float now[4];
  open_world(&w);
  declare(&w, "a", "add", 2, 2);
  weir_kv_message r = push(&w, "a", 2, low, x, 16);
  assert_string_equal(r.id, "W7113");
  assert_string_equal(r.text,
                      "PUSH of key `a` names row -1, rows 0 to 1 are here");
  assert_string_equal(push(&w, "a", 2, high, x, 16).id, "W7113");
  assert_string_equal(push(&w, "a", 0, NULL, x, 12).id, "W7113");
  assert_string_equal(push(&w, "a", 1, low, x, 16).id, "W7113");
  assert_string_equal(push(&w, "b", 0, NULL, x, 16).id, "W7111");
  read(&w, "a", now, 16);
  for (int i = 0; i < 4; i++) assert_true(now[i] == 0);
  weir_kv_message m = message_of(WEIR_KV_DECLARE, "c");
  m.dtype = WEIR_F32;
  m.rank = 2;
  m.dims[0] = m.dims[1] = INT64_MAX;
  m.rows = INT64_MAX;
  assert_string_equal(act(&w, m, NULL, NULL).id, "W7117"); /* no rule */
  strcpy(m.text, "add");
  assert_string_equal(act(&w, m, NULL, NULL).id, "W7113");
  m.dims[0] = m.rows = 1 << 20; /* 8 EiB in all */
  m.dims[1] = INT64_C(1) << 41;
  assert_string_equal(act(&w, m, NULL, NULL).id, "W7113");
  m.dims[1] = 2;
  m.rows = -1;
  assert_string_equal(act(&w, m, NULL, NULL).id, "W7113");
  m.rows = 1;
  m.first = INT64_MAX;
  assert_string_equal(act(&w, m, NULL, NULL).id, "W7113");
  close_world(&w);
}

/* The k-th allocation fails: that message is refused, and the same one passes
 * when it comes again. */
static void lack_of_memory_refuses_whole(void **state) {
  (void)state;
  const int64_t ids[] = {1, 0, 1};
  const float x[] = {1, 2, 3, 4, 5, 6};
  for (uint64_t k = 1;; k++) {
    world w;
    float now[4];
    uint64_t version = 0;
    open_world(&w);
    w.memory.fail_at = w.memory.calls + k;
    while (declare(&w, "a", "sgd(lr=1)", 2, 2).status != WEIR_OK) {
    }
    while (version == 0) version = push(&w, "a", 3, ids, x, 24).version;
    bool reached = w.memory.calls >= w.memory.fail_at;
    w.memory.fail_at = 0;
    read(&w, "a", now, 16);
    assert_int_equal(version, 1);
    assert_true(now[0] == -3 && now[1] == -4 && now[2] == -6 && now[3] == -8);
    close_world(&w);
    if (!reached) break;
    assert_true(k < 5000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_and_chunks_give_the_same_bits),
      cmocka_unit_test(refused_pushes_change_nothing),
      cmocka_unit_test(lack_of_memory_refuses_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
