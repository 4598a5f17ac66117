/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a training between graphs this process is. */
#include "runtime/api/cluster/part_find.h"

#include <string.h>

static bool is_of(const weir_driver_task *t, const char *job, uint32_t index) {
  return strcmp(t->job, job) == 0 && t->index == index;
}

/* Slots of the workers, and one of a chief that is none of them. */
static weir_status count_slots(weir_train_part *p,
                               const weir_train_part_opts *o, weir_error *err) {
  uint32_t workers = o->max_workers > 0 ? o->max_workers : p->listed;
  p->slots = workers + (p->worker_count - p->listed);
  if (workers >= p->listed) return WEIR_OK;
  return weir_fail(err, WEIR_W0002, NULL,
                   "at most %u workers are allowed, and the cluster has %u",
                   o->max_workers, p->listed);
}

static weir_status fail_task(const weir_train_part *p,
                             const weir_train_part_opts *o, weir_error *err) {
  weir_status s =
      weir_fail(err, WEIR_W0002, NULL, "the cluster has no task %.64s:%u",
                o->job, o->index);
  if (strcmp(o->job, "worker") == 0)
    weir_hint(err,
              "it has %u workers, from 0; --max-workers N, for all processes, "
              "lets others join",
              p->listed);
  return s;
}

static weir_status find_self(weir_train_part *p, const weir_train_part_opts *o,
                             weir_error *err) {
  const weir_task_list *l = &p->list;
  const weir_driver_task *me = NULL, *chief = NULL;
  for (uint32_t i = 0; i < l->count; i++) {
    const weir_driver_task *t = &l->tasks[i];
    if (is_of(t, o->job, o->index)) me = t;
    if (is_of(t, "chief", 0)) chief = t;
    if (strcmp(t->job, "ps") == 0) p->servers[p->server_count++] = t->address;
    p->listed += strcmp(t->job, "worker") == 0;
    p->worker_count +=
        strcmp(t->job, "worker") == 0 || strcmp(t->job, "chief") == 0;
  }
  for (uint32_t i = 0; i < l->count && chief == NULL; i++)
    if (is_of(&l->tasks[i], "worker", 0)) chief = &l->tasks[i];
  if (p->server_count == 0 || chief == NULL)
    return weir_fail(err, WEIR_W0002, NULL,
                     "replicas between graphs need tasks of job ps and of job "
                     "worker; the cluster has %u and %u",
                     p->server_count, p->worker_count);
  WEIR_TRY(count_slots(p, o, err));
  weir_driver_task late = {o->job, o->index, ""};
  bool joins = strcmp(o->job, "worker") == 0 && o->index < o->max_workers;
  if (me == NULL && joins) me = &late; /* nobody dials it */
  if (me == NULL) return fail_task(p, o, err);
  bool ps = strcmp(me->job, "ps") == 0, leads = me == chief;
  if (!ps && !leads && strcmp(me->job, "worker") != 0)
    return weir_fail(err, WEIR_W0002, NULL,
                     "task %s:%u: replicas between graphs have jobs ps, worker "
                     "and chief (one task)",
                     me->job, me->index);
  bool apart = strcmp(me->job, "chief") == 0; /* its slot is the last */
  p->leads = leads;
  p->self = (weir_ps_task){ps ? WEIR_PS_SERVER : WEIR_PS_WORKER,
                           apart ? p->slots - 1 : me->index};
  p->own = me->address;
  p->chief = chief->address;
  return WEIR_OK;
}

static weir_status keep(weir_train_part *p, const char *text, const char **out,
                        weir_error *err) {
  *out = weir_arena_string(&p->list.arena, text, strlen(text));
  return *out != NULL ? WEIR_OK : weir_fail_memory(err, strlen(text));
}

