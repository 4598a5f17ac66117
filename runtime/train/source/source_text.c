/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/source/source_text.h"

#include "runtime/io/record/token.h"
#include "runtime/train/batch/data_transform.h"
#include "runtime/train/data/data_files.h"
#include "runtime/train/data/data_vocabulary.h"
#include "runtime/train/source/records.h"
#include "runtime/train/spec/data_spec_columns.h"

/* Text as a column `tokens` of numbers, one example for each character or word;
 * source_window.c makes sequences of them. Numbers are not kept: a token is
 * read from its file and looked up in the vocabulary each time, so the files
 * may be larger than memory. */

typedef struct text_source {
  weir_source base;
  weir_records records;
  weir_token_format format;
  weir_sv end_of_line;
  weir_source_column info;
  weir_code code; /* a vocabulary */
  weir_vocabulary_builder *builder;
  int64_t lanes;
} text_source;

/* Reads tokens; one for the scan, one in each cursor. */
typedef struct text_reader {
  const text_source *source;
  int32_t *dst;
} text_reader;

typedef struct text_cursor {
  weir_record_cursor records;
  text_reader reader;
} text_cursor;

/* ---- Tokens */

static weir_status next_token(const text_source *s, const weir_token_text *text,
                              weir_sv *out, bool *end, weir_error *err) {
  WEIR_TRY(weir_token_next(text, out, end, err));
  if (out->size == 0) *out = s->end_of_line;
  return WEIR_OK;
}

static weir_status skip_token(void *self, weir_stream *stream, const char *file,
                              weir_record_place *place, bool *end,
                              weir_error *err) {
  weir_sv token;
  const text_reader *r = self;
  weir_token_text text = {&r->source->format, stream, file, &place->line};
  return next_token(r->source, &text, &token, end, err);
}

static weir_status store_token(void *self, weir_stream *stream,
                               const char *file, weir_record_place *place,
                               bool *end, weir_error *err) {
  weir_sv token;
  text_reader *r = self;
  weir_mark at = {.file = file, .line = (uint32_t)place->line, .col = 1};
  weir_token_text text = {&r->source->format, stream, file, &place->line};
  WEIR_TRY(next_token(r->source, &text, &token, end, err));
  if (*end) return WEIR_OK;
  WEIR_TRY(weir_code_text(&r->source->code, token, &at, r->dst, err));
  r->dst++;
  return WEIR_OK;
}

static weir_status count_token(void *self, weir_stream *stream,
                               const char *file, weir_record_place *place,
                               bool *end, weir_error *err) {
  weir_sv token;
  const text_reader *r = self;
  weir_token_text text = {&r->source->format, stream, file, &place->line};
  WEIR_TRY(next_token(r->source, &text, &token, end, err));
  if (*end || r->source->builder == NULL) return WEIR_OK;
  return weir_vocabulary_builder_add(r->source->builder, token, err);
}

/* ---- The source */

static void text_release(weir_source *base) {
  text_source *s = (text_source *)base;
  weir_vocabulary_builder_release(s->builder);
  weir_vocabulary_release(s->info.vocabulary);
  weir_records_close(&s->records);
  weir_free(base->env->alloc, s);
}

static void cursor_release(const weir_source *base,
                           weir_source_cursor *cursor) {
  text_cursor *c = (text_cursor *)cursor;
  if (c == NULL) return;
  weir_record_cursor_release(&c->records);
  weir_free(base->env->alloc, c);
}

static weir_status cursor_create(const weir_source *base,
                                 weir_source_cursor **out_cursor,
                                 weir_error *err) {
  const text_source *s = (const text_source *)base;
  *out_cursor = NULL;
  text_cursor *c = weir_alloc_array(base->env->alloc, 1, sizeof *c);
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  c->reader.source = s;
  weir_status status =
      weir_record_cursor_init(&c->records, &s->records, s->lanes, err);
  if (status == WEIR_OK)
    *out_cursor = (weir_source_cursor *)c;
  else
    cursor_release(base, (weir_source_cursor *)c);
  return status;
}

static weir_status text_read(const weir_source *base,
                             weir_source_cursor *cursor, int64_t first,
                             int64_t count, void *const *dst, weir_error *err) {
  text_cursor *c = (text_cursor *)cursor;
  (void)base;
  c->reader.dst = dst[0];
  for (int64_t i = first; i < first + count; i++)
    WEIR_TRY(weir_record_cursor_read(&c->records, i, store_token, skip_token,
                                     &c->reader, err));
  return WEIR_OK;
}

