/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/exec/gpu/gpu_tensor.h"
#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_vars.h"
#include "tests/cuda/fed.h"

/* Tensors on a GPU that are fed, and fetches that stay there. */

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

/* Output |k| of |round|. */
static float wanted(uint32_t k, int round, int i) {
  float x = fed_value(round, i);
  return k == 1 ? x + 2 : k == 2 ? x : x + 1;
}

static void check(const weir_tensor *t, uint32_t k, int round) {
  assert_false(t->on_gpu);
  for (int i = 0; i < FED_COUNT; i++)
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
  snprintf(text, sizeof text, "%s%s", fed_text, kPlaces[place].text);
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
      assert_ok(fed_run(&s, x.tensor, round % 2 == 1, fetches), &s.err);
      for (uint32_t k = 0; k < s.graph->output_count; k++)
        check_there(&s, fetches[k].tensor, k, round);
      scene_drop(&s, fetches);
    }
    foreign_drop(&x);
    scene_close(&s);
  }
}

/* Of one session: programs are told apart by where their feeds are. */
static void feeds_move_from_run_to_run(void **state) {
  (void)state;
  for (int place = 0; place < places(); place++) {
    scene s;
    foreign x, odd;
    weir_tensor *host = NULL;
    open_place(&s, place, place);
    assert_ok(foreign_make(&x, &s, 0), &s.err);
    assert_ok(foreign_make(&odd, &s, 4), &s.err);
    assert_ok(weir_gpu_tensor_to_host(s.world.env.gpus, s.world.env.alloc,
                                      x.tensor, &host, &s.err),
              &s.err);
    weir_tensor *const feeds[] = {x.tensor, odd.tensor, host};
    for (int i = 0; i < 12; i++) {
      weir_exec_fetch fetches[kOutputs] = {0};
      assert_ok(fed_run(&s, feeds[i * 7 / 4 % 3], i % 4 == 3, fetches), &s.err);
      for (uint32_t k = 0; k < s.graph->output_count; k++)
        check_there(&s, fetches[k].tensor, k, 0);
      scene_drop(&s, fetches);
    }
    weir_tensor_unref(host);
    foreign_drop(&odd);
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

/* Binds and runs |x|, at |offset|. */
static void check_kernel(scene *s, foreign *x, size_t offset,
                         const char *wanted_kernel) {
  char kernel[64];
  const weir_exec_feed feed = {fed_input(s), x->tensor};
  weir_exec_fetch fetch = {.value = s->graph->outputs[0].value};
  const weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
  weir_binding *b = NULL;
  assert_ok(weir_exec_bind(s->session, &request, &b, &s->err), &s->err);
  find_feed(b, kernel);
  assert_string_equal(kernel, wanted_kernel);
  for (int round = 0; round < 5; round++) {
    assert_ok(foreign_write(x, round, offset, &s->err), &s->err);
    assert_ok(weir_binding_run(b, NULL, &s->err), &s->err);
    check(fetch.tensor, 0, round);
  }
  weir_tensor_unref(fetch.tensor);
  weir_binding_release(b);
}

static void each_place_has_its_copy(void **state) {
  (void)state;
  for (int place = 0; place < places(); place++) {
    scene s;
    foreign x, odd;
    open_place(&s, place, 0);
    assert_ok(foreign_make(&x, &s, 0), &s.err);
    assert_ok(foreign_make(&odd, &s, 4), &s.err);
    check_kernel(&s, &x, 0, kPlaces[place].kernels[0]);
    check_kernel(&s, &odd, 4, kPlaces[place].kernels[1]);
    foreign_drop(&x);
    foreign_drop(&odd);
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
    const weir_exec_feed feed = {fed_input(&s), x.tensor};
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
    assert_ok(fed_run(&s, t, true, fetches), &s.err);
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
  for (int i = 0; i < FED_COUNT; i++)
    assert_true(((const float *)copy->data)[i] == fed_value(0, i) + 9);
  weir_tensor_unref(copy);
  weir_tensor_unref(t);
  foreign_drop(&x);
  scene_close(&s);
}

/* A new value that is the variable's and the caller's. */
static void assigned_values_stay(void **state) {
  (void)state;
  scene s;
  foreign x;
  weir_tensor *w = NULL;
  scene_open(&s,
             "weir: 1\ninputs: {x: 'f32[5, 7]'}\nnodes:\n"
             "  w: var([5, 7], init=zeros())\n"
             "  w2: assign(w, add(w, x))\noutputs: [w2, w2]\n"
             "placement:\n  - {match: '*', device: 'gpu:0'}\n",
             "worker=1,gpu=1", 2);
  assert_ok(foreign_make(&x, &s, 0), &s.err);
  for (int step = 1; step <= 5; step++) {
    weir_exec_fetch fetches[kOutputs] = {0};
    assert_ok(fed_run(&s, x.tensor, true, fetches), &s.err);
    for (uint32_t k = 0; k < s.graph->output_count; k++) {
      weir_tensor *copy = NULL;
      assert_ok(weir_gpu_tensor_to_host(s.world.env.gpus, s.world.env.alloc,
                                        fetches[k].tensor, &copy, &s.err),
                &s.err);
      for (int i = 0; i < FED_COUNT; i++)
        assert_true(((const float *)copy->data)[i] ==
                    (float)step * fed_value(0, i));
      weir_tensor_unref(copy);
    }
    scene_drop(&s, fetches);
  }
  assert_ok(weir_exec_variable_get(s.session, scene_node(&s, "w"), &w, &s.err),
            &s.err);
  for (int i = 0; i < FED_COUNT; i++)
    assert_true(((const float *)w->data)[i] == 5 * fed_value(0, i));
  weir_tensor_unref(w);
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
  assert_ok(fed_run(&s, x.tensor, true, fetches), &s.err);
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
  const weir_exec_feed feed = {fed_input(s), x};
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
    assert_ok(fed_run(&s, x, true, fetches), &s.err);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fed_tensors_are_read_where_nodes_are),
      cmocka_unit_test(feeds_move_from_run_to_run),
      cmocka_unit_test(each_place_has_its_copy),
      cmocka_unit_test(a_steady_step_is_one_call),
      cmocka_unit_test(fetches_stay_and_are_fed_again),
      cmocka_unit_test(assigned_values_stay),
      cmocka_unit_test(tensors_outlive_the_list),
      cmocka_unit_test(given_tensors_are_filled_or_refused),
      cmocka_unit_test(empty_tensors_need_no_memory),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