/* The same where a scheduler knows the rest. */
static weir_status find_role(weir_train_part *p, const weir_train_part_opts *o,
                             weir_error *err) {
  bool ps = strcmp(o->job, "ps") == 0, worker = strcmp(o->job, "worker") == 0;
  for (uint32_t i = 0; i < p->list.count; i++) {
    p->server_count += strcmp(p->list.tasks[i].job, "ps") == 0;
    p->worker_count += strcmp(p->list.tasks[i].job, "worker") == 0;
  }
  p->listed = p->slots = p->worker_count;
  if (o->max_workers > 0)
    return weir_fail(err, WEIR_W0002, NULL,
                     "max_workers has no effect with a scheduler, which is "
                     "told how many workers there are");
  if (p->server_count == 0 || p->worker_count == 0 ||
      p->server_count + p->worker_count != p->list.count)
    return weir_fail(err, WEIR_W0002, NULL,
                     "a cluster with a scheduler has jobs ps and worker and no "
                     "others");
  p->leads = strcmp(o->job, "chief") == 0;
  if (!ps && !worker && !p->leads)
    return weir_fail(err, WEIR_W0002, NULL,
                     "job %.64s: with a scheduler there are chief (the "
                     "scheduler itself), ps and worker",
                     o->job);
  if (!worker && o->address == NULL)
    return weir_fail_null(err, "weir_train_part_opts: address");
  p->self = (weir_ps_task){ps ? WEIR_PS_SERVER : WEIR_PS_WORKER,
                           p->leads ? UINT32_MAX : o->index};
  p->ranked = o->ranked;
  if (o->address != NULL) WEIR_TRY(keep(p, o->address, &p->own, err));
  WEIR_TRY(keep(p, o->scheduler, &p->scheduler, err));
  return weir_ps_book_create(p->env.alloc, p->server_count, &p->meet.book, err);
}

/* Servers and the chief are dialled. */
static weir_status check_addresses(const weir_train_part *p, weir_error *err) {
  for (uint32_t i = 0; i < p->list.count; i++) {
    const weir_driver_task *t = &p->list.tasks[i];
    if (strcmp(t->job, "ps") == 0 || t->address == p->chief)
      WEIR_TRY(weir_task_list_check(t, err));
  }
  return WEIR_OK;
}

static weir_status copy_folder(weir_train_part *p, const char *folder,
                               weir_error *err) {
  if (folder == NULL) return WEIR_OK;
  p->generations = weir_arena_string(&p->list.arena, folder, strlen(folder));
  return p->generations != NULL ? WEIR_OK : weir_fail_memory(err, 0);
}

weir_status weir_part_find(weir_train_part *p, const weir_train_part_opts *o,
                           void (*tell)(void *part, const char *text),
                           weir_error *err) {
  weir_task_list *l = &p->list;
  p->env = p->runtime->env;
  WEIR_TRY(weir_task_list_read(p->runtime, p->graph, o->cluster, l, err));
  WEIR_TRY(weir_task_list_address(l, o->addresses, o->address_count, err));
  WEIR_TRY(copy_folder(p, o->generations, err));
  p->servers = weir_arena_array(&l->arena, l->count + 1u, sizeof *p->servers);
  if (p->servers == NULL) return weir_fail_memory(err, l->count);
  WEIR_TRY(o->scheduler != NULL ? find_role(p, o, err) : find_self(p, o, err));
  if (o->scheduler == NULL) WEIR_TRY(check_addresses(p, err));
  p->insecure = o->insecure || l->cluster->insecure;
  const weir_list_tls ask = {o->tls, p->insecure, o->job, o->index};
  WEIR_TRY(weir_task_list_tls(l, &ask, &p->tls, err));
  WEIR_TRY(
      weir_grpc_maker_init(&p->maker, &p->env, o->module_folder, tell, p, err));
  p->options = (weir_chief_options){.transports = &p->maker.transports,
                                    .tls = p->tls,
                                    .insecure = p->insecure,
                                    .address = p->own,
                                    .servers = p->servers,
                                    .book = p->meet.book,
                                    .server_count = p->server_count,
                                    .worker_count = p->worker_count,
                                    .slots = p->slots,
                                    .listed = p->listed,
                                    .own_worker = p->self.index,
                                    .folder = p->generations != NULL,
                                    .heartbeat_ns = o->heartbeat_ns,
                                    .away_ns = o->start_timeout_ns,
                                    .rejoin_ns = 10 * o->heartbeat_ns,
                                    .log = tell,
                                    .log_self = p};
  return WEIR_OK;
}
