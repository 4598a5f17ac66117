/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_SPEC_H_
#define WEIR_TRAIN_DATA_SPEC_H_

#include "runtime/graph/train/train.h"

/* A section of `data:`, read: every key's value checked and given its default.
 * The loader has checked the keys and their form already
 * (runtime/graph/load/sections_data.c). Keys that belong to one source are read
 * by that source as it opens. Texts live as long as the graph, lists in the
 * arena that was passed in. */

struct weir_source_def; /* data_source.h */

typedef enum weir_remainder {
  WEIR_REMAINDER_AUTO, /* drop where the graph fixes the batch, else keep */
  WEIR_REMAINDER_DROP,
  WEIR_REMAINDER_KEEP,
  WEIR_REMAINDER_PAD,
  WEIR_REMAINDER_COUNT
} weir_remainder;

/* `shard:`, who gets which part of the data. */
typedef enum weir_shard {
  WEIR_SHARD_AUTO, /* not said */
  WEIR_SHARD_EQUAL,
  WEIR_SHARD_BY_LOAD,
  WEIR_SHARD_NONE
} weir_shard;

/* The code that makes an element of a value. */
typedef enum weir_code_kind {
  WEIR_CODE_NONE,
  WEIR_CODE_BUCKETIZE, /* the number of boundaries <= value */
  WEIR_CODE_HASH,      /* hash modulo buckets */
  WEIR_CODE_VOCABULARY /* place in a list */
} weir_code_kind;

/* The origin of a vocabulary: exactly one of list, file, from, build. */
typedef struct weir_vocabulary_spec {
  const weir_yaml *list; /* of texts */
  weir_sv file;          /* beneath the data root */
  weir_sv from;          /* another data set's; it builds or loads it */
  weir_sv save;          /* written there by a training: run_folder.h */
  weir_mark save_mark;
  weir_sv unknown; /* entry of unlisted texts; empty: an error */
  int64_t size;    /* at most so many entries when built; 0: all */
  bool build;
  weir_mark mark;
} weir_vocabulary_spec;

/* All entries of a column, from every key that names it. */
typedef struct weir_column_spec {
  weir_sv name;
  weir_mark mark;
  weir_dtype dtype; /* NONE: as it comes */
  int32_t rank;     /* of an example; -1: not said */
  int64_t dims[WEIR_MAX_RANK];
  bool listed;               /* under `columns` or `features` */
  const weir_yaml *fields;   /* csv: fields that make up the column, or NULL */
  const weir_yaml *fallback; /* `default`, or NULL */
  weir_code_kind code;
  const double *boundaries;
  int64_t bucket_count; /* boundaries, or buckets of a hash */
  weir_vocabulary_spec vocabulary;
  /* normalise: (x - mean) / std; counts 0 (none), 1, or one for each slice of
   * an example's first dimension. scale and offset are kept in this form. */
  const double *mean, *std;
  uint32_t mean_count, std_count;
  bool scaled; /* x * scale + offset: |std| is scale, |mean| is offset */
  bool ignored;
} weir_column_spec;

/* Shards of one column (or of all: |column| empty). */
typedef struct weir_files_spec {
  weir_sv column;
  weir_mark mark;
  const weir_yaml *paths; /* a scalar or a list of scalars */
} weir_files_spec;

typedef struct weir_data_spec {
  weir_sv name;
  weir_mark mark;
  const weir_yaml *section;
  const struct weir_source_def *source;
  const weir_files_spec *files;
  uint32_t file_count;
  weir_column_spec *columns; /* in order of first mention */
  uint32_t column_count;
  bool columns_listed; /* `columns` is there: csv reads no others */
  /* window */
  int64_t length, shift; /* length 0: no window */
  bool stream, target_next;
  /* map */
  weir_sv map_graph, map_block; /* a path, or a name; both empty: none */
  bool map_per_example;
  weir_mark map_mark;
  /* order */
  bool sharded, shuffle, seeded;
  int64_t buffer; /* examples; INT64_MAX: all */
  uint64_t seed;
  int64_t skip, take; /* take -1: all */
  int64_t batch;      /* 0: not said */
  weir_mark batch_mark;
  weir_remainder remainder;
  int64_t repeat; /* rounds of an epoch; 0: for ever */
  int64_t prefetch;
  uint64_t memory_bytes;
} weir_data_spec;

/* Reads section |name| of |graph|. Errors: W1010, W4023, W4024, W6001. */
weir_status weir_data_spec_read(const weir_graph *graph, weir_sv name,
                                weir_arena *arena, weir_data_spec **out_spec,
                                weir_error *err);

/* How workers share the batches of a training: |between| graphs by its mode,
 * else in one graph. |*out_equal|: each gets as many; else they go to whoever
 * has none left. Errors: W4024 (a value of `shard` that has no effect there; a
 * value that is none). */
weir_status weir_data_shares(const weir_graph *graph,
                             const weir_train_spec *train, bool between,
                             bool *out_equal, weir_error *err);

/* ---- Values, for the files above. Each leaves |*out| when |y| is NULL, and
 * gives W4024 naming |what| when the value is not one. */
weir_status weir_spec_int(const weir_yaml *y, const char *what, int64_t least,
                          int64_t most, int64_t *out, weir_error *err);
weir_status weir_spec_bool(const weir_yaml *y, const char *what, bool *out,
                           weir_error *err);
weir_status weir_spec_text(const weir_yaml *y, const char *what, weir_sv *out,
                           weir_error *err);
/* A text without NUL bytes. */
weir_status weir_spec_path(const weir_yaml *y, const char *what, weir_sv *out,
                           weir_error *err);
/* A number or a list of them, in |arena|. */
weir_status weir_spec_numbers(const weir_yaml *y, const char *what,
                              weir_arena *arena, const double **out_numbers,
                              uint32_t *out_count, weir_error *err);

#endif
