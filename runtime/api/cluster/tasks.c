/* SPDX-License-Identifier: Apache-2.0 */
/* A driver's handle: the tasks of a cluster, connected. */
#include "runtime/api/cluster/tasks.h"

#include <stdio.h>
#include <string.h>

#include "kernels/profile.h"
#include "runtime/dist/deal/deal_fits.h"
#include "runtime/net/wire.h"

static void log_line(void *self, const char *text) {
  weir_log(((weir_tasks *)self)->runtime, WEIR_LOG_INFO, "%s", text);
}

/* A transport has warnings only where nothing is listened at, and the level
 * says so. */
static void log_transport(void *self, const char *text) {
  if (strncmp(text, "warning: ", 9) == 0) text += 9;
  weir_log(((weir_tasks *)self)->runtime, WEIR_LOG_WARNING, "%s", text);
}

/* The caller's addresses in place of the cluster's; each task has one then. */
static weir_status set_addresses(weir_task_list *list, const weir_tasks_opts *o,
                                 weir_error *err) {
  if (o->address_count > 0 && o->addresses == NULL)
    return weir_fail_null(err, "weir_tasks_opts: addresses");
  WEIR_TRY(weir_task_list_address(list, o->addresses, o->address_count, err));
  for (uint32_t i = 0; i < list->count; i++) {
    if (o->addresses != NULL && o->addresses[i] == NULL)
      return weir_fail_null(err, "an address");
    WEIR_TRY(weir_task_list_check(&list->tasks[i], err));
  }
  return WEIR_OK;
}

static weir_status make_job_id(const weir_env *env, uint8_t *out, size_t bytes,
                               weir_error *err) {
  if (env->random != NULL && env->random->fill(env->random->self, out, bytes))
    return WEIR_OK;
  return weir_fail(err, WEIR_W6003, NULL, "the system gave no random bits");
}

static weir_status open_dist(weir_tasks *tasks, weir_dist_options *options,
                             uint64_t *out_profile, weir_error *err) {
  const weir_env *env = &tasks->runtime->env;
  WEIR_TRY(make_job_id(env, options->job_id, sizeof options->job_id, err));
  WEIR_TRY(weir_dist_open(env, options, &tasks->dist, err));
  *out_profile = weir_dist_profile(tasks->dist);
  return WEIR_OK;
}

/* ---- Dealt runs */

static void lost(void *self, const char *task, const weir_error *why) {
  const weir_tasks *tasks = self;
  weir_log(tasks->runtime, WEIR_LOG_WARNING, "%s is lost: %s", task,
           why->message);
  if (tasks->on_lost != NULL) tasks->on_lost(tasks->on_deal_self, task, why);
}

static void ran(void *self) {
  const weir_tasks *tasks = self;
  if (tasks->on_run != NULL) tasks->on_run(tasks->on_deal_self);
}

static bool is_worker(const weir_tasks *tasks, size_t i) {
  return weir_deal_is_worker(weir_sv_from(tasks->list.tasks[i].job));
}

static weir_status open_deal(weir_tasks *tasks, weir_dist_options *options,
                             uint64_t *out_profile, weir_error *err) {
  const weir_env *env = &tasks->runtime->env;
  weir_arena *arena = &tasks->list.arena;
  uint32_t count = 0;
  weir_driver_task *workers =
      weir_arena_array(arena, options->task_count, sizeof *workers);
  tasks->names =
      weir_arena_array(arena, options->task_count, sizeof *tasks->names);
  if (workers == NULL || tasks->names == NULL)
    return weir_fail_memory(err, options->task_count * sizeof *workers);
  for (uint32_t i = 0; i < options->task_count; i++) {
    const weir_driver_task *t = &options->tasks[i];
    snprintf(tasks->names[i], sizeof tasks->names[i], "%s:%u", t->job,
             t->index);
    if (is_worker(tasks, i)) workers[count++] = *t;
  }
  options->tasks = workers;
  options->task_count = count;
  weir_deal_options deal = {
      .dist = *options, .lost = lost, .ran = ran, .self = tasks};
  WEIR_TRY(weir_deal_open(env, &deal, &tasks->deal, err));
  *out_profile = weir_deal_profile(tasks->deal);
  return WEIR_OK;
}

static weir_status check_deal(const weir_tasks *tasks, const weir_graph *graph,
                              weir_error *err) {
  if (graph == NULL) return weir_fail_null(err, "weir_tasks_opts: deal: graph");
  return weir_deal_fits(tasks->runtime->env.alloc, graph, tasks->list.cluster,
                        err);
}

static const char kShareLetters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

static weir_status check_share(const weir_tasks_opts *o, weir_error *err) {
  if (o->share == NULL) return WEIR_OK;
  size_t n = strlen(o->share);
  bool good = n > 0 && n < WEIR_WIRE_SHARE_BYTES;
  for (size_t i = 0; good && i < n; i++)
    good = strchr(kShareLetters, o->share[i]) != NULL;
  if (!good)
    return weir_fail(err, WEIR_W7089, NULL,
                     "a share has no name '%.80s': 1 to %d letters, digits, - "
                     "or _",
                     o->share, WEIR_WIRE_SHARE_BYTES - 1);
  if (o->deal || o->stop)
    return weir_fail(err, WEIR_W0002, NULL,
                     "weir_tasks_opts: share goes neither with deal nor stop");
  return WEIR_OK;
}

