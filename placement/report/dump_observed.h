/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_DUMP_OBSERVED_H_
#define PLACEMENT_DUMP_OBSERVED_H_

#include "placement/report/dump.h"

/* A plan beside the measurements of its run. */

/* All lent. Where nothing ran, |step.count| is 0 and there are no times. Arrays
 * have one entry per node or copy of the plan. Times from the beginning of a
 * step, in the shortest run that was looked at; -1: there was nothing to run,
 * or to send. */
typedef struct weir_place_observed {
  weir_cost_sample step;
  int64_t beside_ns; /* predicted: time of a step beside its units */
  const weir_cost_sample *nodes, *copies;
  const int64_t *node_start_ns, *node_end_ns, *copy_start_ns, *copy_end_ns;
  const int64_t *device_bytes; /* per device: memory that its part takes */
} weir_place_observed;

/* Writes the step, then the |most| nodes and copies that differ most (0: 12 of
 * them), each predicted, measured and the difference. */
weir_status weir_place_write_observed(const weir_place_view *view,
                                      const weir_place_observed *seen,
                                      uint32_t most, const weir_writer *out,
                                      weir_error *err);
/* The same as one JSON object, all of it. */
bool weir_place_write_observed_json(const weir_place_view *view,
                                    const weir_place_observed *seen,
                                    const weir_writer *out);
/* Chrome's JSON form: two lanes a device and two for the copies to it,
 * predicted above measured. */
bool weir_place_write_observed_trace(const weir_place_view *view,
                                     const weir_place_observed *seen,
                                     const weir_writer *out);

#endif
