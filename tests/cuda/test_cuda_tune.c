/* SPDX-License-Identifier: Apache-2.0 */
#include <cublasLt.h>
#include <driver_types.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/tune/choices.h"
#include "kernels/tune/tuning.h"
#include "runtime/base/env_system.h"
#include "tests/cuda/gemm_case.h"

/* Algorithms of products: the quickest is found, written down and made anew;
 * files that are of no use change nothing. */

enum { kStandins = 6 }; /* algorithms of the stand-in */

static const int64_t kSizes[4] = {12, 9, 16, 2};

/* A product that every algorithm of the stand-in can do. */
static gemm_case wide_case(weir_gemm_type type) {
  gemm_case c = gemm_case_make(type, kSizes, false, true, 3);
  c.desc.align_bytes = 16;
  c.before = 0;
  return c;
}

static weir_gemm_plan *plan_of(weir_device *d, const gemm_case *c,
                               size_t *bytes) {
  weir_error err = WEIR_ERROR_INIT;
  weir_gemm_plan *plan;
  assert_ok(d->vt->gemm->plan(d, &c->desc, &plan, bytes, &err), &err);
  return plan;
}

static void run_plan(weir_device *d, const gemm_case *c,
                     const weir_gemm_plan *plan, size_t bytes) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(gemm_case_run_plan(d, c, plan, bytes, &err), &err);
}

/* ---- The device */

static void the_quickest_is_taken_and_made_anew(void **state) {
  (void)state;
  weir_device *d = cuda_world_device(0, 0);
  for (int quickest = -1; quickest < kStandins; quickest++) {
    weir_error err = WEIR_ERROR_INIT;
    gemm_case c = wide_case(WEIR_GEMM_F32);
    size_t bytes, again;
    weir_gemm_plan *plan = plan_of(d, &c, &bytes);
    weir_gemm_choice choice;
    bool tuned = false, chosen = false;
    if (standin_lt != NULL) standin_lt->set_quickest(quickest);
    assert_ok(d->vt->gemm->tune(d, plan, &tuned, &choice, &bytes, &err), &err);
    assert_true(tuned);
    /* Without a clear winner the heuristic's first stays, which is 1. */
    if (standin_lt != NULL)
      assert_int_equal(choice.numbers[WEIR_GEMM_NUMBER_id],
                       quickest >= 0 ? quickest : 1);
    run_plan(d, &c, plan, bytes);
    d->vt->gemm->release(d, plan);
    plan = plan_of(d, &c, &again);
    assert_ok(d->vt->gemm->choose(d, plan, &choice, &chosen, &again, &err),
              &err);
    assert_true(chosen);
    assert_int_equal(again, bytes);
    run_plan(d, &c, plan, again);
    d->vt->gemm->release(d, plan);
  }
  weir_device_release(d);
  gemm_case_check_clean();
}

/* All types, epilogues and both ways of C: what is timed is what is run. */
static void every_product_can_be_tuned(void **state) {
  (void)state;
  weir_device *d = cuda_world_device(0, 0);
  for (int i = 0; i < WEIR_GEMM_TYPE_COUNT * WEIR_GEMM_EPILOGUE_COUNT * 4;
       i++) {
    weir_error err = WEIR_ERROR_INIT;
    const int64_t sizes[4] = {5, 3, i % 4 + 1, i % 3 + 1};
    gemm_case c = gemm_case_make((weir_gemm_type)(i % WEIR_GEMM_TYPE_COUNT),
                                 sizes, i % 2 != 0, i % 3 != 0, (uint64_t)i);
    weir_gemm_choice choice;
    size_t bytes;
    bool tuned;
    c.desc.epilogue = (weir_gemm_epilogue)(i / WEIR_GEMM_TYPE_COUNT %
                                           WEIR_GEMM_EPILOGUE_COUNT);
    c.desc.beta = i % 2;
    if (standin_lt != NULL) standin_lt->set_quickest(i % kStandins);
    weir_gemm_plan *plan = plan_of(d, &c, &bytes);
    assert_ok(d->vt->gemm->tune(d, plan, &tuned, &choice, &bytes, &err), &err);
    assert_true(tuned);
    run_plan(d, &c, plan, bytes);
    d->vt->gemm->release(d, plan);
  }
  weir_device_release(d);
  gemm_case_check_clean();
}

