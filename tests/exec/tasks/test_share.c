/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/exec/channel/channel_null.h"
#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/tasks/task_world.h"

/* One task's share: its own parts and no others, variables of other tasks,
 * weights that are set from outside, and memory that runs out. */

enum { PS, WORKER_0, WORKER_1, TASKS };

/* w's transpose is made on ps and read by worker 0; v is assigned on ps. */
static const char kText[] =
    "weir: 1\n"
    "inputs: {x: 'f32[4, 4]'}\n"
    "nodes:\n"
    "  w: {op: var, attrs: {shape: [4, 4], init: ones()}, device: "
    "/job:ps}\n"
    "  v: {op: var, attrs: {shape: [4, 4], init: ones()}, device: "
    "/job:ps}\n"
    "  t: {op: transpose, in: [w], device: /job:ps}\n"
    "  s: {op: tanh, in: [t], device: /job:ps}\n"
    "  y: {op: matmul, in: [x, s], device: '/job:worker/task:0'}\n"
    "  u: assign(v, add(v, y))\n"
    "outputs: [y, u]\n";

typedef struct scene {
  exec_world world;
  weir_graph *graph;
  weir_placing *placing;
  weir_plan *plan;
  task_job job;
  weir_error err;
} scene;

static weir_status open_scene(scene *s, const char *text, const char *cluster) {
  weir_load_options load = {.registry = weir_builtin_registry()};
  s->err = (weir_error)WEIR_ERROR_INIT;
  WEIR_TRY(weir_graph_load_text(&s->world.env, weir_sv_from(text), "share",
                                &load, &s->graph, &s->err));
  weir_place_request request = {
      .graph = s->graph,
      .cluster = cluster,
      .options = {.strictness = WEIR_PLACE_WARN, .moves = 10}};
  return weir_placing_create(s->world.env.alloc, &request, &s->placing,
                             &s->plan, &s->err);
}

static void close_scene(scene *s) {
  weir_plan_unref(s->plan);
  weir_placing_unref(s->placing);
  weir_graph_unref(s->graph);
  s->plan = NULL;
  s->placing = NULL;
  s->graph = NULL;
}

static weir_node_id node_of(const scene *s, const char *name) {
  return weir_graph_find_node(s->graph, weir_sv_from(name));
}

static void variables_are_at_home(void **state) {
  (void)state;
  scene s = {.graph = NULL};
  task_world tasks, one;
  weir_tensor *got = NULL, *mine = NULL;
  exec_world_init(&s.world);
  assert_ok(open_scene(&s, kText, "ps=1,worker=2"), &s.err);
  task_job_open(&s.world.env, s.graph, true, &s.job);
  task_world_open(&s.world.env, &s.job, NULL, NULL, 0, &one);
  task_world_open(&s.world.env, &s.job, s.placing, s.plan, 0, &tasks);
  weir_node_id v = node_of(&s, "v"), w = node_of(&s, "w");
  for (uint32_t t = WORKER_0; t < TASKS; t++) {
    assert_error(weir_exec_variable_get(tasks.sessions[t], v, &got, &s.err),
                 &s.err, "W7050");
    assert_error(weir_exec_variable_get(tasks.sessions[t], w, &got, &s.err),
                 &s.err, "W7050");
  }
  assert_ok(weir_exec_variable_get(tasks.sessions[PS], v, &mine, &s.err),
            &s.err);
  for (int i = 0; i < 16; i++) ((float *)mine->data)[i] = (float)i;
  assert_error(
      weir_exec_variable_set(tasks.sessions[WORKER_0], v, mine, &s.err), &s.err,
      "W7050");
  assert_ok(weir_exec_variable_set(tasks.sessions[PS], v, mine, &s.err),
            &s.err);
  assert_ok(weir_exec_variable_set(one.sessions[0], v, mine, &s.err), &s.err);
  task_world_step(&one, "one");
  task_world_step(&tasks, "set");
  task_world_compare(&one, &tasks, "set");
  /* Nothing assigns w: it is set where it is needed, which the table says. */
  weir_task_cut *cut = NULL;
  const weir_partition *partition = NULL;
  bool marks[TASKS];
  assert_ok(weir_plan_partition(s.plan, &partition, &s.err), &s.err);
  assert_ok(weir_task_cut_create(s.world.env.alloc, s.plan->placement,
                                 partition, &cut, &s.err),
            &s.err);
  weir_node_id cut_w =
      weir_graph_find_node(s.plan->placement->graph, WEIR_SV_LIT("w"));
  assert_ok(weir_task_mark_variable(cut, cut_w, true, marks, &s.err), &s.err);
  assert_true(marks[PS] && marks[WORKER_0] && !marks[WORKER_1]);
  assert_ok(weir_exec_variable_set(one.sessions[0], w, mine, &s.err), &s.err);
  for (uint32_t t = 0; t < TASKS; t++)
    if (marks[t])
      assert_ok(weir_exec_variable_set(tasks.sessions[t], w, mine, &s.err),
                &s.err);
  task_world_step(&one, "one");
  task_world_step(&tasks, "set again");
  task_world_compare(&one, &tasks, "set again");
  weir_task_cut_release(cut);
  weir_tensor_unref(mine);
  task_world_close(&tasks);
  task_world_close(&one);
  task_job_close(&s.job);
  close_scene(&s);
  exec_world_check_empty(&s.world);
}

