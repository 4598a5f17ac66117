/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "runtime/io/record/tf_example.h"
#include "runtime/io/record/tfrecord.h"
#include "runtime/train/data/data_files.h"
#include "runtime/train/data/data_vocabulary.h"
#include "runtime/train/source/records.h"
#include "runtime/train/spec/parse_value.h"

/* Records of tf.Example as examples. The scan at opening compares the CRCs of
 * lengths, and reads the records themselves only to build a vocabulary; a
 * record's data is compared with its CRC when it is read. */

typedef struct record_column {
  weir_value_parser parser;
  int64_t elements;
  size_t bytes;
  const weir_yaml *fallback;        /* NULL: the feature must be there */
  weir_vocabulary_builder *builder; /* while the files are scanned */
} record_column;

typedef struct record_source {
  weir_source base;
  weir_records records;
  record_column *columns;
  weir_source_column *infos;
  weir_sv *names;
} record_source;

/* Reads records; one for the scan, one in each cursor. */
typedef struct record_reader {
  const record_source *source;
  weir_feature *features; /* of the record that was read */
  void *const *dst;
  int64_t row;
} record_reader;

typedef struct record_cursor {
  weir_record_cursor records;
  record_reader reader;
} record_cursor;

/* ---- Records */

static weir_status skip_record(void *self, weir_stream *stream,
                               const char *file, weir_record_place *place,
                               bool *end, weir_error *err) {
  weir_bytes data;
  (void)self;
  (void)place;
  return weir_tfrecord_next(stream, file, false, &data, end, err);
}

static weir_status read_features(record_reader *r, weir_stream *stream,
                                 const char *file, bool *end, weir_error *err) {
  weir_bytes data;
  WEIR_TRY(weir_tfrecord_next(stream, file, true, &data, end, err));
  if (*end) return WEIR_OK;
  return weir_example_read(data, file, r->source->names,
                           r->source->base.column_count, r->features, err);
}

static weir_status fail_feature(const record_reader *r, uint32_t c,
                                const char *file, const char *what,
                                weir_error *err) {
  weir_mark at = {.file = file};
  return weir_fail(err, WEIR_W4029, &at, "feature '%.*s' %s",
                   WEIR_SV(r->source->names[c]), what);
}

/* One value of bytes that are the elements themselves. */
static bool store_raw(const record_column *column, const weir_feature *feature,
                      uint8_t *to) {
  weir_feature_values values = weir_feature_begin(feature);
  weir_bytes raw;
  if (feature->count != 1 || column->parser.code.kind != WEIR_CODE_NONE ||
      !weir_feature_next_bytes(&values, &raw) || raw.size != column->bytes)
    return false;
  if (raw.size > 0) memcpy(to, raw.data, raw.size);
  return true;
}

static weir_status store_values(const record_column *column,
                                const weir_feature *feature,
                                const weir_mark *at, void *to,
                                weir_error *err) {
  weir_feature_values values = weir_feature_begin(feature);
  weir_bytes bytes;
  float f = 0;
  int64_t n = 0;
  for (int64_t i = 0; i < column->elements; i++) {
    weir_status s = WEIR_OK;
    if (feature->kind == WEIR_FEATURE_BYTES &&
        weir_feature_next_bytes(&values, &bytes))
      s = weir_value_parse(&column->parser,
                           (weir_sv){(const char *)bytes.data, bytes.size}, at,
                           to, i, err);
    if (feature->kind == WEIR_FEATURE_FLOAT &&
        weir_feature_next_float(&values, &f))
      s = weir_value_from_double(&column->parser, f, at, to, i, err);
    if (feature->kind == WEIR_FEATURE_INT64 &&
        weir_feature_next_int(&values, &n))
      s = weir_value_from_int(&column->parser, n, at, to, i, err);
    WEIR_TRY(s);
  }
  return WEIR_OK;
}

/* The default: one value for all elements, or one for each. */
static weir_status store_default(const record_column *column, void *to,
                                 weir_error *err) {
  const weir_yaml *y = column->fallback;
  bool list = y->kind == WEIR_YAML_LIST;
  for (int64_t i = 0; i < column->elements; i++) {
    const weir_yaml *v = list ? y->items[i] : y;
    WEIR_TRY(weir_value_parse(&column->parser, v->text, &v->mark, to, i, err));
  }
  return WEIR_OK;
}

