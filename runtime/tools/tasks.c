/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "placement/cluster.h"
#include "runtime/api/weir_internal.h"
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
