/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_WEIR_CLUSTER_H_
#define WEIR_WEIR_CLUSTER_H_

#include "runtime/weir/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Clusters: one graph over many processes.
 *
 * A process of each task serves:
 *
 *   weir_task_opts task = {.struct_size = sizeof task, .cluster = "c.yaml",
 *                          .job = "worker", .index = 1};
 *   s = weir_task_server_create(runtime, &task, &server, &err);
 *   if (s == WEIR_OK) s = weir_task_server_run(server, &err);
 *   weir_task_server_release(server);
 *
 * It may have ops of its own (op.h), which the driver then has too.
 * and one process drives them: its sessions and trainings run there. It may
 * serve as a task itself, with a thread in weir_task_server_run.
 *
 *   weir_tasks_opts opts = {.struct_size = sizeof opts, .cluster = "c.yaml"};
 *   weir_session_opts session = {.struct_size = sizeof session};
 *   s = weir_tasks_open(runtime, graph, &opts, &tasks, &err);
 *   session.tasks = tasks;
 *   session.place = &place;
 *   s = weir_session_create(runtime, graph, &session, &it, &err);
 *   ...
 *   weir_tasks_release(tasks);
 *
 * Results are the bits of one process. Frames go by gRPC, which is loaded by
 * the first of these calls (W7004 if it is not there); no process may fork
 * after it. gRPC works best with GRPC_POLL_STRATEGY=poll in the environment
 * and malloc kept from returning memory: both are the program's to set. */

typedef enum weir_cluster_event {
  WEIR_CLUSTER_LISTENING = 0,     /* a task; |text|: its address */
  WEIR_CLUSTER_PEER_JOINED = 1,   /* |text|: its address, "" if it dialled */
  WEIR_CLUSTER_SESSION_BEGUN = 2, /* of a driver: with all tasks */
  WEIR_CLUSTER_SESSION_OVER = 3,  /* |text|: why, "" if a driver ended it */
  WEIR_CLUSTER_PEER_LOST = 4      /* |text|: why */
} weir_cluster_event;

/* A change in a task or a driver. Lent for the call. */
typedef struct weir_cluster_state {
  uint32_t struct_size;
  weir_cluster_event event;
  const char *peer; /* "the driver", "worker:1"; "" where it is of none */
  const char *text; /* "" where there is none */
} weir_cluster_state;

/* Called on a thread of weir's, or on that in weir_task_server_run, one call at
 * a time for each handle. Frames wait for it: it should be short. It may call
 * weir_task_server_stop, and nothing else of the handle. Lines for people go to
 * the runtime's on_log. */
typedef void (*weir_cluster_state_fn)(void *self,
                                      const weir_cluster_state *state);
/* Certificates of this process: files in PEM form, checked at once and read
 * anew for each connection. Both sides of a connection must show one that an
 * authority of |ca| has signed, with the name weir://JOB/INDEX of a task, or
 * weir://driver. `tls:` of the cluster's file says the same for all tasks. */
typedef struct weir_tls_opts {
  uint32_t struct_size;
  const char *ca, *cert, *key; /* paths; the key has no passphrase */
} weir_tls_opts;

typedef struct weir_tasks_opts {
  uint32_t struct_size;
  bool insecure; /* frames, which are not encrypted, may leave this machine;
                  * also by `insecure: true` of the cluster */
  bool stop;     /* when it is released, the tasks' processes end too */
  const char *cluster; /* as weir_plan_opts.cluster says */
  /* Of each task, in the cluster's order, "HOST:PORT" or "unix:/path", in place
   * of the cluster's own; NULL: those. */
  const char *const *addresses;
  size_t address_count;
  int64_t start_timeout_ns; /* until all tasks serve; 0: 30 s */
  int64_t step_timeout_ns;  /* for a run; 0: 30 s, or 20 times the mean */
  int64_t heartbeat_ns;     /* a task is lost after five; 0: 1 s */
  /* An absolute path where libweir_grpc.so is looked for first; NULL: the usual
   * places alone. */
  const char *module_folder;
  /* Called every 10 ms on some thread until all tasks serve: an error, such as
   * that a task's process has ended, ends the waiting with it. NULL: nobody
   * looks. */
  weir_status (*while_starting)(void *self, weir_error *err);
  void *while_starting_self;
  /* Deal runs to workers in place of cutting the graph: each task of a job but
   * `ps` has the whole graph, and a run is made by one of them, whoever is
   * free. So weir_session_predict and weir_trainer_eval, which then have
   * several runs under way, share their batches out by need, with the results
   * in order and the bits of one process; programs that run one request of
   * several threads do the same. What was with a worker that is lost is made
   * again by another, until none is left (W7070). Needs |graph|; its sessions
   * have neither `place` nor `plan`. */
  bool deal;
  /* A worker is lost. Once for each, on some thread; lent for the call. */
  void (*on_lost)(void *self, const char *task, const weir_error *why);
  /* A run has been made, on the thread that asked for it. */
  void (*on_run)(void *self);
  void *on_deal_self;
  /* Tasks that joined and were lost, and the session; NULL: nobody listens. It
   * must outlive the handle and sessions that use it. */
  weir_cluster_state_fn on_state;
  void *on_state_self;
  const weir_tls_opts *tls; /* lent for the call; NULL: the cluster's */
  /* Several drivers at once: those that give the same name, 1 to 63 letters,
   * digits, - or _, have their sessions over the same tasks and the same
   * variables, with the same graph. Steps that assign come one after the other,
   * each on all tasks or on none, and no run sees half of one. The first driver
   * makes the variables, and they end with the last. Not with |deal| or |stop|.
   * NULL: the tasks are this driver's. */
  const char *share;
} weir_tasks_opts;

