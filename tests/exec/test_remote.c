/* SPDX-License-Identifier: Apache-2.0
 * Sessions whose programs run elsewhere. The remote of these tests is a second
 * session in this process, without a plan: values, failures, variables, refused
 * steps and meshes must be those of a session alone. */
#include "runtime/exec/session/remote.h"

#include <string.h>

#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "tests/exec/generated.h"
#include "tests/exec/support.h"

/* ---- The remote */

struct weir_remote_program {
  weir_value_id *feeds, *fetches;
  weir_node_id *targets;
  weir_shape *shapes;
  uint32_t feed_count, fetch_count, target_count;
  bool writes, open; /* a run awaits its decision */
  weir_remote_step step;
};

typedef struct twin {
  weir_remote base;
  const weir_env *env;
  weir_pool *pool;
  weir_exec_session *session;
  const weir_graph *graph;
  bool lost; /* runs fail as a whole */
  int prepared, forgotten, runs, commits, aborts;
} twin;

static void *copy(const weir_env *env, const void *from, size_t count,
                  size_t bytes) {
  void *to = weir_alloc_array(env->alloc, count + 1, bytes);
  if (to != NULL && count > 0) memcpy(to, from, count * bytes);
  return to;
}

static void twin_forget(weir_remote *remote, weir_remote_program *p) {
  twin *t = (twin *)remote;
  assert_false(p->open);
  t->forgotten++;
  weir_free(t->env->alloc, p->feeds);
  weir_free(t->env->alloc, p->fetches);
  weir_free(t->env->alloc, p->targets);
  weir_free(t->env->alloc, p->shapes);
  weir_free(t->env->alloc, p);
}

static bool assigns(const weir_graph *g) {
  for (weir_node_id n = 0; n < g->node_count; n++)
    if (g->nodes[n].op->instr == WEIR_INSTR_VAR_COMMIT) return true;
  return false;
}

