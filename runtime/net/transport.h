/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_TRANSPORT_H_
#define WEIR_NET_TRANSPORT_H_

#include "runtime/base/env.h"
#include "runtime/base/status.h"
#include "runtime/base/sv.h"

/* Transports: they carry frames from one task to another.
 *
 * A frame is bytes with a length; its content is the business of rooms above.
 * The transport keeps order within a connection, never blocks, and never calls
 * back while one of its own calls is on the stack: everything that happens is
 * reported from poll(). That way the same protocol code runs over a network, in
 * one process, and in a simulator with one thread and a seeded clock.
 *
 *   t->vt->connect(t, "worker:1", &c, err);
 *   t->vt->send(t, c, frame, err);           queued, or W7's RESOURCE_EXHAUSTED
 *   t->vt->poll(t, deadline_ns, err);        calls on_frame, on_closed, ...
 *
 * Callers: one thread per transport. wake() alone may be called from any. */

typedef struct weir_transport weir_transport;
typedef uint64_t weir_connection; /* never reused; 0: none */

/* Why a connection ended. */
typedef enum weir_close_reason {
  WEIR_CLOSED_BY_US,
  WEIR_CLOSED_BY_PEER,
  WEIR_CLOSED_UNREACHABLE,
  WEIR_CLOSED_REFUSED, /* authentication or protocol */
  WEIR_CLOSED_RESET    /* frames under way may or may not have arrived */
} weir_close_reason;

/* Callbacks to the owner, from poll() only. Frames are lent for the call. */
typedef struct weir_transport_handler {
  void *self;
  void (*on_connected)(void *self, weir_connection c, weir_sv peer);
  void (*on_frame)(void *self, weir_connection c, weir_bytes frame);
  void (*on_writable)(void *self, weir_connection c); /* after a full queue */
  void (*on_closed)(void *self, weir_connection c, weir_close_reason why);
} weir_transport_handler;

typedef struct weir_transport_vtable {
  void (*release)(weir_transport *t);
  /* Starts to connect to |address|; on_connected or on_closed follows. */
  weir_status (*connect)(weir_transport *t, weir_sv address,
                         weir_connection *out_connection, weir_error *err);
  /* Accepts peers at |address|; on_connected follows for each. */
  weir_status (*listen)(weir_transport *t, weir_sv address, weir_error *err);
  /* Queues a frame. The bytes stay the caller's until |released| is called
   * (from poll, or at once when they were copied; may be NULL). Errors:
   * RESOURCE_EXHAUSTED when the queue is full, UNAVAILABLE when closed. */
  weir_status (*send)(weir_transport *t, weir_connection c, weir_bytes frame,
                      void (*released)(void *self), void *self,
                      weir_error *err);
  void (*close)(weir_transport *t, weir_connection c);
  /* Handles all events so far; waits for one until |deadline_ns| on the env's
   * clock (0: does not wait). */
  weir_status (*poll)(weir_transport *t, int64_t deadline_ns, weir_error *err);
  void (*wake)(weir_transport *t); /* ends a poll; any thread */
} weir_transport_vtable;

/* Every transport starts with this. */
struct weir_transport {
  const weir_transport_vtable *vt;
  const weir_env *env;
  weir_transport_handler handler;
};

void weir_transport_release(weir_transport *transport); /* NULL-safe */

#endif
