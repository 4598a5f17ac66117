/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_GRPC_INTERNAL_H_
#define WEIR_NET_GRPC_GRPC_INTERNAL_H_

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "runtime/base/module.h"
#include "runtime/net/grpc/address.h"
#include "runtime/net/transport.h"

/* The structs of the gRPC transport. README.md tells how they work together.
 *
 * Threads: "poll" marks fields that only the thread in poll, connect, listen,
 * close and release touches; "mutex" those that are read and written under
 * weir_grpc.mutex. No function of gRPC but the one of wake is called with that
 * mutex held, for they write to sockets and call back into us. gRPC orders our
 * threads by itself; the mutex does it again where a race detector can see it.
 */

typedef struct weir_grpc weir_grpc;
typedef struct weir_grpc_link weir_grpc_link;
struct weir_grpc_verdict; /* tls/tls.h */
struct weir_grpc_tls;

/* The tag that gRPC gives back when an operation has ended: |done| is called by
 * poll. |given| hands on what the thread that began it has written, once more
 * where a race detector can see it. */
typedef struct weir_grpc_tag {
  void (*done)(void *self, bool ok);
  void *self;
  atomic_bool given;
} weir_grpc_tag;

/* A frame on its way out; out.c. */
typedef struct weir_grpc_out weir_grpc_out;

/* One connection: a call that streams both ways. */
struct weir_grpc_link {
  weir_grpc *transport;
  weir_connection id;
  bool incoming;
  grpc_call *call;
  grpc_channel *channel;             /* of a dialled one */
  struct weir_grpc_verdict *verdict; /* likewise, with certificates */
  char peer[WEIR_NET_ADDRESS_BYTES];
  weir_grpc_tag start, headers, status, receive, send, end;

  /* poll */
  grpc_metadata marker;         /* sent with the answer to a dialler */
  grpc_metadata_array metadata; /* of the answer */
  grpc_metadata_array trailers;
  grpc_byte_buffer *received;
  grpc_status_code code; /* of a dialled one, when it has ended */
  grpc_slice details;
  int cancelled;       /* of an incoming one: the peer did not say goodbye */
  int64_t deadline_ns; /* to connect, or to end; INT64_MAX: none */
  bool receiving, status_came, silent, foreign, timed_out, broken;
  bool heard; /* a frame of it has come */

  /* mutex */
  bool open, sending, closing, peer_done, end_sent, ended;
  unsigned ops; /* batches under way */
  weir_grpc_out *first, *last, *in_flight;
  size_t queued_bytes, copied_bytes; /* those of |copied_bytes| are copies */
  char names[WEIR_NET_NAMES_BYTES];  /* of the peer's certificate */
};

/* Which files of certificates gRPC has; tls/tls.c. */
typedef struct weir_grpc_tls_seen {
  struct weir_grpc_tls *tls;
  unsigned serial;
} weir_grpc_tls_seen;

/* Peers refused in their handshake: lines about them; tls/strangers.c. */
typedef struct weir_grpc_refused {
  unsigned unsaid; /* without a line */
  int64_t due_ns;  /* no line before */
} weir_grpc_refused;

/* An address that is listened at. */
typedef struct weir_grpc_listener {
  struct weir_grpc_listener *next;
  weir_grpc *transport;
  grpc_server *server;
  weir_grpc_tls_seen seen;
  void *method;
  char bound[WEIR_NET_ADDRESS_BYTES];
  int lock_fd; /* of a unix socket's lock file; -1 */
  char lock_path[WEIR_GRPC_PATH_BYTES + 8];
  unsigned ops; /* requests under way, and the shutdown */
  grpc_call *call;
  gpr_timespec deadline;
  grpc_metadata_array metadata;
  grpc_call *unknown; /* a call of another method, to be refused */
  grpc_call_details details;
  grpc_metadata_array unknown_metadata;
  weir_grpc_tag accepted, refused, down;
  bool retired;    /* shut down, for another in its place */
  const char *why; /* it takes the place of another; NULL: it does not */
} weir_grpc_listener;

/* Peers by the calls that they have begun; cutter.c. */
typedef struct weir_grpc_cutter {
  struct weir_grpc_caller {
    char peer[64]; /* addresses of sockets are shorter */
    uint32_t calls;
    bool cut;
  } slots[64];
} weir_grpc_cutter;

/* The transport. */
struct weir_grpc {
  weir_transport base; /* first: the vtable finds it */
  const weir_module_host *host;
  grpc_completion_queue *queue;
  grpc_resource_quota *quota;
  grpc_channel *lame;
  grpc_call *wake; /* of |lame|: carries empty batches to |queue| */
  weir_grpc_tag wake_tag;
  struct weir_grpc_tls *tls; /* NULL: without certificates */
  atomic_size_t frames_out;  /* that are not freed yet */

  /* poll */
  weir_grpc_listener *listeners;
  weir_grpc_cutter cutter;
  unsigned timed;    /* links with a deadline */
  unsigned refusals; /* calls of other methods that are being answered */
  unsigned reported; /* callbacks of this poll */
  size_t wanted;     /* bytes that were not there in this poll */
  size_t heard;      /* links that have sent a frame */
  size_t fence_mib;  /* of |quota| */
  bool woken, releasing;
  bool deaf;           /* gRPC accepts no more; relisten.c */
  int64_t relisten_ns; /* no look before */
  unsigned retired;    /* listeners */
  /* Peers refused in their handshake; tls/strangers.c. */
  char suspects[128];
  weir_grpc_refused refused;

  /* mutex */
  pthread_mutex_t mutex;
  bool wake_sent, closed;
  weir_grpc_link **links; /* by the low bits of an id */
  size_t link_room, link_count;
  size_t copied_bytes; /* of all links */
  uint64_t serial;
};

static inline void weir_grpc_lock(weir_grpc *t) {
  pthread_mutex_lock(&t->mutex);
}
static inline void weir_grpc_unlock(weir_grpc *t) {
  pthread_mutex_unlock(&t->mutex);
}

/* Zeroed memory; NULL when out of memory. */
static inline void *weir_grpc_alloc(weir_grpc *t, size_t bytes) {
  void *ptr = t->host->alloc(t->base.env, bytes);
  if (ptr != NULL) memset(ptr, 0, bytes);
  return ptr;
}
static inline void weir_grpc_free(weir_grpc *t, void *ptr) {
  t->host->free(t->base.env, ptr);
}
/* Begins a batch; false: gRPC refuses it, and |tag| does not come back. */
static inline bool weir_grpc_start(grpc_call *call, const grpc_op *ops,
                                   size_t count, weir_grpc_tag *tag) {
  atomic_store_explicit(&tag->given, true, memory_order_release);
  return grpc_call_start_batch(call, ops, count, tag, NULL) == GRPC_CALL_OK;
}
/* Calls what waits for |event|'s operation. */
static inline void weir_grpc_done(const grpc_event *event) {
  weir_grpc_tag *tag = event->tag;
  (void)atomic_load_explicit(&tag->given, memory_order_acquire);
  tag->done(tag->self, event->success != 0);
}
static inline int64_t weir_grpc_now(weir_grpc *t) {
  return t->host->now_ns(t->base.env);
}

#endif
