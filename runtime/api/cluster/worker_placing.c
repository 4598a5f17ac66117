/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/cluster/worker_placing.h"

#include <inttypes.h>
#include <stdio.h>

#include "placement/place.h"
#include "runtime/exec/compile/compile_needs.h"

weir_status weir_worker_placing_create(const weir_env *env,
                                       const weir_graph *graph,
                                       weir_worker_gpus gpus,
                                       weir_placing **out_placing,
                                       weir_error *err) {
  weir_plan *plan = NULL;
  char cluster[96], memory[48] = "";
  if (gpus.memory_bytes > 0)
    snprintf(memory, sizeof memory, ",gpu_memory=%" PRId64, gpus.memory_bytes);
  snprintf(cluster, sizeof cluster, "worker=1,gpu=%u%s%s", gpus.count, memory,
           gpus.in_turns ? ",gpu_share=queue" : "");
  const weir_place_request request = {.graph = graph,
                                      .cluster = cluster,
                                      .options = {.strictness = WEIR_PLACE_SOFT,
                                                  .in_process = true,
                                                  .ask = weir_compile_needs,
                                                  .ask_self = env}};
  WEIR_TRY(weir_placing_create(env->alloc, &request, out_placing, &plan, err));
  weir_plan_unref(plan);
  return WEIR_OK;
}

void weir_worker_placing_release(weir_placing *placing) {
  weir_placing_unref(placing);
}