static void nothing_to_compute_is_not_tuned(void **state) {
  static const int64_t kNone[][4] = {{0, 3, 4, 1}, {3, 4, 0, 1}, {3, 4, 5, 0}};
  (void)state;
  weir_device *d = cuda_world_device(0, 0);
  for (size_t i = 0; i < 3; i++) {
    weir_error err = WEIR_ERROR_INIT;
    gemm_case c = gemm_case_make(WEIR_GEMM_F32, kNone[i], false, false, 1);
    weir_gemm_choice choice = {{0}};
    size_t bytes, after = 1;
    bool done = true;
    weir_gemm_plan *plan = plan_of(d, &c, &bytes);
    assert_ok(d->vt->gemm->tune(d, plan, &done, &choice, &after, &err), &err);
    assert_false(done);
    assert_int_equal(after, bytes);
    run_plan(d, &c, plan, bytes);
    d->vt->gemm->release(d, plan);
  }
  weir_device_release(d);
  gemm_case_check_clean();
}

/* A choice with one number of another value, of one algorithm. */
typedef struct wrong {
  weir_gemm_type type;
  int quickest, number;
  int64_t value;
} wrong;

static void choices_that_do_not_fit_are_refused(void **state) {
  static const wrong kWrong[] = {
      {WEIR_GEMM_F32, 0, WEIR_GEMM_NUMBER_id, 6},
      {WEIR_GEMM_F32, 0, WEIR_GEMM_NUMBER_id, INT64_C(1) << 33},
      {WEIR_GEMM_F32, 0, WEIR_GEMM_NUMBER_id, -1},
      {WEIR_GEMM_F32, 2, WEIR_GEMM_NUMBER_tile, 1},
      {WEIR_GEMM_F32, 2, WEIR_GEMM_NUMBER_stages, 99},
      {WEIR_GEMM_F32, 0, WEIR_GEMM_NUMBER_split_k, 2},
      {WEIR_GEMM_F32, 1, WEIR_GEMM_NUMBER_reduction, 0},
      {WEIR_GEMM_F32, 1, WEIR_GEMM_NUMBER_reduction, 8},
      {WEIR_GEMM_F32, 2, WEIR_GEMM_NUMBER_swizzling, 2},
      {WEIR_GEMM_F32, 2, WEIR_GEMM_NUMBER_custom, 4},
      {WEIR_GEMM_F32, 3, WEIR_GEMM_NUMBER_inner_shape, 0},
      {WEIR_GEMM_F32, 3, WEIR_GEMM_NUMBER_inner_shape, 65537},
      {WEIR_GEMM_F32, 4, WEIR_GEMM_NUMBER_cluster_shape, 9},
      /* Parts of 16 bits would be rounded twice. */
      {WEIR_GEMM_BF16, 3, WEIR_GEMM_NUMBER_reduction,
       CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE},
      {WEIR_GEMM_BF16, 3, WEIR_GEMM_NUMBER_reduction,
       CUBLASLT_REDUCTION_SCHEME_INPLACE}};
  (void)state;
  cuda_world_needs_standin("algorithms with known numbers");
  weir_device *d = cuda_world_device(0, 0);
  for (size_t i = 0; i < sizeof kWrong / sizeof kWrong[0]; i++) {
    const wrong *w = &kWrong[i];
    weir_error err = WEIR_ERROR_INIT;
    gemm_case c = wide_case(w->type);
    size_t bytes, after;
    weir_gemm_choice choice;
    bool tuned, chosen = true;
    standin_lt->set_quickest(w->quickest);
    weir_gemm_plan *plan = plan_of(d, &c, &bytes);
    assert_ok(d->vt->gemm->tune(d, plan, &tuned, &choice, &bytes, &err), &err);
    assert_int_equal(choice.numbers[WEIR_GEMM_NUMBER_id], w->quickest);
    choice.numbers[w->number] = w->value;
    assert_ok(d->vt->gemm->choose(d, plan, &choice, &chosen, &after, &err),
              &err);
    if (chosen) fail_msg("change %zu was taken", i);
    assert_int_equal(after, bytes);
    run_plan(d, &c, plan, bytes); /* as it was */
    d->vt->gemm->release(d, plan);
  }
  standin_lt->reset(); /* refusals are meant */
  weir_device_release(d);
  gemm_case_check_clean();
}

