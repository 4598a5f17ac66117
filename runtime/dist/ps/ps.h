/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PS_PS_H_
#define WEIR_DIST_PS_PS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"
#include "runtime/base/sv.h"

/* Parameter servers: numbers and messages that their three machines share.
 *
 * A training run has a *run number* for each batch in the order in which one
 * process would take them, from 0. In sync mode N of them make a step: run
 * N * t + k is micro-batch |k| of step |t|. Elsewhere N is 1, and a step is a
 * run. Who computes a run does not matter: its data and its random numbers
 * follow from the number alone.
 *
 * Three machines (coordinator.h, worker.h, server.h) deal with numbers, the
 * programs around them with tensors. A machine has one thread, no clock and no
 * lock: it is called with events, acts through a table of calls, and the time
 * is passed in. A call never leads back into the machine that makes it: what
 * comes of it is a later event.
 *
 * Links keep the order of messages and lose none while they are up; both ends
 * hear of a link's end, each in its own time. up() comes before the first
 * message of a link, lost() after the last.
 *
 * *Epoch*: a number that server 0 grants to one chief; a chief's messages carry
 * it, and servers and workers refuse older ones. *Life*: the epoch in which the
 * servers were last restored, from a generation or, generation 0, from the
 * first values. Messages of workers and between servers carry it: those of
 * another life change nothing. */

enum {
  WEIR_PS_SERVERS = 64,   /* bits of a set */
  WEIR_PS_WORKERS = 1024, /* slots */
  WEIR_PS_AGGREGATE = 4096,
  WEIR_PS_BUCKETS = 16 /* of a histogram of staleness */
};
#define WEIR_PS_NONE UINT64_MAX

typedef enum weir_ps_mode {
  WEIR_PS_ASYNC,
  WEIR_PS_SYNC,
  WEIR_PS_BOUNDED,
  WEIR_PS_MODE_COUNT
} weir_ps_mode;

/* async, bounded: who gets the runs that are next. */
typedef enum weir_ps_shares {
  WEIR_PS_BY_LOAD, /* whoever has nearly none left */
  WEIR_PS_EQUAL    /* each as many as the others, the remainder spread */
} weir_ps_shares;

/* The settings that are the same in all machines of a job. */
typedef struct weir_ps_config {
  weir_ps_mode mode;
  uint32_t servers, workers; /* workers: slots, for those that join late too */
  uint32_t aggregate;        /* sync: N, from 1; else 1 */
  uint32_t backup;           /* sync: workers that compute late runs again */
  uint32_t staleness;        /* bounded: s */
  /* async: with |limited| a push computed on a value that is older than
   * |max_staleness| updates is not applied but computed again; 0: only those on
   * the current value are. */
  bool limited;
  uint32_t max_staleness;
  uint32_t window; /* async: pushes of a worker that wait; 0: 1 */
  weir_ps_shares shares;
  uint64_t lease_steps; /* steps of a lease at most; 0: 8 */
  bool norm;            /* sync: the servers exchange norms */
} weir_ps_config;

/* Whether an update may write over a server's slots before it is published. In
 * sync mode with several servers it may not: one server can compute a step that
 * the others never do, when the job stops, and has to save the step before. */
static inline bool weir_ps_writes_over(const weir_ps_config *config) {
  return config->mode != WEIR_PS_SYNC || config->servers == 1;
}

/* W7090 when a number is out of range, or has no effect in this mode. */
weir_status weir_ps_config_check(const weir_ps_config *config, weir_error *err);

typedef enum weir_ps_role {
  WEIR_PS_CHIEF,
  WEIR_PS_SERVER,
  WEIR_PS_WORKER
} weir_ps_role;

/* A machine; |index| of a worker is its slot, of the chief 0. */
typedef struct weir_ps_task {
  weir_ps_role role;
  uint32_t index;
} weir_ps_task;

/* Messages, and the fields that they use beside |kind|. "chief": sent with the
 * chief's |epoch|; "data": with the |life| that the sender knows. */
