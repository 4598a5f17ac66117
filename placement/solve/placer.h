/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PLACER_H_
#define PLACEMENT_PLACER_H_

#include "placement/bounds/bounds.h"
#include "placement/plan.h"

/* Placers: ways from a problem to a plan.
 *
 * A placer is one const struct in a file of solve/placers/, and one name in the
 * list of placement/meson.build; the command's options, its help and its
 * messages come from the list. `search` is the one for use. The others place
 * by a rule that looks at no cost (assign.h), to compare with and to test by.
 *
 *   solve(alloc, problem, options, result, err)
 *
 * is a pure function of problem and options: the same in, the same plan. It
 * fills |result| whole, the bounds too, and keeps the problem's demands:
 * allowed devices, groups together, caps. To add one: copy null.c. */

typedef struct weir_placer weir_placer;

/* The state of a search, for whoever waits for it. */
typedef struct weir_place_progress {
  int64_t best_ns;  /* the shortest step so far; INT64_MAX: none yet */
  int64_t bound_ns; /* no plan is shorter; 0: not known yet */
} weir_place_progress;

typedef struct weir_place_options {
  const weir_placer *placer; /* NULL: search */
  uint64_t moves;            /* of local search; 0: portfolio only */
  uint64_t seed;
  const weir_place_plan *given; /* joins the portfolio; may be NULL */
  bool rough; /* the problem stands for another: no bound, no proof */
  /* Asked now and then; true ends the search. May be NULL. */
  bool (*stop)(void *self);
  void *stop_self;
  weir_place_progress *progress; /* kept up by a search; may be NULL */
} weir_place_options;

typedef struct weir_place_result {
  weir_place_plan *plan;
  weir_place_bounds bounds;
  uint64_t moves;          /* made */
  int64_t first_ns;        /* makespan of the portfolio's best */
  int64_t retimed_from_ns; /* a plan that was given had other costs: its step by
                              them; 0: it had not */
} weir_place_result;

struct weir_placer {
  const char *name;    /* as the user writes it: round_robin */
  const char *args;    /* "SEED": NAME:SEED is a form too; NULL: none */
  const char *summary; /* for the help */
  bool searches; /* |moves| and |stop| count; a rule has no use for them */
  /* Errors: W3012-W3014, W6001; then |out->plan| is NULL. */
  weir_status (*solve)(const weir_allocator *alloc,
                       const weir_place_problem *problem,
                       const weir_place_options *options,
                       weir_place_result *out, weir_error *err);
};

/* The |i|-th of the list, the default first; NULL: there are no more. */
const weir_placer *weir_placer_at(size_t i);

/* The placer of that name; NULL: there is none. */
const weir_placer *weir_placer_find(const char *name);

/* Reads "search", "random", "random:SEED"; |*out_seed| is 0 where there is
 * none. false: no placer is called so. */
bool weir_placer_parse(weir_sv text, const weir_placer **out_placer,
                       uint64_t *out_seed);

/* Writes all forms, "search, first or random:SEED", for a message; at most
 * |capacity| bytes, always terminated. Returns |text|. */
char *weir_placer_forms(char *text, size_t capacity);

/* Places by |options->placer|. |options| may be NULL: the search's portfolio
 * only. |out_result->plan| is to be released by the caller. Errors:
 * W3012-W3014, W6001. */
weir_status weir_place_solve(const weir_allocator *alloc,
                             const weir_place_problem *problem,
                             const weir_place_options *options,
                             weir_place_result *out_result, weir_error *err);

#endif
