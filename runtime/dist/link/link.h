/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_LINK_LINK_H_
#define WEIR_DIST_LINK_LINK_H_

#include "runtime/net/transport.h"

/* Links: the peers of one process, from the first Hello to their loss.
 *
 * A peer is another process with two connections to it, one for control and one
 * for bulk frames, both made by the side that dials. It is up when both have
 * exchanged Hello and HelloReply; then messages go both ways until it is lost,
 * once and for good: a connection that was reset, a frame that cannot be read
 * and a silence of |dead_ns| all end the peer. Its owner may dial again and
 * gets another peer. Why no connection is mended: which frames arrived before a
 * reset is unknown to both sides, and a session that goes on would need
 * numbers, acknowledgements and a second copy of each frame to find out. A
 * session that ends and is begun again from its last commit needs none of that.
 *
 * Connections that came in are counted (link_limits.c): those that have said
 * Hello up to max_peers, beyond which Hello is refused with a sentence; those
 * that have not up to max_greeting, beyond which the oldest of them is closed.
 *
 * When a connection of a peer has ended, the side that dialled dials once more,
 * at once and to no other end than to tell a process that is gone from a link
 * that was cut; the peer is lost when the answer is there.
 *
 *   weir_link_dial(link, now, &target, &peer, err);  until target.until_ns
 *   ... events: up(peer), message(peer, m) ..., lost(peer, why)
 *   weir_link_send(peer, epoch, &m);                 never waits or fails
 *
 * One thread calls everything here and gets all events. Nothing reads a clock:
 * each entry takes the time, and tick() returns when it wants to be called
 * again. Events come from these entries only, never from send, dial or drop;
 * their receivers may call anything of the link but its entries. */

struct Weir__V1__Control;
struct Weir__V1__Hello;

typedef struct weir_link weir_link;

/* Bytes of a task's job name with its NUL, and of "job:index". */
enum { WEIR_JOB_BYTES = 64, WEIR_TASK_NAME_BYTES = 80, WEIR_JOB_ID_BYTES = 16 };

/* The identity of a process. */
typedef struct weir_link_self {
  char job[WEIR_JOB_BYTES]; /* "": a driver */
  uint32_t index;
  uint8_t job_id[WEIR_JOB_ID_BYTES];
  bool one_job;         /* of this run alone: others are refused by Hello */
  bool observes;        /* asks only; no driver and no task: |job| is "" */
  uint64_t incarnation; /* random, never 0 */
  uint64_t cluster_hash;
  const char *hashed; /* what it is of, in words; NULL: "cluster file" */
  uint64_t profile;
  uint32_t protocol_min, protocol_max;
  const char *build; /* "weir 0.1.0"; lent for the link's life */
  char bulk_address[WEIR_NET_ADDRESS_BYTES]; /* "": takes no connections */
} weir_link_self;

typedef struct weir_link_options {
  int64_t heartbeat_ns;  /* between pings; 0: 1 s */
  int64_t suspect_ns;    /* silence that is worth a word; 0: 3 heartbeats */
  int64_t dead_ns;       /* silence that ends a peer; 0: 5 heartbeats */
  int64_t greet_ns;      /* from a connection to its last Hello; 0: 5 s */
  int64_t retry_min_ns;  /* after the first attempt; 0: 100 ms */
  int64_t retry_max_ns;  /* it doubles up to this; 0: 1 s */
  uint32_t max_peers;    /* processes that dialled and said Hello; 0: 1,024 */
  uint32_t max_greeting; /* connections of each kind without one; 0: 256 */
  bool probes;           /* after a reset, for a heartbeat */
  /* A new process of a task ends the link to the one before it, instead of
   * being refused while that is up. */
  bool replaces;
  /* Whether |job|:|index| may say Hello here; the events' self. NULL: whoever
   * has the hash. Errors: W7023. */
  weir_status (*admits)(void *self, const char *job, uint32_t index,
                        weir_error *err);
} weir_link_options;

typedef enum weir_peer_state {
  WEIR_PEER_WAITING,  /* for the next attempt to dial */
  WEIR_PEER_DIALLING, /* an attempt is under way */
  WEIR_PEER_GREETING, /* connected, no Hello of the other side yet */
  WEIR_PEER_BULK,     /* greeted; the bulk connection is missing */
  WEIR_PEER_UP,
  WEIR_PEER_PROBED, /* its connection ended: does anybody listen there? */
  WEIR_PEER_GONE    /* lost or dropped: freed soon */
} weir_peer_state;

/* Another process. Everything but the first four is the link's. */
typedef struct weir_peer {
  void *owner;    /* the receiver of events may use these four */
  uint32_t place; /* in Begin.tasks; UINT32_MAX at first */
  uint32_t lane;  /* which session of the process; 0 at first */
  bool parting;   /* its end is awaited: no probe */

  weir_link *link;
  weir_peer_state state;
  bool incoming;
  char job[WEIR_JOB_BYTES];
  uint32_t index;
  char name[WEIR_TASK_NAME_BYTES]; /* "worker:1", "the driver" */
  char address[WEIR_NET_ADDRESS_BYTES];
  uint8_t job_id[WEIR_JOB_ID_BYTES]; /* that the connection is for */
  bool has_job;
  uint64_t incarnation, profile;
  bool observes; /* it asks only: there is no bulk connection, no session */
  char bulk_address[WEIR_NET_ADDRESS_BYTES];
  weir_connection control, bulk, probe;
  uint64_t tag;     /* of the attempt to make the bulk connection */
  int64_t until_ns; /* dialled: attempts end then */
  int64_t next_ns;  /* the next attempt, or the end of the greeting */
  int64_t retry_ns;
  int64_t heard_ns, ping_ns;
  uint32_t attempts;
  bool met;        /* it was up once */
  bool orderly;    /* probed: it closed the connection, nothing was cut */
  bool failed;     /* to be reported lost */
  bool mute;       /* it came in and said no Hello in time */
  weir_error last; /* why the last attempt failed; id "": none has yet */
} weir_peer;

