/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_GRAPH_H_
#define WEIR_GRAPH_GRAPH_H_

#include "ops/op.h"
#include "ops/registry.h"
#include "runtime/base/diag/diag.h"
#include "runtime/base/env.h"
#include "runtime/base/yaml/yaml.h"
#include "runtime/graph/load/data_form.h"

/* Graphs.
 *
 * A Graph is immutable and reference-counted: nodes in topological order (a
 * node's inputs and control predecessors have smaller indices), values with
 * dtype and shape, named inputs and outputs. Passes make new graphs. All parts
 * live in the graph's arena; node and value ids are indices. A graph may be
 * read from many threads. */

typedef uint32_t weir_value_id;
typedef uint32_t weir_node_id;

typedef struct weir_value {
  weir_dtype dtype;
  uint32_t port; /* output index at its node */
  weir_node_id node;
  const weir_shape *shape; /* may hold symbols */
  weir_tensor *known;      /* its data when constant, else NULL; lent */
} weir_value;

struct weir_graph;

typedef struct weir_node {
  weir_sv name; /* unique; generated ones contain '/' */
  const weir_op_def *op;
  const weir_attr *attrs;      /* one for each of op->attrs */
  const weir_value_id *inputs; /* WEIR_NO_VALUE: optional input left out */
  const weir_node_id *after;   /* control predecessors */
  uint32_t input_count, after_count, output_count;
  weir_value_id first_output;
  uint32_t group; /* fusion group, or WEIR_NO_GROUP */
  weir_sv device; /* requested, canonical spelling; empty: none */
  weir_mark mark; /* its place in the source */
  uint64_t seed;  /* hash of graph seed and name */
  /* scan, while, if: graphs of their own (control.h); held by this one. */
  const struct weir_graph *const *bodies;
  uint32_t body_count;
  /* An earlier node whose outputs are the first of this one's and the same:
   * simplify lets this one take its place. WEIR_NO_VALUE: none. */
  weir_node_id twin;
  bool update; /* assigns in every run that reads its variable */
} weir_node;

#define WEIR_NO_GROUP UINT32_MAX

/* A named input or output of the graph. */
typedef struct weir_graph_port {
  weir_sv name;
  weir_value_id value; /* inputs: output 0 of an `input` node */
  weir_mark mark;
  bool has_default; /* inputs: may be left unfed */
} weir_graph_port;

/* A param of the main file: its value as text. */
typedef struct weir_graph_param {
  weir_sv name, text;
  bool list; /* |text| is YAML, [1, 2] */
} weir_graph_param;

/* The first value of a variable, from the graph's `weights` file. Its bytes are
 * read by weir_graph_weight_copy (load/weight.h) alone: they may not be here
 * yet. */
typedef struct weir_graph_weight {
  weir_sv name;        /* of the variable */
  weir_tensor *tensor; /* lent; of the variable's dtype and shape */
  /* |tensor| is a view of it; NULL: it is not. */
  struct weir_safetensors *file;
  /* The value is this part of |tensor|; NULL: all of it. */
  const struct weir_mesh_shard *shard;
  /* Without a shard: |bytes| of it, from |from| on; |bytes| 0: all of it. */
  size_t from, bytes;
} weir_graph_weight;

/* The sections `mesh` and `layout`: devices in a grid with named axes, and
 * which named dimensions of tensors are cut along which axis (mesh.h lowers).
 */
typedef struct weir_mesh_axis {
  weir_sv name;
  uint32_t size;
  uint32_t stride; /* between neighbours, in device numbers (row-major) */
} weir_mesh_axis;

typedef struct weir_mesh_dim {
  weir_sv name;
  uint32_t symbol; /* as in weir_dim.name */
  uint32_t axis;
  int64_t size; /* a multiple of the axis's */
  weir_mark mark;
} weir_mesh_dim;

enum { WEIR_MESH_AXES = 8, WEIR_MESH_DEVICES = 1024 };

