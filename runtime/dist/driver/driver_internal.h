/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_DRIVER_DRIVER_INTERNAL_H_
#define WEIR_DIST_DRIVER_DRIVER_INTERNAL_H_

#include "runtime/base/vec.h"
#include "runtime/dist/driver/driver.h"
#include "runtime/net/wire.h"

/* Shared by the files of the driver. */

enum { WEIR_DRIVER_PROGRAMS = 16 };

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
} weir_driver_run_step;

typedef struct weir_driver_request {
  uint64_t number;
  uint32_t place;
  int64_t until_ns;
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
  uint64_t last_step, committed, last_request, hang_number, hang_step;
  uint64_t mean_ns; /* of steps so far */
  WEIR_VEC(weir_driver_request) requests;
};

/* driver.c: to a place, with the epoch. */
void weir_driver_send(weir_driver *d, uint32_t place, Weir__V1__Control *m);
/* The session fails with |why| at the next tick; the first call counts. */
void weir_driver_fail(weir_driver *d, const weir_error *why);

/* driver_program.c */
void weir_driver_register_reply(weir_driver *d, uint32_t place,
                                const Weir__V1__RegisterReply *reply);
void weir_driver_variable_reply(weir_driver *d, uint32_t place,
                                const Weir__V1__VariableReply *reply);
void weir_driver_programs_fail(weir_driver *d, const weir_error *why);
int64_t weir_driver_program_tick(weir_driver *d);
weir_driver_prog *weir_driver_find(weir_driver *d, uint32_t program);

/* driver_step.c */
void weir_driver_step_reply(weir_driver *d, uint32_t place,
                            const Weir__V1__StepReply *reply);
void weir_driver_steps_fail(weir_driver *d, const weir_error *why);
void weir_driver_free_steps(weir_driver *d);
int64_t weir_driver_step_tick(weir_driver *d);

/* driver_hang.c */
void weir_driver_hang(weir_driver *d, const weir_driver_run_step *step);
void weir_driver_tell_pending(weir_driver *d, uint32_t place,
                              const Weir__V1__TellPending *told);
int64_t weir_driver_hang_tick(weir_driver *d);

#endif
