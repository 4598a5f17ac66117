/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_INSTANCE_DNN_H_
#define WEIR_PLACEMENT_INSTANCE_DNN_H_

#include "placement/problem.h"

/* Reads problems made from neural networks. */

/* A problem made from a neural network, with its devices. */
weir_status weir_instance_read_dnn(const weir_allocator *alloc, weir_sv text,
                                   const char *name,
                                   weir_place_problem **out_problem,
                                   weir_error *err);

#endif
