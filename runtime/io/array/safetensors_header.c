/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/safetensors_header.h"

#include <inttypes.h>

#include "runtime/base/json/json.h"
#include "runtime/base/map.h"
#include "runtime/base/size.h"
#include "runtime/io/checkpoint/convert.h"

enum { kLengthBytes = 8, kDepth = 8, kNameShown = 200 };

/* A pull parser: the JSON is read token by token and no tree is built, so a
 * header takes memory for its entries only. All that can be checked is checked
 * here: each key once, each range within the data and as long as its shape, the
 * ranges together without hole or overlap. So readers of tensors need no checks
 * of their own. Time: n log n for sorting the ranges. */

/* The format's element types, those that weir lacks too: a file may hold them
 * beside tensors that are read. */
static const struct {
  const char *name;
  unsigned bits;
  weir_dtype dtype;
} kTypes[] = {
    {"F32", 32, WEIR_F32}, {"F64", 64, WEIR_F64}, {"I32", 32, WEIR_I32},
    {"I64", 64, WEIR_I64}, {"U8", 8, WEIR_U8},    {"BOOL", 8, WEIR_BOOL},
    {"F16", 16, 0},        {"BF16", 16, 0},       {"I8", 8, 0},
    {"I16", 16, 0},        {"U16", 16, 0},        {"U32", 32, 0},
    {"U64", 64, 0},        {"F8_E4M3", 8, 0},     {"F8_E5M2", 8, 0},
    {"F8_E8M0", 8, 0},     {"C64", 64, 0},        {"F6_E2M3", 6, 0},
    {"F6_E3M2", 6, 0},     {"F4", 4, 0},
};
enum { kTypeCount = sizeof kTypes / sizeof kTypes[0] };

const char *weir_safetensors_dtype_name(weir_dtype dtype) {
  for (size_t i = 0; i < kTypeCount; i++)
    if (kTypes[i].dtype == dtype && dtype != WEIR_DTYPE_NONE)
      return kTypes[i].name;
  return NULL;
}

typedef struct parser {
  weir_json_reader json;
  const char *file;
  uint64_t data_bytes;
  weir_arena *arena;
  weir_safetensors_entries *entries;
  weir_safetensors_pairs *metadata;
  weir_map names;
  weir_error *err; /* never NULL */
} parser;

static weir_status bad(const parser *p, weir_sv name, const char *what) {
  weir_mark at = {.file = p->file};
  size_t shown = name.size < kNameShown ? name.size : kNameShown;
  return weir_fail(p->err, WEIR_W4005, &at,
                   "tensor '%.*s': %s, at byte %zu of the file", (int)shown,
                   name.data, what, kLengthBytes + p->json.token_at);
}

/* --- one tensor's description --- */

static weir_status next(parser *p, weir_json_token *token) {
  return weir_json_next(&p->json, token, p->err);
}

static weir_status read_dtype(parser *p, weir_sv name, size_t *out_type) {
  weir_json_token token;
  WEIR_TRY(next(p, &token));
  if (token != WEIR_JSON_STRING) return bad(p, name, "dtype is not a string");
  for (size_t i = 0; i < kTypeCount; i++)
    if (weir_json_text_is(&p->json, kTypes[i].name)) {
      *out_type = i;
      return WEIR_OK;
    }
  return bad(p, name, "its dtype is unknown");
}

/* A list of at most |most| integers from 0. */
static weir_status read_list(parser *p, weir_sv name, int64_t *values, int most,
                             int *out_count) {
  weir_json_token token;
  int count = 0;
  WEIR_TRY(next(p, &token));
  if (token != WEIR_JSON_ARRAY_BEGIN)
    return bad(p, name, "shape or data_offsets is not a list");
  for (;;) {
    WEIR_TRY(next(p, &token));
    if (token == WEIR_JSON_ARRAY_END) break;
    if (count == most) return bad(p, name, "a list has too many numbers");
    if (token != WEIR_JSON_NUMBER ||
        !weir_json_get_int(&p->json, &values[count]) || values[count] < 0)
      return bad(p, name, "a list holds something else than integers from 0");
    count++;
  }
  *out_count = count;
  return WEIR_OK;
}

