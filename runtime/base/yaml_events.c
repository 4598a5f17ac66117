/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "runtime/base/size.h"
#include "runtime/base/utf8.h"
#include "runtime/base/yaml_build.h"

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

/* A finished value with |expanded| values and |height| collections in it goes
 * to the collection that is open, or is the root. */
static bool add_value(weir_yaml_builder *b, const weir_yaml *node,
                      uint64_t expanded, uint32_t height) {
  weir_yaml_frame *f = top(b);
  if (f == NULL) {
    b->root = node;
    b->expanded = expanded;
    return true;
  }
  if (wants_key(b)) {
    if (node->kind != WEIR_YAML_SCALAR)
      return weir_yaml_stop(b, WEIR_W1001, &node->mark, NULL, NULL,
                            "a key must be text, found a %s",
                            node->kind == WEIR_YAML_MAP ? "map" : "list");
    set_key(b, node->text, node->mark, node->plain);
    return true;
  }
  if (__builtin_add_overflow(f->expanded, expanded, &f->expanded))
    f->expanded = UINT64_MAX;
  if (f->merge_at == b->pending.count - f->first) /* only what is in it stays */
    height -= node->kind == WEIR_YAML_LIST && height > 1 ? 2 : height > 0;
  if (height > f->height) f->height = height;
  f->has_key = false;
  f->key.value = node;
  return weir_vec_push(b->alloc, &b->pending, f->key) ||
         weir_yaml_no_memory(b, sizeof f->key);
}

static bool count_value(weir_yaml_builder *b, const weir_mark *mark) {
  if (++b->spelled <= b->limits.nodes) return true;
  return weir_yaml_stop(b, WEIR_W1013, mark, NULL, NULL,
                        "the file holds more than %" PRIu64 " values",
                        b->limits.nodes);
}

static weir_yaml *new_node(weir_yaml_builder *b, weir_yaml_kind kind,
                           weir_mark mark) {
  weir_yaml *node = weir_arena_alloc(b->arena, sizeof *node);
  if (node == NULL) {
    weir_yaml_no_memory(b, sizeof *node);
    return NULL;
  }
  *node = (weir_yaml){.kind = kind, .mark = mark};
  return node;
}

static bool refuse_tag(weir_yaml_builder *b, const yaml_char_t *tag,
                       const weir_mark *mark) {
  if (tag == NULL) return true;
  weir_mark at = *mark;
  at.end_line = at.line;
  at.end_col = at.col + 1;
  return weir_yaml_report(b, WEIR_W1005, &at, NULL, NULL,
                          "the tag '%.100s' has no meaning in a graph file",
                          (const char *)tag);
}

/* --- anchors --- */

/* The index of the anchor |name| at the start of |value|; it names nothing
 * yet. A later anchor of the same name takes the earlier one's place. */
