/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_RPC_SERVER_H_
#define WEIR_NET_RPC_SERVER_H_

#include "runtime/base/env.h"
#include "runtime/base/status.h"
#include "runtime/base/sv.h"
#include "runtime/net/transport.h"

/* Servers of calls: a message comes, an answer goes.
 *
 * A transport (../transport.h) has frames between tasks of weir; this is what
 * programs of others call. A server knows paths of methods and bytes, nothing
 * of their meaning. All that happens is reported from poll(), on the thread
 * that polls; answers may come later, from any thread.
 *
 *   s->vt->listen(s, "127.0.0.1:0", bound, err);   |bound| has the port
 *   s->vt->poll(s, deadline_ns, err);              calls on_message
 *   s->vt->reply(s, call, &reply);                 each message, once
 *
 * A plain call is one message and one answer. A stream is any number of them,
 * in turn: the next message comes once the last is answered, and the stream
 * ends when the client says so, or with the first answer that is an error. A
 * watch is one message and any number of answers: after each, when it has left,
 * the message is reported |again|, without its bytes, for the owner to answer
 * when there is news; an error ends it. A poll ends when the client of a watch
 * has left, which `gone` tells; then any answer lets go of the call.
 *
 * Callers: listen and poll on one thread; reply, gone and wake on any. Release
 * when each message has been answered and no other thread calls. */

typedef struct weir_rpc_server weir_rpc_server;
typedef struct weir_rpc_call weir_rpc_call; /* the implementation's */

typedef struct weir_rpc_method {
  const char *path; /* "/grpc.health.v1.Health/Check"; static */
  bool stream, watch;
} weir_rpc_method;

/* A message that came. The bytes and |call| are lent until the answer. */
typedef struct weir_rpc_message {
  weir_rpc_call *call;
  uint32_t method;     /* an index in options.methods */
  int64_t deadline_ns; /* on the env's clock; INT64_MAX: none */
  weir_bytes bytes;    /* in one piece */
  bool again;          /* of a watch: after an answer */
} weir_rpc_message;

typedef struct weir_rpc_reply {
  weir_status status;       /* the number goes out as it is */
  const char *text;         /* unless |status| is WEIR_OK */
  const weir_bytes *pieces; /* of the answer; copied */
  size_t count;             /* 0: an empty one; a stream's has one or more */
} weir_rpc_reply;

typedef struct weir_rpc_handler {
  void *self;
  /* From poll() alone. It may call reply, also for this message. */
  void (*on_message)(void *self, const weir_rpc_message *message);
} weir_rpc_handler;

typedef struct weir_rpc_options {
  const weir_rpc_method *methods; /* lent for the server's life */
  uint32_t method_count;
  size_t max_message_bytes; /* a call with more ends: RESOURCE_EXHAUSTED */
  uint32_t max_calls;       /* open ones; more are refused likewise */
  int64_t idle_ns; /* a call whose next message does not come ends then */
  bool insecure;   /* answers may leave this machine unencrypted */
  /* Lent for the server's life; NULL: nothing is encrypted. Without |ca|
   * clients need no certificate; |name| is NULL. */
  const weir_net_tls *tls;
} weir_rpc_options;

typedef struct weir_rpc_vtable {
  /* Waits a moment for answers to leave, then ends all calls. */
  void (*release)(weir_rpc_server *s);
  /* Once. |out_bound|, of WEIR_NET_ADDRESS_BYTES, gets the address to dial.
   * Errors: W7002, W7060. */
  weir_status (*listen)(weir_rpc_server *s, weir_sv address, char *out_bound,
                        weir_error *err);
  /* Handles what has come; waits for it until |deadline_ns| on the env's clock
   * (0: does not wait; INT64_MAX: for ever). Errors: W6001. */
  weir_status (*poll)(weir_rpc_server *s, int64_t deadline_ns, weir_error *err);
  /* Ends a poll that waits, or the next one. */
  void (*wake)(weir_rpc_server *s);
  /* Answers; |call| is gone for the caller. */
  void (*reply)(weir_rpc_server *s, weir_rpc_call *call,
                const weir_rpc_reply *reply);
  /* Whether nobody waits for the answer any more. */
  bool (*gone)(weir_rpc_server *s, const weir_rpc_call *call);
} weir_rpc_vtable;

/* Every server starts with this. */
struct weir_rpc_server {
  const weir_rpc_vtable *vt;
  const weir_env *env;
  weir_rpc_handler handler;
  weir_rpc_options options;
};

/* How a process gets its server: gRPC's, or one in memory in tests. */
typedef struct weir_rpc_maker {
  void *self;
  weir_status (*create)(void *self, const weir_rpc_handler *handler,
                        const weir_rpc_options *options,
                        weir_rpc_server **out_server, weir_error *err);
} weir_rpc_maker;

static inline void weir_rpc_server_release(weir_rpc_server *s) { /* NULL-safe */
  if (s != NULL) s->vt->release(s);
}

#endif
