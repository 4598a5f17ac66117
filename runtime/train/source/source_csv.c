/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/base/diag/nearest.h"
#include "runtime/io/record/csv.h"
#include "runtime/train/data/data_files.h"
#include "runtime/train/data/data_vocabulary.h"
#include "runtime/train/source/records.h"
#include "runtime/train/spec/parse_value.h"

/* Rows of CSV files as examples. The scan at opening counts rows, checks their
 * fields and builds vocabularies; a read then goes to the row, splits it again
 * and parses the fields of the columns that are wanted. Text is parsed at each
 * read: numbers in memory would take more than the index does. */

/* A column: some fields of a row, most often one. */
typedef struct csv_column {
  const uint32_t *fields;
  int64_t field_count;
  weir_value_parser parser;
  weir_sv fallback; /* of empty fields */
  bool has_fallback;
  weir_vocabulary_builder *builder; /* while the files are scanned */
} csv_column;

typedef struct csv_source {
  weir_source base;
  weir_records records;
  weir_csv_format format;
  bool header;
  weir_sv *names; /* of all fields, from the first file's header */
  uint32_t field_count;
  csv_column *columns;
  weir_source_column *infos;
  int64_t lanes;
} csv_source;

/* Reads rows; one for the scan, one in each cursor. */
typedef struct csv_rows {
  const csv_source *source;
  weir_csv_reader reader;
  weir_arena
      *arena;       /* names of the first header go there; NULL: not the scan */
  weir_mark at;     /* of the row that was read */
  void *const *dst; /* rows are stored here, as row |row| */
  int64_t row;
} csv_rows;

typedef struct csv_cursor {
  weir_record_cursor records;
  csv_rows rows;
} csv_cursor;

/* ---- Rows */

static weir_status check_header(const csv_rows *r, const char *file,
                                weir_error *err) {
  const csv_source *s = r->source;
  weir_mark at = {.file = file, .line = 1, .col = 1};
  bool same = r->reader.count == s->field_count;
  for (uint32_t i = 0; same && i < s->field_count; i++)
    same = weir_sv_equal(r->reader.fields[i], s->names[i]);
  if (same) return WEIR_OK;
  return weir_fail(err, WEIR_W4026, &at,
                   "the header differs from that of the first file");
}

/* Reads the next row's fields; passes over a file's header. */
static weir_status next_fields(csv_rows *r, weir_stream *stream,
                               const char *file, weir_record_place *place,
                               bool *end, weir_error *err) {
  const csv_source *s = r->source;
  if (s->header && weir_stream_at(stream) == 0) {
    WEIR_TRY(weir_csv_next(&r->reader, stream, file, &place->line, err));
    /* Each file has a header, and equal ones, or columns would be mixed up. */
    if (r->reader.count > 0) WEIR_TRY(check_header(r, file, err));
  }
  uint64_t line = place->line;
  WEIR_TRY(weir_csv_next(&r->reader, stream, file, &place->line, err));
  *end = r->reader.count == 0;
  r->at = (weir_mark){.file = file, .line = (uint32_t)line, .col = 1};
  if (*end || r->reader.count == s->field_count) return WEIR_OK;
  return weir_fail(err, WEIR_W4026, &r->at, "the row has %u fields, the %s %u",
                   r->reader.count, s->header ? "header" : "first row",
                   s->field_count);
}

static weir_status skip_row(void *self, weir_stream *stream, const char *file,
                            weir_record_place *place, bool *end,
                            weir_error *err) {
  return next_fields(self, stream, file, place, end, err);
}

static weir_status store_row(void *self, weir_stream *stream, const char *file,
                             weir_record_place *place, bool *end,
                             weir_error *err) {
  csv_rows *r = self;
  WEIR_TRY(next_fields(r, stream, file, place, end, err));
  for (uint32_t c = 0; !*end && c < r->source->base.column_count; c++) {
    const csv_column *column = &r->source->columns[c];
    if (r->dst[c] == NULL) continue;
    for (int64_t k = 0; k < column->field_count; k++) {
      weir_sv text = r->reader.fields[column->fields[k]];
      if (text.size == 0 && column->has_fallback) text = column->fallback;
      WEIR_TRY(weir_value_parse(&column->parser, text, &r->at, r->dst[c],
                                r->row * column->field_count + k, err));
    }
  }
  return WEIR_OK;
}

