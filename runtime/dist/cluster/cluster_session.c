/* SPDX-License-Identifier: Apache-2.0
 *
 * A remote: one graph with its bundle on all tasks of a cluster. */
#include "runtime/dist/cluster/cluster_session.h"

#include <string.h>

#include "runtime/dist/cluster/cluster_checkpoint.h"
#include "runtime/dist/cluster/cluster_internal.h"
#include "runtime/dist/cluster/cluster_load.h"
#include "runtime/dist/cluster/cluster_programs.h"
#include "runtime/dist/cluster/cluster_runs.h"
#include "runtime/dist/cluster/cluster_vars.h"

static const weir_remote_vtable kDist = {.prepare = weir_dist_prepare,
                                         .forget = weir_dist_forget,
                                         .run = weir_dist_run,
                                         .decide = weir_dist_decide,
                                         .get = weir_dist_get,
                                         .set = weir_dist_set,
                                         .hold = weir_dist_hold,
                                         .load = weir_dist_load};

static weir_status add_blob(weir_dist_session *s, const uint8_t *name,
                            weir_bytes bytes, weir_error *err) {
  weir_dist_blob *blob = NULL;
  if (!weir_vec_reserve(s->dist->env->alloc, &s->blobs, 1))
    return weir_fail_memory(err, sizeof blob);
  WEIR_TRY(weir_dist_blobs_add(&s->dist->blobs, name, bytes, &blob, err));
  s->blobs.items[s->blobs.count++] = blob;
  return WEIR_OK;
}

static weir_status add_bundle(weir_dist_session *s, const weir_bundle *bundle,
                              weir_error *err) {
  const weir_allocator *alloc = s->dist->env->alloc;
  weir_bundle_blobs blobs;
  weir_bundle own = *bundle;
  pthread_mutex_lock(&s->dist->lock);
  own.number = ++s->dist->session_count;
  pthread_mutex_unlock(&s->dist->lock);
  weir_status status = weir_bundle_blobs_make(alloc, own.sources, &blobs, err);
  if (status == WEIR_OK)
    status = weir_bundle_pack(alloc, &own, &blobs, s->graph, &s->bytes, err);
  weir_sv view = weir_strbuf_view(&s->bytes);
  weir_bytes bytes = {(const uint8_t *)view.data, view.size};
  if (status == WEIR_OK) weir_blob_name(bytes, s->bundle);
  if (status == WEIR_OK) status = add_blob(s, s->bundle, bytes, err);
  for (size_t i = 0; status == WEIR_OK && i < blobs.rows.count; i++)
    status =
        add_blob(s, blobs.rows.items[i].name, blobs.rows.items[i].bytes, err);
  weir_bundle_blobs_release(&blobs);
  return status;
}

weir_status weir_dist_remote(weir_dist *dist, const weir_bundle *bundle,
                             const weir_graph *run_graph,
                             weir_remote **out_remote, weir_error *err) {
  const weir_allocator *alloc = dist->env->alloc;
  weir_dist_session *s = weir_alloc_array(alloc, 1, sizeof *s);
  *out_remote = NULL;
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->base.vt = &kDist;
  s->dist = dist;
  s->placing = bundle->placing;
  s->given = weir_graph_ref(run_graph);
  weir_arena_init(&s->arena, alloc);
  weir_strbuf_init(&s->bytes, alloc);
  pthread_mutex_init(&s->preparing, NULL);
  pthread_mutex_init(&s->moment, NULL);
  weir_status status = WEIR_OK;
  if (bundle->placing->cluster->task_count != dist->options.task_count)
    status = weir_fail(err, WEIR_W0004, NULL,
                       "the placing is of another cluster than the one that "
                       "is connected");
  if (status == WEIR_OK && run_graph->mesh != NULL)
    status = weir_graph_mesh(run_graph, &s->mesh, err);
  s->graph = s->mesh != NULL ? s->mesh->graph : run_graph;
  if (status == WEIR_OK) status = weir_dist_vars_create(s, err);
  if (status == WEIR_OK) status = add_bundle(s, bundle, err);
  if (status == WEIR_OK) status = weir_dist_open_session(s, err);
  if (status != WEIR_OK)
    weir_dist_remote_release(&s->base);
  else
    *out_remote = &s->base;
  return status;
}

void weir_dist_remote_release(weir_remote *remote) {
  weir_dist_session *s = (weir_dist_session *)remote;
  if (s == NULL) return;
  const weir_allocator *alloc = s->dist->env->alloc;
  if (s->program != 0) weir_dist_unregister(s->dist, s->program);
  for (size_t i = 0; i < s->blobs.count; i++)
    weir_dist_blobs_drop(&s->dist->blobs, s->blobs.items[i]);
  weir_vec_free(alloc, &s->blobs);
  weir_strbuf_release(&s->bytes);
  weir_arena_release(&s->arena);
  weir_mesh_graph_release(s->mesh);
  weir_graph_unref(s->given);
  pthread_mutex_destroy(&s->moment);
  pthread_mutex_destroy(&s->preparing);
  weir_free(alloc, s);
}