static const weir_source_vtable kText = {cursor_create, cursor_release,
                                         text_read, text_release};

/* ---- Opening */

weir_status weir_text_options_read(const weir_data_spec *spec,
                                   weir_text_options *out, weir_error *err) {
  const weir_yaml *y = weir_yaml_get(spec->section, "text");
  *out = (weir_text_options){.vocabulary = {.build = true, .mark = spec->mark}};
  if (y == NULL) return WEIR_OK;
  const weir_yaml *level = weir_yaml_get(y, "level");
  bool scalar = level != NULL && level->kind == WEIR_YAML_SCALAR;
  out->words = scalar && weir_sv_is(level->text, "words");
  if (level != NULL && !out->words &&
      !(scalar && weir_sv_is(level->text, "chars")))
    return weir_fail(err, WEIR_W4024, &level->mark, "level is chars or words");
  WEIR_TRY(weir_spec_text(weir_yaml_get(y, "end_of_line"), "end_of_line",
                          &out->end_of_line, err));
  const weir_yaml *v = weir_yaml_get(y, "vocabulary");
  if (v == NULL) return WEIR_OK;
  return weir_vocabulary_spec_read(v, &out->vocabulary, err);
}

static weir_status make_vocabulary(const weir_vocabulary_spec *spec,
                                   text_source *s, weir_error *err) {
  if (s->builder == NULL) return WEIR_OK;
  WEIR_TRY(weir_vocabulary_builder_finish(s->builder, spec->size, spec->unknown,
                                          &s->info.vocabulary, err));
  weir_vocabulary_builder_release(s->builder);
  s->builder = NULL;
  return WEIR_OK;
}

static weir_status open_text(const weir_source_context *context, text_source *s,
                             weir_error *err) {
  const weir_data_spec *spec = context->spec;
  text_reader reader = {.source = s};
  weir_text_options options;
  WEIR_TRY(weir_text_options_read(spec, &options, err));
  s->info = (weir_source_column){.name = WEIR_SV_LIT("tokens"),
                                 .mark = spec->files[0].mark,
                                 .dtype = WEIR_I32,
                                 .converted = true};
  s->base.columns = &s->info;
  s->base.column_count = 1;
  s->format.words = options.words;
  s->format.line_ends = options.words && options.end_of_line.size > 0;
  s->end_of_line = options.end_of_line;
  s->lanes = spec->stream ? context->batch : 1;
  WEIR_TRY(weir_source_column_size(&s->info, err));
  WEIR_TRY(weir_data_vocabulary_load(context, &options.vocabulary, s->info.name,
                                     &s->info.vocabulary, err));
  if (s->info.vocabulary == NULL)
    WEIR_TRY(
        weir_vocabulary_builder_create(context->env->alloc, &s->builder, err));
  WEIR_TRY(weir_records_open(&s->records, context, &spec->files[0], err));
  WEIR_TRY(weir_records_scan(&s->records, count_token, &reader, err));
  s->base.examples = s->records.count;
  s->base.forward_only = weir_records_packed(&s->records, &s->base.file);
  WEIR_TRY(make_vocabulary(&options.vocabulary, s, err));
  s->code = (weir_code){.kind = WEIR_CODE_VOCABULARY,
                        .vocabulary = s->info.vocabulary,
                        .column = s->info.name};
  return WEIR_OK;
}

static weir_status open_source(const weir_source_context *context,
                               weir_source **out_source, weir_error *err) {
  *out_source = NULL;
  text_source *s = weir_alloc_array(context->env->alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->base.vtable = &kText;
  s->base.env = context->env;
  weir_status status = open_text(context, s, err);
  if (status == WEIR_OK)
    *out_source = &s->base;
  else
    text_release(&s->base);
  return status;
}

static const char *const kTextKeys[] = {"level", "vocabulary", "end_of_line",
                                        NULL};
static const weir_data_key kKeys[] = {
    {.name = "files"},
    {.name = "text", .keys = kTextKeys, .must_be_map = true},
    {.name = NULL},
};

const weir_source_def weir_source_text = {
    .form = {"text", kKeys},
    .summary = "characters or words of text files",
    .files = WEIR_FILES_LIST,
    .open = open_source,
};