/* While scanning: counts words of vocabularies that are to be built. */
static weir_status count_row(void *self, weir_stream *stream, const char *file,
                             weir_record_place *place, bool *end,
                             weir_error *err) {
  csv_rows *r = self;
  WEIR_TRY(next_fields(r, stream, file, place, end, err));
  for (uint32_t c = 0; !*end && c < r->source->base.column_count; c++) {
    const csv_column *column = &r->source->columns[c];
    for (int64_t k = 0; column->builder != NULL && k < column->field_count; k++)
      WEIR_TRY(weir_vocabulary_builder_add(
          column->builder, r->reader.fields[column->fields[k]], err));
  }
  return WEIR_OK;
}

/* ---- The source */

static void csv_release(weir_source *base) {
  csv_source *s = (csv_source *)base;
  for (uint32_t c = 0; c < base->column_count; c++) {
    weir_vocabulary_builder_release(s->columns[c].builder);
    weir_vocabulary_release(s->infos[c].vocabulary);
  }
  weir_records_close(&s->records);
  weir_free(base->env->alloc, s);
}

static void cursor_release(const weir_source *base,
                           weir_source_cursor *cursor) {
  csv_cursor *c = (csv_cursor *)cursor;
  if (c == NULL) return;
  weir_record_cursor_release(&c->records);
  weir_csv_reader_release(&c->rows.reader);
  weir_free(base->env->alloc, c);
}

static void rows_init(csv_rows *rows, const csv_source *s) {
  rows->source = s;
  rows->reader.alloc = s->base.env->alloc;
  rows->reader.format = s->format;
}

static weir_status cursor_create(const weir_source *base,
                                 weir_source_cursor **out_cursor,
                                 weir_error *err) {
  const csv_source *s = (const csv_source *)base;
  *out_cursor = NULL;
  csv_cursor *c = weir_alloc_array(base->env->alloc, 1, sizeof *c);
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  rows_init(&c->rows, s);
  weir_status status =
      weir_record_cursor_init(&c->records, &s->records, s->lanes, err);
  if (status == WEIR_OK)
    *out_cursor = (weir_source_cursor *)c;
  else
    cursor_release(base, (weir_source_cursor *)c);
  return status;
}

static weir_status csv_read(const weir_source *base, weir_source_cursor *cursor,
                            int64_t first, int64_t count, void *const *dst,
                            weir_error *err) {
  csv_cursor *c = (csv_cursor *)cursor;
  (void)base;
  c->rows.dst = dst;
  for (c->rows.row = 0; c->rows.row < count; c->rows.row++)
    WEIR_TRY(weir_record_cursor_read(&c->records, first + c->rows.row,
                                     store_row, skip_row, &c->rows, err));
  return WEIR_OK;
}

static const weir_source_vtable kCsv = {cursor_create, cursor_release, csv_read,
                                        csv_release};

/* ---- Opening */

typedef struct opening {
  const weir_source_context *context;
  csv_source *source;
  csv_rows rows;
  weir_error *err;
} opening;

/* Names of the first row, or of `columns` when there is no header. */
static weir_status find_names(opening *o) {
  csv_source *s = o->source;
  weir_arena *arena = o->context->arena;
  const weir_env *env = o->context->env;
  const char *file = s->records.blobs[0]->path;
  weir_stream *stream = NULL;
  uint64_t line = 1;
  WEIR_TRY(weir_stream_create(env, 65536, &stream, o->err));
  weir_status status =
      weir_stream_attach(stream, s->records.blobs[0], 0, o->err);
  if (status == WEIR_OK)
    status = weir_csv_next(&o->rows.reader, stream, file, &line, o->err);
  weir_mark at = {.file = file, .line = 1, .col = 1};
  if (status == WEIR_OK && o->rows.reader.count == 0)
    status = weir_fail(o->err, WEIR_W4026, &at, "the file is empty");
  uint32_t n = o->rows.reader.count;
  s->field_count = n;
  if (status == WEIR_OK && s->header) {
    s->names = weir_arena_array(arena, n, sizeof *s->names);
    if (s->names == NULL)
      status = weir_fail_memory(o->err, n * sizeof *s->names);
    for (uint32_t i = 0; status == WEIR_OK && i < n; i++) {
      weir_sv f = o->rows.reader.fields[i];
      const char *copy = weir_arena_string(arena, f.data, f.size);
      s->names[i] = (weir_sv){copy, f.size};
      if (copy == NULL) status = weir_fail_memory(o->err, f.size);
    }
  }
  weir_stream_release(stream);
  return status;
}

static weir_sv name_at(const void *self, size_t i) {
  return ((const csv_source *)self)->names[i];
}

