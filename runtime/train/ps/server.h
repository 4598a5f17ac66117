/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_H_
#define WEIR_TRAIN_PS_SERVER_H_

#include "runtime/train/ps/server_host.h"

/* A parameter server of a training job over processes: it has its variables,
 * lends them to workers and applies what they push.
 *
 *   weir_ps_serve_create -> weir_ps_serve_run, which blocks until the chief
 *   says that the job is over -> weir_ps_serve_release
 *
 * A server that is started again with the same folder goes on as the same one:
 * the chief takes all servers back to the last generation. */

typedef struct weir_ps_serve weir_ps_serve;

typedef struct weir_ps_serve_options {
  const weir_ps_job *job; /* lent for the life, as all here */
  uint32_t index;
  weir_pool *pool;
  const char *dir; /* of generations; NULL: none (server_host.h) */
  uint64_t limit;  /* server 0: steps of the job; WEIR_PS_NONE: no limit */
  /* As in psnet.h. */
  const weir_transports *transports;
  const weir_net_tls *tls;
  bool insecure;
  const char *address;        /* where it takes connections */
  const char *const *servers; /* config.servers of them; not for server 0 */
  weir_ps_book *book; /* in place of addresses; as in psnet.h; NULL: none */
  int64_t heartbeat_ns;
  int64_t away_ns;
  weir_ps_failpoints failpoints;
  /* A line; on a thread of the server. May be NULL. */
  void (*log)(void *self, const char *text);
  void *log_self;
} weir_ps_serve_options;

/* Listens and opens the folder; no event comes yet. Errors: those of
 * weir_ps_host_create and weir_ps_net_create. */
weir_status weir_ps_serve_create(const weir_env *env,
                                 const weir_ps_serve_options *options,
                                 weir_ps_serve **out_serve, weir_error *err);
/* NULL-safe; not while it runs. */
void weir_ps_serve_release(weir_ps_serve *serve);
/* The address to dial, with the port that was found. */
const char *weir_ps_serve_address(const weir_ps_serve *serve);

/* Serves until the job is over, |*out_over|, or weir_ps_serve_stop. Once.
 * Errors: W6003; that of an update, without which the server cannot go on;
 * W7022, W7023 (the chief or a server stays away, or refuses this one); W7101.
 */
weir_status weir_ps_serve_run(weir_ps_serve *serve, bool *out_over,
                              weir_error *err);
/* Ends without a word: for the others it is dead. From any thread, and from
 * signal handlers. */
void weir_ps_serve_stop(weir_ps_serve *serve);

#endif
