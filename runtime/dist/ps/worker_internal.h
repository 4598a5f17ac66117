/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PS_WORKER_INTERNAL_H_
#define WEIR_DIST_PS_WORKER_INTERNAL_H_

#include "runtime/base/vec.h"
#include "runtime/dist/ps/worker.h"

/* Shared by the files of the worker. */

/* A lease; async, bounded: runs below |range.first| are computed. Id 0: a run
 * computed for another worker. */
typedef struct weir_ps_held {
  uint64_t id;
  weir_ps_range range;
} weir_ps_held;

/* A push that is not everywhere yet. */
typedef struct weir_ps_sent {
  uint64_t seq, lease, run, step;
  uint32_t k;
  bool last; /* of its lease */
  uint64_t clock, lr_version;
  uint64_t acked, stale; /* sets of servers */
  uint64_t age;          /* the largest staleness that a server told */
} weir_ps_sent;

struct weir_ps_worker {
  const weir_allocator *alloc;
  weir_ps_worker_options options;
  weir_ps_worker_calls calls;
  weir_ps_mode mode;
  uint32_t servers, index;
  bool dead, ended, joined, draining, leaving;
  bool want_sent, resting, spare_sent, failed;
  uint64_t failed_run;
  uint32_t chief; /* its index */
  uint64_t chiefs_epoch, life, incarnation;
  WEIR_VEC(weir_ps_held) leases;
  uint64_t last_lease, done_lease;
  /* The values that are here: a version of each server, or NONE. */
  uint64_t *versions; /* [servers] */
  uint64_t request, waits;
  bool pulled; /* all of one pull */
  uint64_t pull_step;
  bool entering;
  uint64_t clock;
  bool computing;
  uint64_t ticket;
  weir_ps_work work;
  weir_ps_held work_of; /* its lease */
  weir_ps_sent *again;  /* the push that is computed again; NULL */
  /* Pushes, in order; those of sync are of one step. */
  weir_ps_sent *sent;
  uint64_t *sent_versions; /* [capacity][servers] */
  uint32_t sent_capacity, sent_count;
  uint64_t seq;
  /* Sync: the step of |computed|, and the version that is known. */
  uint64_t step, version;
  bool *computed; /* [aggregate] */
  weir_ps_worker_counts counts;
};

/* worker.c: */
bool weir_ps_worker_dies(weir_ps_worker *w, weir_ps_failpoint fp);
void weir_ps_worker_tell_chief(weir_ps_worker *w, weir_ps_message *m);
void weir_ps_worker_tell_server(weir_ps_worker *w, uint32_t server,
                                weir_ps_message *m);
/* Asks for a lease, once. */
void weir_ps_worker_want(weir_ps_worker *w);
/* Gives the rest of its leases back. */
void weir_ps_worker_leave(weir_ps_worker *w);

/* worker_step.c: */
/* Does what can be done next. */
void weir_ps_worker_advance(weir_ps_worker *w);
void weir_ps_worker_pulled(weir_ps_worker *w, uint32_t server,
                           const weir_ps_message *m);
void weir_ps_worker_pushed(weir_ps_worker *w, uint32_t server,
                           const weir_ps_message *m);
void weir_ps_worker_marked(weir_ps_worker *w, uint32_t server,
                           const weir_ps_message *m);
/* Asks |server|, whose link came back, and sends again what it may lack. */
void weir_ps_worker_resume(weir_ps_worker *w, uint32_t server);
static inline uint64_t weir_ps_worker_all(const weir_ps_worker *w) {
  return w->servers == 64 ? UINT64_MAX : (UINT64_C(1) << w->servers) - 1;
}

#endif
