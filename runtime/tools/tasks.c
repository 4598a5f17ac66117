/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "placement/cluster.h"
#include "runtime/api/cluster/task_list.h"
#include "runtime/api/weir_internal.h"
#include "runtime/graph/train/train_spec.h"
#include "runtime/tools/tools.h"

/* The tasks of a cluster's text. */

weir_status weir_tools_tasks(weir_runtime *runtime, const char *text,
                             bool (*task)(void *self, const char *job,
                                          uint32_t index),
                             void *self, weir_error *err) {
  weir_cluster *c = NULL;
  bool more = true;
  WEIR_TRY(
      weir_cluster_from_text(runtime->env.alloc, weir_sv_from(text), &c, err));
  for (uint32_t i = 0; more && i < c->task_count; i++) {
    char job[128];
    snprintf(job, sizeof job, "%.*s", WEIR_SV(c->tasks[i].job));
    more = task(self, job, c->tasks[i].index);
  }
  weir_cluster_release(c);
  return WEIR_OK;
}

weir_status weir_tools_cluster_tasks(weir_runtime *runtime, const char *text,
                                     bool (*task)(void *self, const char *job,
                                                  uint32_t index),
                                     void *self, weir_error *err) {
  weir_task_list list;
  weir_status s = weir_task_list_read(runtime, NULL, text, &list, err);
  bool more = s == WEIR_OK;
  for (uint32_t i = 0; more && i < list.count; i++)
    more = task(self, list.tasks[i].job, list.tasks[i].index);
  weir_task_list_release(&list);
  return s;
}

weir_status weir_tools_trains_between(const weir_graph *graph, bool *out,
                                      weir_error *err) {
  weir_train_spec *spec = NULL;
  *out = false;
  if (graph->train == NULL) return WEIR_OK; /* the trainer says so */
  WEIR_TRY(weir_train_spec_read(graph, NULL, &spec, err));
  *out = spec->shared.between;
  weir_train_spec_release(spec);
  return WEIR_OK;
}
