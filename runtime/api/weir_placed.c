/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/place.h"
#include "runtime/api/weir_internal.h"
#include "runtime/exec/compile/compile.h"

/* Sessions whose nodes are placed on the devices of a cluster, all of them in
 * this process. */

struct weir_placed {
  weir_runtime *runtime; /* of the session, which outlives this */
  weir_cluster *cluster;
  char *plan;
  weir_exec_placement placement;
};

void weir_placed_release(weir_placed *p) {
  if (p == NULL) return;
  const weir_allocator *a = p->runtime->env.alloc;
  weir_cluster_release(p->cluster);
  weir_free(a, p->plan);
  weir_free(a, p);
}

weir_status weir_placer_choose(const char *name, const weir_placer **out,
                               uint64_t *out_seed, weir_error *err) {
  char forms[256];
  *out = NULL;
  *out_seed = 0;
  if (name == NULL || weir_placer_parse(weir_sv_from(name), out, out_seed))
    return WEIR_OK;
  return weir_fail(err, WEIR_W0002, NULL, "invalid placer %.40s, expected %s",
                   name, weir_placer_forms(forms, sizeof forms));
}

weir_status weir_placed_create(weir_runtime *runtime, const weir_graph *graph,
                               const weir_session_opts *opts, weir_placed **out,
                               weir_error *err) {
  const weir_allocator *a = runtime->env.alloc;
  *out = NULL;
  if (opts->in_process == NULL && opts->plan == NULL && opts->placer == NULL)
    return WEIR_OK;
  if (opts->in_process == NULL)
    return weir_fail(err, WEIR_W0002, NULL,
                     "a plan or a placer needs a cluster: in-process");
  weir_placed *p = weir_alloc_array(a, 1, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  p->runtime = runtime;
  weir_status s =
      weir_cluster_choose(a, graph, opts->in_process, &p->cluster, err);
  const weir_placer *placer;
  uint64_t seed;
  if (s == WEIR_OK) s = weir_placer_choose(opts->placer, &placer, &seed, err);
  if (s == WEIR_OK && opts->plan != NULL) {
    p->plan = weir_alloc(a, opts->plan_size + 1);
    if (p->plan == NULL)
      s = weir_fail_memory(err, opts->plan_size);
    else
      memcpy(p->plan, opts->plan, opts->plan_size);
  }
  if (s != WEIR_OK) {
    weir_placed_release(p);
    return s;
  }
  p->placement = (weir_exec_placement){
      .cluster = p->cluster,
      .placer = placer,
      .seed = seed,
      .lower = {.logical = graph->mesh != NULL && graph->mesh->logical,
                .strictness = WEIR_PLACE_WARN},
      .plan = {p->plan, p->plan != NULL ? opts->plan_size : 0},
      .summary = {opts->on_placed_self, opts->on_placed}};
  *out = p;
  return WEIR_OK;
}

const weir_exec_placement *weir_placed_get(const weir_placed *p) {
  return p == NULL ? NULL : &p->placement;
}
