/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "placement/solve/placer.h"
#include "runtime/exec/compile/compile.h"
#include "runtime/exec/compile/compile_cut.h"
#include "runtime/exec/compile/compile_needs.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/trace.h"
#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "tests/exec/generated.h"
#include "tests/exec/support.h"
#include "tests/placement/partition_check.h"

/* Programs in parts: joined again they are the program in one; failures,
 * tokens and variables cross devices as they should. */

typedef struct scene {
  exec_world world;
  weir_pool *pool;
  weir_graph *graph;
  weir_placing *placing;
  weir_exec_session *session;
  weir_error err;
} scene;

/* On the devices of |cluster|, with a pool of |threads|. */
static void open_cluster(scene *s, const char *text, const char *cluster,
                         const weir_placer *placer, int threads) {
  char why[512];
  memset(s, 0, sizeof *s);
  s->err.struct_size = sizeof s->err;
  exec_world_init(&s->world);
  s->pool = exec_pool(&s->world, threads);
  if (!run_load(&s->world.env, text, strlen(text), &s->graph, why))
    fail_msg("%s", why);
  weir_place_request request = {
      .graph = s->graph,
      .cluster = cluster,
      .options = {.placer = placer, .strictness = WEIR_PLACE_WARN}};
  weir_plan *plan = NULL;
  assert_ok(weir_placing_create(s->world.env.alloc, &request, &s->placing,
                                &plan, &s->err),
            &s->err);
  weir_session_options options = {.placing = s->placing, .plan = plan};
  assert_ok(weir_exec_session_create(&s->world.env, s->pool, s->graph, &options,
                                     &s->session, &s->err),
            &s->err);
  weir_plan_unref(plan);
}

static void open_scene(scene *s, const char *text, const weir_placer *placer,
                       int threads) {
  open_cluster(s, text, "ps=1,worker=2", placer, threads);
}

static void close_scene(scene *s) {
  weir_exec_session_release(s->session);
  weir_placing_unref(s->placing);
  weir_graph_unref(s->graph);
  weir_pool_release(s->pool);
  exec_world_check_empty(&s->world);
}

/* All outputs; the caller releases the tensors. */
static weir_status run(scene *s, weir_exec_fetch *fetches,
                       const weir_run_options *options) {
  for (uint32_t i = 0; i < s->graph->output_count; i++)
    fetches[i] = (weir_exec_fetch){.value = s->graph->outputs[i].value,
                                   .error = fetches[i].error};
  s->err = (weir_error)WEIR_ERROR_INIT;
  weir_exec_request request = {.fetches = fetches,
                               .fetch_count = s->graph->output_count,
                               .options = options};
  return weir_exec_run(s->session, &request, &s->err);
}

/* ---- Joined again */

static const char kBranches[] =
    "weir: 1\n"
    "inputs: {x: 'f32[8, 6] = uniform(-1, 1, seed=3)'}\n"
    "nodes:\n"
    "  w: var([6, 6], init=uniform(-1, 1))\n"
    "  v: var([6, 6], init=uniform(-1, 1))\n"
    "  a: relu(matmul(x, w))\n"
    "  b: tanh(matmul(x, v))\n"
    "  c: add(a, b)\n"
    "  d: softmax(matmul(c, w))\n"
    "  e: transpose(d)\n"
    "  w2: assign(w, mul(w, 0.5))\n"
    "  s: reduce_sum(mul(c, c), axis=1)\n"
    "outputs: [d, e, s, w2]\n";

static weir_compiled *compile(scene *s, const weir_placing *placing) {
  weir_value_id fetches[8], feeds[8];
  for (uint32_t i = 0; i < s->graph->output_count; i++)
    fetches[i] = s->graph->outputs[i].value;
  for (uint32_t i = 0; i < s->graph->input_count; i++)
    feeds[i] = s->graph->inputs[i].value;
  weir_compile_request request = {.graph = s->graph,
                                  .feeds = feeds,
                                  .fetches = fetches,
                                  .feed_count = s->graph->input_count,
                                  .fetch_count = s->graph->output_count,
                                  .options = {.threads = 2}};
  weir_compiled *out = NULL;
  weir_cut *cut = NULL;
  weir_plan *plan = NULL;
  if (placing != NULL) {
    assert_ok(weir_compile_cut(&s->world.env, &request, true, &cut, &s->err),
              &s->err);
    assert_ok(weir_placing_plan(placing, cut->graph, &plan, &s->err), &s->err);
  }
  request.cut = cut;
  request.plan = plan;
  assert_ok(weir_compile(&s->world.env, &request, &out, &s->err), &s->err);
  weir_plan_unref(plan);
  weir_cut_release(cut);
  return out;
}

