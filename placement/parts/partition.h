/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PARTITION_H_
#define PLACEMENT_PARTITION_H_

#include "placement/lower/lower.h"
#include "placement/plan.h"

/* A plan carried out on the graph: one part per device that has work, the edges
 * between them, and the order in which nodes begin.
 *
 * Constants belong to every part. A value that crosses is a cut edge: one per
 * value and part that reads it, however many nodes there do. An edge's number
 * is its place in the list, which is sorted by value and then by receiving
 * part, so the same plan gives the same numbers everywhere. A node that runs
 * after one of another part (`after:`) has a control edge, unless a value of
 * that node comes to the part, which says the same, or a chain of values leads
 * from that node to it (partition_tokens.h). Immutable; may be read from many
 * threads. */

/* The use of an edge. It is fixed here, so that a server of variables can act
 * on it. Only edges between tasks are pulls and pushes: devices of one task
 * share its variables. */
typedef enum weir_edge_class {
  WEIR_EDGE_TENSOR,
  WEIR_EDGE_PULL,    /* a variable's value, read in another task */
  WEIR_EDGE_PUSH,    /* into an assignment or apply_* in its variable's task */
  WEIR_EDGE_CONTROL, /* a token of `after`: no bytes */
  WEIR_EDGE_COLLECTIVE /* between ranks; no edge of a partition, for ranks meet
                          by their group (parts.h and tasks.h list these) */
} weir_edge_class;

typedef struct weir_cut_edge {
  weir_value_id value; /* NO_VALUE: control */
  weir_node_id node;   /* that makes it */
  uint32_t from, to;   /* parts */
  weir_edge_class cls;
  bool between_tasks; /* else between devices of one task */
  int64_t bytes;
} weir_cut_edge;

typedef struct weir_part {
  uint32_t device;  /* of the cluster */
  weir_sv name;     /* /job:worker/task:0/device:CPU:0 */
  uint32_t threads; /* of the device */
} weir_part;

typedef struct weir_partition {
  weir_arena arena;
  const weir_part *parts;     /* by device */
  const uint32_t *part_of;    /* per node; NONE: a constant */
  const weir_node_id *order;  /* nodes that are no constants, as they begin */
  const weir_cut_edge *edges; /* those with a value first */
  uint32_t part_count, order_count, edge_count;
} weir_partition;

/* |plan| is one of |placement|'s problem. Errors: W6001. */
weir_status weir_partition_create(const weir_allocator *alloc,
                                  const weir_placement *placement,
                                  const weir_place_plan *plan,
                                  weir_partition **out_partition,
                                  weir_error *err);
void weir_partition_release(weir_partition *partition); /* NULL-safe */

/* The number of the edge that brings |value| of |maker| (NO_VALUE: its token)
 * to part |to|; NONE: there is none. */
uint32_t weir_partition_edge(const weir_partition *partition,
                             weir_node_id maker, weir_value_id value,
                             uint32_t to);
/* "tensor", "pull", "push", "control", "collective". */
const char *weir_edge_class_text(weir_edge_class cls);

#endif
