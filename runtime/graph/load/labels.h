/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_LABELS_H_
#define WEIR_GRAPH_LABELS_H_

#include "runtime/graph/load/loader.h"

/* Names of classes. */

/* Reads `labels` into the graph: a list of names, or a file with a name a
 * line. W1010, W4001, W4002, W4015, W4039. */
bool weir_labels_read(weir_loader *l);

#endif
