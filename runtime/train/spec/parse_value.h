/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PARSE_VALUE_H_
#define WEIR_TRAIN_PARSE_VALUE_H_

#include "runtime/train/batch/data_transform.h"

/* From texts to the elements of a column. */
typedef struct weir_value_parser {
  weir_code code; /* NONE: a number of |dtype| */
  weir_dtype dtype;
  weir_sv column; /* for messages */
} weir_value_parser;

/* Sets the parser up as |spec| (may be NULL) says; a number's dtype is that of
 * |spec|, of the graph's input |column|, or f32. |vocabulary| may come later.
 * Errors: W4024. */
weir_status weir_value_parser_init(const weir_source_context *context,
                                   const weir_column_spec *spec, weir_sv column,
                                   weir_value_parser *out, weir_error *err);

/* Stores |text| as element |i| of |dst|. Blanks around numbers are passed over.
 * |at| is the text's place. Errors: W4027, W4031. */
weir_status weir_value_parse(const weir_value_parser *parser, weir_sv text,
                             const weir_mark *at, void *dst, int64_t i,
                             weir_error *err);
/* The same for numbers. */
weir_status weir_value_from_double(const weir_value_parser *parser,
                                   double value, const weir_mark *at, void *dst,
                                   int64_t i, weir_error *err);
weir_status weir_value_from_int(const weir_value_parser *parser, int64_t value,
                                const weir_mark *at, void *dst, int64_t i,
                                weir_error *err);

#endif
