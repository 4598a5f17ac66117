/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_TURN_H_
#define WEIR_EXEC_TURN_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The turn to write variables: one run has it at a time, the others queue in
 * the order in which they came. It belongs to a run and not to a thread, so a
 * run that waits for a decision holds it while no thread does. */

typedef struct weir_turn_waiter {
  /* Called once it has the turn, by the thread that gave it. Must not block. */
  void (*go)(struct weir_turn_waiter *waiter);
  struct weir_turn_waiter *next;
} weir_turn_waiter;

typedef struct weir_turn {
  atomic_int state; /* 0: free; 1: taken; 2: taken, and some wait */
  pthread_mutex_t lock;
  weir_turn_waiter *first, *last;
} weir_turn;

void weir_turn_init(weir_turn *turn);
/* Nobody has it or waits. */
void weir_turn_destroy(weir_turn *turn);

/* true: |waiter| has the turn now; false: |go| will be called. Never blocks. */
bool weir_turn_take(weir_turn *turn, weir_turn_waiter *waiter);

/* Takes a waiter out of the queue; false: it is not in it. */
bool weir_turn_withdraw(weir_turn *turn, weir_turn_waiter *waiter);

/* Takes the turn; blocks. */
void weir_turn_wait(weir_turn *turn);

/* Gives it to the next. Any thread. */
void weir_turn_give(weir_turn *turn);

#endif
