/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_COLLECTIVE_H_
#define OPS_COLLECTIVE_H_

#include "ops/rules.h"

/* Collectives: one node for each rank of a group, which the program carries out
 * together. The mesh lowering makes them. They cut and join along dimension 0;
 * the lowering transposes where it is another. */

#define WEIR_COLLECTIVE_ATTRS                                           \
  {"group", WEIR_ATTR_INT, NULL, "number of the group of ranks"},       \
      {"rank", WEIR_ATTR_INT, NULL, "this node's, from 0"},             \
      {"ranks", WEIR_ATTR_INT, NULL, "how many nodes the group has"}, { \
    "mesh_axis", WEIR_ATTR_STRING, "none",                              \
        "for people: the axis it runs along"                            \
  }

#define WEIR_COLLECTIVE_REFUSES "a rank outside [0, ranks)", "a negative group"

/* Checks the attributes. Errors: W2007. */
weir_status weir_rule_ranks(weir_shape_ctx *ctx, int64_t *out_ranks);
/* Dimension 0 of the input must be there, and a multiple of the ranks. Errors:
 * W2004, W2010. */
weir_status weir_rule_dealt(weir_shape_ctx *ctx, weir_shape *out_x,
                            int64_t *out_ranks);

/* Bytes that one rank of a ring sends: |turns| (n-1)/n of the larger side, and
 * the additions of all of it once where |adds|. */
void weir_cost_ring(const weir_call *call, int64_t turns, bool adds,
                    weir_cost *out);

#endif
