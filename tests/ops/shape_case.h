/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPS_SHAPE_CASE_H_
#define TESTS_OPS_SHAPE_CASE_H_

#include "runtime/graph/builder.h"

enum { SHAPE_CASE_INPUTS = 5 };

/* One use of a shape rule in words. Inputs are types without spaces, with
 * letters for symbols, "f32[n,3]"; attributes are "axis=1 shape=[n,-1]". The
 * node's first output must be |want|, "f32[n, 3]", with "=[2, 3]" behind it
 * when its value is known; or |want| is an error id and |says| is in the
 * message. */
typedef struct shape_case {
  const char *op, *in, *attrs, *want, *says;
} shape_case;

/* Adds the inputs and then the node to |b|, a builder of the built-in registry.
 * |in| has room for SHAPE_CASE_INPUTS. The node's failure is in |diag|. */
weir_status shape_case_add(weir_graph_builder *b, const shape_case *c,
                           weir_value_id *in, uint32_t *out_in_count,
                           weir_node_id *out_node, weir_diag *diag);

/* Fails the test unless the case holds. */
void shape_case_check(const shape_case *c);

#endif
