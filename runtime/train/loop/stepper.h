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
} weir_stepper_options;

/* Checks columns against inputs of the same name. Session, graph and data must
 * outlive the stepper. Errors: W5021, W6001. */
weir_status weir_stepper_create(const weir_env *env,
                                const weir_stepper_options *options,
                                weir_stepper **out_stepper, weir_error *err);
void weir_stepper_release(weir_stepper *stepper); /* NULL-safe */

/* Runs |batch|. |run| may be NULL. Errors: W5021, W4012, the run's own. */
weir_status weir_stepper_run(weir_stepper *stepper, const weir_batch *batch,
                             const weir_run_options *run, weir_error *err);
/* Fetch |i| of the last run, also inside its |accept|; lent until the next. */
const weir_tensor *weir_stepper_output(const weir_stepper *stepper, uint32_t i);

/* Runs the batch of the last run again, from the variables as they are, looking
 * for the first NaN or infinity; no variable changes. Always fails: W5004 names
 * the node, W5020 when none was found. */
weir_status weir_stepper_trap(weir_stepper *stepper, uint64_t step,
                              weir_error *err);

#endif
