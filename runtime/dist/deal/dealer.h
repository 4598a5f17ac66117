/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_DEAL_DEALER_H_
#define WEIR_DIST_DEAL_DEALER_H_

#include <stdbool.h>
#include <stdint.h>

/* Who does which call: a state machine without lock, thread or clock.
 *
 *   weir_dealer_ask(d, &call)       a new call, or one whose worker is lost
 *   weir_dealer_grant(d, &call)     its worker, or that it must wait
 *   ... the call is made ...
 *   weir_dealer_end(d, worker, WEIR_DEAL_DONE | FAILED | AGAIN)
 *   weir_dealer_lose(d, worker)     before the ends of its calls
 *
 * A worker has at most |each| calls at once: one that it computes, and some
 * that are on their way to it, so that it never idles. Whoever is faster is
 * free more often and gets more.
 *
 * A call keeps the number of its first ask, and waiting calls are served by
 * their numbers: one that was with a lost worker comes before all that were
 * asked later, so nobody who collects results in order waits for it longer than
 * needed. Of the free workers the one with the fewest calls gets it; of those
 * the one that got none for the longest time. */

/* A caller's; in the queue from ask to grant. */
typedef struct weir_dealer_call {
  uint64_t number; /* 0 before the first ask */
  struct weir_dealer_call *next;
} weir_dealer_call;

typedef struct weir_dealer_worker {
  bool lost;
  uint32_t under_way;
  uint64_t done, failed; /* calls that it has ended */
  uint64_t again;        /* those that others were given: it is lost */
  uint64_t last;         /* when it got one: a count of grants */
} weir_dealer_worker;

typedef struct weir_dealer {
  weir_dealer_worker *workers; /* lent; zero at first */
  uint32_t count, each;
  uint32_t left; /* workers that are not lost */
  uint64_t numbers, grants;
  weir_dealer_call *queue; /* by number */
} weir_dealer;

/* Answers of weir_dealer_grant that are no worker: it is not the call's turn;
 * no worker is left, and the call is out of the queue. */
#define WEIR_DEALER_WAIT UINT32_MAX
#define WEIR_DEALER_NONE (UINT32_MAX - 1)

typedef enum weir_dealer_how {
  WEIR_DEAL_DONE,
  WEIR_DEAL_FAILED, /* the call did, the worker is well */
  WEIR_DEAL_AGAIN   /* the worker is lost: the caller asks again */
} weir_dealer_how;

/* |workers| have no calls. */
void weir_dealer_init(weir_dealer *dealer, weir_dealer_worker *workers,
                      uint32_t count, uint32_t each);
/* |call| waits from here on; it gets its number when it asks first. */
void weir_dealer_ask(weir_dealer *dealer, weir_dealer_call *call);
/* The worker of |call|, WAIT or NONE. Ask again after each end, loss and grant
 * of another call. */
uint32_t weir_dealer_grant(weir_dealer *dealer, weir_dealer_call *call);
/* The call that |worker| was granted for is over. */
void weir_dealer_end(weir_dealer *dealer, uint32_t worker, weir_dealer_how how);
/* It gets no more calls; false: it was lost already. */
bool weir_dealer_lose(weir_dealer *dealer, uint32_t worker);

#endif
