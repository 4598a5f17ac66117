/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_PROGRAM_MEMORY_H_
#define WEIR_EXEC_PROGRAM_MEMORY_H_

#include "runtime/exec/program/program_internal.h"

/* Lays values and scratch out in memory. */

/* Plans values and scratch; adds the edges that reuse needs. */
weir_status weir_program_plan_memory(weir_program *program,
                                     weir_task_graph *graph, size_t limit,
                                     weir_error *err);

#endif