/* The instruction that makes |value| in part |p|, across the channel if need
 * be; NULL: it is there from the beginning. */
static const weir_instr *maker_of(const weir_program *head,
                                  const weir_program *p, uint32_t value) {
  for (uint32_t i = 0; i < p->instr_count; i++) {
    const weir_instr_spec *spec = &p->instrs[i].spec;
    for (uint32_t k = 0; k < spec->out_count; k++) {
      if (spec->out[k] == WEIR_NO_INDEX ||
          p->values[spec->out[k]].root != p->values[value].root)
        continue;
      if (spec->kind != WEIR_INSTR_RECV) return &p->instrs[i];
      /* The send of the same value, in one of the other parts. */
      for (const weir_program *q = head; q != NULL; q = q->next_part)
        for (uint32_t j = 0; j < q->instr_count; j++) {
          const weir_instr_spec *sent = &q->instrs[j].spec;
          if (sent->kind == WEIR_INSTR_SEND && sent->in_count == 1 && q != p &&
              weir_sv_equal(sent->node, spec->node))
            return maker_of(head, q, sent->in[0]);
        }
      fail_msg("nobody sends %.*s", WEIR_SV(spec->node));
    }
  }
  return NULL;
}

static const weir_instr *find_kernel(const weir_program *head, weir_sv node,
                                     weir_instr_kind kind,
                                     const weir_program **out_part) {
  const weir_instr *found = NULL;
  for (const weir_program *p = head; p != NULL; p = p->next_part)
    for (uint32_t i = 0; i < p->instr_count; i++)
      if (p->instrs[i].spec.kind == kind &&
          weir_sv_equal(p->instrs[i].spec.node, node)) {
        if (found != NULL) fail_msg("%.*s is there twice", WEIR_SV(node));
        found = &p->instrs[i];
        *out_part = p;
      }
  return found;
}

static uint32_t count_kernels(const weir_program *head) {
  uint32_t count = 0;
  for (const weir_program *p = head; p != NULL; p = p->next_part)
    for (uint32_t i = 0; i < p->instr_count; i++) {
      weir_instr_kind kind = p->instrs[i].spec.kind;
      count += kind != WEIR_INSTR_SEND && kind != WEIR_INSTR_RECV;
    }
  return count;
}

static void same_instruction(const weir_program *one, const weir_instr *a,
                             const weir_program *head, const weir_program *part,
                             const weir_instr *b) {
  assert_string_equal(a->spec.kernel, b->spec.kernel);
  assert_int_equal(a->spec.algorithm == NULL, b->spec.algorithm == NULL);
  if (a->spec.algorithm != NULL)
    assert_string_equal(a->spec.algorithm, b->spec.algorithm);
  assert_int_equal(a->spec.in_count, b->spec.in_count);
  for (uint32_t k = 0; k < a->spec.in_count; k++) {
    if (a->spec.in[k] == WEIR_NO_INDEX) continue;
    const weir_instr *x = maker_of(one, one, a->spec.in[k]);
    const weir_instr *y = maker_of(head, part, b->spec.in[k]);
    assert_int_equal(x == NULL, y == NULL);
    if (x != NULL) assert_true(weir_sv_equal(x->spec.node, y->spec.node));
  }
}

static void parts_joined_are_the_whole(void **state) {
  (void)state;
  const weir_placer *const placers[] = {weir_placer_find("round_robin"),
                                        weir_placer_find("random")};
  for (int i = 0; i < 2; i++) {
    scene s;
    open_scene(&s, kBranches, placers[i], 2);
    weir_compiled *one = compile(&s, NULL), *many = compile(&s, s.placing);
    const weir_program *whole = one->program, *head = many->program;
    assert_null(whole->next_part);
    assert_non_null(head->next_part);
    assert_int_equal(whole->instr_count, count_kernels(head));
    for (uint32_t k = 0; k < whole->instr_count; k++) {
      const weir_instr *a = &whole->instrs[k], *b = NULL;
      const weir_program *part = NULL;
      b = find_kernel(head, a->spec.node, a->spec.kind, &part);
      if (b == NULL) fail_msg("%.*s is missing", WEIR_SV(a->spec.node));
      same_instruction(whole, a, head, part, b);
    }
    assert_ok(weir_partition_check(many->graph, many->partition, &s.err),
              &s.err);
    weir_compiled_release(one);
    weir_compiled_release(many);
    close_scene(&s);
  }
}

