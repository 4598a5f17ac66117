/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/weir.h"
#include "tests/check.h"

/* Plans through weir.h alone: made, read by index, written, read again, carried
 * out. */

static const char kText[] =
    "weir: 1\n"
    "inputs: {x: 'f32[8, 4]'}\n"
    "nodes:\n"
    "  w: var([4, 6], init=glorot_uniform())\n"
    "  b: state([6])\n"
    "  h: relu(matmul(x, w))\n"
    "  y: add(h, b) @ /job:worker/task:1\n"
    "  z: mul(h, 2) @ /job:worker/task:0\n"
    "outputs: [y, z]\n"
    "placement:\n"
    "  - {match: 'kind:var', device: /job:ps}\n";

static weir_runtime *runtime;
static weir_graph *graph;
static weir_plan *plan;
static int logged;

static void on_log(void *self, weir_log_level level, const char *text) {
  (void)self;
  (void)level;
  if (strstr(text, "placed") != NULL) logged++;
}

static weir_plan_opts cluster(void) {
  return (weir_plan_opts){.struct_size = sizeof(weir_plan_opts),
                          .cluster = "ps=1,worker=2"};
}

static int setup(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime_opts opts = {
      .struct_size = sizeof opts, .threads = 2, .on_log = on_log};
  weir_plan_opts place = cluster();
  weir_status s = weir_runtime_create(&opts, &runtime, &err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, kText, sizeof kText - 1, "g", NULL,
                               &graph, &err);
  if (s == WEIR_OK) s = weir_plan_create(runtime, graph, &place, &plan, &err);
  if (s != WEIR_OK) print_error("%s %s\n", err.id, err.message);
  return s != WEIR_OK;
}

static int teardown(void **state) {
  (void)state;
  weir_plan_release(plan);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
  return 0;
}

static bool is(weir_text text, const char *want) {
  return text.size == strlen(want) && memcmp(text.data, want, text.size) == 0;
}

static weir_plan_node node_of(const weir_plan *of, const char *name) {
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_node node = {.struct_size = sizeof node};
  size_t i = 0;
  assert_ok(weir_plan_find_node(of, name, &i, &err), &err);
  assert_ok(weir_plan_node_at(of, i, &node, &err), &err);
  return node;
}

static void test_nodes(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_node w = node_of(plan, "w"), y = node_of(plan, "y");
  assert_true(is(w.name, "w") && is(w.op, "var"));
  assert_true(is(w.request, "/job:ps"));
  assert_int_equal(w.rule, 0);
  assert_string_equal(w.reason, "only");
  assert_non_null(strstr(w.reason_why, "no other device"));
  assert_true(is(y.op, "add"));
  assert_true(is(y.request, "/job:worker/task:1"));
  assert_int_equal(y.rule, WEIR_PLAN_NONE);
  assert_int_equal(y.cost_source, WEIR_PLAN_COST_ESTIMATED);
  assert_true(y.end_ns >= y.start_ns + y.cost_ns && y.cost_ns > 0);
  assert_false(y.relaxed);
  size_t count = weir_plan_count(plan, WEIR_PLAN_NODES), members = 0;
  for (size_t i = 0; i < count; i++) {
    assert_ok(weir_plan_node_at(plan, i, &y, &err), &err);
    members += y.members;
  }
  assert_true(members >= count);
  assert_error(weir_plan_node_at(plan, count, &y, &err), &err, "W0004");
  assert_error(weir_plan_find_node(plan, "nobody", &count, &err), &err,
               "W0002");
}

static void test_devices(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_device d = {.struct_size = sizeof d};
  size_t nodes = 0, at = 0;
  int64_t held = 0;
  assert_int_equal(weir_plan_count(plan, WEIR_PLAN_DEVICES), 3);
  for (size_t i = 0; i < 3; i++) {
    assert_ok(weir_plan_device_at(plan, i, &d, &err), &err);
    assert_true(is(d.kind, "CPU"));
    assert_int_equal(d.cap_bytes, -1);
    assert_true(d.peak_bytes >= 0); /* a constant is held by its readers */
    assert_true(d.peak_bytes == 0 || d.nodes > 0);
    held += d.peak_bytes;
    nodes += d.nodes;
  }
  assert_true(held > 0);
  assert_int_equal(nodes, weir_plan_count(plan, WEIR_PLAN_NODES));
  assert_ok(weir_plan_find_device(plan, "/job:worker/task:1", &at, &err), &err);
  assert_ok(weir_plan_device_at(plan, at, &d, &err), &err);
  assert_true(is(d.name, "/job:worker/task:1/device:CPU:0"));
  assert_error(weir_plan_find_device(plan, "/job:nobody", &at, &err), &err,
               "W0002");
}

