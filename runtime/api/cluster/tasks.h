/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_TASKS_H_
#define WEIR_API_TASKS_H_

#include "runtime/api/cluster/task_list.h"
#include "runtime/dist/deal/deal.h"

/* The tasks that a driver has taken. */
struct weir_tasks {
  atomic_int refs;
  weir_runtime *runtime; /* held */
  weir_task_list list;
  weir_grpc_maker maker;
  weir_dist *dist;                     /* NULL: runs are dealt */
  weir_deal *deal;                     /* NULL: graphs are cut */
  char (*names)[WEIR_TASK_NAME_BYTES]; /* with |deal|: of all tasks */
  void (*on_lost)(void *self, const char *task, const weir_error *why);
  void (*on_run)(void *self);
  void *on_deal_self;
  weir_state_teller teller;
  bool stop;   /* the tasks' processes end with it */
  bool shared; /* with other drivers */
};

/* One more reference, which is returned. */
weir_tasks *weir_tasks_ref(weir_tasks *tasks);

#endif
