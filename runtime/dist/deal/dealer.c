/* SPDX-License-Identifier: Apache-2.0
 *
 * Dealing by need. Cost: a call looks at each worker once when it is granted,
 * and at each waiting call when it asks.
 *
 * Invariants: the queue is sorted; |left| counts the workers that are not lost;
 * a worker's |under_way| is what was granted less what has ended. */
#include "runtime/dist/deal/dealer.h"

#include <assert.h>
#include <stddef.h>

void weir_dealer_init(weir_dealer *d, weir_dealer_worker *workers,
                      uint32_t count, uint32_t each) {
  *d = (weir_dealer){
      .workers = workers, .count = count, .each = each, .left = count};
}

void weir_dealer_ask(weir_dealer *d, weir_dealer_call *call) {
  if (call->number == 0) call->number = ++d->numbers;
  weir_dealer_call **at = &d->queue;
  while (*at != NULL && (*at)->number < call->number) at = &(*at)->next;
  assert(*at != call);
  call->next = *at;
  *at = call;
}

static void leave(weir_dealer *d, const weir_dealer_call *call) {
  weir_dealer_call **at = &d->queue;
  while (*at != call) at = &(*at)->next;
  *at = call->next;
}

/* Whether |a| is to get a call rather than |b|. */
static bool needs_more(const weir_dealer_worker *a,
                       const weir_dealer_worker *b) {
  if (a->under_way != b->under_way) return a->under_way < b->under_way;
  return a->last < b->last;
}

uint32_t weir_dealer_grant(weir_dealer *d, weir_dealer_call *call) {
  weir_dealer_worker *best = NULL;
  if (d->left == 0) {
    leave(d, call);
    return WEIR_DEALER_NONE;
  }
  if (d->queue != call) return WEIR_DEALER_WAIT;
  for (uint32_t i = 0; i < d->count; i++) {
    weir_dealer_worker *w = &d->workers[i];
    if (w->lost || w->under_way == d->each) continue;
    if (best == NULL || needs_more(w, best)) best = w;
  }
  if (best == NULL) return WEIR_DEALER_WAIT;
  leave(d, call);
  best->under_way++;
  best->last = ++d->grants;
  return (uint32_t)(best - d->workers);
}

void weir_dealer_end(weir_dealer *d, uint32_t worker, weir_dealer_how how) {
  weir_dealer_worker *w = &d->workers[worker];
  assert(w->under_way > 0 && (how != WEIR_DEAL_AGAIN || w->lost));
  w->under_way--;
  w->done += how == WEIR_DEAL_DONE;
  w->failed += how == WEIR_DEAL_FAILED;
  w->again += how == WEIR_DEAL_AGAIN;
}

bool weir_dealer_lose(weir_dealer *d, uint32_t worker) {
  weir_dealer_worker *w = &d->workers[worker];
  if (w->lost) return false;
  w->lost = true;
  d->left--;
  return true;
}
