/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/yaml/yaml.h"
#include "runtime/base/yaml/yaml_simple.h"
#include "tests/check.h"

/* The allocation-failure sweep: libyaml's own allocations take part, because
 * the functions below stand in for those of the shared library. */

static struct {
  uint64_t calls, fail_at;
  bool fail_forever;
  int64_t live_blocks;
} g_libyaml;

static bool libyaml_may(void) {
  uint64_t call = ++g_libyaml.calls;
  return g_libyaml.fail_at == 0 || call < g_libyaml.fail_at ||
         (call > g_libyaml.fail_at && !g_libyaml.fail_forever);
}

WEIR_API void *yaml_malloc(size_t size);
WEIR_API void *yaml_realloc(void *ptr, size_t size);
WEIR_API void yaml_free(void *ptr);
WEIR_API unsigned char *yaml_strdup(const unsigned char *text);

void *yaml_malloc(size_t size) {
  void *ptr = libyaml_may() ? malloc(size > 0 ? size : 1) : NULL;
  g_libyaml.live_blocks += ptr != NULL;
  return ptr;
}

void *yaml_realloc(void *ptr, size_t size) {
  if (ptr == NULL) return yaml_malloc(size);
  return libyaml_may() ? realloc(ptr, size > 0 ? size : 1) : NULL;
}

void yaml_free(void *ptr) {
  g_libyaml.live_blocks -= ptr != NULL;
  free(ptr);
}

unsigned char *yaml_strdup(const unsigned char *text) {
  if (text == NULL) return NULL;
  size_t size = strlen((const char *)text) + 1;
  unsigned char *copy = yaml_malloc(size);
  if (copy != NULL) memcpy(copy, text, size);
  return copy;
}

static const char kText[] =
    "# all that allocates\n"
    "weir: 1\n"
    "one: &one {a: 1, b: [1, 2, &two three, *two], c: \"q\\u00e9\"}\n"
    "merged: {x: 1, <<: [*one, {d: 1, e: 1, f: 1, g: 1, h: 1, i: 1}]}\n"
    "nodes:\n"
    "  - k0: 0\n    k1: 0\n    k2: 0\n    k3: 0\n    k4: 0\n"
    "    k5: 0\n    k6: 0\n    k7: 0\n    k8: 0\n    k9: 0\n"
    "text: >\n  folded\n  text\n";

static const char kBadText[] =
    "a: &z 1\n"
    "a: *none\n"
    "b: !t 1\n"
    "c: [1\n";

static const char kSimpleText[] =
    "weir: 1\n"
    "nodes:\n"
    "  a: relu(x)\n"
    "  b: [a, b]\n"
    "  c: 1\n  d: 1\n  e: 1\n  f: 1\n  g: 1\n  h: 1\n  i: 1\n  j: 1\n";

static weir_status parse_with(weir_counted_allocator *c, const char *text,
                              weir_error *err) {
  weir_arena arena;
  const weir_yaml *root;
  weir_arena_init(&arena, &c->base);
  weir_status s = weir_yaml_parse(weir_sv_from(text), "t.yaml", NULL, &arena,
                                  NULL, &root, err);
  assert_true((s == WEIR_OK) == (root != NULL));
  weir_arena_release(&arena);
  assert_int_equal(atomic_load(&c->live_bytes), 0);
  assert_int_equal(g_libyaml.live_blocks, 0);
  return s;
}

/* Fails allocation |k| of ours or of libyaml's; false when there were fewer. */
static bool fail_one(const char *text, uint64_t k, bool libyaml, bool forever,
                     weir_status want) {
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  g_libyaml.calls = 0;
  g_libyaml.fail_forever = c.fail_forever = forever;
  g_libyaml.fail_at = libyaml ? k : 0;
  c.fail_at = libyaml ? 0 : k;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = parse_with(&c, text, &err);
  bool failed = libyaml ? g_libyaml.calls >= k : atomic_load(&c.calls) >= k;
  if (!failed)
    assert_int_equal(s, want);
  else if (want == WEIR_OK)
    assert_string_equal(err.id, "W6001");
  g_libyaml.fail_at = c.fail_at = 0; /* and then all is well again */
  assert_int_equal(parse_with(&c, text, &err), want);
  return failed;
}

static void sweep(const char *text, weir_status want) {
  for (int mode = 0; mode < 4; mode++) {
    uint64_t k = 1;
    while (fail_one(text, k, (mode & 1) != 0, (mode & 2) != 0, want)) k++;
    assert_true(k > 4);
  }
}

