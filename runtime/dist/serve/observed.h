/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_SERVE_OBSERVED_H_
#define WEIR_DIST_SERVE_OBSERVED_H_

#include "runtime/dist/task/front.h"

/* The questions of observers, answered by a task's process. */

/* The process, as of now; all is lent for the call. */
typedef struct weir_observed_process {
  const weir_allocator *alloc;
  const weir_front *front;
  const char *version;   /* may be NULL */
  uint64_t memory_bytes; /* 0: not known */
  uint64_t uptime_ns;
} weir_observed_process;

/* Answers |message| of |peer|, an observer. True: the process is to end. A
 * message that is no question ends the peer (W7011). Control thread. */
bool weir_observed_answer(const weir_observed_process *process, weir_peer *peer,
                          const struct Weir__V1__Control *message);

#endif
