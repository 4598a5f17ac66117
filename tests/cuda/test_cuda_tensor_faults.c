/* SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime_api.h>
#include <string.h>

#include "runtime/exec/gpu/gpu_tensor.h"
#include "tests/cuda/fed.h"

/* Faults in the middle of a life with tensors on GPUs. */

/* Open, feed, fetch both ways, copy, close; |v|: what came. */
static weir_status life(scene *s, float v[2][FED_COUNT]) {
  foreign x = {0};
  weir_status status = scene_open_session(s, "worker=1,gpu=2");
  if (status == WEIR_OK) status = foreign_make(&x, s, 4);
  for (int i = 0; i < 4 && status == WEIR_OK; i++) {
    weir_exec_fetch fetches[kOutputs] = {0};
    weir_tensor *copy = NULL;
    status = fed_run(s, x.tensor, i % 2 == 1, fetches);
    weir_tensor *t = fetches[0].tensor;
    if (status == WEIR_OK && t->on_gpu)
      status = weir_gpu_tensor_to_host(s->world.env.gpus, s->world.env.alloc, t,
                                       &copy, &s->err);
    else if (status == WEIR_OK)
      copy = weir_tensor_ref(t);
    if (status == WEIR_OK) memcpy(v[i % 2], copy->data, sizeof v[0]);
    weir_tensor_unref(copy);
    scene_drop(s, fetches);
  }
  foreign_drop(&x);
  return status;
}

/* With all kinds of copies. */
static const char *const kPlaces[] = {"  - {match: '*', device: 'gpu:0'}\n",
                                      ("  - {match: 'x', device: 'cpu:0'}\n"
                                       "  - {match: '*', device: 'gpu:0'}\n"),
                                      "  - {match: '*', device: 'gpu:1'}\n"};
enum { kPlaceCount = sizeof kPlaces / sizeof *kPlaces };

typedef struct sound_life {
  char text[1024];
  uint64_t calls, allocations;
  float v[2][FED_COUNT];
} sound_life;

static sound_life make_sound_life(int place) {
  sound_life l;
  scene s;
  snprintf(l.text, sizeof l.text, "%s%s", fed_text, kPlaces[place]);
  scene_open_graph(&s, l.text, 2);
  uint64_t before = standin->counts().calls;
  uint64_t made = atomic_load(&s.world.memory.calls);
  assert_ok(life(&s, l.v), &s.err);
  l.calls = standin->counts().calls - before;
  l.allocations = atomic_load(&s.world.memory.calls) - made;
  scene_close(&s);
  return l;
}

static weir_status check_life(const sound_life *l, scene *s, uint64_t k) {
  float v[2][FED_COUNT];
  weir_status status = life(s, v);
  if (status == WEIR_OK && memcmp(v, l->v, sizeof v) != 0)
    fail_msg("fault %d: no error, and other values", (int)k);
  return status;
}

static void every_call_fails_once(void **state) {
  (void)state;
  for (int i = 0; i < kPlaceCount; i++) {
    const sound_life l = make_sound_life(i);
    for (uint64_t k = 1; k <= l.calls; k = scene_next(k)) {
      scene s;
      scene_open_graph(&s, l.text, 1 + (int)(k % 2));
      standin->set_seed(k % 3);
      standin->fail_at(
          k, k % 2 == 0 ? cudaErrorInvalidValue : cudaErrorMemoryAllocation);
      if (check_life(&l, &s, k) != WEIR_OK) assert_true(s.err.id[0] == 'W');
      scene_close(&s);
    }
  }
}

static void lost_gpus_end_runs(void **state) {
  (void)state;
  const sound_life l = make_sound_life(2);
  for (uint64_t k = 1; k <= l.calls; k += 3) {
    scene s;
    scene_open_graph(&s, l.text, 2);
    standin->lose_at(k, cudaErrorECCUncorrectable);
    if (check_life(&l, &s, k) != WEIR_OK) assert_true(s.err.id[0] == 'W');
    scene_close_lost(&s);
  }
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  for (int i = 0; i < kPlaceCount; i++) {
    const sound_life l = make_sound_life(i);
    for (uint64_t k = 1; k <= l.allocations; k = scene_next(k)) {
      scene s;
      scene_open_graph(&s, l.text, 2);
      s.world.memory.fail_at = atomic_load(&s.world.memory.calls) + k;
      weir_status status = check_life(&l, &s, k);
      s.world.memory.fail_at = 0;
      if (status != WEIR_OK && strcmp(s.err.id, "W6001") != 0)
        fail_msg("allocation %d: %s %s", (int)k, s.err.id, s.err.message);
      scene_close(&s);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_call_fails_once),
      cmocka_unit_test(lost_gpus_end_runs),
      cmocka_unit_test(every_allocation_fails_once),
  };
  int skip = cuda_world_skip_program("faults that it is told to have");
  return skip != 0 ? skip
                   : cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