typedef struct weir_link_events {
  void *self;
  void (*up)(void *self, weir_peer *peer);
  /* Session messages only; Hello, Ping and their answers stay in the link. */
  void (*message)(void *self, weir_peer *peer,
                  const struct Weir__V1__Control *message);
  /* The last event of |peer|; it is freed afterwards. A dialled one that was
   * never up is lost when it was refused or its time is over. */
  void (*lost)(void *self, weir_peer *peer, const weir_error *why);
  /* A line for the log about connections that were refused, at most one a
   * second: "refused 127.0.0.1:4001: it said no Hello within 5 s". NULL: none
   * is wanted. */
  void (*refused)(void *self, const char *text);
} weir_link_events;

/* The bulk transport has a thread of its own, and only that thread may connect
 * and close. Each call posts to it; its result comes back by the entries
 * weir_link_bulk_*. |tag| names an attempt until it has a connection. */
typedef struct weir_link_bulk {
  void *self;
  weir_transport *transport; /* send is called from here */
  void (*connect)(void *self, uint64_t tag, const char *address);
  void (*close)(void *self, weir_connection c);
  /* From here on the frames of |c| are bulk frames of |peer|. Called before the
   * reply that lets the other side send them. */
  void (*opened)(void *self, weir_connection c, weir_peer *peer);
} weir_link_bulk;

/* |control| and |bulk|'s transport are lent and must outlive the link. Their
 * handlers are its owner's, who passes events on. */
weir_status weir_link_create(const weir_allocator *alloc,
                             const weir_link_self *self,
                             const weir_link_options *options,
                             const weir_link_events *events,
                             weir_transport *control,
                             const weir_link_bulk *bulk, weir_link **out_link);
/* Closes all connections without events. NULL-safe. */
void weir_link_release(weir_link *link);

/* ---- Entries: events of the transports, and time. */

void weir_link_on_connected(weir_link *link, int64_t now_ns, weir_connection c,
                            weir_sv address, bool incoming);
void weir_link_on_frame(weir_link *link, int64_t now_ns, weir_connection c,
                        const weir_net_frame *frame);
void weir_link_on_closed(weir_link *link, int64_t now_ns, weir_connection c,
                         weir_close_reason why, weir_sv text);
/* An attempt of weir_link_bulk.connect; |c| 0: it failed at once. A connection
 * that came in has |tag| 0. */
void weir_link_bulk_on_connected(weir_link *link, int64_t now_ns, uint64_t tag,
                                 weir_connection c);
/* The first frame of each bulk connection comes here: Hello or HelloReply. */
void weir_link_bulk_on_frame(weir_link *link, int64_t now_ns, weir_connection c,
                             const weir_net_frame *frame);
void weir_link_bulk_on_closed(weir_link *link, int64_t now_ns,
                              weir_connection c, weir_close_reason why,
                              weir_sv text);
/* Does what is due and returns when something is next, or INT64_MAX. */
int64_t weir_link_tick(weir_link *link, int64_t now_ns);

/* ---- Calls */

/* Where bulk connections are taken, for each later Hello. */
void weir_link_set_bulk(weir_link *link, const char *address);
/* The process to dial. */
typedef struct weir_link_target {
  const char *job;
  uint32_t index;
  const char *address;
  int64_t until_ns;      /* attempts go on until then */
  const uint8_t *job_id; /* that it is dialled for; NULL: this process's */
} weir_link_target;

/* Begins to dial; the peer is up or lost later. Errors: W6001. */
weir_status weir_link_dial(weir_link *link, int64_t now_ns,
                           const weir_link_target *target, weir_peer **out_peer,
                           weir_error *err);
/* Ends |peer| without an event, after the frames sent so far. NULL-safe. */
void weir_link_drop(weir_peer *peer);
/* Sends |message| with |epoch|. A message that cannot be made or sent ends the
 * peer: the next tick reports it lost. |message|'s crc and epoch are set. */
void weir_link_send(weir_peer *peer, uint64_t epoch,
                    struct Weir__V1__Control *message);
/* Ends |peer| with |why| at the next tick: it broke the protocol. */
void weir_link_give_up(weir_peer *peer, const weir_error *why);

/* Whether |peer|, which was up, has been silent for longer than it should; also
 * when it is lost, until that has been reported. */
bool weir_peer_is_suspect(const weir_peer *peer, int64_t now_ns);
/* The peer's state in a few words, for a table of missing tasks: "refused:
 * ...", "up", "never answered". */
void weir_peer_describe(const weir_peer *peer, char *text, size_t size);
/* The id of |why| where it is one of certificates, whoever passes the error on;
 * else |otherwise|. */
weir_error_id weir_link_id_of(const weir_error *why, weir_error_id otherwise);
/* The number of peers, connections in their greeting included. */
size_t weir_link_count(const weir_link *link);

#endif
