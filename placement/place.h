/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PLACE_H_
#define PLACEMENT_PLACE_H_

#include <stdatomic.h>

#include "placement/lower/lower.h"
#include "placement/parts/partition.h"
#include "placement/report/dump.h"
#include "placement/solve/objective.h"
#include "runtime/base/env.h"
#include "runtime/graph/goal.h"

/* From a graph, a cluster and options to plans.
 *
 *   weir_place_graph(request) -> plan      `weir place`: one plan of a purpose
 *   weir_placing_create(request) -> placing, and a plan for each program:
 *   weir_placing_plan(placing, cut) -> plan     a session's call
 *
 * A placing is common to the plans of one session: the cluster, the costs, the
 * options, and the home of every variable. Homes are decided once: by the plan
 * of the graph's main purpose (a training step where it has `train`, else all
 * outputs), with a nominal size where a dimension is open; variables that this
 * plan does not touch go by rules and bytes. Every other plan has its variables
 * pinned to their homes, so that no program moves them.
 *
 * All three calls use the same cut, the same options and the same placer, so
 * the predicted plan is the one that runs. Placings and plans are immutable,
 * counted by reference, and may be read from many threads. */

/* A node, by its name or one that weir_place_find_node takes, asks for a
 * device. */
typedef struct weir_place_wish {
  weir_sv node;
  weir_device_name device;
} weir_place_wish;

typedef struct weir_placing_options {
  weir_place_strictness strictness;
  const weir_place_objective *objective; /* NULL: latency */
  const weir_placer *placer;             /* NULL: search */
  uint64_t seed;
  uint64_t moves;      /* of local search; 0: as many as fit the graph's size */
  bool portfolio_only; /* none at all */
  int64_t budget_ns;   /* ends the search too, by |clock|; 0: no */
  const weir_clock *clock; /* outlives the placing; NULL: no |budget_ns| */
  uint32_t microbatches;   /* in flight in a pipeline; 0: 8 */
  bool in_process; /* tasks are of one process: a measured link is theirs too */
  uint32_t assumed_kinds; /* lower.h; such plans cannot be run */
  weir_lower_ask ask;     /* lower.h; |ask_self| outlives the placing */
  const void *ask_self;
  /* Gives, as bits, the kinds of the cluster's devices that are not there.
   * Asked once, when the placing is made, for which it is lent. NULL: all are.
   */
  weir_status (*absent)(void *self, const weir_cluster *cluster,
                        uint32_t *out_kinds, weir_error *err);
  void *absent_self;
} weir_placing_options;

typedef struct weir_placing {
  atomic_int refs;
  const weir_allocator *alloc;
  weir_arena arena;
  const weir_cluster *cluster; /* its own */
  weir_costs *costs;           /* held; or NULL */
  weir_placing_options options;
  uint32_t absent_kinds; /* lower.h */
  bool logical;          /* of the graph's mesh; lower.h */
  const weir_place_wish *wishes;
  uint32_t wish_count;
  weir_map homes; /* of variables: their device */
  /* Of a job between graphs: what its plan is a template of; NULL: no such job,
   * or a session's placing. */
  const struct weir_place_replica *replica;
  /* Per rule of the graph: a unit of the first plans meets it. Written while
   * the placing is made, then not read any more. */
  bool *rule_used, *with_found;
} weir_placing;

typedef struct weir_plan {
  atomic_int refs;
  const weir_allocator *alloc;
  const weir_placing *placing; /* held */
  weir_placement *placement;   /* NULL: of an instance */
  weir_place_problem *problem; /* an instance's own; else the placement's */
  weir_place_result result;
  /* Made when first asked for: weir_plan_partition, weir_plan_hash. */
  _Atomic(weir_partition *) partition;
  atomic_uint_least64_t hash;
  int64_t *peaks; /* per device, bytes */
  weir_place_figures *figures;
  weir_place_view view;                        /* of all that */
  _Atomic(struct weir_plan_details *) details; /* place_details.h */
} weir_plan;

