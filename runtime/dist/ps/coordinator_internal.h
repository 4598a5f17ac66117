/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PS_COORDINATOR_INTERNAL_H_
#define WEIR_DIST_PS_COORDINATOR_INTERNAL_H_

#include "runtime/dist/ps/coordinator.h"

/* Shared by the files of the coordinator. */

/* The chief's knowledge of a worker beside the ledger. */
typedef struct weir_ps_seat {
  bool up;
  int64_t lost_ns; /* since when it is not */
  bool asks;       /* its JOIN waits */
  uint64_t join_incarnation, join_life, join_lease, join_done;
  bool wants;          /* a lease */
  bool leaves, evicts; /* it is drained; it is too slow */
  uint64_t done;       /* leases up to it are finished */
  uint64_t fenced;     /* servers whose mark has come, bits */
  uint64_t mark_lease, mark_run, mark_high, mark_low;
  uint64_t progress_run, share;
  uint64_t quota; /* equal shares: runs below the limit that it may get yet */
  bool awaited;   /* equal shares: it has not come, and one is kept for it */
  int64_t progress_ns;
} weir_ps_seat;

struct weir_ps_coordinator {
  const weir_allocator *alloc;
  weir_ps_coordinator_options options;
  weir_ps_coordinator_calls calls;
  weir_ps_chief_state state;
  bool dead;
  uint32_t servers, workers;
  weir_ps_mode mode;
  int64_t now_ns;
  uint64_t up; /* servers, bits */
  uint64_t epoch, life, generation;
  uint64_t ran_life;                     /* of the last running() */
  uint64_t looked, mismatched, restored; /* sets of servers */
  int64_t retry_ns;                      /* INT64_MAX: nothing is */
  int64_t final_ns; /* since when the last generation fails; 0: it does not */
  weir_ps_ledger *ledger;
  bool granted; /* the ledger is one */
  bool pending; /* |op| is being written down */
  weir_ps_op op;
  uint64_t op_seq;
  weir_ps_seat *seats;
  uint64_t committed;   /* sync: server 0's version */
  int64_t committed_ns; /* since when */
  uint64_t reached_at;  /* the limit that reached() told; NONE */
  bool stop, stop_kept, failed;
  uint64_t failed_run, new_limit;
  bool saving, save_wanted, final_save;
  uint64_t saved_at, save_seq;
  int64_t ran_ns;   /* since when leases are dealt */
  uint32_t next_up; /* equal shares: gets the next remainder */
  weir_ps_account account;
};

/* coordinator.c: */
bool weir_ps_chief_dies(weir_ps_coordinator *c, weir_ps_failpoint fp);
bool weir_ps_chief_bug(const weir_ps_coordinator *c, weir_ps_failpoint fp);
void weir_ps_chief_send(weir_ps_coordinator *c, weir_ps_task to,
                        weir_ps_message *m);
void weir_ps_chief_tell_servers(weir_ps_coordinator *c, weir_ps_message *m);

/* coordinator_deal.c: */
/* The next op; false: there is none. */
bool weir_ps_chief_choose(weir_ps_coordinator *c, weir_ps_op *op);
/* When a worker that is lost, or slow, is out, or one that has not come gets no
 * share any more; INT64_MAX. */
int64_t weir_ps_chief_deadline(const weir_ps_coordinator *c);
/* Marks the workers that are too slow. */
void weir_ps_chief_evict(weir_ps_coordinator *c);

/* coordinator_members.c: */
/* A message of a worker. */
void weir_ps_chief_worker(weir_ps_coordinator *c, uint32_t worker,
                          const weir_ps_message *m);
/* Acts on an op that is written down; |returned|: runs to be dealt again. */
void weir_ps_chief_act(weir_ps_coordinator *c, const weir_ps_op *op,
                       uint64_t returned);
/* Answers a JOIN that needs no op. */
void weir_ps_chief_greet(weir_ps_coordinator *c, uint32_t worker);
/* A server's mark of a worker that is out. */
void weir_ps_chief_fenced(weir_ps_coordinator *c, uint32_t server,
                          const weir_ps_message *m);
void weir_ps_chief_fence(weir_ps_coordinator *c, uint32_t worker,
                         uint32_t server);
/* All seats after a grant. */
void weir_ps_chief_seat_all(weir_ps_coordinator *c);

#endif
