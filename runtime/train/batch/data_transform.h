/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_TRANSFORM_H_
#define WEIR_TRAIN_DATA_TRANSFORM_H_

#include "runtime/train/data/data_source.h"
#include "runtime/train/source/vocabulary.h"

/* From a source's column to the column that is fed: codes (bucketize,
 * hash_bucket, vocabulary), dtype, normalise. */

/* A code with its tables, for texts and for numbers. Immutable. */
typedef struct weir_code {
  weir_code_kind kind;
  const double *boundaries;
  int64_t bucket_count;
  const weir_vocabulary *vocabulary; /* lent */
  weir_sv column;                    /* for messages */
} weir_code;

/* The index that |text| gets. |at| (may be NULL) is its place, for messages.
 * Errors: W4027 (bucketize: not a finite number), W4031. */
weir_status weir_code_text(const weir_code *code, weir_sv text,
                           const weir_mark *at, int32_t *out_index,
                           weir_error *err);
/* The same for a number; hash and vocabulary take integers, as their decimal
 * text. */
weir_status weir_code_number(const weir_code *code, double value,
                             const weir_mark *at, int32_t *out_index,
                             weir_error *err);

typedef struct weir_transform {
  bool identity; /* bytes are fed as they are */
  weir_code code;
  weir_dtype from, to;
  int64_t elements; /* of an example */
  size_t from_bytes, to_bytes;
  /* y = (x - mean) / std, or x * std + mean when |scaled|; one pair for each
   * of |slices| slices, NULL: none. In the data set's arena. */
  const float *mean, *std;
  int64_t slices;
  bool scaled;
} weir_transform;

/* The transform of |column| as |spec| (may be NULL) says. |vocabulary| is lent
 * for the transform's life. Errors: W4024, W6001. */
weir_status weir_transform_init(const weir_source_column *column,
                                const weir_column_spec *spec,
                                const weir_vocabulary *vocabulary,
                                weir_arena *arena, weir_transform *out,
                                weir_error *err);
/* |count| examples from |src| to |dst|, which do not overlap.
 * Errors: W4027, W4031. */
weir_status weir_transform_run(const weir_transform *transform, const void *src,
                               int64_t count, void *dst, weir_error *err);

#endif
