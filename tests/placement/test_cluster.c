/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/cluster.h"

#include <stdio.h>
#include <string.h>

#include "kernels/kernel.h"
#include "placement/lower/lower.h"
#include "placement/what_if.h"
#include "runtime/base/env_system.h"
#include "runtime/graph/load/load.h"
#include "tests/check.h"

/* Clusters of machines that differ, and threads of a device. */

static weir_status read_section(const weir_allocator *a, const char *text,
                                weir_cluster **out, weir_error *err) {
  weir_arena arena;
  const weir_yaml *root = NULL;
  *out = NULL;
  weir_arena_init(&arena, a);
  weir_status s = weir_yaml_parse(weir_sv_from(text), "c.yaml", NULL, &arena,
                                  NULL, &root, err);
  if (s == WEIR_OK) s = weir_cluster_from_yaml(a, root, out, err);
  weir_arena_release(&arena);
  return s;
}

static weir_cluster *section(const char *text) {
  weir_error err = WEIR_ERROR_INIT;
  weir_cluster *c = NULL;
  assert_ok(read_section(weir_allocator_system(), text, &c, &err), &err);
  return c;
}

static const weir_cluster_class *class_of(const weir_cluster *c,
                                          const char *device) {
  for (uint32_t d = 0; d < c->device_count; d++)
    if (weir_sv_is(c->devices[d].text, device))
      return &c->classes[c->devices[d].cls];
  fail_msg("no device %s", device);
  return NULL;
}

static const char kMixed[] =
    "threads: 2\n"
    "tls: certs\n"
    "network: {latency: 10us, bandwidth: 1GB/s}\n"
    "ps: {tasks: 2, cpu: {memory: 4GiB, threads: 1}}\n"
    "devices: {cpu: {bandwidth: 20GB/s}}\n"
    "worker:\n"
    "  - \"a:1\"\n"
    "  - {address: \"b:1\", cpu: {gflops: 300, memory: 8GiB}}\n"
    "  - {cpu: {count: 2, threads: 8}, gpu: 1}\n"
    "  - {gpu: {gflops: 9000}}\n";

static void machines_differ(void **state) {
  (void)state;
  weir_cluster *c = section(kMixed);
  const weir_device_model *cpu = &weir_device_kinds[WEIR_CPU]->model;
  assert_int_equal(c->task_count, 6);
  assert_int_equal(c->device_count, 2 + 1 + 1 + 3 + 2);
  assert_int_equal(c->kind_count[WEIR_GPU], 2);
  assert_true(weir_sv_is(c->tasks[3].address, "b:1"));
  assert_int_equal(c->tasks[4].address.size, 0);
  const weir_cluster_class *ps = class_of(c, "/job:ps/task:1/device:CPU:0");
  const weir_cluster_class *a = class_of(c, "/job:worker/task:0/device:CPU:0");
  const weir_cluster_class *b = class_of(c, "/job:worker/task:1/device:CPU:0");
  const weir_cluster_class *d = class_of(c, "/job:worker/task:2/device:CPU:1");
  /* The kind's rate is one thread's; one that is given is the device's. */
  assert_int_equal(ps->threads, 1);
  assert_int_equal(ps->model.mflops, cpu->mflops);
  assert_int_equal(a->threads, 2);
  assert_int_equal(a->model.mflops, 2 * cpu->mflops);
  assert_int_equal(a->model.bytes_per_us, 20000);
  assert_int_equal(b->threads, 2);
  assert_int_equal(b->model.mflops, 300000);
  assert_int_equal(d->threads, 8);
  assert_int_equal(d->model.mflops, 8 * cpu->mflops);
  assert_int_equal(d->count, 2);
  assert_int_equal(class_of(c, "/job:worker/task:3/device:GPU:0")->model.mflops,
                   9000000);
  /* Equal ones share a class, whatever their memory. */
  assert_ptr_equal(ps, class_of(c, "/job:ps/task:0/device:CPU:0"));
  assert_int_equal(c->devices[0].memory_bytes, INT64_C(4) << 30);
  assert_int_equal(c->devices[3].memory_bytes, INT64_C(8) << 30);
  assert_int_equal(c->classes[WEIR_CPU].threads, 2);
  weir_cluster_release(c);
}

