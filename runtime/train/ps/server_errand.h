/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_ERRAND_H_
#define WEIR_TRAIN_PS_SERVER_ERRAND_H_

#include <pthread.h>

#include "runtime/base/status.h"
#include "runtime/dist/node/node.h"

/* A thread that does work for the control thread, in the order in which it was
 * given, and tells of each when it is done. The memory is the caller's, so
 * giving work never fails. */

typedef struct weir_ps_errand {
  void (*work)(void *self); /* on the thread */
  weir_node_call done;      /* posted after it */
  void *self;
  struct weir_ps_errand *next; /* the thread's */
} weir_ps_errand;

typedef struct weir_ps_runner {
  pthread_t thread;
  bool started, stop;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  weir_ps_errand *first, *last;
  /* weir_ps_net_post, or a test's. */
  void (*post)(void *self, weir_node_call *call);
  void *self;
} weir_ps_runner;

void weir_ps_runner_init(weir_ps_runner *r);
/* Errors: W6003. */
weir_status weir_ps_runner_start(weir_ps_runner *r, weir_error *err);
/* Any thread. */
void weir_ps_runner_give(weir_ps_runner *r, weir_ps_errand *errand);
/* In a work function: waits until then, on the monotonic clock, or until it is
 * to stop. */
void weir_ps_runner_rest(weir_ps_runner *r, int64_t until_ns);
/* Ends what is under way; what waits is not done, nor told of. */
void weir_ps_runner_stop(weir_ps_runner *r);
void weir_ps_runner_destroy(weir_ps_runner *r);

#endif