/* Compares the range of bytes with the bytes that shape and dtype need. */
static weir_status check_bytes(const parser *p, const weir_safetensors_entry *e,
                               unsigned bits) {
  uint64_t need;
  if (e->begin > e->end) return bad(p, e->name, "it starts after its end");
  if (e->end > p->data_bytes)
    return bad(p, e->name, "it ends after the end of the file");
  if (weir_io_check_shape(&e->shape, WEIR_U8, WEIR_W4005, p->file, p->err) !=
          WEIR_OK ||
      __builtin_mul_overflow((uint64_t)weir_shape_elements(&e->shape),
                             (uint64_t)bits, &need))
    return bad(p, e->name, "its shape is too large");
  if (need % 8 != 0) return bad(p, e->name, "it does not fill its last byte");
  if (need / 8 == e->end - e->begin) return WEIR_OK;
  return bad(p, e->name, "its shape and dtype need another number of bytes");
}

/* Bits of |seen|: which keys were there. */
enum { kDtype = 1, kShape = 2, kOffsets = 4 };

static weir_status read_field(parser *p, weir_safetensors_entry *e,
                              unsigned *seen, size_t *type) {
  int64_t values[WEIR_MAX_RANK];
  int count = 0;
  unsigned key = weir_json_text_is(&p->json, "dtype")          ? kDtype
                 : weir_json_text_is(&p->json, "shape")        ? kShape
                 : weir_json_text_is(&p->json, "data_offsets") ? kOffsets
                                                               : 0;
  if (key == 0) return bad(p, e->name, "an unknown key");
  if (*seen & key) return bad(p, e->name, "a key occurs twice");
  *seen |= key;
  if (key == kDtype) return read_dtype(p, e->name, type);
  WEIR_TRY(
      read_list(p, e->name, values, key == kShape ? WEIR_MAX_RANK : 2, &count));
  if (key == kShape) {
    e->shape = weir_shape_of(count, values);
    return WEIR_OK;
  }
  if (count != 2) return bad(p, e->name, "data_offsets is not two numbers");
  e->begin = (uint64_t)values[0];
  e->end = (uint64_t)values[1];
  return WEIR_OK;
}

static weir_status read_tensor(parser *p, weir_sv name) {
  weir_safetensors_entry e = {.name = name};
  weir_json_token token;
  unsigned seen = 0;
  size_t type = 0;
  WEIR_TRY(next(p, &token));
  if (token != WEIR_JSON_OBJECT_BEGIN)
    return bad(p, name, "its description is not an object");
  for (;;) {
    WEIR_TRY(next(p, &token));
    if (token == WEIR_JSON_OBJECT_END) break;
    WEIR_TRY(read_field(p, &e, &seen, &type));
  }
  if (seen != (kDtype | kShape | kOffsets))
    return bad(p, name, "dtype, shape or data_offsets is missing");
  e.dtype_name = kTypes[type].name;
  e.dtype = kTypes[type].dtype;
  WEIR_TRY(check_bytes(p, &e, kTypes[type].bits));
  if (!weir_vec_push(p->arena->alloc, p->entries, e))
    return weir_fail_memory(p->err, sizeof e);
  return WEIR_OK;
}

/* --- the whole --- */

/* An object of strings. */
static weir_status read_metadata(parser *p, weir_sv name) {
  weir_json_token token;
  WEIR_TRY(next(p, &token));
  if (token != WEIR_JSON_OBJECT_BEGIN) return bad(p, name, "not an object");
  for (;;) {
    WEIR_TRY(next(p, &token));
    if (token == WEIR_JSON_OBJECT_END) return WEIR_OK;
    weir_safetensors_pair pair = {0};
    WEIR_TRY(weir_json_text(&p->json, p->arena, &pair.key, p->err));
    WEIR_TRY(next(p, &token));
    if (token != WEIR_JSON_STRING)
      return bad(p, name, "a value is not a string");
    WEIR_TRY(weir_json_text(&p->json, p->arena, &pair.value, p->err));
    if (!weir_vec_push(p->arena->alloc, p->metadata, pair))
      return weir_fail_memory(p->err, sizeof pair);
  }
}

