/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/spec/data_spec_columns.h"

#include <assert.h>
#include <math.h>

#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/io/run_folder.h"
#include "runtime/train/spec/data_spec.h"

/* A column may be named under several keys (columns, normalize, hash_bucket and
 * so on), in any order; each adds to one entry, made at the first mention. The
 * entries are counted beforehand, so pointers to them stay good. */

/* ---- Mentions */

typedef struct mentions {
  weir_data_spec *spec;
  weir_arena *arena;
  uint32_t capacity;
} mentions;

static uint32_t entries_of(const weir_data_spec *spec, const char *key) {
  const weir_yaml *y = weir_yaml_get(spec->section, key);
  return y == NULL || y->kind == WEIR_YAML_SCALAR ? 0 : y->count;
}

static weir_column_spec *mention(mentions *m, weir_sv name,
                                 const weir_mark *mark) {
  weir_data_spec *spec = m->spec;
  for (uint32_t i = 0; i < spec->column_count; i++)
    if (weir_sv_equal(spec->columns[i].name, name)) return &spec->columns[i];
  assert(spec->column_count < m->capacity);
  weir_column_spec *c = &spec->columns[spec->column_count++];
  c->name = name;
  c->mark = *mark;
  c->rank = -1;
  return c;
}

/* ---- dtype and shape */

static weir_status bad_type(const weir_yaml *y, weir_error *err) {
  return weir_fail(err, WEIR_W4024, &y->mark,
                   "a column's type is written f32 or f32[28, 28]: f32, f64, "
                   "i32, i64, u8 or bool, and the shape of one example");
}

static weir_status read_dims(const weir_yaml *y, weir_column_spec *c,
                             weir_error *err) {
  if (y->kind != WEIR_YAML_LIST || y->count > WEIR_MAX_RANK - 1)
    return weir_fail(err, WEIR_W4024, &y->mark,
                     "shape is a list of at most %d numbers",
                     WEIR_MAX_RANK - 1);
  c->rank = (int32_t)y->count;
  for (uint32_t i = 0; i < y->count; i++)
    WEIR_TRY(weir_spec_int(y->items[i], "a dimension", 0, INT32_MAX,
                           &c->dims[i], err));
  return WEIR_OK;
}

static weir_sv trimmed(weir_sv t) {
  while (t.size > 0 && t.data[0] == ' ') t = (weir_sv){t.data + 1, t.size - 1};
  while (t.size > 0 && t.data[t.size - 1] == ' ') t.size--;
  return t;
}

/* "f32", "f32[2, 3]". */
static weir_status read_type(const weir_yaml *y, weir_column_spec *c,
                             weir_error *err) {
  weir_sv t = y->text;
  size_t n = 0;
  while (n < t.size && t.data[n] != '[') n++;
  c->dtype = weir_dtype_from_name(t.data, n);
  if (c->dtype == WEIR_DTYPE_NONE) return bad_type(y, err);
  if (n == t.size) return WEIR_OK;
  if (t.data[t.size - 1] != ']') return bad_type(y, err);
  weir_sv rest = trimmed((weir_sv){t.data + n + 1, t.size - n - 2});
  for (c->rank = 0; rest.size > 0; c->rank++) {
    size_t k = 0;
    while (k < rest.size && rest.data[k] != ',') k++;
    int64_t *dim = &c->dims[c->rank];
    if (c->rank == WEIR_MAX_RANK - 1 ||
        !weir_text_int(trimmed((weir_sv){rest.data, k}), dim) || *dim < 0 ||
        *dim > INT32_MAX)
      return bad_type(y, err);
    size_t used = k < rest.size ? k + 1 : k;
    rest = (weir_sv){rest.data + used, rest.size - used};
  }
  return WEIR_OK;
}

static weir_status read_column(const weir_yaml *y, weir_column_spec *c,
                               weir_error *err) {
  if (y->kind == WEIR_YAML_SCALAR)
    return weir_yaml_null(y) ? WEIR_OK : read_type(y, c, err);
  if (y->kind == WEIR_YAML_LIST) return bad_type(y, err);
  const weir_yaml *dtype = weir_yaml_get(y, "dtype");
  const weir_yaml *shape = weir_yaml_get(y, "shape");
  if (dtype != NULL && dtype->kind != WEIR_YAML_SCALAR)
    return bad_type(dtype, err);
  if (dtype != NULL) WEIR_TRY(read_type(dtype, c, err));
  if (shape != NULL) WEIR_TRY(read_dims(shape, c, err));
  c->fallback = weir_yaml_get(y, "default");
  c->fields = weir_yaml_get(y, "fields");
  bool ok = c->fields == NULL ||
            (c->fields->kind == WEIR_YAML_LIST && c->fields->count > 0);
  for (uint32_t i = 0; ok && c->fields != NULL && i < c->fields->count; i++)
    ok = c->fields->items[i]->kind == WEIR_YAML_SCALAR;
  if (ok) return WEIR_OK;
  return weir_fail(err, WEIR_W4024, &c->fields->mark,
                   "fields is a list of names in the file's header");
}

