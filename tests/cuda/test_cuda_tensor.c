/* SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime_api.h>
#include <string.h>

#include "runtime/exec/gpu/gpu_tensor.h"
#include "runtime/exec/session/binding.h"
#include "tests/cuda/scene.h"

/* Tensors on a GPU that are fed, and fetches that stay there. */

enum { kRows = 5, kCols = 7, kCount = kRows * kCols };

static const char kText[] =
    "weir: 1\n"
    "inputs: {x: 'f32[5, 7]', n: 'f32[7] = ones([7])'}\n"
    "nodes:\n"
    "  y: add(x, n)\n"
    "  z: sub(mul(y, 2), x)\n"
    "  v: reshape(y, [35])\n"
    "outputs: [y, z, x, v]\n"
    "placement:\n%s";

/* |kernels|: of the first copy of x in a program that x, on GPU 0, is fed to,
 * where its address is aligned and where it is not; "-": it has none. */
typedef struct one_place {
  const char *text, *kernels[2];
} one_place;

static const one_place kPlaces[] = {
    {"  - {match: '*', device: 'gpu:0'}\n", {"-", "copy.gpu"}},
    {"  - {match: 'x', device: 'gpu:0'}\n"
     "  - {match: '*', device: 'cpu:0'}\n",
     {"copy.gpu_to_host", "copy.gpu"}},
    {"  - {match: '*', device: 'cpu:0'}\n",
     {"copy.gpu_to_host", "copy.gpu_to_host"}},
    {"  - {match: 'x', device: 'cpu:0'}\n"
     "  - {match: '*', device: 'gpu:0'}\n",
     {"copy.gpu_to_host", "copy.gpu_to_host"}},
    {"  - {match: '*', device: 'gpu:1'}\n",
     {"copy.gpu_to_gpu", "copy.gpu_to_gpu"}},
    {"  - {match: 'y', device: 'gpu:1'}\n"
     "  - {match: 'x', device: 'gpu:1'}\n"
     "  - {match: '*', device: 'cpu:0'}\n",
     {"copy.gpu_to_gpu", "copy.gpu_to_gpu"}}};
enum { kPlaceCount = sizeof kPlaces / sizeof *kPlaces, kOneGpu = 4 };

static float value_of(int round, int i) {
  return (float)((i * 5 + round * 3) % 17 - 8);
}

/* ---- A tensor of somebody else */

/* Memory of a GPU that another library has, and a tensor in it. */
typedef struct foreign {
  weir_exec_gpu *gpu;
  weir_device_buffer buffer;
  weir_tensor *tensor;
  int released;
} foreign;

static void count_release(void *self, void *data) {
  (void)data;
  ((foreign *)self)->released++;
}

/* Its values are those of |round|; |offset|: of its first byte. */
static weir_status foreign_write(foreign *f, int round, size_t offset,
                                 weir_error *err) {
  float values[kCount];
  for (int i = 0; i < kCount; i++) values[i] = value_of(round, i);
  return weir_gpu_write(f->gpu, (weir_device_place){&f->buffer, offset}, values,
                        sizeof values, err);
}

static weir_status foreign_make(foreign *f, scene *s, size_t offset) {
  const int64_t dims[] = {kRows, kCols};
  const weir_shape shape = weir_shape_of(2, dims);
  *f = (foreign){0};
  WEIR_TRY(weir_gpus_open(s->world.env.gpus, 0, &f->gpu, &s->err));
  weir_device *d = f->gpu->gpu.device;
  WEIR_TRY(
      d->vt->alloc(d, kCount * sizeof(float) + offset, &f->buffer, &s->err));
  WEIR_TRY(foreign_write(f, 0, offset, &s->err));
  const weir_tensor_memory memory = {
      WEIR_F32, &shape, (char *)f->buffer.handle + offset, count_release, f};
  WEIR_TRY(weir_tensor_wrap(s->world.env.alloc, &memory, &f->tensor, &s->err));
  weir_gpu_tensor_mark(f->tensor, 0);
  return WEIR_OK;
}

