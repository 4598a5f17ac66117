/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/source/vocabulary.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/base/map.h"
#include "runtime/base/utf8.h"
#include "runtime/base/vec.h"

/* Texts are numbered in the order in which they are appended; a hash map finds
 * the number, an array the text. Counting keeps each text once: memory grows
 * with different texts, not with the data. Sorted by a heap, n log n for any
 * input and without memory of its own. */

struct weir_vocabulary {
  atomic_int refs;
  const weir_allocator *alloc;
  weir_arena arena;
  weir_map map;
  weir_sv *texts;         /* in the arena */
  int32_t count, unknown; /* unknown -1: none */
};

typedef struct counted {
  weir_sv text;
  uint64_t count;
} counted;

struct weir_vocabulary_builder {
  const weir_allocator *alloc;
  weir_arena arena;
  weir_map map;
  WEIR_VEC(counted) items;
};

/* ---- Vocabularies */

static weir_status create(const weir_allocator *alloc, size_t capacity,
                          weir_vocabulary **out, weir_error *err) {
  *out = NULL;
  if (capacity > INT32_MAX - 1)
    return weir_fail(err, WEIR_W6003, NULL,
                     "a vocabulary has at most 2^31 - 2 entries");
  weir_vocabulary *v = weir_alloc_array(alloc, 1, sizeof *v);
  if (v == NULL) return weir_fail_memory(err, sizeof *v);
  atomic_init(&v->refs, 1);
  v->alloc = alloc;
  v->unknown = -1;
  weir_arena_init(&v->arena, alloc);
  weir_map_init(&v->map, alloc);
  v->texts = weir_arena_array(&v->arena, capacity, sizeof *v->texts);
  if (v->texts == NULL || !weir_map_reserve(&v->map, capacity)) {
    weir_vocabulary_release(v);
    return weir_fail_memory(err, capacity * sizeof *v->texts);
  }
  *out = v;
  return WEIR_OK;
}

weir_vocabulary *weir_vocabulary_ref(weir_vocabulary *v) {
  atomic_fetch_add(&v->refs, 1);
  return v;
}

void weir_vocabulary_release(weir_vocabulary *v) {
  if (v == NULL || atomic_fetch_sub(&v->refs, 1) != 1) return;
  weir_map_release(&v->map);
  weir_arena_release(&v->arena);
  weir_free(v->alloc, v);
}

/* Adds |text| unless it is there; |*out_new|: it was not. */
static weir_status append(weir_vocabulary *v, weir_sv text, bool *out_new,
                          weir_error *err) {
  *out_new = weir_map_get(&v->map, text) == WEIR_MAP_NONE;
  if (!*out_new) return WEIR_OK;
  const char *copy = weir_arena_string(&v->arena, text.data, text.size);
  if (copy == NULL) return weir_fail_memory(err, text.size);
  weir_sv own = {copy, text.size};
  if (!weir_map_put(&v->map, own, (uint32_t)v->count, NULL))
    return weir_fail_memory(err, text.size);
  v->texts[v->count++] = own;
  return WEIR_OK;
}

int32_t weir_vocabulary_find(const weir_vocabulary *v, weir_sv text) {
  uint32_t i = weir_map_get(&v->map, text);
  return i == WEIR_MAP_NONE ? v->unknown : (int32_t)i;
}

int32_t weir_vocabulary_count(const weir_vocabulary *v) {
  return v->count;
}

weir_sv weir_vocabulary_text(const weir_vocabulary *v, int32_t index) {
  assert(index >= 0 && index < v->count);
  return v->texts[index];
}

static weir_status fill(weir_vocabulary *v, const weir_vocabulary_list *list,
                        weir_error *err) {
  const weir_sv *texts = list->texts, unknown = list->unknown;
  size_t count = list->count;
  bool is_new = false, listed = false;
  for (size_t i = 0; i < count; i++)
    listed = listed || weir_sv_equal(texts[i], unknown);
  if (unknown.size > 0 && !listed) {
    WEIR_TRY(append(v, unknown, &is_new, err));
    v->unknown = 0;
  }
  for (size_t i = 0; i < count; i++) {
    weir_mark at = {.file = list->file, .line = (uint32_t)(i + 1), .col = 1};
    size_t bad = 0;
    if (!weir_utf8_valid(texts[i], &bad))
      return weir_fail(err, WEIR_W4032, &at,
                       "entry %zu is not UTF-8, at its byte %zu", i + 1, bad);
    WEIR_TRY(append(v, texts[i], &is_new, err));
    if (!is_new)
      return weir_fail(err, WEIR_W4032, &at, "entry '%.*s' occurs twice",
                       WEIR_SV(texts[i]));
  }
  if (listed) v->unknown = (int32_t)weir_map_get(&v->map, unknown);
  return WEIR_OK;
}

