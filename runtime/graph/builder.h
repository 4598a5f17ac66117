/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_BUILDER_H_
#define WEIR_GRAPH_BUILDER_H_

#include "runtime/graph/graph.h"

/* Building graphs, node by node.
 *
 * Loader, importers and passes all make graphs through a builder: it is the
 * only place where a node's dtypes are checked and its op's shape rule runs,
 * at once, when the node is added. Inputs exist already, so nodes come in
 * topological order. A node that fails is not added; the builder can go on.
 *
 *   weir_graph_builder *b = NULL;
 *   weir_status s = weir_graph_builder_create(alloc, registry, seed, &b, err);
 *   ... weir_graph_builder_add(b, &spec, &node, &diag) ...
 *   if (s == WEIR_OK) s = weir_graph_builder_finish(b, &graph, err);
 *   weir_graph_builder_release(b);
 *
 * One thread at a time. */

typedef struct weir_graph_builder weir_graph_builder;

/* The parts of a node. All of it is copied but |name|, |device| and
 * mark.file, which must live in the builder's arena (or its parent's). */
typedef struct weir_node_spec {
  weir_sv name; /* unique */
  const weir_op_def *op;
  /* One for each of op->attrs, kind WEIR_ATTR_NONE where not given: then the
   * default is filled in. NULL: all defaults. An INT stands for INTS of one
   * or a FLOAT where the op wants these. */
  const weir_attr *attrs;
  const weir_value_id *inputs; /* WEIR_NO_VALUE: left out */
  const weir_node_id *after;
  uint32_t input_count, after_count;
  weir_sv device;
  weir_mark mark;
  /* Where each input is written, or NULL. */
  const weir_mark *input_marks;
  bool has_seed; /* else the seed is the hash of graph seed and name */
  uint64_t seed;
  /* scan, while, if (control.h): the graph takes references of its own. */
  const weir_graph *const *bodies;
  uint32_t body_count;
  bool has_twin, update; /* see weir_node */
  weir_node_id twin;
} weir_node_spec;

/* A builder of an empty graph. The graph holds |registry|. Errors:
 * W6001. */
weir_status weir_graph_builder_create(const weir_allocator *alloc,
                                      const weir_registry *registry,
                                      uint64_t seed,
                                      weir_graph_builder **out_builder,
                                      weir_error *err);
/* A builder of an empty graph that may borrow text, attributes and sections of
 * |parent|: the new graph holds a reference to it. Symbols, seed, registry,
 * file and sections are the parent's. */
weir_status weir_graph_builder_derive(const weir_graph *parent,
                                      weir_graph_builder **out_builder,
                                      weir_error *err);
/* A builder for a body of a node that will be added to |outer|, which must
 * outlive it: symbols of dimensions mean the same in both. |parent| (may be
 * NULL) is a body that the new one borrows from and holds; the caller keeps the
 * text alive that |parent| itself borrows. Errors: W6001. */
weir_status weir_graph_builder_body(weir_graph_builder *outer,
                                    const weir_graph *parent,
                                    weir_graph_builder **out_builder,
                                    weir_error *err);
void weir_graph_builder_release(weir_graph_builder *builder); /* NULL-safe */

/* Makes room for |nodes| nodes in all: a hint that saves copying. Errors:
 * W6001. */
weir_status weir_graph_builder_reserve(weir_graph_builder *builder,
                                       uint32_t nodes, weir_error *err);

/* The arena of the graph to be; text given to the builder goes there. */
weir_arena *weir_graph_builder_arena(weir_graph_builder *builder);
/* The graph so far: nodes, values and symbols can be read. Pointers into it
 * are valid until the next call that adds something. */
weir_graph *weir_graph_builder_graph(weir_graph_builder *builder);

/* Output |i| of a node of the graph so far. */
weir_value_id weir_graph_builder_output(const weir_graph_builder *builder,
                                        weir_node_id node, uint32_t i);
bool weir_graph_builder_has_name(const weir_graph_builder *builder,
                                 weir_sv name);

/* The symbol of a named dimension, made when new; 0 when out of memory. */
uint32_t weir_graph_builder_symbol(weir_graph_builder *builder, weir_sv name);

/* Further names by which weir_graph_find_value finds a value. The first use of
 * a name wins. Errors: W6001. */
weir_status weir_graph_builder_name_value(weir_graph_builder *builder,
                                          weir_sv name, weir_value_id value,
                                          weir_error *err);
weir_status weir_graph_builder_add_input(weir_graph_builder *builder,
                                         const weir_graph_port *port,
                                         weir_error *err);
weir_status weir_graph_builder_add_output(weir_graph_builder *builder,
                                          const weir_graph_port *port,
                                          weir_error *err);

/* Hands the graph over (one reference); the builder can only be released. */
weir_status weir_graph_builder_finish(weir_graph_builder *builder,
                                      weir_graph **out_graph, weir_error *err);

/* An op's signature, worked out once per builder. */
typedef struct weir_op_info {
  const weir_op_def *op;
  uint32_t in_count, out_count, attr_count, type_count;
  uint32_t in_required; /* inputs that must be given */
  bool variadic;        /* the last input may repeat */
  /* For each port: index of its type variable, or -1 and a set of dtypes. */
  int8_t in_var[WEIR_OP_INPUTS], out_var[WEIR_OP_OUTPUTS];
  int8_t var_attr[WEIR_OP_TYPES]; /* attribute that gives the dtype, or -1 */
  unsigned in_types[WEIR_OP_INPUTS], out_types[WEIR_OP_OUTPUTS];
  weir_attr defaults[WEIR_OP_ATTRS]; /* kind NONE where there is none */
} weir_op_info;

/* Brings the symbols of a body's builder up to date. false: no memory. */
bool weir_graph_builder_follow(weir_graph_builder *b);

/* A new symbol without a name; 0 when out of memory. */
uint32_t weir_graph_builder_new_symbol(weir_graph_builder *b);

#endif