static weir_status read_columns(mentions *m, const char *key, weir_error *err) {
  const weir_yaml *y = weir_yaml_get(m->spec->section, key);
  if (y == NULL) return WEIR_OK;
  m->spec->columns_listed = true;
  for (uint32_t i = 0; i < y->count; i++) {
    bool list = y->kind == WEIR_YAML_LIST;
    const weir_yaml *v = list ? y->items[i] : y->entries[i].value;
    if (list && (v->kind != WEIR_YAML_SCALAR || v->text.size == 0))
      return weir_fail(err, WEIR_W4024, &v->mark,
                       "%s is a list of names, or {name: type}", key);
    uint32_t before = m->spec->column_count;
    weir_column_spec *c =
        list ? mention(m, v->text, &v->mark)
             : mention(m, y->entries[i].key, &y->entries[i].key_mark);
    if (list && m->spec->column_count == before)
      return weir_fail(err, WEIR_W4024, &v->mark,
                       "column '%.*s' is listed twice", WEIR_SV(c->name));
    c->listed = true;
    if (!list) WEIR_TRY(read_column(v, c, err));
  }
  return WEIR_OK;
}

static weir_status read_ignore(mentions *m, weir_error *err) {
  const weir_yaml *y = weir_yaml_get(m->spec->section, "ignore");
  for (uint32_t i = 0; y != NULL && i < y->count; i++) {
    const weir_yaml *v = y->items[i];
    if (v->kind != WEIR_YAML_SCALAR)
      return weir_fail(err, WEIR_W4024, &v->mark, "ignore is a list of names");
    mention(m, v->text, &v->mark)->ignored = true;
  }
  return WEIR_OK;
}

/* ---- normalise */

static weir_status read_normalise(weir_column_spec *c, const weir_yaml *y,
                                  weir_arena *arena, weir_error *err) {
  if (y->kind != WEIR_YAML_MAP || y->count == 0)
    return weir_fail(err, WEIR_W4024, &y->mark,
                     "write {mean: m, std: s} or {scale: a, offset: b}");
  const weir_yaml *mean = weir_yaml_get(y, "mean");
  const weir_yaml *std = weir_yaml_get(y, "std");
  const weir_yaml *scale = weir_yaml_get(y, "scale");
  const weir_yaml *offset = weir_yaml_get(y, "offset");
  c->scaled = scale != NULL || offset != NULL;
  if (c->scaled && (mean != NULL || std != NULL))
    return weir_fail(err, WEIR_W4024, &y->mark,
                     "give mean and std, or scale and offset, not both");
  WEIR_TRY(weir_spec_numbers(c->scaled ? offset : mean,
                             c->scaled ? "offset" : "mean", arena, &c->mean,
                             &c->mean_count, err));
  WEIR_TRY(weir_spec_numbers(c->scaled ? scale : std,
                             c->scaled ? "scale" : "std", arena, &c->std,
                             &c->std_count, err));
  for (uint32_t i = 0; i < c->mean_count + c->std_count; i++) {
    double v = i < c->mean_count ? c->mean[i] : c->std[i - c->mean_count];
    if (!isfinite(v) || (i >= c->mean_count && !c->scaled && !(v > 0)))
      return weir_fail(err, WEIR_W4024, &y->mark,
                       "normalise takes finite numbers, std above 0");
  }
  return WEIR_OK;
}

/* ---- codes */

static weir_status set_code(weir_column_spec *c, weir_code_kind code,
                            const weir_yaml *y, weir_error *err) {
  if (c->code != WEIR_CODE_NONE)
    return weir_fail(err, WEIR_W4024, &y->mark,
                     "column '%.*s' has one of bucketize, hash_bucket and "
                     "vocabulary already",
                     WEIR_SV(c->name));
  c->code = code;
  return WEIR_OK;
}

static weir_status read_bucketize(weir_column_spec *c, const weir_yaml *y,
                                  weir_arena *arena, weir_error *err) {
  uint32_t count = 0;
  const weir_yaml *b =
      y->kind == WEIR_YAML_MAP ? weir_yaml_get(y, "boundaries") : y;
  WEIR_TRY(set_code(c, WEIR_CODE_BUCKETIZE, y, err));
  if (b == NULL || b->kind != WEIR_YAML_LIST)
    return weir_fail(err, WEIR_W4024, &y->mark,
                     "bucketize takes a list of boundaries");
  WEIR_TRY(
      weir_spec_numbers(b, "a boundary", arena, &c->boundaries, &count, err));
  c->bucket_count = count;
  for (uint32_t i = 0; i < count; i++)
    if (isnan(c->boundaries[i]) ||
        (i > 0 && !(c->boundaries[i] > c->boundaries[i - 1])))
      return weir_fail(err, WEIR_W4024, &b->items[i]->mark,
                       "boundaries must rise");
  return WEIR_OK;
}

