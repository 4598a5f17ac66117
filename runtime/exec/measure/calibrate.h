/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_CALIBRATE_H_
#define WEIR_EXEC_CALIBRATE_H_

#include "runtime/exec/measure/measure.h"

/* Calibration: measured times into a cost file's table. */

/* Measures the graph of |request| (on one thread) and sets an entry for each of
 * its units, and one for the time of a step beside its units. Tasks get none:
 * they carry their own time. Units of one signature share an entry: in each run
 * their mean, over all runs the median. With a plan only its units on GPUs get
 * entries, as costs of a GPU, and the step gets none. Errors: as weir_measure.
 */
weir_status weir_calibrate(const weir_env *env,
                           const weir_measure_request *request,
                           weir_costs *costs, weir_error *err);

#endif
