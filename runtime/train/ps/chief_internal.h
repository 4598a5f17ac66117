/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_CHIEF_INTERNAL_H_
#define WEIR_TRAIN_PS_CHIEF_INTERNAL_H_

#include <pthread.h>

#include "runtime/dist/ps/coordinator.h"
#include "runtime/train/account.h"
#include "runtime/train/loop/loop_internal.h"
#include "runtime/train/ps/chief.h"
#include "runtime/train/ps/job.h"

/* Inside of the chief. Two threads: the loop's, and the net's control thread,
 * which has the coordinator. The loop's asks by posts and waits; news for it
 * stand under the lock. */

/* The values of one server, on their way to the loop. */
typedef struct weir_chief_fetch {
  weir_tensor **tensors; /* per held variable of the server */
  weir_ps_piece *pieces;
  double *watched; /* of its last update, for a summary; NaN: not known */
  bool pending;    /* asked for, not here */
} weir_chief_fetch;

/* The numbers of a run, as its worker told them. */
typedef struct weir_chief_report {
  uint64_t run; /* WEIR_PS_NONE: none */
  double *values;
} weir_chief_report;

enum { WEIR_CHIEF_REPORTS = 64 };

/* What the loop's thread asks the control thread for. */
typedef enum weir_chief_ask {
  WEIR_CHIEF_GO,      /* number: the new limit */
  WEIR_CHIEF_STOP,    /* number: the step that was reached; NONE: at once */
  WEIR_CHIEF_FETCH,   /* the servers' values; sync: of that step at least */
  WEIR_CHIEF_ACCOUNT, /* what the coordinator knows of runs */
  WEIR_CHIEF_END,     /* tells servers that the job is over */
  WEIR_CHIEF_FAIL     /* tells all; number: of the chief's error */
} weir_chief_ask;

typedef struct weir_chief {
  weir_loop *loop;
  weir_ps_job *job;
  weir_ps_net *net;
  weir_chief_options options;
  weir_node_id *nodes;    /* per variable of the split: in the loop's graph */
  weir_node_id step_node; /* train/global_step; UINT32_MAX: none */
  uint32_t numbers;       /* of a report */
  double *reported;       /* of the last run before the loop's step; or NaN */
  struct weir_chief_watch *watch;
  uint64_t first_step; /* where this process began */
  bool resumed;        /* the loop stands where the servers do */
  uint64_t seed_step;  /* where the loop began: of a checkpoint, or 0 */

  /* The control thread's. */
  weir_ps_coordinator *machine;
  weir_chief_fetch *fetches; /* per server; the loop's between fetches */
  uint64_t request;
  uint64_t fetch_life, fetch_version; /* what the fetch is for */
  int64_t idle_ns;      /* since when the job does not run; 0: it does */
  uint64_t over_number; /* of the OVER for those that come late */
  weir_tensor ***seeds; /* per server: first values, as held; NULL: none */
  bool save_soon;       /* they are not on disk */

  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Under the lock: */
  bool runs, reached, over, failed, fenced, unsaved;
  bool stuck; /* the servers do not come, as |stuck_why| says */
  weir_error stuck_why;
  uint64_t step; /* that was reached */
  uint64_t failed_run;
  uint32_t missing; /* servers whose values are under way */
  bool stale;       /* servers went back since the fetch began */
  uint64_t version; /* of server 0's values */
  bool *met;        /* by slot: a worker that has been there */
  uint64_t away;    /* servers that were lost before they heard of the end */
  bool told;        /* the end, to those that are there */
  uint32_t here;    /* servers, and workers of other processes, by now */
  weir_chief_report reports[WEIR_CHIEF_REPORTS]; /* by run */
  weir_account account;
  weir_train_account total;
  weir_train_worker *shares; /* per slot of a worker */
  uint64_t *updates;         /* per server, at the last fetch */
  uint64_t *applied;         /* the same in runs; of the account */
} weir_chief;

#endif
