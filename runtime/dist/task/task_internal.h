/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_TASK_TASK_INTERNAL_H_
#define WEIR_DIST_TASK_TASK_INTERNAL_H_

#include "runtime/base/vec.h"
#include "runtime/dist/task/task.h"
#include "runtime/net/wire.h"

/* Shared by the files of the task. */

enum {
  WEIR_TASK_PROGRAMS = 16,
  WEIR_TASK_QUEUE = 4096,    /* steps at once */
  WEIR_TASK_FEEDS_MIB = 256, /* of feeds of steps that have not started */
  WEIR_TASK_DECIDED = 1024,  /* fates remembered in a session */
  WEIR_TASK_PASTS = 4        /* sessions remembered */
};

/* Steps whose fate was to be decided, the last ones: a ring. */
typedef struct weir_fates {
  uint8_t job_id[WEIR_JOB_ID_BYTES];
  uint64_t epoch; /* 0: none */
  uint32_t next;
  struct {
    uint64_t step;
    Weir__V1__Fate fate;
  } items[WEIR_TASK_DECIDED];
} weir_fates;

/* A task of the session. */
typedef struct weir_place {
  char job[WEIR_JOB_BYTES];
  uint32_t index;
  char name[WEIR_TASK_NAME_BYTES];
  char address[WEIR_NET_ADDRESS_BYTES];
  weir_peer *peer; /* for values; NULL: none yet, or lost */
  weir_peer *dial; /* by us, not up yet */
  bool dialled, lost;
  weir_error why; /* lost */
  /* While a fate is decided: */
  weir_peer *asked; /* the task that we asked; may be |peer| */
  bool answered;    /* nothing more is to come */
  bool settled;     /* no step of the session is prepared there */
} weir_place;

typedef enum weir_program_state {
  WEIR_PROGRAM_NONE,
  WEIR_PROGRAM_ADDING,
  WEIR_PROGRAM_CONNECTING, /* waits for neighbours */
  WEIR_PROGRAM_READY
} weir_program_state;

typedef struct weir_task_program {
  weir_program_state state;
  uint32_t number;
  bool writes;
  bool unwanted; /* the driver has given it up while it is being added */
  uint64_t memory_bytes;
  uint64_t graph_hash, plan_hash, partition_hash; /* the driver's */
  int64_t until_ns;
  WEIR_VEC(uint32_t) peers;
} weir_task_program;

typedef enum weir_step_state {
  WEIR_STEP_QUEUED,
  WEIR_STEP_RUNNING,
  WEIR_STEP_GIVEN_UP, /* runs, its end is not told */
  WEIR_STEP_PREPARED
} weir_step_state;

typedef struct weir_task_step {
  weir_step_state state;
  uint32_t program;
  bool writes;
  uint64_t step, random_step;
  void *memory; /* of feeds; NULL: none, or shared with the step before */
  weir_engine_value *feeds;
  size_t feed_count, memory_bytes;
} weir_task_step;

typedef enum weir_phase {
  WEIR_PHASE_ACTIVE, /* the driver is there */
  WEIR_PHASE_FATE,   /* it is lost, and a prepared step is to be decided */
  WEIR_PHASE_ENDING  /* the engine gives up the session */
} weir_phase;

/* task_turn.c */
typedef struct weir_task_turn {
  enum { WEIR_TASK_NO_TURN, WEIR_TASK_WAITS, WEIR_TASK_HAS_TURN } state;
  bool writes;
  uint64_t number, ticket;
} weir_task_turn;

/* A driver's session, as Begin gave it. In its own arena. */
typedef struct weir_task_session {
  weir_arena arena;
  weir_phase phase;
  uint64_t epoch, profile;
  uint8_t job_id[WEIR_JOB_ID_BYTES];
  weir_peer *driver; /* NULL: lost */
  uint32_t self, count;
  weir_place *places;
  const char **names;
  weir_task_program programs[WEIR_TASK_PROGRAMS];
  WEIR_VEC(weir_task_step) steps; /* in the order of their numbers */
  size_t feed_bytes;              /* memory of all of them */
  uint64_t last_step;             /* the largest number seen */
  uint64_t committed;             /* the last one; 0: none */
  weir_fates *fates;
  char share[WEIR_WIRE_SHARE_BYTES];
  weir_task_turn turn;
  bool begun; /* the engine has it */
  bool stop;
  int64_t fate_until_ns;
} weir_task_session;

