/* SPDX-License-Identifier: Apache-2.0
 * A program that runs a graph on a task, task.c, with an op that both have.
 *   cc driver.c $(pkg-config --cflags --libs weir) -lm -o driver
 *   ./driver ADDRESS        as task prints it */
#include "quantize.h"

static const char text[] =
    "weir: 1\n"
    "inputs:\n"
    "  x: f32[2, 2] = eye(2)\n"
    "nodes:\n"
    "  w: var([2, 2], init=const([[0.3, 0.6], [1.1, 1.4]], dtype=f32))\n"
    "  y: quantize(matmul(x, w), step=0.5)\n"
    "outputs: [y]\n";

int main(int argc, char **argv) {
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = NULL;
  weir_graph *graph = NULL;
  weir_tasks *tasks = NULL;
  weir_session *session = NULL;
  weir_load_opts load = {.struct_size = sizeof load, .keep_files = true};
  weir_tasks_opts opts = {.struct_size = sizeof opts,
                          .cluster = "worker=1",
                          .addresses = (const char *const *)argv + 1,
                          .address_count = (size_t)argc - 1,
                          .stop = true}; /* the task ends with us */
  weir_plan_opts place = {.struct_size = sizeof place};
  weir_session_opts remote = {.struct_size = sizeof remote, .place = &place};
  weir_fetch y = WEIR_FETCH("y");
  weir_run_request request = WEIR_RUN_REQUEST(NULL, 0, &y, 1);
  weir_status s = weir_runtime_create(NULL, &runtime, &err);
  if (s == WEIR_OK) s = quantize_register(runtime, &err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, text, sizeof text - 1, "quantized",
                               &load, &graph, &err);
  if (s == WEIR_OK) s = weir_tasks_open(runtime, NULL, &opts, &tasks, &err);
  remote.tasks = tasks; /* from here on as with a session in this process */
  if (s == WEIR_OK)
    s = weir_session_create(runtime, graph, &remote, &session, &err);
  if (s == WEIR_OK) s = weir_session_run(session, &request, NULL, &err);
  if (s == WEIR_OK) {
    const float *data = weir_tensor_data(y.tensor);
    printf("%g %g\n%g %g\n", data[0], data[1], data[2], data[3]);
  } else {
    fprintf(stderr, "%s: %s\n", err.id, err.message);
  }
  weir_tensor_release(y.tensor);
  weir_session_release(session);
  weir_tasks_release(tasks);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
  return s == WEIR_OK ? 0 : 1;
}
