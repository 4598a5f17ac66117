/* SPDX-License-Identifier: Apache-2.0
 * Plans from C: makes a plan of a graph for three tasks, asks why a node is
 * where it is and what it would cost elsewhere, pins it elsewhere, runs the
 * graph by that plan, and compares the step with the prediction.
 *   cc plan.c $(pkg-config --cflags --libs weir) -o plan && ./plan */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <weir.h>

static const char text[] =
    "weir: 1\n"
    "inputs:\n"
    "  x: f32[32, 256]\n"
    "nodes:\n"
    "  w1: var([256, 512], init=glorot_uniform())\n"
    "  h: relu(matmul(x, w1))\n"
    "  w2: var([512, 10], init=glorot_uniform())\n"
    "  y: softmax(matmul(h, w2))\n"
    "outputs: [y]\n";

/* The change: one node goes elsewhere, another stays. */
typedef struct changes {
  char moves[128], stays[128];
} changes;

/* Prints the device of |name|, the reason, and the step on other devices.
 * Leaves in |c| that it goes to the best of these, and |with| stays. */
static weir_status explain(const weir_plan *plan, const char *name,
                           const char *with, changes *c, weir_error *err) {
  weir_plan_node node = {.struct_size = sizeof node};
  weir_plan_device device = {.struct_size = sizeof device};
  weir_plan_alternative other = {.struct_size = sizeof other};
  int64_t best_ns = INT64_MAX;
  size_t at = 0;
  weir_status s = weir_plan_find_node(plan, name, &at, err);
  if (s == WEIR_OK) s = weir_plan_node_at(plan, at, &node, err);
  if (s == WEIR_OK) s = weir_plan_device_at(plan, node.device, &device, err);
  if (s != WEIR_OK) return s;
  printf("%s is on %.*s: %s\n", name, (int)device.name.size, device.name.data,
         node.reason_why);
  snprintf(c->stays, sizeof c->stays, "pin %s=%.*s", with,
           (int)device.name.size, device.name.data);
  for (size_t d = 0; d < weir_plan_count(plan, WEIR_PLAN_DEVICES); d++) {
    s = weir_plan_device_at(plan, d, &device, err);
    if (s == WEIR_OK) s = weir_plan_alternative_at(plan, at, d, &other, err);
    if (s != WEIR_OK) return s;
    if (other.chance == WEIR_PLAN_CHANCE_HERE) continue;
    printf("  on %.*s: ", (int)device.name.size, device.name.data);
    if (other.chance == WEIR_PLAN_CHANCE_POSSIBLE)
      printf("the step would take %" PRId64 " ns\n", other.step_ns);
    else
      printf("%s\n", other.why);
    if (other.step_ns < 0 || other.step_ns >= best_ns) continue;
    best_ns = other.step_ns;
    snprintf(c->moves, sizeof c->moves, "pin %s=%.*s", name,
             (int)device.name.size, device.name.data);
  }
  return WEIR_OK;
}

/* The shortest of 200 runs by |plan|, in nanoseconds. */
static weir_status measure(weir_runtime *runtime, const weir_graph *graph,
                           const weir_plan *plan, int64_t *out_ns,
                           weir_error *err) {
  const int64_t dims[] = {32, 256};
  weir_session *session = NULL;
  weir_bound *bound = NULL;
  weir_tensor *x = NULL;
  weir_session_opts opts = {.struct_size = sizeof opts, .plan = plan};
  weir_fetch y = WEIR_FETCH("y");
  weir_status s = weir_tensor_create(runtime, WEIR_F32, 2, dims, &x, err);
  if (s == WEIR_OK) {
    float *data = weir_tensor_mutable_data(x);
    for (int i = 0; i < 32 * 256; i++) data[i] = (float)(i % 7);
    s = weir_session_create(runtime, graph, &opts, &session, err);
  }
  weir_feed feed = WEIR_FEED("x", x);
  weir_run_request request = WEIR_RUN_REQUEST(&feed, 1, &y, 1);
  if (s == WEIR_OK) s = weir_session_bind(session, &request, &bound, err);
  *out_ns = INT64_MAX;
  for (int i = 0; s == WEIR_OK && i < 200; i++) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    s = weir_bound_run(bound, NULL, err);
    clock_gettime(CLOCK_MONOTONIC, &to);
    int64_t ns =
        (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec;
    if (ns < *out_ns) *out_ns = ns;
  }
  weir_tensor_release(y.tensor);
  weir_tensor_release(x);
  weir_bound_release(bound);
  weir_session_release(session);
  return s;
}

static weir_status compare(weir_runtime *runtime, const weir_graph *graph,
                           const weir_plan *plan, weir_error *err) {
  weir_plan_summary summary = {.struct_size = sizeof summary};
  int64_t ns = 0;
  weir_status s = weir_plan_summarise(plan, &summary, err);
  if (s == WEIR_OK) s = measure(runtime, graph, plan, &ns, err);
  if (s == WEIR_OK)
    printf("predicted step %" PRId64 " ns, measured %" PRId64
           " ns, copies %zu"
           "\n",
           summary.step_ns, ns, weir_plan_count(plan, WEIR_PLAN_COPIES));
  return s;
}

int main(void) {
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = NULL;
  weir_graph *graph = NULL;
  weir_plan *plan = NULL, *pinned = NULL;
  changes c = {"", ""};
  const char *list[] = {c.moves, c.stays};
  /* Tasks of this process: costs are measured here, links too. */
  weir_plan_opts opts = {.struct_size = sizeof opts,
                         .cluster = "ps=1,worker=2",
                         .in_process = true,
                         .calibrate = true};
  weir_status s = weir_runtime_create(NULL, &runtime, &err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, text, sizeof text - 1, "mlp", NULL,
                               &graph, &err);
  if (s == WEIR_OK) s = weir_plan_create(runtime, graph, &opts, &plan, &err);
  if (s == WEIR_OK) s = compare(runtime, graph, plan, &err);
  if (s == WEIR_OK) s = explain(plan, "y", "h", &c, &err);
  if (s == WEIR_OK) {
    printf("%s\n%s\n", c.moves, c.stays);
    opts.changes = list;
    opts.change_count = 2;
    opts.before = plan;
    opts.calibrate = false; /* the costs are those of |plan| */
    s = weir_plan_create(runtime, graph, &opts, &pinned, &err);
  }
  if (s == WEIR_OK) s = compare(runtime, graph, pinned, &err);
  if (s != WEIR_OK) fprintf(stderr, "%s: %s\n", err.id, err.message);
  weir_plan_release(plan);
  weir_plan_release(pinned);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
  return s == WEIR_OK ? 0 : 1;
}