static weir_status read_object(parser *p) {
  weir_json_token token;
  WEIR_TRY(weir_json_expect(&p->json, WEIR_JSON_OBJECT_BEGIN, p->err));
  for (uint32_t i = 0;; i++) {
    weir_sv name = {0};
    uint32_t other = WEIR_MAP_NONE;
    WEIR_TRY(next(p, &token));
    if (token == WEIR_JSON_OBJECT_END) break;
    WEIR_TRY(weir_json_text(&p->json, p->arena, &name, p->err));
    if (!weir_map_put(&p->names, name, i, &other))
      return weir_fail_memory(p->err, sizeof(weir_map_slot));
    if (other != WEIR_MAP_NONE) return bad(p, name, "the name occurs twice");
    WEIR_TRY(weir_sv_is(name, "__metadata__") ? read_metadata(p, name)
                                              : read_tensor(p, name));
  }
  return weir_json_expect(&p->json, WEIR_JSON_END, p->err);
}

static weir_status bad_range(const parser *p, const weir_safetensors_entry *e,
                             const char *what) {
  weir_mark at = {.file = p->file};
  size_t shown = e->name.size < kNameShown ? e->name.size : kNameShown;
  return weir_fail(p->err, WEIR_W4005, &at,
                   "tensor '%.*s': %s, at byte %" PRIu64 " of the data",
                   (int)shown, e->name.data, what, e->begin);
}

/* Ranges, in order, must meet end to start and fill the data. */
static weir_status check_ranges(parser *p) {
  size_t count = p->entries->count;
  uint64_t at = 0;
  weir_status s = WEIR_OK;
  weir_io_span *spans =
      weir_alloc_array(p->arena->alloc, count + 1, sizeof *spans);
  if (spans == NULL) return weir_fail_memory(p->err, sizeof *spans);
  for (size_t i = 0; i < count; i++)
    spans[i] = (weir_io_span){p->entries->items[i].begin,
                              p->entries->items[i].end, (uint32_t)i};
  weir_io_sort_spans(spans, count);
  for (size_t i = 0; s == WEIR_OK && i < count; at = spans[i++].end)
    if (spans[i].begin != at)
      s = bad_range(p, &p->entries->items[spans[i].index],
                    spans[i].begin < at ? "it overlaps another tensor"
                                        : "there is a hole before it");
  weir_free(p->arena->alloc, spans);
  weir_mark where = {.file = p->file};
  if (s == WEIR_OK && at != p->data_bytes)
    s = weir_fail(p->err, WEIR_W4005, &where,
                  "the tensors have %" PRIu64 " bytes, the file has %" PRIu64,
                  at, p->data_bytes);
  return s;
}

weir_status weir_safetensors_parse(weir_sv text, uint64_t data_bytes,
                                   const char *file, weir_arena *arena,
                                   weir_safetensors_entries *entries,
                                   weir_safetensors_pairs *metadata,
                                   weir_error *err) {
  weir_error inner = WEIR_ERROR_INIT;
  parser p = {.file = file,
              .data_bytes = data_bytes,
              .arena = arena,
              .entries = entries,
              .metadata = metadata,
              .err = &inner};
  weir_json_options options = {.depth = kDepth, .base_offset = kLengthBytes};
  weir_json_reader_init(&p.json, text, file, &options);
  weir_map_init(&p.names, arena->alloc);
  weir_status s = read_object(&p);
  if (s == WEIR_OK) s = check_ranges(&p);
  weir_map_release(&p.names);
  /* A fault of the JSON is a fault of the file. */
  weir_mark at = {.file = file};
  if (weir_sv_is(weir_sv_from(inner.id), "W4013"))
    return weir_fail(err, WEIR_W4005, &at, "header: %s", inner.message);
  if (s != WEIR_OK) weir_error_copy(err, &inner);
  return s;
}