static void foreign_drop(foreign *f) {
  bool made = f->tensor != NULL;
  weir_tensor_unref(f->tensor);
  assert_int_equal(f->released, made);
  if (f->buffer.handle == NULL) return;
  weir_device *d = f->gpu->gpu.device;
  d->vt->free(d, &f->buffer);
}

/* ---- Runs */

static weir_value_id input(const scene *s) {
  return s->graph->inputs[0].value;
}

/* All outputs, of |x|; |stays| of all. */
static weir_status run(scene *s, weir_tensor *x, bool stays,
                       weir_exec_fetch *fetches) {
  const weir_exec_feed feed = {input(s), x};
  for (uint32_t i = 0; i < s->graph->output_count; i++)
    fetches[i] =
        (weir_exec_fetch){.value = s->graph->outputs[i].value, .stays = stays};
  s->err = (weir_error)WEIR_ERROR_INIT;
  const weir_exec_request request = {.feeds = &feed,
                                     .feed_count = 1,
                                     .fetches = fetches,
                                     .fetch_count = s->graph->output_count};
  return weir_exec_run(s->session, &request, &s->err);
}

/* Output |k| of |round|. */
static float wanted(uint32_t k, int round, int i) {
  float x = value_of(round, i);
  return k == 1 ? x + 2 : k == 2 ? x : x + 1;
}

static void check(const weir_tensor *t, uint32_t k, int round) {
  assert_false(t->on_gpu);
  for (int i = 0; i < kCount; i++)
    if (((const float *)t->data)[i] != wanted(k, round, i))
      fail_msg("output %u of round %d: element %d is %g, not %g", k, round, i,
               (double)((const float *)t->data)[i],
               (double)wanted(k, round, i));
}

/* The same of a tensor that may be on a GPU. */
static void check_there(scene *s, weir_tensor *t, uint32_t k, int round) {
  weir_tensor *copy = NULL;
  if (!t->on_gpu) {
    check(t, k, round);
    return;
  }
  assert_ok(weir_gpu_tensor_to_host(s->world.env.gpus, s->world.env.alloc, t,
                                    &copy, &s->err),
            &s->err);
  check(copy, k, round);
  weir_tensor_unref(copy);
}

static void open_place(scene *s, int place, int seed) {
  char text[1024];
  snprintf(text, sizeof text, kText, kPlaces[place].text);
  if (standin != NULL) standin->set_seed((uint64_t)seed);
  if (standin != NULL) standin->set_check_launches(true);
  scene_open(s, text, place < kOneGpu ? "worker=1,gpu=1" : "worker=1,gpu=2",
             1 + seed % 3);
}

static int places(void) {
  return cuda_world_gpus() > 1 ? kPlaceCount : kOneGpu;
}

static void fed_tensors_are_read_where_nodes_are(void **state) {
  (void)state;
  for (int i = 0; i < 2 * places(); i++) {
    scene s;
    foreign x;
    size_t offset = i % 2 == 0 ? 0 : 4;
    open_place(&s, i / 2, i);
    assert_ok(foreign_make(&x, &s, offset), &s.err);
    for (int round = 0; round < 6; round++) {
      weir_exec_fetch fetches[kOutputs] = {0};
      assert_ok(foreign_write(&x, round, offset, &s.err), &s.err);
      assert_ok(run(&s, x.tensor, round % 2 == 1, fetches), &s.err);
      for (uint32_t k = 0; k < s.graph->output_count; k++)
        check_there(&s, fetches[k].tensor, k, round);
      scene_drop(&s, fetches);
    }
    foreign_drop(&x);
    scene_close(&s);
  }
}

/* ---- The copies that a program has */

typedef struct description {
  char text[4096];
  size_t size;
} description;

