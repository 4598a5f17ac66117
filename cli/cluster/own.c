/* SPDX-License-Identifier: Apache-2.0 */
/* The task that a command's process is itself.
 *
 * It listens at its address like any other, for the other tasks connect to it,
 * and the driver dials it in the same way: nothing in a run depends on which
 * process a task is in. */
#include "cli/cluster/own.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cluster/tf_config.h"
#include "cli/system.h"

struct cli_own {
  const cli_args *args;
  weir_task_server *server;
  pthread_t thread;
  bool runs;
};

static void on_event(void *self, const char *text) {
  const cli_args *a = self;
  cli_note("[%s:%lld] %s\n", a->job, (long long)a->index, text);
}

static void *serve(void *self) {
  cli_own *own = self;
  weir_error err = WEIR_ERROR_INIT;
  /* Without it the driver says that the task is lost, and this is why. */
  if (weir_task_server_run(own->server, &err) != WEIR_OK)
    cli_note("[%s:%lld] %s\n", own->args->job, (long long)own->args->index,
             err.message);
  return NULL;
}

static weir_status start(cli_own *own, const cli_job *job, weir_error *err) {
  const cli_args *a = own->args;
  weir_task_opts o = {.struct_size = sizeof o,
                      .insecure = a->insecure,
                      .cluster = a->tasks,
                      .graph = job->graph,
                      .job = a->job,
                      .index = (uint32_t)a->index,
                      .address = cli_tf_config_address(a),
                      .heartbeat_ns = a->heartbeat_ns};
  if (!a->quiet) {
    o.on_event = on_event;
    o.on_event_self = (void *)(uintptr_t)a;
  }
  weir_status s = weir_task_server_create(job->runtime, &o, &own->server, err);
  if (s != WEIR_OK && strcmp(err->id, "W7002") == 0)
    cli_hint(err, "where weir task serves as %s:%lld, leave out --job", a->job,
             (long long)a->index);
  if (s != WEIR_OK) return s;
  if (pthread_create(&own->thread, NULL, serve, own) != 0)
    return cli_error(err, "W6003", "the system refused a thread");
  own->runs = true;
  return WEIR_OK;
}

weir_status cli_own_start(const cli_job *job, const cli_args *args,
                          cli_own **out_own, weir_error *err) {
  *out_own = NULL;
  if (args->job == NULL) return WEIR_OK;
  cli_own *own = calloc(1, sizeof *own);
  if (own == NULL) return cli_no_memory(err);
  own->args = args;
  weir_status s = start(own, job, err);
  if (s == WEIR_OK)
    *out_own = own;
  else
    cli_own_end(own);
  return s;
}

void cli_own_end(cli_own *own) {
  if (own == NULL) return;
  weir_task_server_stop(own->server);
  if (own->runs) pthread_join(own->thread, NULL);
  weir_task_server_release(own->server);
  free(own);
}
