/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_INSTANCE_DAGBENCH_H_
#define WEIR_PLACEMENT_INSTANCE_DAGBENCH_H_

#include "placement/problem.h"

/* Reads problems in the form of DAGBench. */

/* A problem in DAGBench's form. */
weir_status weir_instance_read_dagbench(const weir_allocator *alloc,
                                        weir_sv text, const char *name,
                                        weir_place_problem **out_problem,
                                        weir_error *err);

#endif