static bool open_anchor(weir_yaml_builder *b, const yaml_char_t *name,
                        const weir_mark *value, uint32_t *out_index) {
  *out_index = WEIR_MAP_NONE;
  if (name == NULL) return true;
  weir_sv key = weir_sv_from((const char *)name);
  weir_yaml_anchor anchor = {.mark = *value};
  anchor.mark.end_line = anchor.mark.line;
  anchor.mark.end_col = anchor.mark.col + (uint32_t)weir_utf8_count(key) + 1;
  *out_index = weir_map_get(&b->anchor_names, key);
  if (*out_index != WEIR_MAP_NONE) {
    b->anchors.items[*out_index] = anchor;
    return true;
  }
  char *copy = weir_arena_string(b->arena, key.data, key.size);
  *out_index = (uint32_t)b->anchors.count;
  if (copy == NULL || !weir_vec_push(b->alloc, &b->anchors, anchor) ||
      !weir_map_put(&b->anchor_names, (weir_sv){copy, key.size}, *out_index,
                    NULL))
    return weir_yaml_no_memory(b, key.size + 1);
  return true;
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

static bool bad_alias(weir_yaml_builder *b, const weir_mark *mark,
                      const char *name, const weir_yaml_anchor *open) {
  bool more =
      open != NULL
          ? weir_yaml_report(b, WEIR_W1011, mark, &open->mark, "still open",
                             "*%.100s stands inside its own anchor", name)
          : weir_yaml_report(b, WEIR_W1011, mark, NULL, NULL,
                             "no anchor &%.100s stands before this alias",
                             name);
  weir_yaml *node = more ? new_node(b, WEIR_YAML_SCALAR, *mark) : NULL;
  if (node == NULL) return false;
  node->plain = true;
  node->text = WEIR_SV_LIT("");
  return add_value(b, node, 1, 0);
}

static bool on_alias(weir_yaml_builder *b, const yaml_event_t *event) {
  const char *name = (const char *)event->data.alias.anchor;
  weir_mark mark = weir_yaml_span(b, &event->start_mark, &event->end_mark);
  uint32_t index = weir_map_get(&b->anchor_names, weir_sv_from(name));
  if (!count_value(b, &mark)) return false;
  const weir_yaml_anchor *a =
      index != WEIR_MAP_NONE ? &b->anchors.items[index] : NULL;
  if (a == NULL || a->node == NULL) return bad_alias(b, &mark, name, a);
  if (b->frames.count + a->height > b->limits.depth)
    return weir_yaml_stop(b, WEIR_W1003, &mark, &a->mark, "named here",
                          "with this alias collections nest deeper than %u",
                          b->limits.depth);
  if (a->expanded > b->widest_expanded) {
    b->widest_expanded = a->expanded;
    b->widest_alias = mark;
    b->widest_anchor = a->mark;
  }
  weir_yaml *node = new_node(b, a->node->kind, mark);
  if (node == NULL) return false;
  *node = *a->node; /* shares what is below */
  node->mark = mark;
  node->anchor = a->mark;
  return add_value(b, node, a->expanded, a->height);
}

/* --- scalars --- */

/* The mark without the anchor or tag that libyaml counts in, where that can be
 * told: plain text on one line. */
static void skip_properties(weir_mark *mark, weir_sv text) {
  uint32_t points = (uint32_t)weir_utf8_count(text);
  if (mark->line == mark->end_line && mark->end_col - mark->col > points)
    mark->col = mark->end_col - points;
}

static bool on_scalar(weir_yaml_builder *b, const yaml_event_t *event) {
  const yaml_char_t *anchor_name = event->data.scalar.anchor;
  weir_mark mark = weir_yaml_span(b, &event->start_mark, &event->end_mark);
  size_t size = event->data.scalar.length;
  bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  uint32_t anchor;
  if (!refuse_tag(b, event->data.scalar.tag, &mark) ||
      !open_anchor(b, anchor_name, &mark, &anchor))
    return false;
  char *copy =
      weir_arena_string(b->arena, (const char *)event->data.scalar.value, size);
  if (copy == NULL) return weir_yaml_no_memory(b, size + 1);
  weir_sv text = {copy, size};
  if (plain && anchor_name != NULL) skip_properties(&mark, text);
  if (wants_key(b) && anchor_name == NULL) {
    set_key(b, text, mark, plain);
    return true;
  }
  weir_yaml *node = new_node(b, WEIR_YAML_SCALAR, mark);
  if (node == NULL || !count_value(b, &mark)) return false;
  node->plain = plain;
  node->text = text;
  close_anchor(b, anchor, node, 1, 0);
  return add_value(b, node, 1, 0);
}

/* --- collections --- */

static bool open_collection(weir_yaml_builder *b, const yaml_event_t *event,
                            weir_yaml_kind kind) {
  bool map = kind == WEIR_YAML_MAP;
  const yaml_char_t *tag =
      map ? event->data.mapping_start.tag : event->data.sequence_start.tag;
  const yaml_char_t *name = map ? event->data.mapping_start.anchor
                                : event->data.sequence_start.anchor;
  weir_mark mark = weir_yaml_span(b, &event->start_mark, &event->end_mark);
  weir_yaml_frame frame = {
      .first = b->pending.count, .merge_at = WEIR_MAP_NONE, .expanded = 1};
  frame.block =
      map ? event->data.mapping_start.style == YAML_BLOCK_MAPPING_STYLE
          : event->data.sequence_start.style == YAML_BLOCK_SEQUENCE_STYLE;
  if (b->frames.count >= b->limits.depth)
    return weir_yaml_stop(b, WEIR_W1003, &mark, NULL, NULL,
                          "collections nest deeper than %u", b->limits.depth);
  if (!refuse_tag(b, tag, &mark) || !count_value(b, &mark) ||
      !open_anchor(b, name, &mark, &frame.anchor))
    return false;
  frame.node = new_node(b, kind, mark);
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
                    const yaml_event_t *event) {
  weir_mark *mark = &f->node->mark;
  weir_mark end = weir_yaml_span(b, &event->start_mark, &event->end_mark);
  if (f->block && b->pending.count > f->first)
    end = b->pending.items[b->pending.count - 1].value->mark;
  mark->end_line = end.end_line;
  mark->end_col = end.end_col;
}

static bool close_collection(weir_yaml_builder *b, const yaml_event_t *event) {
  weir_yaml_frame f = *top(b);
  set_end(b, &f, event);
  if (f.node->kind == WEIR_YAML_MAP && !weir_yaml_finish_map(b, &f))
    return false;
  if (!keep_items(b, &f)) return false;
  b->pending.count = f.first;
  b->frames.count--;
  close_anchor(b, f.anchor, f.node, f.expanded, f.height + 1);
  return add_value(b, f.node, f.expanded, f.height + 1);
}

static bool on_document(weir_yaml_builder *b, const yaml_event_t *event) {
  weir_mark mark = weir_yaml_span(b, &event->start_mark, &event->end_mark);
  if (b->document.line != 0)
    return weir_yaml_stop(b, WEIR_W1007, &mark, &b->document,
                          "the first document",
                          "a second document starts here");
  b->document = mark;
  return true;
}

bool weir_yaml_build_event(weir_yaml_builder *b, const yaml_event_t *event) {
  switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
      return on_document(b, event);
    case YAML_ALIAS_EVENT:
      return on_alias(b, event);
    case YAML_SCALAR_EVENT:
      return on_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
      return open_collection(b, event, WEIR_YAML_LIST);
    case YAML_MAPPING_START_EVENT:
      return open_collection(b, event, WEIR_YAML_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
      return close_collection(b, event);
    default:
      return true;
  }
}
