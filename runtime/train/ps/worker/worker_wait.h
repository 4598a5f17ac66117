/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_WORKER_WAIT_H_
#define WEIR_TRAIN_PS_WORKER_WAIT_H_

#include "runtime/dist/ps/worker.h"

/* The wait of a worker that does not end, in words: for whom, and how the links
 * to them stand. */

typedef struct weir_worker_wait {
  int64_t limit_ns; /* a line after so long, then after twice that, ... */
  /* How the link to |peer| stands, as weir_ps_net_describe; or NULL. */
  void (*describe)(void *self, weir_ps_task peer, char *text, size_t size);
  void *self;
  /* Its own: what was seen last, since when, and the next line. */
  weir_ps_worker_state state;
  uint64_t run, servers, done;
  int64_t since_ns, next_ns;
} weir_worker_wait;

/* Looks at the worker at |now_ns|. |text| (of 512 bytes) gets a line if one is
 * due, else "". Returns when the next may be, or INT64_MAX. */
int64_t weir_worker_wait_look(weir_worker_wait *wait,
                              const weir_ps_worker *worker, int64_t now_ns,
                              char text[512]);

#endif