static void the_short_form_has_threads(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_cluster *c = NULL;
  assert_ok(weir_cluster_from_text(weir_allocator_system(),
                                   WEIR_SV_LIT("worker=2,threads=4"), &c, &err),
            &err);
  assert_int_equal(c->device_count, 2);
  assert_int_equal(c->classes[c->devices[1].cls].threads, 4);
  weir_cluster_release(c);
}

static void memory_is_given_or_the_kinds(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  static const struct {
    const char *text;
    int64_t bytes; /* of the GPU; 0: the kind's */
  } rows[] = {{"worker=1,gpu=1", 0},
              {"worker=1,gpu_memory=3MiB,gpu=1", 3 << 20},
              {"gpu_memory=512,worker=1,cpu_memory=1GiB,gpu=1", 512}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    weir_cluster *c = NULL;
    assert_ok(weir_cluster_from_text(weir_allocator_system(),
                                     weir_sv_from(rows[i].text), &c, &err),
              &err);
    assert_int_equal(c->device_count, 2);
    const weir_cluster_device *gpu = &c->devices[1];
    assert_int_equal(gpu->memory_given, rows[i].bytes != 0);
    assert_int_equal(gpu->memory_bytes,
                     rows[i].bytes != 0
                         ? rows[i].bytes
                         : weir_device_kinds[WEIR_GPU]->model.memory_bytes);
    assert_int_equal(c->devices[0].memory_given, i == 2);
    weir_cluster_release(c);
  }
  static const char *const bad[] = {"worker=1,gpu_memory=0",
                                    "worker=1,gpu_memory=-1",
                                    "worker=1,gpu_memory=much"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    weir_cluster *c = NULL;
    assert_error(weir_cluster_from_text(weir_allocator_system(),
                                        weir_sv_from(bad[i]), &c, &err),
                 &err, "W3020");
    assert_non_null(strstr(err.message, "a size above 0 is written 16GiB"));
  }
}

static void processes_share_gpus(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  static const struct {
    const char *text;
    bool in_turns;
  } rows[] = {{"worker=1,gpu=1", false},
              {"worker=1,gpu=1,gpu_share=memory", false},
              {"gpu_share=queue,worker=1,gpu_memory=3MiB,gpu=1", true}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    weir_cluster *c = NULL;
    assert_ok(weir_cluster_from_text(weir_allocator_system(),
                                     weir_sv_from(rows[i].text), &c, &err),
              &err);
    assert_int_equal(c->devices[1].in_turns, rows[i].in_turns);
    assert_false(c->devices[0].in_turns);
    weir_cluster_release(c);
  }
  weir_cluster *c = section(
      "worker:\n"
      "  - {gpu: {count: 2, share: queue}}\n"
      "  - {gpu: 1}\n");
  assert_int_equal(c->device_count, 5);
  for (uint32_t d = 0; d < 5; d++)
    assert_int_equal(c->devices[d].in_turns, d == 1 || d == 2);
  weir_cluster_release(c);
}

