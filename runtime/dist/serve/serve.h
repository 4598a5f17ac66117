/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_SERVE_H_
#define WEIR_DIST_SERVE_H_

#include "runtime/base/env.h"
#include "runtime/dist/states.h"
#include "runtime/dist/transports.h"

/* A process of a task: it serves one driver after the other, or several that
 * share variables, and knows no graph.
 *
 *   weir_serve_create(env, &options, &serve, err);   listens
 *   weir_serve_run(serve, err);                      until it is stopped
 *   weir_serve_release(serve);
 *
 * Threads: control, bulk, one for loading and compiling, and while there is a
 * session those of its pool. */

typedef struct weir_serve weir_serve;

/* All is lent for create; |transports|, |registry|, |log| and
 * |states| for the
 * life. */
typedef struct weir_serve_options {
  const weir_transports *transports;
  const char *job;
  uint32_t index;
  const char *address; /* of control; bulk connections are taken at port 0 of
                          the same host, or at PATH.bulk of a unix socket */
  uint64_t cluster_hash;
  int threads; /* of a session's pool; 0: one per core */
  const struct weir_registry *registry; /* of ops; NULL: the built-in one */
  bool insecure;                        /* unencrypted to other machines, too */
  const weir_net_tls *tls; /* certificates; lent for the life; NULL: none */
  int64_t heartbeat_ns;    /* 0: 1 s; suspect after three, dead after five */
  int64_t start_ns;        /* for connections between tasks; 0: 30 s */
  int64_t driver_ns;       /* until a first session begins; 0: for ever */
  /* The folder beneath which drivers may have checkpoints read and written by
   * this task; NULL: none. */
  const char *checkpoint_root;
  void (*log)(void *self, const char *text); /* control thread; may be NULL */
  void *log_self;
  weir_states states; /* all but that it listens */
  /* For observers: */
  const char *version;            /* for the life; NULL: none is told */
  uint64_t (*memory_bytes)(void); /* of the process; NULL: not known */
} weir_serve_options;

/* |env| is lent for the life. Errors: W7002 (the address), those of the
 * transports, W6001, W6003. */
weir_status weir_serve_create(const weir_env *env,
                              const weir_serve_options *options,
                              weir_serve **out_serve, weir_error *err);
/* The address to dial: with the port that was found. */
const char *weir_serve_address(const weir_serve *serve);
/* Serves until weir_serve_stop, or until a driver or an observer ends the
 * process. A session under way is given up. Blocks; once. Errors: W6003, W7025
 * (no driver came in time). */
weir_status weir_serve_run(weir_serve *serve, weir_error *err);
/* Any thread, also before run. */
void weir_serve_stop(weir_serve *serve);
void weir_serve_release(weir_serve *serve); /* NULL-safe */

#endif
