/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_TASKS_H_
#define PLACEMENT_TASKS_H_

#include "placement/parts/partition.h"

/* A partition by tasks: what the processes of a cluster exchange in a step, and
 * which of them needs or makes which value. Every process computes the same
 * table from the same plan, so a number means the same edge everywhere.
 *
 *   weir_task_cut *cut = NULL;
 *   WEIR_TRY(weir_task_cut_create(alloc, placement, partition, &cut, err));
 *   for (uint32_t i = 0; i < cut->crossing_count; i++)
 *     ... cut->crossings[i].from sends to .to under .number ...
 *   weir_task_cut_release(cut);
 *
 * A collective whose ranks are on several tasks is computed by the task of its
 * first rank, the hub: each rank of another task sends its value there and gets
 * its result back, over two edges that are numbered behind the partition's own.
 * So every rank has the bits that ranks of one process have.
 *
 * Immutable; may be read from many threads. */

/* A value or token that goes from one task to another in each step. */
typedef struct weir_crossing {
  uint32_t number;             /* on the channel between tasks */
  uint32_t from, to;           /* tasks of the cluster */
  uint32_t from_part, to_part; /* of the partition */
  weir_edge_class cls;
  weir_value_id value; /* NO_VALUE: a token */
  weir_node_id node;   /* that makes it; of a collective: the rank */
  /* Of the value in rows: one that is kept 16 images at a time may be sent
   * with as many images as fill the last 16. */
  int64_t bytes;
  /* No step sends it: nothing in the graph assigns this variable, so tasks
   * that read it are compiled with its value. A session where the variable is
   * assigned by another program sends it all the same. */
  bool at_start;
} weir_crossing;

/* A rank of a collective that is on another task than its first rank. */
typedef struct weir_far_rank {
  weir_node_id node;
  uint32_t hub;          /* part of the first rank */
  weir_node_id hub_node; /* the first rank */
  uint32_t up, down;     /* numbers: to the hub, and back */
} weir_far_rank;

/* One task. */
typedef struct weir_task_row {
  uint32_t part_count, node_count;
  uint32_t sent_count, received_count; /* crossings, those at start aside */
  int64_t sent_bytes, received_bytes;  /* likewise, in each step */
  bool assigns;                        /* variables */
} weir_task_row;

typedef struct weir_task_cut {
  weir_arena arena;
  const weir_placement *placement; /* lent */
  const weir_partition *partition; /* lent */
  const uint32_t *part_task;       /* per part: its task */
  const weir_task_row *tasks;      /* per task of the cluster */
  const weir_crossing *crossings;  /* ascending by number */
  const weir_far_rank *far_ranks;  /* ascending by node */
  uint32_t task_count, crossing_count, far_rank_count;
  uint32_t number_count; /* all numbers are below it */
} weir_task_cut;

/* Cost: O(nodes + edges), and sorting of ranks. |placement| and |partition|
 * must outlive it. Errors: W6001. */
weir_status weir_task_cut_create(const weir_allocator *alloc,
                                 const weir_placement *placement,
                                 const weir_partition *partition,
                                 weir_task_cut **out_cut, weir_error *err);
void weir_task_cut_release(weir_task_cut *cut); /* NULL-safe */

/* The task that makes value |id| of the cut graph: the one task that is given a
 * fed input, and that delivers a fetched value. A constant is given by the task
 * of the first part. */
uint32_t weir_task_of_value(const weir_task_cut *cut, weir_value_id id);

/* The far rank of node |id|; NULL: it is none. */
const weir_far_rank *weir_task_far_rank(const weir_task_cut *cut,
                                        weir_node_id id);

static inline uint32_t weir_task_of_part(const weir_task_cut *cut,
                                         uint32_t part) {
  return cut->part_task[part];
}

/* Marks in |marks|, one for each task of the cluster, the tasks that need the
 * bytes of variable |node| of the cut graph: that of its home, and, where
 * nothing assigns it (|constant|), those that are compiled with its value or
 * with what is computed from it. Weights that are set from outside are set on
 * these. May mark a task too many, never one too few. Errors: W6001. */
weir_status weir_task_mark_variable(const weir_task_cut *cut, weir_node_id node,
                                    bool constant, bool *marks,
                                    weir_error *err);

/* Whether the outputs of |node| may be computed when the graph is compiled: all
 * of its inputs are |constant| (per value), and no run differs from another. */
bool weir_task_folds(const weir_node *node, const bool *constant);

/* Everything above as one number, parts, order and threads with it. */
uint64_t weir_task_cut_hash(const weir_task_cut *cut);

#endif
