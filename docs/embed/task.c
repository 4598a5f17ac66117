/* SPDX-License-Identifier: Apache-2.0
 * A program that is a task and has an op of its own: it listens, prints what
 * becomes of it, and works until a driver ends it.
 *   cc task.c $(pkg-config --cflags --libs weir) -lm -o task
 *   ./task 127.0.0.1:0 */
#include "quantize.h"

/* Weir's thread waits for it, so it is short. */
static void on_state(void *self, const weir_cluster_state *state) {
  static const char *const kNames[] = {"listening", "joined", "begun", "over",
                                       "lost"};
  (void)self;
  printf("%s %s\n", kNames[state->event],
         state->peer[0] != '\0' ? state->peer : state->text);
  fflush(stdout);
}

int main(int argc, char **argv) {
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = NULL;
  weir_task_server *server = NULL;
  weir_task_opts opts = {.struct_size = sizeof opts,
                         .cluster = "worker=1",
                         .job = "worker",
                         .address = argc > 1 ? argv[1] : "127.0.0.1:0",
                         .on_state = on_state};
  weir_status s = weir_runtime_create(NULL, &runtime, &err);
  if (s == WEIR_OK) s = quantize_register(runtime, &err);
  if (s == WEIR_OK) s = weir_task_server_create(runtime, &opts, &server, &err);
  if (s == WEIR_OK) s = weir_task_server_run(server, &err);
  if (s != WEIR_OK) fprintf(stderr, "%s: %s\n", err.id, err.message);
  weir_task_server_release(server);
  weir_runtime_release(runtime);
  return s == WEIR_OK ? 0 : 1;
}