static weir_status twin_prepare(weir_remote *remote,
                                const weir_remote_request *r,
                                weir_remote_program **out, bool *out_writes,
                                weir_error *err) {
  twin *t = (twin *)remote;
  assert_non_null(r->plan);
  *out = NULL;
  if (t->session == NULL) {
    WEIR_TRY(weir_exec_session_create(t->env, t->pool, r->graph, NULL,
                                      &t->session, err));
    t->graph = weir_graph_ref(r->graph);
  }
  weir_remote_program *p = weir_alloc_array(t->env->alloc, 1, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  t->prepared++;
  *p = (weir_remote_program){
      .feeds = copy(t->env, r->feeds, r->feed_count, sizeof *p->feeds),
      .shapes = copy(t->env, r->feed_shapes, r->feed_count, sizeof *p->shapes),
      .fetches = copy(t->env, r->fetches, r->fetch_count, sizeof *p->fetches),
      .targets = copy(t->env, r->targets, r->target_count, sizeof *p->targets),
      .feed_count = r->feed_count,
      .fetch_count = r->fetch_count,
      .target_count = r->target_count,
      .writes = assigns(r->cut->graph)};
  if (p->feeds == NULL || p->shapes == NULL || p->fetches == NULL ||
      p->targets == NULL) {
    twin_forget(remote, p);
    return weir_fail_memory(err, 0);
  }
  *out = p;
  *out_writes = p->writes;
  return WEIR_OK;
}

static weir_status refuse(void *self, weir_error *err) {
  (void)self;
  return weir_fail(err, WEIR_W5005, NULL, "not yet");
}

enum { MOST = 8 };

/* Runs on the twin; without |commit| no variable changes. */
static weir_status run_twin(twin *t, const weir_remote_program *p, bool commit,
                            const weir_remote_step *step,
                            weir_exec_fetch *fetches, weir_error *err) {
  const weir_graph *g = t->graph;
  weir_exec_feed feeds[MOST];
  weir_run_options options = *step->options;
  weir_status s = WEIR_OK;
  uint32_t fed = 0;
  for (; s == WEIR_OK && fed < p->feed_count; fed++) {
    weir_tensor_memory memory = {
        g->values[p->feeds[fed]].dtype, &p->shapes[fed],
        (void *)(uintptr_t)step->feeds[fed], NULL, NULL};
    feeds[fed].value = p->feeds[fed];
    s = weir_tensor_wrap(t->env->alloc, &memory, &feeds[fed].tensor, err);
    if (s != WEIR_OK) break;
  }
  for (uint32_t k = 0; k < p->fetch_count; k++)
    fetches[k].value = p->fetches[k];
  options.accept = commit ? NULL : refuse;
  weir_exec_request request = {.feeds = feeds,
                               .feed_count = p->feed_count,
                               .fetches = fetches,
                               .fetch_count = p->fetch_count,
                               .targets = p->targets,
                               .target_count = p->target_count,
                               .options = &options};
  if (s == WEIR_OK) s = weir_exec_run(t->session, &request, err);
  for (uint32_t i = 0; i < fed; i++) weir_tensor_unref(feeds[i].tensor);
  return s;
}

/* A program that writes is run without an effect here, and once more with one
 * when it is decided on. */
static weir_status twin_run(weir_remote *remote, weir_remote_program *p,
                            const weir_remote_step *step, weir_error *err) {
  twin *t = (twin *)remote;
  weir_exec_fetch fetches[MOST] = {{0}};
  assert_false(p->open);
  t->runs++;
  if (t->lost) {
    for (uint32_t k = 0; k < p->fetch_count; k++)
      step->outcomes[k].status =
          weir_fail(&step->outcomes[k].error, WEIR_W7001, NULL, "it is gone");
    return weir_fail(err, WEIR_W7001, NULL, "it is gone");
  }
  for (uint32_t k = 0; k < p->fetch_count; k++)
    fetches[k].error = &step->outcomes[k].error;
  weir_status s = run_twin(t, p, !p->writes, step, fetches, err);
  for (uint32_t k = 0; k < p->fetch_count; k++) {
    step->outcomes[k].status = fetches[k].status;
    if (fetches[k].tensor == NULL && fetches[k].status == WEIR_OK)
      step->outcomes[k].status = s;
    if (fetches[k].tensor != NULL)
      memcpy(step->fetches[k], fetches[k].tensor->data,
             fetches[k].tensor->bytes);
    weir_tensor_unref(fetches[k].tensor);
  }
  if (!p->writes || s != WEIR_CANCELLED) return s;
  p->open = true;
  p->step = *step;
  return WEIR_OK;
}

static weir_status twin_decide(weir_remote *remote, weir_remote_program *p,
                               bool commit, weir_error *err) {
  twin *t = (twin *)remote;
  weir_exec_fetch fetches[MOST] = {{0}};
  assert_true(p->open);
  p->open = false;
  t->commits += commit;
  t->aborts += !commit;
  if (!commit) return WEIR_OK;
  weir_status s = run_twin(t, p, true, &p->step, fetches, err);
  for (uint32_t k = 0; k < p->fetch_count; k++)
    weir_tensor_unref(fetches[k].tensor);
  return s;
}

static weir_status twin_get(weir_remote *remote, const weir_node_id *nodes,
                            void *const *data, uint32_t count,
                            weir_error *err) {
  twin *t = (twin *)remote;
  for (uint32_t i = 0; i < count; i++) {
    weir_tensor *value = NULL;
    WEIR_TRY(weir_exec_variable_get(t->session, nodes[i], &value, err));
    memcpy(data[i], value->data, value->bytes);
    weir_tensor_unref(value);
  }
  return WEIR_OK;
}

static weir_status twin_set(weir_remote *remote, const weir_node_id *nodes,
                            const void *const *data, uint32_t count,
                            weir_error *err) {
  twin *t = (twin *)remote;
  for (uint32_t i = 0; i < count; i++) {
    const weir_graph *g = t->graph;
    const weir_value *v = &g->values[g->nodes[nodes[i]].first_output];
    weir_tensor_memory memory = {v->dtype, v->shape, (void *)(uintptr_t)data[i],
                                 NULL, NULL};
    weir_tensor *value = NULL;
    WEIR_TRY(weir_tensor_wrap(t->env->alloc, &memory, &value, err));
    weir_status s = weir_exec_variable_set(t->session, nodes[i], value, err);
    weir_tensor_unref(value);
    if (s != WEIR_OK) return s;
  }
  return WEIR_OK;
}

static const weir_remote_vtable kTwin = {twin_prepare, twin_forget, twin_run,
                                         twin_decide,  twin_get,    twin_set};

/* ---- A session alone and one with a remote, of the same graph */

typedef struct scene {
  exec_world world;
  weir_pool *pool;
  weir_graph *graph;
  weir_placing *placing;
  weir_exec_session *alone, *session;
  twin twin;
  weir_error err;
} scene;

static weir_status make_sessions(scene *s) {
  weir_session_options options = {.placing = s->placing};
  weir_error *err = &s->err;
  s->twin = (twin){.base = {&kTwin}, .env = &s->world.env, .pool = s->pool};
  WEIR_TRY(weir_exec_session_create(&s->world.env, s->pool, s->graph, &options,
                                    &s->alone, err));
  options.remote = &s->twin.base;
  return weir_exec_session_create(&s->world.env, s->pool, s->graph, &options,
                                  &s->session, err);
}

static void open_scene(scene *s, const char *text) {
  char why[512];
  memset(s, 0, sizeof *s);
  s->err.struct_size = sizeof s->err;
  exec_world_init(&s->world);
  s->pool = exec_pool(&s->world, 2);
  if (!run_load(&s->world.env, text, strlen(text), &s->graph, why))
    fail_msg("%s", why);
  weir_place_request request = {.graph = s->graph, .cluster = "ps=1,worker=2"};
  weir_plan *plan = NULL;
  assert_ok(weir_placing_create(s->world.env.alloc, &request, &s->placing,
                                &plan, &s->err),
            &s->err);
  weir_plan_unref(plan);
}

static void close_sessions(scene *s) {
  weir_exec_session_release(s->alone);
  weir_exec_session_release(s->session);
  s->alone = s->session = NULL;
  assert_int_equal(s->twin.prepared, s->twin.forgotten);
  weir_exec_session_release(s->twin.session);
  weir_graph_unref(s->twin.graph);
}

static void close_scene(scene *s) {
  close_sessions(s);
  weir_placing_unref(s->placing);
  weir_graph_unref(s->graph);
  weir_pool_release(s->pool);
  exec_world_check_empty(&s->world);
}

/* Runs all outputs; |out| gets the tensors. */
static weir_status run(scene *s, weir_exec_session *session,
                       weir_exec_fetch *out, const weir_run_options *options) {
  for (uint32_t k = 0; k < s->graph->output_count; k++)
    out[k] = (weir_exec_fetch){.value = s->graph->outputs[k].value,
                               .error = out[k].error};
  weir_exec_request request = {.fetches = out,
                               .fetch_count = s->graph->output_count,
                               .options = options};
  return weir_exec_run(session, &request, &s->err);
}

static void drop(weir_exec_fetch *out, size_t count) {
  for (size_t k = 0; k < count; k++) {
    weir_tensor_unref(out[k].tensor);
    out[k].tensor = NULL;
  }
}

static void same_runs(scene *s, int count) {
  for (int i = 0; i < count; i++) {
    weir_exec_fetch want[MOST] = {{0}}, got[MOST] = {{0}};
    weir_run_options options = {.step = (uint64_t)i};
    assert_ok(run(s, s->alone, want, &options), &s->err);
    assert_ok(run(s, s->session, got, &options), &s->err);
    for (uint32_t k = 0; k < s->graph->output_count; k++) {
      assert_int_equal(want[k].tensor->bytes, got[k].tensor->bytes);
      assert_memory_equal(want[k].tensor->data, got[k].tensor->data,
                          want[k].tensor->bytes);
    }
    drop(want, MOST);
    drop(got, MOST);
  }
}

static void same_variable(scene *s, const char *name) {
  weir_tensor *want = NULL, *got = NULL;
  weir_node_id id = weir_graph_find_node(s->graph, weir_sv_from(name));
  assert_ok(weir_exec_variable_get(s->alone, id, &want, &s->err), &s->err);
  assert_ok(weir_exec_variable_snapshot(s->session, id, &got, &s->err),
            &s->err);
  assert_memory_equal(want->data, got->data, want->bytes);
  weir_tensor_unref(want);
  weir_tensor_unref(got);
}

/* ---- The tests */

static const char kTrains[] =
    "weir: 1\n"
    "inputs: {x: 'f32[4, 3] = uniform(-1, 1)', r: 'f32[1] = fill([1], 0.5)'}\n"
    "nodes:\n"
    "  w: var([3, 2], init=glorot_uniform())\n"
    "  b: var([2], init=ones())\n"
    "  y: add(matmul(x, w), b)\n"
    "  loss: mean(square(y))\n"
    "  g: gradients(loss, [w])\n"
    "  s: assign(w, sub(w, mul(g, r)))\n"
    "outputs: [loss, y, s]\n";

static void values_and_variables(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kTrains);
  assert_ok(make_sessions(&s), &s.err);
  same_runs(&s, 4);
  assert_int_equal(s.twin.prepared, 1);
  assert_int_equal(s.twin.runs, 4);
  assert_int_equal(s.twin.commits, 4);
  same_variable(&s, "w");
  same_variable(&s, "b");
  weir_tensor *w = NULL;
  weir_node_id id = weir_graph_find_node(s.graph, WEIR_SV_LIT("w"));
  assert_ok(weir_exec_variable_get(s.alone, id, &w, &s.err), &s.err);
  ((float *)w->data)[1] = 7;
  assert_ok(weir_exec_variable_set(s.alone, id, w, &s.err), &s.err);
  assert_ok(weir_exec_variable_set(s.session, id, w, &s.err), &s.err);
  weir_tensor_unref(w);
  same_runs(&s, 2);
  same_variable(&s, "w");
  close_scene(&s);
}

