/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_ENGINE_H_
#define WEIR_DIST_ENGINE_H_

#include <stdbool.h>

#include "runtime/base/status.h"
#include "runtime/dist/channel/wire_out.h"

/* Engines: how the protocol of a task reaches the part that computes.
 *
 * The task (task/task.h) knows messages, steps by number, and its peers. The
 * engine knows graphs, programs, memory and values. All large and small values
 * (edges, feeds, fetches, variables, blobs) are the engine's: it has its own
 * rendezvous, sends through session.out, and gets the messages that belong to
 * the rendezvous by control(). The task relays the rest.
 *
 *   begin -> add -> (WANT)* -> ADDED -> start -> STEP -> commit | abort -> end
 *
 * Nothing here blocks. An operation that is accepted (WEIR_OK) ends with
 * exactly one event of its own; one that is refused gives none. Events are
 * objects of the engine, handed over with post(), on any thread and also from
 * inside a call; the receiver calls event->release once, on the control thread,
 * when it has read it. So an engine makes the event of a step before the step
 * starts, and nothing can fail at its end.
 *
 * Callers: one control thread calls everything. Between end() and its ENDED
 * event no other function is called but release; after ENDED nothing of the
 * session runs, is held, or posts.
 *
 * Implementations: over exec sessions, and a small one of hashes for the
 * simulator (tests/sim), which is the one to copy. */

struct Weir__V1__CheckpointReply;
struct Weir__V1__Control;
struct Weir__V1__Register;

typedef struct weir_engine weir_engine;
typedef struct weir_engine_event weir_engine_event;

/* A driver's session, as Begin gave it. |tasks| are names ("worker:1"); lent
 * until ENDED. */
typedef struct weir_engine_session {
  uint64_t epoch;   /* in every frame of this session */
  uint64_t profile; /* of kernels: the lowest of all tasks */
  uint32_t self;    /* own place in |tasks| */
  uint32_t task_count;
  const char *const *tasks;
  const weir_wire_out *out; /* lent until ENDED */
  /* Variables are those of all sessions of the process with this name; "": the
   * session's own. Register has WEIR_WIRE_REGISTER_FRESH where they are to be
   * made, and |home|. */
  const char *share;
} weir_engine_session;

/* A small value, inside a message. */
typedef struct weir_engine_value {
  uint32_t id; /* place in Register.feeds or Register.fetches */
  const void *data;
  size_t size;
} weir_engine_value;

/* One step to be run. Feeds that are not in |feeds| come by the rendezvous, as
 * slots (FEED, place, step) from the driver. Lent for the call of start(). */
typedef struct weir_engine_step {
  uint32_t program;
  uint64_t step;        /* of the session: names slots */
  uint64_t random_step; /* for random ops */
  const weir_engine_value *feeds;
  size_t feed_count;
} weir_engine_step;

typedef enum weir_engine_event_kind {
  WEIR_ENGINE_WANT,      /* add: a blob is missing; receive it as |number| */
  WEIR_ENGINE_ADDED,     /* add: has ended */
  WEIR_ENGINE_STEP,      /* start: has ended, also after abort */
  WEIR_ENGINE_VARIABLES, /* get or set: has ended */
  WEIR_ENGINE_REPLY,     /* checkpoint: has ended */
  WEIR_ENGINE_ENDED      /* end */
} weir_engine_event_kind;

/* A node that failed. Order: of nodes of the graph; the first one counts. */
typedef struct weir_engine_failure {
  uint32_t order;
  const weir_error *error;
} weir_engine_failure;

/* Bytes of the name of a blob: two 64-bit hashes and its length, each little
 * endian. */
enum { WEIR_BLOB_NAME_BYTES = 24 };

/* An event. Only the fields of its kind are set. */
struct weir_engine_event {
  void (*release)(weir_engine_event *event);
  weir_engine_event *next; /* the receiver's, between post and release */
  uint32_t lane;           /* likewise */
  weir_engine_event_kind kind;

  /* WANT: the engine has begun to receive slot (BLOB, number, 0) from the
   * driver, of the length that the name tells. */
  uint8_t blob[WEIR_BLOB_NAME_BYTES];
  uint32_t number;

  /* ADDED, VARIABLES: why it failed; id "": it did not. */
  weir_error error;

  /* ADDED: */
  uint32_t program;
  bool writes; /* a part here assigns variables: steps end as prepared */
  uint64_t memory_bytes;
  uint64_t graph_hash, plan_hash, partition_hash; /* found here */
  const uint32_t *peers; /* places that this program exchanges edges with */
  size_t peer_count;

