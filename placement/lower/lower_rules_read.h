/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_LOWER_RULES_READ_H_
#define WEIR_PLACEMENT_LOWER_RULES_READ_H_

#include "runtime/base/map.h"
#include "runtime/base/vec.h"
#include "runtime/device/name.h"
#include "runtime/graph/graph.h"

/* The rules of `placement:`, and the first one that a node meets. */

/* A rule, read. */
typedef struct weir_lower_rule {
  weir_sv match;
  weir_sv with; /* the node that its nodes are to be with; empty: none */
  weir_device_name device;
  bool has_device, soft, balance;
  const weir_yaml *prefer; /* a list of names of devices, or NULL */
  weir_mark mark;
  bool told, told_fallback; /* the warning was given */
} weir_lower_rule;

/* All of them, lent by the section, and where their patterns are found: a rule
 * without wildcards by its text, one that ends in its only `*` by the text
 * before it, the others one by one. */
typedef struct weir_lower_rules {
  const weir_allocator *alloc;
  weir_lower_rule *items;
  uint32_t count;
  weir_map whole, beginning; /* text to the first rule that has it */
  uint64_t sizes[4];         /* bits: sizes of beginnings, of 0 to 255 bytes */
  WEIR_VEC(uint32_t) others; /* in order */
} weir_lower_rules;

/* Reads |section| (may be NULL). Release |out| also after a failure. Errors:
 * W3020, W1115 with a place, W6001. */
weir_status weir_lower_rules_read(const weir_allocator *alloc,
                                  const weir_yaml *section,
                                  weir_lower_rules *out, weir_error *err);
void weir_lower_rules_release(weir_lower_rules *rules);
/* The first rule that |node| meets, or WEIR_PLACE_NONE. Cost: O(bytes of its
 * name), and a look at each of the others before that rule. */
uint32_t weir_lower_rules_find(const weir_lower_rules *rules,
                               const weir_node *node);

/* Whether |pattern| of a rule fits |node|: "w*" by name, "kind:var",
 * "op:matmul". */
bool weir_place_pattern_matches(weir_sv pattern, const weir_node *node);

#endif