static void test_copies_and_figures(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_copy c = {.struct_size = sizeof c};
  weir_plan_summary sum = {.struct_size = sizeof sum};
  weir_plan_figure f = {.struct_size = sizeof f};
  int64_t bytes = 0;
  for (size_t i = 0; i < weir_plan_count(plan, WEIR_PLAN_COPIES); i++) {
    assert_ok(weir_plan_copy_at(plan, i, &c, &err), &err);
    assert_true(c.from != c.to && c.end_ns > c.start_ns);
    bytes += c.bytes;
  }
  assert_ok(weir_plan_summarise(plan, &sum, &err), &err);
  assert_int_equal(sum.copied_bytes, bytes);
  assert_true(bytes > 0 && sum.step_ns >= sum.bound_ns && sum.gap >= 0);
  assert_true(weir_plan_count(plan, WEIR_PLAN_FIGURES) >= 4);
  assert_ok(weir_plan_figure_at(plan, 0, &f, &err), &err);
  assert_string_equal(f.name, "latency");
  assert_true(f.wanted && !f.is_bytes);
  assert_int_equal(f.value, sum.step_ns);
  assert_int_equal(f.bound, sum.bound_ns);
}

/* Every node of the graph is in one part; each value that is sent is received.
 */
static void test_parts(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_part p = {.struct_size = sizeof p};
  weir_plan_item item = {.struct_size = sizeof item};
  int64_t sent = 0, received = 0;
  size_t variables = 0;
  for (size_t i = 0; i < weir_plan_count(plan, WEIR_PLAN_PARTS); i++) {
    assert_ok(weir_plan_part_at(plan, i, &p, &err), &err);
    sent += p.sent_bytes;
    received += p.received_bytes;
    for (uint32_t k = 0; k < p.nodes; k++)
      assert_ok(
          weir_plan_item_at(plan, i, WEIR_PLAN_ITEM_NODES, k, &item, &err),
          &err);
    assert_error(
        weir_plan_item_at(plan, i, WEIR_PLAN_ITEM_NODES, p.nodes, &item, &err),
        &err, "W0004");
    for (uint32_t k = 0; k < p.variables; k++, variables++) {
      assert_ok(
          weir_plan_item_at(plan, i, WEIR_PLAN_ITEM_VARIABLES, k, &item, &err),
          &err);
      assert_true(is(p.name, "/job:ps/task:0/device:CPU:0"));
      assert_true(item.bytes > 0);
    }
  }
  assert_int_equal(variables, 2);
  assert_true(sent > 0);
  assert_int_equal(sent, received);
}

static void test_edges(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_edge e = {.struct_size = sizeof e};
  weir_plan_item item = {.struct_size = sizeof item};
  size_t copies = 0, tensors = 0,
         count = weir_plan_count(plan, WEIR_PLAN_EDGES);
  assert_true(count > 0);
  for (size_t i = 0; i < count; i++) {
    assert_ok(weir_plan_edge_at(plan, i, &e, &err), &err);
    assert_true(e.from != e.to && e.between_tasks && e.readers > 0);
    assert_ok(weir_plan_reader_at(plan, i, 0, &item, &err), &err);
    tensors += e.edge_class == WEIR_PLAN_EDGE_TENSOR;
    if (e.copy == WEIR_PLAN_NONE) continue;
    copies++;
    assert_true(e.end_ns > e.start_ns && e.start_ns >= 0);
    assert_true(strncmp(e.type, "f32[", 4) == 0);
  }
  assert_true(copies > 0 && tensors > 0);
}

static void test_alternatives(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_alternative a = {.struct_size = sizeof a};
  weir_plan_node y = node_of(plan, "y"), h = node_of(plan, "h");
  size_t at = 0, possible = 0;
  assert_ok(weir_plan_find_node(plan, "y", &at, &err), &err);
  assert_ok(weir_plan_alternative_at(plan, at, y.device, &a, &err), &err);
  assert_int_equal(a.chance, WEIR_PLAN_CHANCE_HERE);
  assert_int_equal(a.end_ns, y.end_ns);
  assert_ok(weir_plan_alternative_at(plan, at, 0, &a, &err), &err);
  assert_int_equal(a.chance, WEIR_PLAN_CHANCE_NOT_ALLOWED);
  assert_string_equal(a.why, "a request forbids it");
  assert_int_equal(a.step_ns, -1);
  assert_ok(weir_plan_find_node(plan, "h", &at, &err), &err);
  for (size_t d = 0; d < 3; d++) {
    assert_ok(weir_plan_alternative_at(plan, at, d, &a, &err), &err);
    possible += a.chance == WEIR_PLAN_CHANCE_POSSIBLE && d != h.device;
    assert_true(a.step_ns > 0);
  }
  assert_int_equal(possible, 2);
  assert_error(weir_plan_alternative_at(plan, at, 3, &a, &err), &err, "W0004");
}

