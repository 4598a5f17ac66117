/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_KV_CLIENT_H_
#define WEIR_DIST_KV_CLIENT_H_

#include "runtime/base/alloc.h"
#include "runtime/dist/kv/kv.h"

/* A member: its queue to each server, and what it sends again.
 *
 *   submit(op)                               -> calls.send(op), calls.done(op)
 *   up(server), message..., down(server)     of the links
 *
 * Ops wait in a queue for each server. The next one is that of the highest
 * priority, and among equals the oldest; an op raises those before it on the
 * same key to its own priority, so ops on one key keep their order. Few are
 * under way, WEIR_KV_WINDOW and |window_bytes|: so one of high priority
 * overtakes all but those.
 *
 * A change gets its number when it is sent first, and keeps it. When a link
 * came back, all that is under way is looked at in its order: changes up to the
 * mark are done, the others and pulls are sent again. A server of another life
 * ends all ops on it, those to come too.
 *
 * done() comes once for each op, perhaps within submit(). */

typedef struct weir_kv_client weir_kv_client;

/* One message to one server: the program's memory until done(). */
typedef struct weir_kv_op {
  uint32_t server;
  int32_t priority;
  uint64_t bytes;          /* that it holds of the window */
  weir_kv_message message; /* kind and its fields, without numbers */
  /* In done(): */
  weir_status status;
  weir_error err;
  uint64_t version;
  bool newer;
  void *data;  /* of the answer */
  void *owner; /* the program's */
  /* The machine's: */
  struct weir_kv_op *next, *prev;
  uint64_t order;
  bool numbered; /* a change that has its |seq| */
} weir_kv_op;

typedef struct weir_kv_client_calls {
  void *self;
  /* Sends |m|, with the values of |op| (NULL: it has none). |m| is lent. */
  void (*send)(void *self, uint32_t server, const weir_kv_message *m,
               weir_kv_op *op);
  void (*done)(void *self, weir_kv_op *op);
  /* Frees the data of an answer that nobody waits for. */
  void (*drop)(void *self, void *data);
  /* Ends the link to a server, which broke the protocol. */
  void (*give_up)(void *self, uint32_t server, const weir_error *why);
} weir_kv_client_calls;

typedef struct weir_kv_client_options {
  uint32_t servers;      /* 1 to 64 */
  uint64_t incarnation;  /* of this process; not 0 */
  uint64_t window_bytes; /* under way to a server; one op at least is */
} weir_kv_client_options;

/* Errors: W7090, W6001. */
weir_status weir_kv_client_create(const weir_allocator *alloc,
                                  const weir_kv_client_options *options,
                                  const weir_kv_client_calls *calls,
                                  weir_kv_client **out_client, weir_error *err);
/* No op is left: weir_kv_client_end has been called. NULL-safe. */
void weir_kv_client_release(weir_kv_client *c);

/* The link to |server|. */
void weir_kv_client_up(weir_kv_client *c, uint32_t server);
/* It has ended; what was under way is sent again when it is up. */
void weir_kv_client_down(weir_kv_client *c, uint32_t server);
/* |m| is lent but for its data, which is taken. */
void weir_kv_client_message(weir_kv_client *c, uint32_t server,
                            const weir_kv_message *m);
void weir_kv_client_submit(weir_kv_client *c, weir_kv_op *op);
/* The op of an answer with |m|'s numbers that is under way; NULL: none. */
weir_kv_op *weir_kv_client_find(const weir_kv_client *c, uint32_t server,
                                const weir_kv_message *m);
/* All ops end with |why| (W7118), those to come too; servers are told that this
 * member leaves. */
void weir_kv_client_end(weir_kv_client *c, const weir_error *why);

#endif