weir_status weir_vocabulary_from(const weir_allocator *alloc,
                                 const weir_vocabulary_list *list,
                                 weir_vocabulary **out, weir_error *err) {
  WEIR_TRY(create(alloc, list->count + 1, out, err));
  weir_status s = fill(*out, list, err);
  if (s != WEIR_OK) {
    weir_vocabulary_release(*out);
    *out = NULL;
  }
  return s;
}

/* ---- Files */

static const char kEscaped[] = "\n\r\t\\", kLetters[] = "nrt\\";

/* Replaces escapes in place; false for one that is none. */
static bool unescape(char *text, size_t *size) {
  size_t to = 0;
  for (size_t i = 0; i < *size; i++) {
    char c = text[i];
    if (c == '\\') {
      const char *letter = i + 1 < *size && text[i + 1] != '\0'
                               ? strchr(kLetters, text[i + 1])
                               : NULL;
      if (letter == NULL) return false;
      c = kEscaped[letter - kLetters];
      i++;
    }
    text[to++] = c;
  }
  *size = to;
  return true;
}

static weir_status split(char *content, size_t size, weir_sv *texts,
                         size_t count, const char *file, weir_error *err) {
  size_t at = 0;
  for (size_t i = 0; i < count; i++) {
    const char *end = memchr(content + at, '\n', size - at);
    size_t stop = end != NULL ? (size_t)(end - content) : size;
    size_t n = stop - at;
    if (n > 0 && content[at + n - 1] == '\r') n--;
    weir_mark mark = {.file = file, .line = (uint32_t)(i + 1), .col = 1};
    if (n == 0)
      return weir_fail(err, WEIR_W4032, &mark, "entry %zu is empty", i + 1);
    if (!unescape(content + at, &n))
      return weir_fail(err, WEIR_W4032, &mark,
                       "entry %zu: a backslash stands before n, r, t or "
                       "another backslash",
                       i + 1);
    texts[i] = (weir_sv){content + at, n};
    at = stop + 1;
  }
  return WEIR_OK;
}

weir_status weir_vocabulary_parse(const weir_allocator *alloc, weir_sv content,
                                  weir_sv unknown, const char *file,
                                  weir_vocabulary **out, weir_error *err) {
  weir_arena arena;
  size_t count = 0;
  *out = NULL;
  for (size_t i = 0; i < content.size; i++) count += content.data[i] == '\n';
  count += content.size > 0 && content.data[content.size - 1] != '\n';
  weir_arena_init(&arena, alloc);
  weir_sv *texts = weir_arena_array(&arena, count, sizeof *texts);
  char *copy = weir_arena_string(&arena, content.data, content.size);
  weir_mark at = {.file = file};
  weir_status s = WEIR_OK;
  if (texts == NULL || copy == NULL)
    s = weir_fail_memory(err, content.size);
  else if (count == 0)
    s = weir_fail(err, WEIR_W4032, &at, "the vocabulary is empty");
  if (s == WEIR_OK) s = split(copy, content.size, texts, count, file, err);
  weir_vocabulary_list list = {texts, count, unknown, file};
  if (s == WEIR_OK) s = weir_vocabulary_from(alloc, &list, out, err);
  weir_arena_release(&arena);
  return s;
}

weir_status weir_vocabulary_write(const weir_vocabulary *v, weir_strbuf *out,
                                  weir_error *err) {
  for (int32_t i = 0; i < v->count; i++) {
    weir_sv t = v->texts[i];
    for (size_t k = 0; k < t.size; k++) {
      const char *e = t.data[k] != '\0' ? strchr(kEscaped, t.data[k]) : NULL;
      char pair[2] = {'\\', e != NULL ? kLetters[e - kEscaped] : '\0'};
      weir_strbuf_append(out, e != NULL ? pair : t.data + k, e != NULL ? 2 : 1);
    }
    weir_strbuf_append(out, "\n", 1);
  }
  return weir_strbuf_status(out, err);
}

