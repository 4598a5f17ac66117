/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_LOWER_H_
#define PLACEMENT_LOWER_H_

#include "placement/cluster.h"
#include "placement/lower/cost_file.h"
#include "placement/problem.h"
#include "runtime/graph/graph.h"

/* From a graph and a cluster to a placement problem.
 *
 * A unit is placed as one: a fusion group, or a node. Constants belong to every
 * device and are no units. Units that must be together are joined: a view with
 * its source, an assignment and an apply_* node with their variable, its slots
 * too; rules do not apply to a unit that follows another. A unit may be where
 * its node's own `@ device` says, else where the first rule of `placement:`
 * with a matching pattern says, else anywhere; devices without a kernel are
 * taken out first. A rule with `with: NAME` joins its units to that node's
 * (lower_together.c). A unit that takes no time (a variable, an input) is where
 * a unit that reads it can run, unless a request says otherwise. With `soft:
 * true` a request that leaves no device is dropped, and that is remembered.
 * `balance: bytes` spreads variables over the devices that a rule allows,
 * largest first onto the emptiest. */

typedef enum weir_place_source {
  WEIR_COST_ESTIMATED, /* roofline of the device's model */
  WEIR_COST_MEASURED,
  WEIR_COST_GIVEN, /* a task's own */
  WEIR_COST_SOURCES
} weir_place_source;

typedef enum weir_place_strictness {
  WEIR_PLACE_STRICT, /* no request is dropped, `soft` or not */
  WEIR_PLACE_WARN,   /* requests of soft rules may be, with a warning */
  WEIR_PLACE_SOFT    /* all requests may be */
} weir_place_strictness;

typedef struct weir_unit {
  weir_node_id node;                   /* that names it: the group's last */
  weir_node_id anchor;                 /* that the group began with */
  uint32_t first_member, member_count; /* in |members| */
  uint32_t rule;                       /* index in `placement:`, NONE */
  bool own_device;                     /* the node itself said where */
  weir_sv asked;     /* the device that it asked for, in the graph's or a pin's
                        words; empty: none, or its rule says */
  bool home;         /* a variable: its home says where */
  bool relaxed;      /* its request was dropped */
  bool fallback;     /* a device that its rule prefers cannot run it */
  bool constant;     /* it runs before the first step, if ever: its values are
                        constant, or views of such; no variable */
  bool with_readers; /* it takes no time, and is where a reader of it can run */
  uint32_t lacks; /* bits: kinds of the cluster's devices without a kernel for
                     one of its members */
  bool follows;   /* a view, an assignment, an apply_*: rules pass it by */
  uint32_t with;  /* unit that it is colocated with (the first), or NONE */
  weir_place_source source;
  /* Per class: its measured cost, or NULL; of the costs given. NULL: none are.
   */
  const weir_cost_entry **measured;
} weir_unit;

typedef struct weir_placement {
  weir_arena arena;
  const weir_graph *graph;           /* held; fused */
  const weir_cluster *cluster;       /* lent */
  const weir_place_problem *problem; /* one node per unit */
  const weir_unit *units;
  const weir_node_id *members;
  const uint32_t *unit_of;           /* per graph node; NONE: a constant */
  const weir_value_id *tensor_value; /* per tensor of the problem; NO_VALUE: a
                                        token of `after` */
  uint32_t unit_count, member_total;
  uint32_t assumed_kinds, absent_kinds; /* lower_options */
} weir_placement;

/* A node that asks for a device; it counts before the graph's own requests. */
typedef struct weir_place_pin {
  weir_node_id node;
  weir_device_name device;
} weir_place_pin;

/* The memory of a graph when it runs, tensors between units aside. The arrays
 * are the lowering's, zeroed; the one who is asked fills them. */
typedef struct weir_lower_needs {
  int64_t *scratch_bytes; /* per node: while it runs */
  int64_t *kept_bytes;    /* per node: for ever, packed constants */
  int64_t *value_bytes;   /* per value: planned for a run; 0: it is constant,
                             fed, kept, a view, or stays in its kernel */
  /* Per node: an input that nobody else reads and whose memory its first output
   * may take over, and the bytes; 0: none. */
  int64_t *reused_bytes;
  weir_value_id *reused;
  bool *constant; /* per value: its bytes are known before any run */
} weir_lower_needs;

/* Fills |out| for |graph|, the cut that is lowered, on a device of |threads|
 * (1 or more). A failure but for W6001 leaves it out of the model. */
typedef weir_status (*weir_lower_ask)(const void *self, const weir_graph *graph,
                                      uint32_t threads, weir_lower_needs *out,
                                      weir_error *err);

typedef struct weir_lower_options {
  weir_place_strictness strictness;
  /* The graph is of a mesh that names no devices: cpu:I, which its nodes ask
   * for, is the cluster's I-th device, counted around. */
  bool logical;
  const weir_diag_sink *sink; /* warnings; may be NULL */
  /* Measured costs; must outlive the placement. NULL: none. */
  const weir_costs *costs;
  const weir_place_pin *pins; /* lent for the call */
  uint32_t pin_count;
  /* Variables by name: the device where each lives, before any other request;
   * lent for the call. NULL: none. */
  const weir_map *homes;
  /* Bits: kinds of devices on which every op counts as having a kernel. */
  uint32_t assumed_kinds;
  /* Bits: kinds of devices that are not there, so that nothing runs on them. */
  uint32_t absent_kinds;
  /* Per rule of the graph's `placement:`: set where a unit meets it. NULL: not
   * asked for. */
  bool *rule_used;
  /* Likewise: set where the node of the rule's `with` is in the graph. */
  bool *with_found;
  weir_lower_ask ask; /* NULL: nothing is needed beside tensors */
  const void *ask_self;
} weir_lower_options;

/* |graph| has known shapes and its groups formed. Errors: W2008, W3002 (a
 * request that no device of the cluster meets), W3001, W3012, W3017, W6001. */
weir_status weir_placement_create(const weir_allocator *alloc,
                                  const weir_graph *graph,
                                  const weir_cluster *cluster,
                                  const weir_lower_options *options,
                                  weir_placement **out_placement,
                                  weir_error *err);
void weir_placement_release(weir_placement *placement); /* NULL-safe */

/* The work of a unit, on any device. */
typedef struct weir_place_work {
  int64_t flops, bytes;
  uint32_t kernels; /* nodes that take time; 0: views, variables, inputs */
  bool given;       /* a task's, with a cost of its own */
  bool loops;       /* it has bodies */
} weir_place_work;

#endif
