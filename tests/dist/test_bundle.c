/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placement/carry/carry_plan.h"
#include "placement/parts/hashes.h"
#include "runtime/base/env_system.h"
#include "runtime/base/mix.h"
#include "runtime/dist/bundle/rebuild.h"
#include "runtime/exec/compile/compile_needs.h"
#include "runtime/exec/session/prepare.h"
#include "runtime/graph/goal.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/support.h"

/* A driver's session as bytes: from them alone, without a file, a task makes a
 * session with the same cut, plan and partition. Damaged bytes are errors. */

static weir_status no_file(void *self, const char *root, const char *path,
                           size_t limit, bool map, weir_file *out,
                           weir_error *err) {
  (void)self, (void)root, (void)limit, (void)map, (void)out;
  return weir_fail(err, WEIR_W4001, NULL, "%.100s: there are no files", path);
}

static void no_close(void *self, weir_file *file) {
  (void)self, (void)file;
}

/* The driver's side. */
typedef struct driver {
  exec_world world;
  weir_env env; /* with files */
  weir_pool *pool;
  weir_graph *graph;
  weir_goal *goal;
  weir_placing *placing;
  weir_bundle bundle;
  weir_strbuf bytes, plan;
  weir_plan_hashes hashes;
  weir_error err;
} driver;

typedef struct fed {
  weir_exec_feed feeds[8];
  uint32_t count;
} fed;

/* All inputs, as tensors; open sizes are 4. */
static void feed_all(const weir_allocator *alloc, const weir_graph *g,
                     fed *out) {
  weir_error err = WEIR_ERROR_INIT;
  out->count = 0;
  for (uint32_t i = 0; i < g->input_count; i++) {
    weir_shape shape = *g->values[g->inputs[i].value].shape;
    for (int32_t d = 0; d < shape.rank; d++)
      if (!weir_dim_known(shape.dims[d])) shape.dims[d] = weir_dim_of(4);
    weir_exec_feed *f = &out->feeds[out->count++];
    f->value = g->inputs[i].value;
    assert_ok(weir_tensor_create_shaped(alloc, g->values[f->value].dtype,
                                        &shape, &f->tensor, &err),
              &err);
  }
}

static void drop_all(fed *f) {
  for (uint32_t i = 0; i < f->count; i++) weir_tensor_unref(f->feeds[i].tensor);
}

/* The program of |goal|: its cut placed by |bytes|, or anew. */
static weir_status hashes_of(const weir_env *env, weir_pool *pool,
                             const weir_goal *goal, const weir_graph *graph,
                             const weir_placing *placing, weir_strbuf *plan,
                             weir_plan_hashes *out, weir_error *err) {
  weir_exec_session *session = NULL;
  weir_exec_fetch fetches[32] = {{0}};
  weir_cut *cut = NULL;
  weir_plan *made = NULL;
  fed f = {.count = 0};
  weir_session_options options = {.placing = placing};
  weir_status s =
      weir_exec_session_create(env, pool, graph, &options, &session, err);
  for (uint32_t k = 0; k < goal->fetch_count; k++)
    fetches[k].value = goal->fetches[k];
  weir_exec_request request = {.fetches = fetches,
                               .fetch_count = goal->fetch_count,
                               .targets = goal->targets,
                               .target_count = goal->target_count};
  if (s == WEIR_OK && graph->mesh != NULL) { /* ids of the lowered graph */
    const weir_graph *own = weir_session_graph(session);
    for (uint32_t k = 0; k < goal->fetch_count; k++)
      fetches[k].value = own->outputs[k].value;
    request.target_count = 0;
  }
  if (s == WEIR_OK) {
    feed_all(weir_allocator_system(), weir_session_graph(session), &f);
    request.feeds = f.feeds;
    request.feed_count = f.count;
    s = weir_session_cut_of(session, &request, &cut, err);
  }
  bool given = plan->size > 0;
  weir_bytes bytes = {(const uint8_t *)plan->data, plan->size};
  if (s == WEIR_OK)
    s = given ? weir_plan_unpack(placing, cut->graph, bytes, &made, err)
              : weir_placing_plan(placing, cut->graph, &made, err);
  if (s == WEIR_OK) s = weir_plan_hashes_get(made, out, err);
  if (s == WEIR_OK && !given) s = weir_plan_pack(made, plan, err);
  weir_plan_unref(made);
  weir_cut_release(cut);
  drop_all(&f);
  weir_exec_session_release(session);
  return s;
}

