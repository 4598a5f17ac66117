/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_TASK_TASK_H_
#define WEIR_DIST_TASK_TASK_H_

#include "runtime/dist/engine.h"
#include "runtime/dist/link/link.h"
#include "runtime/net/wire.h"

/* Tasks: a process that serves a driver, and knows no graph.
 *
 * It works for one driver at a time (front.h has several of them in a process,
 * for drivers that share variables). That one begins a session with an epoch,
 * registers programs, runs steps and ends the session; then the task is free
 * for the next. An engine computes; the task tells it when.
 *
 *   Begin -> Register -> RunStep -> StepReply -> Commit | Abort -> End
 *
 * Steps run in the order of their numbers as far as variables are concerned: a
 * step that writes begins when all before it have ended and been decided, and
 * any other when the writing ones before it have been decided.
 *
 * A session also ends when its driver is lost, when a larger epoch of the same
 * job begins, and when another task asks for the fate of one of its steps (then
 * that task has lost the driver). A step that is prepared then is decided
 * before anything else (task_fate.c).
 *
 * A neighbour that is lost is lost for the session: steps that need it fail
 * with its name.
 *
 * One thread calls everything. The link's events go to the functions below;
 * time comes in, the next deadline goes out. */

typedef struct weir_task weir_task;

/* The turn among sessions that share variables: of one process. */
enum { WEIR_TURNS_TASKS = 16 };
typedef struct weir_turns {
  weir_task *tasks[WEIR_TURNS_TASKS];
  uint32_t count;
  uint64_t tickets; /* asked for so far */
  bool made;        /* some driver has made the variables */
} weir_turns;

typedef struct weir_task_options {
  int64_t start_ns;  /* for a connection to a neighbour; 0: 30 s */
  int64_t fate_ns;   /* for word of a step once the driver is lost; 0: 10 s */
  weir_turns *turns; /* lent; it stands in it; NULL: shares are refused */
  uint32_t lane;     /* marks the peers of its sessions */
} weir_task_options;

typedef struct weir_task_calls {
  void *self;
  /* How frames of a session leave: fills |out|, lent until session_over. The
   * peers are places of the session. Errors: W6001. */
  weir_status (*session)(void *self, uint32_t places,
                         const struct weir_wire_out **out, weir_error *err);
  /* The connections of |place| (WEIR_PEER_DRIVER: the driver) are |peer|'s;
   * NULL: it is lost. */
  void (*place)(void *self, uint32_t place, weir_peer *peer);
  void (*session_over)(void *self);
  void (*stop)(void *self); /* the driver wants the process to end */
  /* A prepared step whose driver was lost is committed, since another task has
   * committed it, or aborted. NULL: nobody wants to know. */
  void (*decided)(void *self, uint64_t step, bool commit);
} weir_task_calls;

/* |engine| and |link| are lent; the link's events must be passed on to the
 * functions below. */
weir_status weir_task_create(const weir_allocator *alloc, weir_link *link,
                             weir_engine *engine,
                             const weir_task_options *options,
                             const weir_task_calls *calls,
                             weir_task **out_task);
/* The engine must have no session: see weir_task_shut. NULL-safe. */
void weir_task_release(weir_task *task);

/* Events of the link. */
void weir_task_up(weir_task *task, int64_t now_ns, weir_peer *peer);
void weir_task_message(weir_task *task, int64_t now_ns, weir_peer *peer,
                       const struct Weir__V1__Control *message);
void weir_task_lost(weir_task *task, int64_t now_ns, weir_peer *peer,
                    const weir_error *why);
/* An event of the engine; releases it. */
void weir_task_on_engine(weir_task *task, int64_t now_ns,
                         weir_engine_event *event);
/* Does all that is due; returns when something is next, or INT64_MAX. */
int64_t weir_task_tick(weir_task *task, int64_t now_ns);

/* Ends the session without a word; the engine's ENDED follows. */
void weir_task_shut(weir_task *task);
/* Whether there is no session. */
bool weir_task_is_free(const weir_task *task);
/* Steps that are queued, run or wait for their fate. */
size_t weir_task_steps(const weir_task *task);

/* A program that the task has ready. */
typedef struct weir_task_held {
  uint32_t program;
  uint64_t graph_hash, memory_bytes;
} weir_task_held;

enum { WEIR_TASK_HELD = 64 };
typedef struct weir_task_state {
  int phase; /* Weir__V1__TaskPhase; all that follows is of the session */
  char share[WEIR_WIRE_SHARE_BYTES];
  uint32_t driver_count; /* of a share's; the first one is |driver| */
  char drivers[WEIR_TURNS_TASKS][WEIR_NET_ADDRESS_BYTES];
  char driver[WEIR_NET_ADDRESS_BYTES]; /* its address; "": there is none */
  uint64_t epoch;
  uint32_t tasks;
  uint64_t steps, committed;
  uint32_t held_count;
  weir_task_held held[WEIR_TASK_HELD];
} weir_task_state;

/* Adds the state as it is now to |out|, which begins as FREE and empty. */
void weir_task_describe(const weir_task *task, weir_task_state *out);

/* ---- For front.h */

/* Refuses a Begin of |peer|. */
void weir_task_refuse(weir_peer *peer, uint64_t epoch, const weir_error *why);
/* Whether the session, of any phase, is of that job. */
bool weir_task_is_of(const weir_task *task, const uint8_t *job_id);
/* Whether it has had a session of that job. */
bool weir_task_has_served(const weir_task *task, const uint8_t *job_id);
/* Whether it knows a session of that job and epoch, past ones too. */
bool weir_task_knows(const weir_task *task, const uint8_t *job_id,
                     uint64_t epoch);
/* Whether a session that begins so may stand beside this task's. */
bool weir_task_fits(const weir_task *task, const struct Weir__V1__Begin *begin);
/* Whether its driver is there. */
bool weir_task_is_active(const weir_task *task);
/* Where that is. */
const char *weir_task_driver_address(const weir_task *task);

#endif
