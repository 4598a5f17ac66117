/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_INSTANCE_JSON_H_
#define PLACEMENT_INSTANCE_JSON_H_

#include "placement/bench/instance.h"
#include "runtime/base/json/json.h"
#include "runtime/base/map.h"

/* The common part of the two JSON formats: nodes that are named before or after
 * the edges between them, in any order, read once and then put in topological
 * order. All positions are byte offsets until a message needs line and column.
 * Errors are W3015 (W4013 where the text is no JSON), W6001. */

enum { WEIR_INSTANCE_NODES = 4000000 };
/* No sum of times of an accepted file is larger, in ns. */
#define WEIR_INSTANCE_TOTAL_NS 1e17
/* Nor any sum of sizes. */
#define WEIR_INSTANCE_TOTAL_BYTES 1e18

typedef struct weir_instance_node {
  weir_sv name;
  size_t at; /* its object, in the text */
} weir_instance_node;

typedef struct weir_instance_edge {
  weir_sv from_name, to_name; /* in the arena, or in the text */
  uint32_t from, to;          /* once resolved */
  int64_t bytes;
  size_t at; /* its object, in the text */
  uint32_t tensor;
} weir_instance_edge;

typedef struct weir_instance_source {
  const weir_allocator *alloc;
  const char *name; /* of the file */
  weir_json_reader json;
  weir_arena arena; /* texts with escapes */
  weir_map node_of; /* by name */
  WEIR_VEC(weir_instance_node) nodes;
  WEIR_VEC(weir_instance_edge) edges;
  double total_ns, total_bytes; /* so far; weir_instance_count */
  weir_error *err;
} weir_instance_source;

/* Starts reading |text|; |text|, |name| and |err| are borrowed until the end.
 */
void weir_instance_begin(weir_instance_source *s, const weir_allocator *alloc,
                         weir_sv text, const char *name, weir_error *err);
/* Frees everything; the texts of nodes and edges with it. */
void weir_instance_end(weir_instance_source *s);

/* W3015 at the current token, or at byte |at|. */
weir_status weir_instance_fail(const weir_instance_source *s, const char *fmt,
                               ...) WEIR_PRINTF(2, 3);
weir_status weir_instance_fail_at(const weir_instance_source *s, size_t at,
                                  const char *fmt, ...) WEIR_PRINTF(3, 4);

/* The value of the current key; |what| is for messages. */
weir_status weir_instance_number(weir_instance_source *s, const char *what,
                                 double least, double most, double *out);
weir_status weir_instance_text(weir_instance_source *s, const char *what,
                               weir_sv *out);
/* An integer, as the digits in the text: a key of a map. */
weir_status weir_instance_id(weir_instance_source *s, const char *what,
                             weir_sv *out);
weir_status weir_instance_bool(weir_instance_source *s, const char *what,
                               bool *out);
/* The list of objects after the current key: |item| is called with each one's
 * first brace read, its place being |at|. */
typedef weir_status (*weir_instance_item)(void *self, size_t at);
weir_status weir_instance_list(weir_instance_source *s, const char *what,
                               weir_instance_item item, void *self);

/* Adds a node that is called |name|, which must be new. */
weir_status weir_instance_add_node(weir_instance_source *s, weir_sv name,
                                   size_t at);
weir_status weir_instance_add_edge(weir_instance_source *s,
                                   const weir_instance_edge *edge);

/* Counts times and bytes of |node|; an error once there is too much. */
weir_status weir_instance_count(weir_instance_source *s, uint32_t node,
                                double ns, double bytes);

/* Finds the edges' ends and calls |emit| for each node in topological order
 * (by index where free) with the edges that end and begin at it, which it may
 * change. */
typedef struct weir_instance_visitor {
  void *self;
  weir_status (*emit)(void *self, uint32_t node, weir_instance_edge **in,
                      uint32_t in_count, weir_instance_edge **out,
                      uint32_t out_count);
} weir_instance_visitor;
weir_status weir_instance_visit(weir_instance_source *s,
                                const weir_instance_visitor *visitor);

#endif
