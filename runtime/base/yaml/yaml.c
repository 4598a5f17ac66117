/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/yaml/yaml.h"

#include <inttypes.h>

#include "runtime/base/table.h"
#include "runtime/base/utf8.h"
#include "runtime/base/yaml/yaml_build.h"
#include "runtime/base/yaml/yaml_error.h"
#include "runtime/base/yaml/yaml_events.h"
#include "runtime/base/yaml/yaml_simple.h"

/* Large plain files go to a reader of our own (yaml_simple.c), all others to
 * libyaml; both build the tree by the same calls.
 *
 * Aliases share nodes, so the tree has the size of the file; a walk over it may
 * not, since aliases of aliases grow exponentially. Therefore the number of
 * values is also counted as if aliases were written out, and may be ten times
 * that of the file. */

enum { kDefaultDepth = 64, kAliasFactor = 10, kAliasFloor = 10000 };

const char *weir_yaml_kind_text(weir_yaml_kind kind) {
  static const char *const kTexts[] = {[WEIR_YAML_SCALAR] = "a scalar",
                                       [WEIR_YAML_LIST] = "a list",
                                       [WEIR_YAML_MAP] = "a map"};
  WEIR_TABLE_OF(kTexts, WEIR_YAML_KIND_COUNT);
  return kTexts[kind];
}

static weir_yaml_limits with_defaults(const weir_yaml_limits *limits) {
  weir_yaml_limits l = limits != NULL ? *limits : (weir_yaml_limits){0};
  if (l.bytes == 0) l.bytes = (size_t)64 << 20;
  if (l.depth == 0) l.depth = kDefaultDepth;
  if (l.nodes == 0) l.nodes = 16u << 20;
  if (l.nodes > UINT32_MAX / 2)
    l.nodes = UINT32_MAX / 2; /* counts are 32 bit */
  return l;
}

/* Feeds the parser's events to the builder until the end or an error. */
static bool read_events(weir_yaml_builder *b, yaml_parser_t *parser) {
  for (;;) {
    yaml_event_t event;
    if (!yaml_parser_parse(parser, &event))
      return weir_yaml_parser_failed(b, parser);
    bool last = event.type == YAML_STREAM_END_EVENT;
    bool more = weir_yaml_build_event(b, &event);
    yaml_event_delete(&event);
    if (!more) return false;
    if (last) return true;
  }
}

/* Lends libyaml the next piece of the text, if there is time for one: what it
 * makes of a piece is the longest that it works without a question. */
typedef struct yaml_source {
  weir_yaml_builder *b;
  size_t at;
} yaml_source;

static int read_piece(void *self, unsigned char *buffer, size_t size,
                      size_t *out_size) {
  yaml_source *source = self;
  size_t left = source->b->text.size - source->at;
  if (!weir_yaml_in_time(source->b)) return 0;
  *out_size = size < left ? size : left;
  if (*out_size > 0)
    memcpy(buffer, source->b->text.data + source->at, *out_size);
  source->at += *out_size;
  return 1;
}

static bool read_text(weir_yaml_builder *b) {
  yaml_parser_t parser;
  yaml_source source = {b, 0};
  if (weir_yaml_is_simple(b->text, b->alloc)) return weir_yaml_read_simple(b);
  if (!yaml_parser_initialize(&parser))
    return weir_yaml_no_memory(b, sizeof parser);
  yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input(&parser, read_piece, &source);
  bool ok = read_events(b, &parser);
  yaml_parser_delete(&parser);
  return ok;
}

/* An empty document is an empty plain scalar. */
static bool check_root(weir_yaml_builder *b) {
  const weir_yaml *root = b->root;
  weir_mark start = {.file = b->file, 1, 1, 1, 1};
  if (root == NULL ||
      (root->kind == WEIR_YAML_SCALAR && root->plain && root->text.size == 0))
    return weir_yaml_stop(b, WEIR_W1008, &start, NULL,
                          "the file holds no YAML value");
  uint64_t limit = b->spelled * kAliasFactor;
  if (limit < kAliasFloor) limit = kAliasFloor;
  if (b->expanded > limit)
    return weir_yaml_stop(
        b, WEIR_W1004, &b->widest_alias,
        &(weir_yaml_label){&b->widest_anchor, "the first one is here"},
        "written out, the aliases make %" PRIu64 " values, %" PRIu64
        " are allowed",
        b->expanded, limit);
  return true;
}

static void release(weir_yaml_builder *b) {
  weir_vec_free(b->alloc, &b->frames);
  weir_vec_free(b->alloc, &b->pending);
  weir_vec_free(b->alloc, &b->anchors);
  weir_map_release(&b->anchor_names);
  weir_free(b->alloc, b->key_slots);
}

weir_status weir_yaml_parse(weir_sv text, const char *file,
                            const weir_yaml_limits *limits, weir_arena *arena,
                            const weir_diag_sink *sink,
                            const weir_yaml **out_root, weir_error *err) {
  weir_yaml_request r = {text, file, limits, arena, arena, false};
  return weir_yaml_parse_into(&r, sink, out_root, err);
}

weir_status weir_yaml_parse_into(const weir_yaml_request *r,
                                 const weir_diag_sink *sink,
                                 const weir_yaml **out_root, weir_error *err) {
  weir_yaml_builder b = {.alloc = r->tree->alloc,
                         .arena = r->tree,
                         .texts = r->texts,
                         .lent = r->lent,
                         .text = r->text,
                         .limits = with_defaults(r->limits),
                         .sink = sink,
                         .err = err};
  size_t name_bytes = strlen(r->file);
  *out_root = NULL;
  weir_map_init(&b.anchor_names, b.alloc);
  b.file = weir_arena_string(b.texts, r->file, name_bytes);
  bool ok = b.file != NULL || weir_yaml_no_memory(&b, name_bytes + 1);
  ok = ok && weir_yaml_check_text(&b) && read_text(&b) && check_root(&b);
  if (ok && b.status == WEIR_OK) *out_root = b.root;
  release(&b);
  return b.status;
}

const weir_yaml_entry *weir_yaml_entry_of(const weir_yaml *map, weir_sv key) {
  for (uint32_t i = 0; i < map->count; i++)
    if (weir_sv_equal(map->entries[i].key, key)) return &map->entries[i];
  return NULL;
}

const weir_yaml *weir_yaml_get(const weir_yaml *map, const char *key) {
  const weir_yaml_entry *entry = weir_yaml_entry_of(map, weir_sv_from(key));
  return entry != NULL ? entry->value : NULL;
}

weir_mark weir_yaml_mark_within(const weir_yaml *scalar, size_t offset,
                                size_t size) {
  weir_mark mark = scalar->mark;
  weir_sv text = scalar->text;
  size_t quote = scalar->plain ? 0 : 1;
  size_t points = weir_utf8_count(text);
  /* Only text that stands in the file as it is has exact columns. */
  if (mark.line != mark.end_line || scalar->anchor.line != 0 ||
      mark.end_col - mark.col != points + 2 * quote || offset > text.size)
    return mark;
  if (size > text.size - offset) size = text.size - offset;
  size_t before = weir_utf8_count((weir_sv){text.data, offset});
  size_t within = weir_utf8_count((weir_sv){text.data + offset, size});
  mark.col += (uint32_t)(before + quote);
  mark.end_col = mark.col + (uint32_t)within;
  return mark;
}
