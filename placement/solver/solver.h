/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_SOLVER_H_
#define PLACEMENT_SOLVER_H_

#include "placement/schedule/schedule.h"
#include "placement/solve/regions.h"
#include "placement/solve/search.h"

/* One solver for one problem: the portfolio of lists (portfolio.h), packing
 * (pack.h), and walks from plan to plan (walk.h). solve/search.c leads the
 * solvers of all levels (level.h).
 *
 * All that a solver does in its n-th move is decided by the problem, the seed
 * and n: neither the budget nor another solver changes it. */

enum {
  WEIR_SEARCH_MEMORY = 200,      /* how long late acceptance remembers */
  WEIR_SEARCH_PACK_NODES = 4096, /* up to here packing, all lists, levels */
  WEIR_SEARCH_WALKS = 3
};

/* A local search: the plan that is accepted now, and those before. */
typedef struct weir_walk {
  int64_t *key; /* priorities, per node */
  uint32_t *device;
  int64_t now_ns;
  int64_t late_ns[WEIR_SEARCH_MEMORY];
  uint64_t random;
  uint64_t moves;
} weir_walk;

typedef struct weir_solver {
  const weir_allocator *alloc;
  const weir_place_problem *p;
  const weir_place_options *options;
  weir_scheduler *scheduler;
  weir_place_plan *plan, *best;
  int64_t *key, *kept_key; /* priorities: tried, of the best list */
  uint32_t *device, *kept_device;
  int64_t *tail;
  uint32_t *order, *heap, *waiting;
  bool listed;   /* the best list is not a rank */
  bool is_lower; /* of a lower level: a quick bound will do */
  /* Packing from the end, where it is possible. */
  weir_place_problem *reversed;
  weir_scheduler *back_scheduler;
  weir_place_plan *back_plan;
  /* With memory caps: filled, the best list is a fill's, and regions move. */
  weir_items *items;
  weir_regions *regions;
  bool filled;
  bool spill; /* the best plan sends tensors elsewhere: others may too */
  weir_walk walks[WEIR_SEARCH_WALKS];
  uint32_t walk_count;
  uint64_t moves; /* of all walks */
  weir_place_bounds bounds;
  int64_t first_ns; /* of the portfolio's best */
  bool descended;   /* |best| is one that no single move makes better */
  weir_error *err;
} weir_solver;

/* |s| is to be ended also after a failure. Errors: W6001. */
weir_status weir_solver_begin(weir_solver *s);
void weir_solver_end(weir_solver *s);

/* Schedules s->key and s->device into s->plan; gives up where the step cannot
 * be below |stop_ns| (0: never). */
weir_status weir_solver_schedule(weir_solver *s, int64_t stop_ns,
                                 bool *complete);
/* s->plan and what it was made of become the best, if it is shorter. */
void weir_solver_keep(weir_solver *s, const char *placer);
/* The best plan's devices and starts become kept_device and kept_key. */
void weir_solver_keep_starts(weir_solver *s);
void weir_solver_free_devices(weir_solver *s);

#endif
