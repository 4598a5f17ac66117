/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_LITERAL_H_
#define WEIR_GRAPH_LITERAL_H_

#include "runtime/graph/load/loader.h"

/* Literals as tensors. */

/* A literal as a tensor of |dtype|, in which its numbers must fit; NONE: bool,
 * or f32, too large numbers infinite. One reference. */
bool weir_literal_tensor(weir_loader *l, const weir_const *c, weir_dtype dtype,
                         const weir_mark *at, weir_tensor **out);

#endif