/* The built-in ops with one that a program has registered, of that signature;
 * one at a time. */
static const weir_registry *with_op(const char *signature) {
  static weir_op_def op;
  static const weir_op_def *ops[1] = {&op};
  static weir_registry registry;
  op = *weir_registry_find_op(weir_builtin_registry(), WEIR_SV_LIT("relu"));
  op.name = "own";
  op.signature = signature;
  registry = (weir_registry){
      .ops = ops, .op_count = 1, .next = weir_builtin_registry()};
  return &registry;
}

static void open_driver(driver *d, const char *name, bool train) {
  char path[1024];
  snprintf(path, sizeof path, "%s/graphs/%s.weir.yaml",
           getenv("WEIR_SOURCE_ROOT"), name);
  *d = (driver){.err = WEIR_ERROR_INIT};
  exec_world_init(&d->world);
  d->env = *weir_env_system();
  d->env.alloc = &d->world.memory.base;
  d->pool = exec_pool(&d->world, 1);
  weir_load_options load = {.registry = with_op("version 1"),
                            .keep_sources = true};
  assert_ok(weir_graph_load(&d->env, path, &load, &d->graph, &d->err), &d->err);
  assert_ok(weir_goal_create(d->graph, !train, &d->goal, &d->err), &d->err);
  weir_plan *plan = NULL;
  weir_place_request request = {
      .graph = d->graph,
      .cluster = "ps=1,worker=2",
      .inference = !train,
      .options = {.strictness = WEIR_PLACE_WARN, .portfolio_only = true}};
  assert_ok(
      weir_placing_create(d->env.alloc, &request, &d->placing, &plan, &d->err),
      &d->err);
  weir_plan_unref(plan);
  weir_strbuf_init(&d->bytes, d->env.alloc);
  weir_strbuf_init(&d->plan, d->env.alloc);
  d->bundle = (weir_bundle){.sources = d->graph->sources,
                            .train = train,
                            .placing = d->placing,
                            .session_seed = 5};
  assert_ok(hashes_of(&d->env, d->pool, d->goal, d->goal->graph, d->placing,
                      &d->plan, &d->hashes, &d->err),
            &d->err);
  weir_exec_session *session = NULL;
  assert_ok(weir_exec_session_create(&d->env, d->pool, d->goal->graph, NULL,
                                     &session, &d->err),
            &d->err);
  weir_bundle_blobs none = {.alloc = NULL};
  assert_ok(weir_bundle_pack(d->env.alloc, &d->bundle, &none,
                             weir_session_graph(session), &d->bytes, &d->err),
            &d->err);
  weir_exec_session_release(session);
}

static void close_driver(driver *d) {
  weir_strbuf_release(&d->bytes);
  weir_strbuf_release(&d->plan);
  weir_placing_unref(d->placing);
  weir_goal_release(d->goal);
  weir_graph_unref(d->graph);
  weir_pool_release(d->pool);
  exec_world_check_empty(&d->world);
}

static weir_bytes bytes_of(const weir_strbuf *s) {
  return (weir_bytes){(const uint8_t *)s->data, s->size};
}

/* The task's side, in |env| without files; releases all again. */
static weir_status rebuild(const driver *d, const weir_env *env,
                           weir_bytes bundle, weir_plan_hashes *out,
                           weir_error *err) {
  weir_unpacked_bundle b;
  weir_rebuilt r = {.loaded = NULL};
  weir_strbuf plan = d->plan; /* lent: not empty, so only read */
  weir_status s = weir_bundle_unpack(env->alloc, bundle, &b, err);
  if (s == WEIR_OK) assert_int_equal(b.missing_count, 0);
  if (s == WEIR_OK)
    s = weir_bundle_rebuild(env, with_op("version 1"), &b, &r, err);
  if (s == WEIR_OK)
    s = hashes_of(env, d->pool, d->goal, r.graph, r.placing, &plan, out, err);
  weir_rebuilt_release(&r);
  weir_unpacked_bundle_release(&b);
  return s;
}

static void check_graph(const char *name, bool train) {
  driver d;
  weir_plan_hashes got;
  weir_fs fs = {.read = no_file, .close = no_close};
  open_driver(&d, name, train);
  weir_env env = d.env;
  env.fs = &fs;
  weir_status s = rebuild(&d, &env, bytes_of(&d.bytes), &got, &d.err);
  if (s != WEIR_OK) fail_msg("%s: %s %s", name, d.err.id, d.err.message);
  const char *differs = weir_plan_hashes_differ(&d.hashes, &got);
  if (differs != NULL) fail_msg("%s: %s differs", name, differs);
  close_driver(&d);
}

