/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/yaml/yaml_events.h"

#include "runtime/base/utf8.h"
#include "runtime/base/yaml/yaml_build.h"
#include "runtime/base/yaml/yaml_error.h"
#include "runtime/base/yaml/yaml_tree.h"

static bool refuse_tag(weir_yaml_builder *b, const yaml_char_t *tag,
                       const weir_mark *mark) {
  if (tag == NULL) return true;
  weir_mark at = *mark;
  at.end_line = at.line;
  at.end_col = at.col + 1;
  return weir_yaml_report(b, WEIR_W1005, &at, NULL,
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
  char *copy = weir_arena_string(b->texts, key.data, key.size);
  *out_index = (uint32_t)b->anchors.count;
  if (copy == NULL || !weir_vec_push(b->alloc, &b->anchors, anchor) ||
      !weir_map_put(&b->anchor_names, (weir_sv){copy, key.size}, *out_index,
                    NULL))
    return weir_yaml_no_memory(b, key.size + 1);
  return true;
}

static bool bad_alias(weir_yaml_builder *b, const weir_mark *mark,
                      const char *name, const weir_yaml_anchor *open) {
  bool more =
      open != NULL
          ? weir_yaml_report(b, WEIR_W1011, mark,
                             &(weir_yaml_label){&open->mark, "still open"},
                             "*%.100s stands inside its own anchor", name)
          : weir_yaml_report(b, WEIR_W1011, mark, NULL,
                             "no anchor &%.100s stands before this alias",
                             name);
  weir_yaml *node =
      more ? weir_yaml_new_node(b, WEIR_YAML_SCALAR, *mark) : NULL;
  if (node == NULL) return false;
  node->plain = true;
  node->text = WEIR_SV_LIT("");
  return weir_yaml_add_value(b, node, 1, 0);
}

static bool on_alias(weir_yaml_builder *b, const yaml_event_t *event) {
  const char *name = (const char *)event->data.alias.anchor;
  weir_mark mark = weir_yaml_span(b, &event->start_mark, &event->end_mark);
  uint32_t index = weir_map_get(&b->anchor_names, weir_sv_from(name));
  if (!weir_yaml_count_value(b, &mark)) return false;
  const weir_yaml_anchor *a =
      index != WEIR_MAP_NONE ? &b->anchors.items[index] : NULL;
  if (a == NULL || a->node == NULL) return bad_alias(b, &mark, name, a);
  if (b->frames.count + a->height > b->limits.depth)
    return weir_yaml_stop(
        b, WEIR_W1003, &mark, &(weir_yaml_label){&a->mark, "named here"},
        "with this alias collections nest deeper than %u", b->limits.depth);
  if (a->expanded > b->widest_expanded) {
    b->widest_expanded = a->expanded;
    b->widest_alias = mark;
    b->widest_anchor = a->mark;
  }
  weir_yaml *node = weir_yaml_new_node(b, a->node->kind, mark);
  if (node == NULL) return false;
  *node = *a->node; /* shares the nodes below it */
  node->mark = mark;
  node->anchor = a->mark;
  return weir_yaml_add_value(b, node, a->expanded, a->height);
}

/* --- scalars --- */

/* The mark without the anchor or tag that libyaml counts in, where that can be
 * seen: plain text on one line. */
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
      weir_arena_string(b->texts, (const char *)event->data.scalar.value, size);
  if (copy == NULL) return weir_yaml_no_memory(b, size + 1);
  weir_sv text = {copy, size};
  if (plain && anchor_name != NULL) skip_properties(&mark, text);
  return weir_yaml_add_scalar(b, text, mark, plain, anchor);
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
  bool block =
      map ? event->data.mapping_start.style == YAML_BLOCK_MAPPING_STYLE
          : event->data.sequence_start.style == YAML_BLOCK_SEQUENCE_STYLE;
  uint32_t anchor;
  return refuse_tag(b, tag, &mark) && open_anchor(b, name, &mark, &anchor) &&
         weir_yaml_open(b, kind, mark, block, anchor);
}

static bool close_collection(weir_yaml_builder *b, const yaml_event_t *event) {
  weir_mark end = weir_yaml_span(b, &event->start_mark, &event->end_mark);
  return weir_yaml_close(b, &end);
}

static bool on_document(weir_yaml_builder *b, const yaml_event_t *event) {
  weir_mark mark = weir_yaml_span(b, &event->start_mark, &event->end_mark);
  if (b->document.line != 0)
    return weir_yaml_stop(
        b, WEIR_W1007, &mark,
        &(weir_yaml_label){&b->document, "the first document"},
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
