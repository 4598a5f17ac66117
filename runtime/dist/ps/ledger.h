/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PS_LEDGER_H_
#define WEIR_DIST_PS_LEDGER_H_

#include "runtime/base/alloc.h"
#include "runtime/dist/ps/ps.h"

/* Who may compute which runs: the record that outlives a chief.
 *
 * Server 0 keeps one, the chief has a copy. All changes are ops: the chief
 * sends an op to server 0 and acts on it when server 0 has written it down;
 * both come to the same state, since an op's result depends on the ledger
 * alone. Server 0's goes into each generation.
 *
 * Each run below |cursor| is in the pool, in a lease or done; those from the
 * cursor on are free. In sync mode a run is done when its step is committed,
 * whatever the ledger says.
 *
 * The account, of async and bounded mode: a run that is done stands to one
 * member, or was done before this ledger began (|earlier|). So
 *   cursor = earlier + runs of all members + runs of the pool and the leases
 * and each run counts once. */

typedef struct weir_ps_lease {
  uint64_t id; /* larger than those dealt before */
  uint32_t worker;
  uint64_t incarnation;
  weir_ps_range range;
} weir_ps_lease;

typedef enum weir_ps_member_state {
  WEIR_PS_OUT,
  WEIR_PS_MEMBER,
  WEIR_PS_FENCING /* the servers' marks are asked for */
} weir_ps_member_state;

typedef struct weir_ps_member {
  weir_ps_member_state state;
  uint64_t incarnation; /* 0: never in */
  uint64_t runs;        /* async, bounded: of its leases that are done */
} weir_ps_member;

typedef struct weir_ps_ledger {
  const weir_allocator *alloc;
  weir_ps_config config;
  uint64_t epoch, life, generation; /* generation: the last complete one */
  uint64_t cursor, limit;           /* steps; no run from limit on is dealt */
  uint64_t base;                    /* sync: steps that are known committed */
  bool over, failed;                /* stopped: nothing more is dealt */
  uint64_t next_lease, next_incarnation;
  uint64_t partial;        /* runs applied by some servers only */
  uint64_t earlier;        /* runs done before a generation was read */
  weir_ps_member *members; /* config.workers */
  weir_ps_range *pool;     /* sorted by first, k_first */
  weir_ps_lease *leases;   /* sorted by id */
  size_t pool_count, lease_count, pool_capacity, lease_capacity;
} weir_ps_ledger;

typedef enum weir_ps_op_kind {
  WEIR_PS_OP_JOIN,    /* worker; a new incarnation */
  WEIR_PS_OP_LEASE,   /* worker; range: of the pool, or from the cursor on */
  WEIR_PS_OP_DONE,    /* worker; its leases up to |lease| are done */
  WEIR_PS_OP_FENCE,   /* worker */
  WEIR_PS_OP_RESOLVE, /* worker; lease, run: its highest mark; partial: runs */
  WEIR_PS_OP_COMMIT,  /* sync; limit: the committed version */
  WEIR_PS_OP_LIMIT,   /* limit */
  WEIR_PS_OP_OVER     /* failed */
} weir_ps_op_kind;

typedef struct weir_ps_op {
  weir_ps_op_kind kind;
  uint32_t worker;
  uint64_t lease, run, limit, partial;
  weir_ps_range range;
  bool failed;
} weir_ps_op;

/* An empty ledger of a job that may deal steps below |limit|. W6001. */
weir_status weir_ps_ledger_create(const weir_allocator *alloc,
                                  const weir_ps_config *config, uint64_t limit,
                                  weir_ps_ledger **out_ledger, weir_error *err);
void weir_ps_ledger_release(weir_ps_ledger *ledger); /* NULL-safe */
/* |src| may come from a peer: W7091 when its numbers are not sound. Both have
 * the same config. */
weir_status weir_ps_ledger_copy(weir_ps_ledger *dst, const weir_ps_ledger *src,
                                weir_error *err);
/* Applies |op|, or leaves all as it is. W7091: it does not fit this state. */
weir_status weir_ps_ledger_apply(weir_ps_ledger *ledger, const weir_ps_op *op,
                                 weir_error *err);
/* Nobody is in, and no lease is out: what they held is in the pool; sync: the
 * job goes on with step |version|. W6001. */
weir_status weir_ps_ledger_settle(weir_ps_ledger *ledger, uint64_t version,
                                  weir_error *err);
/* Whether all runs below the limit are done. */
bool weir_ps_ledger_done(const weir_ps_ledger *ledger);
/* Runs that are done, of this ledger's members and before it began. Sync: those
 * of committed steps. */
uint64_t weir_ps_ledger_runs(const weir_ps_ledger *ledger);
/* The number of runs of a range. */
static inline uint64_t weir_ps_range_runs(const weir_ps_range *r) {
  return (r->end - r->first) * (r->k_end - r->k_first);
}

#endif
