/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_DRIVER_DRIVER_INTERNAL_H_
#define WEIR_DIST_DRIVER_DRIVER_INTERNAL_H_

#include "runtime/base/vec.h"
#include "runtime/dist/driver/driver.h"
#include "runtime/net/wire.h"

/* Shared by the files of the driver. */

enum { WEIR_DRIVER_PROGRAMS = 16, WEIR_LAST_WORDS = 128 };

typedef enum weir_driver_state {
  WEIR_DRIVER_STARTING,
  WEIR_DRIVER_READY,
  WEIR_DRIVER_HANGING, /* asks everybody why */
  WEIR_DRIVER_FAILED,  /* to be reported by the next tick */
  WEIR_DRIVER_OVER
} weir_driver_state;

/* A task of the session. */
typedef struct weir_driver_place {
  char job[WEIR_JOB_BYTES];
  uint32_t index;
  char name[WEIR_TASK_NAME_BYTES];
  char address[WEIR_NET_ADDRESS_BYTES];
  weir_peer *peer;  /* NULL: lost */
  bool begun;       /* its BeginReply has come */
  weir_error last;  /* why it is not here */
  bool told;        /* its answer about the hang has come */
  uint32_t running; /* from it */
  bool *waits;      /* for which places */
} weir_driver_place;

typedef enum weir_part_state {
  WEIR_PART_NONE, /* no work here */
  WEIR_PART_WAITS,
  WEIR_PART_FORGETS, /* of a program: it was told to, and will answer */
  WEIR_PART_DONE
} weir_part_state;

typedef struct weir_driver_prog {
  bool used, ready;
  uint32_t number;
  bool writes;
  uint64_t memory_bytes;
  int64_t until_ns;
  weir_part_state *parts; /* one for each place */
  bool *part_writes;
  weir_error error; /* of the first place that failed */
  uint32_t error_place;
} weir_driver_prog;

typedef struct weir_driver_run_step {
  weir_arena arena; /* fetches so far, and feeds */
  uint64_t step, random_step;
  uint32_t program;
  bool writes, started;
  bool hold, held; /* the caller decides; it is its turn */
  bool cancelled;  /* the next tick ends it */
  int64_t start_ns, until_ns;
  weir_part_state *parts;
  bool failed, never_ran; /* some part; some part could not start */
  uint32_t order;         /* of |error| */
  weir_error error;
  weir_driver_value *feeds;
  size_t feed_count;
  WEIR_VEC(weir_driver_value) fetches;
  struct weir_driver_run_step *next; /* among the unsure ones */
} weir_driver_run_step;

typedef enum weir_turn_state {
  WEIR_TURN_NONE,
  WEIR_TURN_ASKED,
  WEIR_TURN_HELD,
  WEIR_TURN_ENDING /* commits in it wait for their confirmation */
} weir_turn_state;

/* driver_turn.c */
typedef struct weir_driver_turns {
  weir_turn_state state;
  uint64_t number, sent; /* of the last one that was asked for, or sent */
  uint32_t home;
  bool made;                    /* of the one that ends */
  bool next_asked, next_writes; /* asked for, to be sent behind that end */
  uint32_t next_home;
  int64_t until_ns; /* for the confirmations, when the session is to end */
} weir_driver_turns;

typedef struct weir_driver_request {
  uint64_t number;
  uint32_t place;
  int64_t until_ns;
  bool asked; /* by weir_driver_ask; else of variables */
} weir_driver_request;

struct weir_driver {
  const weir_allocator *alloc;
  weir_arena arena;
  weir_link *link;
  weir_driver_options options;
  weir_driver_calls calls;
  weir_driver_state state;
  int64_t now_ns, until_ns; /* of the start, or of the hang report */
  weir_driver_place *places;
  uint32_t count;
  uint64_t profile;
  bool begun; /* Begin is sent */
  bool ending, stop;
  weir_error error;
  weir_driver_prog programs[WEIR_DRIVER_PROGRAMS];
  uint32_t last_program;
  WEIR_VEC(weir_driver_run_step *) steps; /* in the order of their numbers */
  /* Committed steps that some task has not confirmed, in their order; |parts|
   * of one that has not: WAITS. */
  weir_driver_run_step *unsure, **unsure_end;
  uint64_t last_step, committed, kept, last_request, hang_number, hang_step;
  uint64_t mean_ns; /* of steps so far */
  WEIR_VEC(weir_driver_request) requests;
  char share[WEIR_WIRE_SHARE_BYTES];
  weir_driver_turns turn;
};

/* driver.c: to a place, with the epoch. */
void weir_driver_send(weir_driver *d, uint32_t place, Weir__V1__Control *m);
/* Whether a task is cut off, and only the words for it are awaited. */
bool weir_driver_awaits_words(const weir_driver *d);
/* The session fails with |why| at the next tick; the first call counts. */
void weir_driver_fail(weir_driver *d, const weir_error *why);

/* driver_program.c */
void weir_driver_register_reply(weir_driver *d, uint32_t place,
                                const Weir__V1__RegisterReply *reply);
void weir_driver_variable_reply(weir_driver *d, uint32_t place,
                                const Weir__V1__VariableReply *reply);
void weir_driver_checkpoint_reply(weir_driver *d, uint32_t place,
                                  const Weir__V1__CheckpointReply *reply);
void weir_driver_programs_fail(weir_driver *d, const weir_error *why);
int64_t weir_driver_program_tick(weir_driver *d);
weir_driver_prog *weir_driver_find(weir_driver *d, uint32_t program);

/* driver_step.c */
void weir_driver_step_reply(weir_driver *d, uint32_t place,
                            const Weir__V1__StepReply *reply);
void weir_driver_steps_fail(weir_driver *d, const weir_error *why);
void weir_driver_free_steps(weir_driver *d);
int64_t weir_driver_step_tick(weir_driver *d);

/* driver_kept.c */
/* NULL-safe. */
void weir_driver_release_step(weir_driver *d, weir_driver_run_step *step);
/* Takes over |step|, whose commit is on its way to its tasks. */
void weir_driver_doubt(weir_driver *d, weir_driver_run_step *step);
/* |place| has committed |step| and all before it that it was told to. */
void weir_driver_confirm(weir_driver *d, uint32_t place, uint64_t step);
void weir_driver_forget_unsure(weir_driver *d);
/* "the last committed step is 7", for errors that end the session. */
void weir_driver_last_words(const weir_driver *d, char *text, size_t size);

/* driver_turn.c */
void weir_driver_turn_reply(weir_driver *d, uint32_t place,
                            const Weir__V1__TurnReply *reply);
/* All commits are confirmed: a turn that ends is over. */
void weir_driver_turn_kept(weir_driver *d);
void weir_driver_turn_fail(weir_driver *d, const weir_error *why);
/* When the session need not wait for the end of a turn any more; 0: now. */
int64_t weir_driver_turn_wait(const weir_driver *d);

/* driver_hang.c */
void weir_driver_hang(weir_driver *d, const weir_driver_run_step *step);
void weir_driver_tell_pending(weir_driver *d, uint32_t place,
                              const Weir__V1__TellPending *told);
int64_t weir_driver_hang_tick(weir_driver *d);

#endif
