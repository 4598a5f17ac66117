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
} weir_tasks_opts;

/* Connects to all tasks of a cluster and takes them, for one driver at a time.
 * Blocks. |graph|: whose `cluster:` is meant by "graph" and NULL; may be NULL
 * otherwise. The runtime takes the best kernels that all tasks have, so open
 * tasks before the first session of the runtime. Errors: W0002 (a task without
 * an address), W0004, W3020, W4001, W6001, W6003, W7002, W7004, W7022 (says
 * which tasks are missing), W7023, W7024, those of opts->while_starting. */
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
} weir_task_opts;

/* A process's part of a cluster: it listens from here on. Its programs run on
 * the runtime's number of threads. Errors: W0002 (no such task, no address),
 * W0004, W3020, W4001, W6001, W6003, W7002, W7004. */
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
