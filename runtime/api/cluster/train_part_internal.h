/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_TRAIN_PART_INTERNAL_H_
#define WEIR_API_TRAIN_PART_INTERNAL_H_

#include <pthread.h>

#include "runtime/api/cluster/part_meet.h"
#include "runtime/api/cluster/task_list.h"
#include "runtime/api/cluster/train_part.h"
#include "runtime/graph/train/train_spec.h"
#include "runtime/train/ps/job.h"
#include "runtime/train/ps/server.h"
#include "runtime/train/ps/worker.h"

/* Shared by the files of a process's part: which one it is (part_find), and its
 * run (train_part). */

struct weir_train_part {
  weir_runtime *runtime;   /* held */
  const weir_graph *graph; /* held */
  weir_env env;
  weir_task_list list;
  weir_grpc_maker maker;
  const weir_net_tls *tls;
  bool insecure, leads;
  weir_ps_task self; /* chief: the slot that it computes in */
  const char **servers;
  uint32_t server_count, worker_count;
  uint32_t listed;         /* tasks of job worker that the cluster has */
  uint32_t slots;          /* of workers, with those that may join */
  const char *own, *chief; /* addresses */
  const char *scheduler;   /* NULL: the addresses are known */
  bool ranked;
  weir_part_meet meet;
  weir_chief_options options; /* of the chief's loop */
  char *generations;
  int64_t heartbeat_ns, away_ns;
  void (*on_event)(void *self, const char *text);
  void *on_event_self;
  /* While it runs: */
  weir_train_spec *spec;
  weir_ps_job *job;
  struct weir_placing *placing; /* of a worker with GPUs; or NULL */
  weir_ps_serve *serve;
  weir_ps_replica *replica;
  pthread_t thread;
  bool runs;
  pthread_mutex_t lock; /* |stop|, and that |serve| and |replica| are there */
  bool stop;
};

#endif