/* Binds the outputs in a session of |task|; |stats| may be NULL. */
static weir_status bind_share(scene *s, weir_pool *pool, uint32_t task,
                              weir_tensor *x, weir_program_stats *stats) {
  bool own[TASK_MOST] = {false};
  weir_session_share share = {own, s->placing->cluster->task_count};
  weir_session_options options = {.placing = s->placing,
                                  .plan = s->plan,
                                  .share = &share,
                                  .channel = weir_channel_null()};
  weir_exec_session *session = NULL;
  weir_binding *binding = NULL;
  weir_exec_fetch fetches[2] = {{.value = s->graph->outputs[0].value},
                                {.value = s->graph->outputs[1].value}};
  weir_exec_feed feed = {s->graph->inputs[0].value, x};
  weir_exec_request request = {&feed, 1, fetches, 2, NULL, 0, NULL};
  own[task] = true;
  weir_status r = weir_exec_session_create(&s->world.env, pool, s->graph,
                                           &options, &session, &s->err);
  if (r == WEIR_OK) r = weir_exec_bind(session, &request, &binding, &s->err);
  if (r == WEIR_OK && stats != NULL) *stats = weir_binding_stats(binding);
  for (int k = 0; k < 2; k++) {
    if (r == WEIR_OK)
      assert_int_equal(fetches[k].elsewhere, fetches[k].tensor == NULL);
    weir_tensor_unref(fetches[k].tensor);
  }
  weir_binding_release(binding);
  weir_exec_session_release(session);
  return r;
}

static weir_tensor *input(scene *s) {
  weir_tensor *x = NULL;
  const weir_value *v = &s->graph->values[s->graph->inputs[0].value];
  assert_ok(weir_tensor_create_shaped(weir_allocator_system(), v->dtype,
                                      v->shape, &x, &s->err),
            &s->err);
  memset(x->data, 0, x->bytes);
  return x;
}

/* A task without work has no instruction, no memory and no constant; worker 0
 * computes tanh(w') itself, and nothing of it is sent. */
static void a_share_holds_its_own_only(void **state) {
  (void)state;
  scene s = {.graph = NULL};
  weir_program_stats stats[TASKS];
  exec_world_init(&s.world);
  assert_ok(open_scene(&s, kText, "ps=1,worker=2"), &s.err);
  weir_pool *pool = exec_pool(&s.world, 1);
  weir_tensor *x = input(&s);
  /* A tensor without memory serves where the feed's task is another one. */
  void *data = x->data;
  x->data = NULL;
  for (uint32_t t = 0; t < TASKS; t++)
    assert_ok(bind_share(&s, pool, t, x, &stats[t]), &s.err);
  x->data = data;
  assert_int_equal(stats[WORKER_1].instructions, 0);
  assert_int_equal(stats[WORKER_1].arena_bytes, 0);
  assert_int_equal(stats[WORKER_1].constant_bytes, 0);
  assert_true(stats[WORKER_0].instructions > 0);
  assert_true(stats[PS].instructions > 0);
  weir_tensor_unref(x);
  weir_pool_release(pool);
  close_scene(&s);
  exec_world_check_empty(&s.world);
}

