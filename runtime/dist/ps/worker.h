/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PS_WORKER_H_
#define WEIR_DIST_PS_WORKER_H_

#include "runtime/base/alloc.h"
#include "runtime/dist/ps/ps.h"

/* A worker: which run it computes next, on which values, and who has them.
 *
 *   JOIN -> WELCOME -> WANT -> LEASE
 *   for each run: PULL of all servers -> compute ... computed -> PUSH to all
 *     -> PUSHED by all (async, bounded), or a later version (sync) -> forget
 *
 * When there is a next run, a PUSH holds the PULL for it, and PUSHED is its
 * PULLED too: one message each way for a run (async and bounded, window 1).
 *
 * Async: up to |window| pushes wait for their answers, the next run is pulled
 * and computed meanwhile. Bounded: one. Sync: all runs of a step that the
 * worker has are computed on one pull.
 *
 * A push is kept until all servers have it: when a link to a server comes back,
 * the worker asks for its mark and sends again what lies above. So the host
 * keeps the values of a push until forget().
 *
 * While the chief is away the worker goes on as long as it has leases. */

typedef struct weir_ps_worker weir_ps_worker;

/* A run to be computed. |version|: of server 0's values; learning rate and
 * random numbers of sync mode follow from the run and its step alone. */
typedef struct weir_ps_work {
  uint64_t run, step;
  uint32_t k;
  uint64_t version;
} weir_ps_work;

typedef struct weir_ps_worker_options {
  weir_ps_config config;
  uint32_t index; /* slot; no two processes have the same at a time */
  weir_ps_failpoints failpoints;
} weir_ps_worker_options;

/* Each is one action, none waits, none calls the worker. */
typedef struct weir_ps_worker_calls {
  void *self;
  /* Copies |m|. With PUSH the part of the values of |m->run| that the server
   * |to| holds goes along. A message to a task that is down is dropped. */
  void (*send)(void *self, weir_ps_task to, const weir_ps_message *m);
  /* Begins to compute a run on the values that were pulled last; computed()
   * follows. The values stay until then. A run may come again. */
  void (*compute)(void *self, uint64_t ticket, const weir_ps_work *work);
  /* The values of |run| are no more needed. */
  void (*forget)(void *self, uint64_t run);
  /* The servers were restored, or this worker was taken for dead: all values
   * are void, none of its runs is wanted; it joins again. */
  void (*reset)(void *self);
  /* The end: of the job, after drain(): of the stay. The last call. */
  void (*over)(void *self, bool drained);
} weir_ps_worker_calls;

/* W7090, W6001. */
weir_status weir_ps_worker_create(const weir_allocator *alloc,
                                  const weir_ps_worker_options *options,
                                  const weir_ps_worker_calls *calls,
                                  weir_ps_worker **out_worker, weir_error *err);
void weir_ps_worker_release(weir_ps_worker *worker); /* NULL-safe */

/* Events of links. */
void weir_ps_worker_up(weir_ps_worker *worker, weir_ps_task peer);
void weir_ps_worker_lost(weir_ps_worker *worker, weir_ps_task peer);
/* A message, whole: the values of a PULLED are there. */
void weir_ps_worker_message(weir_ps_worker *worker, weir_ps_task from,
                            const weir_ps_message *m);

/* A run is computed. |ok| false: its loss is NaN, or a node has failed: it is
 * not pushed and ends the job. */
void weir_ps_worker_computed(weir_ps_worker *worker, uint64_t ticket, bool ok);
/* Finishes what is under way, gives the rest of its leases back, and leaves. */
void weir_ps_worker_drain(weir_ps_worker *worker);

typedef struct weir_ps_worker_counts {
  uint64_t computed, pushed;
  uint64_t acknowledged; /* pushes that all servers have; sync: are committed */
  uint64_t again;        /* runs computed again, on newer values */
  uint64_t skipped;      /* sync: somebody else was first */
  uint64_t resent;       /* pushes, after a link came back */
  uint64_t spares;       /* runs computed for others */
  uint64_t resets;
} weir_ps_worker_counts;
const weir_ps_worker_counts *weir_ps_worker_count(const weir_ps_worker *worker);

/* The runs that it is likely to compute after the one at hand, in their order,
 * as far as its leases tell: |most| at most go to |out|. Returns how many. For
 * a host that reads their data ahead. */
uint32_t weir_ps_worker_ahead(const weir_ps_worker *worker, uint64_t *out,
                              uint32_t most);

/* For the hang report: what the worker waits for now. */
typedef enum weir_ps_worker_state {
  WEIR_PS_WAITS_JOIN,  /* the chief's WELCOME */
  WEIR_PS_WAITS_LEASE, /* no run is left */
  WEIR_PS_WAITS_PULL,  /* the servers in |servers|, for values */
  WEIR_PS_COMPUTES,    /* |run| */
  WEIR_PS_WAITS_PUSH,  /* the servers in |servers|, for answers */
  WEIR_PS_WAITS_BYE,
  WEIR_PS_ENDED
} weir_ps_worker_state;
/* |run|, |servers| (bits): NULL, or get it. */
weir_ps_worker_state weir_ps_worker_look(const weir_ps_worker *worker,
                                         uint64_t *run, uint64_t *servers);

#endif