static weir_status read_hash(weir_column_spec *c, const weir_yaml *y,
                             weir_error *err) {
  WEIR_TRY(set_code(c, WEIR_CODE_HASH, y, err));
  const weir_yaml *n =
      y->kind == WEIR_YAML_MAP ? weir_yaml_get(y, "buckets") : y;
  if (n == NULL)
    return weir_fail(err, WEIR_W4024, &y->mark, "hash_bucket needs `buckets`");
  return weir_spec_int(n, "buckets", 1, INT32_MAX, &c->bucket_count, err);
}

static weir_status read_save(const weir_yaml *y, weir_vocabulary_spec *out,
                             weir_error *err) {
  if (y == NULL) return WEIR_OK;
  WEIR_TRY(weir_spec_text(y, "save", &out->save, err));
  out->save_mark = y->mark;
  weir_run_name name = {
      .text = y->text, .key = "save", .plain = y->plain, .mark = &y->mark};
  return weir_run_name_check(&name, err);
}

weir_status weir_vocabulary_spec_read(const weir_yaml *y,
                                      weir_vocabulary_spec *out,
                                      weir_error *err) {
  *out = (weir_vocabulary_spec){.mark = y->mark};
  if (y->kind == WEIR_YAML_SCALAR)
    return weir_spec_path(y, "vocabulary", &out->file, err);
  const weir_yaml *map = y->kind == WEIR_YAML_MAP ? y : NULL;
  out->list = map != NULL ? weir_yaml_get(y, "list") : y;
  for (uint32_t i = 0; out->list != NULL && i < out->list->count; i++)
    if (out->list->kind != WEIR_YAML_LIST ||
        out->list->items[i]->kind != WEIR_YAML_SCALAR)
      return weir_fail(err, WEIR_W4024, &out->list->mark,
                       "a vocabulary is a list of texts");
  if (map == NULL) return WEIR_OK;
  WEIR_TRY(weir_spec_path(weir_yaml_get(y, "file"), "file", &out->file, err));
  WEIR_TRY(weir_spec_text(weir_yaml_get(y, "from"), "from", &out->from, err));
  WEIR_TRY(read_save(weir_yaml_get(y, "save"), out, err));
  WEIR_TRY(weir_spec_text(weir_yaml_get(y, "unknown"), "unknown", &out->unknown,
                          err));
  WEIR_TRY(weir_spec_int(weir_yaml_get(y, "size"), "size", 1, INT32_MAX,
                         &out->size, err));
  int given = (out->list != NULL) + (out->file.size > 0) + (out->from.size > 0);
  out->build = given == 0;
  if (given > 1 || (!out->build && (out->size > 0 || out->save.size > 0)))
    return weir_fail(err, WEIR_W4024, &y->mark,
                     "a vocabulary is one of list, file, from, or built from "
                     "the data (with size, save)");
  return WEIR_OK;
}

/* ---- All of it */

static weir_status read_codes(mentions *m, const char *key, weir_error *err) {
  const weir_yaml *y = weir_yaml_get(m->spec->section, key);
  for (uint32_t i = 0; y != NULL && i < y->count; i++) {
    const weir_yaml_entry *e = &y->entries[i];
    weir_column_spec *c = mention(m, e->key, &e->key_mark);
    weir_status s = WEIR_OK;
    if (key[0] == 'n') {
      s = read_normalise(c, e->value, m->arena, err);
    } else if (key[0] == 'b') {
      s = read_bucketize(c, e->value, m->arena, err);
    } else if (key[0] == 'h') {
      s = read_hash(c, e->value, err);
    } else {
      s = set_code(c, WEIR_CODE_VOCABULARY, e->value, err);
      if (s == WEIR_OK)
        s = weir_vocabulary_spec_read(e->value, &c->vocabulary, err);
    }
    WEIR_TRY(s);
    if (c->code != WEIR_CODE_NONE && c->mean_count + c->std_count > 0)
      return weir_fail(err, WEIR_W4024, &e->key_mark,
                       "column '%.*s' becomes an index, it cannot be "
                       "normalised",
                       WEIR_SV(c->name));
  }
  return WEIR_OK;
}

weir_status weir_data_spec_columns(weir_data_spec *spec, weir_arena *arena,
                                   weir_error *err) {
  static const char *const kKeys[] = {"columns",     "features",  "ignore",
                                      "normalise",   "normalize", "bucketize",
                                      "hash_bucket", "vocabulary"};
  uint32_t capacity = 0;
  for (size_t i = 0; i < sizeof kKeys / sizeof kKeys[0]; i++)
    capacity += entries_of(spec, kKeys[i]);
  spec->columns = weir_arena_array(arena, capacity, sizeof *spec->columns);
  if (spec->columns == NULL) return weir_fail_memory(err, capacity);
  mentions m = {spec, arena, capacity};
  WEIR_TRY(read_columns(&m, "columns", err));
  WEIR_TRY(read_columns(&m, "features", err));
  WEIR_TRY(read_ignore(&m, err));
  for (size_t i = 3; i < sizeof kKeys / sizeof kKeys[0]; i++)
    WEIR_TRY(read_codes(&m, kKeys[i], err));
  return WEIR_OK;
}