static void a_broken_partition_is_found(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kBranches, weir_placer_find("round_robin"), 1);
  weir_compiled *c = compile(&s, s.placing);
  weir_partition bad = *c->partition;
  bad.edge_count--;
  assert_int_not_equal(weir_partition_check(c->graph, &bad, &s.err), WEIR_OK);
  assert_string_equal(s.err.id, "W3016");
  bad = *c->partition;
  bad.order_count--;
  assert_int_not_equal(weir_partition_check(c->graph, &bad, &s.err), WEIR_OK);
  weir_node_id *turned = malloc(bad.order_count * sizeof *turned + 64);
  assert_non_null(turned);
  bad = *c->partition;
  for (uint32_t i = 0; i < bad.order_count; i++)
    turned[i] = c->partition->order[bad.order_count - 1 - i];
  bad.order = turned;
  assert_int_not_equal(weir_partition_check(c->graph, &bad, &s.err), WEIR_OK);
  free(turned);
  weir_compiled_release(c);
  close_scene(&s);
}

/* Edges that pull and edges that push. */
static void edges_have_classes(void **state) {
  (void)state;
  scene s;
  uint32_t seen[4] = {0};
  open_scene(&s,
             "weir: 1\n"
             "nodes:\n"
             "  w: {op: var, attrs: {shape: [4], init: ones()}, device: "
             "/job:ps}\n"
             "  y: {op: mul, in: [w, 3.0], device: '/job:worker/task:0'}\n"
             "  z: {op: add, in: [y, 1.0], device: '/job:worker/task:1'}\n"
             "  u: assign(w, z)\n"
             "  n: {op: neg, in: [w], after: [z], device: "
             "'/job:worker/task:0'}\n"
             "outputs: [u, n]\n",
             weir_placer_find("search"), 2);
  weir_compiled *c = compile(&s, s.placing);
  for (uint32_t e = 0; e < c->partition->edge_count; e++)
    seen[c->partition->edges[e].cls]++;
  assert_int_equal(seen[WEIR_EDGE_PULL], 1);
  assert_int_equal(seen[WEIR_EDGE_PUSH], 1);
  assert_int_equal(seen[WEIR_EDGE_TENSOR], 1);
  assert_int_equal(seen[WEIR_EDGE_CONTROL], 1);
  weir_compiled_release(c);
  weir_exec_fetch out[2] = {{0}};
  for (int i = 1; i < 4; i++) {
    assert_ok(run(&s, out, NULL), &s.err);
    float was = i == 1 ? 1 : i == 2 ? 4 : 13;
    assert_true(((float *)out[0].tensor->data)[3] == was * 3 + 1);
    assert_true(((float *)out[1].tensor->data)[0] == -was);
    weir_tensor_unref(out[0].tensor);
    weir_tensor_unref(out[1].tensor);
  }
  close_scene(&s);
}

/* A token is sent only where no value says the same. The order of begin and end
 * is kept all the same. */
