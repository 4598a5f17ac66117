/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_ACCOUNT_H_
#define WEIR_TRAIN_ACCOUNT_H_

#include "runtime/base/alloc.h"
#include "runtime/train/progress.h"

/* The account of replicas: who computed how much, how fast, and on values how
 * old. Threads note their runs here, a chief what its workers tell. A report
 * that is lost makes an average of fewer runs, no other number: how many runs
 * count is for the caller to say. */

enum { WEIR_ACCOUNT_BUCKETS = 16 };

typedef struct weir_account_worker {
  uint64_t rows, runs; /* as they were noted */
  int64_t busy_ns;     /* with a run at hand: pull, data, computing, push */
  /* Of runs whose computing alone was measured. */
  uint64_t compute_rows;
  int64_t compute_ns;
} weir_account_worker;

typedef struct weir_account {
  const weir_allocator *alloc;
  weir_account_worker *workers;
  uint32_t count;
  uint64_t rows, first_rows;
  int64_t first_ns, last_ns; /* when the first run was noted, and the last */
  uint64_t staleness[WEIR_ACCOUNT_BUCKETS], staleness_max;
} weir_account;

/* A run, as it was told. */
typedef struct weir_account_run {
  uint64_t rows;
  int64_t compute_ns; /* 0: not measured */
  int64_t busy_ns;    /* since the run before */
} weir_account_run;

/* Errors: W6001. */
weir_status weir_account_create(const weir_allocator *alloc, uint32_t workers,
                                weir_account *out, weir_error *err);
/* After a create that failed too. */
void weir_account_release(weir_account *account);

/* Adds a run that |worker| has told of at |now_ns|. */
void weir_account_note(weir_account *account, uint32_t worker,
                       const weir_account_run *run, int64_t now_ns);
/* An update by a value that was so many updates old. */
void weir_account_stale(weir_account *account, uint64_t staleness);

/* Fills rates, shares, histogram and speed-up of |out|, whose |workers| has a
 * place for each and whose runs are given: |out->workers[i].runs|, of which the
 * shares are made. */
void weir_account_fill(const weir_account *account, weir_train_worker *workers,
                       weir_train_account *out);

#endif
