/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_WEIR_PLAN_H_
#define WEIR_API_WEIR_PLAN_H_

#include "placement/place.h"
#include "runtime/api/weir_internal.h"

/* The common part of the plan's API. */

/* One call that makes a plan: the caller's options as placement wants them. */
typedef struct plan_call {
  const weir_runtime *runtime;
  weir_plan_opts opts;
  weir_plan_text given;
  weir_place_request request;
  weir_arena arena; /* of a cluster's file */
  weir_place_wish *wishes;
  weir_shape *shapes;
  weir_costs *costs;
  char machine[32]; /* of request.machine */
  weir_diag_sink sink;
  const weir_clock *clock;
  int64_t begin_ns, asked_ns;
  uint64_t asked;
  weir_place_progress progress;
  weir_plan_answer answer;
} plan_call;

/* Reads |opts|. |graph| may be NULL, for an instance. End |call| also after a
 * failure. Errors: W0002, W0004, W1115, W4011, W6001. */
weir_status weir_plan_call_begin(plan_call *call, weir_runtime *runtime,
                                 const weir_graph *graph,
                                 const weir_plan_opts *opts, weir_error *err);
/* The shapes of the tensors that |opts| feeds, per input of |graph|, of unknown
 * rank where none is fed; nothing is written if there is none. The caller frees
 * them, also after a failure. Errors: W0004, W4011, W6001. */
weir_status weir_plan_read_shapes(const weir_allocator *alloc,
                                  const weir_graph *graph,
                                  const weir_plan_opts *opts,
                                  weir_shape **out_shapes, weir_error *err);
/* W5005 when the caller gave up. */
weir_status weir_plan_call_check(const plan_call *call, weir_error *err);
/* Gives |plan| out, or W5005 when the caller gave up. */
weir_status weir_plan_call_finish(const plan_call *call, weir_plan *plan,
                                  weir_plan **out_plan, weir_error *err);
void weir_plan_call_end(plan_call *call, weir_runtime *runtime);

/* W0004 unless |plan| is there and has a row |i| of |count|. */
weir_status weir_plan_check_row(const weir_plan *plan, size_t i, size_t count,
                                const char *what, weir_error *err);

#endif
