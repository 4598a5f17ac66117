/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_RUN_INTERNAL_H_
#define WEIR_DIST_RUN_INTERNAL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/dist/bundle/rebuild.h"
#include "runtime/dist/channel/exchange.h"
#include "runtime/dist/run/run.h"
#include "runtime/dist/run/run_store.h"
#include "runtime/exec/session/prepare.h"

/* Shared by the files of the engine. */

typedef struct run_engine run_engine;

/* Work for the engine's own thread. */
typedef struct run_job {
  struct run_job *next;
  void (*run)(run_engine *e, struct run_job *job);
} run_job;

/* A thread that does one job after the other. */
typedef struct run_worker {
  run_engine *engine;
  pthread_t thread;
  bool runs;
  run_job *first, *last; /* under the engine's lock */
} run_worker;

struct run_held;

/* Bytes by name, until the session ends. */
typedef struct run_blob {
  struct run_blob *next;
  uint8_t name[WEIR_BLOB_NAME_BYTES];
  weir_bytes bytes; /* owned */
} run_blob;

struct run_file;

/* A bundle and its session. */
typedef struct run_bundle {
  struct run_bundle *next;
  struct run_file *files; /* of weights, in pieces */
  uint8_t name[WEIR_BLOB_NAME_BYTES];
  weir_unpacked_bundle unpacked;
  weir_rebuilt rebuilt;
  bool *share;           /* per task of the cluster */
  uint32_t *places;      /* per task of the cluster: its place, or UINT32_MAX */
  weir_channel *channel; /* without edges: programs have their own */
  weir_exec_session *session;
} run_bundle;

/* A program, from Register. Counted: the list, and each step. */
typedef struct run_program {
  run_job job;
  weir_engine_event added;
  run_engine *engine;
  struct run_program *next;
  atomic_int refs;
  weir_arena arena;
  uint32_t number;
  bool trap_nan;
  bool fresh;    /* it makes the variables of the share */
  uint32_t home; /* of the share's variables */
  bool empty;    /* no plan: makes the session and computes nothing */
  uint8_t bundle_name[WEIR_BLOB_NAME_BYTES], plan_name[WEIR_BLOB_NAME_BYTES];
  uint32_t feed_count, fetch_count, target_count;
  weir_exec_feed *feeds; /* tensors without memory, of the right shapes */
  bool *own_feed;        /* per feed: a part here takes it */
  weir_value_id *fetches;
  weir_node_id *targets;
  uint32_t *peers;
  run_bundle *bundle;
  weir_plan *plan;
} run_program;

struct run_step;

/* A call of the rendezvous, for a feed or a fetch. */
typedef struct run_call {
  weir_channel_done done;
  struct run_step *step;
} run_call;

typedef enum run_state {
  RUN_FEEDS,
  RUN_STARTING,
  RUN_RUNS,
  RUN_ENDED
} run_state;

typedef struct run_step {
  weir_engine_event event;
  run_engine *engine;
  struct run_step *next; /* in the engine's list */
  run_program *program;
  uint64_t step, random_step;
  weir_arena arena;
  atomic_int refs; /* the list's, the event's, each fetch under way */
  atomic_int feeds_left;
  weir_exec_feed *feeds;
  run_call *feed_calls, *fetch_calls;
  weir_tensor **made; /* fetches */
  weir_engine_value *values;
  weir_engine_failure failure;
  weir_error error; /* of |failure| */
  weir_exec_step *handle;
  /* Under the engine's lock: */
  run_state state;
  bool listed, given_up, stopped, prepared, read;
  weir_error why; /* given up, or a feed failed */
} run_step;

/* A get or a set under way. */
typedef struct run_vars {
  run_job job;
  struct run_vars *next; /* waits for room; under the engine's lock */
  size_t bytes;          /* of its values */
  bool taken;            /* they are counted; under the engine's lock */
  weir_engine_event event;
  run_engine *engine;
  atomic_int left;
  bool set;
  uint32_t program; /* of the bundle */
  uint64_t request;
  weir_arena arena;
  uint32_t count;
  uint32_t *nodes;
  weir_tensor **tensors;
  weir_channel_done *calls;
  weir_exec_session *session;
} run_vars;

/* Of all requests for variables in a session; run_limits.h. */
typedef struct run_vars_counts {
  uint32_t requests;
  size_t nodes;           /* that they name */
  size_t read, written;   /* bytes of values */
  run_vars *first, *last; /* reads that wait for room */
  size_t most_read, most_written;
} run_vars_counts;

struct run_engine {
  weir_engine base;
  const weir_env *given;
  weir_env env; /* with the session's profile */
  int threads;
  char *checkpoint_root;
  weir_run_stores *stores; /* lent; NULL: no shares */
  const weir_registry *registry;
  pthread_mutex_t lock;
  pthread_cond_t more;
  run_worker own, disk; /* |disk|: begins when a checkpoint is the first time */
  bool stop;
  /* Of a session. */
  bool live;          /* from begin to end */
  bool ending;        /* from end to ENDED */
  uint32_t under_way; /* steps, calls for fetches and variables */
  uint32_t visitors;  /* bulk frames being taken */
  weir_engine_session session;
  run_store *store; /* of the session's share; NULL: none */
  weir_pool *pool;
  weir_exchange *exchange;
  run_blob *blobs;     /* the engine's thread alone */
  run_bundle *bundles; /* under the lock */
  run_program *programs;
  run_step *steps;
  uint32_t blob_number;  /* under the lock */
  run_vars_counts vars;  /* under the lock */
  struct run_held *held; /* for checkpoints; under the lock */
  run_job end_job;
  weir_engine_event ended;
};

/* Puts |job| into the queue of the engine's own thread. */
void run_post_job(run_engine *e, run_job *job);
/* The same for the thread that works on disks, after run_start_disk. */
void run_post_disk(run_engine *e, run_job *job);
/* Control thread. Errors: W6003. */
weir_status run_start_disk(run_engine *e, weir_error *err);
/* Hands |event| to the owner's events, from any thread. */
void run_post_event(run_engine *e, weir_engine_event *event);
/* Counts work that must end before ENDED. */
void run_begin_work(run_engine *e);
void run_end_work(run_engine *e);

#endif
