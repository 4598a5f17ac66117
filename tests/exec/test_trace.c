/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/run/trace.h"

#include <pthread.h>
#include <string.h>

#include "tests/check.h"

typedef struct text {
  char data[4096];
  size_t size;
} text;

static bool append(void *self, const char *data, size_t size) {
  text *t = self;
  if (t->size + size >= sizeof t->data) return false;
  memcpy(t->data + t->size, data, size);
  t->size += size;
  t->data[t->size] = '\0';
  return true;
}

static weir_trace *make(weir_counted_allocator *c, size_t events) {
  weir_counted_allocator_init(c, NULL);
  weir_env env = {.alloc = &c->base};
  weir_error err = WEIR_ERROR_INIT;
  weir_trace *trace = NULL;
  assert_ok(weir_exec_trace_create(&env, events, &trace, &err), &err);
  return trace;
}

static void writes_chrome_json(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_trace *trace = make(&c, 2);
  weir_trace_event e = {.name = WEIR_SV_LIT("h/matmul"),
                        .category = "kernel",
                        .kernel = "cpu.matmul",
                        .start_ns = 5000,
                        .end_ns = 6500,
                        .step = 3,
                        .thread = 1};
  weir_trace_add(trace, &e);
  e = (weir_trace_event){.name = WEIR_SV_LIT("x"),
                         .category = "feed",
                         .start_ns = 4000,
                         .end_ns = 4000};
  weir_trace_add(trace, &e);
  weir_trace_add(trace, &e); /* no room */
  text t = {.size = 0};
  weir_writer out = {&t, append};
  assert_true(weir_exec_trace_write(trace, &out));
  assert_non_null(
      strstr(t.data,
             "{\"name\": \"h/matmul\", \"cat\": \"kernel\", \"ph\": \"X\", "
             "\"pid\": 0, \"tid\": 1, \"ts\": 1, \"dur\": 1.5, \"args\": "
             "{\"step\": 3, \"kernel\": \"cpu.matmul\"}}"));
  assert_non_null(strstr(t.data, "\"ts\": 0, \"dur\": 0, "));
  assert_non_null(strstr(t.data, "\"dropped_events\": 1"));
  assert_int_equal(weir_trace_count(trace), 2);
  weir_exec_trace_release(trace);
  weir_exec_trace_release(NULL);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

static void keeps_the_end_of_long_names(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_trace *trace = make(&c, 1);
  char name[300];
  memset(name, 'a', sizeof name);
  memcpy(name + 295, "/last", 5);
  weir_trace_event e = {.name = {name, 300}, .category = "kernel"};
  weir_trace_add(trace, &e);
  memset(name, 'b', sizeof name); /* it was copied */
  weir_sv kept = weir_trace_event_at(trace, 0).name;
  assert_true(kept.size > 40 && kept.size < 100);
  assert_memory_equal(kept.data + kept.size - 6, "a/last", 6);
  weir_exec_trace_release(trace);
}

static void no_memory(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  c.fail_at = 1;
  weir_env env = {.alloc = &c.base};
  weir_error err = WEIR_ERROR_INIT;
  weir_trace *trace = NULL;
  assert_error(weir_exec_trace_create(&env, 10, &trace, &err), &err, "W6001");
  assert_error(weir_exec_trace_create(&env, SIZE_MAX, &trace, &err), &err,
               "W6001");
  assert_null(trace);
}

static void *add_many(void *arg) {
  weir_trace_event e = {.name = WEIR_SV_LIT("n"), .category = "kernel"};
  for (int i = 0; i < 1000; i++) {
    e.step = (uint64_t)i;
    weir_trace_add(arg, &e);
  }
  return NULL;
}

static void many_threads(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_trace *trace = make(&c, 3500);
  pthread_t threads[4];
  uint64_t calls = atomic_load(&c.calls), sum = 0;
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, add_many, trace), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  assert_int_equal(weir_trace_count(trace), 3500);
  assert_int_equal(weir_trace_dropped(trace), 500);
  for (size_t i = 0; i < 3500; i++) {
    assert_int_equal(weir_trace_event_at(trace, i).name.size, 1);
    sum += weir_trace_event_at(trace, i).step;
  }
  assert_true(sum > 0);
  assert_int_equal(atomic_load(&c.calls), calls);
  weir_exec_trace_release(trace);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writes_chrome_json),
      cmocka_unit_test(keeps_the_end_of_long_names),
      cmocka_unit_test(no_memory),
      cmocka_unit_test(many_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
