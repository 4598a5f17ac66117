/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_FLIGHT_H_
#define WEIR_TRAIN_FLIGHT_H_

#include "runtime/train/loop/stepper.h"

/* Batches of a data set, run and handed on in their order.
 *
 * A session whose remote wants several runs at once (weir_exec_session_width)
 * gets them, each from a thread of its own; batches are then copied, and wait
 * with their results for those before them. The others run one after the other
 * in the caller's thread, without a copy. |take| and |give| are called by the
 * caller's thread either way, in order, so sums over batches are the same bits.
 *
 * Memory: at most four batches for each run at once, and beyond one for each
 * and one more no more than WEIR_FLIGHT_BYTES. While |give| waits, as for a
 * reader of its output, nothing more is read. */

enum { WEIR_FLIGHT_BYTES = 256 << 20 };

/* A batch that has been run; lent for the call. */
typedef struct weir_flight_result {
  const weir_batch *in;
  const weir_tensor *const *outputs; /* one for each fetch of the stepper */
} weir_flight_result;

typedef struct weir_flight_options {
  weir_exec_session *session; /* the stepper's */
  weir_stepper *stepper;
  uint32_t columns, outputs;   /* of a batch; the stepper's fetches */
  const weir_run_options *run; /* of each run; may be NULL */
  void *self;
  /* Reads the next batch; |*out_more| false: that was all. */
  weir_status (*take)(void *self, weir_batch *out_batch, bool *out_more,
                      weir_error *err);
  weir_status (*give)(void *self, const weir_flight_result *result,
                      weir_error *err);
} weir_flight_options;

/* Ends with the first failure, in the order of batches, once those before it
 * were given. Errors: those of take and give, W5021, the runs' own, W6001,
 * W6003. */
weir_status weir_flight_run(const weir_env *env,
                            const weir_flight_options *options,
                            weir_error *err);

#endif