/* The epoch fence of a job. */
typedef struct weir_fence {
  uint8_t job_id[WEIR_JOB_ID_BYTES];
  uint64_t epoch;
} weir_fence;

struct weir_task {
  const weir_allocator *alloc;
  weir_link *link;
  weir_engine *engine;
  weir_task_options options;
  weir_task_calls calls;
  int64_t now_ns;
  weir_task_session *session; /* NULL: free */
  weir_task_session *next;    /* begins when the present one has ended */
  weir_fates *pasts[WEIR_TASK_PASTS];
  WEIR_VEC(weir_fence) fences;
};

/* task_session.c */
void weir_task_begin(weir_task *task, weir_peer *peer,
                     const Weir__V1__Control *m);
/* Gives up the session: running steps are stopped, prepared ones dropped. */
void weir_task_end_session(weir_task *task);
/* The engine has given up the session: free, or the next one begins. */
void weir_task_session_ended(weir_task *task);
void weir_task_session_release(weir_task *task, weir_task_session *session);
/* The place of a task in the session; UINT32_MAX. */
uint32_t weir_task_session_place(const weir_task_session *s, const char *job,
                                 uint32_t index);

/* task_program.c */
void weir_task_register(weir_task *task, const Weir__V1__Register *request);
void weir_task_added(weir_task *task, const weir_engine_event *event);
void weir_task_unregister(weir_task *task, uint32_t number);
/* A neighbour has come or gone: programs that waited for it go on. */
void weir_task_neighbours(weir_task *task);
int64_t weir_task_program_tick(weir_task *task);
weir_task_program *weir_task_find_program(weir_task_session *s,
                                          uint32_t number);

/* task_step.c */
void weir_task_run_step(weir_task *task, const Weir__V1__RunStep *run);
void weir_task_step_ended(weir_task *task, const weir_engine_event *event);
void weir_task_commit(weir_task *task, uint64_t step);
/* A Commit of its own: with an answer. */
void weir_task_told_commit(weir_task *task, uint64_t step);
void weir_task_abort(weir_task *task, uint64_t step, const weir_error *why);
/* Gives up all steps that have not ended; none can be prepared after it. */
void weir_task_abort_running(weir_task *task, const weir_error *why);
void weir_task_start_ready(weir_task *task);
void weir_task_free_steps(weir_task *task, weir_task_session *s);

/* task_turn.c */
void weir_task_turn_asked(weir_task *task, const Weir__V1__Turn *m);
void weir_task_turn_ended(weir_task *task, const Weir__V1__TurnEnd *m);
/* The session neither has a turn nor waits for one from here on. */
void weir_task_turn_free(weir_task *task);
/* The session is over: the variables of a share end with its last one. */
void weir_task_turn_over(weir_task *task);

/* task_fate.c */
/* The driver is lost, or counts as lost. */
void weir_task_driver_lost(weir_task *task, const weir_error *why);
void weir_task_ask_fate(weir_task *task, weir_peer *peer,
                        const Weir__V1__Control *m);
void weir_task_tell_fate(weir_task *task, weir_peer *peer,
                         const Weir__V1__Control *m);
void weir_task_fate_up(weir_task *task, weir_peer *peer);
void weir_task_fate_lost(weir_task *task, weir_peer *peer);
int64_t weir_task_fate_tick(weir_task *task);
void weir_fates_note(weir_fates *fates, uint64_t step, Weir__V1__Fate fate);

/* task.c: to the driver, with the session's epoch. Nothing without a driver. */
void weir_task_send(weir_task *task, Weir__V1__Control *m);

#endif
