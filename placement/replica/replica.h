/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_REPLICA_H_
#define WEIR_PLACEMENT_REPLICA_H_

#include "placement/cluster.h"
#include "runtime/graph/goal.h"

/* Replicas between graphs: one worker's step as the template of all.
 *
 * The tasks of job `worker` (and `chief`) run the same graph, each on batches
 * of its own, against the variables on the tasks of job `ps`. So one of them is
 * planned, with the servers, as if it were alone: its pulls, pushes and updates
 * are copies and nodes of the plan like any other. */

/* A value that goes from a server to each replica, or back, in a step. */
typedef struct weir_replica_edge {
  weir_sv name; /* of the variable; of a push, as the update graph has it; of a
                   piece with its rows: w[0:512] */
  uint64_t bytes;
  uint32_t server; /* task of job ps */
  bool push;
} weir_replica_edge;

/* A variable that would be cut over servers, but for a node of its update. */
typedef struct weir_replica_whole {
  weir_sv name, node;
} weir_replica_whole;

typedef struct weir_place_replica {
  weir_sv mode;                   /* "sync(aggregate=2)" */
  uint32_t replicas, servers;     /* tasks */
  uint32_t task;                  /* of the cluster: that stands for all */
  const uint64_t *held;           /* per server: variables and slots, bytes */
  const weir_replica_edge *edges; /* by server, pulls first */
  const weir_replica_whole *whole;
  uint32_t edge_count, whole_count;
} weir_place_replica;

/* Makes |goal|, a training step between graphs, the step of one replica: its
 * nodes ask for the servers and for the first worker. |*out_replica| is in
 * |arena|; NULL where the goal is of another kind, which stays as it is.
 * Errors: W3020 (no job ps or worker), those of weir_graph_split, W6001. */
weir_status weir_replica_begin(const weir_cluster *cluster, weir_goal *goal,
                               weir_arena *arena,
                               const weir_place_replica **out_replica,
                               weir_error *err);

/* Whether device |device| is of a replica that the template stands for. */
bool weir_replica_is_hidden(const weir_place_replica *replica,
                            const weir_cluster *cluster, uint32_t device);
/* The device's name, task:* for the template's: |text| or the cluster's. */
weir_sv weir_replica_device(const weir_place_replica *replica,
                            const weir_cluster *cluster, uint32_t device,
                            char *text, size_t capacity);

#endif
