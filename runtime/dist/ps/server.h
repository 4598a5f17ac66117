/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PS_SERVER_H_
#define WEIR_DIST_PS_SERVER_H_

#include "runtime/dist/ps/ledger.h"

/* A parameter server: the order in which pushes change its variables.
 *
 * The host has two buffers for each variable: the current one, which pulls
 * lend, and a spare one, into which an update is computed. The machine says
 * what happens to them; its *version* counts updates.
 *
 *   async, bounded   push -> apply ... applied -> publish, PUSHED
 *   sync             push -> add ... added (each k, in order)
 *                    -> [norm ... normed, all servers'] -> finish ... finished
 *                    -> all servers' READY -> COMMIT by server 0 -> publish
 *
 * Async: pushes are applied one at a time, in order per worker. Each worker has
 * a *mark*, its last push that is applied; it changes with the version, in one
 * event, and is part of each generation. So a push counts once: what comes
 * again is below the mark. A push is acknowledged when it is applied.
 *
 * Sync: pushes are keyed (step, k), the first to arrive counts. The step to be
 * computed is the version; a pull of a later one is parked. A pull of step t+1
 * that is answered acknowledges the pushes of step t.
 *
 * Bounded: a pull at clock c is parked until the worker's own pushes are
 * applied and no worker that has work is at a clock below c - s.
 *
 * Server 0 is the *keeper* too: it grants epochs, writes down the ledger's ops,
 * leads generations and commits (keeper.c).
 *
 * A restore drops all that is under way. Whatever the host still computes then
 * ends with an event of an old |ticket|, which changes nothing.
 *
 * Example, a server alone with one worker, async:
 *   create, up(chief), message(CLAIM) -> keep(1); kept(1) -> GRANTED;
 *   message(RESTORE) -> restore(0); restored(version 0) -> RESTORED;
 *   up(worker), message(PULL) -> PULLED; message(PUSH) -> apply;
 *   applied -> publish(1), PUSHED. */

typedef struct weir_ps_server weir_ps_server;

/* A worker's last push that is applied, and its place in the data. */
typedef struct weir_ps_mark {
  uint64_t incarnation, seq; /* seq 0: none yet */
  uint64_t lease, run;       /* of that push */
} weir_ps_mark;

/* A server's part of a generation, beside its variables. */
typedef struct weir_ps_state {
  uint64_t generation, version;
  const weir_ps_mark *marks;    /* config.workers */
  const weir_ps_ledger *ledger; /* of server 0; else NULL */
} weir_ps_state;

typedef struct weir_ps_server_options {
  weir_ps_config config;
  uint32_t index;
  uint64_t limit; /* server 0: steps of the job; NONE: no limit */
  /* Server 0: the last epoch that was kept and its chief, and the last
   * generation that was sealed, by an earlier process; 0: none. */
  uint64_t epoch, chief, generation;
  weir_ps_failpoints failpoints;
} weir_ps_server_options;

/* Each is one action, none waits, none calls the server. */
typedef struct weir_ps_server_calls {
  void *self;
  /* Copies |m|. With PULLED or PUSHED and |m->newer| the current values go
   * along, with NORM the own share for |m->step|. A message to a task that is
   * down is dropped. */
  void (*send)(void *self, weir_ps_task to, const weir_ps_message *m);
  /* Async, bounded: begins to apply |push|, and takes its data; applied()
   * follows. |push->lr_version| gives learning rate and step of the update,
   * |push->staleness| says how many updates its values are behind. */
  void (*apply)(void *self, uint64_t ticket, const weir_ps_message *push);
  /* Sync: begins to add |push| to the sum of its step, the first (k 0) to
   * nothing; added() follows. Takes its data. */
  void (*add)(void *self, uint64_t ticket, const weir_ps_message *push);
  /* Sync, if config.norm: begins to compute the own share; normed() follows. */
  void (*norm)(void *self, uint64_t ticket, uint64_t step);
  /* Sync: begins to compute the step from the sum into the spare buffers;
   * finished() follows. */
  void (*finish)(void *self, uint64_t ticket, uint64_t step);
  /* The spare buffers, as the last apply or finish left them, are current. */
  void (*publish)(void *self, uint64_t version);
  /* The data of a push that does not count. */
  void (*drop)(void *self, void *data);
  /* Begins to save the current buffers as they are now, with |state|, lent;
   * saved() follows. Where updates write over what
   * is there (weir_ps_writes_over), never between apply or finish and publish:
   * then it is of no version. */
  void (*save)(void *self, const weir_ps_state *state);
  /* Begins to load that generation; 0: the first values. restored() follows. */
  void (*restore)(void *self, uint64_t ticket, uint64_t generation);
  /* Server 0: writes down the epoch and its chief's incarnation; kept() follows
   * when they are on disk. */
  void (*keep)(void *self, uint64_t epoch, uint64_t chief);
  /* Server 0: all servers have saved that generation: makes it the one that a
   * job goes on from; sealed() follows. */
  void (*seal)(void *self, uint64_t generation);
} weir_ps_server_calls;