static void bad_sections_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
    uint32_t line;
  } bad[] = {
      {"worker: 1\nthreads: 0\n", "1 to 256 threads: 0", 2},
      {"worker: 1\nthreads: 257\n", "1 to 256 threads: 257", 2},
      {"worker: 1\nthreads: [4]\n", "expected a number: threads", 2},
      {"worker: 1\ngpu: [\"a:1\"]\n", "expected a number: gpu", 2},
      {"worker: 1\ndevices: {cpu: {threads: 0}}\n", "1 to 256 threads: 0", 2},
      {"worker: 1\ndevices: {cpu: {threads: 1.5}}\n", "1 to 256", 2},
      {"worker: 1\ndevices: {gpu: {threads: 2}}\n", "no threads of the host",
       2},
      {"worker: 1\ndevices: {cpu: {count: 2}}\n", "no such key, expected memor",
       2},
      {"worker: 1\ndevices: {cpu: {memory: 0}}\n", "a size above 0", 2},
      {"worker: 1\ndevices: {cpu: {memory: -1GiB}}\n", "a size above 0", 2},
      {"worker: 1\ndevices: {cpu: {memory: 9223372036854775808}}\n",
       "a size above 0", 2},
      {"worker: 1\ndevices: {cpu: {memory: 8388608TiB}}\n", "a size above 0",
       2},
      {"worker: 1\ndevices: {cpu: {bandwidth: 0GB/s}}\n", "a rate is written",
       2},
      {"worker: 1\ndevices: {cpu: {gflops: nan}}\n", "a number above 0", 2},
      {"worker: 1\ndevices: {cpu: {overhead: -1us}}\n", "a time is written", 2},
      {"worker: 1\ndevices: {gpu: {share: yes}}\n",
       "share is queue or memory: yes", 2},
      {"worker: 1\ndevices: {gpu: {share: [queue]}}\n", "share is queue", 2},
      {"worker: 1\ndevices: {cpu: {share: queue}}\n",
       "only a gpu has `share`: cpu", 2},
      {"worker: 1\nnetwork: {latency: -5us}\n", "a time is written", 2},
      {"worker: 1\nnetwork: {bandwidth: 0GB/s}\n", "a rate is written", 2},
      {"worker: 1\nnetwork: {speed: 1GB/s}\n", "no such key", 2},
      {"worker: {tasks: 0}\n", "1 to 512 tasks", 1},
      {"worker: {tasks: 4294967297}\n", "1 to 512 tasks", 1},
      {"worker: {tasks: x}\n", "expected a number of tasks", 1},
      {"worker: {tasks: 1, speed: 3}\n", "no such key of a job", 1},
      {"worker: {tasks: 1, cpu: {count: 65}}\n", "0 to 64 devices", 1},
      {"worker: {tasks: 2, addresses: [\"a:1\"]}\n", "as many tasks as", 1},
      {"worker: {addresses: 3}\n", "expected a list of addresses", 1},
      {"worker:\n  - {address: \"a\"}\n", "not an address: a", 2},
      {"worker: [\"unix:\"]\n", "not an address: unix:", 1},
      {"worker: [\"unix:/\"]\n", "not an address: unix:/", 1},
      {"worker: [\"unix:s\"]\n", "not an address: unix:s", 1},
      {"worker: [\"unix:./s\"]\n", "not an address: unix:./s", 1},
      {"worker: [\"unix:/a\\tb\"]\n", "not an address: unix:/a", 1},
      {"worker: [\"unix:/s\", \"unix:/s\"]\n", "an address given twice", 1},
      {"worker:\n  - {host: \"a:1\"}\n", "no such key of a task", 2},
      {"worker: [\"a:1\", {address: \"a:1\"}]\n", "an address given twice", 1},
      {"worker: {tasks: 1, cpu: 0}\n", "it has no device", 0},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_cluster *c = NULL;
    assert_error(read_section(weir_allocator_system(), bad[i].text, &c, &err),
                 &err, "W3020");
    if (strstr(err.message, bad[i].says) == NULL)
      fail_msg("%s: %s", bad[i].text, err.message);
    assert_int_equal(err.line, bad[i].line);
    assert_int_equal(weir_error_exit_code(err.id), 2);
  }
}

/* With ".bulk" and a NUL behind it, a path has 108 bytes. */
static void paths_of_sockets(void **state) {
  (void)state;
  for (int bytes = 101; bytes <= 103; bytes++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_cluster *c = NULL;
    char text[200], path[104] = "/";
    memset(path + 1, 'p', (size_t)bytes - 1);
    path[bytes] = '\0';
    snprintf(text, sizeof text, "worker: [\"unix:%s\", \"a:1\"]\n", path);
    weir_status s = read_section(weir_allocator_system(), text, &c, &err);
    assert_int_equal(s == WEIR_OK, bytes <= 102);
    if (s == WEIR_OK)
      assert_memory_equal(c->tasks[0].address.data + 5, path, (size_t)bytes);
    weir_cluster_release(c);
  }
}

static void too_many_figures_are_refused(void **state) {
  (void)state;
  char text[16384] = "worker:\n";
  weir_error err = WEIR_ERROR_INIT;
  weir_cluster *c = NULL;
  for (int i = 0; i < WEIR_PLACE_CLASSES; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text),
             "  - {cpu: {gflops: %d}}\n", i + 1);
  assert_error(read_section(weir_allocator_system(), text, &c, &err), &err,
               "W3020");
  assert_non_null(strstr(err.message, "62 devices with figures of their own"));
}

