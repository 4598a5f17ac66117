/* SPDX-License-Identifier: Apache-2.0
 * Ops that a host program registers: shapes, kernels, costs, refusals, lives,
 * and every allocation failing. */
#include <stdatomic.h>
#include <stdio.h>

#include "tests/api/host.h"

static const char kText[] =
    "weir: 1\n"
    "dims: {n: null}\n"
    "inputs: {x: 'f32[n, 4]'}\n"
    "nodes:\n"
    "  a: scaled(x, by=3)\n"
    "  b: scaled(add(a, x))\n"
    "  low, high: halves(b, 1, at=[1, 2], mode='plain', only=[0.5])\n"
    "  d: sub(low, high)\n"
    "outputs: [b, d]\n";

/* ---- scaled(x; by): y = by x, in blocks of a row */

typedef struct rows {
  const weir_op_use *use;
  float by;
} rows;

static void scale_row(void *arg, int64_t row, int worker) {
  const rows *r = arg;
  int64_t n = r->use->in[0]->dims[1].size;
  const float *x = (const float *)r->use->in[0]->data + row * n;
  float *y = (float *)r->use->out[0]->data + row * n;
  assert_true(worker >= 0);
  for (int64_t i = 0; i < n; i++) y[i] = r->by * x[i];
}

static bool scale(void *self, const weir_op_use *use, char *why,
                  size_t why_size) {
  (void)self;
  rows r = {use, (float)use->attrs[0]->f};
  assert_int_equal(use->attrs[0]->kind, WEIR_OP_ATTR_FLOAT);
  if (r.by == 13) {
    snprintf(why, why_size, "it is the %dth", 13);
    return false;
  }
  if (r.by == 14) return false;
  use->parallel_for(use, use->in[0]->dims[0].size, scale_row, &r);
  return true;
}

/* ---- halves(x, plus?; at, mode, flag, only): the columns, in two parts; the
 * second one and |plus| */

static bool halves_shape(void *self, const weir_op_use *use, char *why,
                         size_t why_size) {
  const weir_op_value *x = use->in[0];
  (void)self;
  assert_in_range(use->in_count, 1, 2);
  assert_int_equal(use->out_count, 2);
  assert_int_equal(use->attr_count, 4);
  assert_int_equal(use->attrs[0]->count, 2);
  assert_int_equal(use->attrs[0]->ints[1].size, 2);
  const weir_op_attr *mode = use->attrs[1];
  assert_true(mode->s.size == 4 || memcmp(mode->s.data, "m", 1) == 0 ||
              memcmp(mode->s.data, "plain", 5) == 0);
  assert_int_equal(use->attrs[2]->kind, WEIR_OP_ATTR_NONE);
  assert_int_equal(use->attrs[3]->count, 1);
  assert_true(use->attrs[3]->floats[0] == 0.5);
  if (x->rank < 0) return true;
  if (x->rank != 2) {
    snprintf(why, why_size, "x has rank %d, want 2", (int)x->rank);
    return false;
  }
  for (int i = 0; i < 2; i++) {
    use->out[i]->rank = 2;
    use->out[i]->dims[0] = x->dims[0];
    use->out[i]->dims[1] = (weir_op_dim){.symbol = WEIR_OP_DIM_NEW};
    if (mode->s.size == 4) { /* a wrong rule */
      use->out[i]->dims[1].symbol = 1u << 30;
      if (mode->s.data[0] == 'd') use->out[i]->rank = 9;
      if (mode->s.data[0] == 'l')
        use->out[i]->dims[1] = (weir_op_dim){.size = -1};
      continue;
    }
    if (x->dims[1].symbol == 0)
      use->out[i]->dims[1] = (weir_op_dim){.size = x->dims[1].size / 2};
  }
  return true;
}

static bool halves_run(void *self, const weir_op_use *use, char *why,
                       size_t why_size) {
  int64_t n = use->out[0]->dims[1].size;
  const float *x = use->in[0]->data;
  bool plus = use->in_count > 1 && use->in[1]->dtype == WEIR_F32;
  (void)self, (void)why, (void)why_size;
  for (int64_t r = 0; r < use->in[0]->dims[0].size; r++)
    for (int k = 0; k < 2; k++)
      memcpy((float *)use->out[k]->data + r * n, x + (2 * r + k) * n,
             (size_t)n * sizeof *x);
  for (int64_t i = 0; plus && i < use->out[1]->elements; i++)
    ((float *)use->out[1]->data)[i] += *(const float *)use->in[1]->data;
  return true;
}

static void halves_cost(void *self, const weir_op_use *use,
                        weir_op_cost *cost) {
  atomic_fetch_add((atomic_int *)self, 1);
  assert_true(cost->bytes >= 8 * use->in[0]->elements);
  cost->flops = INT64_C(1) << 40;
}

