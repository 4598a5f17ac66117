/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_PASS_H_
#define WEIR_GRAPH_PASS_H_

#include "runtime/graph/builder.h"

/* The common part of passes: a builder derived from the old graph, and maps
 * from old ids to new ones.
 *
 *   weir_pass p;
 *   weir_status s = weir_pass_begin(&p, graph, err);
 *   for (... s == WEIR_OK ...) s = weir_pass_copy(&p, id, NULL, err);
 *   return weir_pass_end(&p, s, &new_graph, err); */
typedef struct weir_pass {
  const weir_graph *from;
  weir_graph_builder *builder;
  const weir_allocator *alloc;
  weir_value_id *values; /* WEIR_NO_VALUE: gone, or not there yet */
  weir_node_id *nodes;   /* UINT32_MAX: the same */
  bool own_ports;        /* inputs, outputs and names are the caller's */
  /* Attributes to put in place of a node's when bodies are copied: fills
   * |attrs| and returns true, or false for none. NULL: none ever. */
  bool (*replace)(void *self, const weir_node *node, weir_attr *attrs,
                  weir_status *status);
  void *replace_self;
} weir_pass;

/* What |id| is in |map|; WEIR_NO_VALUE stays so. */
static inline weir_value_id weir_pass_mapped(const weir_value_id *map,
                                             weir_value_id id) {
  return id == WEIR_NO_VALUE ? id : map[id];
}

/* Errors: W6001. After a failure only weir_pass_end may be called. */
weir_status weir_pass_begin(weir_pass *pass, const weir_graph *from,
                            weir_error *err);
/* The same for |from|, a body of a node that will be added to |outer|. */
weir_status weir_pass_begin_body(weir_pass *pass, const weir_graph *from,
                                 weir_graph_builder *outer, weir_error *err);

/* Copies node |id|, its inputs mapped, and enters its outputs in the maps.
 * |attrs| replaces its attributes unless NULL; |input_count| is how many of its
 * inputs are kept (UINT32_MAX: all). */
weir_status weir_pass_copy(weir_pass *pass, weir_node_id id,
                           const weir_attr *attrs, uint32_t input_count,
                           weir_error *err);

/* The parts in which a copy differs from the original; NULL: the same. */
typedef struct weir_pass_change {
  const weir_attr *attrs;
  const weir_value_id *inputs; /* |input_count| old ids */
  uint32_t input_count;        /* UINT32_MAX: all */
  const weir_graph *const *bodies;
  const uint32_t *outputs; /* per old output: the new one, or UINT32_MAX */
  const weir_sv *device;   /* text in the new graph's arena */
} weir_pass_change;

/* Copies node |id| with changes. Bodies are made to fit its inputs' types. */
weir_status weir_pass_copy_with(weir_pass *pass, weir_node_id id,
                                const weir_pass_change *change,
                                weir_error *err);

/* |body|, of a node that will be added to |outer|, with attributes replaced as
 * weir_pass.replace does, in bodies within it too. */
weir_status weir_pass_rebuild_body(
    weir_graph_builder *outer, const weir_graph *body,
    bool (*replace)(void *self, const weir_node *node, weir_attr *attrs,
                    weir_status *status),
    void *self, weir_graph **out, weir_error *err);

/* Frees the pass; there is no graph. */
void weir_pass_drop(weir_pass *pass);
/* Copies inputs, outputs and names, hands the graph over when |status| is OK,
 * and frees the pass either way. */
weir_status weir_pass_end(weir_pass *pass, weir_status status,
                          weir_graph **out_graph, weir_error *err);

#endif