  /* STEP: no failures and |prepared|: new values wait for commit or abort.
   * Fetches above the limit of small values leave by the rendezvous instead. */
  uint64_t step;
  bool prepared;
  const weir_engine_failure *failures;
  size_t failure_count;
  const weir_engine_value *fetches;
  size_t fetch_count;

  /* VARIABLES: */
  uint64_t request;

  /* REPLY: the whole answer, |error| too, which the engine writes. */
  const struct Weir__V1__CheckpointReply *reply;
};

/* A value that something here waits for. Names are lent until the next call of
 * the engine. */
typedef struct weir_engine_wait {
  uint32_t kind, id; /* the slot: Weir__V1__ValueKind, its number */
  uint64_t step;
  uint32_t peer;     /* its sender, or its receiver */
  uint64_t since_ns; /* ago */
  uint64_t bytes, total_bytes;
  const char *node; /* that waits; "" */
} weir_engine_wait;

/* Where events go. |post| takes them over; any thread. */
typedef struct weir_engine_events {
  void *self;
  void (*post)(void *self, weir_engine_event *event);
} weir_engine_events;

typedef struct weir_engine_vtable {
  /* Not before ENDED, when there is a session. */
  void (*release)(weir_engine *engine);
  /* Takes a session. Errors: W6001. */
  weir_status (*begin)(weir_engine *engine, const weir_engine_session *session,
                       weir_error *err);
  /* Gives up everything of the session: programs, variables, runs. Always
   * accepted; ENDED follows. */
  void (*end)(weir_engine *engine);
  /* A message for the rendezvous: Values, Ready, Cut. |message| is lent
   * for the call and has been checked against the limits of wire.h, against
   * the session's epoch, and |peer| is the connection's. An error: the peer
   * broke the protocol and is given up. */
  weir_status (*control)(weir_engine *engine, uint32_t peer,
                         const struct Weir__V1__Control *message,
                         weir_error *err);
  /* No frame comes from or goes to |peer| any more: everything that waits for
   * it fails with |why| (a copy is kept). Its steps end so. */
  void (*lost)(weir_engine *engine, uint32_t peer, const weir_error *why);
  /* Makes a program: fetches bundle, plan and weights by hash (WANT), loads,
   * compares hashes, compiles. |request| is lent for the call. ADDED follows. A
   * program of that number is replaced. */
  weir_status (*add)(weir_engine *engine,
                     const struct Weir__V1__Register *request, weir_error *err);
  /* Forgets a program: no step of it is under way. */
  void (*remove)(weir_engine *engine, uint32_t program);
  /* Starts a step; STEP follows. The task starts a step that writes when all
   * before it have ended and been decided, and any step when all writing ones
   * before it have been decided. */
  weir_status (*start)(weir_engine *engine, const weir_engine_step *step,
                       weir_error *err);
  /* A prepared step: its new values are the variables from here on. Cannot
   * fail. */
  void (*commit)(weir_engine *engine, uint64_t step);
  /* Drops a step in any state: one that runs ends soon (its STEP event still
   * follows), one that is prepared loses its new values, frames that come later
   * are ignored. Also for a step that was never started here. */
  void (*abort)(weir_engine *engine, uint64_t step, const weir_error *why);
  /* Sends the values of variables |nodes|, of the bundle of |program|, to the
   * driver, as slots (VARIABLE, node, request); VARIABLES follows. |nodes| is
   * lent for the call. */
  weir_status (*get)(weir_engine *engine, uint32_t program, uint64_t request,
                     const uint32_t *nodes, size_t count, weir_error *err);
  /* Receives the values of |nodes| from the driver, as the same slots, and sets
   * them: all or none. No step is under way. VARIABLES follows. */
  weir_status (*set)(weir_engine *engine, uint32_t program, uint64_t request,
                     const uint32_t *nodes, size_t count, weir_error *err);
  /* A message about checkpoints: Hold, Write, Send, Read (task.proto), lent for
   * the call. Unless it drops what is held, REPLY follows. Files are written
   * and read beneath one folder alone, which the engine was made with. NULL:
   * this one has no checkpoints. */
  weir_status (*checkpoint)(weir_engine *engine,
                            const struct Weir__V1__Control *message,
                            weir_error *err);
  /* Fills at most |capacity| waits, the oldest first, and the number of
   * instructions that compute; returns how many were filled. */
  size_t (*pending)(weir_engine *engine, weir_engine_wait *waits,
                    size_t capacity, uint32_t *out_running);
} weir_engine_vtable;

/* Every engine starts with this. |events| is set by its creator. */
struct weir_engine {
  const weir_engine_vtable *vt;
  weir_engine_events events;
};

#endif
