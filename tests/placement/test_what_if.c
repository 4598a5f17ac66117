/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/what_if.h"
#include "runtime/base/strbuf.h"
#include "tests/check.h"

/* A line for each device: its name, memory, address. */
static bool write_cluster(const weir_cluster *c, const weir_writer *out) {
  char line[512];
  for (uint32_t d = 0; d < c->device_count; d++) {
    const weir_cluster_device *v = &c->devices[d];
    weir_sv address = c->tasks[v->task].address;
    int64_t memory = v->memory_bytes;
    int n = snprintf(line, sizeof line, "%-40.*s", WEIR_SV(v->text));
    if (memory != INT64_MAX)
      n += snprintf(line + n, sizeof line - (size_t)n, " %8.1f GiB",
                    (double)memory / (double)(INT64_C(1) << 30));
    n += snprintf(line + n, sizeof line - (size_t)n, "  %.200s%.*s\n",
                  address.size > 0 ? "at " : "", WEIR_SV(address));
    if (!out->write(out->self, line, (size_t)n)) return false;
  }
  return true;
}

/* Applies |text| to the cluster of |spec| and writes the result. */
static weir_status change(const weir_allocator *a, const char *spec,
                          const char *text, weir_strbuf *out, weir_error *err) {
  weir_cluster *before = NULL, *after = NULL;
  weir_what_if c;
  weir_status s = weir_what_if_parse(weir_sv_from(text), &c, err);
  if (s == WEIR_OK)
    s = weir_cluster_from_text(a, weir_sv_from(spec), &before, err);
  if (s == WEIR_OK) s = weir_cluster_change(a, before, &c, &after, err);
  weir_cluster_release(before); /* nothing of it is lent */
  weir_writer w = weir_strbuf_writer(out);
  if (s == WEIR_OK && !write_cluster(after, &w)) s = weir_fail_memory(err, 1);
  char links[100];
  if (s == WEIR_OK) {
    int n = snprintf(
        links, sizeof links, "%d+%d %d+%d tasks %u\n",
        (int)after->network.latency_ns, (int)after->network.fs_per_byte,
        (int)after->local[WEIR_CPU].latency_ns,
        (int)after->local[WEIR_CPU].fs_per_byte, after->task_count);
    w.write(w.self, links, (size_t)n);
  }
  weir_cluster_release(after);
  return s;
}

static void expect(const char *spec, const char *text, const char *want) {
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  char squeezed[2000];
  size_t used = 0;
  weir_strbuf_init(&out, weir_allocator_system());
  assert_ok(change(weir_allocator_system(), spec, text, &out, &err), &err);
  for (size_t i = 0; i < out.size && used + 1 < sizeof squeezed; i++)
    if (out.data[i] != ' ' || (used > 0 && squeezed[used - 1] != ' '))
      squeezed[used++] = out.data[i];
  squeezed[used] = '\0';
  assert_string_equal(squeezed, want);
  weir_strbuf_release(&out);
}

#define CPU(job, task) "/job:" job "/task:" task "/device:CPU:0 \n"
#define LINKS "50000+800000 2000+100000 "

static void clusters_change(void **state) {
  (void)state;
  expect("ps=1,worker=1", "add worker",
         CPU("ps", "0") CPU("worker", "0") CPU("worker", "1") LINKS
         "tasks 3\n");
  expect("ps=1,worker=2", " remove  /job:worker/task:0 ",
         CPU("ps", "0") CPU("worker", "1") LINKS "tasks 2\n");
  expect("ps=1,worker=2", "remove /job:worker",
         CPU("ps", "0") LINKS "tasks 1\n");
  expect("ps=1,worker=1", "add gpu:worker",
         CPU("ps", "0") CPU(
             "worker", "0") "/job:worker/task:0/device:GPU:0 80.0 GiB \n" LINKS
                            "tasks 2\n");
  expect("ps=1,worker=1", "add cpu:ps",
         CPU("ps", "0") "/job:ps/task:0/device:CPU:1 \n" CPU("worker", "0")
             LINKS "tasks 2\n");
  expect("worker=1", "memory /job:worker=2GiB",
         "/job:worker/task:0/device:CPU:0 2.0 GiB \n" LINKS "tasks 1\n");
  expect("worker=1,gpu=1", "memory /device:GPU:0*0.5",
         CPU("worker", "0") "/job:worker/task:0/device:GPU:0 40.0 GiB \n" LINKS
                            "tasks 1\n");
  expect("worker=1", "link network=1us,10GB/s",
         CPU("worker", "0") "1000+100000 2000+100000 tasks 1\n");
  expect("worker=1", "link network*0.5",
         CPU("worker", "0") "50000+1600000 2000+100000 tasks 1\n");
  expect("worker=1", "link local*2",
         CPU("worker", "0") "50000+800000 2000+50000 tasks 1\n");
  expect("worker=1", "pin a/b=/job:worker",
         CPU("worker", "0") LINKS "tasks 1\n");
}

static void bad_changes_are_refused(void **state) {
  (void)state;
  static const char *const texts[] = {
      "",
      "pin",
      "frob x",
      "pin a",
      "pin =/job:ps",
      "pin a=",
      "pin a=/jib:x",
      "add",
      "add ",
      "add tpu:worker",
      "add gpu:",
      "add nobody",
      "add gpu:nobody",
      "remove ",
      "remove x y",
      "remove /job:nobody",
      "remove /job:worker",
      "memory /job:worker",
      "memory /job:worker=",
      "memory /job:worker=-1B",
      "memory /job:worker=0",
      "memory /job:worker=9223372036854775808",
      "memory /job:worker*0.5", /* half of no cap */
      "memory /job:worker*0",
      "memory /job:worker*x",
      "memory /job:worker*1e99",
      "memory /job:ps=1GiB",
      "link network",
      "link wire*2",
      "link network=1us",
      "link network=1us,0GB/s",
      "link network=x,1GB/s",
      "link network*-1",
      "link network*nan",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_strbuf out;
    weir_strbuf_init(&out, weir_allocator_system());
    weir_status s =
        change(weir_allocator_system(), "worker=1", texts[i], &out, &err);
    if (s == WEIR_OK) fail_msg("'%s' was taken", texts[i]);
    assert_string_equal(err.id, "W3040");
    assert_non_null(strstr(err.hint, "add KIND:JOB"));
    assert_int_equal(out.size, 0);
    weir_strbuf_release(&out);
  }
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  weir_counted_allocator m;
  for (uint64_t k = 1;; k++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_strbuf out;
    weir_counted_allocator_init(&m, NULL);
    m.fail_at = k;
    weir_strbuf_init(&out, weir_allocator_system());
    weir_status s = change(&m.base, "ps=2,worker=40", "add worker", &out, &err);
    weir_strbuf_release(&out);
    assert_int_equal(atomic_load(&m.live_bytes), 0);
    if (s == WEIR_OK) break;
    assert_string_equal(err.id, "W6001");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clusters_change),
      cmocka_unit_test(bad_changes_are_refused),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
