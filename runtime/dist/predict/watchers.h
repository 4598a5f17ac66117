/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PREDICT_WATCHERS_H_
#define WEIR_DIST_PREDICT_WATCHERS_H_

#include "runtime/net/rpc/rpc_server.h"

/* Clients that watch the server's health, as balancers do: each is told the
 * state at once, and again when it changes, until it leaves or the server ends.
 * All of one thread, the one that polls. */

enum { WEIR_PREDICT_WATCHERS = 64 };

typedef struct weir_predict_watcher {
  weir_rpc_call *call; /* NULL: free */
  bool unknown;        /* there is no such service */
  bool serving;        /* was told so */
  bool told;
  bool ours; /* no answer is on its way */
} weir_predict_watcher;

typedef struct weir_predict_watchers {
  weir_rpc_server *rpc; /* lent */
  const weir_allocator *alloc;
  bool stopping;
  weir_predict_watcher items[WEIR_PREDICT_WATCHERS];
  uint32_t count;
} weir_predict_watchers;

/* A message of Watch, the first of a call or one that comes again. Errors:
 * W7075, W7077 (64 watch already): then the call is the caller's to answer. */
weir_status weir_predict_watchers_message(weir_predict_watchers *w,
                                          const weir_rpc_message *message,
                                          weir_error *err);
/* Lets go of those that have left; after each poll. */
void weir_predict_watchers_look(weir_predict_watchers *w);
/* From here on the server does not serve: all are told. */
void weir_predict_watchers_stop(weir_predict_watchers *w);
/* Ends all that are ours. The rpc server ends the others. */
void weir_predict_watchers_end(weir_predict_watchers *w);

#endif