static void a_share_needs_a_cluster_and_a_channel(void **state) {
  (void)state;
  scene s = {.graph = NULL};
  bool own[TASKS] = {true};
  weir_exec_session *session = NULL;
  weir_session_share share = {own, TASKS};
  exec_world_init(&s.world);
  assert_ok(open_scene(&s, kText, "ps=1,worker=2"), &s.err);
  weir_session_options options = {.share = &share,
                                  .channel = weir_channel_null()};
  assert_error(weir_exec_session_create(&s.world.env, NULL, s.graph, &options,
                                        &session, &s.err),
               &s.err, "W0004");
  options = (weir_session_options){.placing = s.placing, .share = &share};
  assert_error(weir_exec_session_create(&s.world.env, NULL, s.graph, &options,
                                        &session, &s.err),
               &s.err, "W0004");
  close_scene(&s);
  exec_world_check_empty(&s.world);
}

/* A node that fails fails its readers, on other tasks too, and nothing else:
 * the rest is delivered, and the next step is a step like any other. */
static void a_failed_node_fails_its_readers(void **state) {
  static const char text[] =
      "weir: 1\n"
      "inputs: {x: 'i32[4]'}\n"
      "nodes:\n"
      "  d: {op: div, in: [8, x], device: /job:ps}\n"
      "  r: {op: add, in: [d, x], device: '/job:worker/task:0'}\n"
      "  o: {op: mul, in: [x, x], device: '/job:worker/task:1'}\n"
      "outputs: [d, r, o]\n";
  (void)state;
  scene s = {.graph = NULL};
  task_world tasks;
  exec_world_init(&s.world);
  assert_ok(open_scene(&s, text, "ps=1,worker=2"), &s.err);
  task_job_open(&s.world.env, s.graph, true, &s.job);
  task_world_open(&s.world.env, &s.job, s.placing, s.plan, 0, &tasks);
  int32_t *x = s.job.feeds[0].tensor->data;
  tasks.may_fail = true;
  for (int i = 0; i < 4; i++) {
    bool bad = i % 2 == 0;
    for (int k = 0; k < 4; k++) x[k] = bad && k == 2 ? 0 : k + 1;
    task_world_step(&tasks, "a division");
    for (uint32_t t = 0; t < TASKS; t++)
      if (bad && t != WORKER_1)
        assert_int_not_equal(tasks.status[t], WEIR_OK);
      else
        assert_ok(tasks.status[t], &tasks.errors[t]);
    assert_string_equal(tasks.errors[PS].id, bad ? "W5003" : "");
    assert_false(tasks.fetches[WORKER_1][2].elsewhere);
    assert_int_equal(((int32_t *)tasks.fetches[WORKER_1][2].tensor->data)[3],
                     16);
  }
  task_world_close(&tasks);
  task_job_close(&s.job);
  close_scene(&s);
  exec_world_check_empty(&s.world);
}

/* ---- Values that are added as they come */

/* One of each dtype that is (a, e, f), one that another node reads too (b), and
 * a small one (d). */
static const char kAdded[] =
    "weir: 1\n"
    "inputs: {x: 'f32[130, 127]', k: 'i32[130, 127]'}\n"
    "nodes:\n"
    "  a: var([130, 127], init=ones())\n"
    "  b: var([130, 127], init=ones())\n"
    "  d: var([127], init=ones())\n"
    "  e: var([130, 127], dtype=i32, init=ones())\n"
    "  f: var([130, 127], dtype=f64, init=ones())\n"
    "  gb: tanh(x)\n"
    "  ga: mul(gb, x)\n"
    "  gd: reduce_sum(x, axis=0)\n"
    "  ge: add(k, 3)\n"
    "  gf: cast(ga, dtype=f64)\n"
    "  ua: assign_add(a, ga)\n"
    "  ub: assign_add(b, gb)\n"
    "  rb: reduce_sum(gb)\n"
    "  ud: assign_add(d, gd)\n"
    "  ue: assign_add(e, ge)\n"
    "  uf: assign_add(f, gf)\n"
    "outputs: [ua, ub, rb, ud, ue, uf]\n"
    "placement:\n"
    "  - {match: 'g*', device: '/job:worker'}\n"
    "  - {match: '*', device: '/job:ps'}\n";