/* ---- Texts */

typedef struct text {
  char *data;
  size_t size;
} text;

static bool append(void *self, const char *data, size_t size) {
  text *t = self;
  char *more = realloc(t->data, t->size + size + 1);
  if (more == NULL) return false;
  memcpy(more + t->size, data, size);
  t->data = more;
  t->size += size;
  more[t->size] = '\0';
  return true;
}

static text written(const weir_plan *of, weir_plan_form form,
                    const char *what) {
  weir_error err = WEIR_ERROR_INIT;
  text t = {NULL, 0};
  assert_ok(weir_plan_write(of, form, what, append, &t, &err), &err);
  assert_true(t.size > 0);
  return t;
}

static bool refuse(void *self, const char *data, size_t size) {
  (void)self;
  (void)data;
  (void)size;
  return false;
}

static void test_forms(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  for (int form = WEIR_PLAN_SUMMARY; form <= WEIR_PLAN_PARTS_DOT; form++) {
    const char *what = form == WEIR_PLAN_EXPLAIN  ? "y"
                       : form == WEIR_PLAN_MEMORY ? "/job:ps"
                                                  : NULL;
    text t = written(plan, (weir_plan_form)form, what);
    free(t.data);
    if (form == WEIR_PLAN_CRITICAL || form == WEIR_PLAN_EXPLAIN ||
        form == WEIR_PLAN_MEMORY)
      continue;
    assert_error(
        weir_plan_write(plan, (weir_plan_form)form, what, refuse, NULL, &err),
        &err, "W5009");
  }
  assert_error(
      weir_plan_write(plan, WEIR_PLAN_EXPLAIN, NULL, refuse, NULL, &err), &err,
      "W0004");
  assert_error(
      weir_plan_write(plan, WEIR_PLAN_EXPLAIN, "nobody", refuse, NULL, &err),
      &err, "W0002");
  assert_error(
      weir_plan_write(plan, (weir_plan_form)99, NULL, refuse, NULL, &err), &err,
      "W0004");
}

/* A plan written and read again is the same plan. */
static void test_round(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_opts place = cluster();
  weir_plan *again = NULL;
  text json = written(plan, WEIR_PLAN_JSON, NULL);
  weir_plan_text given = {
      .struct_size = sizeof given, .json = json.data, .size = json.size};
  bool same = false;
  text out = {NULL, 0};
  assert_ok(weir_plan_verify(plan, &given, &err), &err);
  assert_ok(weir_plan_diff(plan, &given, &same, append, &out, &err), &err);
  assert_true(same);
  assert_ok(weir_plan_from_json(runtime, graph, &place, &given, &again, &err),
            &err);
  assert_ok(weir_plan_compare(plan, again, &same, append, &out, &err), &err);
  assert_true(same);
  assert_string_equal(node_of(again, "h").reason, "replay");
  given.size /= 2;
  assert_error(weir_plan_verify(plan, &given, &err), &err, "W4013");
  free(json.data);
  free(out.data);
  weir_plan_release(again);
}

static void test_pins(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_opts place = cluster();
  weir_plan *pinned = NULL;
  const char *pin = "h=/job:worker/task:1",
             *wrong[] = {"h", "h=nowhere", "nobody=/job:ps"};
  place.pins = &pin;
  place.pin_count = 1;
  assert_ok(weir_plan_create(runtime, graph, &place, &pinned, &err), &err);
  weir_plan_node h = node_of(pinned, "h");
  assert_int_equal(h.device, node_of(pinned, "y").device);
  assert_true(is(h.request, "/job:worker/task:1"));
  weir_plan_release(pinned);
  for (size_t i = 0; i < 3; i++) {
    place.pins = &wrong[i];
    assert_int_not_equal(
        weir_plan_create(runtime, graph, &place, &pinned, &err), WEIR_OK);
    assert_string_equal(err.id, i == 1 ? "W1115" : "W0002");
    assert_null(pinned);
  }
}

