/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_CONTROL_GRAD_IF_H_
#define WEIR_GRAPH_CONTROL_GRAD_IF_H_

#include "runtime/graph/grad/control_grad.h"

/* Gradients of if. */

/* Adds the gradients of an if. */
weir_status weir_grad_if(weir_control_grad *g);

#endif
