/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_YAML_BUILD_H_
#define WEIR_BASE_YAML_BUILD_H_

#include <yaml.h>

#include "runtime/base/map.h"
#include "runtime/base/vec.h"
#include "runtime/base/yaml/yaml.h"

/* Inside the YAML reader only: the state while a tree is built.
 *
 * Open collections stand on |frames|; their finished items on |pending|, the
 * innermost collection's last, and move to the arena when it ends. Every
 * function returns false when reading must stop: the builder's |status| then
 * says why. */

/* An anchor (&name) and its value. */
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
  weir_arena *arena; /* of the tree */
  weir_arena *texts;
  bool lent;        /* scalars may lie in |text| */
  weir_sv text;     /* after a byte order mark */
  size_t bom_bytes; /* before |text| */
  const char *file; /* in |texts| */
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

#endif