/* ---- Their descriptions */

static atomic_int costs;

typedef struct ops {
  weir_op_port x, y, low, high;
  weir_op_attr_spec by, halves[4];
  weir_op_port one[2], two[2];
  weir_op_spec scaled, halved;
} ops;

static void describe(ops *o) {
  *o = (ops){.x = {sizeof o->x, WEIR_DTYPE_NONE, false, "x"},
             .y = {sizeof o->y, WEIR_DTYPE_NONE, false, "y"},
             .one = {{sizeof o->x, WEIR_DTYPE_NONE, false, "x"},
                     {sizeof o->x, WEIR_F32, true, "plus"}},
             .two = {{sizeof o->y, WEIR_DTYPE_NONE, false, "low"},
                     {sizeof o->y, WEIR_DTYPE_NONE, false, "high"}},
             .by = {sizeof o->by, WEIR_OP_ATTR_FLOAT, "by", "2"},
             .halves = {{sizeof o->by, WEIR_OP_ATTR_INTS, "at", NULL},
                        {sizeof o->by, WEIR_OP_ATTR_STRING, "mode", "m"},
                        {sizeof o->by, WEIR_OP_ATTR_BOOL, "flag", "none"},
                        {sizeof o->by, WEIR_OP_ATTR_FLOATS, "only", "[]"}}};
  o->scaled = (weir_op_spec){.struct_size = sizeof o->scaled,
                             .version = 1,
                             .types = WEIR_F32,
                             .name = "scaled",
                             .inputs = &o->x,
                             .input_count = 1,
                             .outputs = &o->y,
                             .output_count = 1,
                             .attrs = &o->by,
                             .attr_count = 1,
                             .run = scale};
  o->halved = (weir_op_spec){.struct_size = sizeof o->halved,
                             .name = "halves",
                             .summary = "Columns in two parts.",
                             .inputs = o->one,
                             .input_count = 2,
                             .outputs = o->two,
                             .output_count = 2,
                             .attrs = o->halves,
                             .attr_count = 4,
                             .shape = halves_shape,
                             .run = halves_run,
                             .cost = halves_cost,
                             .self = &costs};
}

static weir_status add_both(weir_runtime *runtime, weir_error *err) {
  ops o; /* nothing of it is kept */
  describe(&o);
  weir_status s = weir_op_register(runtime, &o.scaled, err);
  if (s == WEIR_OK) s = weir_op_register(runtime, &o.halved, err);
  memset(&o, 0xa5, sizeof o);
  return s;
}

/* Loads, releases the runtime, runs; |out| is d. */
static weir_status scenario_of(const weir_runtime_opts *opts, weir_tensor **out,
                               weir_error *err) {
  const int64_t dims[] = {2, 4};
  const float data[] = {1, 2, 3, 4, 5, 6, 7, 8};
  weir_runtime *runtime = NULL;
  weir_graph *graph = NULL;
  weir_session *session = NULL;
  weir_tensor *x = NULL;
  weir_fetch d = WEIR_FETCH("d");
  weir_status s = weir_runtime_create(opts, &runtime, err);
  if (s == WEIR_OK) s = add_both(runtime, err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, kText, strlen(kText), "g", NULL, &graph,
                               err);
  if (s == WEIR_OK)
    s = weir_session_create(runtime, graph, NULL, &session, err);
  if (s == WEIR_OK)
    s = weir_tensor_from_data(
        runtime,
        &(weir_tensor_spec)WEIR_TENSOR_SPEC(WEIR_F32, 2, dims, sizeof data),
        data, &x, err);
  weir_runtime_release(runtime);
  weir_feed feed = WEIR_FEED("x", x);
  if (s == WEIR_OK)
    s = weir_session_run(session,
                         &(weir_run_request)WEIR_RUN_REQUEST(&feed, 1, &d, 1),
                         NULL, err);
  *out = d.tensor;
  weir_tensor_release(x);
  weir_session_release(session);
  weir_graph_release(graph);
  return s;
}

static weir_status scenario(host *h, uint64_t limit, weir_tensor **out,
                            weir_error *err) {
  weir_allocator_hook hook = {sizeof hook, h, host_alloc, host_free};
  weir_runtime_opts opts = {.struct_size = sizeof opts,
                            .threads = 1,
                            .memory_limit = limit,
                            .allocator = &hook};
  return scenario_of(&opts, out, err);
}

/* ---- Tests */

