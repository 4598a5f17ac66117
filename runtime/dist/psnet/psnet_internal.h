/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PSNET_INTERNAL_H_
#define WEIR_DIST_PSNET_INTERNAL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/dist/channel/exchange.h"
#include "runtime/dist/cluster/wires.h"
#include "runtime/dist/link/out.h"
#include "runtime/dist/psnet/ps_message.h"
#include "runtime/dist/psnet/psnet.h"

/* Shared by the files of psnet. */

typedef struct weir_ps_link weir_ps_link;
typedef struct weir_ps_transfer weir_ps_transfer;

enum { WEIR_PS_WORDS = 256 };

/* The place of another task. Its number is the wires' place of its frames. */
typedef struct weir_ps_seat {
  weir_ps_task task;
  /* NULL: it dials, or there is no link to it. "": not known yet; with a book
   * it has room for any. */
  char *address;
  weir_peer *peer;           /* that was dialled */
  weir_ps_link *link;        /* up; changes under the net's lock */
  int64_t next_ns, pause_ns; /* when it is dialled again */
  int64_t up_ns;             /* since when it is up */
  int64_t away_ns;           /* since when it is not; 0: not yet looked at */
  int64_t refused_ns;        /* since when it refuses us; 0: it does not */
  char last[WEIR_PS_WORDS];  /* why the last link ended; "": none has */
} weir_ps_seat;

struct weir_ps_net {
  const weir_env *env;
  weir_arena arena;
  weir_ps_task self;
  weir_ps_config config;
  bool keys;
  weir_ps_net_events events;
  char address[WEIR_NET_ADDRESS_BYTES];
  weir_wires *wires;
  weir_ps_book *book;    /* NULL: addresses stay as they are */
  weir_node_call settle; /* posted when something lies in the lists */
  weir_node_call read;   /* posted when the book has changed */
  bool started;
  int64_t linger_ns;           /* at its end */
  int64_t away_ns, refused_ns; /* how long a peer may be away, or refuse us */
  bool told_away;
  weir_node_call linger;
  atomic_uint leaving; /* frames that are waited for */
  pthread_mutex_t lock;
  pthread_cond_t changed; /* a transfer that came is over */
  /* Under the lock: */
  weir_ps_transfer *ended;
  weir_ps_link *dead; /* links that nothing holds any more */
  bool posted;        /* |settle| is under way */
  bool reads;         /* |read| is */
  bool stopped;       /* the threads have ended: nothing is posted */
  /* Of the control thread: */
  weir_ps_values *dropped; /* sent, or no link took them */
  uint32_t links;          /* that ever were */
  uint32_t seat_count;
  weir_ps_seat *seats; /* the chief, servers, workers */
};

/* A link that is up, and its rest until nothing holds it any more. */
struct weir_ps_link {
  weir_ps_net *net;
  weir_ps_seat *seat;
  weir_peer *peer; /* NULL: it has ended */
  weir_link_out *out;
  weir_exchange *values;
  uint32_t number;     /* the lane of its bulk frames */
  uint32_t uses;       /* under the net's lock: see psnet_link.c */
  weir_ps_link *next;  /* dead */
  bool heard;          /* a message has come */
  uint64_t sent, came; /* the last transfers */
  /* Messages that came and wait for the values of the first. */
  weir_ps_parcel *first, *last;
  size_t waiting, waiting_bytes;
  weir_ps_transfer *in; /* the values of |first|; NULL: not yet */
  void *data;           /* the receiver's, with |in| */
};

/* psnet.c: */

/* Has the lists read on the control thread. With the lock. */
void weir_ps_net_wake(weir_ps_net *net);
int64_t weir_ps_net_now(const weir_ps_net *net);
/* NULL: there is no such task. */
weir_ps_seat *weir_ps_net_seat(const weir_ps_net *net, weir_ps_task task);

#endif
