/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a caller's cluster, and the transports to them. */
#include "runtime/api/cluster/task_list.h"

#include <string.h>

#include "runtime/api/weir_cluster_file.h"
#include "runtime/base/map.h"

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

bool weir_task_list_fits(const weir_task_list *list, const weir_cluster *c) {
  bool fits = c->task_count == list->count;
  for (uint32_t i = 0; fits && i < list->count; i++)
    fits = c->tasks[i].index == list->tasks[i].index &&
           weir_sv_is(c->tasks[i].job, list->tasks[i].job);
  return fits;
}

static weir_status create(void *self, const weir_transport_handler *handler,
                          const weir_transport_options *options,
                          weir_transport **out, weir_error *err) {
  weir_grpc_maker *maker = self;
  return weir_transport_grpc_create(maker->env, &maker->module, handler,
                                    options, out, err);
}

weir_status weir_grpc_maker_init(weir_grpc_maker *maker, const weir_env *env,
                                 const char *folder, weir_error *err) {
  *maker = (weir_grpc_maker){.env = env, .transports = {maker, create}};
  return weir_transport_grpc_load(&maker->module, folder, err);
}
