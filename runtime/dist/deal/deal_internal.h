/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_DEAL_DEAL_INTERNAL_H_
#define WEIR_DIST_DEAL_DEAL_INTERNAL_H_

#include <pthread.h>

#include "runtime/dist/deal/deal.h"
#include "runtime/dist/deal/dealer.h"
#include "runtime/dist/link/link.h"

/* Shared by the files of the deal. */

typedef struct deal_worker {
  char name[WEIR_TASK_NAME_BYTES]; /* "worker:1" */
  weir_dist *dist;
  weir_error why; /* it is lost */
} deal_worker;

struct weir_deal {
  const weir_env *outer;
  weir_env env; /* with the profile that is common to all workers */
  weir_deal_options options;
  deal_worker *workers;
  weir_dealer_worker *states;
  uint32_t count;
  pthread_mutex_t telling; /* the caller hears of one loss at a time */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  weir_dealer dealer; /* under the lock */
};

/* Calls |fn| for each worker that is there, for all at once, on threads of
 * their own. A worker whose session is over when |fn| has failed is lost, and
 * its failure does not count. Errors: the failure of the first worker in order,
 * W7070 (none is left), W6001. */
typedef weir_status (*deal_fn)(weir_deal *deal, uint32_t worker, void *arg,
                               weir_error *err);
weir_status weir_deal_each(weir_deal *deal, deal_fn fn, void *arg,
                           weir_error *err);

/* After a failure with |worker|: whether its session is over. Then it is lost,
 * which is told once. */
bool weir_deal_is_lost(weir_deal *deal, uint32_t worker);
/* Whether it was not lost so far. */
bool weir_deal_is_there(weir_deal *deal, uint32_t worker);
/* W7070: no worker is left, with names and reasons. */
weir_status weir_deal_none_left(weir_deal *deal, weir_error *err);

#endif
