/* SPDX-License-Identifier: Apache-2.0 */
/* A task's handle: its process's part of a cluster. */
#include <stdio.h>
#include <string.h>

#include "runtime/api/cluster/task_list.h"
#include "runtime/base/env_system.h"
#include "runtime/dist/serve/serve.h"
#include "runtime/exec/gpu/gpus.h"

struct weir_task_server {
  weir_runtime *runtime; /* held */
  weir_env env; /* of the runtime as it was: a driver changes its profile */
  weir_task_list list;
  weir_grpc_maker maker;
  weir_serve *serve;
  void (*on_event)(void *self, const char *text);
  void *on_event_self;
  weir_state_teller teller;
};

static void tell(void *self, const char *text) {
  const weir_task_server *server = self;
  weir_log(server->runtime, WEIR_LOG_INFO, "%s", text);
  if (server->on_event != NULL) server->on_event(server->on_event_self, text);
}

static weir_status find_task(const weir_task_list *list,
                             const weir_task_opts *o,
                             const weir_driver_task **out, weir_error *err) {
  uint32_t of_job = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    const weir_driver_task *t = &list->tasks[i];
    if (strcmp(t->job, o->job) != 0) continue;
    of_job++;
    *out = t;
    if (t->index == o->index) return WEIR_OK;
  }
  if (of_job > 0)
    return weir_fail(err, WEIR_W0002, NULL,
                     "job %.64s of the cluster has %u task%s, from index 0; "
                     "index %u is given",
                     o->job, of_job, of_job == 1 ? "" : "s", o->index);
  weir_status s =
      weir_fail(err, WEIR_W0002, NULL, "the cluster has no job %.64s", o->job);
  weir_hint(err, "it has %s", list->count > 0 ? list->tasks[0].job : "none");
  return s;
}

/* A driver's cluster may say more; this process's own bounds it. */
static void bound_gpus(const weir_task_server *server,
                       const weir_driver_task *task) {
  const weir_cluster *c = server->list.cluster;
  for (uint32_t i = 0; i < c->device_count; i++) {
    const weir_cluster_device *d = &c->devices[i];
    const weir_cluster_task *of = &c->tasks[d->task];
    if (d->name.type != WEIR_GPU || !weir_sv_is(of->job, task->job) ||
        of->index != task->index)
      continue;
    if (d->memory_given)
      weir_gpus_bound(server->env.gpus, d->name.index.first,
                      (size_t)d->memory_bytes);
    if (d->in_turns)
      weir_gpus_share_always(server->env.gpus, d->name.index.first);
  }
}

static weir_status open_server(weir_task_server *server,
                               const weir_task_opts *o, weir_error *err) {
  weir_runtime *runtime = server->runtime;
  weir_task_list *list = &server->list;
  server->env = runtime->env;
  const weir_driver_task *task = NULL;
  WEIR_TRY(weir_task_list_read(runtime, o->graph, o->cluster, list, err));
  WEIR_TRY(find_task(list, o, &task, err));
  bound_gpus(server, task);
  const char *address = o->address != NULL ? o->address : task->address;
  if (address[0] == '\0')
    return weir_fail(err, WEIR_W0002, NULL,
                     "the cluster gives no address of task %s:%u, and none is "
                     "given to listen at",
                     task->job, task->index);
  bool insecure = o->insecure || list->cluster->insecure;
  const weir_list_tls ask = {o->tls, insecure, task->job, task->index};
  const weir_net_tls *tls = NULL;
  WEIR_TRY(weir_task_list_tls(list, &ask, &tls, err));
  WEIR_TRY(weir_grpc_maker_init(&server->maker, &server->env, o->module_folder,
                                tell, server, err));
  weir_serve_options options = {
      .transports = &server->maker.transports,
      .job = task->job,
      .index = task->index,
      .address = address,
      .cluster_hash = list->hash,
      .threads = runtime->threads,
      .registry = weir_runtime_registry(runtime),
      .insecure = insecure,
      .tls = tls,
      .heartbeat_ns = o->heartbeat_ns,
      .driver_ns = o->start_timeout_ns,
      .checkpoint_root = o->checkpoint_root,
      .log = tell,
      .log_self = server,
      .version = weir_version_text(),
      .memory_bytes = weir_system_memory_bytes,
      .states = weir_state_teller_states(&server->teller)};
  WEIR_TRY(weir_serve_create(&server->env, &options, &server->serve, err));
  if (tls == NULL && insecure && !weir_task_list_is_here(address) &&
      weir_runtime_tells_insecure(runtime))
    tell(server, "warning: " WEIR_INSECURE_WORDS);
  return WEIR_OK;
}

weir_status weir_task_server_create(weir_runtime *runtime,
                                    const weir_task_opts *opts,
                                    weir_task_server **out_server,
                                    weir_error *err) {
  if (out_server == NULL) return weir_fail_null(err, "out_server");
  *out_server = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  weir_task_opts o;
  WEIR_TRY(WEIR_OPTS_READ(weir_task_opts, &o, opts, err));
  if (o.job == NULL) return weir_fail_null(err, "weir_task_opts: job");
  if (o.heartbeat_ns < 0 || o.start_timeout_ns < 0)
    return weir_fail(err, WEIR_W0002, NULL,
                     "weir_task_opts: a time is negative");
  weir_task_server *server =
      weir_alloc_array(runtime->env.alloc, 1, sizeof *server);
  if (server == NULL)
    return weir_fail_refused(runtime->env.alloc, "opening the task", err);
  *server = (weir_task_server){.runtime = weir_runtime_ref(runtime),
                               .on_event = o.on_event,
                               .on_event_self = o.on_event_self,
                               .teller = {o.on_state, o.on_state_self}};
  weir_status s = open_server(server, &o, err);
  if (s == WEIR_OK)
    *out_server = server;
  else
    weir_task_server_release(server);
  return s;
}

const char *weir_task_server_address(const weir_task_server *server) {
  return server == NULL ? NULL : weir_serve_address(server->serve);
}

weir_status weir_task_server_run(weir_task_server *server, weir_error *err) {
  char text[WEIR_NET_ADDRESS_BYTES + 16];
  if (server == NULL) return weir_fail_null(err, "server");
  snprintf(text, sizeof text, "listening at %s",
           weir_serve_address(server->serve));
  tell(server, text);
  weir_states states = weir_state_teller_states(&server->teller);
  weir_states_tell(&states, WEIR_PROCESS_LISTENING, "",
                   weir_serve_address(server->serve));
  return weir_serve_run(server->serve, err);
}

void weir_task_server_stop(weir_task_server *server) {
  if (server != NULL) weir_serve_stop(server->serve);
}

void weir_task_server_release(weir_task_server *server) {
  if (server == NULL) return;
  weir_runtime *runtime = server->runtime;
  weir_serve_release(server->serve);
  weir_task_list_release(&server->list);
  weir_free(runtime->env.alloc, server);
  weir_runtime_release(runtime);
}