/* The number of the field called |name|. */
static weir_status find_field(opening *o, weir_sv name, const weir_mark *at,
                              uint32_t *out_field) {
  const csv_source *s = o->source;
  uint32_t found = UINT32_MAX;
  for (uint32_t i = 0; i < s->field_count; i++) {
    if (!weir_sv_equal(s->names[i], name)) continue;
    if (found != UINT32_MAX)
      return weir_fail(o->err, WEIR_W4026, at,
                       "two fields of the header are called '%.*s'",
                       WEIR_SV(name));
    found = i;
  }
  *out_field = found;
  if (found != UINT32_MAX) return WEIR_OK;
  weir_status status =
      weir_fail(o->err, WEIR_W4021, at, "the header of '%.200s' has no '%.*s'",
                s->records.blobs[0]->path, WEIR_SV(name));
  weir_sv near = weir_nearest_name(name, s->field_count, name_at, s);
  if (near.size > 0) weir_hint(o->err, "did you mean '%.*s'?", WEIR_SV(near));
  return status;
}

/* A column from |said| (NULL: a field of the header without an entry). */
static weir_status add_column(opening *o, const weir_column_spec *said,
                              weir_sv name, uint32_t ordinal) {
  csv_source *s = o->source;
  uint32_t c = s->base.column_count;
  csv_column *column = &s->columns[c];
  weir_source_column *info = &s->infos[c];
  const weir_yaml *listed = said != NULL ? said->fields : NULL;
  uint32_t n = listed != NULL ? listed->count : 1;
  uint32_t *fields = weir_arena_array(o->context->arena, n, sizeof *fields);
  if (fields == NULL) return weir_fail_memory(o->err, n * sizeof *fields);
  *info = (weir_source_column){.name = name, .converted = true};
  info->mark = said != NULL ? said->mark : o->context->spec->files[0].mark;
  for (uint32_t k = 0; k < n; k++) {
    weir_sv field = listed != NULL ? listed->items[k]->text : name;
    const weir_mark *at =
        listed != NULL ? &listed->items[k]->mark : &info->mark;
    fields[k] = ordinal;
    if (s->names != NULL) WEIR_TRY(find_field(o, field, at, &fields[k]));
  }
  column->fields = fields;
  column->field_count = n;
  if (said != NULL && said->fallback != NULL) {
    if (said->fallback->kind != WEIR_YAML_SCALAR)
      return weir_fail(o->err, WEIR_W4024, &said->fallback->mark,
                       "default of a csv column is one value");
    column->has_fallback = true;
    column->fallback = said->fallback->text;
  }
  WEIR_TRY(
      weir_value_parser_init(o->context, said, name, &column->parser, o->err));
  info->dtype = column->parser.dtype;
  info->rank = n > 1 ? 1 : 0;
  info->dims[0] = n;
  if (said != NULL && said->rank >= 0) {
    info->rank = said->rank;
    memcpy(info->dims, said->dims, sizeof info->dims);
  }
  s->base.column_count++;
  WEIR_TRY(weir_source_column_size(info, o->err));
  if (info->elements != n)
    return weir_fail(o->err, WEIR_W4022, &info->mark,
                     "column '%.*s' has %u fields, its shape %lld elements",
                     WEIR_SV(name), n, (long long)info->elements);
  if (column->parser.code.kind != WEIR_CODE_VOCABULARY) return WEIR_OK;
  WEIR_TRY(weir_data_vocabulary_load(o->context, &said->vocabulary, name,
                                     &info->vocabulary, o->err));
  if (info->vocabulary != NULL) return WEIR_OK;
  return weir_vocabulary_builder_create(o->context->env->alloc,
                                        &column->builder, o->err);
}

static weir_status add_columns(opening *o) {
  csv_source *s = o->source;
  const weir_data_spec *spec = o->context->spec;
  weir_arena *arena = o->context->arena;
  uint32_t most = s->field_count + spec->column_count;
  s->columns = weir_arena_array(arena, most, sizeof *s->columns);
  s->infos = weir_arena_array(arena, most, sizeof *s->infos);
  if (s->columns == NULL || s->infos == NULL)
    return weir_fail_memory(o->err, most * sizeof *s->columns);
  s->base.columns = s->infos;
  uint32_t listed = 0;
  for (uint32_t i = 0; spec->columns_listed && i < spec->column_count; i++) {
    const weir_column_spec *said = &spec->columns[i];
    if (!said->listed) continue;
    if (!said->ignored) WEIR_TRY(add_column(o, said, said->name, listed));
    listed++;
  }
  if (!s->header && listed != s->field_count)
    return weir_fail(o->err, WEIR_W4024, &spec->mark,
                     "rows have %u fields, `columns` lists %u; a file without "
                     "header needs a name for each",
                     s->field_count, listed);
  for (uint32_t i = 0; !spec->columns_listed && i < s->field_count; i++) {
    const weir_column_spec *said = weir_data_column_spec(spec, s->names[i]);
    if (said == NULL || !said->ignored)
      WEIR_TRY(add_column(o, said, s->names[i], i));
  }
  return WEIR_OK;
}