/* ---- Counting */

weir_status weir_vocabulary_builder_create(const weir_allocator *alloc,
                                           weir_vocabulary_builder **out,
                                           weir_error *err) {
  weir_vocabulary_builder *b = weir_alloc_array(alloc, 1, sizeof *b);
  *out = b;
  if (b == NULL) return weir_fail_memory(err, sizeof *b);
  b->alloc = alloc;
  weir_arena_init(&b->arena, alloc);
  weir_map_init(&b->map, alloc);
  return WEIR_OK;
}

void weir_vocabulary_builder_release(weir_vocabulary_builder *b) {
  if (b == NULL) return;
  weir_vec_free(b->alloc, &b->items);
  weir_map_release(&b->map);
  weir_arena_release(&b->arena);
  weir_free(b->alloc, b);
}

weir_status weir_vocabulary_builder_add(weir_vocabulary_builder *b,
                                        weir_sv text, weir_error *err) {
  uint32_t i = weir_map_get(&b->map, text);
  if (i != WEIR_MAP_NONE) {
    b->items.items[i].count++;
    return WEIR_OK;
  }
  if (b->items.count >= WEIR_MAP_NONE - 1)
    return weir_fail(err, WEIR_W6003, NULL, "more than 2^32 - 2 texts");
  const char *copy = weir_arena_string(&b->arena, text.data, text.size);
  counted item = {{copy, text.size}, 1};
  if (copy == NULL || !weir_vec_push(b->alloc, &b->items, item) ||
      !weir_map_put(&b->map, item.text, (uint32_t)b->items.count - 1, NULL))
    return weir_fail_memory(err, text.size);
  return WEIR_OK;
}

/* Whether |a| stands before |b|: more frequent, then smaller in bytes. */
static bool before(const counted *a, const counted *b) {
  if (a->count != b->count) return a->count > b->count;
  size_t n = a->text.size < b->text.size ? a->text.size : b->text.size;
  int c = n > 0 ? memcmp(a->text.data, b->text.data, n) : 0;
  return c != 0 ? c < 0 : a->text.size < b->text.size;
}

static void sift(counted *heap, size_t at, size_t count) {
  for (size_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && before(&heap[child], &heap[child + 1])) child++;
    if (!before(&heap[at], &heap[child])) return;
    counted kept = heap[at];
    heap[at] = heap[child];
    heap[child] = kept;
  }
}

static void heap_sort(counted *items, size_t count) {
  for (size_t i = count / 2; i-- > 0;) sift(items, i, count);
  for (size_t n = count; n-- > 1;) {
    counted kept = items[0];
    items[0] = items[n];
    items[n] = kept;
    sift(items, 0, n);
  }
}

static weir_status take_most(weir_vocabulary *v, const counted *items,
                             size_t count, size_t most, weir_sv unknown,
                             weir_error *err) {
  bool is_new = false;
  if (unknown.size > 0) {
    WEIR_TRY(append(v, unknown, &is_new, err));
    v->unknown = 0;
  }
  for (size_t i = 0; i < count && (size_t)v->count < most; i++)
    WEIR_TRY(append(v, items[i].text, &is_new, err));
  return WEIR_OK;
}

weir_status weir_vocabulary_builder_finish(const weir_vocabulary_builder *b,
                                           int64_t size, weir_sv unknown,
                                           weir_vocabulary **out,
                                           weir_error *err) {
  size_t count = b->items.count, most = count + 1;
  *out = NULL;
  if (size > 0 && (size_t)size < most) most = (size_t)size;
  counted *items = weir_alloc_array(b->alloc, count, sizeof *items);
  if (items == NULL) return weir_fail_memory(err, count * sizeof *items);
  if (count > 0) memcpy(items, b->items.items, count * sizeof *items);
  heap_sort(items, count);
  weir_vocabulary *v = NULL;
  weir_status s = create(b->alloc, most, &v, err);
  if (s == WEIR_OK) s = take_most(v, items, count, most, unknown, err);
  weir_free(b->alloc, items);
  if (s == WEIR_OK)
    *out = v;
  else
    weir_vocabulary_release(v);
  return s;
}