/* A placer that does not search has no budget. */
static void test_rules_have_no_budget(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_opts bad[] = {cluster(), cluster(), cluster()};
  bad[0].moves = 5;
  bad[1].budget_ns = 5;
  bad[2].portfolio_only = true;
  for (size_t i = 0; i < 3; i++) {
    weir_plan *p = NULL;
    bad[i].placer = "random:3";
    assert_error(weir_plan_create(runtime, graph, &bad[i], &p, &err), &err,
                 "W0002");
    assert_null(p);
    bad[i].placer = "search";
    assert_ok(weir_plan_create(runtime, graph, &bad[i], &p, &err), &err);
    weir_plan_release(p);
  }
}

static weir_plan_answer answer;

static weir_plan_answer on_progress(void *self, const weir_plan_progress *p) {
  assert_true(p->elapsed_ns > 0 && p->struct_size >= sizeof *p);
  assert_true(p->best_ns == -1 || p->best_ns >= p->bound_ns);
  ++*(int *)self;
  return answer;
}

static void test_progress(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_opts place = cluster();
  weir_plan *p = NULL;
  int asked = 0;
  place.cluster = "worker=3";
  place.placer = "search";
  place.moves = 1u << 30; /* for ever */
  place.on_progress = on_progress;
  place.on_progress_self = &asked;
  static const char chain[] =
      "weir: 1\n"
      "nodes:\n"
      "  a: task(cost_ns=900)\n"
      "  b: task(cost_ns=700)\n"
      "  c: task(a, cost_ns=500)\n"
      "  d: task(a, b, cost_ns=400)\n"
      "  e: task(b, cost_ns=800)\n"
      "  f: task(cost_ns=600)\n"
      "  g: task(f, c, cost_ns=300)\n"
      "  h: task(d, e, cost_ns=950)\n"
      "outputs: [g, h]\n";
  weir_graph *tasks = NULL;
  assert_ok(weir_graph_load_buffer(runtime, chain, sizeof chain - 1, "t", NULL,
                                   &tasks, &err),
            &err);
  answer = WEIR_PLAN_CANCEL;
  weir_status s = weir_plan_create(runtime, tasks, &place, &p, &err);
  if (asked > 0) { /* else the bound was reached at once */
    assert_int_equal(s, WEIR_CANCELLED);
    assert_string_equal(err.id, "W5005");
    assert_null(p);
    answer = WEIR_PLAN_ENOUGH;
    assert_ok(weir_plan_create(runtime, tasks, &place, &p, &err), &err);
  }
  weir_plan_release(p);
  weir_graph_release(tasks);
}

/* ---- Carried out */

static weir_tensor *run(weir_session *session) {
  weir_error err = WEIR_ERROR_INIT;
  const int64_t dims[] = {8, 4};
  weir_tensor *x = NULL;
  weir_fetch y = WEIR_FETCH("y");
  assert_ok(weir_tensor_create(runtime, WEIR_F32, 2, dims, &x, &err), &err);
  for (int i = 0; i < 32; i++)
    ((float *)weir_tensor_mutable_data(x))[i] = (float)i;
  weir_feed feed = WEIR_FEED("x", x);
  weir_run_request request = WEIR_RUN_REQUEST(&feed, 1, &y, 1);
  assert_ok(weir_session_run(session, &request, NULL, &err), &err);
  weir_tensor_release(x);
  return y.tensor;
}

static void count_plan(void *self, const weir_plan *of) {
  assert_non_null(of);
  ++*(int *)self;
}

/* Options of a session's plans count, or are refused. */
static void test_session_place(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  const char *pins[] = {"nobody=/job:ps"}, *changes[] = {"add worker"};
  const weir_plan_text given = {
      .struct_size = sizeof given, .json = "{", .size = 1};
  weir_plan_opts good = cluster();
  weir_plan_opts bad[] = {good, good, good, good, good};
  weir_session *session = NULL;
  bad[0].pins = pins;
  bad[0].pin_count = 1;
  bad[1].given = &given;
  bad[2].inference = true;
  bad[3].changes = changes;
  bad[3].change_count = 1;
  bad[3].before = plan;
  bad[4].open = true;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    weir_session_opts opts = {.struct_size = sizeof opts, .place = &bad[i]};
    assert_error(weir_session_create(runtime, graph, &opts, &session, &err),
                 &err, i == 0 ? "W0002" : "W0004");
    assert_null(session);
  }
}

