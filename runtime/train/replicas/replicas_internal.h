/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_REPLICAS_INTERNAL_H_
#define WEIR_TRAIN_REPLICAS_INTERNAL_H_

#include <pthread.h>

#include "runtime/exec/session/binding.h"
#include "runtime/graph/split/split_fed.h"
#include "runtime/train/account.h"
#include "runtime/train/loop/loop_internal.h"
#include "runtime/train/replicas/replicas.h"

/* Inside of replicas: their state. */

typedef enum weir_replica_state {
  WEIR_REPLICA_IDLE,  /* the loop's thread has it */
  WEIR_REPLICA_READY, /* its own thread has it */
  WEIR_REPLICA_DONE   /* the loop's thread has it: a run to be applied */
} weir_replica_state;

/* An update program bound to the tensors of one lane of a stepper. */
typedef struct weir_replica_bound {
  const weir_tensor *key; /* its first push; NULL: none */
  weir_binding *last, *more;
} weir_replica_bound;

enum { WEIR_REPLICA_LANES = 4 };

typedef struct weir_replica {
  struct weir_replicas *of;
  pthread_t thread;
  bool started;
  weir_stepper *stepper;
  weir_tensor *step; /* i64: updates at the pull; fed with the push, or NULL */
  weir_tensor *age;  /* i64: |staleness|, where the update divides by it */
  weir_replica_bound bound[WEIR_REPLICA_LANES];
  uint32_t bound_at;
  /* Under the lock where the threads meet. */
  weir_replica_state state;
  uint64_t ended; /* order in which runs ended */
  /* By whoever has it. */
  weir_status status;
  weir_error err;
  uint64_t run, version; /* number; updates at the pull */
  uint64_t staleness;    /* updates since then, at its own */
  uint64_t applied;      /* runs of this replica */
  uint64_t shared;       /* equal: of this epoch, that it was dealt */
  int64_t rows;
  int64_t begin_ns, ns; /* since when it has the run; of computing it */
  bool ran;             /* its program is compiled */
} weir_replica;

typedef struct weir_replicas {
  weir_loop *loop;
  const weir_train_shared *shared;
  weir_split_fed fed;
  weir_exec_fetch *pushes; /* scratch: feeds and fetches of a binding */
  weir_exec_feed *feeds;
  weir_value_id *fetches; /* of a replica: loss, loss, metrics, pushes */
  uint32_t fetch_count, push_at, count;
  uint64_t dealt; /* runs, from the beginning of training */
  /* Each replica gets as many runs of an epoch as the others. */
  bool equal;
  uint64_t share_epoch, share_from; /* its first run */
  bool data_over; /* the epoch's data is read: nothing is dealt */
  weir_replica *items;
  weir_account account;
  weir_tensor *rate;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool stop;
  uint64_t ended;
} weir_replicas;

#endif