static void large_values_are_added_as_they_come(void **state) {
  (void)state;
  scene s = {.graph = NULL};
  task_world tasks, one;
  enum { STEPS = 3, TAKEN = 3 };
  exec_world_init(&s.world);
  assert_ok(open_scene(&s, kAdded, "ps=1,worker=1"), &s.err);
  task_job_open(&s.world.env, s.graph, false, &s.job);
  task_world_open(&s.world.env, &s.job, NULL, NULL, 0, &one);
  task_world_open(&s.world.env, &s.job, s.placing, s.plan, 0, &tasks);
  for (int i = 0; i < STEPS; i++) {
    task_world_step(&one, "one");
    task_world_step(&tasks, "added");
    task_world_compare(&one, &tasks, "added");
  }
  assert_int_equal(task_world_taken(&tasks), STEPS * TAKEN);
  task_world_close(&tasks);
  task_world_close(&one);
  task_job_close(&s.job);
  close_scene(&s);
  exec_world_check_empty(&s.world);
}

/* ---- Memory runs out */

static const char kMesh[] =
    "weir: 1\n"
    "dims: {n: 4}\n"
    "mesh: {axes: {row: 2}}\n"
    "layout: {n: row}\n"
    "inputs: {a: 'f32[n, n]'}\n"
    "nodes:\n"
    "  s: reduce_sum(a, axis=0)\n"
    "  t: softmax(transpose(a), axis=0)\n"
    "outputs: [s, t]\n";

static const char kAdds[] =
    "weir: 1\n"
    "inputs: {x: 'f32[128, 128]'}\n"
    "nodes:\n"
    "  v: {op: var, attrs: {shape: [128, 128], init: ones()}, device: "
    "/job:ps}\n"
    "  g: {op: tanh, in: [x], device: /job:worker}\n"
    "  u: {op: assign_add, in: [v, g], device: /job:ps}\n"
    "  y: {op: slice, in: [u], attrs: {start: [0], stop: [1]}, device: "
    "/job:ps}\n"
    "outputs: [u, y]\n";

static void sweep(const char *text, const char *cluster, uint32_t task) {
  scene s = {.graph = NULL};
  exec_world_init(&s.world);
  assert_ok(open_scene(&s, text, cluster), &s.err);
  weir_pool *pool = exec_pool(&s.world, 1);
  weir_tensor *x = input(&s);
  weir_status r = WEIR_RESOURCE_EXHAUSTED;
  /* The plan keeps its partition from the first time on. */
  assert_ok(bind_share(&s, pool, task, x, NULL), &s.err);
  int64_t before = atomic_load(&s.world.memory.live_blocks);
  for (uint64_t k = 1; r != WEIR_OK; k = counted_next(k)) {
    s.err = (weir_error)WEIR_ERROR_INIT;
    s.world.memory.fail_at = atomic_load(&s.world.memory.calls) + k;
    r = bind_share(&s, pool, task, x, NULL);
    s.world.memory.fail_at = 0;
    if (r != WEIR_OK) assert_string_equal(s.err.id, "W6001");
    assert_int_equal(atomic_load(&s.world.memory.live_blocks), before);
    assert_true(k < 100000);
  }
  weir_tensor_unref(x);
  weir_pool_release(pool);
  close_scene(&s);
  exec_world_check_empty(&s.world);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  for (uint32_t t = 0; t < TASKS; t++) sweep(kText, "ps=1,worker=2", t);
  for (uint32_t t = 0; t < 2; t++) sweep(kMesh, "worker=2", t);
  sweep(kAdds, "ps=1,worker=1", PS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(variables_are_at_home),
      cmocka_unit_test(a_share_holds_its_own_only),
      cmocka_unit_test(a_share_needs_a_cluster_and_a_channel),
      cmocka_unit_test(a_failed_node_fails_its_readers),
      cmocka_unit_test(large_values_are_added_as_they_come),
      cmocka_unit_test(every_allocation_may_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
