/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/cluster/part_gpus.h"

#include <stdio.h>

#include "runtime/api/cluster/worker_placing.h"
#include "runtime/exec/gpu/gpus.h"

/* GPUs of this part's task. */
static weir_worker_gpus gpus_of(const weir_train_part *p) {
  const weir_cluster *c = p->list.cluster;
  weir_worker_gpus gpus = {0};
  for (uint32_t t = 0; c != NULL && t < c->task_count; t++) {
    const weir_cluster_task *task = &c->tasks[t];
    if (!weir_sv_is(task->job, "worker") || task->index != p->self.index)
      continue;
    for (uint32_t i = 0; i < task->device_count; i++) {
      const weir_cluster_device *d = &c->devices[task->first_device + i];
      if (d->name.type != WEIR_GPU) continue;
      gpus.count++;
      if (d->memory_given) gpus.memory_bytes = d->memory_bytes;
      gpus.in_turns |= d->in_turns;
    }
  }
  return gpus;
}

weir_status weir_part_gpus(weir_train_part *p, weir_session_options *session,
                           weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  char text[320];
  weir_worker_gpus wanted = gpus_of(p);
  uint32_t there = 0;
  if (wanted.count == 0) return WEIR_OK;
  if (weir_gpus_count(p->env.gpus, &there, &why) != WEIR_OK ||
      there < wanted.count) {
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
