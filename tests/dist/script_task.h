/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DIST_SCRIPT_TASK_H_
#define TESTS_DIST_SCRIPT_TASK_H_

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/net/local.h"

/* A task that computes nothing: it says Hello over transports in memory, takes
 * a session, and answers as its script says. It fetches bundles and plans, and
 * moves large values by the real rendezvous. Each has a thread.
 *
 * A program whose fetch is |written| assigns: "ps" prepares it and gives the
 * number of the step in all elements. All others are of one task, which gives
 * back its feed. "ps" has one variable. */

typedef struct script_task script_task;

typedef struct script_options {
  weir_net_hub *hub;
  const weir_env *env;
  const char *job;
  uint32_t index;
  uint32_t written;      /* a value; UINT32_MAX: none */
  size_t variable_bytes; /* of the one variable */
  bool fails;            /* each step does, by node order 7 */
  bool stuck;            /* no step ends */
  bool mute;             /* large fetches are never sent */
  bool confirms;         /* commits; a task of weir does */
} script_options;

/* Ends the test when it cannot. */
script_task *script_task_start(const script_options *options);
/* Where it listens. */
const char *script_task_address(const script_task *task);
/* Ends the process, so to speak: connections close. */
void script_task_stop(script_task *task);

/* The messages that it has got: registrations, steps, commits, aborts, blobs,
 * ends. */
typedef struct script_heard {
  atomic_uint programs, steps, commits, aborts, blobs, ends;
} script_heard;
script_heard *script_task_heard(script_task *task);

#endif
