/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/kv/kv_part.h"

#include <string.h>

#include "runtime/base/map.h"
#include "runtime/dist/kv/kv.h"

static const uint64_t kSplit = UINT64_C(64) << 20;

void weir_kv_part_tell(void *self, const char *text) {
  const weir_kv_part *p = self;
  weir_log(p->runtime, WEIR_LOG_INFO, "%s", text);
  if (p->on_event != NULL) p->on_event(p->on_event_self, text);
}

static weir_status find_self(weir_kv_part *p, const weir_kv_opts *o,
                             const char *job, weir_error *err) {
  const weir_driver_task *me = NULL;
  for (uint32_t i = 0; i < p->list.count; i++) {
    const weir_driver_task *t = &p->list.tasks[i];
    if (strcmp(t->job, o->job) == 0 && t->index == o->index) me = t;
    if (strcmp(t->job, "ps") == 0) {
      WEIR_TRY(weir_task_list_check(t, err));
      p->servers[p->server_count++] = t->address;
    }
    p->member_count += strcmp(t->job, "worker") == 0;
  }
  if (p->server_count == 0 || p->member_count == 0 || p->server_count > 64 ||
      p->member_count > WEIR_KV_MEMBERS)
    return weir_fail(err, WEIR_W0002, NULL,
                     "keys need 1 to 64 tasks of job ps and 1 to %d of job "
                     "worker; the cluster has %u and %u",
                     WEIR_KV_MEMBERS, p->server_count, p->member_count);
  if (me == NULL || strcmp(me->job, job) != 0)
    return weir_fail(err, WEIR_W0002, NULL,
                     "the cluster has no task %.64s:%u that is of job %s",
                     o->job, o->index, job);
  p->own = me->address;
  return WEIR_OK;
}

static weir_status check(const weir_kv_opts *o, weir_error *err) {
  if (o->job == NULL) return weir_fail_null(err, "weir_kv_opts: job");
  if (o->heartbeat_ns < 0 || o->lost_after_ns < 0)
    return weir_fail(err, WEIR_W0002, NULL, "weir_kv_opts: a time is negative");
  if (o->lost_after_ns > 0 && strcmp(o->job, "ps") != 0)
    return weir_fail(err, WEIR_W0002, NULL,
                     "weir_kv_opts: lost_after_ns is a server's");
  return WEIR_OK;
}

weir_status weir_kv_part_init(weir_kv_part *part, weir_runtime *runtime,
                              const weir_kv_opts *opts, const char *job,
                              weir_error *err) {
  weir_kv_opts o;
  *part = (weir_kv_part){.runtime = weir_runtime_ref(runtime)};
  WEIR_TRY(WEIR_OPTS_READ(weir_kv_opts, &o, opts, err));
  WEIR_TRY(check(&o, err));
  part->index = o.index;
  part->heartbeat_ns = o.heartbeat_ns;
  part->lost_after_ns = o.lost_after_ns;
  part->on_event = o.on_event;
  part->on_event_self = o.on_event_self;
  part->split_bytes = o.split_bytes > 0 ? o.split_bytes : kSplit;
  weir_task_list *l = &part->list;
  WEIR_TRY(weir_task_list_read(runtime, NULL, o.cluster, l, err));
  part->servers =
      weir_arena_array(&l->arena, l->count + 1u, sizeof *part->servers);
  if (part->servers == NULL) return weir_fail_memory(err, l->count);
  WEIR_TRY(weir_task_list_address(l, o.addresses, o.address_count, err));
  WEIR_TRY(find_self(part, &o, job, err));
  part->hash = weir_hash_bytes(&part->split_bytes, sizeof part->split_bytes,
                               l->hash ^ UINT64_C(0x6b6579732d6b7600));
  part->insecure = o.insecure || l->cluster->insecure;
  const weir_list_tls ask = {o.tls, part->insecure, o.job, o.index};
  WEIR_TRY(weir_task_list_tls(l, &ask, &part->tls, err));
  return weir_grpc_maker_init(&part->maker, &runtime->env, o.module_folder,
                              weir_kv_part_tell, part, err);
}

void weir_kv_part_release(weir_kv_part *part) {
  weir_runtime *runtime = part->runtime;
  weir_task_list_release(&part->list);
  *part = (weir_kv_part){0};
  weir_runtime_release(runtime);
}
