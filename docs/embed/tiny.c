/* SPDX-License-Identifier: Apache-2.0
 * A complete program: loads a graph, feeds it, runs it, reads the result.
 *   cc tiny.c $(pkg-config --cflags --libs weir) -o tiny && ./tiny */
#include <stdio.h>
#include <weir.h>

static const char text[] =
    "weir: 1\n"
    "inputs:\n"
    "  b: f32[2, 2]\n"
    "nodes:\n"
    "  a: const([[1, 2], [3, 4]], dtype=f32)\n"
    "  c: matmul(a, b)\n"
    "outputs: [c]\n";

static weir_status run(weir_runtime *runtime, weir_session *session,
                       weir_error *err) {
  const int64_t dims[] = {2, 2};
  const float swap[] = {0, 1, 1, 0};
  weir_tensor *b = NULL;
  weir_fetch c = WEIR_FETCH("c");
  weir_tensor_spec type = WEIR_TENSOR_SPEC(WEIR_F32, 2, dims, sizeof swap);
  weir_status s = weir_tensor_from_data(runtime, &type, swap, &b, err);
  if (s == WEIR_OK) {
    weir_feed feed = WEIR_FEED("b", b);
    weir_run_request request = WEIR_RUN_REQUEST(&feed, 1, &c, 1);
    s = weir_session_run(session, &request, NULL, err);
  }
  if (s == WEIR_OK) {
    const float *y = weir_tensor_data(c.tensor);
    printf("%g %g\n%g %g\n", y[0], y[1], y[2], y[3]);
  }
  weir_tensor_release(c.tensor);
  weir_tensor_release(b);
  return s;
}

int main(void) {
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = NULL;
  weir_graph *graph = NULL;
  weir_session *session = NULL;
  weir_status s = weir_runtime_create(NULL, &runtime, &err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, text, sizeof text - 1, "tiny", NULL,
                               &graph, &err);
  if (s == WEIR_OK)
    s = weir_session_create(runtime, graph, NULL, &session, &err);
  if (s == WEIR_OK) s = run(runtime, session, &err);
  if (s != WEIR_OK) fprintf(stderr, "%s: %s\n", err.id, err.message);
  weir_session_release(session);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
  return s == WEIR_OK ? 0 : 1;
}
