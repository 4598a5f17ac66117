/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_CONTROL_GRAD_LOOP_H_
#define WEIR_GRAPH_CONTROL_GRAD_LOOP_H_

#include "runtime/graph/grad/control_grad.h"

/* Gradients of scan and while. */

/* Adds the gradients of a scan or while. */
weir_status weir_grad_loop(weir_control_grad *g);

#endif
