/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PREDICT_MODEL_H_
#define WEIR_DIST_PREDICT_MODEL_H_

#include "runtime/graph/graph.h"

/* A graph as a service: its inputs and outputs, and the dimension along which
 * requests are put together.
 *
 * The batch is the first dimension of the outputs: all of them have it, and so
 * have the inputs that a request feeds; every other dimension is known. By
 * shapes alone that is a guess, for a node might mix rows: the rows are looked
 * at before requests are batched (check_rows.h). A graph without a batch, or
 * whose rows depend on each other, runs each request by itself. */

typedef struct weir_predict_port {
  weir_sv name;
  weir_dtype dtype;
  const weir_shape *shape; /* may hold symbols */
  weir_value_id value;
  bool optional;    /* an input with a default */
  bool batched;     /* it has the batch's rows */
  size_t row_bytes; /* of one row, if |batched| */
} weir_predict_port;

enum { WEIR_PREDICT_SIZES = 8 };

typedef struct weir_predict_model {
  const weir_graph *graph;   /* lent */
  weir_arena arena;          /* of the lists */
  weir_predict_port *inputs; /* that the outputs depend on */
  weir_predict_port *outputs;
  uint32_t input_count, output_count;
  /* Rows of the largest batch; 0: each request by itself, and why so. */
  int64_t rows;
  char why[200];
  /* Rows that a batch may have, rising up to |rows|: a smaller one is filled up
   * to the next of them. */
  int64_t sizes[WEIR_PREDICT_SIZES];
  uint32_t size_count;
} weir_predict_model;

/* |rows|: of a batch, where the graph leaves that open; 1: no batches. Release
 * |out| also after a failure. Errors: W4016 (no outputs), W0002 (the graph's
 * batch has another size), W6001. */
weir_status weir_predict_model_init(const weir_allocator *alloc,
                                    const weir_graph *graph, int64_t rows,
                                    weir_predict_model *out, weir_error *err);
void weir_predict_model_release(weir_predict_model *model);

/* From now on each request runs by itself. */
void weir_predict_model_alone(weir_predict_model *model, const char *fmt, ...)
    WEIR_PRINTF(2, 3);

/* Whether a request may feed |port|: with batches, those of the batch alone. It
 * must, if that is so or there is no default. */
static inline bool weir_predict_may_feed(const weir_predict_model *model,
                                         const weir_predict_port *port) {
  return model->rows == 0 || port->batched;
}
static inline bool weir_predict_must_feed(const weir_predict_model *model,
                                          const weir_predict_port *port) {
  return model->rows > 0 ? port->batched : !port->optional;
}

/* |port|'s shape with |rows| rows. */
weir_shape weir_predict_shape(const weir_predict_port *port, int64_t rows);

#endif