static void survives_every_failure(void **state) {
  (void)state;
  sweep(kText, WEIR_OK);
}

static void survives_in_simple_text(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++) {
    uint64_t k = 1;
    while (fail_one(kSimpleText, k, false, forever != 0, WEIR_OK)) k++;
    assert_true(k > 4);
    assert_int_equal(g_libyaml.calls, 0); /* libyaml is not asked */
  }
}

static void survives_failures_while_refusing(void **state) {
  (void)state;
  sweep(kBadText, WEIR_INVALID_ARGUMENT);
}

/* ---- Time that is over: the allocator is asked now and then, and from look
 * |late_at| on it refuses everything. */

typedef struct timed_allocator {
  weir_allocator base;
  weir_counted_allocator counted;
  uint64_t looks, late_at; /* 0: never */
} timed_allocator;

static bool is_late(const timed_allocator *t) {
  return t->late_at > 0 && t->looks >= t->late_at;
}

static void *timed_alloc(void *self, size_t bytes, size_t align) {
  timed_allocator *t = self;
  const weir_allocator *inner = &t->counted.base;
  return is_late(t) ? NULL : inner->alloc(inner->self, bytes, align);
}

static void timed_free(void *self, void *ptr) {
  timed_allocator *t = self;
  weir_free(&t->counted.base, ptr);
}

static weir_refusal timed_refusal(void *self) {
  timed_allocator *t = self;
  t->looks++;
  return is_late(t) ? WEIR_REFUSAL_TIME : WEIR_REFUSAL_NONE;
}

/* How often a reading of |text| looks; late at |late_at| it is W5006. */
static uint64_t looks_at(weir_sv text, uint64_t late_at) {
  timed_allocator t = {.late_at = late_at};
  weir_error err = WEIR_ERROR_INIT;
  weir_arena arena;
  const weir_yaml *root;
  weir_counted_allocator_init(&t.counted, NULL);
  t.base = (weir_allocator){&t, timed_alloc, timed_free, timed_refusal};
  weir_arena_init(&arena, &t.base);
  weir_status s =
      weir_yaml_parse(text, "t.yaml", NULL, &arena, NULL, &root, &err);
  assert_int_equal(s, late_at == 0 ? WEIR_OK : WEIR_DEADLINE_EXCEEDED);
  if (late_at > 0) assert_string_equal(err.id, "W5006");
  weir_arena_release(&arena);
  assert_int_equal(atomic_load(&t.counted.live_blocks), 0);
  assert_int_equal(g_libyaml.live_blocks, 0);
  return t.looks;
}

enum { TEXT_BYTES = 1 << 17, TEXT_LOOKS = 6 };

/* The end of time is seen at any look, and once it is seen not much follows.
 */
static void check_looks(const char *text, size_t size, bool simple) {
  weir_sv whole = {text, size};
  assert_int_equal(weir_yaml_is_simple(whole, weir_allocator_system()), simple);
  uint64_t looks = looks_at(whole, 0);
  assert_true(looks >= TEXT_LOOKS);
  for (uint64_t k = 1; k <= looks; k += 1 + k / 4)
    assert_true(looks_at(whole, k) <= k + 2);
}

/* |unit| again and again behind |head|. */
static void check_text(const char *head, const char *unit, const char *tail,
                       bool simple) {
  char *text = malloc(TEXT_BYTES + 100);
  assert_non_null(text);
  size_t size = strlen(head), unit_size = strlen(unit);
  memcpy(text, head, size);
  for (; size + unit_size <= TEXT_BYTES; size += unit_size)
    memcpy(text + size, unit, unit_size);
  memcpy(text + size, tail, strlen(tail));
  check_looks(text, size + strlen(tail), simple);
  free(text);
}

static void ends_in_time(void **state) {
  (void)state;
  check_text("nodes:\n", "  - relu(some_tensor_of_this_graph)\n", "", true);
  check_text("a: [1", ", x", "]\n", true);
  check_text("a: [1", ", 'x'", "]\n", false);
  check_text("a: \"", "a long text ", "\"\n", false); /* of one event */
  check_text("a: 'x' ", "# a comment\n", "", false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(survives_every_failure),
      cmocka_unit_test(survives_in_simple_text),
      cmocka_unit_test(survives_failures_while_refusing),
      cmocka_unit_test(ends_in_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
