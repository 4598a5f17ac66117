/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_RUN_H_
#define WEIR_DIST_RUN_H_

#include "runtime/base/env.h"
#include "runtime/dist/engine.h"
#include "runtime/net/transport.h"

/* The engine of a task: an exec session for each bundle of the driver, with the
 * task's share of the programs.
 *
 * Graphs are loaded and compiled on a thread of the engine's own, one job after
 * the other; steps run on the pool of the session, whose threads are made at
 * begin and gone at ENDED. */

typedef struct weir_run_engine_options {
  int threads;                          /* of the pool; 0: one per core */
  const struct weir_registry *registry; /* lent; NULL: the built-in one */
  weir_engine_events events;
  /* The folder beneath which checkpoints of drivers may be read and written;
   * copied. NULL: none, no files are touched. */
  const char *checkpoint_root;
  struct weir_run_stores *stores; /* run_store.h; lent; NULL: no shares */
} weir_run_engine_options;

/* |env| is lent for the engine's life; its files are used for checkpoints
 * alone. Errors: W6001, W6003. */
weir_status weir_run_engine_create(const weir_env *env,
                                   const weir_run_engine_options *options,
                                   weir_engine **out_engine, weir_error *err);

/* A bulk frame of |peer| (a place, or WEIR_PEER_DRIVER); one thread at a time
 * for each peer, also while there is no session. An error: the peer broke the
 * protocol and is given up. */
weir_status weir_run_engine_bulk(weir_engine *engine, uint32_t peer,
                                 const weir_net_frame *frame, weir_error *err);

/* Bits of Register.flags: the program is compiled without groups and fails at
 * the first NaN. */
enum { WEIR_REGISTER_TRAP_NAN = 1 };

#endif
