/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/base/diag/diag_print.h"
#include "runtime/base/strbuf.h"
#include "runtime/base/yaml/yaml.h"
#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/base/yaml/yaml_simple.h"
#include "tests/fuzz/fuzz.h"

/* Parses the input, walks the tree, and draws its errors. */

enum { kDepth = 64, kMostKeys = 64 };

typedef struct run {
  weir_sv text;
  uint32_t reports;
  weir_strbuf drawn;
} run;

static weir_sv source(void *self, const char *file) {
  (void)file;
  return ((run *)self)->text;
}

static void draw(void *self, const weir_diag *diag) {
  run *r = self;
  r->reports++;
  weir_strbuf_clear(&r->drawn);
  weir_diag_printer printer = {.format = (weir_diag_format)(r->reports % 3),
                               .out = weir_strbuf_writer(&r->drawn),
                               .source = source,
                               .source_self = r};
  FUZZ_CHECK(diag->error.id[0] == 'W');
  FUZZ_CHECK(weir_diag_print(&printer, diag));
  for (size_t i = 0; i < r->drawn.size; i++) {
    unsigned char c = (unsigned char)r->drawn.data[i];
    FUZZ_CHECK((c >= 0x20 && c != 0x7f) || c == '\n');
  }
}

static void check_mark(const weir_mark *m) {
  FUZZ_CHECK(m->line >= 1 && m->col >= 1 && m->end_line >= m->line);
  FUZZ_CHECK(m->end_line > m->line || m->end_col >= m->col);
}

static void check_scalar(const weir_yaml *node) {
  int64_t i;
  double d, of_int = 0;
  bool b;
  FUZZ_CHECK(node->text.data != NULL);
  if (weir_yaml_int(node, &i))
    FUZZ_CHECK(weir_yaml_float(node, &of_int) && of_int == (double)i);
  (void)weir_yaml_float(node, &d);
  FUZZ_CHECK(!(weir_yaml_bool(node, &b) && weir_yaml_null(node)));
  weir_mark within = weir_yaml_mark_within(node, node->text.size / 2, 1);
  check_mark(&within);
}

static void check_keys(const weir_yaml *map) {
  for (uint32_t i = 0; i < map->count && i < kMostKeys; i++) {
    check_mark(&map->entries[i].key_mark);
    FUZZ_CHECK(weir_yaml_entry_of(map, map->entries[i].key) ==
               &map->entries[i]);
  }
}

/* Where the walk stands in one collection. */
typedef struct place {
  const weir_yaml *node;
  uint32_t next;
} place;

static const weir_yaml *child(const weir_yaml *node, uint32_t i) {
  if (node->kind == WEIR_YAML_SCALAR || i >= node->count) return NULL;
  return node->kind == WEIR_YAML_MAP ? node->entries[i].value : node->items[i];
}

static void walk(const weir_yaml *root, uint64_t most) {
  place stack[kDepth + 1];
  size_t depth = 0;
  const weir_yaml *node = root;
  for (uint64_t seen = 1;; seen++) {
    FUZZ_CHECK(seen <= most);
    check_mark(&node->mark);
    if (node->kind == WEIR_YAML_SCALAR) check_scalar(node);
    if (node->kind == WEIR_YAML_MAP) check_keys(node);
    FUZZ_CHECK(node->kind == WEIR_YAML_SCALAR || depth < kDepth);
    stack[depth++] = (place){node, 0};
    while ((node = child(stack[depth - 1].node, stack[depth - 1].next)) == NULL)
      if (--depth == 0) return;
    stack[depth - 1].next++;
  }
}

/* --- the simple reader against libyaml --- */

static void check_same_mark(const weir_mark *a, const weir_mark *b) {
  FUZZ_CHECK(a->line == b->line && a->col == b->col);
  FUZZ_CHECK(a->end_line == b->end_line && a->end_col == b->end_col);
}

static void check_same_node(const weir_yaml *a, const weir_yaml *b) {
  FUZZ_CHECK(a->kind == b->kind && a->plain == b->plain);
  FUZZ_CHECK(a->count == b->count);
  check_same_mark(&a->mark, &b->mark);
  if (a->kind == WEIR_YAML_SCALAR) FUZZ_CHECK(weir_sv_equal(a->text, b->text));
  for (uint32_t i = 0; a->kind == WEIR_YAML_MAP && i < a->count; i++) {
    FUZZ_CHECK(weir_sv_equal(a->entries[i].key, b->entries[i].key));
    check_same_mark(&a->entries[i].key_mark, &b->entries[i].key_mark);
  }
}

static void check_same(const weir_yaml *a, const weir_yaml *b) {
  place left[kDepth + 1], right[kDepth + 1];
  size_t depth = 0;
  for (;;) {
    check_same_node(a, b);
    FUZZ_CHECK(a->kind == WEIR_YAML_SCALAR || depth < kDepth);
    left[depth] = (place){a, 0};
    right[depth++] = (place){b, 0};
    while ((a = child(left[depth - 1].node, left[depth - 1].next)) == NULL)
      if (--depth == 0) return;
    b = child(right[depth - 1].node, left[depth - 1].next++);
  }
}

/* A comment that is not ASCII sends the same text to libyaml. */
static void compare_readers(const run *r, const weir_yaml *root,
                            const weir_error *err, weir_arena *arena) {
  weir_strbuf text;
  weir_error other = WEIR_ERROR_INIT;
  const weir_yaml *twin;
  weir_yaml_limits limits = {.nodes = 20000};
  weir_strbuf_init(&text, weir_allocator_system());
  weir_strbuf_sv(&text, r->text);
  weir_strbuf_text(&text, "\n# \xc3\xa9\n");
  (void)weir_yaml_parse(weir_strbuf_view(&text), "f", &limits, arena, NULL,
                        &twin, &other);
  FUZZ_CHECK(strcmp(err->id, other.id) == 0);
  FUZZ_CHECK(err->line == other.line && err->col == other.col);
  if (root != NULL) check_same(root, twin);
  weir_strbuf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  run r = {.text = {(const char *)data, size}};
  weir_diag_sink sink = {&r, draw};
  weir_yaml_limits limits = {.nodes = 20000};
  weir_arena arena;
  const weir_yaml *root;
  weir_error err = WEIR_ERROR_INIT;
  weir_arena_init(&arena, weir_allocator_system());
  weir_strbuf_init(&r.drawn, weir_allocator_system());
  weir_status s =
      weir_yaml_parse(r.text, "f", &limits, &arena, &sink, &root, &err);
  FUZZ_CHECK((s == WEIR_OK) == (root != NULL));
  FUZZ_CHECK((s == WEIR_OK) == (r.reports == 0));
  if (root != NULL) walk(root, 10 * limits.nodes);
  if (size > 0 && weir_yaml_is_simple(r.text, weir_allocator_system()))
    compare_readers(&r, root, &err, &arena);
  weir_strbuf_release(&r.drawn);
  weir_arena_release(&arena);
  return 0;
}
