/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_GATE_H_
#define WEIR_DIST_CLUSTER_GATE_H_

#include <pthread.h>
#include <stdbool.h>

#include "runtime/base/status.h"

/* A gate: any number of runs are inside, or one call that sets variables. It
 * belongs to a run, not to a thread: one thread may enter and another leave. A
 * caller that wants to be alone goes before runs that come later. */

typedef struct weir_dist_gate {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint32_t inside, wanted; /* runs; callers that want to be alone */
  bool alone;
} weir_dist_gate;

void weir_dist_gate_init(weir_dist_gate *gate);
void weir_dist_gate_release(weir_dist_gate *gate);
/* Waits until it is its turn. */
void weir_dist_gate_enter(weir_dist_gate *gate, bool alone);
/* As it was entered; lets others in. */
void weir_dist_gate_leave(weir_dist_gate *gate, bool alone);

#endif
