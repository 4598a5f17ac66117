/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a caller's cluster, and the transports to them. */
#include "runtime/api/cluster/task_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/api/weir_cluster_file.h"
#include "runtime/api/weir_opts.h"
#include "runtime/base/map.h"
#include "runtime/base/table.h"

static uint64_t hash_text(const char *text, uint64_t seed) {
  return weir_hash_bytes(text, strlen(text) + 1, seed);
}

static const char *keep(weir_arena *arena, weir_sv text, bool *ok) {
  const char *copy = weir_arena_string(arena, text.data, text.size);
  *ok = *ok && copy != NULL;
  return copy != NULL ? copy : "";
}

/* The tasks of |list->cluster|, whose texts have no NUL behind them. */
static weir_status list_tasks(weir_task_list *list, weir_error *err) {
  const weir_cluster *c = list->cluster;
  bool ok = true;
  list->tasks =
      weir_arena_array(&list->arena, c->task_count, sizeof *list->tasks);
  if (list->tasks == NULL)
    return weir_fail_memory(err, c->task_count * sizeof *list->tasks);
  for (uint32_t i = 0; i < c->task_count; i++) {
    const weir_cluster_task *t = &c->tasks[i];
    weir_sv address = t->address.data != NULL ? t->address : (weir_sv){"", 0};
    list->tasks[i] =
        (weir_driver_task){keep(&list->arena, t->job, &ok), t->index,
                           keep(&list->arena, address, &ok)};
    if (!ok) return weir_fail_memory(err, 256);
    list->hash = hash_text(list->tasks[i].job, list->hash);
    list->hash = weir_hash_bytes(&t->index, sizeof t->index, list->hash);
  }
  list->count = c->task_count;
  return WEIR_OK;
}

weir_status weir_task_list_read(weir_runtime *runtime, const weir_graph *graph,
                                const char *cluster, weir_task_list *out,
                                weir_error *err) {
  const weir_allocator *alloc = runtime->env.alloc;
  plan_call call = {.opts = {.cluster = cluster}};
  *out = (weir_task_list){0};
  weir_arena_init(&out->arena, alloc);
  if (graph == NULL && (cluster == NULL || strcmp(cluster, "graph") == 0))
    return weir_fail(err, WEIR_W0002, NULL,
                     "there is no graph, so the cluster must be given: a text "
                     "such as ps=1,worker=2, or a file, x.yaml");
  weir_arena_init(&call.arena, alloc);
  call.request = (weir_place_request){.graph = graph, .cluster = cluster};
  weir_status s = weir_plan_cluster_read(&call, runtime, err);
  /* Without a mesh, which only a graph has, the choice reads no graph. */
  weir_graph none = {0};
  if (graph == NULL) call.request.graph = &none;
  if (s == WEIR_OK)
    s = weir_cluster_choose(alloc, &call.request, &out->cluster, err);
  weir_arena_release(&call.arena);
  if (s == WEIR_OK) s = list_tasks(out, err);
  if (s == WEIR_OK && cluster != NULL) {
    out->text = weir_arena_string(&out->arena, cluster, strlen(cluster));
    if (out->text == NULL) s = weir_fail_memory(err, strlen(cluster));
  }
  return s;
}

void weir_task_list_release(weir_task_list *list) {
  weir_cluster_release(list->cluster);
  if (list->arena.alloc != NULL) weir_arena_release(&list->arena);
  *list = (weir_task_list){0};
}

weir_status weir_task_list_address(weir_task_list *list,
                                   const char *const *addresses, size_t count,
                                   weir_error *err) {
  if (addresses == NULL) return WEIR_OK;
  if (count != list->count)
    return weir_fail(err, WEIR_W0002, NULL,
                     "the cluster has %u tasks, and %zu addresses are given",
                     list->count, count);
  for (uint32_t i = 0; i < list->count; i++) {
    const char *text = addresses[i] != NULL ? addresses[i] : "";
    char *kept = weir_arena_string(&list->arena, text, strlen(text));
    if (kept == NULL) return weir_fail_memory(err, strlen(text));
    list->tasks[i].address = kept;
  }
  return WEIR_OK;
}

bool weir_task_list_fits(const weir_task_list *list, const weir_cluster *c) {
  bool fits = c->task_count == list->count;
  for (uint32_t i = 0; fits && i < list->count; i++)
    fits = c->tasks[i].index == list->tasks[i].index &&
           weir_sv_is(c->tasks[i].job, list->tasks[i].job);
  return fits;
}

/* ---- Certificates */

/* The files that the caller names, as they are. */
static weir_status take_given(weir_task_list *list, const weir_tls_opts *given,
                              weir_net_tls *out, weir_error *err) {
  weir_tls_opts o;
  WEIR_TRY(WEIR_OPTS_READ(weir_tls_opts, &o, given, err));
  if (o.ca == NULL || o.cert == NULL || o.key == NULL)
    return weir_fail_null(err, "weir_tls_opts: a file");
  bool ok = true;
  out->ca = keep(&list->arena, weir_sv_from(o.ca), &ok);
  out->cert = keep(&list->arena, weir_sv_from(o.cert), &ok);
  out->key = keep(&list->arena, weir_sv_from(o.key), &ok);
  return ok ? WEIR_OK : weir_fail_memory(err, strlen(o.ca));
}