static weir_status open_tasks(weir_tasks *tasks, const weir_graph *graph,
                              const weir_tasks_opts *o, weir_error *err) {
  weir_runtime *runtime = tasks->runtime;
  weir_task_list *list = &tasks->list;
  WEIR_TRY(weir_task_list_read(runtime, graph, o->cluster, list, err));
  if (o->deal) WEIR_TRY(check_deal(tasks, graph, err));
  WEIR_TRY(set_addresses(list, o, err));
  bool insecure = o->insecure || list->cluster->insecure;
  const weir_list_tls ask = {.given = o->tls, .insecure = insecure};
  const weir_net_tls *tls = NULL;
  WEIR_TRY(weir_task_list_tls(list, &ask, &tls, err));
  WEIR_TRY(weir_grpc_maker_init(&tasks->maker, &runtime->env, o->module_folder,
                                log_transport, tasks, err));
  for (uint32_t i = 0; tls == NULL && insecure && i < list->count; i++)
    if (!weir_task_list_is_here(list->tasks[i].address) &&
        weir_runtime_tells_insecure(runtime)) {
      weir_log(runtime, WEIR_LOG_WARNING, "%s", WEIR_INSECURE_WORDS);
      break;
    }

  weir_dist_options options = {
      .transports = &tasks->maker.transports,
      .tasks = list->tasks,
      .task_count = list->count,
      .cluster_hash = list->hash,
      .insecure = insecure,
      .tls = tls,
      .start_ns = o->start_timeout_ns,
      .step_ns = o->step_timeout_ns,
      .share = o->share,
      .while_starting = o->while_starting,
      .while_starting_self = o->while_starting_self,
      .heartbeat_ns = o->heartbeat_ns,
      .log = log_line,
      .log_self = tasks,
      .states = weir_state_teller_states(&tasks->teller)};
  uint64_t profile = 0;
  WEIR_TRY(o->deal ? open_deal(tasks, &options, &profile, err)
                   : open_dist(tasks, &options, &profile, err));
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
  WEIR_TRY(check_share(&o, err));
  weir_tasks *tasks = weir_alloc_array(runtime->env.alloc, 1, sizeof *tasks);
  if (tasks == NULL)
    return weir_fail_refused(runtime->env.alloc, "opening the tasks", err);
  *tasks = (weir_tasks){.runtime = weir_runtime_ref(runtime),
                        .teller = {o.on_state, o.on_state_self},
                        .stop = o.stop,
                        .shared = o.share != NULL,
                        .on_lost = o.on_lost,
                        .on_run = o.on_run,
                        .on_deal_self = o.on_deal_self};
  atomic_init(&tasks->refs, 1);
  weir_status s = open_tasks(tasks, graph, &o, err);
  if (s == WEIR_OK)
    *out_tasks = tasks;
  else
    weir_tasks_release(tasks);
  return s;
}

uint64_t weir_tasks_values(const weir_tasks *tasks) {
  if (tasks == NULL) return 0;
  if (tasks->deal != NULL) return weir_deal_values(tasks->deal);
  return atomic_load(&weir_dist_traffic(tasks->dist)->values);
}

uint64_t weir_tasks_value_bytes(const weir_tasks *tasks) {
  if (tasks == NULL) return 0;
  if (tasks->deal != NULL) return weir_deal_value_bytes(tasks->deal);
  return atomic_load(&weir_dist_traffic(tasks->dist)->bytes);
}

size_t weir_tasks_worker_count(const weir_tasks *tasks) {
  return tasks == NULL || tasks->deal == NULL ? 0 : tasks->list.count;
}

weir_status weir_tasks_worker_at(const weir_tasks *tasks, size_t i,
                                 weir_tasks_worker *out_worker,
                                 weir_error *err) {
  size_t count = weir_tasks_worker_count(tasks);
  uint32_t before = 0;
  if (tasks == NULL) return weir_fail_null(err, "tasks");
  if (i >= count)
    return weir_fail(err, WEIR_W0004, NULL, "there are %zu workers, not %zu",
                     count, i + 1);
  weir_tasks_worker worker = {.struct_size = sizeof worker,
                              .unused = !is_worker(tasks, i)};
  for (size_t k = 0; k < i; k++) before += is_worker(tasks, k);
  worker.task = weir_text_of(weir_sv_from(tasks->names[i]));
  if (!worker.unused) {
    weir_deal_part part = weir_deal_part_of(tasks->deal, before);
    worker.lost = part.lost;
    worker.runs = part.runs;
    worker.again = part.again;
  }
  return WEIR_OPTS_WRITE(weir_tasks_worker, out_worker, &worker, err);
}

weir_tasks *weir_tasks_ref(weir_tasks *tasks) {
  atomic_fetch_add(&tasks->refs, 1);
  return tasks;
}

void weir_tasks_release(weir_tasks *tasks) {
  if (tasks == NULL || atomic_fetch_sub(&tasks->refs, 1) != 1) return;
  weir_runtime *runtime = tasks->runtime;
  weir_dist_close(tasks->dist, tasks->stop);
  weir_deal_close(tasks->deal, tasks->stop);
  weir_task_list_release(&tasks->list);
  weir_free(runtime->env.alloc, tasks);
  weir_runtime_release(runtime);
}
