/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_TRANSPORT_H_
#define WEIR_NET_TRANSPORT_H_

#include "runtime/base/env.h"
#include "runtime/base/status.h"
#include "runtime/base/sv.h"

/* Transports: they carry frames from one task to another.
 *
 * A frame is bytes with a length; its content is the business of rooms above.
 * It goes out as a list of pieces, which are not copied, and comes in as a list
 * of pieces, which may be kept. A transport keeps the order of frames within a
 * connection. Everything that happens is reported from poll(), on the thread
 * that polls, never from inside another call. That way the same protocol code
 * runs over a network, in one process, and in a simulator with one thread and a
 * seeded clock.
 *
 *   t->vt->listen(t, "127.0.0.1:0", bound, err);    |bound| has the port
 *   t->vt->connect(t, "127.0.0.1:40123", &c, err);  on_connected or on_closed
 *   t->vt->send(t, c, pieces, 2, err);              queued, never waits
 *   t->vt->poll(t, deadline_ns, err);               calls on_frame, ...
 *
 * Each transport serves one class of frames, control or bulk: a task has two of
 * them, each with its own thread, so that a small message overtakes a large
 * tensor. The address of a task's second one travels in its first message.
 *
 * Callers: poll, listen, connect and close on one thread per transport; send
 * and wake on any. Release after the last call of any other thread. */

typedef struct weir_transport weir_transport;
typedef uint64_t weir_connection; /* never reused; 0: none */

/* Room for an address: "127.0.0.1:40123", "[::1]:40123", "name:40123" or
 * "unix:/path", with its NUL. Port 0 in listen: one that is free. */
enum { WEIR_NET_ADDRESS_BYTES = 256 };
/* Room for the names of a certificate, with their NUL. */
enum { WEIR_NET_NAMES_BYTES = 512 };

typedef enum weir_net_class { WEIR_NET_CONTROL, WEIR_NET_BULK } weir_net_class;

/* Why a connection ended. */
typedef enum weir_close_reason {
  WEIR_CLOSED_BY_PEER,     /* it said goodbye; all its frames have come */
  WEIR_CLOSED_UNREACHABLE, /* it never began */
  WEIR_CLOSED_REFUSED, /* by the peer's transport: another protocol, limit */
  WEIR_CLOSED_RESET,   /* frames under way may or may not have arrived */
  /* With certificates, before it began: */
  WEIR_CLOSED_FOREIGN,     /* the peer's is of another authority, or unfit */
  WEIR_CLOSED_EXPIRED,     /* the peer's has expired, or is not valid yet */
  WEIR_CLOSED_NOT_TRUSTED, /* the peer ended it when it had seen ours */
  WEIR_CLOSED_NO_TLS,      /* the peer shows no certificate at all */
  WEIR_CLOSE_REASONS
} weir_close_reason;

/* A piece of a frame on its way out. |released| NULL: the bytes are copied
 * before send returns. Else they must not change until |released| is called:
 * once, on any thread, with no lock held, perhaps before send returns. */
typedef struct weir_net_piece {
  const void *data;
  size_t size;
  void (*released)(void *self);
  void *self;
} weir_net_piece;

/* A frame that came in: |count| pieces, cut anywhere and not aligned, |size|
 * bytes in all. Lent for the call of on_frame; weir_net_frame_ref keeps it,
 * weir_net_frame_unref may then be called on any thread, before the transport
 * is released. Memory that is kept is the peer's credit: rooms above bound it.
 */
typedef struct weir_net_frame {
  const weir_bytes *pieces;
  size_t count, size;
  void (*ref)(struct weir_net_frame *frame);
  void (*unref)(struct weir_net_frame *frame);
} weir_net_frame;

static inline void weir_net_frame_ref(weir_net_frame *frame) {
  frame->ref(frame);
}
static inline void weir_net_frame_unref(weir_net_frame *frame) {
  if (frame != NULL) frame->unref(frame);
}

/* Callbacks to the owner, from poll() only. They may call any function of the
 * transport but poll and release. */
