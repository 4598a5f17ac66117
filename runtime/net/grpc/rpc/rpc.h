/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_RPC_H_
#define WEIR_NET_GRPC_RPC_H_

#include "runtime/net/grpc/grpc_internal.h"
#include "runtime/net/rpc/rpc_server.h"

/* The structs of the server of calls on gRPC core.
 *
 * Of a call only |refs|, |gone| and the answer under way are touched by other
 * threads than the one that polls. |refs| counts the batches under way and the
 * message that waits for its answer: each of these hands its count on to the
 * next, so that a call is freed by the thread that polls. */

typedef struct weir_rpc_grpc weir_rpc_grpc;

struct weir_rpc_call {
  weir_rpc_grpc *server;
  struct weir_rpc_call *prev, *next; /* of the server; poll */
  grpc_call *call;
  uint32_t method;
  bool stream, watch;
  weir_grpc_tag received, sent, closed;
  grpc_byte_buffer *in, *out;
  void *joined; /* the message in one piece, when it came in many; or NULL */
  int64_t deadline_ns, idle_until_ns; /* INT64_MAX: not waiting */
  int cancelled;
  bool begun;   /* our metadata is sent */
  bool over;    /* so is our status */
  bool leaving; /* an answer of a watch is on its way */
  atomic_int refs;
  atomic_bool gone;
};

struct weir_rpc_grpc {
  weir_rpc_server base; /* first: the vtable finds it */
  const weir_module_host *host;
  grpc_completion_queue *queue;
  grpc_resource_quota *quota;
  grpc_server *server;
  char lock_path[WEIR_GRPC_PATH_BYTES + 8];
  int lock_fd;               /* -1 */
  struct weir_grpc_tls *tls; /* NULL: without certificates */
  weir_grpc_tls_seen seen;
  weir_grpc_refused refused; /* clients, in their handshake; poll */

  /* The request that is armed; poll. */
  grpc_call *fresh;
  grpc_call_details details;
  grpc_metadata_array metadata;
  weir_grpc_tag accepted, down;
  bool armed, going_down, releasing;
  unsigned events; /* messages reported in this poll */
  bool woken;
  size_t wanted; /* bytes that were not there in this poll */

  weir_rpc_call *calls; /* poll */
  uint32_t call_count;
  int64_t look_ns; /* for idle calls */

  /* The call that wakes, as in ../grpc_transport.c. */
  pthread_mutex_t mutex;
  grpc_channel *lame;
  grpc_call *wake;
  weir_grpc_tag wake_tag;
  bool wake_sent, closed; /* mutex */
};

/* The server of weir_grpc_functions.create_rpc (runtime/net/grpc.h). */
weir_status weir_rpc_grpc_create(const weir_module_host *host,
                                 const weir_env *env,
                                 const weir_rpc_handler *handler,
                                 const weir_rpc_options *options,
                                 weir_rpc_server **out_server, weir_error *err);

#endif
