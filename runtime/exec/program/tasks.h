/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_TASKS_H_
#define WEIR_EXEC_TASKS_H_

#include "runtime/exec/program/program_internal.h"

/* Forms tasks: reorders instructions so that each task's are neighbours, and
 * leaves |edges| between tasks (pairs, lower to higher). */

/* Tasks of at least the grain where there is a choice. Errors: W6001. */
weir_status weir_tasks_form(weir_program *program,
                            const weir_program_options *options,
                            weir_task_graph *graph, weir_error *err);

/* Gives |program| its |count| tasks: instruction i is of |task_of[i]|, and
 * instructions stand in order of tasks, within a task as in |order| (NULL: as
 * before). |async|: per task. false: out of memory. */
bool weir_tasks_lay(weir_program *program, const uint32_t *order,
                    const uint32_t *task_of, const bool *async, uint32_t count);

/* Writes the edges into the tasks, each once. */
weir_status weir_tasks_link(weir_program *program, weir_task_graph *graph,
                            weir_error *err);

#endif