typedef struct weir_transport_handler {
  void *self;
  /* |peer|: the address, for messages. |incoming|: by listen. Then frames may
   * be sent; those sent earlier go out now. */
  void (*on_connected)(void *self, weir_connection c, weir_sv peer,
                       bool incoming);
  void (*on_frame)(void *self, weir_connection c, weir_net_frame *frame);
  /* The connection has ended and takes no more frames. |why_text| says in words
   * what the transport knows ("Connection refused"), or is empty. Not called
   * after close() of our own. */
  void (*on_closed)(void *self, weir_connection c, weir_close_reason why,
                    weir_sv why_text);
} weir_transport_handler;

/* The certificates of a process: files in PEM form, which are read anew for
 * each connection. With them all connections of a transport are encrypted, and
 * both sides show a certificate of an authority that the other knows; who has
 * none is refused before a byte of a frame is read. Which task a certificate is
 * of is not for the transport to check: weir_transport_names tells. */
typedef struct weir_net_tls {
  const char *ca;   /* the authorities that certificates are signed by */
  const char *cert; /* this process's, then those between it and |ca| */
  const char *key;  /* its private key, without a passphrase */
  const char *name; /* which |cert| must have as a URI: "weir://worker/0"; NULL
                       in a server of calls alone (rpc/rpc_server.h) */
} weir_net_tls;

typedef struct weir_transport_options {
  weir_net_class cls;
  size_t max_frame_bytes; /* a peer that sends more is cut off; 0: 2 MiB */
  size_t
      max_queue_bytes; /* of frames not yet sent, per connection; 0: 64 MiB */
  int64_t connect_ns;  /* an attempt to connect ends then; 0: 5 s */
  bool insecure; /* frames may go unencrypted to and from other machines */
  const weir_net_tls *tls; /* lent for the transport's life; NULL: no
                              certificates, frames are not encrypted */
} weir_transport_options;

typedef struct weir_transport_vtable {
  /* Ends all connections; frames not yet sent may be lost. Each |released| has
   * been called when it returns. */
  void (*release)(weir_transport *t);
  /* Accepts peers at |address|; |out_bound| gets the address to dial. Errors:
   * W7002 (taken, foreign, not an address: the message says which), W7060 (own
   * certificates). */
  weir_status (*listen)(weir_transport *t, weir_sv address,
                        char out_bound[WEIR_NET_ADDRESS_BYTES],
                        weir_error *err);
  /* Starts to connect; on_connected or on_closed follows from poll. One
   * attempt: to try again is the caller's. Errors: W7002, W7060, W6001. */
  weir_status (*connect)(weir_transport *t, weir_sv address,
                         weir_connection *out_connection, weir_error *err);
  /* Queues a frame of |count| pieces, also before on_connected. Any thread.
   * After an error no |released| is called. Errors: W7003 (the queue is full),
   * W7001 (the connection has ended), W6001. */
  weir_status (*send)(weir_transport *t, weir_connection c,
                      const weir_net_piece *pieces, size_t count,
                      weir_error *err);
  /* Ends |c| after the frames queued so far; they may be lost when the peer is.
   * No callback for |c| follows. */
  void (*close)(weir_transport *t, weir_connection c);
  /* Handles all events so far; waits for one until |deadline_ns| on the env's
   * clock (0: does not wait; INT64_MAX: for ever). Errors: W6001. */
  weir_status (*poll)(weir_transport *t, int64_t deadline_ns, weir_error *err);
  /* Ends a poll that waits, or the next one. Any thread. */
  void (*wake)(weir_transport *t);
  /* As weir_transport_names. NULL: no peer has any. */
  bool (*names)(weir_transport *t, weir_connection c,
                char out[WEIR_NET_NAMES_BYTES]);
} weir_transport_vtable;

/* Every transport starts with this. */
struct weir_transport {
  const weir_transport_vtable *vt;
  const weir_env *env;
  weir_transport_handler handler;
  weir_transport_options options; /* with its defaults put in */
};

/* Puts in the defaults. For implementations. */
void weir_transport_init(weir_transport *transport,
                         const weir_transport_vtable *vt, const weir_env *env,
                         const weir_transport_handler *handler,
                         const weir_transport_options *options);
void weir_transport_release(weir_transport *transport); /* NULL-safe */

/* Tells the names of weir in the certificate of |c|'s other side, each followed
 * by a space: "weir://worker/0 weir://driver "; from on_connected on. False:
 * without certificates. Any thread. */
bool weir_transport_names(weir_transport *transport, weir_connection c,
                          char out[WEIR_NET_NAMES_BYTES]);

#endif
