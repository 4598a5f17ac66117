/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_PROGRAM_PARALLEL_H_
#define WEIR_EXEC_PROGRAM_PARALLEL_H_

#include "runtime/exec/program/program_internal.h"

/* Which tasks may run at the same time. */

/* Per task, the last task (itself or a higher one) that does not wait for it.
 * The caller frees the list with graph->alloc. */
weir_status weir_tasks_free_until(const weir_program *program,
                                  const weir_task_graph *graph,
                                  uint32_t **out_until, weir_error *err);

#endif