/* W7090, W6001. */
weir_status weir_ps_server_create(const weir_allocator *alloc,
                                  const weir_ps_server_options *options,
                                  const weir_ps_server_calls *calls,
                                  weir_ps_server **out_server, weir_error *err);
/* Gives the data that waits back by drop. NULL-safe. */
void weir_ps_server_release(weir_ps_server *server);

/* Events of links. */
void weir_ps_server_up(weir_ps_server *server, weir_ps_task peer);
void weir_ps_server_lost(weir_ps_server *server, weir_ps_task peer);
/* A message, whole. |m->data| is the server's until it gives it back. What does
 * not fit is dropped. */
void weir_ps_server_message(weir_ps_server *server, weir_ps_task from,
                            const weir_ps_message *m);

/* Events of the host, for the calls of these names. */
void weir_ps_server_applied(weir_ps_server *server, uint64_t ticket);
void weir_ps_server_added(weir_ps_server *server, uint64_t ticket);
void weir_ps_server_normed(weir_ps_server *server, uint64_t ticket);
void weir_ps_server_finished(weir_ps_server *server, uint64_t ticket);
void weir_ps_server_saved(weir_ps_server *server, uint64_t generation, bool ok);
/* |version|: of the variables. |ledger|: server 0, the generation's, settled
 * (generation.h); NULL: the job begins. |ok| false: nothing was loaded. */
void weir_ps_server_restored(weir_ps_server *server, uint64_t ticket,
                             uint64_t version, const weir_ps_ledger *ledger,
                             bool ok);
void weir_ps_server_kept(weir_ps_server *server, uint64_t epoch);
void weir_ps_server_sealed(weir_ps_server *server, uint64_t generation,
                           bool ok);

/* Counts since the server was made, and its state. */
typedef struct weir_ps_server_counts {
  uint64_t version, life, epoch; /* life 0: no state yet */
  uint64_t applied;              /* pushes */
  uint64_t duplicates;           /* dropped: they had come before */
  uint64_t late;                 /* sync: of a step that is committed */
  uint64_t refused; /* of another life, incarnation, slot, or a step to come */
  uint64_t stale;   /* sent back, to be computed again */
  uint64_t parked;  /* pulls that had to wait */
  uint64_t staleness_max;
  /* Pushes by staleness: 0, 1, 2-3, 4-7, ... */
  uint64_t staleness[WEIR_PS_BUCKETS];
} weir_ps_server_counts;
weir_ps_server_counts weir_ps_server_count(const weir_ps_server *server);

/* For the hang report: whom the pull of |worker| waits for. */
typedef struct weir_ps_wait {
  bool parked;
  uint64_t step;   /* sync: the step that is not committed */
  uint32_t k;      /* sync: its first missing micro-batch */
  uint32_t worker; /* bounded: the one that is furthest behind */
} weir_ps_wait;
weir_ps_wait weir_ps_server_wait(const weir_ps_server *server, uint32_t worker);

#endif
