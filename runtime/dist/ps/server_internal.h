/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PS_SERVER_INTERNAL_H_
#define WEIR_DIST_PS_SERVER_INTERNAL_H_

#include "runtime/dist/ps/server.h"

/* Shared by the files of the server. */

/* A worker, as a server sees it. */
typedef struct weir_ps_client {
  bool parked; /* |pull| waits */
  weir_ps_message pull;
  uint64_t received; /* seq of the last push that is applied or queued */
  uint64_t fenced;   /* incarnations up to it are out */
  bool fencing;      /* FENCED is sent when its push is applied */
  bool active;       /* bounded: others wait for it */
  uint64_t clock;
  bool spare; /* sync, server 0: waits for a late run of |spare_step| */
  uint64_t spare_step, incarnation;
} weir_ps_client;

typedef enum weir_ps_phase {
  WEIR_PS_GATHERS,
  WEIR_PS_NORMS,    /* computes its share */
  WEIR_PS_EXCHANGE, /* waits for the others' */
  WEIR_PS_FINISHES,
  WEIR_PS_IS_READY /* waits for the commit */
} weir_ps_phase;

/* The step |version| of sync mode. */
typedef struct weir_ps_round {
  weir_ps_phase phase;
  uint32_t next;         /* micro-batches below it are added */
  bool adding;           /* that one */
  weir_ps_message *push; /* [aggregate]: those that wait */
  bool *here;            /* [aggregate]: it has come */
  bool *taken;           /* [aggregate]: a spare computes it */
  uint64_t *last; /* [aggregate]: 1 + the last step that its owner sent */
  uint32_t missing;
  uint64_t norms, ready; /* sets of servers */
  uint32_t ready_messages;
} weir_ps_round;

/* The keeper's part, of server 0. */
typedef struct weir_ps_keeper {
  weir_ps_ledger *ledger;
  uint64_t sealed;            /* the last generation */
  bool claiming, claim_waits; /* keep() is under way; another one came */
  weir_ps_task claimant, waiter;
  uint64_t claim_epoch, owner; /* the process of the last chief */
  weir_ps_message wait_claim;
  uint64_t saving; /* a generation; 0: none */
  uint64_t next_generation, saved_version;
  uint64_t save_epoch, save_seq; /* of the SAVE that asked for it */
  bool order_waits;              /* a SAVE, behind an update under way */
  weir_ps_message order;
  uint64_t taken, saved; /* sets of servers */
  bool sealing;
  bool held; /* |record| waits until all states are taken */
  weir_ps_message record;
  weir_ps_op op;
  weir_ps_task recorder;
} weir_ps_keeper;

struct weir_ps_server {
  const weir_allocator *alloc;
  weir_ps_server_options options;
  weir_ps_server_calls calls;
  uint32_t workers, servers, index;
  weir_ps_mode mode;
  bool dead; /* a failpoint has ended the process */
  uint64_t epoch, life, version, ticket;
  uint64_t restoring; /* the epoch of a restore under way; 0 */
  uint32_t chief;     /* the index of the one with that epoch */
  uint64_t up;        /* servers, bits */
  weir_ps_mark *marks;
  weir_ps_client *clients;
  /* Async: pushes that wait, a ring; |applying|: the first of them. */
  weir_ps_message *queue;
  uint32_t queue_capacity, queue_first, queue_count;
  bool applying;
  weir_ps_mark late_mark; /* planted */
  uint32_t late_worker;
  uint64_t late_save; /* behind an update: a generation; 0: none */
  uint64_t saving;    /* planted: at the next publish */
  weir_ps_round round;
  weir_ps_keeper keeper;
  weir_ps_server_counts counts;
};

/* server.c: */
bool weir_ps_server_dies(weir_ps_server *s, weir_ps_failpoint fp);
bool weir_ps_server_bug(const weir_ps_server *s, weir_ps_failpoint fp);
void weir_ps_server_send(weir_ps_server *s, weir_ps_task to,
                         weir_ps_message *m);
void weir_ps_server_drop(weir_ps_server *s, void *data);
/* Makes the pull that |push| holds, which has its verdict. false: it waits, and
 * is answered by itself. */
bool weir_ps_server_pulls(weir_ps_server *s, const weir_ps_message *push);
/* Answers the pulls that waited and need no longer. */
void weir_ps_server_wake(weir_ps_server *s);
/* Saves this server's state as |generation|. */
void weir_ps_server_save(weir_ps_server *s, uint64_t generation);
/* Whether what the server has is of its version, and may be saved: no update
 * that writes over it was begun and is not published. */
bool weir_ps_server_settled(const weir_ps_server *s);
/* It is from now on: does what has waited for it. */
void weir_ps_server_settle(weir_ps_server *s);
static inline weir_ps_task weir_ps_server_of(uint32_t index) {
  return (weir_ps_task){WEIR_PS_SERVER, index};
}

/* server_async.c: */
void weir_ps_async_push(weir_ps_server *s, const weir_ps_message *m);
void weir_ps_async_fence(weir_ps_server *s, const weir_ps_message *m);
void weir_ps_async_clear(weir_ps_server *s);
/* Whether |m|, of a worker, is of an incarnation that counts; makes it the
 * worker's if it is new. */
bool weir_ps_async_knows(weir_ps_server *s, const weir_ps_message *m);
/* The worker that a pull at its clock has to wait for; UINT32_MAX: none. */
uint32_t weir_ps_bounded_behind(const weir_ps_server *s,
                                const weir_ps_message *pull);
/* A pull or a rest of bounded mode sets the worker's clock. */
void weir_ps_bounded_enter(weir_ps_server *s, weir_ps_message *pull);

/* server_sync.c: */
void weir_ps_sync_push(weir_ps_server *s, const weir_ps_message *m);
void weir_ps_sync_message(weir_ps_server *s, uint32_t from,
                          const weir_ps_message *m);
void weir_ps_sync_up(weir_ps_server *s, uint32_t server);
void weir_ps_sync_clear(weir_ps_server *s);
/* Gives a spare that waits the run that is late, if one is. */
void weir_ps_sync_spares(weir_ps_server *s);

/* keeper.c: */
void weir_ps_keeper_message(weir_ps_server *s, weir_ps_task from,
                            const weir_ps_message *m);
void weir_ps_keeper_restored(weir_ps_server *s, const weir_ps_ledger *ledger);
void weir_ps_keeper_committed(weir_ps_server *s);
/* Begins the generation that waited for the end of an update, if one did. */
void weir_ps_keeper_settle(weir_ps_server *s);
/* Gives up a generation that is under way or waits, if one is. */
void weir_ps_keeper_abandon(weir_ps_server *s);
void weir_ps_keeper_note(weir_ps_server *s, weir_ps_kind kind, uint32_t from,
                         const weir_ps_message *m);

#endif