/* Connects to all tasks of a cluster and takes them, for one driver at a time,
 * or for several that share their variables.
 * Blocks. |graph|: whose `cluster:` is meant by "graph" and NULL; may be NULL
 * otherwise. The runtime takes the best kernels that all tasks have, so open
 * tasks before the first session of the runtime. Errors: W0002 (a task without
 * an address), W0004, W3020, W4001, W6001, W6003, W7002, W7004, W7022 (says
 * which tasks are missing), W7023, W7024, W7060-W7065 (certificates), those of
 * opts->while_starting; with |deal| W7071 (says why |graph| must be cut); with
 * |share| W7089, and later W7086 (another graph), W7087 (it has just ended) of
 * weir_session_create, and W7088 of calls that set variables beside others. */
WEIR_API weir_status weir_tasks_open(weir_runtime *runtime,
                                     const weir_graph *graph,
                                     const weir_tasks_opts *opts,
                                     weir_tasks **out_tasks, weir_error *err);
/* The tasks are free again once sessions that use them are released too. */
WEIR_API void weir_tasks_release(weir_tasks *tasks);

/* Values that came from the tasks so far, outputs and variables, and their
 * bytes; 0 without tasks. Any thread. */
WEIR_API uint64_t weir_tasks_values(const weir_tasks *tasks);
WEIR_API uint64_t weir_tasks_value_bytes(const weir_tasks *tasks);

/* A task, and its part in dealt runs. */
typedef struct weir_tasks_worker {
  uint32_t struct_size;
  bool unused; /* it is of job `ps`, which gets no runs */
  bool lost;
  weir_text task; /* "worker:1"; lent by the tasks */
  uint64_t runs;  /* that it has made */
  uint64_t again; /* that others had to make, for it was lost */
} weir_tasks_worker;

/* How many tasks there are if runs are dealt to them, lost and unused ones too;
 * 0: they are not. The i-th one (W0004 beyond). Any thread. */
WEIR_API size_t weir_tasks_worker_count(const weir_tasks *tasks);
WEIR_API weir_status weir_tasks_worker_at(const weir_tasks *tasks, size_t i,
                                          weir_tasks_worker *out_worker,
                                          weir_error *err);

typedef struct weir_task_opts {
  uint32_t struct_size;
  bool insecure;       /* as of weir_tasks_opts */
  const char *cluster; /* likewise */
  const char *job;     /* this task's */
  uint32_t index;
  /* "HOST:PORT" (port 0: one that is free) or "unix:/path"; NULL: the task's
   * address in the cluster. */
  const char *address;
  int64_t heartbeat_ns; /* a driver is lost after five; 0: 1 s */
  const char *module_folder;
  /* Gets a line of text without its end for each event, lent for the call, on
   * some thread. NULL: none is wanted. */
  void (*on_event)(void *self, const char *text);
  void *on_event_self;
  /* Whose `cluster:` is meant by "graph" and NULL; NULL: neither is allowed.
   * Lent for the call. */
  const weir_graph *graph;
  int64_t start_timeout_ns; /* until a first session begins; 0: for ever */
  /* The folder beneath which this task may write its shards of checkpoints and
   * read them, at the word of its driver; copied. NULL: none, and their bytes
   * go to the driver and come from it. */
  const char *checkpoint_root;
  /* All events; NULL: nobody listens. It must outlive the handle. */
  weir_cluster_state_fn on_state;
  void *on_state_self;
  const weir_tls_opts *tls; /* as of weir_tasks_opts */
} weir_task_opts;

/* A process's part of a cluster: it listens from here on. Its programs run on
 * the runtime's number of threads. Errors: W0002 (no such task, no address),
 * W0004, W3020, W4001, W6001, W6003, W7002, W7004, W7060. */
WEIR_API weir_status weir_task_server_create(weir_runtime *runtime,
                                             const weir_task_opts *opts,
                                             weir_task_server **out_server,
                                             weir_error *err);
/* Where it listens; lent. */
WEIR_API const char *weir_task_server_address(const weir_task_server *server);
/* Serves one driver after the other. Blocks until weir_task_server_stop, or
 * until a driver ends with the wish that its tasks end. Errors: W6001, W6003,
 * W7025 (no driver came before the start timeout). */
WEIR_API weir_status weir_task_server_run(weir_task_server *server,
                                          weir_error *err);
/* Ends weir_task_server_run, also a later call. Any thread, not a signal
 * handler. NULL-safe. */
WEIR_API void weir_task_server_stop(weir_task_server *server);
WEIR_API void weir_task_server_release(weir_task_server *server);

#ifdef __cplusplus
}
#endif

#endif
