/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_PS_CLUSTER_H_
#define TESTS_TRAIN_PS_CLUSTER_H_

#include <pthread.h>

#include "runtime/dist/ps/coordinator.h"
#include "runtime/train/ps/server_host.h"
#include "runtime/train/ps/worker.h"
#include "tests/dist/local_transports.h"
#include "tests/train/loop_check.h"
#include "tests/train/ps_check.h"

/* A job of parameter servers in one process: the tasks have nets of their own,
 * over transports in memory, and are the real hosts but for the chief, whose
 * machine the test drives: at the limit it fetches all values and ends the job.
 */

enum { CLUSTER_SERVERS = 2, CLUSTER_WORKERS = 4, CLUSTER_RUNS = 256 };

typedef struct cluster cluster;

typedef struct cluster_server {
  cluster *of;
  uint32_t index;
  weir_ps_net *net;
  weir_ps_host *host;
  weir_ps_net_events events; /* the host's */
  bool over;
  /* Values that the chief fetched: of all that it holds. */
  weir_tensor **values;
  weir_ps_piece *pieces;
  bool fetched;
} cluster_server;

typedef struct cluster_worker {
  weir_ps_replica *replica;
  pthread_t thread;
  bool running;
  weir_ps_replica_end end;
  weir_status status;
  weir_error err;
  uint64_t resets;
} cluster_worker;

struct cluster {
  ps_world w;
  weir_pool *pool;
  weir_net_hub *hub;
  weir_transports transports;
  uint32_t server_count;
  uint64_t limit; /* steps */
  /* Before open: nothing is dealt from this step on until cluster_go(); 0: no
   * such step. Folder of generations, one every second step; NULL: none. */
  uint64_t pause;
  const char *dir;
  cluster_server servers[CLUSTER_SERVERS];
  cluster_worker workers[CLUSTER_WORKERS];
  const char *addresses[CLUSTER_SERVERS];
  const char *chief_address; /* for workers that start; NULL: the chief's */
  /* The chief; on its control thread. */
  weir_ps_net *net;
  weir_ps_coordinator *chief;
  uint64_t reached;
  bool fetching, stopping;
  weir_node_call wake;
  double numbers[8];
  weir_ps_piece report;
  /* Under the lock. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool over, failed, paused, released;
  uint64_t failed_run;
  uint32_t reports[CLUSTER_RUNS], report_count, joined, left;
};

/* Waits until |expr| holds, which the cluster's lock guards. */
#define cluster_await(c, expr)                                    \
  do {                                                            \
    pthread_mutex_lock(&(c)->lock);                               \
    while (!(expr)) pthread_cond_wait(&(c)->changed, &(c)->lock); \
    pthread_mutex_unlock(&(c)->lock);                             \
  } while (0)

/* A job of |text| with |more| at its end, for |limit| steps; all else of |c| is
 * zero but what stands there before. Servers and chief run. */
void cluster_open(cluster *c, const char *text, const char *more,
                  uint32_t servers, uint64_t limit);
void cluster_go(cluster *c);
/* Server |i| dies, without a word; and is started anew. */
void cluster_kill_server(cluster *c, uint32_t i);
void cluster_start_server(cluster *c, uint32_t i);
weir_ps_replica_options cluster_worker_options(const cluster *c, uint32_t i);
/* Starts worker |i|, of slot |i|. */
void cluster_start(cluster *c, uint32_t i);
/* Waits for its end. */
void cluster_join(cluster *c, uint32_t i);
/* Waits for the end of the job and of all workers; values are fetched then. */
void cluster_end(cluster *c);
void cluster_close(cluster *c);

#endif
