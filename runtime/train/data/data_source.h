/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_SOURCE_H_
#define WEIR_TRAIN_DATA_SOURCE_H_

#include "runtime/graph/load/data_form.h"
#include "runtime/io/stream.h"
#include "runtime/train/source/vocabulary.h"
#include "runtime/train/spec/data_spec.h"

/* Sources of examples.
 *
 * A source is immutable: it knows its columns and the number of its examples,
 * and gives any of them by number. The state of reading (a window over a file,
 * a place in it) is in a cursor; each iterator has its own, so a source needs
 * no lock. Order, batches and conversion are not a source's business.
 *
 *   source_open(...) -> source -> cursor_create -> read, read, ...
 *
 * A kind of source is one const weir_source_def in source/source_<name>.c, and
 * a word in the list of runtime/train/meson.build. source_null.c is one to
 * copy. */

typedef struct weir_source weir_source;
typedef struct weir_source_cursor weir_source_cursor; /* the kind's own */

/* A column of one example. */
typedef struct weir_source_column {
  weir_sv name;
  weir_mark mark; /* where it is named; file NULL: nowhere */
  weir_dtype dtype;
  int32_t rank;
  int64_t dims[WEIR_MAX_RANK];
  size_t bytes;     /* of one example */
  int64_t elements; /* of one example */
  /* The source has applied the column's code and dtype already. */
  bool converted;
  weir_vocabulary *vocabulary; /* the source's; NULL: none */
} weir_source_column;

typedef struct weir_source_vtable {
  /* A cursor, or NULL and WEIR_OK when the kind needs none. */
  weir_status (*cursor_create)(const weir_source *source,
                               weir_source_cursor **out_cursor,
                               weir_error *err);
  void (*cursor_release)(const weir_source *source,
                         weir_source_cursor *cursor); /* NULL-safe */
  /* Examples [first, first + count), which exist; column c of them goes to
   * dst[c], count * columns[c].bytes bytes; NULL: not wanted. Allocates only
   * to grow a window for a record longer than any before. */
  weir_status (*read)(const weir_source *source, weir_source_cursor *cursor,
                      int64_t first, int64_t count, void *const *dst,
                      weir_error *err);
  void (*release)(weir_source *source);
} weir_source_vtable;

struct weir_source {
  const weir_source_vtable *vtable;
  const weir_env *env;
  const weir_source_column *columns;
  uint32_t column_count;
  int64_t examples;
  bool forward_only; /* going back is slow: gzip */
  const char *file;  /* of a forward-only one, for messages */
};

static inline void weir_source_release(weir_source *source) {
  if (source != NULL) source->vtable->release(source);
}

/* Arguments of the open functions. Everything is borrowed and lives as long as
 * the source; |arena| is the data set's. */
typedef struct weir_source_context {
  const weir_env *env;
  const weir_graph *graph;
  const weir_data_spec *spec;
  weir_arena *arena;
  const char *root; /* files are opened beneath it */
  uint32_t shard, shards;
  int64_t batch; /* lanes of streams; 0: not known */
} weir_source_context;

/* ---- Kinds of source. */

/* The form of `files` for a source. */
typedef enum weir_source_files {
  WEIR_FILES_NONE,     /* the source takes no files */
  WEIR_FILES_LIST,     /* a path, a pattern or a list of such */
  WEIR_FILES_BY_COLUMN /* {column: such} */
} weir_source_files;

typedef struct weir_source_def {
  /* `source: NAME`, and the keys that it takes beside the common ones. */
  weir_data_form form;
  const char *summary; /* for the list of sources */
  weir_source_files files;
  /* Reads the source's own keys (context->spec->section) and opens its files.
   * Errors: those of the files, W4021-W4028, W6001. */
  weir_status (*open)(const weir_source_context *context,
                      weir_source **out_source, weir_error *err);
} weir_source_def;

/* Kind |i| in the order of the list, or NULL past the last one. */
const weir_source_def *weir_source_at(size_t i);
/* Its form, for weir_load_options. */
const weir_data_form *weir_source_form(size_t i);

#endif
