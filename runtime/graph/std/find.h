/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_FIND_H_
#define WEIR_GRAPH_FIND_H_

#include "runtime/base/sv.h"

/* The modules that are built in. */

/* Embedded modules ("std/nn"); NULL text: none of that name. */
weir_sv weir_std_find(weir_sv name);

#endif