/* Algorithm 5 counts on 16 bytes. */
static void a_choice_needs_its_alignment(void **state) {
  (void)state;
  cuda_world_needs_standin("algorithms with known numbers");
  weir_device *d = cuda_world_device(0, 0);
  weir_error err = WEIR_ERROR_INIT;
  gemm_case c = wide_case(WEIR_GEMM_F32);
  size_t bytes;
  weir_gemm_choice choice;
  bool done;
  standin_lt->set_quickest(5);
  weir_gemm_plan *plan = plan_of(d, &c, &bytes);
  assert_ok(d->vt->gemm->tune(d, plan, &done, &choice, &bytes, &err), &err);
  assert_int_equal(choice.numbers[WEIR_GEMM_NUMBER_id], 5);
  d->vt->gemm->release(d, plan);
  c.desc.align_bytes = 4;
  c.before = 1;
  plan = plan_of(d, &c, &bytes);
  assert_ok(d->vt->gemm->choose(d, plan, &choice, &done, &bytes, &err), &err);
  assert_false(done);
  run_plan(d, &c, plan, bytes);
  d->vt->gemm->release(d, plan);
  weir_device_release(d);
  gemm_case_check_clean();
}

/* ---- Files */

typedef struct world {
  weir_counted_allocator memory;
  weir_env env;
  char folder[64], path[96];
  int warnings;
  weir_error last;
} world;

static void on_warning(void *self, const weir_error *warning) {
  world *w = self;
  w->warnings++;
  w->last = *warning;
}

static void begin(world *w) {
  *w = (world){.folder = "/tmp/weir-tune-XXXXXX"};
  assert_non_null(mkdtemp(w->folder));
  snprintf(w->path, sizeof w->path, "%s/file.yaml", w->folder);
  weir_counted_allocator_init(&w->memory, NULL);
  w->env = *weir_env_system();
  w->env.alloc = &w->memory.base;
}

static void end(const world *w) {
  unlink(w->path);
  assert_int_equal(rmdir(w->folder), 0); /* no temporary file stays */
  assert_int_equal(atomic_load(&w->memory.live_blocks), 0);
  gemm_case_check_clean();
}