static weir_status take_cluster(weir_task_list *list, const char *task,
                                weir_net_tls *out, weir_error *err) {
  const weir_cluster_tls *tls = &list->cluster->tls;
  out->ca = weir_cluster_tls_path(tls->ca, task, &list->arena);
  out->cert = weir_cluster_tls_path(tls->cert, task, &list->arena);
  out->key = weir_cluster_tls_path(tls->key, task, &list->arena);
  return out->ca != NULL && out->cert != NULL && out->key != NULL
             ? WEIR_OK
             : weir_fail_memory(err, tls->ca.size);
}

weir_status weir_task_list_tls(weir_task_list *list, const weir_list_tls *ask,
                               const weir_net_tls **out_tls, weir_error *err) {
  char task[WEIR_JOB_BYTES + 16] = "driver", name[sizeof task + 16];
  *out_tls = NULL;
  if (ask->given == NULL && list->cluster->tls.ca.size == 0) return WEIR_OK;
  if (ask->insecure)
    return weir_fail(err, WEIR_W0002, NULL,
                     "certificates and insecure exclude each other: with `tls` "
                     "all frames are encrypted");
  snprintf(name, sizeof name, "weir://driver");
  if (ask->job != NULL) {
    snprintf(task, sizeof task, "%s-%" PRIu32, ask->job, ask->index);
    snprintf(name, sizeof name, "weir://%s/%" PRIu32, ask->job, ask->index);
  }
  weir_net_tls *tls = weir_arena_array(&list->arena, 1, sizeof *tls);
  bool ok = tls != NULL;
  if (!ok) return weir_fail_memory(err, sizeof *tls);
  WEIR_TRY(ask->given != NULL ? take_given(list, ask->given, tls, err)
                              : take_cluster(list, task, tls, err));
  tls->name = keep(&list->arena, weir_sv_from(name), &ok);
  if (!ok) return weir_fail_memory(err, sizeof name);
  *out_tls = tls;
  return WEIR_OK;
}

weir_status weir_task_list_check(const weir_driver_task *task,
                                 weir_error *err) {
  if (task->address[0] != '\0') return WEIR_OK;
  weir_status s = weir_fail(err, WEIR_W0002, NULL,
                            "the cluster gives no address of task %s:%u",
                            task->job, task->index);
  weir_hint(err, "`%s: [\"host-a:2222\", ...]`, in a file of the cluster",
            task->job);
  return s;
}

bool weir_task_list_is_here(const char *address) {
  static const char *const kHere[] = {"unix:", "127.", "[::1]:", "localhost:"};
  for (size_t i = 0; i < sizeof kHere / sizeof kHere[0]; i++)
    if (strncmp(address, kHere[i], strlen(kHere[i])) == 0) return true;
  return false;
}

static weir_status create(void *self, const weir_transport_handler *handler,
                          const weir_transport_options *options,
                          weir_transport **out, weir_error *err) {
  weir_grpc_maker *maker = self;
  return weir_transport_grpc_create(maker->env, &maker->module, handler,
                                    options, out, err);
}

weir_status weir_grpc_maker_init(weir_grpc_maker *maker, const weir_env *env,
                                 const char *folder,
                                 void (*log)(void *self, const char *text),
                                 void *self, weir_error *err) {
  *maker = (weir_grpc_maker){.env = env, .transports = {maker, create}};
  maker->module.host.log = log;
  maker->module.host.log_self = self;
  return weir_transport_grpc_load(&maker->module, folder, err);
}

static void tell(void *self, weir_process_state state, const char *peer,
                 const char *text) {
  static const weir_cluster_event kEvents[] = {
      [WEIR_PROCESS_LISTENING] = WEIR_CLUSTER_LISTENING,
      [WEIR_PROCESS_PEER_JOINED] = WEIR_CLUSTER_PEER_JOINED,
      [WEIR_PROCESS_SESSION_BEGUN] = WEIR_CLUSTER_SESSION_BEGUN,
      [WEIR_PROCESS_SESSION_OVER] = WEIR_CLUSTER_SESSION_OVER,
      [WEIR_PROCESS_PEER_LOST] = WEIR_CLUSTER_PEER_LOST};
  WEIR_TABLE_OF(kEvents, WEIR_PROCESS_STATE_COUNT);
  const weir_state_teller *teller = self;
  weir_cluster_state told = {.struct_size = sizeof told,
                             .event = kEvents[state],
                             .peer = peer,
                             .text = text};
  if (teller->on_state != NULL) teller->on_state(teller->self, &told);
}

weir_states weir_state_teller_states(weir_state_teller *teller) {
  return (weir_states){teller, tell};
}