static weir_status store_feature(const record_reader *r, uint32_t c,
                                 const char *file, weir_error *err) {
  const record_column *column = &r->source->columns[c];
  const weir_feature *feature = &r->features[c];
  uint8_t *to = (uint8_t *)r->dst[c] + column->bytes * (size_t)r->row;
  weir_mark at = {.file = file};
  bool absent = feature->kind == WEIR_FEATURE_NONE || feature->count == 0;
  if (absent && column->fallback != NULL) return store_default(column, to, err);
  if (feature->kind == WEIR_FEATURE_NONE)
    return fail_feature(r, c, file, "is not in a record", err);
  if (feature->kind == WEIR_FEATURE_BYTES && store_raw(column, feature, to))
    return WEIR_OK;
  if (feature->count != column->elements)
    return weir_fail(
        err, WEIR_W4029, &at,
        "feature '%.*s' has %" PRId64 " values in a record, its shape %" PRId64,
        WEIR_SV(r->source->names[c]), feature->count, column->elements);
  if (feature->kind == WEIR_FEATURE_BYTES &&
      column->parser.code.kind == WEIR_CODE_NONE)
    return fail_feature(r, c, file,
                        "holds bytes; hash_bucket or vocabulary makes numbers "
                        "of them",
                        err);
  return store_values(column, feature, &at, to, err);
}

static weir_status store_record(void *self, weir_stream *stream,
                                const char *file, weir_record_place *place,
                                bool *end, weir_error *err) {
  record_reader *r = self;
  (void)place;
  WEIR_TRY(read_features(r, stream, file, end, err));
  for (uint32_t c = 0; !*end && c < r->source->base.column_count; c++)
    if (r->dst[c] != NULL) WEIR_TRY(store_feature(r, c, file, err));
  return WEIR_OK;
}

/* While scanning: counts the texts of vocabularies that are to be built. */
static weir_status count_record(void *self, weir_stream *stream,
                                const char *file, weir_record_place *place,
                                bool *end, weir_error *err) {
  record_reader *r = self;
  bool builds = false;
  for (uint32_t c = 0; c < r->source->base.column_count; c++)
    builds = builds || r->source->columns[c].builder != NULL;
  if (!builds) return skip_record(self, stream, file, place, end, err);
  WEIR_TRY(read_features(r, stream, file, end, err));
  for (uint32_t c = 0; !*end && c < r->source->base.column_count; c++) {
    weir_vocabulary_builder *builder = r->source->columns[c].builder;
    weir_feature_values values = weir_feature_begin(&r->features[c]);
    weir_bytes b;
    if (builder == NULL || r->features[c].kind != WEIR_FEATURE_BYTES) continue;
    while (weir_feature_next_bytes(&values, &b))
      WEIR_TRY(weir_vocabulary_builder_add(
          builder, (weir_sv){(const char *)b.data, b.size}, err));
  }
  return WEIR_OK;
}

/* ---- The source */

static void record_release(weir_source *base) {
  record_source *s = (record_source *)base;
  for (uint32_t c = 0; c < base->column_count; c++) {
    weir_vocabulary_builder_release(s->columns[c].builder);
    weir_vocabulary_release(s->infos[c].vocabulary);
  }
  weir_records_close(&s->records);
  weir_free(base->env->alloc, s);
}

static weir_status reader_init(record_reader *r, const record_source *s,
                               weir_error *err) {
  r->source = s;
  r->features = weir_alloc_array(s->base.env->alloc, s->base.column_count,
                                 sizeof *r->features);
  if (r->features != NULL) return WEIR_OK;
  return weir_fail_memory(err, s->base.column_count * sizeof *r->features);
}

static void cursor_release(const weir_source *base,
                           weir_source_cursor *cursor) {
  record_cursor *c = (record_cursor *)cursor;
  if (c == NULL) return;
  weir_record_cursor_release(&c->records);
  weir_free(base->env->alloc, c->reader.features);
  weir_free(base->env->alloc, c);
}

static weir_status cursor_create(const weir_source *base,
                                 weir_source_cursor **out_cursor,
                                 weir_error *err) {
  const record_source *s = (const record_source *)base;
  *out_cursor = NULL;
  record_cursor *c = weir_alloc_array(base->env->alloc, 1, sizeof *c);
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  weir_status status = reader_init(&c->reader, s, err);
  if (status == WEIR_OK)
    status = weir_record_cursor_init(&c->records, &s->records, 1, err);
  if (status == WEIR_OK)
    *out_cursor = (weir_source_cursor *)c;
  else
    cursor_release(base, (weir_source_cursor *)c);
  return status;
}

static weir_status record_read(const weir_source *base,
                               weir_source_cursor *cursor, int64_t first,
                               int64_t count, void *const *dst,
                               weir_error *err) {
  record_cursor *c = (record_cursor *)cursor;
  (void)base;
  c->reader.dst = dst;
  for (c->reader.row = 0; c->reader.row < count; c->reader.row++)
    WEIR_TRY(weir_record_cursor_read(&c->records, first + c->reader.row,
                                     store_record, skip_record, &c->reader,
                                     err));
  return WEIR_OK;
}

static const weir_source_vtable kRecords = {cursor_create, cursor_release,
                                            record_read, record_release};

/* ---- Opening */

