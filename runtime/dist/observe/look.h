/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_OBSERVE_LOOK_H_
#define WEIR_DIST_OBSERVE_LOOK_H_

#include "runtime/dist/observe/observe.h"

/* A look at one task: from dialling to its last answer. Control thread. */

typedef enum weir_look_phase {
  WEIR_LOOK_DIALS,
  WEIR_LOOK_STATE,
  WEIR_LOOK_PINGS,
  WEIR_LOOK_UP,   /* bytes go to the task */
  WEIR_LOOK_DOWN, /* bytes come from it */
  WEIR_LOOK_STOP, /* it was asked to end */
  WEIR_LOOK_ENDS, /* it ends: its connection will, too */
  WEIR_LOOK_DONE
} weir_look_phase;

struct weir_look;
/* The look whose figures are being taken: one at a time, so that none of them
 * is spoilt by others. */
typedef struct weir_look_turn {
  const struct weir_look *holder; /* NULL: the turn is free */
} weir_look_turn;

typedef struct weir_look {
  const weir_observe_options *options; /* with its defaults put in */
  const weir_allocator *alloc;
  uint32_t task;
  weir_observe_row *row;
  weir_look_turn *turn; /* of all looks */
  bool waits;           /* for the turn, to begin its phase */
  int64_t *trips;       /* room for |pings|; the first |answered| count */
  uint32_t answered;
  weir_peer *peer; /* NULL: none, or lost */
  weir_look_phase phase;
  uint64_t number; /* of the last question */
  uint64_t first;  /* of the first message of a measurement */
  uint64_t due;    /* messages of it, and those that were sent, came back */
  uint64_t sent, back;
  int64_t at_ns;    /* the question's, the measurement's */
  int64_t until_ns; /* for the answer */
  int64_t next_ns;  /* the next ping; 0: none is due */
} weir_look;

/* Begins to dial over |link|. Errors: W6001. */
weir_status weir_look_start(weir_look *look, weir_link *link, int64_t now_ns,
                            weir_error *err);
void weir_look_up(weir_look *look, int64_t now_ns);
void weir_look_message(weir_look *look, int64_t now_ns,
                       const struct Weir__V1__Control *message);
void weir_look_lost(weir_look *look, int64_t now_ns, const weir_error *why);
/* Does what is due; returns the next deadline, INT64_MAX: none. */
int64_t weir_look_tick(weir_look *look, int64_t now_ns);

#endif
