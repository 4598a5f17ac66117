/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PARTS_H_
#define PLACEMENT_PARTS_H_

#include "placement/parts/partition.h"

/* The parts of a plan as rows: the work of each device, and the values that it
 * sends and receives. A partition says this by ids, for the compiler; here it
 * is in the shape in which people and programs read it, and every writer (text,
 * JSON, DOT, the page, the public API) prints these rows and computes nothing.
 *
 *   weir_place_parts *parts = NULL;
 *   WEIR_TRY(weir_place_parts_create(alloc, placement, cut, &parts, err));
 *   for (uint32_t i = 0; i < parts->part_count; i++) ... parts->parts[i] ...
 *   weir_place_parts_release(parts);
 *
 * Placement and partition must outlive the rows. Constants belong to every part
 * and have no rows. Immutable; may be read from many threads. */

/* A node of a part, in the order in which the part begins them. */
typedef struct weir_parts_node {
  weir_node_id node;
  uint32_t unit; /* nodes of one unit run as one */
} weir_parts_node;

/* A part's border: its inputs, its outputs, and the variables that live
 * there. */
typedef enum weir_parts_kind {
  WEIR_PARTS_INPUT,
  WEIR_PARTS_OUTPUT,
  WEIR_PARTS_VARIABLE,
  WEIR_PARTS_KINDS /* how many */
} weir_parts_kind;

typedef struct weir_parts_port {
  weir_sv name;
  weir_value_id value;
  int64_t bytes;
} weir_parts_port;

typedef struct weir_parts_ports {
  const weir_parts_port *items; /* as they stand in the graph */
  uint32_t count;
} weir_parts_ports;

typedef struct weir_parts_part {
  weir_sv name;          /* /job:worker/task:0/device:CPU:0 */
  uint32_t device, task; /* of the cluster */
  const weir_parts_node *nodes;
  uint32_t node_count;
  weir_parts_ports ports[WEIR_PARTS_KINDS];
  const uint32_t *received, *sent; /* numbers of edges, ascending */
  uint32_t received_count, sent_count;
  int64_t received_bytes, sent_bytes; /* in each step */
} weir_parts_part;

typedef struct weir_parts_edge {
  weir_edge_class cls;
  bool between_tasks; /* else between devices of one task */
  /* No step sends it: nothing assigns this variable, so the receiving part is
   * compiled with its value. Counts in no total. */
  bool at_start;
  weir_value_id value; /* NO_VALUE: a token */
  weir_node_id node;   /* that makes it */
  uint32_t from, to;   /* parts */
  int64_t bytes;
  /* Nodes of |to| that use it; one copy serves them all. */
  const weir_node_id *readers;
  uint32_t reader_count;
  /* A collective's: its group, and which rank of how many sends. */
  uint32_t group, rank, ranks;
} weir_parts_edge;

/* Two parts, one direction: the sums of its edges in each step. */
typedef struct weir_parts_link {
  uint32_t from, to; /* parts */
  bool between_tasks;
  uint32_t edge_count;
  int64_t bytes;
} weir_parts_link;

typedef struct weir_place_parts {
  weir_arena arena;
  const weir_placement *placement; /* lent */
  const weir_partition *partition; /* lent */
  const weir_parts_part *parts;    /* as numbered in the partition */
  /* Those of the partition, with its numbers, then collectives: those over
   * tasks with the numbers of tasks.h, then rings. */
  const weir_parts_edge *edges;
  const weir_parts_link *links; /* by from, then to; those with edges */
  uint32_t part_count, edge_count, link_count;
} weir_place_parts;

/* |partition| is |placement|'s graph cut by a plan. Errors: W6001. */
weir_status weir_place_parts_create(const weir_allocator *alloc,
                                    const weir_placement *placement,
                                    const weir_partition *partition,
                                    weir_place_parts **out_parts,
                                    weir_error *err);
void weir_place_parts_release(weir_place_parts *parts); /* NULL-safe */

#endif
