/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_SOURCE_TEXT_H_
#define WEIR_TRAIN_SOURCE_TEXT_H_

#include "runtime/train/data/data_source.h"

/* How text becomes tokens, for those that make text of tokens again. */

extern const weir_source_def weir_source_text;

typedef struct weir_text_options {
  bool words;          /* tokens are words, not characters */
  weir_sv end_of_line; /* token for a line's end; empty: none */
  weir_vocabulary_spec vocabulary;
} weir_text_options;

/* Reads `text` of |spec|, whose source is text. Errors: W4024. */
weir_status weir_text_options_read(const weir_data_spec *spec,
                                   weir_text_options *out_options,
                                   weir_error *err);

#endif
