/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/cluster/plan_gpus.h"

#include <stdio.h>
#include <string.h>

#include "runtime/exec/gpu/gpus.h"
#include "runtime/graph/train/train_spec.h"

/* Whether "auto" decides the cluster of the request. A mesh without devices has
 * CPUs. */
static bool is_auto(const weir_place_request *r) {
  if (r->cluster_section != NULL || r->graph == NULL) return false;
  if (r->cluster == NULL ? r->graph->cluster != NULL
                         : strcmp(r->cluster, "auto") != 0)
    return false;
  return r->graph->mesh == NULL || !r->graph->mesh->logical;
}

void weir_plan_gpus_auto(plan_call *c) {
  weir_error ignored = WEIR_ERROR_INIT;
  uint32_t count;
  if (!is_auto(&c->request) ||
      weir_gpus_count(c->runtime->env.gpus, &count, &ignored) != WEIR_OK)
    return;
  snprintf(c->machine, sizeof c->machine, "worker=1,gpu=%u", count);
  c->request.machine = c->machine;
}

/* Devices of several tasks may be the same GPU; one that is not there is none.
 */
static weir_status check_numbers(const weir_cluster *cluster, uint32_t count,
                                 weir_error *err) {
  for (uint32_t d = 0; d < cluster->device_count; d++) {
    const weir_cluster_device *device = &cluster->devices[d];
    if (device->name.type != WEIR_GPU ||
        device->name.index.first < (int32_t)count)
      continue;
    weir_status s = weir_fail(
        err, WEIR_W6004, NULL, "%.*s: there is no GPU %d, this process has %u",
        WEIR_SV(device->text), (int)device->name.index.first, count);
    weir_hint(err, "gpu=%u at most; `weir doctor` lists the GPUs", count);
    return s;
  }
  return WEIR_OK;
}

/* Whether the graph is trained by replicas between graphs. */
static bool is_between(const weir_graph *graph) {
  weir_error ignored = WEIR_ERROR_INIT;
  weir_train_spec *spec = NULL;
  if (graph == NULL ||
      weir_train_spec_read(graph, NULL, &spec, &ignored) != WEIR_OK)
    return false;
  bool between = spec->shared.between;
  weir_train_spec_release(spec);
  return between;
}

weir_status weir_plan_gpus_absent(void *self, const weir_cluster *cluster,
                                  uint32_t *out_kinds, weir_error *err) {
  plan_call *c = self;
  weir_error why = WEIR_ERROR_INIT;
  uint32_t count;
  *out_kinds = 0;
  if (!c->opts.present || cluster->kind_count[WEIR_GPU] == 0) return WEIR_OK;
  weir_status s = weir_gpus_count(c->runtime->env.gpus, &count, &why);
  if (s == WEIR_OK && c->opts.replica && is_between(c->request.graph))
    s = weir_fail(&why, WEIR_W6004, NULL,
                  "replicas on threads of one process compute on CPUs");
  if (s == WEIR_OK) return check_numbers(cluster, count, err);
  /* A plan that is given is as it is: where it uses them, its run fails. */
  if (c->request.replay) return WEIR_OK;
  if (c->opts.strictness > 0) {
    weir_error_copy(err, &why);
    return s;
  }
  *out_kinds = UINT32_C(1) << WEIR_GPU;
  weir_hint(&why, "what the cluster's GPUs would do, its CPUs do");
  weir_diag_warn(&c->sink, &why);
  return WEIR_OK;
}
