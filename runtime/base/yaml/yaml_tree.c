/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/yaml/yaml_tree.h"

#include <assert.h>
#include <inttypes.h>

#include "runtime/base/size.h"
#include "runtime/base/yaml/yaml_build.h"
#include "runtime/base/yaml/yaml_error.h"
#include "runtime/base/yaml/yaml_keys.h"

enum { kLookEvery = 256 };

static weir_yaml_frame *top(weir_yaml_builder *b) {
  return b->frames.count > 0 ? &b->frames.items[b->frames.count - 1] : NULL;
}

static bool wants_key(weir_yaml_builder *b) {
  const weir_yaml_frame *f = top(b);
  return f != NULL && f->node->kind == WEIR_YAML_MAP && !f->has_key;
}

static void set_key(weir_yaml_builder *b, weir_sv text, weir_mark mark,
                    bool plain) {
  weir_yaml_frame *f = top(b);
  f->key = (weir_yaml_entry){text, mark, NULL};
  f->has_key = true;
  if (plain && f->merge_at == WEIR_MAP_NONE && weir_sv_is(text, "<<"))
    f->merge_at = (uint32_t)(b->pending.count - f->first);
}

bool weir_yaml_add_value(weir_yaml_builder *b, const weir_yaml *node,
                         uint64_t expanded, uint32_t height) {
  weir_yaml_frame *f = top(b);
  if (f == NULL) {
    b->root = node;
    b->expanded = expanded;
    return true;
  }
  if (wants_key(b)) {
    if (node->kind != WEIR_YAML_SCALAR)
      return weir_yaml_stop(b, WEIR_W1001, &node->mark, NULL,
                            "a key must be text, found a %s",
                            node->kind == WEIR_YAML_MAP ? "map" : "list");
    set_key(b, node->text, node->mark, node->plain);
    return true;
  }
  if (__builtin_add_overflow(f->expanded, expanded, &f->expanded))
    f->expanded = UINT64_MAX;
  /* The value of `<<` goes, its entries stay: one level less, or two. */
  if (f->merge_at == b->pending.count - f->first)
    height -= node->kind == WEIR_YAML_LIST && height > 1 ? 2 : height > 0;
  if (height > f->height) f->height = height;
  f->has_key = false;
  f->key.value = node;
  return weir_vec_push(b->alloc, &b->pending, f->key) ||
         weir_yaml_no_memory(b, sizeof f->key);
}

bool weir_yaml_count_value(weir_yaml_builder *b, const weir_mark *mark) {
  if (++b->spelled % kLookEvery == 0 && !weir_yaml_in_time(b)) return false;
  if (b->spelled <= b->limits.nodes) return true;
  return weir_yaml_stop(b, WEIR_W1013, mark, NULL,
                        "the file holds more than %" PRIu64 " values",
                        b->limits.nodes);
}

weir_yaml *weir_yaml_new_node(weir_yaml_builder *b, weir_yaml_kind kind,
                              weir_mark mark) {
  weir_yaml *node = weir_arena_alloc(b->arena, sizeof *node);
  if (node == NULL) {
    weir_yaml_no_memory(b, sizeof *node);
    return NULL;
  }
  *node = (weir_yaml){.kind = kind, .mark = mark};
  return node;
}

static void close_anchor(weir_yaml_builder *b, uint32_t index,
                         const weir_yaml *node, uint64_t expanded,
                         uint32_t height) {
  if (index == WEIR_MAP_NONE) return;
  weir_yaml_anchor *a = &b->anchors.items[index];
  a->node = node;
  a->expanded = expanded;
  a->height = height;
}

bool weir_yaml_add_scalar(weir_yaml_builder *b, weir_sv text, weir_mark mark,
                          bool plain, uint32_t anchor) {
  if (wants_key(b) && anchor == WEIR_MAP_NONE) {
    set_key(b, text, mark, plain);
    return true;
  }
  weir_yaml *node = weir_yaml_new_node(b, WEIR_YAML_SCALAR, mark);
  if (node == NULL || !weir_yaml_count_value(b, &mark)) return false;
  node->plain = plain;
  node->text = text;
  close_anchor(b, anchor, node, 1, 0);
  return weir_yaml_add_value(b, node, 1, 0);
}

bool weir_yaml_open(weir_yaml_builder *b, weir_yaml_kind kind, weir_mark mark,
                    bool block, uint32_t anchor) {
  weir_yaml_frame frame = {.first = b->pending.count,
                           .anchor = anchor,
                           .merge_at = WEIR_MAP_NONE,
                           .block = block,
                           .expanded = 1};
  if (b->frames.count >= b->limits.depth)
    return weir_yaml_stop(b, WEIR_W1003, &mark, NULL,
                          "collections nest deeper than %u", b->limits.depth);
  if (!weir_yaml_count_value(b, &mark)) return false;
  frame.node = weir_yaml_new_node(b, kind, mark);
  if (frame.node == NULL) return false;
  return weir_vec_push(b->alloc, &b->frames, frame) ||
         weir_yaml_no_memory(b, sizeof frame);
}

/* Moves the frame's items from |pending| to the arena. */
static bool keep_items(weir_yaml_builder *b, const weir_yaml_frame *f) {
  size_t count = b->pending.count - f->first, bytes;
  bool map = f->node->kind == WEIR_YAML_MAP;
  if (count == 0) return true;
  const weir_yaml_entry *from = b->pending.items + f->first;
  if (!weir_size_mul(count, map ? sizeof *from : sizeof from->value, &bytes))
    return weir_yaml_no_memory(b, SIZE_MAX);
  void *kept = weir_arena_alloc(b->arena, bytes);
  if (kept == NULL) return weir_yaml_no_memory(b, bytes);
  f->node->count = (uint32_t)count;
  if (map) {
    memcpy(kept, from, bytes);
    f->node->entries = kept;
    return true;
  }
  const weir_yaml **items = kept;
  for (size_t i = 0; i < count; i++) items[i] = from[i].value;
  f->node->items = items;
  return true;
}

/* libyaml ends a block collection where the next thing starts; ours ends with
 * its last value. */
static void set_end(const weir_yaml_builder *b, const weir_yaml_frame *f,
                    const weir_mark *end) {
  if (f->block && b->pending.count > f->first)
    end = &b->pending.items[b->pending.count - 1].value->mark;
  f->node->mark.end_line = end->end_line;
  f->node->mark.end_col = end->end_col;
}

bool weir_yaml_close(weir_yaml_builder *b, const weir_mark *end) {
  assert(b->frames.count > 0); /* libyaml's events are balanced */
  weir_yaml_frame f = *top(b);
  assert(f.first <= b->pending.count);
  set_end(b, &f, end);
  if (f.node->kind == WEIR_YAML_MAP && !weir_yaml_finish_map(b, &f))
    return false;
  if (!keep_items(b, &f)) return false;
  b->pending.count = f.first;
  b->frames.count--;
  close_anchor(b, f.anchor, f.node, f.expanded, f.height + 1);
  return weir_yaml_add_value(b, f.node, f.expanded, f.height + 1);
}
