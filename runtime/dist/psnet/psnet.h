/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PSNET_H_
#define WEIR_DIST_PSNET_H_

#include "runtime/dist/node/node.h"
#include "runtime/dist/ps/ps.h"
#include "runtime/dist/psnet/ps_book.h"
#include "runtime/dist/transports.h"

/* The machines of parameter servers (ps/ps.h) between processes: links,
 * messages and the values that go with them.
 *
 * A process is one task of a job: the chief, a server or a worker. The chief
 * and the servers take connections; a worker dials the chief and all servers,
 * the chief all servers, and a server those of a lower index. A link that ends
 * is dialled again for as long as the net lives; each time it is another link:
 * lost(), then up(), and what was under way is gone.
 *
 * A message goes whole: its receiver hears of it when its values have come, in
 * the order in which the messages of a link were sent. Values go in pieces, of
 * which both sides know number and sizes; receive() tells where they go, so
 * nothing is copied twice. A message with large values holds up the later ones
 * of its link alone. Values of few bytes (WEIR_WIRE_PS_BYTES in all) go within
 * the message: a copy or two of them cost less than a second frame, and the
 * word that their places are known.
 *
 * Places are asked for when a message is the next one of its link: receive() of
 * a message comes after message() of the one before. They come back before
 * lost(), so the same memory may serve one link after another.
 *
 * A process that dials as a task takes the place of the one before it, whose
 * link may still be up: lost(), then up(). The older one is refused from then
 * on.
 *
 * All events come on the net's control thread, which is the one thread of the
 * machine above. Other threads reach it by weir_ps_net_post. */

typedef struct weir_ps_net weir_ps_net;

/* Bytes of a value: of a tensor on its way out, or memory for one. */
typedef struct weir_ps_piece {
  void *data;
  size_t bytes;
} weir_ps_piece;

/* Where the values of a message go. The receiver fills it. */
typedef struct weir_ps_place {
  const weir_ps_piece *pieces; /* lent until message() or unreceived() */
  uint32_t count;              /* 0: the message has no values */
  void *data;                  /* becomes |m->data| in message() */
} weir_ps_place;

typedef struct weir_ps_net_events {
  void *self;
  void (*up)(void *self, weir_ps_task peer);
  /* |why|: lent for the call. Comes once for each up. */
  void (*lost)(void *self, weir_ps_task peer, const weir_error *why);
  /* A message has been announced with values, perhaps none (count 0): fills
   * |*out|. An error ends the link: what came does not fit, and so do other
   * sizes than the sender's. NULL: this process takes no values. */
  weir_status (*receive)(void *self, weir_ps_task from,
                         const weir_ps_message *m, weir_ps_place *out,
                         weir_error *err);
  /* The link ends before the values have come: |data| is the receiver's. Once
   * for each receive() that message() does not answer; before lost(). */
  void (*unreceived)(void *self, void *data);
  /* |m|, with its ledger and op, is lent for the call. */
  void (*message)(void *self, weir_ps_task from, const weir_ps_message *m);
  /* |peer|, the chief or a server, has had no link for |away_ns|, or has
   * refused this process for a while: |why| says which, and what the last
   * attempt came to. Once; the net goes on all the same. NULL: nobody asks. */
  void (*away)(void *self, weir_ps_task peer, const weir_error *why);
  /* Does what is due; returns when something is next, or INT64_MAX. After each
   * turn of the thread. NULL: nothing ever is. */
  int64_t (*step)(void *self, int64_t now_ns);
  /* A line for the log. May be NULL. */
  void (*log)(void *self, const char *text);
} weir_ps_net_events;

/* All is lent for create but |transports| and |tls|, which are for the life. */
typedef struct weir_ps_net_options {
  const weir_transports *transports;
  const weir_net_tls *tls; /* NULL: none */
  bool insecure;
  weir_ps_task self;
  /* Where this process takes connections: a server's and the chief's. */
  const char *address;
  const char *const *servers; /* addresses; for all but server 0 */
  uint32_t server_count;
  const char *chief; /* a worker's: its address */
  /* In place of |servers| and |chief|: addresses that come later, or change.
   * Lent for the net's life; NULL: none. */
  weir_ps_book *book;
  /* A job of keys (dist/kv): it has no chief, and its messages are KV alone,
   * which no other job has. */
  bool keys;
  const char *hashed; /* of |job_hash|, for messages; NULL: of a training */
  /* Of the program, the configuration and the first values: processes of
   * another one are refused by Hello. */
  uint64_t job_hash;
  const weir_ps_config *config; /* ledgers that come are checked against it */
  int64_t heartbeat_ns;         /* 0: 1 s; dead after five */
  int64_t away_ns;              /* until away(); 0: WEIR_PS_AWAY_NS */
} weir_ps_net_options;

/* Ten minutes: a process that was killed is started again in less, also on
 * another machine. */
#define WEIR_PS_AWAY_NS (600 * INT64_C(1000000000))

/* Listens; no thread runs yet, no event comes. Errors: W7090 (|self| is none of
 * |config|), W7002, those of the transports, W6001. */
weir_status weir_ps_net_create(const weir_env *env,
                               const weir_ps_net_options *options,
                               const weir_ps_net_events *events,
                               weir_ps_net **out_net, weir_error *err);
/* The address to dial, with the port that was found; "" for a worker. */
const char *weir_ps_net_address(const weir_ps_net *net);
/* Starts the threads and dials. Errors: W6003. */
weir_status weir_ps_net_start(weir_ps_net *net, weir_error *err);
/* No event comes after it, lost() for a link that is up neither; then the
 * caller's thread may touch what was the control thread's. What was sent before
 * has left when it returns, but for values, and for peers that take nothing: it
 * waits for them no longer than for a silent one. Not on a thread of the net.
 */
void weir_ps_net_stop(weir_ps_net *net);
/* Stops. Each |sent| that is due has been called. NULL-safe. */
void weir_ps_net_release(weir_ps_net *net);

/* Values on their way out, of the caller until |sent|: the pieces, what they
 * point to, and this. */
typedef struct weir_ps_values {
  const weir_ps_piece *pieces;
  uint32_t count;
  /* They are no more read: sent, or the link has ended. Control thread, later
   * than weir_ps_net_send returns. */
  void (*sent)(struct weir_ps_values *values);
  void *owner;                 /* the caller's */
  struct weir_ps_values *next; /* the net's until |sent| */
} weir_ps_values;

/* Sends |m|, copied, with |values| (NULL: none; then receive() is not asked).
 * A message to a peer that is down is dropped; |sent| is called all the same.
 * One that cannot be sent, for lack of memory or since it is too large, ends
 * the link. Control thread. */
void weir_ps_net_send(weir_ps_net *net, weir_ps_task to,
                      const weir_ps_message *m, weir_ps_values *values);
/* Ends the link to |peer|, as if it had been cut, with |why|: it sent what does
 * not fit. Control thread. */
void weir_ps_net_give_up(weir_ps_net *net, weir_ps_task peer,
                         const weir_error *why);
/* Has |call| made on the control thread, as weir_node_post. Any thread. */
void weir_ps_net_post(weir_ps_net *net, weir_node_call *call);

/* For tables and the hang report: how the link to |peer| stands, in words:
 * "up", "never answered", "refused: ...". Control thread. */
void weir_ps_net_describe(const weir_ps_net *net, weir_ps_task peer, char *text,
                          size_t size);

#endif