static void a_session_is_made_from_bytes_alone(void **state) {
  (void)state;
  check_graph("mlp", false);
  check_graph("lenet", false); /* imports std/nn */
  check_graph("mlp_mesh", false);
  check_graph("mlp_train", true);
  check_graph("lenet_train", true);
}

static void ops_of_the_driver_are_compared(void **state) {
  (void)state;
  driver d;
  open_driver(&d, "mlp", false);
  const struct {
    const weir_registry *registry;
    const char *says;
  } kCases[] = {
      {weir_builtin_registry(), "the op own, and this task has not"},
      {with_op("version 2"), "is `version 1`, of this task `version 2`"},
  };
  for (int i = 0; i < 2; i++) {
    weir_unpacked_bundle b;
    weir_rebuilt r;
    weir_error err = WEIR_ERROR_INIT;
    assert_ok(weir_bundle_unpack(d.env.alloc, bytes_of(&d.bytes), &b, &err),
              &err);
    assert_int_not_equal(
        weir_bundle_rebuild(&d.env, kCases[i].registry, &b, &r, &err), WEIR_OK);
    assert_string_equal(err.id, "W7085");
    assert_non_null(strstr(err.message, kCases[i].says));
    weir_rebuilt_release(&r);
    weir_unpacked_bundle_release(&b);
  }
  close_driver(&d);
}

/* ---- Blobs */

/* A driver with one file of its own, of |size| bytes. */
static void with_file(driver *d, weir_sources *sources, weir_source_file *file,
                      size_t size, weir_strbuf *out) {
  *sources = *d->graph->sources;
  uint8_t *data = calloc(1, size);
  assert_non_null(data);
  data[size - 1] = 7;
  *file = (weir_source_file){
      true, WEIR_SV_LIT("a"), WEIR_SV_LIT("b"), {data, size}};
  sources->files = file;
  sources->file_count = 1;
  weir_bundle b = d->bundle;
  b.sources = sources;
  weir_bundle_blobs blobs;
  assert_ok(weir_bundle_blobs_make(d->env.alloc, b.sources, &blobs, &d->err),
            &d->err);
  assert_ok(weir_bundle_pack(d->env.alloc, &b, &blobs, d->graph, out, &d->err),
            &d->err);
  weir_bundle_blobs_release(&blobs);
}

static void large_files_are_blobs(void **state) {
  (void)state;
  driver d;
  weir_sources sources;
  weir_source_file file;
  weir_unpacked_bundle b;
  open_driver(&d, "mlp", false);
  for (int large = 0; large < 2; large++) {
    size_t size = WEIR_BUNDLE_INLINE_BYTES + (size_t)large;
    weir_strbuf out;
    weir_strbuf_init(&out, d.env.alloc);
    with_file(&d, &sources, &file, size, &out);
    assert_int_equal(out.size > size, !large);
    assert_ok(weir_bundle_unpack(d.env.alloc, bytes_of(&out), &b, &d.err),
              &d.err);
    assert_int_equal(b.missing_count, large);
    assert_true(weir_sv_is(b.sources.files[0].path, "b"));
    if (large) {
      assert_int_equal(weir_blob_size(b.missing[0].names[0]), size);
      weir_bytes wrong = {file.bytes.data, size - 1};
      assert_error(weir_bundle_supply(&b, 0, wrong, &d.err), &d.err, "W7051");
      d.err = (weir_error)WEIR_ERROR_INIT;
      assert_ok(weir_bundle_supply(&b, 0, file.bytes, &d.err), &d.err);
    }
    assert_int_equal(b.sources.files[0].bytes.size, size);
    assert_memory_equal(b.sources.files[0].bytes.data, file.bytes.data, size);
    weir_unpacked_bundle_release(&b);
    weir_strbuf_release(&out);
    free((void *)(uintptr_t)file.bytes.data);
  }
  close_driver(&d);
}

/* ---- Damage */