static void test_run(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *out = NULL;
  for (int threads = 1; threads <= 2; threads++) {
    weir_runtime_opts opts = {.struct_size = sizeof opts, .threads = threads};
    assert_ok(scenario_of(&opts, &out, &err), &err);
    const float *d = weir_tensor_data(out);
    for (int i = 0; i < 4; i++)
      assert_true(d[i] == -17); /* 8 (x - (x + 2)) - 1 */
    weir_tensor_release(out);
  }
}

static void test_each_allocation_fails_once(void **state) {
  (void)state;
  sweep(scenario, false);
}

static void test_each_allocation_fails_for_ever(void **state) {
  (void)state;
  sweep(scenario, true);
}

static weir_runtime *a_runtime(void) {
  weir_runtime_opts opts = {.struct_size = sizeof opts, .threads = 1};
  weir_runtime *runtime = NULL;
  assert_int_equal(weir_runtime_create(&opts, &runtime, NULL), WEIR_OK);
  return runtime;
}

static void assert_id(weir_status s, const weir_error *err, const char *id,
                      const char *part) {
  assert_int_not_equal(s, WEIR_OK);
  assert_string_equal(err->id, id);
  if (strstr(err->message, part) == NULL)
    fail_msg("\"%s\" lacks \"%s\"", err->message, part);
}

/* A graph of |nodes| with the ops, loaded and run. */
static weir_status try_nodes(const char *nodes, const char *output,
                             weir_error *err) {
  char text[400];
  weir_runtime *runtime = a_runtime();
  weir_graph *graph = NULL;
  weir_session *session = NULL;
  weir_fetch fetch = WEIR_FETCH(output);
  snprintf(text, sizeof text,
           "weir: 1\ninputs: {x: 'f32[2, 4] = ones()'}\nnodes:\n%s"
           "outputs: [%s]\n",
           nodes, output);
  weir_status s = add_both(runtime, err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, text, strlen(text), "g", NULL, &graph,
                               err);
  if (s == WEIR_OK)
    s = weir_session_create(runtime, graph, NULL, &session, err);
  if (s == WEIR_OK)
    s = weir_session_run(
        session, &(weir_run_request)WEIR_RUN_REQUEST(NULL, 0, &fetch, 1), NULL,
        err);
  weir_tensor_release(fetch.tensor);
  weir_session_release(session);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
  return s;
}

static void test_uses_refused(void **state) {
  (void)state;
  static const struct {
    const char *nodes, *id, *part;
  } kCases[] = {
      {"  y: scaled(x)\n", "", ""},
      {"  y, z: halves(reduce_sum(x), at=[1, 2], only=[0.5])\n", "W2022",
       "x has rank 0, want 2"},
      {"  y, z: halves(x, at=[1, 2], only=[0.5])\n", "", ""},
      {"  y, z: halves(x, mode='wild', at=[1, 2], only=[0.5])\n", "W2022",
       "a symbol that no input has"},
      {"  y, z: halves(x, mode='deep', at=[1, 2], only=[0.5])\n", "W2022",
       "rank 9"},
      {"  y, z: halves(x, mode='less', at=[1, 2], only=[0.5])\n", "W2002",
       "-1"},
      {"  y, z: halves(x, x, x)\n", "W1113", "x is a value"},
      {"  y, z: halves(x, only=[0.5])\n", "W1", "at"},
      {"  y: scaled(cast(x, i32))\n", "W2005", "scaled"},
      {"  y: scaled(x, bye=3)\n", "W1", "bye"},
      {"  y: scaled(x, by=13)\n", "W5001", "scaled: it is the 13th"},
      {"  y: scaled(x, by=14)\n", "W5001", "without a reason"},
      {"  y: gradients(reduce_sum(scaled(x)), x)\n", "W2018", "scaled"},
      /* Equal uses and known inputs are run while compiling. */
      {"  y: scaled(ones([2, 4]), by=13)\n", "W5001", "it is the 13th"},
  };
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_status s = try_nodes(kCases[i].nodes, "y", &err);
    if (strncmp(err.id, kCases[i].id, strlen(kCases[i].id)) != 0 ||
        (s == WEIR_OK) != (kCases[i].id[0] == '\0') ||
        strstr(err.message, kCases[i].part) == NULL)
      fail_msg("%s: %s %s", kCases[i].nodes, err.id, err.message);
  }
}