static void an_added_device_is_like_its_neighbour(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_cluster *c = section(kMixed), *more = NULL;
  weir_what_if change;
  assert_ok(weir_what_if_parse(WEIR_SV_LIT("add cpu:worker"), &change, &err),
            &err);
  assert_ok(
      weir_cluster_change(weir_allocator_system(), c, &change, &more, &err),
      &err);
  assert_int_equal(more->kind_count[WEIR_CPU], c->kind_count[WEIR_CPU] + 4);
  assert_int_equal(class_of(more, "/job:worker/task:2/device:CPU:2")->threads,
                   8);
  assert_int_equal(class_of(more, "/job:worker/task:2/device:CPU:2")->count, 3);
  assert_int_equal(
      class_of(more, "/job:worker/task:1/device:CPU:1")->model.mflops, 300000);
  weir_cluster_release(more);
  weir_cluster_release(c);
}

static void costs_are_per_class(void **state) {
  (void)state;
  static const char text[] =
      "weir: 1\nnodes:\n  x: fill([512, 512], 1.0)\n  y: matmul(x, x)\n"
      "outputs: [y]\n";
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = NULL;
  weir_placement *p = NULL;
  weir_load_options load = {.registry = weir_builtin_registry()};
  assert_ok(weir_graph_load_text(weir_env_system(), WEIR_SV_LIT(text), "g.yaml",
                                 &load, &g, &err),
            &err);
  weir_cluster *c = section("worker: [{cpu: {threads: 4}}, {cpu: 1}]\n");
  assert_ok(
      weir_placement_create(weir_allocator_system(), g, c, NULL, &p, &err),
      &err);
  uint32_t y = p->unit_of[weir_graph_find_node(g, WEIR_SV_LIT("y"))];
  int64_t four = weir_place_cost(p->problem, y, 0);
  int64_t one = weir_place_cost(p->problem, y, 1);
  int64_t overhead = weir_device_kinds[WEIR_CPU]->model.overhead_ns;
  assert_in_range(one - overhead, 4 * (four - overhead),
                  4 * (four - overhead) + 3);
  weir_placement_release(p);
  weir_cluster_release(c);
  weir_graph_unref(g);
}

/* Paths of a task from a cluster's `tls`. */
static void certificates_have_paths(void **state) {
  (void)state;
  static const struct {
    const char *text, *ca, *cert, *key;
  } cases[] = {
      {"worker: 1\ntls: /etc/50%t\n", "/etc/50%t/ca.pem",
       "/etc/50%t/worker-0.pem", "/etc/50%t/worker-0.key"},
      {"worker: 1\ntls: {ca: /a, cert: '/%%t/%t', key: '/%t/%t%%'}\n", "/a",
       "/%t/worker-0", "/worker-0/worker-0%"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    weir_cluster *c = section(cases[i].text);
    const weir_sv patterns[] = {c->tls.ca, c->tls.cert, c->tls.key};
    const char *want[] = {cases[i].ca, cases[i].cert, cases[i].key};
    for (int k = 0; k < 3; k++)
      assert_string_equal(
          weir_cluster_tls_path(patterns[k], "worker-0", &c->arena), want[k]);
    weir_cluster_release(c);
  }
}

static void reading_survives_every_failed_allocation(void **state) {
  (void)state;
  bool done = false;
  for (uint64_t k = 1; !done; k++)
    for (int for_ever = 0; for_ever < 2; for_ever++) {
      weir_counted_allocator memory;
      weir_error err = WEIR_ERROR_INIT;
      weir_cluster *c = NULL;
      weir_counted_allocator_init(&memory, NULL);
      memory.fail_at = k;
      memory.fail_forever = for_ever != 0;
      weir_status s = read_section(&memory.base, kMixed, &c, &err);
      done = atomic_load(&memory.calls) < k;
      if (done)
        assert_ok(s, &err);
      else
        assert_error(s, &err, "W6001");
      weir_cluster_release(c);
      assert_int_equal(atomic_load(&memory.live_blocks), 0);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(machines_differ),
      cmocka_unit_test(the_short_form_has_threads),
      cmocka_unit_test(memory_is_given_or_the_kinds),
      cmocka_unit_test(processes_share_gpus),
      cmocka_unit_test(bad_sections_are_refused),
      cmocka_unit_test(paths_of_sockets),
      cmocka_unit_test(too_many_figures_are_refused),
      cmocka_unit_test(an_added_device_is_like_its_neighbour),
      cmocka_unit_test(costs_are_per_class),
      cmocka_unit_test(certificates_have_paths),
      cmocka_unit_test(reading_survives_every_failed_allocation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
