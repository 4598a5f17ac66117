/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/cluster/part_gpus.h"

#include <stdio.h>

#include "runtime/api/cluster/worker_placing.h"
#include "runtime/exec/gpu/gpus.h"

/* GPUs of this part's task. */
static uint32_t gpus_of(const weir_train_part *p) {
  const weir_cluster *c = p->list.cluster;
  uint32_t count = 0;
  for (uint32_t t = 0; c != NULL && t < c->task_count; t++) {
    const weir_cluster_task *task = &c->tasks[t];
    if (!weir_sv_is(task->job, "worker") || task->index != p->self.index)
      continue;
    for (uint32_t d = 0; d < task->device_count; d++)
      count += c->devices[task->first_device + d].name.type == WEIR_GPU;
  }
  return count;
}

weir_status weir_part_gpus(weir_train_part *p, weir_session_options *session,
                           weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  char text[320];
  uint32_t wanted = gpus_of(p), there = 0;
  if (wanted == 0) return WEIR_OK;
  if (weir_gpus_count(p->env.gpus, &there, &why) != WEIR_OK || there < wanted) {
    if (why.id[0] == 0)
      snprintf(why.message, sizeof why.message, "this process has %u GPUs",
               there);
    snprintf(text, sizeof text, "no GPU is used, the CPU computes: %.200s",
             why.message);
    weir_log(p->runtime, WEIR_LOG_WARNING, "%s", text);
    return WEIR_OK;
  }
  WEIR_TRY(weir_worker_placing_create(&p->env, p->job->split->worker, wanted,
                                      &p->placing, err));
  session->placing = p->placing;
  return WEIR_OK;
}