static void tokens_that_values_replace_are_not_sent(void **state) {
  (void)state;
  scene s;
  weir_trace *trace = NULL;
  uint32_t seen[5] = {0};
  open_scene(
      &s,
      "weir: 1\n"
      "inputs: {x: 'f32[4] = uniform(-1, 1, seed=3)'}\n"
      "nodes:\n"
      "  a: {op: tanh, in: [x], device: /job:ps}\n"
      "  b: {op: softmax, in: [a], device: '/job:worker/task:0'}\n"
      "  n: {op: softmax, in: [x], after: [a], device: '/job:worker/task:0'}\n"
      "  c: {op: softmax, in: [b], after: [a], device: '/job:worker/task:1'}\n"
      "  d: {op: tanh, in: [x], after: [b], device: '/job:worker/task:1'}\n"
      "  e: {op: tanh, in: [x], after: [n], device: '/job:worker/task:1'}\n"
      "outputs: [c, n, d, e]\n",
      weir_placer_find("search"), 3);
  weir_compiled *c = compile(&s, s.placing);
  for (uint32_t e = 0; e < c->partition->edge_count; e++)
    seen[c->partition->edges[e].cls]++;
  /* c is made of b, which is made of a; n and d wait for a and b, whose values
   * come to their parts; of n only the token can come to e. */
  assert_int_equal(seen[WEIR_EDGE_CONTROL], 1);
  assert_ok(weir_partition_check(c->graph, c->partition, &s.err), &s.err);
  weir_partition bad = *c->partition;
  bad.edge_count--; /* the token is last */
  assert_int_not_equal(weir_partition_check(c->graph, &bad, &s.err), WEIR_OK);
  weir_compiled_release(c);
  assert_ok(weir_exec_trace_create(&s.world.env, 1000, &trace, &s.err), &s.err);
  weir_run_options options = {.trace = trace};
  weir_exec_fetch all[4] = {{0}};
  assert_ok(run(&s, all, &options), &s.err);
  for (int i = 0; i < 4; i++) weir_tensor_unref(all[i].tensor);
  static const char *const pairs[][2] = {
      {"a", "n"}, {"a", "c"}, {"b", "d"}, {"n", "e"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    int64_t ended = -1, began = -1;
    for (size_t k = 0; k < weir_trace_count(trace); k++) {
      weir_trace_event e = weir_trace_event_at(trace, k);
      if (strcmp(e.category, "kernel") != 0) continue;
      if (weir_sv_is(e.name, pairs[i][0])) ended = e.end_ns;
      if (weir_sv_is(e.name, pairs[i][1])) began = e.start_ns;
    }
    assert_true(ended >= 0 && began >= ended);
  }
  weir_exec_trace_release(trace);
  close_scene(&s);
}

/* ---- Caps */

static const char kTight[] =
    "weir: 1\n"
    "inputs: {x: 'f32[64, 64] = uniform(-1, 1)'}\n"
    "nodes:\n"
    "  w: var([64, 64], init=ones())\n"
    "  y: matmul(x, w)\n"
    "outputs: [y]\n"
    "cluster: {worker: 1, devices: {cpu: {memory: 50kB}}}\n";

/* A placer that does not ask for the memory of kernels finds a plan of 48 kB;
 * the packed weight goes over the cap. One that asks finds none. */
static void a_part_over_its_cap_is_refused(void **state) {
  (void)state;
  scene s;
  weir_exec_fetch out[1] = {{0}};
  open_cluster(&s, kTight, "graph", NULL, 1);
  assert_error(run(&s, out, NULL), &s.err, "W6002");
  assert_non_null(strstr(s.err.message, "/job:worker/task:0/device:CPU:0"));
  assert_non_null(strstr(s.err.message, "may hold 50000"));
  assert_non_null(strstr(s.err.message, "takes 16384 at once"));
  weir_place_request request = {
      .graph = s.graph,
      .cluster = "graph",
      .options = {.ask = weir_compile_needs, .ask_self = &s.world.env}};
  weir_plan *plan = NULL;
  assert_error(weir_place_graph(s.world.env.alloc, &request, &plan, &s.err),
               &s.err, "W3013");
  close_scene(&s);
}

/* ---- Failures */

static const char kFails[] =
    "weir: 1\n"
    "inputs: {x: 'i32[4] = 3', d: 'i32[4] = 0'}\n"
    "nodes:\n"
    "  v: {op: var, attrs: {shape: [4], init: ones(), dtype: i32}, device: "
    "/job:ps}\n"
    "  q: {op: div, in: [x, d], device: '/job:worker/task:0'}\n"
    "  r: {op: add, in: [q, q], device: '/job:worker/task:1'}\n"
    "  t: {op: mul, in: [x, x], device: '/job:worker/task:1'}\n"
    "  u: assign(v, r)\n"
    "outputs: [u, t]\n";

static void a_failure_reaches_what_depends_on_it(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads += 2) {
    scene s;
    weir_error why[2] = {WEIR_ERROR_INIT, WEIR_ERROR_INIT};
    weir_exec_fetch out[2] = {{.error = &why[0]}, {.error = &why[1]}};
    open_scene(&s, kFails, weir_placer_find("search"), threads);
    for (int i = 0; i < 3; i++) {
      assert_int_not_equal(run(&s, out, NULL), WEIR_OK);
      assert_string_equal(s.err.node, "q");
      assert_int_not_equal(out[0].status, WEIR_OK);
      assert_string_equal(why[0].node, "q");
      assert_ok(out[1].status, &why[1]);
      assert_int_equal(((int32_t *)out[1].tensor->data)[2], 9);
      weir_tensor_unref(out[1].tensor);
    }
    /* The variable kept its value, and the session works on. */
    weir_tensor *v = NULL;
    weir_node_id id = weir_graph_find_node(s.graph, WEIR_SV_LIT("v"));
    assert_ok(weir_exec_variable_get(s.session, id, &v, &s.err), &s.err);
    assert_int_equal(((int32_t *)v->data)[1], 1);
    weir_tensor_unref(v);
    weir_tensor *d = NULL;
    weir_shape four = weir_shape_of(1, (int64_t[]){4});
    assert_ok(weir_tensor_create_shaped(s.world.env.alloc, WEIR_I32, &four, &d,
                                        &s.err),
              &s.err);
    for (int i = 0; i < 4; i++) ((int32_t *)d->data)[i] = 1;
    weir_exec_feed feed = {s.graph->inputs[1].value, d};
    weir_exec_fetch fetch = {.value = s.graph->outputs[0].value};
    weir_exec_request request = {
        .feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
    assert_ok(weir_exec_run(s.session, &request, &s.err), &s.err);
    assert_int_equal(((int32_t *)fetch.tensor->data)[1], 6);
    weir_tensor_unref(fetch.tensor);
    weir_tensor_unref(d);
    close_scene(&s);
  }
}

/* A cancelled run ends though parts wait for each other. */
static void cancel_ends_all_parts(void **state) {
  (void)state;
  scene s;
  atomic_bool cancel;
  atomic_init(&cancel, true);
  weir_run_options options = {.cancel = &cancel};
  open_scene(&s, kBranches, weir_placer_find("round_robin"), 2);
  weir_exec_fetch all[4] = {{0}};
  assert_int_equal(run(&s, all, &options), WEIR_CANCELLED);
  atomic_store(&cancel, false);
  assert_ok(run(&s, all, &options), &s.err);
  for (int i = 0; i < 4; i++) weir_tensor_unref(all[i].tensor);
  close_scene(&s);
}

/* ---- Devices are streams */

/* One kernel at a time on a device, whichever step it is of; counts them. */
static uint32_t check_streams(const weir_trace *trace) {
  uint32_t kernels = 0;
  for (size_t i = 0; i < weir_trace_count(trace); i++) {
    weir_trace_event e = weir_trace_event_at(trace, i);
    if (strcmp(e.category, "kernel") != 0) continue;
    kernels++;
    for (size_t k = 0; k < i; k++) {
      weir_trace_event other = weir_trace_event_at(trace, k);
      if (other.part != e.part || strcmp(other.category, "kernel") != 0)
        continue;
      assert_true(other.end_ns <= e.start_ns || e.end_ns <= other.start_ns);
    }
  }
  return kernels;
}

static void a_trace_has_a_lane_per_device(void **state) {
  (void)state;
  scene s;
  weir_trace *trace = NULL;
  open_scene(&s, kBranches, weir_placer_find("round_robin"), 3);
  assert_ok(weir_exec_trace_create(&s.world.env, 1000, &trace, &s.err), &s.err);
  weir_run_options options = {.trace = trace};
  weir_exec_fetch all[4] = {{0}};
  assert_ok(run(&s, all, &options), &s.err);
  for (int i = 0; i < 4; i++) weir_tensor_unref(all[i].tensor);
  bool seen[3] = {false};
  uint32_t sent = 0, received = 0;
  for (size_t i = 0; i < weir_trace_count(trace); i++) {
    weir_trace_event e = weir_trace_event_at(trace, i);
    assert_true(e.part < 3);
    seen[e.part] = true;
    sent += strcmp(e.category, "send") == 0;
    received += strcmp(e.category, "recv") == 0;
  }
  assert_true(check_streams(trace) > 0);
  assert_true(seen[0] && seen[1] && seen[2]);
  assert_true(sent > 0);
  assert_int_equal(sent, received);
  weir_exec_trace_release(trace);
  close_scene(&s);
}

/* a comes while `long` runs, which reads `first`: not into the memory of that,
 * for which it would wait until `long` ends. */
static void a_copy_does_not_wait_for_a_unit(void **state) {
  (void)state;
  scene s;
  open_cluster(&s,
               "weir: 1\n"
               "nodes:\n"
               "  first: {op: task, attrs: {cost_ns: 1000, out_bytes: 4096}, "
               "device: '/job:worker/task:0'}\n"
               "  long: {op: task, in: [first], attrs: {cost_ns: 9000000, "
               "out_bytes: 4096}, device: '/job:worker/task:0'}\n"
               "  a: {op: task, attrs: {cost_ns: 1000000, out_bytes: 4096}, "
               "device: /job:ps}\n"
               "  c: {op: task, in: [long, a], attrs: {cost_ns: 1000}, "
               "device: '/job:worker/task:0'}\n"
               "outputs: [c]\n",
               "ps=1,worker=1", weir_placer_find("search"), 1);
  weir_compiled *c = compile(&s, s.placing);
  const weir_program *here = NULL, *there = NULL;
  const weir_instr *first =
      find_kernel(c->program, weir_sv_from("first"), WEIR_INSTR_KERNEL, &here);
  const weir_instr *a =
      find_kernel(c->program, weir_sv_from("a"), WEIR_INSTR_RECV, &there);
  assert_true(first != NULL && a != NULL);
  assert_ptr_equal(here, there);
  assert_int_not_equal(here->values[first->spec.out[0]].offset,
                       here->values[a->spec.out[0]].offset);
  weir_compiled_release(c);
  close_scene(&s);
}

/* Micro-batches in flight share the devices, one task at a time. */
static void steps_in_flight_share_devices(void **state) {
  (void)state;
  scene s;
  weir_trace *trace = NULL;
  open_scene(&s,
             "weir: 1\n"
             "nodes:\n"
             "  f0: {op: task, attrs: {cost_ns: 200000}, device: /job:ps}\n"
             "  f1: {op: task, in: [f0], attrs: {cost_ns: 200000}, device: "
             "'/job:worker/task:0'}\n"
             "  b1: {op: task, in: [f1], attrs: {cost_ns: 400000}, device: "
             "'/job:worker/task:0'}\n"
             "  b0: {op: task, in: [b1], attrs: {cost_ns: 400000}, device: "
             "/job:ps}\n"
             "outputs: [b0]\n",
             weir_placer_find("search"), 4);
  weir_exec_fetch fetch = {.value = s.graph->outputs[0].value};
  weir_binding *binding = NULL;
  assert_ok(weir_exec_trace_create(&s.world.env, 1000, &trace, &s.err), &s.err);
  weir_exec_request request = {.fetches = &fetch, .fetch_count = 1};
  assert_ok(weir_exec_bind(s.session, &request, &binding, &s.err), &s.err);
  weir_run_options options = {.trace = trace};
  weir_overlap_options overlap = {.steps = 20, .inflight = 3};
  assert_ok(weir_binding_run_overlapped(binding, &overlap, &options, &s.err),
            &s.err);
  assert_int_equal(check_streams(trace), 80);
  weir_tensor_unref(fetch.tensor);
  weir_binding_release(binding);
  weir_exec_trace_release(trace);
  close_scene(&s);
}

/* Counts steps, and those whose output is not 0. */
typedef struct tally {
  atomic_int steps, wrong;
} tally;

static void count_step(void *self, uint64_t step, weir_tensor *const *outputs) {
  (void)step;
  tally *t = self;
  atomic_fetch_add(&t->steps, 1);
  if (((float *)outputs[0]->data)[0] != 0) atomic_fetch_add(&t->wrong, 1);
}

/* Steps under way at once: each lane has a channel of its own. The binding's
 * own output is the first lane's, which may come too late to get a step. */
static void overlapped_steps_do_not_mix(void **state) {
  (void)state;
  scene s;
  open_scene(&s,
             "weir: 1\n"
             "nodes:\n"
             "  a: normal(0, 1, shape=[64], seed=3)\n"
             "  b: mul(a, 2.0)\n"
             "  c: reduce_sum(sub(b, add(a, a)))\n"
             "outputs: [c]\n",
             weir_placer_find("round_robin"), 4);
  weir_exec_fetch fetch = {.value = s.graph->outputs[0].value};
  weir_binding *binding = NULL;
  weir_exec_request request = {.fetches = &fetch, .fetch_count = 1};
  assert_ok(weir_exec_bind(s.session, &request, &binding, &s.err), &s.err);
  tally all = {0};
  weir_overlap_options overlap = {
      .steps = 200, .inflight = 4, .self = &all, .end = count_step};
  assert_ok(weir_binding_run_overlapped(binding, &overlap, NULL, &s.err),
            &s.err);
  assert_int_equal(atomic_load(&all.steps), 200);
  assert_int_equal(atomic_load(&all.wrong), 0);
  weir_tensor_unref(fetch.tensor);
  weir_binding_release(binding);
  close_scene(&s);
}

/* ---- Defaults */

/* One default stays, one varies with the step, one with another input. */
static const char kDefaults[] =
    "weir: 1\n"
    "inputs:\n"
    "  c: 'f32[8] = fill([8], 2.0)'\n"
    "  r: 'f32[8] = uniform(-1, 1, [8], seed=3)'\n"
    "  d: 'f32[8] = mul(c, 3.0)'\n"
    "  nobody: 'f32[8] = normal(0, 1, [8])'\n"
    "nodes:\n"
    "  a: add(mul(r, c), d)\n"
    "  s: softmax(a)\n"
    "outputs: [a, s]\n";

/* The results of step |step| on one device, with |c| fed unless it is NULL. */
static void run_alone(scene *s, weir_tensor *c, uint64_t step,
                      weir_tensor **out) {
  weir_exec_session *session = NULL;
  weir_exec_feed feed = {s->graph->inputs[0].value, c};
  weir_exec_fetch fetches[2] = {{.value = s->graph->outputs[0].value},
                                {.value = s->graph->outputs[1].value}};
  weir_run_options options = {.step = step};
  assert_ok(weir_exec_session_create(&s->world.env, s->pool, s->graph, NULL,
                                     &session, &s->err),
            &s->err);
  weir_exec_request request = {.feeds = &feed,
                               .feed_count = c != NULL,
                               .fetches = fetches,
                               .fetch_count = 2,
                               .options = &options};
  assert_ok(weir_exec_run(session, &request, &s->err), &s->err);
  weir_exec_session_release(session);
  weir_tensor_unref(fetches[1].tensor);
  *out = fetches[0].tensor;
}

static void defaults_are_those_of_one_device(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kDefaults, weir_placer_find("round_robin"), 2);
  weir_shape eight = weir_shape_of(1, (int64_t[]){8});
  weir_tensor *fed = NULL;
  assert_ok(weir_tensor_create_shaped(s.world.env.alloc, WEIR_F32, &eight, &fed,
                                      &s.err),
            &s.err);
  for (int i = 0; i < 8; i++) ((float *)fed->data)[i] = (float)i;
  for (int with = 0; with < 2; with++) {
    weir_exec_feed feed = {s.graph->inputs[0].value, fed};
    weir_exec_fetch bound[2] = {{.value = s.graph->outputs[0].value},
                                {.value = s.graph->outputs[1].value}};
    weir_binding *binding = NULL;
    weir_exec_request lasting = {.feeds = &feed,
                                 .feed_count = (size_t)with,
                                 .fetches = bound,
                                 .fetch_count = 2};
    assert_ok(weir_exec_bind(s.session, &lasting, &binding, &s.err), &s.err);
    for (uint64_t step = 0; step < 3; step++) {
      weir_tensor *want = NULL;
      weir_exec_fetch out[2] = {{.value = s.graph->outputs[0].value},
                                {.value = s.graph->outputs[1].value}};
      weir_run_options options = {.step = step};
      run_alone(&s, with ? fed : NULL, step, &want);
      weir_exec_request request = {.feeds = &feed,
                                   .feed_count = (size_t)with,
                                   .fetches = out,
                                   .fetch_count = 2,
                                   .options = &options};
      assert_ok(weir_exec_run(s.session, &request, &s.err), &s.err);
      assert_ok(weir_binding_run(binding, &options, &s.err), &s.err);
      assert_memory_equal(out[0].tensor->data, want->data, want->bytes);
      assert_memory_equal(bound[0].tensor->data, want->data, want->bytes);
      weir_tensor_unref(want);
      weir_tensor_unref(out[0].tensor);
      weir_tensor_unref(out[1].tensor);
    }
    weir_tensor_unref(bound[0].tensor);
    weir_tensor_unref(bound[1].tensor);
    weir_binding_release(binding);
  }
  weir_tensor_unref(fed);
  close_scene(&s);
}

