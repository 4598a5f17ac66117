/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_KV_SERVE_H_
#define WEIR_TRAIN_KV_SERVE_H_

#include "runtime/dist/psnet/psnet.h"
#include "runtime/exec/pool.h"

/* A server of keys, as a process: machine, net and store. Messages come on the
 * net's control thread; the store is of a thread of its own, which does the
 * work in the order in which it came. */

typedef struct weir_kv_serve weir_kv_serve;

/* The numbers of a job that all its processes have. */
weir_ps_config weir_kv_config(uint32_t servers, uint32_t members);

/* Lent for the life. */
typedef struct weir_kv_serve_options {
  weir_pool *pool;
  const weir_transports *transports;
  const weir_net_tls *tls; /* NULL: none */
  bool insecure;
  uint32_t index, server_count, member_count;
  const char *address;
  const char *const *servers; /* addresses */
  uint64_t job_hash;
  int64_t heartbeat_ns, lost_after_ns; /* 0: 1 s, 10 s */
  void (*log)(void *self, const char *text);
  void *log_self;
} weir_kv_serve_options;

/* Listens. Errors: those of weir_ps_net_create, W6001. */
weir_status weir_kv_serve_create(const weir_env *env,
                                 const weir_kv_serve_options *options,
                                 weir_kv_serve **out_serve, weir_error *err);
void weir_kv_serve_release(weir_kv_serve *s); /* NULL-safe */
const char *weir_kv_serve_address(const weir_kv_serve *s);
/* Serves until stop. Once. Errors: W6003. */
weir_status weir_kv_serve_run(weir_kv_serve *s, weir_error *err);
/* Any thread; a signal handler too. */
void weir_kv_serve_stop(weir_kv_serve *s);

#endif