static weir_status check_default(const weir_column_spec *said, int64_t elements,
                                 weir_error *err) {
  const weir_yaml *y = said->fallback;
  bool ok = y->kind != WEIR_YAML_MAP &&
            (y->kind == WEIR_YAML_SCALAR || y->count == elements);
  for (uint32_t i = 0; ok && y->kind == WEIR_YAML_LIST && i < y->count; i++)
    ok = y->items[i]->kind == WEIR_YAML_SCALAR;
  if (ok) return WEIR_OK;
  return weir_fail(err, WEIR_W4024, &y->mark,
                   "default of feature '%.*s' is one value, or one for each "
                   "of its %" PRId64 " elements",
                   WEIR_SV(said->name), elements);
}

static weir_status add_feature(const weir_source_context *context,
                               record_source *s, const weir_column_spec *said,
                               weir_error *err) {
  uint32_t c = s->base.column_count;
  weir_source_column *info = &s->infos[c];
  record_column *column = &s->columns[c];
  *info = (weir_source_column){
      .name = said->name, .mark = said->mark, .converted = true};
  WEIR_TRY(
      weir_value_parser_init(context, said, said->name, &column->parser, err));
  info->dtype = column->parser.dtype;
  info->rank = said->rank > 0 ? said->rank : 0;
  memcpy(info->dims, said->dims, sizeof info->dims);
  WEIR_TRY(weir_source_column_size(info, err));
  column->elements = info->elements;
  column->bytes = info->bytes;
  column->fallback = said->fallback;
  s->names[c] = said->name;
  s->base.column_count++;
  if (said->fallback != NULL)
    WEIR_TRY(check_default(said, info->elements, err));
  if (said->code != WEIR_CODE_VOCABULARY) return WEIR_OK;
  WEIR_TRY(weir_data_vocabulary_load(context, &said->vocabulary, said->name,
                                     &info->vocabulary, err));
  if (info->vocabulary != NULL) return WEIR_OK;
  return weir_vocabulary_builder_create(context->env->alloc, &column->builder,
                                        err);
}

static weir_status finish_vocabularies(const weir_source_context *context,
                                       record_source *s, weir_error *err) {
  for (uint32_t c = 0; c < s->base.column_count; c++) {
    record_column *column = &s->columns[c];
    if (column->builder != NULL) {
      const weir_vocabulary_spec *spec =
          &weir_data_column_spec(context->spec, s->names[c])->vocabulary;
      WEIR_TRY(weir_vocabulary_builder_finish(column->builder, spec->size,
                                              spec->unknown,
                                              &s->infos[c].vocabulary, err));
      weir_vocabulary_builder_release(column->builder);
      column->builder = NULL;
    }
    column->parser.code.vocabulary = s->infos[c].vocabulary;
  }
  return WEIR_OK;
}

static weir_status scan(record_source *s, weir_error *err) {
  record_reader r = {0};
  weir_status status = reader_init(&r, s, err);
  if (status == WEIR_OK)
    status = weir_records_scan(&s->records, count_record, &r, err);
  weir_free(s->base.env->alloc, r.features);
  return status;
}

static weir_status open_records(const weir_source_context *context,
                                record_source *s, weir_error *err) {
  const weir_data_spec *spec = context->spec;
  uint32_t n = spec->column_count;
  if (!spec->columns_listed)
    return weir_fail(err, WEIR_W4024, &spec->mark,
                     "a tfrecord data set lists its `features`, {name: type}");
  s->columns = weir_arena_array(context->arena, n, sizeof *s->columns);
  s->infos = weir_arena_array(context->arena, n, sizeof *s->infos);
  s->names = weir_arena_array(context->arena, n, sizeof *s->names);
  if (s->columns == NULL || s->infos == NULL || s->names == NULL)
    return weir_fail_memory(err, n * sizeof *s->infos);
  s->base.columns = s->infos;
  for (uint32_t i = 0; i < n; i++)
    if (spec->columns[i].listed && !spec->columns[i].ignored)
      WEIR_TRY(add_feature(context, s, &spec->columns[i], err));
  WEIR_TRY(weir_records_open(&s->records, context, &spec->files[0], err));
  WEIR_TRY(scan(s, err));
  s->base.examples = s->records.count;
  s->base.forward_only = weir_records_packed(&s->records, &s->base.file);
  return finish_vocabularies(context, s, err);
}

static weir_status open_source(const weir_source_context *context,
                               weir_source **out_source, weir_error *err) {
  *out_source = NULL;
  record_source *s = weir_alloc_array(context->env->alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->base.vtable = &kRecords;
  s->base.env = context->env;
  weir_status status = open_records(context, s, err);
  if (status == WEIR_OK)
    *out_source = &s->base;
  else
    record_release(&s->base);
  return status;
}

static const weir_data_key kKeys[] = {
    {.name = "files"},
    {.name = NULL},
};

const weir_source_def weir_source_tfrecord = {
    .form = {"tfrecord", kKeys},
    .summary = "TensorFlow's records of tf.train.Example",
    .files = WEIR_FILES_LIST,
    .open = open_source,
};