static void a_refused_step_changes_nothing(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kTrains);
  assert_ok(make_sessions(&s), &s.err);
  same_runs(&s, 1);
  weir_exec_fetch out[MOST] = {{0}};
  weir_run_options options = {.accept = refuse, .step = 9};
  assert_error(run(&s, s.session, out, &options), &s.err, "W5005");
  drop(out, MOST);
  assert_int_equal(s.twin.aborts, 1);
  same_variable(&s, "w");
  same_runs(&s, 2);
  close_scene(&s);
}

static void bindings(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kTrains);
  assert_ok(make_sessions(&s), &s.err);
  weir_exec_fetch a[MOST] = {{0}}, b[MOST] = {{0}};
  weir_binding *one = NULL, *two = NULL;
  for (uint32_t k = 0; k < s.graph->output_count; k++)
    a[k].value = b[k].value = s.graph->outputs[k].value;
  weir_exec_request request = {.fetches = a, .fetch_count = 3};
  assert_ok(weir_exec_bind(s.alone, &request, &one, &s.err), &s.err);
  request.fetches = b;
  assert_ok(weir_exec_bind(s.session, &request, &two, &s.err), &s.err);
  for (uint64_t i = 0; i < 5; i++) {
    weir_run_options options = {.step = i};
    assert_ok(weir_binding_run(one, &options, &s.err), &s.err);
    assert_ok(weir_binding_run(two, &options, &s.err), &s.err);
    for (int k = 0; k < 3; k++)
      assert_memory_equal(a[k].tensor->data, b[k].tensor->data,
                          a[k].tensor->bytes);
  }
  weir_overlap_options overlap = {.steps = 3, .inflight = 2};
  assert_ok(weir_binding_run_overlapped(two, &overlap, NULL, &s.err), &s.err);
  weir_binding_release(one);
  weir_binding_release(two);
  drop(a, MOST);
  drop(b, MOST);
  close_scene(&s);
}