static weir_status finish_vocabularies(opening *o) {
  csv_source *s = o->source;
  for (uint32_t c = 0; c < s->base.column_count; c++) {
    csv_column *column = &s->columns[c];
    if (column->builder != NULL) {
      const weir_column_spec *said =
          weir_data_column_spec(o->context->spec, s->infos[c].name);
      WEIR_TRY(weir_vocabulary_builder_finish(
          column->builder, said->vocabulary.size, said->vocabulary.unknown,
          &s->infos[c].vocabulary, o->err));
      weir_vocabulary_builder_release(column->builder);
      column->builder = NULL;
    }
    column->parser.code.vocabulary = s->infos[c].vocabulary;
  }
  return WEIR_OK;
}

/* A character, such as ';' or `tab`. */
static weir_status read_char(const weir_yaml *y, const char *what, char *out,
                             weir_error *err) {
  if (y == NULL) return WEIR_OK;
  weir_sv t = y->kind == WEIR_YAML_SCALAR ? y->text : (weir_sv){NULL, 0};
  if (weir_sv_is(t, "tab") || weir_sv_is(t, "\\t")) t = WEIR_SV_LIT("\t");
  if (t.size != 1 || t.data[0] == '\n' || t.data[0] == '\r' ||
      (unsigned char)t.data[0] >= 0x80)
    return weir_fail(err, WEIR_W4024, &y->mark,
                     "%s must be one ASCII character, or `tab`", what);
  *out = t.data[0];
  return WEIR_OK;
}

/* `header`, `delimiter` and `quote`. */
static weir_status read_format(const weir_data_spec *spec, csv_source *s,
                               weir_error *err) {
  const weir_yaml *header = weir_yaml_get(spec->section, "header");
  const weir_yaml *delimiter = weir_yaml_get(spec->section, "delimiter");
  const weir_yaml *quote = weir_yaml_get(spec->section, "quote");
  bool none = quote != NULL && quote->kind == WEIR_YAML_SCALAR &&
              weir_sv_is(quote->text, "none");
  s->header = true;
  s->format = (weir_csv_format){',', none ? '\0' : '"'};
  WEIR_TRY(weir_spec_bool(header, "header", &s->header, err));
  WEIR_TRY(read_char(delimiter, "delimiter", &s->format.delimiter, err));
  if (!none) WEIR_TRY(read_char(quote, "quote", &s->format.quote, err));
  if (s->format.quote != s->format.delimiter) return WEIR_OK;
  return weir_fail(err, WEIR_W4024,
                   quote != NULL ? &quote->mark : &delimiter->mark,
                   "quote and delimiter are the same character");
}

static weir_status open_csv(opening *o) {
  csv_source *s = o->source;
  const weir_data_spec *spec = o->context->spec;
  s->lanes = spec->stream ? o->context->batch : 1;
  WEIR_TRY(weir_records_open(&s->records, o->context, &spec->files[0], o->err));
  WEIR_TRY(find_names(o));
  WEIR_TRY(add_columns(o));
  WEIR_TRY(weir_records_scan(&s->records, count_row, &o->rows, o->err));
  s->base.examples = s->records.count;
  s->base.forward_only = weir_records_packed(&s->records, &s->base.file);
  return finish_vocabularies(o);
}

static weir_status open_source(const weir_source_context *context,
                               weir_source **out_source, weir_error *err) {
  *out_source = NULL;
  csv_source *s = weir_alloc_array(context->env->alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->base.vtable = &kCsv;
  s->base.env = context->env;
  opening o = {.context = context, .source = s, .err = err};
  weir_status status = read_format(context->spec, s, err);
  rows_init(&o.rows, s); /* with the format that was read */
  if (status == WEIR_OK) status = open_csv(&o);
  weir_csv_reader_release(&o.rows.reader);
  if (status == WEIR_OK)
    *out_source = &s->base;
  else
    csv_release(&s->base);
  return status;
}

static const weir_data_key kKeys[] = {
    {.name = "files"}, {.name = "header"}, {.name = "delimiter"},
    {.name = "quote"}, {.name = NULL},
};

const weir_source_def weir_source_csv = {
    .form = {"csv", kKeys},
    .summary = "rows of text files",
    .files = WEIR_FILES_LIST,
    .open = open_source,
};