/* By a plan, by options, on one device: the same bits. */
static void test_sessions(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_opts place = cluster();
  int plans = 0;
  weir_session_opts opts[] = {{.struct_size = sizeof *opts},
                              {.struct_size = sizeof *opts,
                               .plan = plan,
                               .on_plan = count_plan,
                               .on_plan_self = &plans},
                              {.struct_size = sizeof *opts, .place = &place}};
  weir_tensor *results[3];
  for (int i = 0; i < 3; i++) {
    weir_session *session = NULL;
    weir_variable_desc w = {.struct_size = sizeof w};
    assert_ok(weir_session_create(runtime, graph, &opts[i], &session, &err),
              &err);
    assert_int_equal(weir_session_variable_count(session), 2);
    assert_ok(weir_session_variable_at(session, 0, &w, &err), &err);
    assert_true(is(w.name, "w") && w.bytes == 96 && !w.trained);
    assert_string_equal(w.type, "f32[4, 6]");
    assert_true(is(w.home, i == 0 ? "" : "/job:ps/task:0/device:CPU:0"));
    assert_error(weir_session_variable_at(session, 2, &w, &err), &err, "W0004");
    results[i] = run(session);
    weir_session_release(session);
  }
  for (int i = 1; i < 3; i++)
    assert_memory_equal(weir_tensor_data(results[0]),
                        weir_tensor_data(results[i]), 8 * 6 * 4);
  for (int i = 0; i < 3; i++) weir_tensor_release(results[i]);
  assert_int_equal(plans, 1);
  assert_true(logged > 0);
  opts[1].place = &place;
  weir_session *both = NULL;
  assert_error(weir_session_create(runtime, graph, &opts[1], &both, &err), &err,
               "W0004");
}

static void note_plan(void *self, const weir_plan *of) {
  const weir_plan **seen = self;
  seen[seen[0] != NULL] = of;
}

/* A program that is compiled again, as one of its constants was set, has the
 * plan it had: it is not searched for again. */
static void test_plan_stays(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_opts place = cluster();
  const weir_plan *seen[2] = {NULL, NULL};
  weir_session_opts opts = {.struct_size = sizeof opts,
                            .place = &place,
                            .on_plan = note_plan,
                            .on_plan_self = seen};
  const int64_t dims[] = {8, 4};
  weir_session *session = NULL;
  weir_tensor *x = NULL, *w = NULL;
  assert_ok(weir_session_create(runtime, graph, &opts, &session, &err), &err);
  assert_ok(weir_tensor_create(runtime, WEIR_F32, 2, dims, &x, &err), &err);
  weir_feed feed = WEIR_FEED("x", x);
  for (int i = 0; i < 2; i++) {
    weir_fetch h = WEIR_FETCH("h"); /* not all outputs: a plan of its own */
    assert_ok(weir_session_run(
                  session, &(weir_run_request)WEIR_RUN_REQUEST(&feed, 1, &h, 1),
                  NULL, &err),
              &err);
    weir_tensor_release(h.tensor);
    if (i > 0) break;
    assert_ok(weir_session_variable_get(session, "w", &w, &err), &err);
    assert_ok(weir_session_variable_set(session, "w", w, &err), &err);
    weir_tensor_release(w);
  }
  assert_non_null(seen[1]);
  assert_ptr_equal(seen[0], seen[1]);
  weir_tensor_release(x);
  weir_session_release(session);
}

static void test_kept(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_opts place = cluster();
  weir_plan *p = NULL;
  assert_ok(weir_plan_create(runtime, graph, &place, &p, &err), &err);
  assert_ptr_equal(weir_plan_retain(p), p);
  weir_plan_release(p);
  assert_true(weir_plan_count(p, WEIR_PLAN_NODES) > 0);
  weir_plan_release(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nodes),
      cmocka_unit_test(test_devices),
      cmocka_unit_test(test_copies_and_figures),
      cmocka_unit_test(test_parts),
      cmocka_unit_test(test_edges),
      cmocka_unit_test(test_alternatives),
      cmocka_unit_test(test_forms),
      cmocka_unit_test(test_round),
      cmocka_unit_test(test_pins),
      cmocka_unit_test(test_rules_have_no_budget),
      cmocka_unit_test(test_progress),
      cmocka_unit_test(test_sessions),
      cmocka_unit_test(test_session_place),
      cmocka_unit_test(test_plan_stays),
      cmocka_unit_test(test_kept)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