typedef enum weir_ps_kind {
  /* Chief to server 0 and back. */
  WEIR_PS_CLAIM,    /* epoch: that it had; incarnation: the process; seq: the
                       highest epoch that it knows of */
  WEIR_PS_GRANTED,  /* epoch; ledger, NULL: server 0 has no state; generation */
  WEIR_PS_RECORD,   /* chief; seq; op: to be written down */
  WEIR_PS_RECORDED, /* epoch; seq, ok; the ledger's next lease, incarnation */
  WEIR_PS_COMMITTED,  /* sync: version, of server 0 */
  WEIR_PS_GENERATION, /* generation; seq of that SAVE; ok: complete, on disk */
  WEIR_PS_SAVE,       /* chief to server 0: seq; then data, server 0 to the
                         others: generation; version (sync) */
  WEIR_PS_TAKEN,      /* data; generation, version, ok: what is saved no more
                         changes; to server 0 */
  WEIR_PS_SAVED,      /* data; generation, ok: to server 0 */
  /* Chief to each server and back. */
  WEIR_PS_EPOCH,    /* chief; life (0: unknown); to workers too */
  WEIR_PS_STATE,    /* epoch; life (0: no state), version */
  WEIR_PS_REFUSED,  /* epoch: the older one was refused */
  WEIR_PS_RESTORE,  /* chief; generation; newer: the job's first values come
                       along, version: their step */
  WEIR_PS_RESTORED, /* epoch, life: that it has now; ok; ledger (server 0) */
  WEIR_PS_FENCE,    /* chief; worker, incarnation: take no more from it */
  WEIR_PS_FENCED,   /* epoch; worker, incarnation; seq, lease, run: its mark */
  /* Worker to chief and back. */
  WEIR_PS_JOIN,     /* answers EPOCH; epoch, life, incarnation (0: none); lease:
                       the last that came; done: the last that is finished */
  WEIR_PS_WELCOME,  /* chief; life, incarnation */
  WEIR_PS_WANT,     /* incarnation; done: fewer than two steps are left */
  WEIR_PS_LEASE,    /* chief; incarnation, lease, range */
  WEIR_PS_PROGRESS, /* incarnation; lease, run: acknowledged; staleness: the
                       largest of all servers; done */
  WEIR_PS_LEAVE,    /* incarnation; done: the rest of its leases is free */
  WEIR_PS_GONE,     /* chief; incarnation: it is out; ok: it may join as new */
  WEIR_PS_BYE,      /* chief; incarnation: it has left */
  WEIR_PS_FAILED,   /* incarnation; run: it cannot be computed; ends the job */
  WEIR_PS_OVER,     /* chief; version: the job has ended */
  /* Worker to server and back; all are data and have worker, incarnation. */
  WEIR_PS_PULL,   /* request; seq: its last push; version: what it has, or NONE;
                     step (sync): at least that version; clock (bounded; NONE:
                     it enters, and gets a clock, no values) */
  WEIR_PS_PULLED, /* request, version, clock; newer: the values come along; ok:
                     also those that no step changes */
  WEIR_PS_PUSH,   /* seq, lease, run, step, k, version: pulled here; lr_version:
                     of server 0; clock; lease 0: as a spare; data; request:
                     of a PULL that is made when it has its verdict; 0: none */
  WEIR_PS_PUSHED, /* seq, verdict, version, staleness; request, newer: the
                     PULLED of that pull too, with its values */
  WEIR_PS_ASK,    /* after a link came back */
  WEIR_PS_MARK,   /* seq: the last that is applied */
  WEIR_PS_REST,   /* bounded: it has no work, nobody waits for it */
  WEIR_PS_SPARE,  /* sync, server 0: which run of |step| is late? NONE: it has
                     work of its own again */
  WEIR_PS_TAKE,   /* step, k, run: that one */
  /* Between servers; data. */
  WEIR_PS_READY,  /* step: computed, to server 0 */
  WEIR_PS_COMMIT, /* step: it counts, from server 0 */
  WEIR_PS_NORM,   /* step: the sender's share of the norm comes along */
  /* Of the programs around the machines, which know nothing of them. */
  WEIR_PS_FETCH,   /* chief to server: request; version: in that life, at least
                      that one */
  WEIR_PS_FETCHED, /* request, life, version; newer: the values come along */
  WEIR_PS_REPORT,  /* worker to chief: run; its numbers come along */
  WEIR_PS_KV,      /* of the key-value interface: |note| is the message */
  WEIR_PS_KIND_COUNT
} weir_ps_kind;

/* "PUSH". Static. */
const char *weir_ps_kind_name(weir_ps_kind kind);

/* A server's answer to a push. */
typedef enum weir_ps_verdict {
  WEIR_PS_APPLIED,
  WEIR_PS_STALE, /* not applied: pull and compute that run again */
  WEIR_PS_AGAIN  /* not applied: one before it is missing; ask for the mark */
} weir_ps_verdict;

/* Steps [first, end) x micro-batches [k_first, k_end). */
typedef struct weir_ps_range {
  uint64_t first, end;
  uint32_t k_first, k_end;
} weir_ps_range;

struct weir_ps_ledger;
struct weir_ps_op;

/* Numbers only; the values of a push or a pull travel beside it. */
typedef struct weir_ps_message {
  weir_ps_kind kind;
  uint64_t epoch, life, generation;
  uint32_t worker;
  uint64_t incarnation, seq, lease, done, run, step;
  uint32_t k;
  uint64_t version, lr_version, clock, staleness, request;
  weir_ps_verdict verdict;
  bool newer, ok;
  weir_ps_range range;
  const struct weir_ps_ledger *ledger; /* lent for the call */
  const struct weir_ps_op *op;         /* lent for the call */
  weir_sv note;                        /* lent for the call; of KV alone */
  /* The values that came, of the host; a server gives them back with apply,
   * add or drop. */
  void *data;
} weir_ps_message;

/* Points at which a test may end a process, and bugs that its checkers must
 * find. A call failpoint(fp) that returns true: the process is dead from here
 * on, or has the bug. */
typedef enum weir_ps_failpoint {
#define WEIR_PS_FAILPOINT(id, name) WEIR_PS_FP_##id,
#include "runtime/dist/ps/failpoints.def"
#undef WEIR_PS_FAILPOINT
  WEIR_PS_FP_COUNT
} weir_ps_failpoint;

/* "server.before_apply". Static. */
const char *weir_ps_failpoint_name(weir_ps_failpoint fp);

/* NULL |hit|: none is armed. */
typedef struct weir_ps_failpoints {
  void *self;
  bool (*hit)(void *self, weir_ps_failpoint fp);
} weir_ps_failpoints;

static inline bool weir_ps_hit(const weir_ps_failpoints *points,
                               weir_ps_failpoint fp) {
  return points->hit != NULL && points->hit(points->self, fp);
}

/* Members of a set, and whether all |count| are in it: barriers count members,
 * not messages. */
static inline bool weir_ps_set_full(uint64_t set, uint32_t count) {
  return set == (count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1);
}

#endif
