/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_YAML_H_
#define WEIR_BASE_YAML_H_

#include "runtime/base/alloc.h"
#include "runtime/base/diag/diag.h"
#include "runtime/base/status.h"
#include "runtime/base/sv.h"

/* A YAML document as a tree that remembers where everything stood.
 *
 * libyaml's events come in; aliases are resolved (both places are kept), `<<`
 * is merged, tags, tabs, duplicate keys, a second document, deep nesting and
 * bombs are refused. Scalars stay text: the caller decides their meaning, by
 * the rules of the YAML 1.2 core schema and no others (`no`, `on` and `010` are
 * text). The tree lives in the caller's arena and is immutable; building it
 * does not recurse.
 *
 * A mark's end is exclusive. An alias is a node of its own (|mark| is where the
 * alias stands) that shares the items below with the anchored one. A map's own
 * keys win over `<<`, earlier maps of its list over later ones; merged entries
 * stand last. Written out, aliases may make ten times the values of the file
 * (10,000 in small files); neither they nor merging cost time or memory beyond
 * that, and both count for the depth. */

typedef enum weir_yaml_kind {
  WEIR_YAML_SCALAR,
  WEIR_YAML_LIST,
  WEIR_YAML_MAP,
  WEIR_YAML_KIND_COUNT
} weir_yaml_kind;

/* "a scalar", "a list", "a map". */
const char *weir_yaml_kind_text(weir_yaml_kind kind);

typedef struct weir_yaml weir_yaml;
typedef struct weir_yaml_entry weir_yaml_entry;

struct weir_yaml {
  weir_yaml_kind kind;
  bool plain;       /* scalar without quotes and not a block scalar */
  uint32_t count;   /* items or entries */
  weir_mark mark;   /* start and end; |file| lives in the arena */
  weir_mark anchor; /* where the anchor stands when read through an alias */
  union {
    weir_sv text;                   /* scalar */
    const weir_yaml *const *items;  /* list, in file order */
    const weir_yaml_entry *entries; /* map, in file order, keys are unique */
  };
};

struct weir_yaml_entry {
  weir_sv key;
  weir_mark key_mark;
  const weir_yaml *value;
};

/* Bounds on untrusted text; 0 takes the default. */
typedef struct weir_yaml_limits {
  size_t bytes;   /* of the file: 64 MiB */
  uint32_t depth; /* of nested collections: 64 */
  uint64_t nodes; /* in the tree, before aliases: 16 M */
} weir_yaml_limits;

/* Parses |text| (called |file| in messages; copied) into |arena|. The scalars
 * are copied too: |text| may go. Reports every error it can go on after to
 * |sink| (may be NULL); |err| holds the first.
 * Errors: W1001-W1008, W1010 (of `<<`), W1011, W1013, W6001; at most 100 are
 * reported, and syntax errors, limits and lack of memory end reading. */
weir_status weir_yaml_parse(weir_sv text, const char *file,
                            const weir_yaml_limits *limits, weir_arena *arena,
                            const weir_diag_sink *sink,
                            const weir_yaml **out_root, weir_error *err);

/* What weir_yaml_parse_into reads, and where its parts go. */
typedef struct weir_yaml_request {
  weir_sv text;
  const char *file;
  const weir_yaml_limits *limits; /* NULL: the defaults */
  weir_arena *tree;
  weir_arena
      *texts; /* of scalars, keys and |file|: they may outlive the tree */
  bool lent;  /* |text| lives as long as |texts|: scalars may lie in it */
} weir_yaml_request;

/* weir_yaml_parse into two arenas. */
weir_status weir_yaml_parse_into(const weir_yaml_request *request,
                                 const weir_diag_sink *sink,
                                 const weir_yaml **out_root, weir_error *err);

/* The value of |key| in a map, or NULL; for a map only. Reads the entries one
 * after the other: for looking up known keys, not for large maps. */
const weir_yaml *weir_yaml_get(const weir_yaml *map, const char *key);
const weir_yaml_entry *weir_yaml_entry_of(const weir_yaml *map, weir_sv key);

/* The mark of |size| bytes that start |offset| bytes into a plain scalar; for
 * carets into call strings. Exact for single-line scalars, quoted ones without
 * escapes too; else, and through an alias, the whole scalar's mark. Costs a
 * pass over the scalar: for messages. */
weir_mark weir_yaml_mark_within(const weir_yaml *scalar, size_t offset,
                                size_t size);

#endif
