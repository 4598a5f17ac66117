/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_YAML_BUILD_H_
#define WEIR_BASE_YAML_BUILD_H_

#include <yaml.h>

#include "runtime/base/map.h"
#include "runtime/base/vec.h"
#include "runtime/base/yaml/yaml.h"

/* Inside the YAML reader only: what is known while a tree is built.
 *
 * Open collections stand on |frames|; their finished items on |pending|, the
 * innermost collection's last, and move to the arena when it ends. Every
 * function returns false when reading must stop: the builder's |status| then
 * says why. */

/* What an anchor (&name) names. */
typedef struct weir_yaml_anchor {
  const weir_yaml *node; /* NULL until its end was seen */
  weir_mark mark;        /* of &name */
  uint64_t expanded;     /* values in it when aliases are written out */
  uint32_t height;       /* collections nested in it */
} weir_yaml_anchor;

typedef struct weir_yaml_frame {
  weir_yaml *node;
  size_t first;        /* its first item in |pending| */
  uint32_t anchor;     /* index, or WEIR_MAP_NONE */
  uint32_t merge_at;   /* index of its `<<` entry, or WEIR_MAP_NONE */
  bool block;          /* written without brackets */
  bool has_key;        /* |key| waits for its value */
  weir_yaml_entry key; /* its value is unset */
  uint64_t expanded;
  uint32_t height;
} weir_yaml_frame;

typedef struct weir_yaml_builder {
  const weir_allocator *alloc;
  weir_arena *arena;
  weir_sv text;     /* after a byte order mark */
  size_t bom_bytes; /* before |text| */
  const char *file; /* in the arena */
  weir_yaml_limits limits;

  const weir_diag_sink *sink;
  weir_error *err;
  weir_status status; /* of the first error */
  uint32_t error_count;

  WEIR_VEC(weir_yaml_frame) frames;
  WEIR_VEC(weir_yaml_entry) pending;
  WEIR_VEC(weir_yaml_anchor) anchors;
  weir_map anchor_names; /* to index in |anchors| */
  uint32_t *key_slots;   /* scratch of the key index: entry + 1, 0 empty */
  size_t key_capacity;

  const weir_yaml *root;
  weir_mark document; /* where the first document starts; line 0: none */
  uint64_t spelled;   /* values written in the file */
  uint64_t merged;    /* entries copied by `<<` */
  uint64_t expanded;  /* of the root */
  weir_mark widest_alias, widest_anchor;
  uint64_t widest_expanded;
} weir_yaml_builder;

/* yaml_tree.c: what both readers build with. */

/* A scalar or key. |text| lives in the arena; |anchor| is an index or
 * WEIR_MAP_NONE. */
bool weir_yaml_add_scalar(weir_yaml_builder *b, weir_sv text, weir_mark mark,
                          bool plain, uint32_t anchor);
/* A collection starts at |mark|'s start; what follows goes into it. */
bool weir_yaml_open(weir_yaml_builder *b, weir_yaml_kind kind, weir_mark mark,
                    bool block, uint32_t anchor);
/* The innermost collection ends at |end|'s end. */
bool weir_yaml_close(weir_yaml_builder *b, const weir_mark *end);
/* A finished value with |expanded| values and |height| collections in it goes
 * to the collection that is open, or is the root. */
bool weir_yaml_add_value(weir_yaml_builder *b, const weir_yaml *node,
                         uint64_t expanded, uint32_t height);
/* One more value is written in the file. */
bool weir_yaml_count_value(weir_yaml_builder *b, const weir_mark *mark);
/* A node in the arena; NULL when out of memory, which is then reported. */
weir_yaml *weir_yaml_new_node(weir_yaml_builder *b, weir_yaml_kind kind,
                              weir_mark mark);

/* yaml_simple.c: true when |text| is of the simple kind that is read without
 * libyaml; then weir_yaml_read_simple builds the same tree several times
 * faster. */
bool weir_yaml_is_simple(weir_sv text);
bool weir_yaml_read_simple(weir_yaml_builder *b);

/* yaml_events.c: one event into the tree. */
bool weir_yaml_build_event(weir_yaml_builder *b, const yaml_event_t *event);

/* yaml_keys.c: the entries of the map that |frame| ends, from
 * |pending|[frame->first] on: refuses duplicates, resolves `<<`. */
bool weir_yaml_finish_map(weir_yaml_builder *b, const weir_yaml_frame *frame);

/* yaml_error.c */

/* Reports one error: the first fills |err|, each goes to the sink, with a label
 * at |other| (may be NULL). Returns true while reading may go on. */
bool weir_yaml_report(weir_yaml_builder *b, weir_error_id id,
                      const weir_mark *at, const weir_mark *other,
                      const char *other_label, const char *fmt, ...)
    WEIR_PRINTF(6, 7);

/* The same for an error that nothing can be read after; always false. */
bool weir_yaml_stop(weir_yaml_builder *b, weir_error_id id, const weir_mark *at,
                    const weir_mark *other, const char *other_label,
                    const char *fmt, ...) WEIR_PRINTF(6, 7);
bool weir_yaml_no_memory(weir_yaml_builder *b, size_t bytes);

/* Reports what stopped |parser|; always false. */
bool weir_yaml_parser_failed(weir_yaml_builder *b, const yaml_parser_t *parser);

/* Refuses text that libyaml must not see: too large, not UTF-8, NUL bytes, a
 * flood of directives. Skips a byte order mark. */
bool weir_yaml_check_text(weir_yaml_builder *b);

/* A span from libyaml's marks, which count from 0. */
weir_mark weir_yaml_span(const weir_yaml_builder *b, const yaml_mark_t *start,
                         const yaml_mark_t *end);

#endif