static void put(const world *w, const char *text) {
  FILE *file = fopen(w->path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static void get(const world *w, char *text, size_t capacity) {
  FILE *file = fopen(w->path, "r");
  assert_non_null(file);
  size_t size = fread(text, 1, capacity - 1, file);
  text[size] = '\0';
  assert_int_equal(fclose(file), 0);
}

/* Plans and runs |c| as a program of one process would. */
static weir_status use(world *w, const gemm_case *c, weir_error *err) {
  const weir_tuning_options options = {w->path, on_warning, w};
  weir_device_name name = weir_device_name_any();
  weir_tuning *t = NULL;
  weir_device *d = NULL;
  weir_gemm_plan *plan = NULL;
  size_t bytes = 0;
  name.index = (weir_index_range){0, 0};
  weir_status s = weir_tuning_create(&w->env, &options, &t, err);
  if (s == WEIR_OK) s = cuda_world_create(&w->memory.base, &name, 0, &d, err);
  if (s == WEIR_OK) s = d->vt->gemm->plan(d, &c->desc, &plan, &bytes, err);
  if (s == WEIR_OK) s = weir_tuning_apply(t, d, &c->desc, plan, &bytes, err);
  if (s == WEIR_OK) s = gemm_case_run_plan(d, c, plan, bytes, err);
  if (plan != NULL) d->vt->gemm->release(d, plan);
  weir_device_release(d);
  weir_tuning_release(t);
  return s;
}

/* Products that the stand-in did for |use|. */
static uint64_t count_products(world *w, const gemm_case *c) {
  weir_error err = WEIR_ERROR_INIT;
  uint64_t before = standin_lt->counts().products;
  assert_ok(use(w, c, &err), &err);
  return standin_lt->counts().products - before;
}

static void a_file_is_made_and_read(void **state) {
  (void)state;
  cuda_world_needs_standin("products that are counted");
  world w;
  begin(&w);
  gemm_case c = wide_case(WEIR_GEMM_F32), other = c;
  char text[4096], again[4096];
  other.desc.epilogue = WEIR_GEMM_RELU_BIAS;
  standin_lt->set_quickest(2);
  assert_true(count_products(&w, &c) > 1);
  get(&w, text, sizeof text);
  assert_non_null(strstr(text, "name: 'stand-in 0'"));
  assert_non_null(strstr(text, "library: 'cuBLASLt 13.1.0'"));
  assert_non_null(strstr(text, "m: 12, n: 9, k: 16, batch: 2"));
  assert_non_null(strstr(text, "id: 2, tile: 20"));
  standin_lt->set_quickest(3);
  assert_int_equal(count_products(&w, &c), 1);
  get(&w, again, sizeof again);
  assert_string_equal(again, text);
  assert_true(count_products(&w, &other) > 1); /* one more */
  get(&w, again, sizeof again);
  assert_memory_equal(again, text, strlen(text));
  assert_non_null(strstr(again, "epilogue: relu_bias"));
  assert_int_equal(w.warnings, 0);
  end(&w);
}

/* A second process has timed a product while this one has its own. */
static void two_processes_share_a_file(void **state) {
  (void)state;
  cuda_world_needs_standin("products that are counted");
  world w;
  begin(&w);
  const weir_tuning_options options = {w.path, on_warning, &w};
  weir_error err = WEIR_ERROR_INIT;
  gemm_case cases[] = {wide_case(WEIR_GEMM_F32), wide_case(WEIR_GEMM_F64),
                       wide_case(WEIR_GEMM_F32_TF32)};
  weir_tuning *t[2];
  weir_device *d = cuda_world_device(0, 0);
  char text[4096];
  for (int i = 0; i < 2; i++)
    assert_ok(weir_tuning_create(&w.env, &options, &t[i], &err), &err);
  for (int i = 0; i < 4; i++) { /* both read first, then add in turns */
    size_t bytes;
    const gemm_case *c = &cases[i > 1 ? i - 1 : i];
    uint64_t before = standin_lt->counts().products;
    weir_gemm_plan *plan = plan_of(d, c, &bytes);
    assert_ok(weir_tuning_apply(t[i % 2], d, &c->desc, plan, &bytes, &err),
              &err);
    assert_int_equal(standin_lt->counts().products == before, i == 2);
    d->vt->gemm->release(d, plan);
  }
  get(&w, text, sizeof text);
  assert_non_null(strstr(text, "type: f32,"));
  assert_non_null(strstr(text, "type: f64,"));
  assert_non_null(strstr(text, "type: tf32,"));
  for (int i = 0; i < 2; i++) weir_tuning_release(t[i]);
  weir_device_release(d);
  assert_int_equal(w.warnings, 0);
  end(&w);
}

/* |from| in the file becomes |to|. */
static void change(const world *w, const char *from, const char *to) {
  char text[4096], changed[4096];
  get(w, text, sizeof text);
  char *at = strstr(text, from);
  assert_non_null(at);
  snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to,
           at + strlen(from));
  put(w, changed);
}

static void files_of_no_use_change_nothing(void **state) {
  static const struct {
    const char *from, *to, *id, *says;
    unsigned line, col; /* 0: none */
  } kRows[] = {
      {"stand-in 0", "another", "W6006", "is of another with cuBLASLt", 0, 0},
      {"13.1.0", "13.2.0", "W6006", "is of stand-in 0 with cuBLASLt 13.2.0", 0,
       0},
      {"tuned: 1", "tuned: 2", "W6006", "expected version 1", 2, 8},
      {"tuned: 1", "other: 1", "W6006", "expected a key tuned", 2, 1},
      {"gpu:", "gpu: [1]\nmore:", "W6006", "expected a key of such", 4, 1},
      {"type: f32", "type: f31", "W6006", "expected f32, tf32", 7, 14},
      {"m: 12", "m: twelve", "W6006", "expected an integer", 7, 38},
      {"m: 12", "m: -1", "W6006", "expected an integer", 7, 38},
      {"m: 12, ", "", "W6006", "expected a key m", 7, 7},
      {"m: 12", "o: 12", "W6006", "expected a key of such", 7, 35},
      {"m: 12", "m: 12, m: 13", "W1006", "", 7, 42},
      {"    - {", "\t- {", "W1001", "", 0, 0},
      {"products:", "products: 3\n  list:", "W6006", "a key of such", 7, 3},
      {"id: 2,", "id: 0,", "W6006", "does not take", 0, 0},
      {"tile: 20", "tile: 99999999999", "W6006", "does not take", 0, 0}};
  (void)state;
  cuda_world_needs_standin("algorithms with known numbers");
  for (size_t i = 0; i < sizeof kRows / sizeof kRows[0]; i++) {
    world w;
    char text[4096], again[4096];
    begin(&w);
    gemm_case c = wide_case(WEIR_GEMM_F32);
    standin_lt->set_quickest(2);
    assert_true(count_products(&w, &c) > 1);
    change(&w, kRows[i].from, kRows[i].to);
    get(&w, text, sizeof text);
    assert_int_equal(count_products(&w, &c), 1); /* not timed */
    if (w.warnings != 1) fail_msg("row %zu: %d warnings", i, w.warnings);
    if (strcmp(w.last.id, kRows[i].id) != 0)
      fail_msg("row %zu: %s %s", i, w.last.id, w.last.message);
    if (strstr(w.last.message, kRows[i].says) == NULL ||
        (kRows[i].line != 0 &&
         (w.last.line != kRows[i].line || w.last.col != kRows[i].col)))
      fail_msg("row %zu: %u:%u: %s", i, w.last.line, w.last.col,
               w.last.message);
    get(&w, again, sizeof again);
    assert_string_equal(again, text); /* nor written over */
    standin_lt->reset();
    end(&w);
  }
}

static void files_that_cannot_be_used_fail(void **state) {
  (void)state;
  cuda_world_needs_standin("the same calls on a real one");
  world w;
  weir_error err = WEIR_ERROR_INIT;
  begin(&w);
  gemm_case c = wide_case(WEIR_GEMM_F32);
  char path[96];
  memcpy(path, w.path, sizeof path);
  snprintf(w.path, sizeof w.path, "%s", w.folder);
  assert_error(use(&w, &c, &err), &err, "W4002");
  snprintf(w.path, sizeof w.path, "%s/none/file", w.folder);
  assert_error(use(&w, &c, &err), &err, "W5009");
  memcpy(w.path, path, sizeof path);
  end(&w);
}

/* ---- Faults */

static void every_call_fails_once(void **state) {
  (void)state;
  cuda_world_needs_standin("calls that fail when they are told to");
  enum { CUDA, LOST, LT, WAYS };
  gemm_case c = wide_case(WEIR_GEMM_F32);
  c.desc.epilogue = WEIR_GEMM_BIAS;
  for (int way = 0; way < WAYS; way++) {
    bool more = true;
    unsigned failed = 0, untimed = 0;
    for (uint64_t k = 1; more; k += way == LT ? 2 : 11) {
      world w;
      weir_error err = WEIR_ERROR_INIT;
      begin(&w);
      standin_lt->set_quickest(3);
      if (way == CUDA) standin->fail_at(k, cudaErrorInvalidValue);
      if (way == LOST) standin->lose_at(k, cudaErrorIllegalAddress);
      if (way == LT) standin_lt->fail_at(k, CUBLAS_STATUS_EXECUTION_FAILED);
      weir_status s = use(&w, &c, &err);
      more = k <=
             (way == LT ? standin_lt->counts().calls : standin->counts().calls);
      failed += s != WEIR_OK;
      untimed += w.warnings > 0;
      if (s != WEIR_OK && way == LOST) assert_string_equal(err.id, "W6004");
      standin->fail_at(0, 0);
      standin->lose_at(0, 0);
      standin_lt->fail_at(0, 0);
      if (way == LOST) standin->reset();
      end(&w);
    }
    assert_true(failed > 5);
    assert_int_equal(untimed > 5, way != LOST);
  }
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  cuda_world_needs_standin("many lives of a device");
  gemm_case c = wide_case(WEIR_GEMM_F32), other = wide_case(WEIR_GEMM_F64);
  bool more = true;
  unsigned failed = 0;
  for (uint64_t k = 1; more; k++) {
    world w;
    weir_error err = WEIR_ERROR_INIT;
    begin(&w);
    assert_ok(use(&w, &other, &err), &err); /* a file to be read */
    w.memory.fail_at = atomic_load(&w.memory.calls) + k;
    weir_status s = use(&w, &c, &err);
    more = atomic_load(&w.memory.calls) >= w.memory.fail_at;
    if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
    failed += s != WEIR_OK;
    end(&w);
  }
  assert_true(failed > 10);
}

/* A product that leaves no room for the operands is not timed. */
static void without_memory_the_heuristic_chooses(void **state) {
  (void)state;
  cuda_world_needs_standin("a GPU with little memory");
  world w;
  weir_error err = WEIR_ERROR_INIT;
  begin(&w);
  const weir_tuning_options options = {w.path, on_warning, &w};
  gemm_case c = wide_case(WEIR_GEMM_F32);
  weir_tuning *t;
  size_t bytes;
  weir_device *d = cuda_world_device(0, 64);
  weir_gemm_plan *plan = plan_of(d, &c, &bytes);
  assert_ok(weir_tuning_create(&w.env, &options, &t, &err), &err);
  assert_ok(weir_tuning_apply(t, d, &c.desc, plan, &bytes, &err), &err);
  assert_int_equal(w.warnings, 1);
  assert_non_null(strstr(w.last.message, "was not timed"));
  assert_int_not_equal(access(w.path, F_OK), 0);
  d->vt->gemm->release(d, plan);
  weir_tuning_release(t);
  weir_device_release(d);
  end(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_quickest_is_taken_and_made_anew),
      cmocka_unit_test(every_product_can_be_tuned),
      cmocka_unit_test(nothing_to_compute_is_not_tuned),
      cmocka_unit_test(choices_that_do_not_fit_are_refused),
      cmocka_unit_test(a_choice_needs_its_alignment),
      cmocka_unit_test(a_file_is_made_and_read),
      cmocka_unit_test(two_processes_share_a_file),
      cmocka_unit_test(files_of_no_use_change_nothing),
      cmocka_unit_test(files_that_cannot_be_used_fail),
      cmocka_unit_test(every_call_fails_once),
      cmocka_unit_test(every_allocation_fails_once),
      cmocka_unit_test(without_memory_the_heuristic_chooses),
  };
  return cmocka_run_group_tests(tests, gemm_case_open, NULL);
}