/* A request for a plan. All of it is lent for the call. */
typedef struct weir_place_request {
  const weir_graph *graph;
  /* "ps=1,worker=2"; "graph": the graph's own; NULL: its own if it has one,
   * else this machine. */
  const char *cluster;
  const char *machine;              /* "auto"; NULL: one worker with a CPU */
  const weir_yaml *cluster_section; /* of a file, in place of it; or NULL */
  weir_placing_options options;
  weir_costs *costs; /* retained; NULL: estimates */
  const weir_place_wish *wishes;
  uint32_t wish_count;
  const weir_diag_sink *sink; /* warnings; may be NULL */
  /* Asked now and then; true ends the search with the best plan so far. May be
   * NULL. */
  bool (*stop)(void *self);
  void *stop_self;
  weir_place_progress *progress; /* of the plan in hand; may be NULL */

  /* weir_place_graph only. */
  bool inference; /* the outputs, though the graph has `train` */
  bool replica;   /* training between graphs: the template of a replica */
  const weir_shape *shapes; /* per input of |graph|, of the tensors that are
                               fed; rank unknown: not known; may be NULL */
  bool open; /* a dimension that nothing fixes counts as it does for homes */
  weir_sv given; /* JSON of a plan that joins the candidates; data NULL: none */
  const char *given_name; /* for messages; NULL: "plan" */
  weir_bytes carried;     /* or one by weir_plan_pack; with |replay| */
  bool replay; /* |given| is the plan, and says where variables live */
  /* What if: changes of the cluster or of requests, in order (what_if.h), and
   * the plan that they start from, of the same graph. */
  const char *const *changes;
  size_t change_count;
  const weir_plan *before;
} weir_place_request;

/* The cluster of a request. Errors: W3020, W6001. */
weir_status weir_cluster_choose(const weir_allocator *alloc,
                                const weir_place_request *request,
                                weir_cluster **out_cluster, weir_error *err);

/* Plans one purpose of the graph. Errors: W2008, W3001-W3020, W3040, W4009,
 * W4013, W0002 (a wish for a node that is not there), those of
 * weir_goal_create, W6001. */
weir_status weir_place_graph(const weir_allocator *alloc,
                             const weir_place_request *request,
                             weir_plan **out_plan, weir_error *err);
/* Plans |problem|, which is the plan's from then on, also after a failure; of
 * |request| the options, |given| and |stop| count. Errors: W3010-W3016, W4013,
 * W6001. */
weir_status weir_place_problem_plan(const weir_allocator *alloc,
                                    weir_place_problem *problem,
                                    const weir_place_request *request,
                                    weir_plan **out_plan, weir_error *err);
weir_plan *weir_plan_ref(const weir_plan *plan);
void weir_plan_unref(const weir_plan *plan); /* NULL-safe */
/* The parts of the plan's graph; lent. NULL for an instance's plan. Errors:
 * W6001. */
weir_status weir_plan_partition(const weir_plan *plan,
                                const weir_partition **out_partition,
                                weir_error *err);
/* W3016 where |placing| assumes kernels that do not exist: its plans are not to
 * be run. */
weir_status weir_placing_check_runs(const weir_placing *placing,
                                    weir_error *err);
/* weir_cut_hash of the plan's graph; 0: an instance's. */
uint64_t weir_plan_hash(const weir_plan *plan);

/* A placing with its homes, and in |*out_plan| the plan that gave them; NULL
 * when there was none to make. Errors: W0002 (a wish for a node that is not
 * there), W3002-W3020, W6001. */
weir_status weir_placing_create(const weir_allocator *alloc,
                                const weir_place_request *request,
                                weir_placing **out_placing,
                                weir_plan **out_plan, weir_error *err);
weir_placing *weir_placing_ref(const weir_placing *placing);
void weir_placing_unref(const weir_placing *placing); /* NULL-safe */
/* The plan of |graph|, a cut. Errors: W2008, W3001-W3016, W6001. */
weir_status weir_placing_plan(const weir_placing *placing,
                              const weir_graph *graph, weir_plan **out_plan,
                              weir_error *err);
/* The plan of |bytes| for |graph|, a cut; it must pass the checker. Errors: as
 * weir_placing_plan, W7051. */
weir_status weir_plan_unpack(const weir_placing *placing,
                             const weir_graph *graph, weir_bytes bytes,
                             weir_plan **out_plan, weir_error *err);
/* Where variable |name| lives: a device of the cluster; NONE: not decided. */
uint32_t weir_placing_home(const weir_placing *placing, weir_sv name);
/* The task of that device; NONE likewise. */
uint32_t weir_placing_home_task(const weir_placing *placing, weir_sv name);

#endif
