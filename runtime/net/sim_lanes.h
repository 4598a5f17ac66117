/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_SIM_LANES_H_
#define WEIR_NET_SIM_LANES_H_

#include "runtime/base/vec.h"
#include "runtime/net/parcel.h"
#include "runtime/net/sim.h"
#include "runtime/net/sim_faults.h"

/* The inside of the simulator: connections, the frames on their way, and the
 * next event of each side. */

#define WEIR_SIM_NEVER INT64_MAX
enum { WEIR_SIM_PROCESSES = 10000 };

typedef struct weir_sim_transport weir_sim_transport;
typedef struct weir_sim_pair weir_sim_pair;

/* One side of a connection, and the lane that leads to it from its peer. */
typedef struct weir_sim_side {
  weir_sim_pair *both;
  weir_sim_transport *owner;  /* NULL: it has ended here */
  weir_sim_transport *sender; /* of the lane's frames; NULL: it is gone */
  uint32_t process;
  weir_connection id;
  size_t link; /* of the lane: from the peer's process to ours */
  bool incoming, connected;
  int64_t connect_ns; /* when it is connected */
  int64_t close_ns;   /* when the peer's close arrives, behind all frames */
  int64_t end_ns;     /* when it ends for another reason: */
  weir_close_reason end_why;
  const char *end_text;    /* static */
  weir_net_parcels queued; /* at the peer */
  weir_net_parcels coming; /* under way, in order of |due_ns| */
  size_t queued_bytes, coming_bytes;
  int64_t busy_ns, last_ns; /* the lane sends until; its last frame arrives */
  bool open;                /* the peer is connected: frames may leave */
  bool lost;                /* a frame was: nothing more leaves */
  bool closing;             /* by the peer, once all has left */
  bool told;                /* |end_ns| is more than the limit of an attempt */
  char peer[WEIR_NET_ADDRESS_BYTES];
} weir_sim_side;

struct weir_sim_pair {
  weir_sim_side sides[2]; /* the dialler's first */
};

struct weir_sim_transport {
  weir_transport base; /* first */
  weir_net_sim *sim;
  weir_sim_transport *next; /* in the simulator */
  uint32_t process;
  bool woken, dead;
  weir_connection last;
  weir_net_parcels grave;          /* unsent frames of a killed process */
  WEIR_VEC(weir_sim_side *) sides; /* by id, rising */
  WEIR_VEC(uint32_t) ports;        /* where it listens */
};

typedef struct weir_sim_process {
  bool paused, gone; /* gone: without a word */
  uint32_t ports;    /* given so far */
} weir_sim_process;

typedef struct weir_sim_link {
  uint32_t from, to;
  bool cut;
  uint64_t bytes_per_second; /* 0: as the options say */
  uint64_t newest;           /* order of the newest frame that arrived */
} weir_sim_link;

struct weir_net_sim {
  weir_env env;
  weir_clock clock;
  weir_net_sim_options options;
  int64_t now_ns;
  uint64_t random; /* state of base/mix.h */
  uint64_t order;  /* of frames */
  weir_sim_transport *transports;
  WEIR_VEC(weir_sim_process) processes;
  WEIR_VEC(weir_sim_link) links;
  uint64_t counts[WEIR_NET_FAULT_COUNT];
};

static inline weir_sim_side *weir_sim_other(const weir_sim_side *s) {
  return &s->both->sides[s == &s->both->sides[0]];
}

/* True once in a million / |ppm| calls. */
bool weir_sim_chance(weir_net_sim *sim, uint32_t ppm);
/* A time from 1 to |most_ns|. */
int64_t weir_sim_within(weir_net_sim *sim, int64_t most_ns);
/* The time that something sent now over a link arrives. */
int64_t weir_sim_arrival(weir_net_sim *sim);

/* The process, made when it is new. NULL: out of memory. */
weir_sim_process *weir_sim_process_of(weir_net_sim *sim, uint32_t process);
/* The place of a link, made when it is new. false: out of memory. */
bool weir_sim_link_of(weir_net_sim *sim, uint32_t from, uint32_t to,
                      size_t *out_link);

/* Lets frames leave for |s|, as the window allows. */
void weir_sim_depart(weir_net_sim *sim, weir_sim_side *s);
/* |s| will end at |at_ns|, unless it ends before. */
void weir_sim_end(weir_sim_side *s, int64_t at_ns, weir_close_reason why,
                  const char *text);
/* Parts |s| from its owner without a callback. With |flows| the frames that it
 * sent go on, and a goodbye follows them. */
void weir_sim_part(weir_net_sim *sim, weir_sim_side *s, bool flows);
/* Takes frames out of the lane to |s| that still need their sender's memory,
 * and all behind them; they go to |grave|. */
void weir_sim_lane_drop(weir_sim_side *s, weir_net_parcels *grave);
/* Ends all connections of |t| and its listening; frames that need its memory go
 * to |grave|. */
void weir_sim_stop(weir_sim_transport *t, weir_net_parcels *grave);
/* Tells sides whose peer has gone, where word can reach them. */
void weir_sim_tell_orphans(weir_net_sim *sim);

/* When the next event of |s| is due. */
int64_t weir_sim_due(const weir_net_sim *sim, const weir_sim_side *s);
/* Reports it to the owner. W6001: it is still to come. */
weir_status weir_sim_deliver(weir_net_sim *sim, weir_sim_side *s,
                             weir_error *err);

#endif