static void test_specs_refused(void **state) {
  (void)state;
  weir_runtime *runtime = a_runtime();
  weir_error err = WEIR_ERROR_INIT;
  ops o;
#define REFUSED(id, part, change)                                          \
  do {                                                                     \
    describe(&o);                                                          \
    change;                                                                \
    assert_id(weir_op_register(runtime, &o.scaled, &err), &err, id, part); \
  } while (0)
  REFUSED("W0004", "run", o.scaled.run = NULL);
  REFUSED("W0004", "name", o.scaled.name = NULL);
  REFUSED("W0004", "name", o.x.name = NULL);
  REFUSED("W0004", "ports", o.scaled.inputs = NULL);
  REFUSED("W0004", "attrs", o.scaled.attrs = NULL);
  REFUSED("W0004", "struct_size", o.scaled.struct_size = 5);
  REFUSED("W0002", "already", o.scaled.name = "relu");
  REFUSED("W0002", "small letter", o.scaled.name = "Scaled");
  REFUSED("W0002", "small letter", o.x.name = "");
  REFUSED("W0002", "small letter", o.by.name = "b-y");
  REFUSED("W0002", "too many", o.scaled.input_count = 9);
  REFUSED("W0002", "too many", o.scaled.output_count = 0);
  REFUSED("W0002", "too many", o.scaled.attr_count = 11);
  REFUSED("W0002", "no such types", o.scaled.types = 1u << 20);
  REFUSED("W0002", "no such dtype", o.x.dtype = (weir_dtype)(1 << 20));
  REFUSED("W0002", "no input gives", o.x.dtype = WEIR_F32);
  REFUSED("W0002", "optional", o.x.optional = true);
  REFUSED("W0002", "optional", o.y.optional = true);
  REFUSED("W0002", "no such kind", o.by.kind = WEIR_OP_ATTR_NONE);
  REFUSED("W0002", "no such kind", o.by.kind = (weir_op_attr_kind)7);
  REFUSED("W0002", "default", o.by.fallback = "two");
  REFUSED("W0002", "are called x", o.by.name = "x");
#undef REFUSED
  describe(&o);
  assert_ok(weir_op_register(runtime, &o.scaled, &err), &err);
  assert_id(weir_op_register(runtime, &o.scaled, &err), &err, "W0002",
            "already");
  weir_graph *graph = NULL;
  weir_graph_load_buffer(runtime, "x", 1, "g", NULL, &graph, NULL);
  assert_id(weir_op_register(runtime, &o.halved, &err), &err, "W0004",
            "before the first graph");
  weir_runtime_release(runtime);
}

static void test_most(void **state) {
  (void)state;
  weir_runtime *runtime = a_runtime();
  weir_error err = WEIR_ERROR_INIT;
  char name[16];
  ops o;
  describe(&o);
  o.scaled.name = name;
  for (int i = 0; i < WEIR_OP_MOST_REGISTERED; i++) {
    snprintf(name, sizeof name, "op_%d", i);
    assert_ok(weir_op_register(runtime, &o.scaled, &err), &err);
  }
  snprintf(name, sizeof name, "one_more");
  assert_id(weir_op_register(runtime, &o.scaled, &err), &err, "W0002",
            "at most 256");
  weir_runtime_release(runtime);
}

/* The stated cost is what the placer counts where nothing is measured. */
static void test_cost(void **state) {
  (void)state;
  static const char text[] =
      "weir: 1\n"
      "inputs: {x: 'f32[2, 4]'}\n"
      "nodes:\n"
      "  low, high: halves(x, at=[1, 2], only=[0.5])\n"
      "outputs: [low, high]\n";
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = a_runtime();
  weir_graph *graph = NULL;
  weir_plan *plan = NULL;
  weir_plan_opts opts = {.struct_size = sizeof opts, .cluster = "worker=2"};
  weir_plan_summary summary = {.struct_size = sizeof summary};
  weir_status s = add_both(runtime, &err);
  int before = atomic_load(&costs);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, text, strlen(text), "g", NULL, &graph,
                               &err);
  if (s == WEIR_OK) s = weir_plan_create(runtime, graph, &opts, &plan, &err);
  if (s == WEIR_OK) s = weir_plan_summarise(plan, &summary, &err);
  assert_ok(s, &err);
  assert_true(atomic_load(&costs) > before);
  assert_true(summary.step_ns > 1000000000); /* 2^40 operations */
  weir_plan_release(plan);
  plan = NULL;
  opts.in_process = opts.calibrate = true; /* measured, it is short */
  s = weir_plan_create(runtime, graph, &opts, &plan, &err);
  if (s == WEIR_OK) s = weir_plan_summarise(plan, &summary, &err);
  assert_ok(s, &err);
  assert_true(summary.step_ns < 1000000000);
  weir_plan_release(plan);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_run),
      cmocka_unit_test(test_uses_refused),
      cmocka_unit_test(test_specs_refused),
      cmocka_unit_test(test_most),
      cmocka_unit_test(test_cost),
      cmocka_unit_test(test_each_allocation_fails_once),
      cmocka_unit_test(test_each_allocation_fails_for_ever),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
