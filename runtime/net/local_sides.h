/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_LOCAL_SIDES_H_
#define WEIR_NET_LOCAL_SIDES_H_

#include <pthread.h>

#include "runtime/base/vec.h"
#include "runtime/net/local.h"
#include "runtime/net/parcel.h"

/* The inside of local.c: connections and the events of their two sides. All
 * functions are called under the hub's lock. */

typedef struct weir_local weir_local;
typedef struct weir_local_pair weir_local_pair;

typedef struct weir_local_side {
  weir_local_pair *both;
  weir_local *owner; /* NULL: it has ended for its owner */
  weir_connection id;
  struct weir_local_side *next; /* in the owner's ring */
  bool in_ring, tell_connected, incoming, ended;
  weir_close_reason why;     /* once |ended| */
  const char *why_text;      /* static */
  weir_net_parcels arrived;  /* frames for the owner */
  size_t queue_bytes, count; /* of |arrived| */
  char peer[WEIR_NET_ADDRESS_BYTES];
} weir_local_side;

struct weir_local_pair {
  weir_local_side sides[2]; /* the dialler's first */
};

typedef struct weir_local_listener {
  weir_local *owner;
  char address[WEIR_NET_ADDRESS_BYTES];
} weir_local_listener;

struct weir_net_hub {
  const weir_env *env;
  pthread_mutex_t lock;
  size_t holders; /* its maker and its transports */
  uint64_t names; /* given so far */
  weir_local *transports;
  WEIR_VEC(weir_local_listener) listeners;
};

struct weir_local {
  weir_transport base; /* first */
  weir_net_hub *hub;
  weir_local *next;       /* in the hub */
  pthread_cond_t changed; /* the ring, woken, loose */
  bool woken;
  bool leaving;  /* in release */
  size_t loose;  /* its parcels out of queues, not yet released */
  size_t events; /* that its owner has not yet seen */
  weir_connection last;
  weir_local_side *ring, **ring_tail;
  WEIR_VEC(weir_local_side *) sides; /* by id, rising */
};

static inline weir_local_side *weir_local_other(const weir_local_side *s) {
  return &s->both->sides[s == &s->both->sides[0]];
}

/* The side of |t| with this id; NULL: it has ended. */
weir_local_side *weir_local_find(const weir_local *t, weir_connection id);

/* Puts |s| at the end of its owner's ring, unless it stands there. */
void weir_local_ring_push(weir_local_side *s);
/* Takes the first of the ring out of it; NULL: there is none. */
weir_local_side *weir_local_ring_pop(weir_local *t);

/* One event more for the owner of |s|. */
void weir_local_tell(weir_local_side *s);
/* The end of the connection is the last event of |s|; |text| is static. Nothing
 * if it has ended already. */
void weir_local_finish(weir_local_side *s, weir_close_reason why,
                       const char *text);

/* Takes the first frame for the owner of |s|; it is loose now. */
weir_net_parcel *weir_local_take(weir_local_side *s);
/* Puts a frame that was taken back in front. */
void weir_local_untake(weir_local_side *s, weir_net_parcel *parcel);
/* Takes all frames for the owner of |s|; they are loose now. */
weir_net_parcel *weir_local_take_all(weir_local_side *s);
/* |count| parcels of |sender| are loose no longer. */
void weir_local_settle(weir_local *sender, size_t count);
/* Releases the pieces of |list|, of one sender, and frees it. Gives up the lock
 * meanwhile. */
void weir_local_let_go(weir_net_hub *hub, weir_net_parcel *list);

/* Parts |s| from its owner; returns frames that nobody will see. The pair is
 * freed with its second side. */
weir_net_parcel *weir_local_part(weir_local_side *s);

#endif
