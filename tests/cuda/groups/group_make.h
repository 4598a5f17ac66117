/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_GROUPS_GROUP_MAKE_H_
#define TESTS_CUDA_GROUPS_GROUP_MAKE_H_

#include "kernels/kernel.h"
#include "runtime/graph/graph.h"

/* Groups of calls, as the pass that forms groups makes them. */

enum { GROUP_TEXT = 8192, GROUP_OUTPUTS = 4 };

/* A graph of element-wise calls on operands that are repeated in parts; the
 * same |seed| gives the same text. */
void group_text(uint32_t seed, char text[GROUP_TEXT]);

/* Loads |text| and forms its groups; |*out_count| of them. Fails the test. */
weir_graph *group_load(const char *text, uint32_t *out_count);

/* Group |id| of |graph|, in |arena|. Fails the test. */
void group_of(const weir_graph *graph, uint32_t id, weir_arena *arena,
              weir_group *out);

/* The next of a series of numbers. */
uint32_t group_next(uint32_t *state);

#endif
