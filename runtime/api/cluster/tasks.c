/* SPDX-License-Identifier: Apache-2.0 */
/* A driver's handle: the tasks of a cluster, connected. */
#include "runtime/api/cluster/tasks.h"

#include <string.h>

#include "kernels/profile.h"

static void log_line(void *self, const char *text) {
  weir_log(((weir_tasks *)self)->runtime, WEIR_LOG_INFO, "%s", text);
}

/* The caller's addresses in place of the cluster's; each task has one then. */
static weir_status set_addresses(weir_task_list *list, const weir_tasks_opts *o,
                                 weir_error *err) {
  if (o->address_count > 0 && o->addresses == NULL)
    return weir_fail_null(err, "weir_tasks_opts: addresses");
  if (o->addresses != NULL && o->address_count != list->count)
    return weir_fail(err, WEIR_W0002, NULL,
                     "the cluster has %u tasks, and %zu addresses are given",
                     list->count, o->address_count);
  for (uint32_t i = 0; i < list->count; i++) {
    weir_driver_task *t = &list->tasks[i];
    if (o->addresses != NULL) {
      if (o->addresses[i] == NULL) return weir_fail_null(err, "an address");
      t->address = weir_arena_string(&list->arena, o->addresses[i],
                                     strlen(o->addresses[i]));
      if (t->address == NULL) return weir_fail_memory(err, 64);
    }
    if (t->address[0] != '\0') continue;
    weir_status s = weir_fail(err, WEIR_W0002, NULL,
                              "the cluster gives no address of task %s:%u",
                              t->job, t->index);
    weir_hint(err, "`%s: [\"host-a:2222\", ...]`, in a file of the cluster",
              t->job);
    return s;
  }
  return WEIR_OK;
}

static weir_status make_job_id(const weir_env *env, uint8_t *out, size_t bytes,
                               weir_error *err) {
  if (env->random != NULL && env->random->fill(env->random->self, out, bytes))
    return WEIR_OK;
  return weir_fail(err, WEIR_W6003, NULL, "the system gave no random bits");
}

static weir_status open_tasks(weir_tasks *tasks, const weir_graph *graph,
                              const weir_tasks_opts *o, weir_error *err) {
  weir_runtime *runtime = tasks->runtime;
  weir_task_list *list = &tasks->list;
  WEIR_TRY(weir_task_list_read(runtime, graph, o->cluster, list, err));
  WEIR_TRY(set_addresses(list, o, err));
  bool insecure = o->insecure || list->cluster->insecure;
  WEIR_TRY(weir_grpc_maker_init(&tasks->maker, &runtime->env, o->module_folder,
                                err));
  weir_dist_options options = {.transports = &tasks->maker.transports,
                               .tasks = list->tasks,
                               .task_count = list->count,
                               .cluster_hash = list->hash,
                               .insecure = insecure,
                               .start_ns = o->start_timeout_ns,
                               .step_ns = o->step_timeout_ns,
                               .while_starting = o->while_starting,
                               .while_starting_self = o->while_starting_self,
                               .heartbeat_ns = o->heartbeat_ns,
                               .log = log_line,
                               .log_self = tasks};
  WEIR_TRY(
      make_job_id(&runtime->env, options.job_id, sizeof options.job_id, err));
  WEIR_TRY(weir_dist_open(&runtime->env, &options, &tasks->dist, err));
  uint64_t profile = weir_dist_profile(tasks->dist);
  WEIR_TRY(weir_profile_use(profile, err));
  runtime->env.profile = profile;
  return WEIR_OK;
}

weir_status weir_tasks_open(weir_runtime *runtime, const weir_graph *graph,
                            const weir_tasks_opts *opts, weir_tasks **out_tasks,
                            weir_error *err) {
  if (out_tasks == NULL) return weir_fail_null(err, "out_tasks");
  *out_tasks = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  weir_tasks_opts o;
  WEIR_TRY(WEIR_OPTS_READ(weir_tasks_opts, &o, opts, err));
  if (o.start_timeout_ns < 0 || o.step_timeout_ns < 0 || o.heartbeat_ns < 0)
    return weir_fail(err, WEIR_W0002, NULL,
                     "weir_tasks_opts: a time is negative");
  weir_tasks *tasks = weir_alloc_array(runtime->env.alloc, 1, sizeof *tasks);
  if (tasks == NULL) return weir_fail_memory(err, sizeof *tasks);
  *tasks = (weir_tasks){.runtime = weir_runtime_ref(runtime), .stop = o.stop};
  atomic_init(&tasks->refs, 1);
  weir_status s = open_tasks(tasks, graph, &o, err);
  if (s == WEIR_OK)
    *out_tasks = tasks;
  else
    weir_tasks_release(tasks);
  return s;
}

uint64_t weir_tasks_values(const weir_tasks *tasks) {
  return tasks == NULL ? 0
                       : atomic_load(&weir_dist_traffic(tasks->dist)->values);
}

uint64_t weir_tasks_value_bytes(const weir_tasks *tasks) {
  return tasks == NULL ? 0
                       : atomic_load(&weir_dist_traffic(tasks->dist)->bytes);
}

weir_tasks *weir_tasks_ref(weir_tasks *tasks) {
  atomic_fetch_add(&tasks->refs, 1);
  return tasks;
}

void weir_tasks_release(weir_tasks *tasks) {
  if (tasks == NULL || atomic_fetch_sub(&tasks->refs, 1) != 1) return;
  weir_runtime *runtime = tasks->runtime;
  weir_dist_close(tasks->dist, tasks->stop);
  weir_task_list_release(&tasks->list);
  weir_free(runtime->env.alloc, tasks);
  weir_runtime_release(runtime);
}
