/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_TASKS_STREAM_H_
#define WEIR_EXEC_TASKS_STREAM_H_

#include "runtime/exec/program/program_internal.h"

/* Forms the tasks of a device. */

/* The same for a device: one task after the other, sends and receives beside
 * them. Errors: W6001. */
weir_status weir_tasks_form_stream(weir_program *program,
                                   weir_task_graph *graph, weir_error *err);

#endif
