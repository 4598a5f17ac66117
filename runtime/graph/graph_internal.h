/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_GRAPH_INTERNAL_H_
#define WEIR_GRAPH_GRAPH_INTERNAL_H_

#include "ops/shape_ctx.h"
#include "runtime/base/map.h"
#include "runtime/base/vec.h"
#include "runtime/graph/builder.h"

/* Inside runtime/graph: the parts of a graph besides its public ones, and the
 * state of a builder. */

/* Node names to ids: open addressing over (hash, id + 1). */
typedef struct weir_name_slot {
  uint32_t hash, id_plus_1;
} weir_name_slot;

typedef struct weir_name_table {
  weir_name_slot *slots;
  uint32_t count, capacity; /* capacity is 0 or a power of two */
} weir_name_table;

/* Distinct shapes of a graph. */
typedef struct weir_shape_table {
  const weir_shape **slots;
  uint32_t count, capacity;
} weir_shape_table;

typedef struct weir_graph_full {
  weir_graph g; /* first */
  WEIR_VEC(weir_node) nodes;
  WEIR_VEC(weir_value) values;
  WEIR_VEC(weir_graph_port) inputs;
  WEIR_VEC(weir_graph_port) outputs;
  WEIR_VEC(const char *) symbols;
  WEIR_VEC(weir_tensor *) tensors;     /* references held */
  WEIR_VEC(const weir_graph *) bodies; /* references held */
  weir_name_table names;
  weir_map value_names;
  const weir_graph *parent;          /* reference held; may be NULL */
  struct weir_source_keeper *keeper; /* of the first graph of a chain */
  atomic_int children;               /* derived graphs that hold this one */
} weir_graph_full;

static inline const weir_graph_full *weir_graph_full_of(const weir_graph *g) {
  return (const weir_graph_full *)g;
}

/* One output while a shape rule runs. */
typedef struct weir_infer_out {
  const weir_shape *shape; /* interned; NULL until set */
  weir_dtype dtype;
  weir_tensor *known; /* held by the graph */
} weir_infer_out;

enum { WEIR_SHAPE_TEXTS = 8, WEIR_SHAPE_TEXT_BYTES = 256 };

/* The node being added, as its shape rule sees it (infer.c). */
typedef struct weir_infer {
  weir_shape_ctx base; /* first */
  weir_graph_builder *builder;
  const weir_op_info *info;
  const weir_node_spec *spec;
  weir_infer_out *outs;
  unsigned vars[WEIR_OP_TYPES]; /* dtype bound to each type variable, or 0 */
  weir_diag *diag;
  bool memory_failed;
  unsigned text_at;
  char texts[WEIR_SHAPE_TEXTS][WEIR_SHAPE_TEXT_BYTES];
} weir_infer;

static inline weir_infer *weir_infer_of(weir_shape_ctx *ctx) {
  return (weir_infer *)ctx;
}

extern const weir_shape_vtable weir_infer_vtable;

enum { WEIR_OP_SLOTS = 512 };

struct weir_graph_builder {
  weir_graph_full *graph;
  const weir_allocator *alloc;
  weir_graph_builder *outer; /* of a body: numbers its symbols */
  weir_arena scratch;        /* op infos */
  weir_op_info *ops[WEIR_OP_SLOTS];
  size_t op_count;
  weir_shape_table shapes;
  weir_map symbols;
  WEIR_VEC(weir_infer_out) outs;
  weir_infer ctx;
  weir_diag diag; /* used when the caller gives none */
};

/* Points g's arrays at the vectors. */
void weir_graph_sync(weir_graph_full *graph);

/* Text of a value for messages: its node's name, ":1" for later outputs. */
const char *weir_value_label(const weir_graph *graph, weir_value_id id,
                             char *text, size_t capacity);

#endif