static void copy_damaged(uint8_t *to, weir_bytes from, uint64_t *seed) {
  memcpy(to, from.data, from.size);
  uint32_t changes = 1 + weir_mix_below(seed, 3);
  for (uint32_t i = 0; i < changes; i++) {
    uint32_t at = weir_mix_below(seed, (uint32_t)from.size);
    to[at] = weir_mix_below(seed, 2) ? (uint8_t)weir_mix_below(seed, 256)
                                     : (uint8_t)(to[at] ^ 0x80);
  }
}

/* The result is an error or a session; never a crash. */
static void damage_is_an_error(void **state) {
  (void)state;
  driver d;
  weir_fs fs = {.read = no_file, .close = no_close};
  uint64_t seed = 11;
  uint32_t refused = 0;
  open_driver(&d, "mlp_train", true);
  weir_env env = d.env;
  env.fs = &fs;
  weir_bytes good = bytes_of(&d.bytes);
  uint8_t *bad = malloc(good.size);
  assert_non_null(bad);
  for (int i = 0; i < 300; i++) {
    weir_unpacked_bundle b;
    weir_rebuilt r = {.loaded = NULL};
    weir_error err = WEIR_ERROR_INIT;
    copy_damaged(bad, good, &seed);
    size_t size =
        i % 3 == 0 ? weir_mix_below(&seed, (uint32_t)good.size) : good.size;
    weir_status s =
        weir_bundle_unpack(env.alloc, (weir_bytes){bad, size}, &b, &err);
    if (s == WEIR_OK && b.missing_count == 0)
      s = weir_bundle_rebuild(&env, with_op("version 1"), &b, &r, &err);
    if (i % 3 == 0) assert_int_not_equal(s, WEIR_OK);
    refused += s != WEIR_OK;
    if (s != WEIR_OK) assert_int_not_equal(err.id[0], 0);
    weir_rebuilt_release(&r);
    weir_unpacked_bundle_release(&b);
  }
  assert_true(refused > 100);
  free(bad);
  close_driver(&d);
}

/* A plan is checked against its graph. */
static void damaged_plans_are_errors(void **state) {
  (void)state;
  driver d;
  uint64_t seed = 3;
  uint32_t refused = 0;
  open_driver(&d, "mlp_train", true);
  weir_strbuf whole = d.plan;
  uint8_t *bad = malloc(whole.size);
  assert_non_null(bad);
  for (int i = 0; i < 60; i++) {
    weir_plan_hashes got;
    weir_error err = WEIR_ERROR_INIT;
    copy_damaged(bad, bytes_of(&whole), &seed);
    weir_strbuf plan = whole;
    plan.data = (char *)bad;
    if (i % 3 == 0) plan.size = 1 + weir_mix_below(&seed, (uint32_t)whole.size);
    weir_status s = hashes_of(&d.env, d.pool, d.goal, d.goal->graph, d.placing,
                              &plan, &got, &err);
    refused += s != WEIR_OK;
    if (s != WEIR_OK) assert_int_not_equal(err.id[0], 0);
  }
  assert_true(refused > 20);
  free(bad);
  close_driver(&d);
}

static void memory_may_run_out(void **state) {
  (void)state;
  driver d;
  weir_fs fs = {.read = no_file, .close = no_close};
  open_driver(&d, "mlp_train", true);
  weir_env env = d.env;
  env.fs = &fs;
  for (int forever = 0; forever < 2; forever++) {
    bool passed = false;
    for (uint64_t k = 1; !passed; k += k < 40 ? 1 : k / 12) {
      weir_counted_allocator memory;
      weir_unpacked_bundle b;
      weir_rebuilt r = {.loaded = NULL};
      weir_error err = WEIR_ERROR_INIT;
      weir_counted_allocator_init(&memory, NULL);
      memory.fail_at = k;
      memory.fail_forever = forever != 0;
      env.alloc = &memory.base;
      weir_status s =
          weir_bundle_unpack(env.alloc, bytes_of(&d.bytes), &b, &err);
      if (s == WEIR_OK)
        s = weir_bundle_rebuild(&env, with_op("version 1"), &b, &r, &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      passed = s == WEIR_OK;
      weir_rebuilt_release(&r);
      weir_unpacked_bundle_release(&b);
      assert_int_equal(atomic_load(&memory.live_blocks), 0);
    }
  }
  close_driver(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_session_is_made_from_bytes_alone),
      cmocka_unit_test(ops_of_the_driver_are_compared),
      cmocka_unit_test(large_files_are_blobs),
      cmocka_unit_test(damage_is_an_error),
      cmocka_unit_test(damaged_plans_are_errors),
      cmocka_unit_test(memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
