/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/predict/answer.h"

#include "runtime/base/bytes/proto.h"
#include "runtime/base/size.h"

/* Answers: the data of a value is its message's last field, so that it can
 * stand between two heads without being copied to them. */

enum { kMostBytes = INT32_MAX }; /* of a message, for most readers */

/* The key and the length of a field of bytes that come behind. */
static void put_length(weir_strbuf *out, uint32_t number, size_t bytes) {
  weir_proto_put_packed_varint(out, (uint64_t)number << 3 | WEIR_PROTO_BYTES);
  weir_proto_put_packed_varint(out, bytes);
}

/* Fields 1 to 3 of NamedTensor and TensorSpec. An open dimension is -1. */
static void put_type(weir_strbuf *out, const weir_predict_port *port,
                     const weir_shape *shape) {
  weir_strbuf dims;
  weir_strbuf_init(&dims, out->alloc);
  weir_proto_put_bytes(out, 1, port->name);
  weir_proto_put_int(out, 2, weir_predict_dtype_number(port->dtype));
  for (int32_t i = 0; i < shape->rank; i++) {
    bool known = weir_dim_known(shape->dims[i]);
    weir_proto_put_packed_varint(
        &dims, known ? (uint64_t)shape->dims[i].value : UINT64_MAX);
  }
  out->failed |= dims.failed;
  if (shape->rank > 0) weir_proto_put_bytes(out, 3, weir_strbuf_view(&dims));
  weir_strbuf_release(&dims);
}

/* All of a value's message but its data. */
static void put_head(weir_strbuf *heads, const weir_predict_port *port,
                     const weir_predict_value *value) {
  weir_strbuf inner;
  weir_strbuf_init(&inner, heads->alloc);
  put_type(&inner, port, value->shape);
  put_length(&inner, 4, value->data.size);
  weir_sv text = weir_strbuf_view(&inner);
  put_length(heads, 1, text.size + value->data.size);
  weir_strbuf_sv(heads, text);
  heads->failed |= inner.failed;
  weir_strbuf_release(&inner);
}

weir_status weir_predict_answer(const weir_predict_model *m,
                                const weir_predict_request *request,
                                const weir_predict_value *values,
                                weir_strbuf *heads, weir_bytes *pieces,
                                weir_error *err) {
  size_t total = 0;
  for (uint32_t i = 0; i < request->output_count; i++) {
    size_t before = heads->size;
    put_head(heads, &m->outputs[request->outputs[i]], &values[i]);
    pieces[2 * i].size = heads->size - before;
    pieces[2 * i + 1] = values[i].data;
    if (!weir_size_add(total, values[i].data.size, &total) ||
        total > kMostBytes - heads->size)
      return weir_fail(err, WEIR_W7012, NULL, "the answer is over 2 GiB");
  }
  size_t at = 0; /* the heads have found their place in memory by now */
  for (uint32_t i = 0; i < request->output_count; i++) {
    pieces[2 * i].data = (const uint8_t *)heads->data + at;
    at += pieces[2 * i].size;
  }
  return weir_strbuf_status(heads, err);
}

static void put_spec(weir_strbuf *out, uint32_t number,
                     const weir_predict_port *port, const weir_shape *shape,
                     bool optional) {
  weir_strbuf spec;
  weir_strbuf_init(&spec, out->alloc);
  put_type(&spec, port, shape);
  if (optional) weir_proto_put_int(&spec, 4, 1);
  out->failed |= spec.failed;
  weir_proto_put_bytes(out, number, weir_strbuf_view(&spec));
  weir_strbuf_release(&spec);
}

/* Its shape for clients: rows of a batch are theirs to choose. */
static weir_shape told(const weir_predict_model *m,
                       const weir_predict_port *port) {
  weir_shape shape = *port->shape;
  if (m->rows > 0 && port->batched) shape.dims[0] = (weir_dim){0, 1, 0};
  return shape;
}

weir_status weir_predict_describe(const weir_predict_model *m, weir_strbuf *out,
                                  weir_error *err) {
  for (uint32_t i = 0; i < m->input_count; i++) {
    const weir_predict_port *port = &m->inputs[i];
    weir_shape shape = told(m, port);
    if (weir_predict_may_feed(m, port))
      put_spec(out, 1, port, &shape, !weir_predict_must_feed(m, port));
  }
  for (uint32_t k = 0; k < m->output_count; k++) {
    weir_shape shape = told(m, &m->outputs[k]);
    put_spec(out, 2, &m->outputs[k], &shape, false);
  }
  if (m->rows > 0) weir_proto_put_int(out, 3, m->rows);
  return weir_strbuf_status(out, err);
}
