/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_SIGNATURE_H_
#define PLACEMENT_SIGNATURE_H_

#include "runtime/base/strbuf.h"
#include "runtime/graph/graph.h"

/* A unit as text: two units with the same text cost the same.
 *
 *   conv2d[pad=[2, 2, 2, 2]](f32[64,1,28,28], f32[6,1,5,5]!) -> f32[64,6,28,28]
 *   {matmul(0, 1!); add(%0, 2); relu(%1)}(f32[64,256], f32[256,120], f32[120])
 *     -> f32[64,120]                                            (on one line)
 *
 * `!`: known before the run, so weights are packed; `-`: left out; `_`: an
 * output that is not read; `%0`: the output of the group's first node. Only
 * attributes that may change a kernel's work are written: no numbers with a
 * fraction, no literals, no flag that is false. A node with bodies carries a
 * hash of them. A text longer than WEIR_COST_KEY_BYTES ends in
 * a hash of all of it. */

typedef struct weir_signer {
  const weir_allocator *alloc;
  const weir_graph *graph; /* lent */
  bool *known;             /* per value: before the run */
  bool *read;              /* per value: by a node or as an output */
} weir_signer;

/* Errors: W6001. */
weir_status weir_signer_create(const weir_allocator *alloc,
                               const weir_graph *graph, weir_signer *out_signer,
                               weir_error *err);
void weir_signer_release(weir_signer *signer);

/* Writes the text of the |count| nodes |members|, in order, over |out|. Shapes
 * that are not known stand as `?`. Errors: W6001. */
weir_status weir_sign(const weir_signer *signer, const weir_node_id *members,
                      uint32_t count, weir_strbuf *out, weir_error *err);

#endif
