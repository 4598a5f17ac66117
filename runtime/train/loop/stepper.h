/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_STEPPER_H_
#define WEIR_TRAIN_STEPPER_H_

#include "runtime/exec/session/session.h"
#include "runtime/train/data/data.h"

/* Runs a session on batches: each column is fed to the input of its name.
 *
 * Per shape of batch there is one binding, so a batch of a known shape costs a
 * copy of its columns and a bound run, and allocates nothing. A data set has
 * few shapes: full batches and one remainder. */
typedef struct weir_stepper weir_stepper;

typedef struct weir_stepper_options {
  weir_exec_session *session; /* of |graph| */
  const weir_graph *graph;
  const weir_dataset *data;     /* whose batches come */
  weir_sv section;              /* its name, for messages */
  const weir_value_id *fetches; /* copied */
  uint32_t fetch_count;
  const weir_node_id *targets; /* copied */
  uint32_t target_count;
  /* Further inputs, fed with the same tensors whatever the batch; copied, the
   * tensors are the caller's and outlive the stepper. */
  const weir_exec_feed *given;
  uint32_t given_count;
  /* An input, i64, that is fed the number of a batch's examples. NULL, or
   * WEIR_NO_VALUE there: none. */
  const weir_value_id *rows;
  /* Per fetch: the tensor that it is written to, of the caller, likewise; or
   * NULL: one of the stepper's. The list NULL: all are. Copied. */
  weir_tensor *const *into;
} weir_stepper_options;

/* Checks columns against inputs of the same name. Session, graph and data must
 * outlive the stepper. Errors: W5021, W6001. */
weir_status weir_stepper_create(const weir_env *env,
                                const weir_stepper_options *options,
                                weir_stepper **out_stepper, weir_error *err);
void weir_stepper_release(weir_stepper *stepper); /* NULL-safe */

/* A stepper of its own with the options of |like|, for another thread. Errors:
 * W6001. */
weir_status weir_stepper_like(const weir_stepper *like,
                              weir_stepper **out_stepper, weir_error *err);

/* Makes all that a run of batches of this shape needs. Errors: W5021, W4012,
 * the compiler's. */
weir_status weir_stepper_prepare(weir_stepper *stepper, const weir_batch *batch,
                                 weir_error *err);

/* The two halves of weir_stepper_run: copies |batch|, which may go then; and
 * runs the batch that was copied last, on any one thread. Errors: W5021, W4012,
 * the compiler's; the run's own. */
weir_status weir_stepper_load(weir_stepper *stepper, const weir_batch *batch,
                              weir_error *err);
weir_status weir_stepper_go(weir_stepper *stepper, const weir_run_options *run,
                            weir_error *err);

/* Runs |batch|. |run| may be NULL. Errors: W5021, W4012, the run's own. */
weir_status weir_stepper_run(weir_stepper *stepper, const weir_batch *batch,
                             const weir_run_options *run, weir_error *err);
/* Fetch |i| of the last run, also inside its |accept|; lent until the next. */
const weir_tensor *weir_stepper_output(const weir_stepper *stepper, uint32_t i);

/* Says in |err|, which has the words for it, why the loss of run |run| is not
 * finite: it is of step |step|, a node made it, which one more run of the batch
 * names, or |var| (empty: none) is not finite itself. Returns |err|'s status.
 */
weir_status weir_stepper_blame(weir_stepper *stepper, uint64_t run,
                               uint64_t step, weir_sv var, weir_error *err);

#endif