/* First element of output 0 by step. */
typedef struct seen {
  float first[16];
} seen;

static void see_step(void *self, uint64_t step, weir_tensor *const *outputs) {
  ((seen *)self)->first[step] = ((float *)outputs[0]->data)[0];
}

/* Lanes have defaults of their own. */
static void defaults_of_overlapped_steps_do_not_mix(void **state) {
  (void)state;
  scene s;
  seen all = {{0}};
  open_scene(&s, kDefaults, weir_placer_find("round_robin"), 4);
  weir_exec_fetch fetch = {.value = s.graph->outputs[0].value};
  weir_binding *binding = NULL;
  weir_exec_request request = {.fetches = &fetch, .fetch_count = 1};
  assert_ok(weir_exec_bind(s.session, &request, &binding, &s.err), &s.err);
  weir_overlap_options overlap = {
      .steps = 16, .inflight = 4, .self = &all, .end = see_step};
  assert_ok(weir_binding_run_overlapped(binding, &overlap, NULL, &s.err),
            &s.err);
  for (uint64_t step = 0; step < 16; step++) {
    weir_tensor *want = NULL;
    run_alone(&s, NULL, step, &want);
    assert_true(all.first[step] == ((float *)want->data)[0]);
    weir_tensor_unref(want);
  }
  weir_tensor_unref(fetch.tensor);
  weir_binding_release(binding);
  close_scene(&s);
}

