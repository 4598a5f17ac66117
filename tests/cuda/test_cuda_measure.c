/* SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/measure/calibrate_gpu.h"
#include "runtime/exec/measure/calibrate_gpu_link.h"
#include "tests/cuda/scene.h"

/* Measurements of GPUs; the stand-in's clock gives them to the nanosecond. */

/* |a| and |t| are the host's, |b| and |c| a GPU's, with copies before them,
 * between them and after them. */
static const char kGraph[] =
    "weir: 1\n"
    "inputs: {x: 'f32[64, 32] = 1.0', y: 'f32[8, 64, 32] = 1.0'}\n"
    "nodes:\n"
    "  a: add(x, 1.0) @ cpu:0\n"
    "  b: exp(a) @ gpu:0\n"
    "  u: neg(b) @ cpu:0\n"
    "  c: tanh(y) @ gpu:0\n"
    "  t: task(c, cost_ns=1000)\n"
    "outputs: [t, b, c, u]\n";

static void open_graph(scene *s, weir_costs **costs) {
  scene_open_graph(s, kGraph, 1);
  const weir_gpus_options gpus = {.module = getenv("WEIR_BUILD_ROOT"),
                                  .cuda = cuda_folder,
                                  .sleepy = standin != NULL};
  assert_ok(weir_gpus_create(&s->world.env, &gpus, &s->world.env.gpus, &s->err),
            &s->err);
  assert_ok(weir_costs_create(s->world.env.alloc, costs, &s->err), &s->err);
}

static void close_graph(scene *s, weir_costs *costs) {
  weir_costs_release(costs);
  scene_close(s);
}

static weir_status calibrate(scene *s, weir_costs *costs) {
  const weir_place_request request = {.graph = s->graph,
                                      .cluster = "worker=1,gpu=1"};
  return weir_calibrate_gpu(&s->world.env, &request, costs, &s->err);
}

/* The entry of a GPU whose key begins with |op|; NULL: none. */
static const weir_cost_entry *entry_of(const weir_costs *costs,
                                       const char *op) {
  for (size_t i = 0; i < costs->entries.count; i++) {
    const weir_cost_entry *e = costs->entries.items[i];
    if (e->cls == WEIR_GPU && e->key.size > strlen(op) &&
        memcmp(e->key.data, op, strlen(op)) == 0)
      return e;
  }
  return NULL;
}

static void units_have_the_gpus_times(void **state) {
  (void)state;
  scene s;
  weir_costs *costs;
  open_graph(&s, &costs);
  assert_ok(calibrate(&s, costs), &s.err);
  const weir_cost_entry *small = entry_of(costs, "exp("),
                        *large = entry_of(costs, "tanh");
  assert_non_null(small);
  assert_non_null(large);
  assert_int_equal(small->threads, 1);
  assert_int_equal(small->bytes, 2 * 64 * 32 * 4);
  assert_true(small->sample.count >= 9);
  assert_true(small->sample.median_ns > 0);
  assert_true(large->sample.median_ns > 0);
  if (standin != NULL) { /* a launch, no copy, no mark */
    assert_true(large->sample.median_ns > small->sample.median_ns);
    assert_int_equal(small->sample.median_ns, STANDIN_LAUNCH_NS + 512);
    assert_int_equal(small->sample.spread_permille, 0);
  }
  /* What is on the host has no cost of a GPU, nor have its own. */
  assert_null(entry_of(costs, "add"));
  assert_null(entry_of(costs, "neg"));
  assert_null(entry_of(costs, "task"));
  for (size_t i = 0; i < costs->entries.count; i++)
    assert_int_equal(costs->entries.items[i]->cls, WEIR_GPU);
  assert_int_equal(costs->step_count, 0);
  close_graph(&s, costs);
}

/* A line of the stand-in's, to the nanosecond and what rounding takes. */
static void check_line(int64_t ns, int64_t fs, int64_t bytes_per_ns) {
  if (standin == NULL) return;
  assert_true(ns >= STANDIN_COPY_NS - 2 && ns <= STANDIN_COPY_NS + 2);
  int64_t off = fs - 1000000 / bytes_per_ns;
  assert_true(off >= -10 && off <= 10);
}

static void links_are_lines(void **state) {
  (void)state;
  scene s;
  weir_costs *costs;
  bool two = cuda_world_gpus() > 1;
  open_graph(&s, &costs);
  assert_ok(weir_calibrate_gpu_links(&s.world.env, two, costs, &s.err), &s.err);
  const weir_cost_piece *in = &costs->ways[WEIR_CPU][WEIR_GPU],
                        *out = &costs->ways[WEIR_GPU][WEIR_CPU],
                        *peer = &costs->ways[WEIR_GPU][WEIR_GPU];
  assert_true(in->count > 0 && out->count > 0);
  assert_true(in->fs_per_byte > 0 && out->fs_per_byte > 0);
  check_line(in->latency_ns, in->fs_per_byte, STANDIN_BYTES_PER_NS);
  check_line(out->send_ns, out->send_fs_per_byte, STANDIN_BYTES_PER_NS);
  /* The host sends for none of it; it learns later that bytes have come. */
  assert_true(in->send_ns == 0 && in->send_fs_per_byte == 0);
  assert_true(out->latency_ns > out->send_ns);
  assert_int_equal(peer->count > 0, two);
  if (two)
    check_line(peer->send_ns, peer->fs_per_byte, 4 * STANDIN_BYTES_PER_NS);
  assert_int_equal(costs->piece_count, 0);
  close_graph(&s, costs);
}

static void no_gpu_is_an_error(void **state) {
  (void)state;
  cuda_world_needs_standin("a machine without a GPU");
  scene s;
  weir_costs *costs;
  open_graph(&s, &costs);
  standin->set_devices(0);
  assert_error(calibrate(&s, costs), &s.err, "W6004");
  assert_error(weir_calibrate_gpu_links(&s.world.env, true, costs, &s.err),
               &s.err, "W6004");
  assert_int_equal(costs->entries.count, 0);
  assert_int_equal(costs->ways[WEIR_CPU][WEIR_GPU].count, 0);
  standin->reset();
  close_graph(&s, costs);
}

/* Nothing is left when a call of CUDA fails; the last try meets none. */
static void failing_calls_leave_nothing(void **state) {
  (void)state;
  cuda_world_needs_standin("calls that fail");
  for (int links = 0; links < 2; links++) {
    bool done = false;
    for (uint64_t k = 1; !done; k += k < 30 ? 1 : links ? k : k / 5) {
      scene s;
      weir_costs *costs;
      open_graph(&s, &costs);
      standin->fail_at(k, cudaErrorInvalidValue);
      weir_status status =
          links ? weir_calibrate_gpu_links(&s.world.env, true, costs, &s.err)
                : calibrate(&s, costs);
      done = standin->counts().calls < k;
      if (done) assert_ok(status, &s.err);
      if (status != WEIR_OK && links)
        assert_int_equal(costs->ways[WEIR_GPU][WEIR_CPU].count, 0);
      standin->reset();
      close_graph(&s, costs);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(units_have_the_gpus_times),
      cmocka_unit_test(links_are_lines),
      cmocka_unit_test(no_gpu_is_an_error),
      cmocka_unit_test(failing_calls_leave_nothing),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