/* The host has none of its bytes, and the others none of its memory. */
static void tensors_on_gpus_are_refused(void **state) {
  (void)state;
  scene s;
  weir_tensor *x = NULL;
  const int64_t dims[] = {4, 3};
  const weir_shape shape = weir_shape_of(2, dims);
  open_scene(&s, kTrains);
  assert_ok(make_sessions(&s), &s.err);
  assert_ok(weir_tensor_create_shaped(s.world.env.alloc, WEIR_F32, &shape, &x,
                                      &s.err),
            &s.err);
  x->on_gpu = true;
  x->gpu = 3;
  const weir_exec_feed feed = {s.graph->inputs[0].value, x};
  weir_exec_fetch fetch = {.value = s.graph->outputs[0].value};
  weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
  assert_error(weir_exec_run(s.session, &request, &s.err), &s.err, "W0004");
  assert_non_null(strstr(s.err.message, "input x is fed a tensor on GPU 3"));
  assert_non_null(strstr(s.err.hint, "weir_tensor_to_host"));
  s.err = (weir_error)WEIR_ERROR_INIT;
  request.feed_count = 0;
  fetch.stays = true;
  assert_error(weir_exec_run(s.session, &request, &s.err), &s.err, "W0004");
  assert_non_null(strstr(s.err.message, "on_device"));
  weir_tensor_unref(x);
  close_scene(&s);
}

static const char kFails[] =
    "weir: 1\n"
    "inputs: {x: 'i32[4] = 3', d: 'i32[4] = 0'}\n"
    "nodes:\n"
    "  q: div(x, d)\n"
    "  r: add(q, q)\n"
    "  t: mul(x, x)\n"
    "outputs: [r, t]\n";

