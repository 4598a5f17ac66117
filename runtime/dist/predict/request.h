/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PREDICT_REQUEST_H_
#define WEIR_DIST_PREDICT_REQUEST_H_

#include "runtime/dist/predict/model.h"

/* Requests of weir.v1.Predict, from bytes
 * (runtime/net/proto/weir/v1/predict.proto).
 *
 * A request is anybody's. It is read in one pass over its fields, without a
 * copy of its data; what is kept of it is bounded by the graph. Numbers are
 * little-endian, as this machine's are. */

typedef struct weir_predict_feed {
  bool given;
  weir_shape shape;
  const uint8_t *data; /* lent by the message */
} weir_predict_feed;

typedef struct weir_predict_request {
  weir_predict_feed *feeds; /* of each input of the model */
  uint32_t *outputs;        /* of the model, in the wanted order */
  uint32_t output_count;
  int64_t rows; /* 1 without batches */
} weir_predict_request;

/* Memory for a request of |model|; one block, freed by weir_free. NULL when out
 * of memory. */
weir_predict_request *weir_predict_request_create(
    const weir_allocator *alloc, const weir_predict_model *model);

/* Reads |bytes|, which are lent for as long as the feeds are read. Errors:
 * W7075 (no such message), W4011 (no such input), W4016 (no such output), W4009
 * (dtype, shape or bytes), W2001 to W2003 (no shape at all), W4012 (an input is
 * missing). */
weir_status weir_predict_request_read(const weir_predict_model *model,
                                      weir_bytes bytes,
                                      weir_predict_request *out,
                                      weir_error *err);

/* The number of |dtype| in DType. */
int64_t weir_predict_dtype_number(weir_dtype dtype);

#endif
