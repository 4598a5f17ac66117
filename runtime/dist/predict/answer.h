/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PREDICT_ANSWER_H_
#define WEIR_DIST_PREDICT_ANSWER_H_

#include "runtime/base/strbuf.h"
#include "runtime/dist/predict/request.h"

/* Answers of weir.v1.Predict, to bytes. */

/* An output of a run: rows that are this request's. */
typedef struct weir_predict_value {
  const weir_shape *shape; /* with those rows */
  weir_bytes data;
} weir_predict_value;

/* The answer's bytes: |heads|, which is empty, gets those between the values,
 * and |pieces| (room for two each of the request's outputs) puts all in order.
 * |values|: of each wanted output, in order. Errors: W7012 (more than 2 GiB),
 * W6001. */
weir_status weir_predict_answer(const weir_predict_model *model,
                                const weir_predict_request *request,
                                const weir_predict_value *values,
                                weir_strbuf *heads, weir_bytes *pieces,
                                weir_error *err);

/* The answer to Describe, appended to |out|. Errors: W6001. */
weir_status weir_predict_describe(const weir_predict_model *model,
                                  weir_strbuf *out, weir_error *err);

#endif