static void fetches_fail_one_by_one(void **state) {
  (void)state;
  scene s;
  weir_error why[2] = {WEIR_ERROR_INIT, WEIR_ERROR_INIT};
  weir_exec_fetch out[MOST] = {{.error = &why[0]}, {.error = &why[1]}};
  open_scene(&s, kFails);
  assert_ok(make_sessions(&s), &s.err);
  assert_error(run(&s, s.session, out, NULL), &s.err, "W5003");
  assert_string_equal(s.err.node, "q");
  assert_int_not_equal(out[0].status, WEIR_OK);
  assert_string_equal(why[0].node, "q");
  assert_ok(out[1].status, &why[1]);
  assert_int_equal(((int32_t *)out[1].tensor->data)[2], 9);
  drop(out, MOST);
  close_scene(&s);
}

static void a_lost_remote_is_the_error_of_all(void **state) {
  (void)state;
  scene s;
  weir_error why = WEIR_ERROR_INIT;
  weir_exec_fetch out[MOST] = {{.error = &why}};
  open_scene(&s, kTrains);
  assert_ok(make_sessions(&s), &s.err);
  same_runs(&s, 1);
  s.twin.lost = true;
  assert_error(run(&s, s.session, out, NULL), &s.err, "W7001");
  assert_string_equal(s.err.message, "it is gone");
  assert_string_equal(s.err.node, "");
  assert_string_equal(why.message, "it is gone");
  drop(out, MOST);
  s.twin.lost = false;
  same_runs(&s, 1);
  close_scene(&s);
}

static const char kMesh[] =
    "weir: 1\n"
    "dims: {n: 4}\n"
    "mesh: {axes: {row: 2}}\n"
    "layout: {n: row}\n"
    "inputs: {x: 'f32[n, 3] = uniform(-1, 1)'}\n"
    "nodes:\n"
    "  w: var([n, 3], init=glorot_uniform())\n"
    "  y: mul(x, w)\n"
    "  s: assign(w, y)\n"
    "outputs: [y, s]\n";

static void meshes(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kMesh);
  assert_ok(make_sessions(&s), &s.err);
  same_runs(&s, 3);
  same_variable(&s, "w");
  weir_tensor *w = NULL;
  weir_node_id id = weir_graph_find_node(s.graph, WEIR_SV_LIT("w"));
  assert_ok(weir_exec_variable_get(s.alone, id, &w, &s.err), &s.err);
  for (int i = 0; i < 12; i++) ((float *)w->data)[i] = (float)i;
  assert_ok(weir_exec_variable_set(s.alone, id, w, &s.err), &s.err);
  assert_ok(weir_exec_variable_set(s.session, id, w, &s.err), &s.err);
  weir_tensor_unref(w);
  same_runs(&s, 1);
  close_scene(&s);
}

static const char kReads[] =
    "weir: 1\n"
    "inputs: {x: 'f32[2] = v'}\n"
    "nodes:\n"
    "  v: var([2], init=ones())\n"
    "  y: add(x, x)\n"
    "outputs: [y]\n";

static void a_default_that_reads_a_variable_is_refused(void **state) {
  (void)state;
  scene s;
  weir_exec_fetch out[MOST] = {{0}};
  open_scene(&s, kReads);
  assert_ok(make_sessions(&s), &s.err);
  assert_ok(run(&s, s.alone, out, NULL), &s.err);
  drop(out, MOST);
  assert_error(run(&s, s.session, out, NULL), &s.err, "W4012");
  close_scene(&s);
}

static void memory_runs_out(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kTrains);
  weir_counted_allocator *m = &s.world.memory;
  weir_status status = WEIR_RESOURCE_EXHAUSTED;
  for (uint64_t k = 1; status != WEIR_OK; k++) {
    weir_exec_fetch out[MOST] = {{0}};
    m->fail_at = atomic_load(&m->calls) + k;
    status = make_sessions(&s);
    if (status == WEIR_OK) status = run(&s, s.session, out, NULL);
    if (status != WEIR_OK) assert_string_equal(s.err.id, "W6001");
    m->fail_at = 0;
    drop(out, MOST);
    close_sessions(&s);
    assert_true(k < 5000);
  }
  memset(&s.twin, 0, sizeof s.twin);
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_and_variables),
      cmocka_unit_test(a_refused_step_changes_nothing),
      cmocka_unit_test(bindings),
      cmocka_unit_test(tensors_on_gpus_are_refused),
      cmocka_unit_test(fetches_fail_one_by_one),
      cmocka_unit_test(a_lost_remote_is_the_error_of_all),
      cmocka_unit_test(meshes),
      cmocka_unit_test(a_default_that_reads_a_variable_is_refused),
      cmocka_unit_test(memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