static bool write_text(void *self, const char *data, size_t size) {
  description *d = self;
  if (d->size + size >= sizeof d->text) return false;
  memcpy(d->text + d->size, data, size);
  d->size += size;
  d->text[d->size] = '\0';
  return true;
}

/* The kernel of the first copy that stands for node `x`. */
static void find_feed(const weir_binding *b, char kernel[64]) {
  description d = {.size = 0};
  const weir_writer writer = {&d, write_text};
  assert_true(weir_binding_describe(b, &writer));
  const char *line = strstr(d.text, "\tx\tinput\tcopy");
  snprintf(kernel, 64, "-");
  if (line != NULL && sscanf(line, "\tx\tinput\t%63s", kernel) != 1)
    fail_msg("%s", d.text);
}

static void each_place_has_its_copy(void **state) {
  (void)state;
  for (int i = 0; i < 2 * places(); i++) {
    scene s;
    foreign x;
    char kernel[64];
    open_place(&s, i / 2, 0);
    assert_ok(foreign_make(&x, &s, i % 2 == 0 ? 0 : 4), &s.err);
    const weir_exec_feed feed = {input(&s), x.tensor};
    weir_exec_fetch fetch = {.value = s.graph->outputs[0].value};
    const weir_exec_request request = {
        .feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
    weir_binding *b = NULL;
    assert_ok(weir_exec_bind(s.session, &request, &b, &s.err), &s.err);
    find_feed(b, kernel);
    assert_string_equal(kernel, kPlaces[i / 2].kernels[i % 2]);
    for (int round = 0; round < 5; round++) {
      assert_ok(foreign_write(&x, round, i % 2 == 0 ? 0 : 4, &s.err), &s.err);
      assert_ok(weir_binding_run(b, NULL, &s.err), &s.err);
      check(fetch.tensor, 0, round);
    }
    weir_tensor_unref(fetch.tensor);
    weir_binding_release(b);
    foreign_drop(&x);
    scene_close(&s);
  }
}

/* With feeds and fetches on the GPU too. */
static void a_steady_step_is_one_call(void **state) {
  static const struct {
    int place;
    size_t offset;
    uint64_t calls; /* in each step */
  } kSteady[] = {{0, 0, 6}, {0, 4, 6}, {4, 0, 9}};
  (void)state;
  cuda_world_needs_standin("calls that are counted, two GPUs");
  for (int i = 0; i < 3; i++) {
    scene s;
    foreign x;
    open_place(&s, kSteady[i].place, 0);
    assert_ok(foreign_make(&x, &s, kSteady[i].offset), &s.err);
    const weir_exec_feed feed = {input(&s), x.tensor};
    weir_exec_fetch fetch = {.value = s.graph->outputs[0].value, .stays = true};
    const weir_exec_request request = {
        .feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
    weir_binding *b = NULL;
    assert_ok(weir_exec_bind(s.session, &request, &b, &s.err), &s.err);
    for (int run = 0; run < 8; run++) {
      const standin_counts before = standin->counts();
      assert_ok(weir_binding_run(b, NULL, &s.err), &s.err);
      const standin_counts after = standin->counts();
      if (run < 4) continue;
      assert_int_equal(after.graph_launches - before.graph_launches, 1);
      /* the GPU made this thread's, the graph, the mark; and the wait; between
       * two GPUs the copy and both, this thread's */
      assert_int_equal(after.calls - before.calls, kSteady[i].calls);
    }
    check_there(&s, fetch.tensor, 0, 0);
    weir_tensor_unref(fetch.tensor);
    weir_binding_release(b);
    foreign_drop(&x);
    scene_close(&s);
  }
}

/* ---- Fetches that stay */

static void fetches_stay_and_are_fed_again(void **state) {
  (void)state;
  scene s;
  foreign x;
  open_place(&s, 0, 1);
  assert_ok(foreign_make(&x, &s, 0), &s.err);
  weir_tensor *t = weir_tensor_ref(x.tensor);
  for (int i = 0; i < 9; i++) {
    weir_exec_fetch fetches[kOutputs] = {0};
    assert_ok(run(&s, t, true, fetches), &s.err);
    for (uint32_t k = 0; k < s.graph->output_count; k++)
      assert_true(fetches[k].tensor->on_gpu && fetches[k].tensor->gpu == 0);
    weir_tensor_unref(t);
    t = weir_tensor_ref(fetches[0].tensor);
    scene_drop(&s, fetches);
  }
  weir_tensor *copy = NULL;
  assert_ok(weir_gpu_tensor_to_host(s.world.env.gpus, s.world.env.alloc, t,
                                    &copy, &s.err),
            &s.err);
  for (int i = 0; i < kCount; i++)
    assert_true(((const float *)copy->data)[i] == value_of(0, i) + 9);
  weir_tensor_unref(copy);
  weir_tensor_unref(t);
  foreign_drop(&x);
  scene_close(&s);
}

/* The GPU is closed with the last of its tensors. */
static void tensors_outlive_the_list(void **state) {
  (void)state;
  scene s;
  foreign x;
  weir_exec_fetch fetches[kOutputs] = {0};
  open_place(&s, 0, 2);
  assert_ok(foreign_make(&x, &s, 0), &s.err);
  assert_ok(run(&s, x.tensor, true, fetches), &s.err);
  foreign_drop(&x);
  weir_gpus *gpus = s.world.env.gpus;
  weir_exec_session_release(s.session);
  s.session = NULL;
  s.world.env.gpus = NULL;
  weir_gpus_release(gpus);
  if (standin != NULL) assert_true(standin->counts().blocks > 0);
  scene_drop(&s, fetches);
  scene_close(&s);
}

static weir_status run_into(scene *s, weir_tensor *x, weir_tensor *into,
                            bool stays) {
  const weir_exec_feed feed = {input(s), x};
  weir_exec_fetch fetch = {
      .value = s->graph->outputs[0].value, .tensor = into, .stays = stays};
  const weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
  s->err = (weir_error)WEIR_ERROR_INIT;
  return weir_exec_run(s->session, &request, &s->err);
}

static void given_tensors_are_filled_or_refused(void **state) {
  (void)state;
  scene s;
  foreign x, y, odd;
  weir_tensor *host = NULL;
  open_place(&s, 0, 3);
  assert_ok(foreign_make(&x, &s, 0), &s.err);
  assert_ok(foreign_make(&y, &s, 0), &s.err);
  assert_ok(foreign_make(&odd, &s, 4), &s.err);
  assert_ok(weir_tensor_create_shaped(s.world.env.alloc, WEIR_F32,
                                      &x.tensor->shape, &host, &s.err),
            &s.err);
  for (int i = 0; i < 4; i++) {
    assert_ok(run_into(&s, x.tensor, y.tensor, true), &s.err);
    check_there(&s, y.tensor, 0, 0);
  }
  assert_error(run_into(&s, x.tensor, host, true), &s.err, "W0004");
  assert_non_null(strstr(s.err.message, "is on the host, one on GPU 0"));
  assert_error(run_into(&s, x.tensor, y.tensor, false), &s.err, "W0004");
  assert_non_null(strstr(s.err.message, "is on GPU 0, one on the host"));
  assert_error(run_into(&s, x.tensor, odd.tensor, true), &s.err, "W0004");
  assert_non_null(strstr(s.err.message, "not aligned to 64"));
  weir_tensor_unref(host);
  foreign_drop(&x);
  foreign_drop(&y);
  foreign_drop(&odd);
  scene_close(&s);
}

static void empty_tensors_need_no_memory(void **state) {
  (void)state;
  scene s;
  weir_exec_gpu *gpu = NULL;
  weir_tensor *x = NULL, *copy = NULL;
  const int64_t dims[] = {0, 3};
  const weir_shape shape = weir_shape_of(2, dims);
  scene_open(&s,
             "weir: 1\ninputs: {x: 'f32[0, 3]'}\nnodes:\n  y: add(x, 1)\n"
             "outputs: [y]\nplacement:\n  - {match: '*', device: 'gpu:0'}\n",
             "worker=1,gpu=1", 1);
  assert_ok(weir_gpus_open(s.world.env.gpus, 0, &gpu, &s.err), &s.err);
  assert_ok(weir_gpu_tensor_create(gpu, s.world.env.alloc, WEIR_F32, &shape, &x,
                                   &s.err),
            &s.err);
  for (int i = 0; i < 4; i++) {
    weir_exec_fetch fetches[kOutputs] = {0};
    assert_ok(run(&s, x, true, fetches), &s.err);
    assert_true(fetches[0].tensor->on_gpu);
    assert_int_equal(fetches[0].tensor->bytes, 0);
    scene_drop(&s, fetches);
  }
  assert_ok(weir_gpu_tensor_to_host(s.world.env.gpus, s.world.env.alloc, x,
                                    &copy, &s.err),
            &s.err);
  assert_false(copy->on_gpu);
  weir_tensor_unref(copy);
  weir_tensor_unref(x);
  scene_close(&s);
}

/* ---- Sweeps */

/* Open, feed, fetch both ways, copy, close; |v|: what came. */
static weir_status life(scene *s, float v[2][kCount]) {
  foreign x = {0};
  weir_status status = scene_open_session(s, "worker=1,gpu=2");
  if (status == WEIR_OK) status = foreign_make(&x, s, 4);
  for (int i = 0; i < 4 && status == WEIR_OK; i++) {
    weir_exec_fetch fetches[kOutputs] = {0};
    weir_tensor *copy = NULL;
    status = run(s, x.tensor, i % 2 == 1, fetches);
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

typedef struct sound_life {
  char text[1024];
  uint64_t calls, allocations;
  float v[2][kCount];
} sound_life;

static sound_life make_sound_life(int place) {
  sound_life l;
  scene s;
  snprintf(l.text, sizeof l.text, kText, kPlaces[place].text);
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
  float v[2][kCount];
  weir_status status = life(s, v);
  if (status == WEIR_OK && memcmp(v, l->v, sizeof v) != 0)
    fail_msg("fault %d: no error, and other values", (int)k);
  return status;
}

/* The places with all kinds of copies. */
static const int kSwept[] = {0, 3, 4};
enum { kSweptCount = sizeof kSwept / sizeof *kSwept };

static void every_call_fails_once(void **state) {
  (void)state;
  cuda_world_needs_standin("calls that fail when they are told to");
  for (int i = 0; i < kSweptCount; i++) {
    const sound_life l = make_sound_life(kSwept[i]);
    for (uint64_t k = 1; k <= l.calls; k++) {
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
  cuda_world_needs_standin("GPUs that are lost when they are told to");
  const sound_life l = make_sound_life(4);
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
  cuda_world_needs_standin("two GPUs, and a start that takes no time");
  for (int i = 0; i < kSweptCount; i++) {
    const sound_life l = make_sound_life(kSwept[i]);
    for (uint64_t k = 1; k <= l.allocations; k++) {
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
      cmocka_unit_test(fed_tensors_are_read_where_nodes_are),
      cmocka_unit_test(each_place_has_its_copy),
      cmocka_unit_test(a_steady_step_is_one_call),
      cmocka_unit_test(fetches_stay_and_are_fed_again),
      cmocka_unit_test(tensors_outlive_the_list),
      cmocka_unit_test(given_tensors_are_filled_or_refused),
      cmocka_unit_test(empty_tensors_need_no_memory),
      cmocka_unit_test(every_call_fails_once),
      cmocka_unit_test(lost_gpus_end_runs),
      cmocka_unit_test(every_allocation_fails_once),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
