/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_YAML_TREE_H_
#define WEIR_BASE_YAML_TREE_H_

#include "runtime/base/yaml/yaml_build.h"

/* Builds the tree; both readers use it. */

/* A scalar or key. |text| lives in the arena; |anchor| is an index or
 * WEIR_MAP_NONE. */
bool weir_yaml_add_scalar(weir_yaml_builder *b, weir_sv text, weir_mark mark,
                          bool plain, uint32_t anchor);

/* A collection starts at |mark|'s start; later values go into it. */
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

#endif
