/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PS_COORDINATOR_H_
#define WEIR_DIST_PS_COORDINATOR_H_

#include "runtime/dist/ps/ledger.h"

/* The coordinator, in the chief: who computes which runs, and when to stop.
 *
 *   CLAIM -> GRANTED (an epoch, the ledger) -> STATE of all servers
 *   -> [RESTORE -> RESTORED of all] -> running
 *
 * It changes the ledger by ops that server 0 writes down, one at a time, and
 * tells workers when one is written. So a chief that comes back, or another
 * one, goes on with what server 0 has; the epoch that it is granted fences the
 * old one, and the workers do not notice. A server that has lost its state
 * takes all back to the last generation.
 *
 * It stops at the *limit*, a step: no run from there on is dealt. When all
 * before it are done and, in sync mode, committed, it calls reached(), and the
 * host lets it go on (go) or ends the job (stop). So a rule that looks at the
 * values sees one committed version, as in one process.
 *
 * Leases: the next one when a worker has fewer than two runs left. By load: of
 * config.lease_steps steps at most, and smaller ones towards the limit, so that
 * nobody waits long for the last. Equal shares: of those below the limit each
 * worker gets as many as the others, give or take one, in turn; what a worker
 * leaves that is out is shared by the rest, and one that comes late shares from
 * the next limit on. Sync: each worker gets a column of the micro-batches of so
 * many steps, unasked.
 *
 * A worker that is lost for |rejoin_ns|, or that has a lease and makes no
 * progress for |evict_ns| while others do or wait for it, is out: the
 * coordinator tells the servers to take no more from it, reads from their marks
 * which of its runs are done, and deals the rest again. Sync needs no marks: a
 * run of a committed step is done. */

typedef struct weir_ps_coordinator weir_ps_coordinator;

typedef struct weir_ps_coordinator_options {
  weir_ps_config config;
  uint64_t incarnation; /* of this process, random, not 0 */
  uint64_t epoch;       /* the highest that is known; 0 */
  int64_t rejoin_ns;    /* a lost worker may come back; 0: 10 s */
  int64_t evict_ns;     /* 0: slow workers stay */
  int64_t final_ns;     /* how long the last generation is tried; 0: 60 s */
  uint64_t save_every;  /* steps between generations; 0: by save() alone */
  weir_ps_failpoints failpoints;
} weir_ps_coordinator_options;

/* Each is one action, none waits, none calls the coordinator. */
typedef struct weir_ps_coordinator_calls {
  void *self;
  /* Copies |m|, and what it points to. */
  void (*send)(void *self, weir_ps_task to, const weir_ps_message *m);
  /* All servers have one state, leases are dealt. |generation|, |step|: where
   * the job goes on. Comes again after a server was restored. */
  void (*running)(void *self, uint64_t generation, uint64_t step);
  /* All runs below |step| count. go() or stop() follows. May come again for the
   * same step after a server was restored. */
  void (*reached)(void *self, uint64_t step);
  /* A generation is complete (ok), or was given up. */
  void (*generation)(void *self, uint64_t generation, bool ok);
  /* |worker| has joined, or is out: drained, or lost, or evicted. */
  void (*member)(void *self, uint32_t worker, bool in, bool drained);
  /* The job has ended, its last generation is on disk, but where the account
   * says |unsaved|. |failed|: at |run|. */
  void (*over)(void *self, bool failed, uint64_t run);
  /* Another chief has been granted a later epoch. The last call. */
  void (*fenced)(void *self, uint64_t epoch);
} weir_ps_coordinator_calls;

/* W7090, W6001. */
weir_status weir_ps_coordinator_create(
    const weir_allocator *alloc, const weir_ps_coordinator_options *options,
    const weir_ps_coordinator_calls *calls,
    weir_ps_coordinator **out_coordinator, weir_error *err);
void weir_ps_coordinator_release(weir_ps_coordinator *c); /* NULL-safe */

/* Events of links. After each event call tick, which begins what is due. */
void weir_ps_coordinator_up(weir_ps_coordinator *c, int64_t now_ns,
                            weir_ps_task peer);
void weir_ps_coordinator_lost(weir_ps_coordinator *c, int64_t now_ns,
                              weir_ps_task peer);
void weir_ps_coordinator_message(weir_ps_coordinator *c, int64_t now_ns,
                                 weir_ps_task from, const weir_ps_message *m);
/* Does all that is due; returns when something is next, or INT64_MAX. */
int64_t weir_ps_coordinator_tick(weir_ps_coordinator *c, int64_t now_ns);

/* After reached(): a new limit, above the old one; NONE: no limit. */
void weir_ps_coordinator_go(weir_ps_coordinator *c, int64_t now_ns,
                            uint64_t limit);
/* Deals nothing more, and ends the job. |step|: that of the last reached(), of
 * no effect when the servers were restored since; NONE: whatever counts then.
 */
void weir_ps_coordinator_stop(weir_ps_coordinator *c, int64_t now_ns,
                              uint64_t step);
/* Asks for a generation. One at a time; generation() follows. */
void weir_ps_coordinator_save(weir_ps_coordinator *c, int64_t now_ns);

typedef enum weir_ps_chief_state {
  WEIR_PS_CHIEF_CLAIMS,   /* waits for server 0 */
  WEIR_PS_CHIEF_LOOKS,    /* for the states of the servers in |servers| */
  WEIR_PS_CHIEF_RESTORES, /* for those in |servers| to load */
  WEIR_PS_CHIEF_RUNS,
  WEIR_PS_CHIEF_ENDS, /* the last generation is saved */
  WEIR_PS_CHIEF_OVER,
  WEIR_PS_CHIEF_FENCED
} weir_ps_chief_state;
/* |servers| (bits of those that are missing): NULL, or gets it. */
weir_ps_chief_state weir_ps_coordinator_look(const weir_ps_coordinator *c,
                                             uint64_t *servers);
/* The ledger's copy; lent. NULL before the first grant. */
const weir_ps_ledger *weir_ps_coordinator_ledger(const weir_ps_coordinator *c);

/* That this chief has been granted; 0: none yet. */
uint64_t weir_ps_coordinator_epoch(const weir_ps_coordinator *c);
/* The life of the servers' state, as far as it knows; 0: it does not. */
uint64_t weir_ps_coordinator_life(const weir_ps_coordinator *c);

/* The account of this chief. */
typedef struct weir_ps_account {
  uint64_t runs;    /* that workers reported as acknowledged (async, bounded) */
  uint64_t partial; /* counted, though some servers do not have them */
  uint64_t returned; /* runs dealt again */
  uint64_t rollbacks, generations, evicted, lost, joined;
  bool unsaved; /* the last generation could not be saved */
  /* Async, bounded: runs by their staleness, as workers told: bucket b has
   * those of b bits. */
  uint64_t staleness[WEIR_PS_BUCKETS], staleness_max;
} weir_ps_account;
const weir_ps_account *weir_ps_coordinator_account(
    const weir_ps_coordinator *c);
/* Runs of |worker| that were acknowledged, to see its share. */
uint64_t weir_ps_coordinator_share(const weir_ps_coordinator *c,
                                   uint32_t worker);

#endif
