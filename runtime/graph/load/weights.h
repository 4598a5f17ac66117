/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_WEIGHTS_H_
#define WEIR_GRAPH_WEIGHTS_H_

#include "runtime/graph/load/loader.h"

/* First values from a file. */

/* The file of first values, once all variables are there. */
bool weir_weights_read(weir_loader *l);

#endif
