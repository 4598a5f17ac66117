/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_FIT_H_
#define CLI_FIT_H_

#include "cli/cli.h"

/* One example for a graph that takes a batch of them.
 *
 * `weir predict -i image=@shirt.png` has u8[28, 28, 1] where the graph takes
 * u8[64, 28, 28]. What keeps the meaning is done: a last dimension of 1 (gray)
 * goes, a first one of 1 (the batch) comes, and where the graph's batch has a
 * fixed size, the last example fills it up. All else is the graph's business:
 * no value and no dtype is changed. A value that fits stays as it is. */

/* How a batch was filled up. */
typedef struct cli_fit {
  int64_t rows;  /* examples that were given; 0: nothing was filled up */
  int64_t batch; /* that the graph takes */
} cli_fit;

/* Makes each of |inputs| fit its input of the graph. Errors: W4009, with a hint
 * at the ops that would help; W6001. */
weir_status cli_fit_inputs(const cli_job *job, cli_tensors *inputs,
                           cli_fit *out_fit, weir_error *err);
/* The first fit->rows rows of |tensor|, which is replaced. W4009 when it has
 * not one for each example; |name| is its name. */
weir_status cli_fit_output(const cli_job *job, const cli_fit *fit,
                           const char *name, weir_tensor **tensor,
                           weir_error *err);

#endif
