/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/data/data_files.h"
#include "runtime/train/data/data_source.h"

/* A source to copy: `{source: "null", examples: 10}` has one column x of f32,
 * and example i is the number i. It needs no files and no cursor. The library
 * does not hold it; a test keeps it built. To make a source of a copy, name it
 * in the list of runtime/train/meson.build. */

typedef struct null_source {
  weir_source base; /* first: the vtable's functions get a pointer to it */
  weir_source_column column;
} null_source;

static weir_status cursor_create(const weir_source *source,
                                 weir_source_cursor **out_cursor,
                                 weir_error *err) {
  (void)source;
  (void)err;
  *out_cursor = NULL;
  return WEIR_OK;
}

static void cursor_release(const weir_source *source,
                           weir_source_cursor *cursor) {
  (void)source;
  (void)cursor;
}

static weir_status read_examples(const weir_source *source,
                                 weir_source_cursor *cursor, int64_t first,
                                 int64_t count, void *const *dst,
                                 weir_error *err) {
  float *x = dst[0];
  (void)source;
  (void)cursor;
  (void)err;
  for (int64_t i = 0; x != NULL && i < count; i++) x[i] = (float)(first + i);
  return WEIR_OK;
}

static void release(weir_source *source) {
  weir_free(source->env->alloc, source);
}

static const weir_source_vtable kNull = {cursor_create, cursor_release,
                                         read_examples, release};

static weir_status open_null(const weir_source_context *context,
                             weir_source **out_source, weir_error *err) {
  const weir_data_spec *spec = context->spec;
  int64_t examples = 1;
  *out_source = NULL;
  WEIR_TRY(weir_spec_int(weir_yaml_get(spec->section, "examples"), "examples",
                         0, INT32_MAX, &examples, err));
  null_source *s = weir_alloc_array(context->env->alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->column = (weir_source_column){
      .name = WEIR_SV_LIT("x"), .mark = spec->mark, .dtype = WEIR_F32};
  s->base = (weir_source){.vtable = &kNull,
                          .env = context->env,
                          .columns = &s->column,
                          .column_count = 1,
                          .examples = examples};
  weir_status status = weir_source_column_size(&s->column, err);
  if (status == WEIR_OK)
    *out_source = &s->base;
  else
    release(&s->base);
  return status;
}

static const weir_data_key kKeys[] = {
    {.name = "examples"},
    {.name = NULL},
};

const weir_source_def weir_source_null = {
    .form = {"null", kKeys},
    .summary = "numbers in order, to copy",
    .files = WEIR_FILES_NONE,
    .open = open_null,
};