typedef struct weir_mesh {
  weir_mesh_axis axes[WEIR_MESH_AXES];
  const weir_sv *devices; /* canonical names, row-major over the axes */
  const weir_mesh_dim *dims;
  uint32_t axis_count, device_count, dim_count;
  bool logical; /* no devices were given: CPUs of this process */
  weir_mark mark;
} weir_mesh;

typedef struct weir_graph {
  atomic_int refs;
  const weir_allocator *alloc;
  weir_arena arena;
  const weir_registry *registry;
  const weir_node *nodes;
  const weir_value *values;
  const weir_graph_port *inputs, *outputs;
  const char *const *symbols; /* names of dimensions, from index 1 */
  uint32_t node_count, value_count, input_count, output_count, symbol_count;
  uint32_t group_count;
  uint64_t seed;
  weir_sv file;
  weir_sv source; /* the text of the main file, for diagnostics */
  /* The sections other rooms give meaning to; NULL when absent. */
  const weir_yaml *cluster, *placement, *data, *train;
  const weir_mesh *mesh;          /* NULL: none, or lowered already */
  const weir_graph_param *params; /* in the order of the file */
  uint32_t param_count;
  const weir_graph_weight *weights;
  uint32_t weight_count;
  const struct weir_sources *sources; /* NULL: not kept, or derived */
  const weir_sv *labels; /* names of classes, NUL behind each; or NULL */
  uint32_t label_count;
} weir_graph;

/* One more reference to |graph|, which is returned; unref drops one. */
weir_graph *weir_graph_ref(const weir_graph *graph);
void weir_graph_unref(const weir_graph *graph); /* NULL-safe */

/* The node or value of that name; "n:1" is output 1 of n. WEIR_NO_VALUE (or
 * UINT32_MAX) when there is none. Values that the source names are found too:
 * an unpacked result, an output, an input. */
weir_node_id weir_graph_find_node(const weir_graph *graph, weir_sv name);
weir_value_id weir_graph_find_value(const weir_graph *graph, weir_sv name);

/* dtype and dimensions of a value as an operand; all zero for WEIR_NO_VALUE.
 * Layout and value are the caller's. false: the shape is not known. */
bool weir_graph_operand(const weir_graph *graph, weir_value_id value,
                        weir_operand *out);

/* Writes "f32[batch, 784]" and returns |text|. */
char *weir_graph_type_text(const weir_graph *graph, weir_value_id value,
                           char *text, size_t capacity);

/* ---- Loading */

typedef struct weir_param_value {
  weir_sv name, text; /* |text| in the grammar of a YAML flow value */
} weir_param_value;

typedef struct weir_load_options {
  const weir_registry *registry;
  const weir_param_value *params; /* -p name=value */
  size_t param_count;
  const weir_param_value *overrides; /* --set path=value; load/overrides.h */
  size_t override_count;
  const weir_diag_sink *sink; /* gets every error and warning; may be NULL */
  weir_yaml_limits limits;
  uint64_t max_nodes;  /* 0: 1,000,000 */
  uint32_t max_errors; /* 0: 20 */
  uint64_t seed;
  /* `${env:NAME}` in cluster and data paths; may be NULL: refused. */
  const char *(*getenv)(void *self, const char *name);
  void *getenv_self;
  /* A file of names of classes that takes the place of the graph's; may be
   * NULL. */
  const char *labels;
  bool keep_sources; /* the graph keeps all that was read (load/sources.h) */
  /* The data sources; NULL: any source and key of `data:` passes. */
  weir_data_form_fn data_form;
} weir_load_options;

/* ---- Passes, each Graph -> Graph */

/* The request for a simplified graph. */
typedef struct weir_simplify_options {
  const weir_value_id *values; /* wanted */
  size_t value_count;
  const weir_node_id *nodes; /* wanted for their effect */
  size_t node_count;
  /* One for each graph input, or NULL: nothing is known. A fed input loses its
   * default; one that is not fed is replaced by it. */
  const bool *fed;
  bool keep_equal; /* do not merge equal nodes */
  bool drop_inits; /* variables have their values: forget how they began */
} weir_simplify_options;

#endif