/* A part has its device's threads, and so has a plan on one device, which is
 * one task: it does one thing at a time. */
static void parts_have_the_threads_of_their_device(void **state) {
  (void)state;
  static const struct {
    const char *cluster, *placer;
    int threads;
  } cases[] = {{"worker=2,threads=3", "round_robin", 3},
               {"worker=2", "round_robin", 1},
               {"worker=2,threads=3", "first", 3},
               {"worker=2", "first", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    scene s;
    open_cluster(&s,
                 "weir: 1\ninputs: {x: \"f32[64, 64] = 1.0\"}\nnodes:\n"
                 "  a: matmul(x, x)\n  b: matmul(a, x)\n  c: relu(b)\n"
                 "outputs: [c]\n",
                 cases[i].cluster, weir_placer_find(cases[i].placer), 2);
    weir_compiled *compiled = compile(&s, s.placing);
    const weir_program *p = compiled->program;
    assert_true((p->next_part != NULL) == (i < 2));
    if (i >= 2) assert_int_equal(p->task_count, 1);
    for (; p != NULL; p = p->next_part) {
      assert_int_equal(p->threads, cases[i].threads);
      assert_true(p->stream);
    }
    weir_compiled_release(compiled);
    close_scene(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_have_the_threads_of_their_device),
      cmocka_unit_test(defaults_are_those_of_one_device),
      cmocka_unit_test(defaults_of_overlapped_steps_do_not_mix),
      cmocka_unit_test(parts_joined_are_the_whole),
      cmocka_unit_test(a_broken_partition_is_found),
      cmocka_unit_test(edges_have_classes),
      cmocka_unit_test(tokens_that_values_replace_are_not_sent),
      cmocka_unit_test(a_part_over_its_cap_is_refused),
      cmocka_unit_test(a_failure_reaches_what_depends_on_it),
      cmocka_unit_test(cancel_ends_all_parts),
      cmocka_unit_test(a_trace_has_a_lane_per_device),
      cmocka_unit_test(a_copy_does_not_wait_for_a_unit),
      cmocka_unit_test(steps_in_flight_share_devices),
      cmocka_unit_test(overlapped_steps_do_not_mix),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
