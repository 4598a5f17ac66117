/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_TASKS_H_
#define WEIR_API_TASKS_H_

#include "runtime/api/cluster/task_list.h"

/* The tasks that a driver has taken. */
struct weir_tasks {
  atomic_int refs;
  weir_runtime *runtime; /* held */
  weir_task_list list;
  weir_grpc_maker maker;
  weir_dist *dist;
  bool stop; /* the tasks' processes end with it */
};

/* One more reference, which is returned. */
weir_tasks *weir_tasks_ref(weir_tasks *tasks);

#endif
