/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_STEP_PROFILE_H_
#define WEIR_EXEC_STEP_PROFILE_H_

#include "placement/lower/cost_file.h"
#include "runtime/exec/program/program.h"
#include "runtime/exec/run/trace.h"

/* Where the steps of a program go, by instruction.
 *
 * A step that is profiled is run with a trace; its events are added up by
 * instruction, those within bodies of loops and branches too. So a run that is
 * not profiled costs what it did. Use:
 *
 *   weir_step_profile_create(env, &options, &profile, err);
 *   for each step:
 *     weir_run_options o = {.trace = weir_step_profile_trace(profile)};
 *     ... run the step with |o|, and tell how long it took:
 *     if (o.trace != NULL) weir_step_profile_take(profile, took_ns, err);
 *   weir_step_profile_sum(profile, &sum, err);
 *   weir_step_profile_release(profile);
 *
 * The first step taken says whose program the profile is of; steps of others
 * are counted and left out. That program must live until the last step was
 * taken; all texts are copied. One thread at a time. */

typedef struct weir_step_profile weir_step_profile;

typedef struct weir_step_profile_options {
  uint32_t steps;    /* at most; 0: 101 */
  uint32_t skip;     /* steps before the first that counts: they warm up */
  size_t max_events; /* of the first step; 0: 100,000. Of a step with more the
                        rest is left out, and the next has room for all. */
} weir_step_profile_options;

/* Steps' times are medians over the steps that were taken. */
typedef struct weir_profile_row {
  weir_sv node;           /* empty: of no node */
  const weir_sv *members; /* of a group: its nodes, and the ops' names */
  uint32_t member_count;
  weir_sv op; /* of a group "matmul+add"; "-" where there is none */
  weir_sv kernel, algorithm, reason, device; /* empty: none */
  const char *category;                      /* of trace events; static */
  uint32_t parent;  /* the row whose body this one is in, or WEIR_NO_INDEX */
  int threads;      /* that may share its loops */
  weir_dtype dtype; /* of its first output */
  bool by_device;   /* timed by a device's own clock */
  bool on_host;
  bool is_split;         /* rows of its bodies have times */
  int64_t flops, bytes;  /* of one call */
  int64_t calls;         /* in a step */
  weir_cost_sample time; /* in a step, its bodies' rows with it */
  int64_t own_ns;        /* without them */
} weir_profile_row;

typedef struct weir_profile_sum {
  const weir_profile_row *rows; /* bodies' rows behind their loops' */
  uint32_t row_count;
  uint32_t steps, others;   /* taken; left out: of other programs, or cut off */
  weir_cost_sample step;    /* what tracing costs is taken out */
  weir_cost_sample between; /* time of a step in which nothing was run */
  int64_t all_ns; /* the rows' own times, added up: more than a step's where
                     several ran at once */
} weir_profile_sum;

/* Errors: W6001. */
weir_status weir_step_profile_create(const weir_env *env,
                                     const weir_step_profile_options *options,
                                     weir_step_profile **out, weir_error *err);
void weir_step_profile_release(weir_step_profile *profile); /* NULL-safe */

/* The trace for the next step, empty; NULL: enough steps were taken. */
weir_trace *weir_step_profile_trace(weir_step_profile *profile);

/* Takes the step that was run with that trace and succeeded; |took_ns| < 0: as
 * long as from its first event to its last. Errors: W6001. */
weir_status weir_step_profile_take(weir_step_profile *profile, int64_t took_ns,
                                   weir_error *err);

/* Adds up; lent until the next step is taken. Errors: W6001. */
weir_status weir_step_profile_sum(weir_step_profile *profile,
                                  weir_profile_sum *out, weir_error *err);

#endif
