/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of a graph on tasks, from the driver's side:
 *   bench_cluster GRAPH NODE SPEC MODULES ADDRESS...
 * runs what NODE needs on the tasks of SPEC ("ps=1,worker=1"), which serve at
 * these addresses; libweir_grpc.so is in the folder MODULES. Without addresses
 * the graph runs in this process, on SPEC threads. */
#include <malloc.h>

#include "runtime/weir.h"
#include "tests/bench/dist/asked.h"

typedef struct bench {
  weir_runtime *runtime;
  weir_graph *graph;
  weir_tasks *tasks;
  weir_session *session;
  weir_bound *bound;
  weir_fetch fetch;
  weir_error err;
} bench;

static bool run(void *self) {
  bench *b = self;
  if (weir_bound_run(b->bound, NULL, &b->err) == WEIR_OK) return true;
  fprintf(stderr, "bench_cluster: %s %s\n", b->err.id, b->err.message);
  return false;
}

static weir_status open_tasks(bench *b, char **argv, int addresses) {
  weir_tasks_opts opts = {.struct_size = sizeof opts,
                          .cluster = argv[3],
                          .module_folder = argv[4],
                          .addresses = (const char *const *)argv + 5,
                          .address_count = (size_t)addresses};
  weir_plan_opts place = {.struct_size = sizeof place};
  weir_session_opts session = {.struct_size = sizeof session};
  if (addresses > 0) {
    weir_status s =
        weir_tasks_open(b->runtime, b->graph, &opts, &b->tasks, &b->err);
    if (s != WEIR_OK) return s;
    session.tasks = b->tasks;
    session.place = &place;
  }
  return weir_session_create(b->runtime, b->graph, &session, &b->session,
                             &b->err);
}

static weir_status open_all(bench *b, char **argv, int addresses) {
  weir_runtime_opts runtime = {
      .struct_size = sizeof runtime,
      .threads = addresses > 0 ? 1 : (int32_t)atoi(argv[3])};
  weir_load_opts load = {.struct_size = sizeof load, .keep_files = true};
  weir_run_request request = WEIR_RUN_REQUEST(NULL, 0, &b->fetch, 1);
  b->fetch = (weir_fetch)WEIR_FETCH(argv[2]);
  weir_status s = weir_runtime_create(&runtime, &b->runtime, &b->err);
  if (s == WEIR_OK)
    s = weir_graph_load_file(b->runtime, argv[1], &load, &b->graph, &b->err);
  if (s == WEIR_OK) s = open_tasks(b, argv, addresses);
  if (s == WEIR_OK)
    s = weir_session_bind(b->session, &request, &b->bound, &b->err);
  return s;
}

int main(int argc, char **argv) {
  bench b = {.err = WEIR_ERROR_INIT};
  int code = 1;
  if (argc < 4) {
    fprintf(stderr,
            "usage: bench_cluster GRAPH NODE SPEC MODULES ADDRESS...\n"
            "       bench_cluster GRAPH NODE THREADS\n");
    return 2;
  }
  mallopt(M_TRIM_THRESHOLD, 2000000000); /* as the command does */
  mallopt(M_TOP_PAD, 64 << 20);
  if (open_all(&b, argv, argc > 5 ? argc - 5 : 0) == WEIR_OK)
    code = asked_serve(run, &b);
  else
    fprintf(stderr, "bench_cluster: %s %s\n", b.err.id, b.err.message);
  weir_bound_release(b.bound);
  weir_tensor_release(b.fetch.tensor);
  weir_session_release(b.session);
  weir_graph_release(b.graph);
  weir_tasks_release(b.tasks);
  weir_runtime_release(b.runtime);
  return code;
}
